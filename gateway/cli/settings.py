"""The server's settings as flags of commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gateway.config import SETTINGS

SPARK_SETTINGS = ("spark", "spark-jars", "spark-memory", "spark-properties", "spark-above")


def add_settings(parser: argparse.ArgumentParser, names: Sequence[str] | None = None) -> None:
    group = parser.add_argument_group(
        "settings", "each is also an environment variable GATEWAY_… and a key of the file"
    )
    for setting in SETTINGS:
        if names is not None and setting.name not in names:
            continue
        default = f" [{setting.default}]" if setting.default else ""
        group.add_argument(
            f"--{setting.name}",
            dest=f"setting_{setting.field}",
            metavar=setting.metavar or setting.field.upper(),
            action="append" if setting.repeatable else "store",
            help=(setting.help + default).replace("%", "%%"),
        )
    group.add_argument("--config", metavar="FILE", help="TOML file with settings")


def settings_flags(arguments: argparse.Namespace) -> dict[str, str | list[str] | None]:
    """The flags of `add_settings` as `load_config` takes them."""
    return {s.name: getattr(arguments, f"setting_{s.field}", None) for s in SETTINGS}
