"""Schemas and tables that a statement makes, fills and drops: plain Delta tables, one atomic commit each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gateway.catalog.base import Catalog, TableName
from gateway.catalog.objects import StoredFunction, StoredTable, StoredView
from gateway.delta import write
from gateway.engine.base import Emit, Execution, Planned, SessionChange, Statement
from gateway.errors import CanceledError, UnsupportedError, UserError, unsupported
from gateway.planner import plan
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer, done, rows_of
from gateway.runner.views import is_view
from gateway.sql import bound as b
from gateway.sql import command_nodes as c
from gateway.sql.coerce import can_store, coerced
from gateway.sql.compile import compile_query, projected, stored
from gateway.sql.resolve import Binder, BoundQuery
from gateway.sqltypes import BIGINT, VOID, StructField, StructType, struct

if TYPE_CHECKING:
    from gateway.runner.handler import Environment, Runner

_INSERTED = struct(StructField("num_affected_rows", BIGINT), StructField("num_inserted_rows", BIGINT))


def _writable(catalog: Catalog, what: str, name: c.Name) -> Catalog:
    if catalog.read_only:
        raise UserError(
            "PERMISSION_DENIED", f"The catalog `{catalog.name}` is read-only: {what}.", sqlstate="42501", span=name.span
        )
    return catalog


def create_schema(command: c.CreateSchema, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """CREATE SCHEMA."""
    parts = command.name.parts
    catalog = env.tables.catalog_of(parts[0] if len(parts) > 1 else env.session.catalog, command.name.span)
    _writable(catalog, "no schema can be created", command.name)
    if catalog.has_schema(parts[-1]):
        if command.if_not_exists:
            return done("CREATE_SCHEMA")
        raise UserError(
            "SCHEMA_ALREADY_EXISTS",
            f"Cannot create schema `{catalog.name}`.`{parts[-1]}` because it already exists.",
            span=command.name.span,
        )
    catalog.create_schema(parts[-1], command.comment)
    return done("CREATE_SCHEMA")


def drop_schema(command: c.DropSchema, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """DROP SCHEMA."""
    parts = command.name.parts
    catalog = env.tables.catalog_of(parts[0] if len(parts) > 1 else env.session.catalog, command.name.span)
    _writable(catalog, "no schema can be dropped", command.name)
    if not catalog.has_schema(parts[-1]):
        if command.if_exists:
            return done("DROP_SCHEMA")
        raise UserError(
            "SCHEMA_NOT_FOUND",
            f"The schema `{catalog.name}`.`{parts[-1]}` cannot be found.",
            span=command.name.span,
        )
    catalog.drop_schema(parts[-1], command.cascade)
    return done("DROP_SCHEMA")


def _target(name: c.Name, env: Environment) -> tuple[Catalog, str, str]:
    """Catalog, schema and table of a new table; the schema must exist."""
    parts = name.parts
    if len(parts) == 2 and parts[0].lower() in ("delta", "parquet") and "/" in parts[1]:
        raise unsupported("writing to a path", name.span)
    catalog_name, schema, table = env.tables.qualified(parts)
    catalog, schema = env.tables.schema_of((catalog_name, schema), name.span)
    return catalog, schema, table


def create_table(command: c.CreateTable, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """CREATE TABLE and CREATE TABLE AS SELECT."""
    catalog, schema, table = _target(command.name, env)
    _writable(catalog, "no table can be created", command.name)
    if command.location is not None:
        raise unsupported("LOCATION", command.name.span)
    place = objects.Place(catalog, schema, table)
    if not objects.may_make_table(place, command.replace, command.if_not_exists, command.name.span):
        return done("CREATE_TABLE")
    path = catalog.table_location(schema, table)
    options: dict[str, Any] = {
        "partition_by": command.partitioned_by,
        "properties": dict(command.properties),
        "replace": command.replace,
    }
    if command.query is None:
        assert command.columns is not None
        write.check_creatable(path, struct(*command.columns), as_select=False, **options)
        emit(Planned("CREATE_TABLE", "gateway", "a commit to the Delta log", RESULT, writes=True, is_query=False))
        write.create_table(path, struct(*command.columns), comment=command.comment, **options)
        return Answer("CREATE_TABLE", is_query=False, announced=True)
    query, binder = runner.bind(command.query.tree, env)
    if command.columns is not None:
        raise unsupported("a column list with CREATE TABLE AS SELECT", command.name.span)
    for f in query.schema.fields:
        if f.type == VOID:
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE", f"A column of type VOID ({f.name}) in a table.", span=command.query.span
            )
    schema_ = struct(*(StructField(f.name, f.type, True) for f in query.schema.fields))
    write.check_creatable(path, schema_, as_select=True, **options)
    decision = plan(compile_query(stored(query, binder, schema_), env.context))
    runner.check_size(decision, env, command.name.span)
    execution = runner.engine.run(decision.query)
    execution.start()
    emit(Planned("CREATE_TABLE_AS_SELECT", decision.engine, decision.reason, _INSERTED, writes=True, is_query=True))
    result = write.create_table(path, schema_, batches=_batches(execution, emit), comment=command.comment, **options)
    # Databricks shows the columns without a row here; connector tests rely on it.
    return rows_of(
        "CREATE_TABLE_AS_SELECT",
        _INSERTED,
        [[], []],
        modified_rows=result.rows,
        announced=True,
        facts={"version": result.version, "files_written": result.files, "bytes_written": result.bytes},
    )


def _batches(execution: Execution, emit: Emit) -> Iterator[pa.RecordBatch]:
    """The rows of a query, for a writer; stops when the statement is cancelled."""
    batches = execution.batches()
    try:
        for batch in batches:
            if emit.cancelled:
                raise CanceledError("OPERATION_CANCELED", "The statement was cancelled.")
            yield batch
    finally:
        batches.close()


def drop_table(command: c.DropTable, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """DROP TABLE."""
    name = command.name
    if is_view(name, env):  # as in Spark, the view goes; a table behind it stays
        return done("DROP_TABLE", SessionChange("drop_view", name.parts[0].lower()))
    catalog_name, schema, table = env.tables.qualified(name.parts)
    catalog = env.tables.catalogs.get(catalog_name.lower())
    if catalog is not None and catalog.view(schema, table) is not None:
        shown = f"{catalog.name}.{schema}.{table}"
        raise objects.wrong_kind("DROP TABLE", "EXTERNAL or MANAGED", shown, "VIEW", "DROP VIEW", name.span)
    tables = catalog.tables(schema) + catalog.other_tables(schema) if catalog is not None else []
    if catalog is None or table.lower() not in {t.lower() for t in tables}:
        if command.if_exists:
            return done("DROP_TABLE")
        raise env.tables.missing(name.parts, name.span)
    _writable(catalog, "no table can be dropped", name)
    emit(Planned("DROP_TABLE", "gateway", "removes the table's folder", RESULT, writes=True, is_query=False))
    catalog.drop_table(schema, table)
    return Answer("DROP_TABLE", is_query=False, announced=True)


def drop_function(command: c.DropFunction, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """DROP FUNCTION: a lasting one."""
    name = command.name
    catalog_name, schema, function = env.tables.qualified(name.parts)
    catalog = env.tables.catalogs.get(catalog_name.lower())
    if catalog is None or catalog.function(schema, function) is None:
        if command.if_exists:
            return done("DROP_FUNCTION")
        raise UserError(
            "ROUTINE_NOT_FOUND",
            f"The routine `{catalog_name}`.`{schema}`.`{function}` cannot be found. Verify the spelling and correctness of "
            "the schema and catalog. To tolerate the error on drop use DROP ... IF EXISTS.",
            span=name.span,
        )
    objects.place_of(env.tables, name.parts, "no function can be dropped", name.span)
    emit(Planned("DROP_FUNCTION", "gateway", "removes the function's file", RESULT, writes=True, is_query=False))
    catalog.drop(StoredFunction, schema, function)
    return Answer("DROP_FUNCTION", is_query=False, announced=True)


def insert(command: c.Insert, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """INSERT INTO … VALUES / SELECT, with ANSI store assignment."""
    if is_view(command.table, env):
        raise objects.expects_table("INSERT", str(command.table), command.table.span)
    table = env.tables.find(command.table.parts, None, command.table.span)
    if isinstance(table, StoredView):
        raise objects.expects_table("INSERT", str(table.name), command.table.span)
    if isinstance(table, StoredTable):
        raise table.refused().at(command.table.span)
    catalog = env.tables.catalog_of(table.name.catalog)
    _writable(catalog, "no rows can be inserted", command.table)
    try:
        query, binder = runner.bind(command.query.tree, env)
    except UserError as error:
        if error.condition.startswith("UNRESOLVED_COLUMN") and "name `default` cannot" in error.message.lower():
            raise unsupported("DEFAULT as a value", error.span) from None
        raise
    aligned, casts = _aligned(command, table.schema, query, binder, _quoted(table.name))
    try:
        decision = plan(compile_query(aligned, env.context))
        runner.check_size(decision, env, command.table.span)
        write.check_appendable(table.location)
        execution = runner.engine.run(decision.query)
        execution.start()
        emit(Planned("INSERT", decision.engine, decision.reason, _INSERTED, writes=True, is_query=True))
        result = write.append(table.location, _batches(execution, emit))
    except UserError as error:
        raise _of_assignment(error, casts) from None
    return rows_of(
        "INSERT",
        _INSERTED,
        [[result.rows], [result.rows]],
        modified_rows=result.rows,
        announced=True,
        facts={"version": result.version, "files_written": result.files, "bytes_written": result.bytes},
    )


def _quoted(name: TableName) -> str:
    return f"`{name.catalog}`.`{name.schema}`.`{name.table}`"


# Columns by the types (source, target) that an INSERT casts to fill them.
Casts = dict[tuple[str, str], list[str]]


def _of_assignment(error: UserError, casts: Casts) -> UserError:
    """An overflow in a cast to a column's type as Spark calls it; every other error as it is.

    Told by the types in the message: a cast of the same types that the user wrote cannot be told apart, and is as right.
    """
    if error.condition != "CAST_OVERFLOW":
        return error
    for (source, target), columns in casts.items():
        if f'of the type "{source}" cannot be cast to "{target}" due' in error.message:
            names = " or ".join(f"`{name}`" for name in columns)
            return UserError(
                "CAST_OVERFLOW_IN_TABLE_INSERT",
                f'Fail to assign a value of "{source}" type to the "{target}" type column or variable {names} due to an '
                "overflow. Use `try_cast` on the input value to tolerate overflow and return NULL instead.",
                sqlstate="22003",
                span=error.span,
            )
    return error


def _aligned(
    command: c.Insert, schema: StructType, query: BoundQuery, binder: Binder, table: str
) -> tuple[BoundQuery, Casts]:
    """The query's columns as the table's: by position, by the given list, or by name; missing ones NULL."""
    fields = schema.fields
    given = list(query.rel.columns)
    if command.by_name:
        names = [column.name for column in given]
    elif command.columns is not None:
        names = [n.parts[-1] for n in command.columns]
    else:
        names = [f.name for f in fields]
    if len(names) != len(given):
        kind = "TOO_MANY_DATA_COLUMNS" if len(given) > len(names) else "NOT_ENOUGH_DATA_COLUMNS"
        raise UserError(
            f"INSERT_COLUMN_ARITY_MISMATCH.{kind}",
            f"Cannot write to {table}, the reason is {'too many' if len(given) > len(names) else 'not enough'} data "
            f"columns: table columns: {', '.join(f'`{n}`' for n in names)}; data columns: "
            f"{', '.join(f'`{g.name}`' for g in given)}.",
            span=command.table.span,
        )
    by_name: dict[str, b.Expr] = {}
    casts: Casts = {}
    known = {f.name.lower() for f in fields}
    for name, column in zip(names, given, strict=True):
        if name.lower() not in known and command.by_name:
            raise UserError(
                "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS",
                f"Cannot write incompatible data for the table {table}: Cannot write extra columns `{name}`.",
                span=command.table.span,
            )
        if name.lower() not in known:
            raise UserError(
                "UNRESOLVED_COLUMN.WITH_SUGGESTION",
                f"A column with name `{name}` cannot be resolved. Did you mean one of the following? "
                f"[{', '.join(f'`{f.name}`' for f in fields[:5])}].",
                span=command.table.span,
            )
        if name.lower() in by_name and command.by_name:
            raise UserError(
                "INCOMPATIBLE_DATA_FOR_TABLE.AMBIGUOUS_COLUMN_NAME",
                f"Cannot write incompatible data for the table {table}: Ambiguous column name in the input data `{name}`.",
                span=command.table.span,
            )
        if name.lower() in by_name:
            raise UserError(
                "COLUMN_ALREADY_EXISTS", f"The column `{name}` is given more than once.", span=command.table.span
            )
        by_name[name.lower()] = column
    exprs: list[b.Expr] = []
    for f in fields:
        found = by_name.get(f.name.lower())
        if found is None:
            exprs.append(b.null(f.type))
            continue
        if not can_store(found.type, f.type):
            raise UserError(
                "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
                f"Cannot write incompatible data for the table {table}: Cannot safely cast `{f.name}` "
                f'"{found.type.sql}" to "{f.type.sql}".',
                span=command.query.span,
            )
        if found.type != f.type:
            casts.setdefault((found.type.sql, f.type.sql), []).append(f.name)
        exprs.append(coerced(found, f.type))
    return projected(query, binder, exprs, schema), casts
