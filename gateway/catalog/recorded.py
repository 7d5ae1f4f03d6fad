"""`system.query.history`: what the history holds, with the columns of Databricks' system table of that name, or with our own.

What nobody measures here is NULL. A scan reads what its columns are made of, and only rows that its filters may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gateway.catalog.information import Relation
from gateway.catalog.system import SystemSchema
from gateway.delta.held import HeldScan
from gateway.delta.predicates import Comparison, OneOf, Predicate
from gateway.errors import ResourceError
from gateway.history.search import MOST_VALUES, Condition, History
from gateway.history.told import error_of, kind_of, status_of
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DataType,
    StructField,
    StructType,
    array,
    map_of,
    struct,
)

SCHEMA = "query"
_MOST_BYTES = 256 << 20  # of rows in memory
_WAREHOUSE = {"type": "WAREHOUSE", "cluster_id": None, "warehouse_id": "gateway"}


def _texts(*names: str) -> StructType:
    return struct(*(StructField(name, STRING) for name in names))


_COMPUTE = _texts("type", "cluster_id", "warehouse_id")
_SOURCE = struct(
    StructField("job_info", _texts("job_id", "job_run_id", "job_task_run_id")),
    *_texts("legacy_dashboard_id", "dashboard_id", "alert_id", "notebook_id", "sql_query_id", "genie_space_id").fields,
)
_PARAMETERS = struct(
    StructField("named_parameters", map_of(STRING, STRING)),
    StructField("pos_parameters", array(STRING)),
    StructField("is_truncated", BOOLEAN),
)


def _same(value: Any) -> Any:
    return value


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


def _microseconds(milliseconds: int) -> int:
    return milliseconds * 1000


def _pruned(kept: int | None, total: int | None) -> int | None:
    return None if kept is None or total is None else total - kept


def _driver(client: str) -> str | None:
    """The product that a User-Agent begins with."""
    return client.split(maxsplit=1)[0].partition("(")[0] if client.strip() else None


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the relation: its type, the columns of the file that it is made of, and how; without them NULL."""

    type: DataType
    sources: tuple[str, ...] = ()
    made: Callable[..., Any] = _same


_COLUMNS: Mapping[str, _Column] = {
    "account_id": _Column(STRING),
    "workspace_id": _Column(STRING),
    "statement_id": _Column(STRING, ("statement_id",)),
    "session_id": _Column(STRING, ("session_id",)),
    "execution_status": _Column(STRING, ("state",), status_of),
    "compute": _Column(_COMPUTE, ("state",), lambda state: _WAREHOUSE),
    "executed_by_user_id": _Column(STRING, ("user",)),
    "executed_by": _Column(STRING, ("user",)),
    "statement_text": _Column(STRING, ("text",)),
    "statement_type": _Column(STRING, ("statement_type",), kind_of),
    "error_message": _Column(STRING, ("condition", "sqlstate", "message"), error_of),
    "client_application": _Column(STRING, ("client",), lambda client: client or None),
    "client_driver": _Column(STRING, ("client",), _driver),
    "cache_origin_statement_id": _Column(STRING),
    "total_duration_ms": _Column(BIGINT, ("total_ms",), _whole),
    "waiting_for_compute_duration_ms": _Column(BIGINT),
    "waiting_at_capacity_duration_ms": _Column(BIGINT, ("queue_ms",), _whole),
    "execution_duration_ms": _Column(BIGINT, ("execute_ms",), _whole),
    "compilation_duration_ms": _Column(BIGINT, ("compile_ms",), _whole),
    "total_task_duration_ms": _Column(BIGINT),
    "result_fetch_duration_ms": _Column(BIGINT),
    "start_time": _Column(TIMESTAMP, ("started_ms",), _microseconds),
    "end_time": _Column(TIMESTAMP, ("ended_ms",), _microseconds),
    "update_time": _Column(TIMESTAMP, ("ended_ms",), _microseconds),
    "read_partitions": _Column(BIGINT),
    "pruned_files": _Column(BIGINT, ("files_kept", "files_total"), _pruned),
    "read_files": _Column(BIGINT, ("files_kept",)),
    "read_rows": _Column(BIGINT),
    "produced_rows": _Column(BIGINT, ("rows",)),
    "read_bytes": _Column(BIGINT, ("read_bytes",)),
    "read_io_cache_percent": _Column(INT),
    "from_result_cache": _Column(BOOLEAN, ("cached",), bool),
    "spilled_local_bytes": _Column(BIGINT, ("spilled_bytes",)),
    "written_bytes": _Column(BIGINT),
    "written_rows": _Column(BIGINT, ("written_rows",)),
    "written_files": _Column(BIGINT),
    "shuffle_read_bytes": _Column(BIGINT),
    "query_source": _Column(_SOURCE),
    "executed_as_user_id": _Column(STRING, ("user",)),
    "executed_as": _Column(STRING, ("user",)),
    "query_parameters": _Column(_PARAMETERS),
    "query_tags": _Column(map_of(STRING, STRING)),
}
# What the file says beside that, in our own words.
_OWN: Mapping[str, _Column] = {
    **{name: _COLUMNS[name] for name in ("statement_id", "session_id")},
    "user": _Column(STRING, ("user",)),
    **{name: _COLUMNS[name] for name in ("client_application", "statement_text")},
    **{
        name: _Column(STRING, (name,))
        for name in ("statement_type", "engine", "reason", "state", "condition", "sqlstate")
    },
    **{name: _COLUMNS[name] for name in ("start_time", "end_time")},
    **{name: _Column(DOUBLE, (name,)) for name in ("total_ms", "queue_ms", "parse_ms", "compile_ms", "execute_ms")},
    **{name: _COLUMNS[name] for name in ("produced_rows", "written_rows", "read_bytes", "read_files", "pruned_files")},
    **{name: _Column(BIGINT, (name,)) for name in ("spilled_bytes", "result_bytes")},
    "from_result_cache": _COLUMNS["from_result_cache"],
}
_RELATIONS = {"history": _COLUMNS, "statements": _OWN}
_SCHEMAS = {
    relation: struct(*(StructField(name, column.type) for name, column in columns.items()))
    for relation, columns in _RELATIONS.items()
}
# Columns whose filters are followed: those of the file that say the same.
_TEXTS = {name: "user" for name in ("user", "executed_by", "executed_by_user_id", "executed_as", "executed_as_user_id")}
_TEXTS |= {"statement_id": "statement_id", "session_id": "session_id"}
_TIMES = {"start_time": "started_ms", "end_time": "ended_ms", "update_time": "ended_ms"}
_EDGES: Mapping[str, tuple[str, ...]] = {"<": ("<=",), "<=": ("<=",), ">": (">=",), ">=": (">=",), "=": ("<=", ">=")}


def conditions_of(predicates: Sequence[Predicate]) -> Iterator[Condition]:
    """What a query's filters say of the file's rows: as much, or less."""
    for predicate in predicates:
        match predicate:
            case Comparison(column, "=", value) if column in _TEXTS:
                yield Condition(_TEXTS[column], "=", value.as_py())
            case OneOf(column, values) if column in _TEXTS and len(values) <= MOST_VALUES:
                yield Condition(_TEXTS[column], "IN", tuple(value.as_py() for value in values))
            case Comparison(column, op, value) if column in _TIMES and op in _EDGES:
                milliseconds = value.cast(pa.int64()).as_py() // 1000  # rounds down, as the file's times do
                for edge in _EDGES[op]:
                    yield Condition(_TIMES[column], edge, milliseconds)
            case _:
                continue


@dataclass(frozen=True, slots=True)
class Seen:
    """A history as one user sees it."""

    history: History
    user: str


@dataclass(frozen=True, slots=True)
class RecordedRelation(Relation):
    """The relation of one user's statements, or of all: the history's file is read by each scan."""

    seen: Seen | None = None

    @property
    def schema(self) -> StructType:
        return _SCHEMAS[self.name.table]

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> HeldScan:
        """The rows as of now. Raises ResourceError for more than memory should hold."""
        known = _RELATIONS[self.name.table]
        wanted = {name: known[name] for name in columns or ["statement_id"]}
        batches = [] if self.seen is None else list(_bounded(_batches(self.seen, wanted, predicates)))
        schema = pa.schema([pa.field(name, column.type.arrow()) for name, column in wanted.items()])
        return HeldScan(pa.Table.from_batches(batches, schema), reason="rows of the history")


def _batches(seen: Seen, wanted: Mapping[str, _Column], predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    sources = list(dict.fromkeys(s for column in wanted.values() for s in column.sources)) or ["id"]
    for rows in seen.history.rows(seen.user, sources, list(conditions_of(predicates))):
        values = dict(zip(sources, zip(*rows, strict=True), strict=True))
        arrays = [
            pa.array(
                map(column.made, *(values[s] for s in column.sources)) if column.sources else [None] * len(rows),
                column.type.arrow(),
            )
            for column in wanted.values()
        ]
        yield pa.record_batch(arrays, names=list(wanted))


def _bounded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > _MOST_BYTES:
            raise ResourceError(
                "RESOURCE_EXHAUSTED",
                f"More than {_MOST_BYTES >> 20} MiB of the history are asked for at once: ask for fewer columns, or for "
                "less time by a filter on start_time.",
            )
        yield batch


def recorded(seen: Seen | None) -> SystemSchema:
    """`system.query`."""
    return SystemSchema(SCHEMA, {"history": lambda name: RecordedRelation(name, (), seen=seen)})
