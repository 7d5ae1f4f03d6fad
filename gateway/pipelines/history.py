"""What runs have done, as Delta tables of the warehouse: any client reads `main.pipelines.runs`, `.tables`, `.graph`,
`.expectations`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from gateway import sqltypes as t
from gateway.delta import log, write
from gateway.delta.dataset import DataFile, read_file
from gateway.delta.table import open_snapshot
from gateway.errors import ServerError, UserError
from gateway.pipelines.expectations import Outcome
from gateway.pipelines.warehouse import Warehouse

SCHEMA = "pipelines"
COMPLETED, FAILED, CANCELED, CRASHED = "COMPLETED", "FAILED", "CANCELED", "CRASHED"
UNMET = "EXPECTATION_FAILED"
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass
class TableRun:
    """What a run did to a table. `rows_in` is what its streams read, `rows_out` what was written; None where unknown."""

    table: str
    kind: str
    state: str = "QUEUED"
    started: datetime | None = None
    ended: datetime | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    version_before: int | None = None
    version_after: int | None = None
    error: str | None = None
    outcomes: list[Outcome] = field(default_factory=list)


@dataclass
class Run:
    """A run, finished if `ended`."""

    run_id: str
    pipeline: str
    started: datetime
    ended: datetime | None = None
    state: str = "RUNNING"
    message: str | None = None
    full_refresh: Sequence[str] = ()
    tables: list[TableRun] = field(default_factory=list)
    graph: Sequence[tuple[str, str, list[str]]] = ()  # name, kind and what it reads of each table and view


def _fields(*fields: tuple[str, t.DataType, str]) -> t.StructType:
    return t.struct(*(t.StructField(name, type_, comment=comment) for name, type_, comment in fields))


_KEY = (("run_id", t.STRING, "identifies the run"), ("pipeline", t.STRING, "name in the spec"))
_TABLE = ("table_name", t.STRING, "schema and name below main")
TABLES = {
    "runs": _fields(
        *_KEY,
        ("started", t.TIMESTAMP, "when the run began"),
        ("ended", t.TIMESTAMP, "when it ended; NULL if it crashed"),
        ("state", t.STRING, "COMPLETED, EXPECTATION_FAILED, FAILED, CANCELED or CRASHED"),
        ("message", t.STRING, "what went wrong"),
        ("full_refresh", t.array(t.STRING), "tables that were computed anew; * for all"),
    ),
    "tables": _fields(
        *_KEY,
        _TABLE,
        ("kind", t.STRING, "streaming table or materialized view"),
        ("state", t.STRING, "COMPLETED, FAILED, SKIPPED, or the last state that was seen"),
        ("started", t.TIMESTAMP, "when its first flow began"),
        ("ended", t.TIMESTAMP, "when its last flow ended"),
        ("rows_in", t.BIGINT, "rows that its streams have read; NULL for views and unknown"),
        ("rows_out", t.BIGINT, "rows that were written"),
        ("version_before", t.BIGINT, "version of the Delta table before the run; NULL if there was none"),
        ("version_after", t.BIGINT, "version after the run"),
        ("error", t.STRING, "what went wrong"),
    ),
    "graph": _fields(
        *_KEY,
        ("name", t.STRING, "schema and name below main, or the name of a view of the run"),
        ("kind", t.STRING, "streaming table, materialized view, temporary view, view or sink"),
        ("reads", t.array(t.STRING), "what it reads, by the same names; others are from elsewhere"),
    ),
    "expectations": _fields(
        *_KEY,
        _TABLE,
        ("name", t.STRING, "name of the expectation"),
        ("predicate", t.STRING, "what rows should fulfil"),
        ("action", t.STRING, "warn, fail or count"),
        ("failing_rows", t.BIGINT, "rows of the new version that do not"),
        ("checked_rows", t.BIGINT, "rows of the new version"),
        ("failing_rows_added", t.BIGINT, "of those that the run added; NULL for views and where it replaced rows"),
        ("error", t.STRING, "why nothing could be counted"),
    ),
}


def new_run_id() -> str:
    """Unique, and sorted by time."""
    return f"{now():%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


class History:
    """The tables of past runs in the warehouse."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    def add(self, run: Run) -> None:
        """Append a run, with its tables and expectations before it: a run that is seen is complete."""
        key = (run.run_id, run.pipeline)
        outcomes = ((table, o) for table in run.tables for o in table.outcomes)
        self._append("expectations", [(*key, *_outcome(table, o)) for table, o in outcomes])
        self._append("tables", [(*key, *_table(table)) for table in run.tables])
        self._append("graph", [(*key, *node) for node in run.graph])
        refreshed = list(run.full_refresh)
        self._append("runs", [(*key, run.started, run.ended, run.state, run.message, refreshed)])

    def runs(self, pipeline: str, limit: int) -> list[dict[str, Any]]:
        """The last runs of a pipeline, newest first."""
        rows = [row for row in self._rows("runs") if row["pipeline"] == pipeline]
        return sorted(rows, key=lambda row: (row["started"] or _NEVER, row["run_id"] or ""), reverse=True)[:limit]

    def of_run(self, name: str, run_id: str) -> list[dict[str, Any]]:
        """The rows of `tables` or `expectations` of a run, in the order in which they were added."""
        return [row for row in self._rows(name) if row["run_id"] == run_id]

    def _append(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        path = str(self._warehouse.folder(SCHEMA, name))
        schema = TABLES[name]
        columns = zip(*rows, strict=True) if rows else iter([()] * len(schema.fields))
        arrays = [pa.array(list(next(columns)), f.type.arrow()) for f in schema.fields]
        batch = pa.RecordBatch.from_arrays(arrays, names=[f.name for f in schema.fields])
        if not log.has_log(path):
            try:
                write.create_table(path, schema, comment=f"{name} of data pipelines")
            except UserError as error:
                if error.condition != "TABLE_OR_VIEW_ALREADY_EXISTS":  # another pipeline's first run was faster
                    raise
        if rows:
            write.append(path, [batch])

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        path = str(self._warehouse.folder(SCHEMA, name))
        if not log.has_log(path):
            return
        snapshot = open_snapshot(path)
        found = {c.name: c.type for c in snapshot.columns}
        if any(found.get(f.name) != f.type for f in TABLES[name].fields):
            text = f"The table {path} holds no {name} of pipelines: its columns are others."
            raise ServerError("CATALOG_FILE_CORRUPT", text)
        schema = pa.schema([pa.field(c.name, c.type.arrow()) for c in snapshot.columns])
        for file, size in zip(snapshot.files.paths, snapshot.files.sizes, strict=True):
            for batch in read_file(DataFile(file, int(size), {}), snapshot.columns, schema, snapshot.within):
                yield from batch.to_pylist()


def _table(table: TableRun) -> tuple[Any, ...]:
    times = (table.started, table.ended)
    rows = (table.rows_in, table.rows_out, table.version_before, table.version_after)
    return (table.table, table.kind, table.state, *times, *rows, table.error)


def _outcome(table: TableRun, outcome: Outcome) -> tuple[Any, ...]:
    what = outcome.expectation
    counts = (outcome.failing, outcome.checked, outcome.failing_added)
    return (table.table, what.name, what.predicate, what.action, *counts, outcome.error)
