"""SHOW: names and properties of what there is, and the statement that a view was made by."""

from __future__ import annotations

from collections.abc import Callable

from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.information import SCHEMA
from gateway.catalog.keys import clauses
from gateway.catalog.objects import StoredView
from gateway.engine.base import Emit, Statement
from gateway.errors import GatewayError, UserError, unsupported
from gateway.runner.answer import Answer, rows_of, strings
from gateway.runner.commands import views
from gateway.runner.commands.describe import described_fields, properties_of
from gateway.runner.commands.extended import extended_text, table_statement, temporary_text, view_statement
from gateway.runner.commands.schemas import schema_in
from gateway.runner.environment import Environment, Queries
from gateway.runner.metadata import names_information
from gateway.runner.patterns import hive
from gateway.sql.functions import public_names
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import BOOLEAN, STRING, StructField, quote_if_needed, struct


def show_catalogs(command: c.ShowCatalogs, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW CATALOGS."""
    match = hive(command.pattern)
    names = sorted(k.name for k in env.tables.catalogs.values() if match(k.name))
    return rows_of("SHOW", strings("catalog"), [names])


def show_current(command: c.ShowCurrent, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW CURRENT NAMESPACE."""
    names = [quote_if_needed(env.session.catalog), quote_if_needed(env.session.schema)]
    return rows_of("SHOW", strings("catalog", "namespace"), [[name] for name in names])


def show_schemas(command: c.ShowSchemas, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW SCHEMAS."""
    name = str(command.catalog) if command.catalog is not None else env.session.catalog
    catalog = env.tables.catalog_of(name, command.catalog.span if command.catalog is not None else None)
    match = hive(command.pattern)
    names = [s for s in catalog.schemas() if match(s)] + ([SCHEMA] if names_information(match) else [])
    return rows_of("SHOW", strings("databaseName"), [names])


def show_tables(command: c.ShowTables, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW TABLES: tables and views."""
    catalog, schema = schema_in(command.schema, env)
    match = hive(command.pattern)
    names = sorted(catalog.tables(schema) + catalog.other_tables(schema) + catalog.views(schema))
    rows = [(schema, t, False) for t in names if match(t)]
    return _with_temporary(rows, match, env, "database", "tableName")


def _with_temporary(
    rows: list[tuple[str, str, bool]], match: Callable[[str], bool], env: Environment, schema: str, name: str
) -> Answer:
    """`rows` and the session's views, under the columns `schema`, `name` and isTemporary."""
    rows += [("", v.name, True) for v in env.session.views.values() if match(v.name)]
    fields = struct(
        StructField(schema, STRING, False), StructField(name, STRING, False), StructField("isTemporary", BOOLEAN, False)
    )
    return rows_of("SHOW", fields, [[r[i] for r in rows] for i in range(3)])


def show_extended(
    command: c.ShowTableExtended, job: Statement, env: Environment, runner: Queries, emit: Emit
) -> Answer:
    """SHOW TABLE EXTENDED: tables and views with facts as text. Raises the error of one that is meant alone."""
    catalog, schema = schema_in(command.schema, env)
    match = hive(command.pattern)
    names = [n for n in catalog.tables(schema) + catalog.other_tables(schema) + catalog.views(schema) if match(n)]
    rows = []
    for name in sorted(names):
        try:
            found = catalog.table(schema, name) or catalog.view(schema, name)
        except GatewayError:
            if len(names) == 1:
                raise
            continue  # one of many: asking for it alone tells what is wrong
        if found is not None:
            rows.append((schema, name, False, extended_text(found)))
    rows += [("", v.name, True, temporary_text(v)) for v in env.session.views.values() if match(v.name)]
    fields = struct(
        StructField("database", STRING, False),
        StructField("tableName", STRING, False),
        StructField("isTemporary", BOOLEAN, False),
        StructField("information", STRING, False),
    )
    return rows_of("SHOW", fields, [[r[i] for r in rows] for i in range(4)])


def show_views(command: c.ShowViews, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW VIEWS."""
    catalog, schema = schema_in(command.schema, env)
    match = hive(command.pattern)
    rows = [(schema, v, False) for v in catalog.views(schema) if match(v)]
    return _with_temporary(rows, match, env, "namespace", "viewName")


def show_columns(command: c.ShowColumns, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW COLUMNS."""
    parts = command.table.parts
    if command.schema is not None:
        if len(parts) > 1:
            written, given = parts[:-1], command.schema.parts
            shared = min(len(written), len(given))
            if [p.lower() for p in written[-shared:]] != [p.lower() for p in given[-shared:]]:
                raise UserError(
                    "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE",
                    f"SHOW COLUMNS with conflicting namespaces: `{'`.`'.join(given)}` != `{'`.`'.join(written)}`.",
                    span=command.schema.span,
                )
        parts = (*max(command.schema.parts, parts[:-1], key=len), parts[-1])
    fields, _ = described_fields(parts, command.table, env, runner)
    return rows_of("SHOW", strings("col_name"), [[f.name for f in fields]])


def show_functions(command: c.ShowFunctions, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW FUNCTIONS: lasting ones, and those of the language."""
    catalog, schema = schema_in(command.schema, env)
    match = hive(command.pattern)
    own = (
        []
        if command.scope == "SYSTEM"
        else [f"{catalog.name}.{schema}.{f}" for f in catalog.functions(schema) if match(f)]
    )
    public = [] if command.scope == "USER" else public_names()
    return rows_of("SHOW", strings("function"), [sorted([*own, *(n for n in public if match(n))])])


def show_properties(
    command: c.ShowTblProperties, job: Statement, env: Environment, runner: Queries, emit: Emit
) -> Answer:
    """SHOW TBLPROPERTIES."""
    table = None
    if not views.is_view(command.table, env):
        table = env.tables.find(command.table.parts, None, command.table.span)
    properties = properties_of(table) if table is not None else {}
    if command.key is not None:
        name = command.table if table is None else table.name
        value = properties.get(command.key, f"Table {name} does not have property: {command.key}")
        return rows_of("SHOW", strings("key", "value"), [[command.key], [value]])
    return rows_of("SHOW", strings("key", "value"), [list(properties), list(properties.values())])


def show_create_table(
    command: c.ShowCreateTable, job: Statement, env: Environment, runner: Queries, emit: Emit
) -> Answer:
    """SHOW CREATE TABLE of a Delta table or a lasting view."""
    found = (
        None if views.is_view(command.table, env) else env.tables.find(command.table.parts, None, command.table.span)
    )
    if isinstance(found, StoredView):
        return rows_of("SHOW", strings("createtab_stmt"), [[view_statement(found)]])
    if not isinstance(found, DeltaBoundTable):
        raise unsupported("SHOW CREATE TABLE of anything but a Delta table or a lasting view", command.table.span)
    return rows_of(
        "SHOW",
        strings("createtab_stmt"),
        [[table_statement(found, clauses(env.tables.catalog_of(found.name.catalog), found))]],
    )
