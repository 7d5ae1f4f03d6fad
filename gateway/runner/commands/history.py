"""DESCRIBE HISTORY, DESCRIBE DETAIL and SHOW PARTITIONS: what a table's log says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.information import Relation
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta.creation import clustering_of
from gateway.delta.history import Version, last_modified_ms, text, texts, versions
from gateway.engine.base import Emit, Statement
from gateway.errors import ServerError, UserError, unsupported
from gateway.runner import objects
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands.overwrites import constant
from gateway.runner.commands.views import is_view
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    TIMESTAMP,
    DataType,
    StructField,
    StructType,
    array,
    is_fractional,
    map_of,
    struct,
)

_TEXTS = map_of(STRING, STRING)
_JOB = struct(*(StructField(n, STRING) for n in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")))
_HISTORY: tuple[tuple[str, DataType], ...] = (
    ("version", BIGINT),
    ("timestamp", TIMESTAMP),
    ("userId", STRING),
    ("userName", STRING),
    ("operation", STRING),
    ("operationParameters", _TEXTS),
    ("job", _JOB),
    ("notebook", struct(StructField("notebookId", STRING))),
    ("clusterId", STRING),
    ("readVersion", BIGINT),
    ("isolationLevel", STRING),
    ("isBlindAppend", BOOLEAN),
    ("operationMetrics", _TEXTS),
    ("userMetadata", STRING),
    ("engineInfo", STRING),
)
_DETAIL: tuple[tuple[str, DataType], ...] = (
    ("format", STRING),
    ("id", STRING),
    ("name", STRING),
    ("description", STRING),
    ("location", STRING),
    ("createdAt", TIMESTAMP),
    ("lastModified", TIMESTAMP),
    ("partitionColumns", array(STRING)),
    ("clusteringColumns", array(STRING)),
    ("numFiles", BIGINT),
    ("sizeInBytes", BIGINT),
    ("properties", _TEXTS),
    ("minReaderVersion", INT),
    ("minWriterVersion", INT),
    ("tableFeatures", array(STRING)),
)


def _table(name: c.Name, env: Environment, what: str) -> DeltaBoundTable:
    if is_view(name, env):
        raise unsupported(f"{what} of a temporary view", name.span)
    if len(name.parts) == 2 and name.parts[0].lower() == "delta" and "/" in name.parts[1]:
        found: Any = env.tables.path("delta", name.parts[1], None, name.span)
    else:
        found = env.tables.find(name.parts, None, name.span)
    if isinstance(found, StoredView):
        raise objects.expects_table(what, str(found.name), name.span)
    if isinstance(found, StoredTable):
        raise found.refused().at(name.span)
    if isinstance(found, Relation):
        raise objects.expects_table(what, str(found.name), name.span)
    assert isinstance(found, DeltaBoundTable)
    return found


def _rows(word: str, columns: tuple[tuple[str, DataType], ...], rows: list[tuple[Any, ...]]) -> Answer:
    fields = struct(*(StructField(name, data_type) for name, data_type in columns))
    return rows_of(word, fields, [[row[i] for row in rows] for i in range(len(columns))])


def describe_history(
    command: c.DescribeHistory, job: Statement, env: Environment, runner: Queries, emit: Emit
) -> Answer:
    """DESCRIBE HISTORY."""
    table = _table(command.table, env, "DESCRIBE HISTORY")
    return _rows("DESCRIBE", _HISTORY, [_told(version) for version in versions(table.snapshot, command.limit)])


def _told(version: Version) -> tuple[Any, ...]:
    """One row: what the commit says of itself, under the names of `_HISTORY`."""
    info = version.info
    row: list[Any] = []
    for name, data_type in _HISTORY:
        value = info.get(name)
        if name == "version":
            value = version.number
        elif name == "timestamp":
            value = version.time_ms * 1000
        elif data_type == _TEXTS:
            value = texts(value)
        else:
            value = _as(value, data_type)
        row.append(value)
    return tuple(row)


def _as(value: Any, data_type: DataType) -> Any:
    """A value of a log as one of the type that it should have, None for what is none."""
    if data_type == STRING:
        return text(value)
    if isinstance(data_type, StructType):
        return {f.name: text(value.get(f.name)) for f in data_type.fields} if isinstance(value, dict) else None
    if data_type == BIGINT:
        return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None
    return value if isinstance(value, bool) else None


def describe_detail(command: c.DescribeDetail, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DESCRIBE DETAIL."""
    table = _table(command.table, env, "DESCRIBE DETAIL")
    snapshot = table.snapshot
    if not table.name.schema:
        raise unsupported("DESCRIBE DETAIL of a path", command.table.span)
    modified = last_modified_ms(snapshot)
    name = table.name
    size = sum(snapshot.files.sizes.tolist())
    if size >= 1 << 63:
        told = f"The files of the Delta table {snapshot.root} have {size} bytes by its log, more than there can be."
        raise ServerError("DELTA_LOG_CORRUPT", told)
    row: tuple[Any, ...] = (
        "delta",
        snapshot.table_id,
        f"{name.catalog}.{name.schema}.{name.table}",
        snapshot.comment,
        f"file:{snapshot.root}",
        None if snapshot.created_ms is None else snapshot.created_ms * 1000,
        None if modified is None else modified * 1000,
        list(snapshot.partition_columns),
        [".".join(path) for path in clustering_of(snapshot)],
        len(snapshot.files),
        size,
        sorted(snapshot.properties.items()),
        snapshot.protocol.reader,
        snapshot.protocol.writer,
        snapshot.protocol.features,
    )
    return _rows("DESCRIBE", _DETAIL, [row])


def show_partitions(command: c.ShowPartitions, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW PARTITIONS."""
    table = _table(command.table, env, "SHOW PARTITIONS")
    snapshot = table.snapshot
    if not snapshot.partition_columns:
        text = f"SHOW PARTITIONS is not allowed on a table that is not partitioned: {table.name}"
        raise UserError("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE", text, span=command.table.span)
    columns = [snapshot.by_name[name] for name in snapshot.partition_columns]
    values = pa.table({str(i): snapshot.files.partitions[x.name] for i, x in enumerate(columns)})
    for at, wanted in _asked(command, table, env).items():
        values = values.filter(pc.equal(values.column(at), wanted))
    distinct = values.group_by(values.column_names).aggregate([]).select(values.column_names)
    ordered = distinct.sort_by([(name, "ascending") for name in values.column_names])
    shape = struct(*(StructField(x.name, x.type, x.nullable) for x in columns))
    return Answer("SHOW", shape, ordered.rename_columns([x.name for x in columns]))


def _asked(command: c.ShowPartitions, table: DeltaBoundTable, env: Environment) -> dict[int, pa.Scalar]:
    """The values that PARTITION asks for, by the places of their columns among those of partitions."""
    fields = {f.name.lower(): f for f in table.schema.fields}
    names = [name.lower() for name in table.partition_columns]
    others = [given.column.parts[-1] for given in command.partition if given.column.parts[-1].lower() not in names]
    if others:
        text = f"Non-partitioning column(s) [{', '.join(others)}] are specified for SHOW PARTITIONS"
        raise UserError("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN", text, span=command.table.span)
    found = {}
    for given in command.partition:
        name = given.column.parts[-1].lower()
        value = None if given.value is None else constant(given, fields[name], table, env).value
        if value is None or names.index(name) in found or is_fractional(fields[name].type):
            raise unsupported(f"SHOW PARTITIONS … PARTITION with this value of {given.column}", given.column.span)
        found[names.index(name)] = pa.scalar(value, fields[name].type.arrow())
    return found
