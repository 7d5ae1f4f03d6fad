"""ANALYZE: what tables hold, as their catalog keeps it and DESCRIBE EXTENDED tells it.

Source: Spark's CommandUtils and `ColumnStat`: which types have statistics, how long their values count for, how they are shown.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.objects import StoredStatistics, StoredView
from gateway.delta.recounting import recount
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import GatewayError, ServerError, Span, UnsupportedError, UserError, unsupported
from gateway.instants import known_zone, local_of, stamp_text
from gateway.planner import plan
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer
from gateway.runner.commands.schemas import schema_in
from gateway.runner.commands.targets import (
    back_quoted,
    is_path,
    only_row,
    query_of,
    quoted,
    stop_if_cancelled,
    written_table,
)
from gateway.runner.commands.views import is_view
from gateway.runner.environment import Environment, Queries
from gateway.sql.compile import compile_query
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    DecimalType,
    StructField,
    is_string,
)

#: What DESCRIBE EXTENDED tells of a column, in its order.
TOLD = ("min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len", "histogram")
# Bytes that a value counts for; of texts and binary values where there are none.
_SIZES: dict[DataType, int] = {
    BOOLEAN: 1, TINYINT: 1, SMALLINT: 2, INT: 4, BIGINT: 8, FLOAT: 4, DOUBLE: 8, DATE: 4, TIMESTAMP: 8, TIMESTAMP_NTZ: 8,
}  # fmt: skip
_TEXT_SIZE, _BINARY_SIZE = 20, 100
_MOMENT = "yyyy-MM-dd HH:mm:ss.SSSSSS"


def analyze(command: c.Analyze, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """ANALYZE TABLE. Raises UserError for views, for columns that are not there and for those of other types."""
    name = command.table
    if is_path(name):
        raise unsupported("ANALYZE TABLE of a path", name.span)
    if is_view(name, env):
        text = f"'ANALYZE TABLE' expects a permanent view but `{name}` is a temp view."
        raise UserError("EXPECT_PERMANENT_VIEW_NOT_TEMP", text, span=name.span)
    if isinstance(env.tables.find(name.parts, None, name.span), StoredView):
        text = "The ANALYZE TABLE command does not support views."
        raise UserError("UNSUPPORTED_FEATURE.ANALYZE_VIEW", text, span=name.span)
    table = written_table(name, env, "ANALYZE TABLE", "nothing can be kept of a table")
    if command.partition is not None:
        text = "ANALYZE TABLE … PARTITION is not supported for Delta tables."
        raise UserError("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", text, span=command.partition)
    if command.delta:
        emit(Planned("ANALYZE", "gateway", "a commit to the Delta log", RESULT, writes=True, is_query=False))
        version = recount(table.snapshot, partial(stop_if_cancelled, emit))
        facts = {} if version is None else {"version": version}
        return Answer("ANALYZE", is_query=False, announced=True, facts=facts)
    columns = None if command.columns is None else _columns(command.columns, table, name.span)
    _gather(table, command.scans, columns, env, runner, emit)
    emit(_announced())
    return Answer("ANALYZE", is_query=False, announced=True)


def analyze_tables(command: c.AnalyzeTables, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """ANALYZE TABLES: of the Delta tables of a schema. Raises for those that fail once all the others have their statistics."""
    catalog, schema = schema_in(command.schema, env)
    span = None if command.schema is None else command.schema.span
    objects.check_writable(catalog, "nothing can be kept of its tables", span)
    failed: list[tuple[str, GatewayError]] = []
    for name in catalog.tables(schema):
        try:
            table = catalog.table(schema, name)
            if isinstance(table, DeltaBoundTable):
                _gather(table, command.scans, None, env, runner, emit)
        except (UserError, UnsupportedError, ServerError) as error:
            failed.append((name, error))
    if failed:
        raise _of_some(failed, span)
    emit(_announced())
    return Answer("ANALYZE", is_query=False, announced=True)


def _of_some(failed: Sequence[tuple[str, GatewayError]], span: Span | None) -> GatewayError:
    """What is told of tables that could not be looked at: the error of the first of them, and the names of all."""
    (name, first), *others = failed
    text = f"ANALYZE TABLES has no statistics of the table `{name}`: {first.message}"
    if others:
        text += f" Nor has it of {', '.join(f'`{other}` ({error.condition})' for other, error in others)}."
    text += " Those of all other tables are kept."
    kind = (
        UserError if isinstance(first, UnsupportedError) else type(first)
    )  # the second engine knows nothing of others
    return kind(first.condition, text, sqlstate=first.sqlstate, span=span, retryable=first.retryable)


def statistics_of(table: Any, env: Environment) -> StoredStatistics | None:
    """What was found in this very table; None for what is no Delta table of a catalog."""
    if not isinstance(table, DeltaBoundTable) or not table.name.catalog:
        return None
    found = env.tables.catalog_of(table.name.catalog).statistics(table.name.schema, table.name.table)
    return found if found is not None and found.table_id == table.snapshot.table_id else None


def shown(found: StoredStatistics | None) -> str | None:
    """Spark's row `Statistics` of a table."""
    if found is None or "bytes" not in found.facts:
        return None
    rows = found.facts.get("rows")
    return f"{found.facts['bytes']} bytes" + (f", {rows} rows" if rows is not None else "")


def counts_of(found: StoredStatistics | None, table: str) -> dict[str, int]:
    """Spark's facts of a table in JSON, those that are known."""
    keys = {"size_in_bytes": "bytes", "num_rows": "rows"}
    facts = {} if found is None else found.facts
    try:
        return {key: int(facts[name]) for key, name in keys.items() if name in facts}
    except ValueError as error:
        raise _damaged(f"table {table}") from error


def _damaged(what: str) -> ServerError:
    text = f"What ANALYZE has found of the {what} is damaged. ANALYZE TABLE makes it anew."
    return ServerError("CATALOG_FILE_CORRUPT", text)


def shown_of(found: StoredStatistics | None, column: StructField, zone: str) -> dict[str, str]:
    """What DESCRIBE tells of a column in a session's zone, "NULL" where nothing is known."""
    try:
        known = _read(found.columns[column.name]) if found is not None and column.name in found.columns else {}
        if column.type == TIMESTAMP:
            known |= {key: _zoned(int(known[key]), zone) for key in ("min", "max") if key in known}
    except (ValueError, OverflowError, RecursionError) as error:
        raise _damaged(f"column {column.name}") from error
    return {key: known.get(key, "NULL") for key in TOLD}


def _read(text: str) -> dict[str, str]:
    """Raises ValueError for what was not written here."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError(text)
    return found


def _zoned(micros: int, name: str) -> str:
    """An instant with six digits of a second and the offset, as ``2024-01-01 10:00:00.000000 -0500``."""
    local = local_of(micros, known_zone(name))
    minutes = (local - micros) // 60_000_000
    sign, minutes = ("-" if minutes < 0 else "+"), abs(minutes)
    return (
        f"{stamp_text(local - local % 1_000_000)}.{local % 1_000_000:06d} {sign}{minutes // 60:02d}{minutes % 60:02d}"
    )


def _announced() -> Planned:
    return Planned("ANALYZE", "gateway", "a file of the catalog", RESULT, writes=True, is_query=False)


def _columns(names: Sequence[c.Name], table: DeltaBoundTable, span: Span) -> list[StructField]:
    """The columns that are named, all if none is."""
    by_name = {f.name.lower(): f for f in table.schema.fields}
    found: dict[str, StructField] = {}
    for name in names or [c.Name((f.name,), span) for f in table.schema.fields]:
        key = ".".join(name.parts).lower()
        column = by_name.get(key)
        if column is None:
            text = f"The column `{name}` cannot be found. Verify the spelling and correctness of the column name."
            raise UserError("COLUMN_NOT_FOUND", text, span=name.span)
        if key in found:
            text = f"The column `{name}` already exists. Choose another name or rename the existing column."
            raise UserError("COLUMN_ALREADY_EXISTS", text, span=name.span)
        if _size(column.type) is None:
            text = (
                f'The ANALYZE TABLE FOR COLUMNS command does not support the type "{column.type.sql}" of the column '
                f"`{column.name}` in the table {quoted(table)}."
            )
            raise UserError("UNSUPPORTED_FEATURE.ANALYZE_UNSUPPORTED_COLUMN_TYPE", text, span=name.span)
        found[key] = column
    return list(found.values())


def _gather(
    table: DeltaBoundTable,
    scans: bool,
    columns: list[StructField] | None,
    env: Environment,
    runner: Queries,
    emit: Emit,
) -> None:
    facts, found = {"bytes": str(sum(table.snapshot.files.sizes.tolist()))}, dict[str, str]()
    if scans:
        asked = [part for f in columns or () for part in _asked(f)]
        rows, *values = _row(", ".join(["count(*)", *asked]), table, env, runner, emit)
        facts["rows"] = str(rows)
        for at, f in enumerate(columns or ()):
            found[f.name] = json.dumps(_told(f, rows, values[6 * at : 6 * at + 6]))
    catalog = env.tables.catalog_of(table.name.catalog)
    with catalog.alone():  # others may have told of more columns meanwhile
        old = None
        with contextlib.suppress(ServerError):  # one that is damaged is made anew
            old = statistics_of(table, env)
        if not scans and old is not None and old.facts.get("bytes") == facts["bytes"] and "rows" in old.facts:
            facts["rows"] = old.facts["rows"]
        told = (dict(old.columns) if old is not None else {}) | found
        catalog.put(StoredStatistics(table.name, table.snapshot.table_id, facts, told), True)


def _asked(column: StructField) -> Iterator[str]:
    """Expressions of the six values that are wanted of a column."""
    (name,) = back_quoted((column.name,))
    yield f"count({name})"
    yield f"approx_count_distinct({name})"
    if is_string(column.type) or column.type == BINARY:
        yield from ("NULL", "NULL", f"ceil(avg(length({name})))", f"max(length({name}))")
        return
    for bound in (f"min({name})", f"max({name})"):
        if column.type == TIMESTAMP:
            yield f"CAST(unix_micros({bound}) AS STRING)"
        elif column.type == TIMESTAMP_NTZ:
            yield f"date_format({bound}, '{_MOMENT}')"
        else:
            yield f"CAST({bound} AS STRING)"
    yield from ("NULL", "NULL")


def _told(column: StructField, rows: int, found: Sequence[Any]) -> dict[str, str]:
    values, distinct, low, high, mean, longest = found
    size = _size(column.type)
    told = {
        "min": low,
        "max": high,
        "num_nulls": rows - values,
        "distinct_count": min(distinct, values),
        "avg_col_len": size if mean is None else mean,
        "max_col_len": size if longest is None else longest,
    }
    return {key: str(value) for key, value in told.items() if value is not None}


def _size(data_type: DataType) -> int | None:
    """Bytes that a value counts for; None for a type without statistics."""
    if isinstance(data_type, DecimalType):
        return 8 if data_type.precision <= 18 else 16
    if is_string(data_type):
        return _TEXT_SIZE
    return _BINARY_SIZE if data_type == BINARY else _SIZES.get(data_type)


def _row(items: str, table: DeltaBoundTable, env: Environment, runner: Queries, emit: Emit) -> list[Any]:
    """The one row of a query of the whole table, however large that is: Spark would refuse the statement."""
    bound, _ = runner.bind(query_of(table, f"SELECT {items}"), env)
    return only_row(plan(compile_query(bound, env.context)), runner, emit)
