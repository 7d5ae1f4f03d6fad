"""`gateway pipeline init | validate | run | status | graph`: data pipelines of Spark into the warehouse."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

from gateway.cli.output import full_advice, layout
from gateway.cli.settings import settings_flags
from gateway.config import Config, load_config
from gateway.engine.spark.errors import tells_full_disk
from gateway.errors import ConfigError, GatewayError, is_disk_full
from gateway.observability import printable
from gateway.pipelines import expectations, history, lock, starter
from gateway.pipelines.history import Run
from gateway.pipelines.project import load
from gateway.pipelines.run import Options, lock_path, run_pipeline
from gateway.pipelines.warehouse import Warehouse
from gateway.pipelines.watch import unmet_text

DEFAULT_MASTER = "local[*]"
OK, UNMET, FAILED = 0, 3, 4
_NUMBER, _TEXT = pa.int64(), pa.string()


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked: 0 done, 2 bad project or settings, 3 an expectation is not met, 4 the run failed."""
    verbs = {"init": _init, "validate": _validate, "run": _run, "status": _status, "graph": _graph}
    return verbs[arguments.verb](arguments)


def _init(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder)
    for path in starter.write(folder):
        print(path)
    print(f"\ngateway pipeline run {folder} --warehouse DIR", file=sys.stderr)
    return OK


def _validate(arguments: argparse.Namespace) -> int:
    from gateway.pipelines.validate import validate

    project = load(Path(arguments.folder))
    checked = validate(project, *_settings(arguments))
    for warning in checked.warnings:
        print(f"warning: {printable(warning)}", file=sys.stderr)
    for dataset in checked.definitions.ordered():
        print(f"{dataset.label}: {dataset.kind}")
    for table, wanted in checked.expectations:
        print(f"{table}: expects {wanted.name}: {wanted.predicate} ({wanted.action})")
    print(f"{project.name} can run", file=sys.stderr)
    return OK


def _run(arguments: argparse.Namespace) -> int:
    project = load(Path(arguments.folder))
    config, master = _settings(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    options = Options(arguments.full_refresh or (), arguments.full_refresh_all)
    try:
        done = run_pipeline(project, config, master, options, _tell)
    except (GatewayError, OSError) as error:
        if not is_disk_full(error):
            raise
        print(f"gateway: the run failed: {error}{full_advice(config)}", file=sys.stderr)
        return FAILED
    _report(done)
    if done.state == history.FAILED:
        advice = full_advice(config) if tells_full_disk(done.message or "") else ""
        print(f"gateway: the run failed: {done.message}{advice}", file=sys.stderr)
        return FAILED
    if done.state == history.UNMET:
        print(f"gateway: {done.message}; the rows are written all the same", file=sys.stderr)
        return UNMET
    return OK


def _status(arguments: argparse.Namespace) -> int:
    project = load(Path(arguments.folder))
    if arguments.runs < 1:
        raise ConfigError("runs", "at least 1 is needed")
    config, _ = _settings(arguments)
    warehouse = Warehouse(config.warehouse)
    running = lock.reader(lock_path(warehouse.root, project.name))
    if running is not None:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(running.started))
        print(f"run {running.run} is going on since {since} UTC (process {running.pid} on {running.host})\n")
    past = history.History(warehouse)
    runs = past.runs(project.name, arguments.runs)
    if not runs:
        print(f"{project.name} has not run into {warehouse.root} yet", file=sys.stderr)
        return OK
    shown = [(r["run_id"], r["state"], _when(r["started"]), _when(r["ended"]), r["message"]) for r in runs]
    _table([("run", _TEXT), ("state", _TEXT), ("started", _TEXT), ("ended", _TEXT), ("message", _TEXT)], shown)
    print(f"\nrun {_shown(runs[0]['run_id'])}")
    tables = past.of_run("tables", runs[0]["run_id"])
    columns = ("table_name", "kind", "state", "rows_in", "rows_out", "version_after", "error")
    _tables([[row[name] for name in columns] for row in tables])
    wanted = past.of_run("expectations", runs[0]["run_id"])
    counts = ("table_name", "name", "action", "failing_rows", "checked_rows", "failing_rows_added")
    _expectations([[row[name] for name in counts] for row in wanted])
    return OK


def _graph(arguments: argparse.Namespace) -> int:
    from gateway.pipelines import graph

    if arguments.output is not None and Path(arguments.output).suffix.lower() != ".svg":
        raise ConfigError("output", f"the ending of {arguments.output} is not .svg")
    project = load(Path(arguments.folder))
    found = graph.read(project, *_settings(arguments))
    if arguments.output is None:
        print(graph.text(found), end="")
        return OK
    try:
        Path(arguments.output).write_text(graph.svg(found, project.name), encoding="utf-8")
    except OSError as error:
        raise ConfigError("output", f"{arguments.output} cannot be written: {error.strerror}") from error
    return OK


def _settings(arguments: argparse.Namespace) -> tuple[Config, str]:
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
    print(f"{time.strftime('%H:%M:%S')}  {printable(line)}", file=sys.stderr, flush=True)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _report(run: Run) -> None:
    """The run's tables and expectations on standard output; what is not met, in words, on standard error."""
    _tables([(t.table, t.kind, t.state, t.rows_in, t.rows_out, t.version_after, t.error) for t in run.tables])
    outcomes = [(t.table, o) for t in run.tables for o in t.outcomes]
    _expectations(
        [
            (table, o.expectation.name, o.expectation.action, o.failing, o.checked, o.failing_added)
            for table, o in outcomes
        ]
    )
    for table, o in outcomes:
        if not o.is_met and (o.expectation.action == expectations.WARN or o.error is not None):
            print(f"warning: {printable(unmet_text(table, o))}", file=sys.stderr)


def _tables(rows: Sequence[Sequence[Any]]) -> None:
    numbers = [("rows in", _NUMBER), ("rows out", _NUMBER), ("version", _NUMBER)]
    _table([("table", _TEXT), ("kind", _TEXT), ("state", _TEXT), *numbers, ("error", _TEXT)], rows)


def _expectations(rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        print()
        numbers = [("failing", _NUMBER), ("of rows", _NUMBER), ("failing added", _NUMBER)]
        _table([("table", _TEXT), ("expectation", _TEXT), ("action", _TEXT), *numbers], rows)


def _table(columns: Sequence[tuple[str, pa.DataType]], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows; a last column that is empty everywhere is left out."""
    kept = len(columns) - (all(row[-1] is None for row in rows) and columns[-1][1] == _TEXT)
    cells = [[_shown(row[i]) for row in rows] for i in range(kept)]
    print("".join(layout(pa.schema(columns[:kept]), cells)), end="")


def _shown(value: Any) -> str:
    """A value in one line, without what a terminal obeys: whoever writes into the warehouse may have written it."""
    return "" if value is None else printable(" ".join(str(value).split()))


def _when(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
