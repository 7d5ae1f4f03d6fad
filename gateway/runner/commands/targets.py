"""What a statement writes to, and the rows that it writes: the same for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from gateway.catalog.base import Catalog
from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.information import Relation
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta.log import has_log
from gateway.delta.write import WriteResult
from gateway.engine.base import Emit, Execution, Planned, Planning
from gateway.errors import CanceledError, Span, UserError, unsupported
from gateway.instants import known_zone, parse_timestamp
from gateway.planner import Plan
from gateway.runner import objects
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands.views import is_view
from gateway.runner.environment import Environment, Queries
from gateway.runner.written import INSERTED
from gateway.sql.bind.travel import moment_of
from gateway.sql.compile import binder_of
from gateway.sql.read import command_nodes as c
from gateway.sql.read.commands import parse_statement
from gateway.sql.read.tree import span_of
from gateway.sqltypes import StructType

_BY_PATH = ("INSERT", "UPDATE", "DELETE", "MERGE")
_TOLD_OF_VIEWS = ("INSERT", "TRUNCATE TABLE", "OPTIMIZE", "VACUUM")  # of the others Delta says what its source may be


def written_table(name: c.Name, env: Environment, word: str, what: str, *, to_add: bool = False) -> DeltaBoundTable:
    """The Delta table that a statement writes to; `word` is its first, `what` could be "no rows can be inserted".

    With `to_add` it only adds rows: the table's files are read if something asks for them.

    Raises UserError EXPECT_TABLE_NOT_VIEW, PERMISSION_DENIED and TABLE_OR_VIEW_NOT_FOUND; UnsupportedError for other formats.
    """
    if is_view(name, env):
        if word != "INSERT":
            raise unsupported(f"{word} through a temporary view", name.span)
        raise objects.expects_table(word, str(name), name.span)
    if is_path(name):
        return _at_path(name, env, word)
    table = env.tables.find(name.parts, None, name.span, to_add=to_add)
    if isinstance(table, StoredView):
        if word not in _TOLD_OF_VIEWS:
            if word == "RESTORE":
                text = "RESTORE is only supported for Delta tables."
                raise UserError("DELTA_ONLY_OPERATION", text, span=name.span)
            text = f"{word} destination only supports Delta sources."
            raise UserError("DELTA_UNSUPPORTED_SOURCE", text, span=name.span)
        raise objects.expects_table(word, str(table.name), name.span)
    if isinstance(table, StoredTable):
        raise table.refused().at(name.span)
    if isinstance(table, Relation):
        raise objects.information_is_read_only(str(table.name), what, name.span)
    objects.check_writable(env.tables.catalog_of(table.name.catalog), what, name.span)
    assert isinstance(table, DeltaBoundTable)
    return table


def is_path(name: c.Name) -> bool:
    """Whether a name is a format and a path."""
    return len(name.parts) == 2 and name.parts[0].lower() in ("delta", "parquet") and "/" in name.parts[1]


def _at_path(name: c.Name, env: Environment, word: str) -> DeltaBoundTable:
    """The Delta table in a folder where external tables may lie. Raises UserError PATH_NOT_ALLOWED for any other folder."""
    kind, path = name.parts
    if kind.lower() != "delta" or word not in _BY_PATH:
        raise unsupported(f"{word} to a path", name.span)
    try:
        _check_place(env.tables.paths.resolve(path), env)
    except UserError as error:
        raise error.at(name.span) from None
    table = env.tables.path("delta", path, None, name.span)
    _check_place(table.location, env)  # it may have become a link
    assert isinstance(table, DeltaBoundTable)
    return table


def _check_place(folder: str, env: Environment) -> None:
    """Raise unless a folder (real) is that of a Delta table, where external tables may lie."""
    for catalog in env.tables.catalogs.values():
        if not catalog.read_only:
            catalog.check_location(folder)
    if not has_log(folder):
        raise UserError("DELTA_TABLE_NOT_FOUND", f"Delta table `{folder}` doesn't exist.")


def new_table(name: c.Name, env: Environment) -> tuple[Catalog, str, str]:
    """Catalog, schema and table of a new table; the schema must exist."""
    parts = name.parts
    if is_path(name):
        raise unsupported("making a table by its path", name.span)
    catalog_name, schema, table = env.tables.qualified(parts)
    catalog, schema = env.tables.schema_of((catalog_name, schema), name.span)
    return catalog, schema, table


def back_quoted(parts: Sequence[str]) -> Iterator[str]:
    """Names as statements spell them."""
    return (f"`{part.replace('`', '``')}`" for part in parts)


def quoted(table: DeltaBoundTable) -> str:
    """The table's whole name, as errors show it."""
    name = table.name
    return ".".join(f"`{part}`" for part in (name.catalog, name.schema, name.table) if part)


def announced_rows(
    word: str, decision: Plan, shape: StructType, runner: Queries, emit: Emit
) -> Iterator[pa.RecordBatch]:
    """The rows of a planned query; what is wrong with the plan is told before the statement is announced as a write."""
    execution = runner.engine.run(decision.query)
    execution.start()
    emit(Planned(word, decision.engine, decision.reason, shape, writes=True, is_query=True))
    return batches_of(execution, emit)


def written_rows(word: str, result: WriteResult, counts: list[int]) -> Answer:
    """The answer of a statement that has written rows; without `counts` its columns alone."""
    return rows_of(
        word,
        INSERTED,
        [counts, counts],
        modified_rows=result.rows,
        announced=True,
        facts={"version": result.version, "files_written": result.files, "bytes_written": result.bytes},
    )


def batches_of(execution: Execution, emit: Emit) -> Iterator[pa.RecordBatch]:
    """The rows of a query that runs; stops when the statement is cancelled."""
    batches = execution.batches()
    try:
        for batch in batches:
            stop_if_cancelled(emit)
            yield batch
    finally:
        batches.close()


def computed(execution: Execution, emit: Emit) -> Iterator[pa.RecordBatch]:
    """The rows of a query that is read to its end before the statement is announced: that time is not one of planning."""
    emit(Planning(False))
    yield from batches_of(execution, emit)
    emit(Planning(True))


def query_of(table: DeltaBoundTable, select: str, where: str = "") -> Any:
    """The tree of a query of a whole table that a command asks for itself."""
    name = ".".join(back_quoted((table.name.catalog, table.name.schema, table.name.table)))
    query = parse_statement(f"{select} FROM {name} {where}")
    assert isinstance(query, c.Query)
    return query.tree


def only_row(decision: Plan, runner: Queries, emit: Emit) -> list[Any]:
    """The values of the one row that a query gives."""
    execution = runner.engine.run(decision.query)
    try:
        execution.start()
        (batch,) = (batch for batch in computed(execution, emit) if batch.num_rows)
        return [column[0].as_py() for column in batch.columns]
    finally:
        execution.close()


def stop_if_cancelled(emit: Emit) -> None:
    """Raise OPERATION_CANCELED if somebody has asked for it."""
    if emit.cancelled:
        raise CanceledError("OPERATION_CANCELED", "The statement was cancelled.")


def wanted_moment(command: c.Restore | c.CreateClone, env: Environment, span: Span) -> int:
    """The microseconds of TIMESTAMP AS OF a text or a constant expression. Raises UserError for what is no moment."""
    if command.moment is not None:
        binder = binder_of(env.context, env.tables, env.session.views, env.parameters)
        return moment_of(command.moment, binder, span_of(command.moment) or span)
    wanted = parse_timestamp(command.timestamp or "", known_zone(env.context.time_zone))
    if wanted is None:
        told = f"The provided timestamp ('{command.timestamp}') cannot be converted to a valid timestamp."
        raise UserError("DELTA_TIMESTAMP_INVALID", told, span=span)
    return wanted
