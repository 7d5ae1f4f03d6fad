"""`gateway pipeline init | validate | run | status | graph`: data pipelines of Spark into the warehouse."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from gateway.cli.main import settings_flags
from gateway.config import Config, load_config
from gateway.errors import ConfigError
from gateway.pipelines.project import load

DEFAULT_MASTER = "local[*]"
OK, UNMET, FAILED = 0, 3, 4
_TERMINATED = 143


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked: 0 done, 2 bad project or settings, 3 an expectation is not met, 4 the run failed."""
    return {"run": _run}[arguments.verb](arguments)


def _config(arguments: argparse.Namespace) -> tuple[Config, str]:
    """The settings, and the Spark to use."""
    flags = settings_flags(arguments)
    try:
        config = load_config(flags, config_file=arguments.config)
    except ConfigError as error:
        if error.setting not in ("spark-jars", "spark-properties"):
            raise
        # They ask for --spark, which has a default here.
        config = load_config({**flags, "spark": DEFAULT_MASTER}, config_file=arguments.config)
    return config, config.spark or DEFAULT_MASTER


def _tell(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", file=sys.stderr, flush=True)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(arguments: argparse.Namespace) -> int:
    from gateway.pipelines.run import Options, run

    project = load(Path(arguments.folder))
    config, master = _config(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    done = run(project, config, master, Options(arguments.full_refresh or (), arguments.full_refresh_all), _tell)
    print(done)
    return {"COMPLETED": OK, "EXPECTATION_FAILED": UNMET}.get(done.state, FAILED)
