"""`gateway bench`: the benchmarks of the source checkout."""

from __future__ import annotations

import argparse
from importlib import import_module, util

from gateway.errors import ConfigError


def run(arguments: argparse.Namespace) -> int:
    """Run the named benchmarks, or all."""
    if util.find_spec("benchmarks") is None:
        raise ConfigError("bench", "the benchmarks are in the source checkout; run this from there, or `make bench`")
    try:
        return int(import_module("benchmarks.run").main(arguments.names))
    except ModuleNotFoundError as error:
        raise ConfigError(
            "bench", f"{error.name} is not installed; run `make bench`, which brings what is needed"
        ) from error
