"""`gateway job`: built-in Spark jobs. Exit codes: 0 done, 1 a comparison found a difference, 2 bad input, 4 failed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.auth.authenticators import new_token
from gateway.cli.embedded import running_gateway
from gateway.cli.output import full_advice, layout, plain, texts
from gateway.cli.settings import settings_flags
from gateway.config import Config, load_config
from gateway.errors import ConfigError, GatewayError, ResourceError, is_disk_full
from gateway.observability import configure_logging
from gateway.pipelines.jobs.report import Report, Say

DONE, DIFFERS, BAD_INPUT, FAILED = 0, 1, 2, 4


def run(arguments: argparse.Namespace) -> int:
    """Run the job and print its summary; errors go to standard error."""
    configure_logging(level="warning")
    say = _quiet if arguments.quiet else _Progress()
    config: Config | None = None
    try:
        config = job_config(arguments)
        report = _JOBS[arguments.job](arguments, config, say)
    except ConfigError as error:
        print(f"gateway job {arguments.job}: {error.message}", file=sys.stderr)
        return BAD_INPUT
    except (GatewayError, OSError) as error:
        advice = full_advice(config) if config is not None and is_disk_full(error) else ""
        print(f"gateway job {arguments.job}: {error}{advice}", file=sys.stderr)
        bad = isinstance(error, GatewayError) and error.fault == "client" and not isinstance(error, ResourceError)
        return BAD_INPUT if bad else FAILED
    show(report, as_json=arguments.json)
    return DIFFERS if report.differs else DONE


def job_config(arguments: argparse.Namespace) -> Config:
    """The settings; Spark is local unless they say otherwise. Raises ConfigError."""
    flags = settings_flags(arguments)
    try:
        return load_config(flags, config_file=arguments.config)
    except ConfigError as error:
        if error.setting not in ("spark-jars", "spark-properties"):
            raise
    # Refused without `spark`, which a job has a default for.
    return load_config({**flags, "spark": "local[*]"}, config_file=arguments.config)


class _Progress:
    """Lines on standard error with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, line: str) -> None:
        print(f"[{time.monotonic() - self._start:5.1f} s] {line}", file=sys.stderr, flush=True)


def _quiet(line: str) -> None:
    """Progress that nobody wants to see."""


def show(report: Report, *, as_json: bool) -> None:
    """Tables and notes on standard output; as one JSON object, or for people."""
    if as_json:
        value: dict[str, Any] = {title: _records(table) for title, table in report.tables.items()}
        print(json.dumps({**value, "notes": list(report.notes)}, ensure_ascii=False))
        return
    for number, (title, table) in enumerate(report.tables.items()):
        if number:
            print(f"\n{title}")
        columns = [_cells(c) for c in table.columns]
        sys.stdout.writelines(layout(table.schema, columns))
    for note in report.notes:
        print(note)


def _records(table: pa.Table) -> list[dict[str, Any]]:
    columns = [[plain(v, column.type) for v in column.to_pylist()] for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _cells(column: pa.ChunkedArray) -> list[str]:
    found = ("NULL" if text is None else text for chunk in column.chunks for text in texts(chunk))
    return [repr(text)[1:-1] if "\n" in text else text for text in found]


# ---- jobs


def _check_warehouse(config: Config) -> None:
    """For jobs on tables that there are: else a mistyped folder would be made."""
    if not config.warehouse.is_dir():
        raise ConfigError("warehouse", f"{config.warehouse} does not exist")


def _verify(arguments: argparse.Namespace, config: Config, say: Say) -> Report:
    from gateway.catalog.local import LocalCatalog
    from gateway.catalog.samples import open_samples
    from gateway.pipelines.jobs.session import spark_session
    from gateway.pipelines.jobs.verify import check_tolerance, query_of, verify
    from gateway.protocol.client import Client

    check_tolerance(arguments.tolerance)
    if arguments.rows < 0:
        raise ConfigError("rows", "is negative")
    _check_warehouse(config)
    catalogs = {
        "main": LocalCatalog("main", str(config.warehouse), read_only=True, others=tuple(map(str, config.allow_path)))
    }
    text = sys.stdin.read() if arguments.query == "-" else arguments.query
    if "samples" in text.lower():
        catalogs["samples"] = open_samples(str(config.state / "samples"))
    query = query_of(text, catalogs)
    if arguments.dry_run:
        return Report({}, [f"would run on Spark ({config.spark or 'local'}) and on DataFusion, and compare: {query}"])
    # Without Spark as second engine, or it would be compared with itself.
    alone = replace(config, spark=None, spark_jars=None, spark_properties=None)
    scratch = config.state if config.spark is None or config.spark.startswith("local") else config.warehouse
    with _gateway(alone) as (url, token), spark_session(config, say) as spark:
        return verify(
            spark,
            Client(url, token=token),
            query,
            catalogs,
            scratch,
            say,
            schema=arguments.schema,
            tolerance=arguments.tolerance,
            most_rows=arguments.rows,
        )


@contextlib.contextmanager
def _gateway(config: Config) -> Iterator[tuple[str, str]]:
    local = replace(config, host="127.0.0.1", port=0, auth="none", token_file=None)
    with running_gateway(local, token := new_token()) as url:
        yield url, token


def _generate(arguments: argparse.Namespace, config: Config, say: Say) -> Report:
    from gateway.pipelines.jobs.generate import check, generate, places
    from gateway.pipelines.jobs.session import spark_session

    tables = places(arguments.what, config.warehouse, arguments.into)
    check(arguments.what, tables, arguments.scale, arguments.seed, arguments.replace)
    if arguments.dry_run:
        does = [f"would {'replace' if p.exists else 'create'} {p.name} in {p.folder}" for p in tables]
        return Report({}, does)
    config.state.mkdir(parents=True, exist_ok=True)
    with spark_session(config, say) as spark:
        return generate(spark, arguments.what, tables, arguments.scale, arguments.seed, config.state, say)


def _ingest(arguments: argparse.Namespace, config: Config, say: Say) -> Report:
    from gateway.pipelines.jobs.ingest import Wishes, check_place, ingest_files, preview
    from gateway.pipelines.jobs.ledger import ledger_folder, read_plans
    from gateway.pipelines.jobs.places import locate
    from gateway.pipelines.jobs.session import spark_session
    from gateway.pipelines.jobs.sources import find

    if arguments.jdbc is not None:
        return _ingest_jdbc(arguments, config, say)
    for name in ("query", "table", "cursor", "user", "driver", "replace", "other_source"):
        if getattr(arguments, name):
            raise ConfigError(name.replace("_", "-"), "has an effect only with --jdbc")
    *sources, table = arguments.places
    place = locate(config.warehouse, table, config.allow_path)
    options = dict(_option(text) for text in arguments.option)
    if arguments.no_header:
        options["header"] = "false"
    wishes = Wishes(arguments.schema, arguments.evolve, arguments.type_conflicts, options, arguments.forget)
    if not sources:
        raise ConfigError("source", "is missing: gateway job ingest SOURCE TABLE, or --jdbc URL")
    found = find(sources, arguments.format)
    check_place(place, config.warehouse)
    pending = any(plan["done"] is None for plan in read_plans(ledger_folder(config.warehouse, place)))
    if not found.files and not pending and not arguments.forget:
        return Report({}, [*found.notes, f"no files in {', '.join(sources)}: 0 rows loaded into {place.name}"])
    with spark_session(config, say) as spark:
        if arguments.dry_run:
            return preview(spark, found, place, config.warehouse, wishes)
        return ingest_files(spark, found, place, config.warehouse, wishes, say)


def _ingest_jdbc(arguments: argparse.Namespace, config: Config, say: Say) -> Report:
    from gateway.pipelines.jobs.ingest import Wishes
    from gateway.pipelines.jobs.jdbc import Database, ingest_jdbc
    from gateway.pipelines.jobs.places import locate
    from gateway.pipelines.jobs.session import spark_session

    if len(arguments.places) != 1:
        raise ConfigError("source", "with --jdbc only the name of the table to load into is given")
    for name in ("format", "schema", "no_header"):
        if getattr(arguments, name):
            raise ConfigError(name.replace("_", "-"), "has no effect with --jdbc")
    if arguments.cursor is not None and not arguments.cursor.strip():
        raise ConfigError("cursor", "is empty")
    if arguments.cursor is not None and arguments.replace:
        raise ConfigError(
            "replace", "loads all rows: leave --cursor out, and give it next time, which goes on from there"
        )
    if arguments.cursor is None and arguments.other_source is not None:
        raise ConfigError("other-source", "has an effect only with --cursor")
    source = Database(
        arguments.jdbc,
        query=arguments.query,
        table=arguments.table,
        user=arguments.user,
        password=os.environ.get("JDBC_PASSWORD"),
        driver=arguments.driver,
        options=dict(_option(text) for text in arguments.option),
    )
    source.check()
    place = locate(config.warehouse, arguments.places[0])
    wishes = Wishes(
        evolve=arguments.evolve,
        conflicts=arguments.type_conflicts,
        forget=arguments.forget,
        other_source=arguments.other_source,
    )
    with spark_session(config, say, jars=[Path(jar) for jar in arguments.jar]) as spark:
        return ingest_jdbc(
            spark,
            source,
            arguments.cursor,
            place,
            config.warehouse,
            wishes,
            say,
            replace=arguments.replace,
            dry_run=arguments.dry_run,
        )


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError("option", f"'{text}' is not KEY=VALUE")
    return key, value


def _maintain(arguments: argparse.Namespace, config: Config, say: Say) -> Report:
    from gateway.pipelines.jobs.maintain import Task, check, maintain
    from gateway.pipelines.jobs.places import locate
    from gateway.pipelines.jobs.session import spark_session

    names = ("where", "liquid", "hours", "force", "column", "type")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name, None) is not None}
    by = tuple(part.strip() for part in (getattr(arguments, "by", None) or "").split(",") if part.strip())
    task = Task(arguments.action, by=by, **given)
    _check_warehouse(config)
    places = [locate(config.warehouse, name, config.allow_path) for name in arguments.tables]
    check(task, places, config.spark)
    with spark_session(config, say) as spark:
        return maintain(spark, task, places, config.warehouse, say, dry_run=arguments.dry_run)


_JOBS: dict[str, Callable[[argparse.Namespace, Config, Say], Report]] = {
    "ingest": _ingest,
    "maintain": _maintain,
    "verify": _verify,
    "generate": _generate,
}
