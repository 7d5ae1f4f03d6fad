"""Everything that is not a query: session commands, SHOW and DESCRIBE, EXPLAIN; the table of all commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gateway.catalog.objects import StoredTable, StoredView
from gateway.config.session import (
    SESSION_SETTINGS,
    find_setting,
    is_tuning,
    normalise_setting,
)
from gateway.engine.base import Emit, HandedOverError, SessionChange, Statement
from gateway.errors import UnsupportedError, UserError, unsupported
from gateway.planner import described
from gateway.runner import views, writes
from gateway.runner.answer import Answer, done, rows_of, strings
from gateway.runner.patterns import hive
from gateway.sql.bind import literals
from gateway.sql.functions import public_names
from gateway.sql.read import command_nodes as c
from gateway.sql.spark.literals import quoted_text
from gateway.sqltypes import BOOLEAN, STRING, IntervalType, StructField, quote_if_needed, struct

if TYPE_CHECKING:
    from gateway.runner.handler import Environment, Runner


_ZONE_KEY = "spark.sql.session.timeZone"
_LARGEST_OFFSET = 18 * 3600


def run(command: Any, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """Run a command; raises GatewayError."""
    rule = _RULES.get(type(command))
    if rule is None:
        raise unsupported(type(command).__name__)
    return rule(command, job, env, runner, emit)


# -------------------------------------------------------------------------------------------------------------- session


def _use_catalog(command: c.UseCatalog, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    catalog = env.tables.catalog_of(command.name)
    return done("USE", SessionChange("use", catalog.name, "default"))


def _use_schema(command: c.UseSchema, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    parts = command.name.parts
    if len(parts) > 2:
        raise UserError("SCHEMA_NOT_FOUND", f"The schema `{command.name}` cannot be found.", span=command.name.span)
    if command.bare and len(parts) == 1 and not env.tables.catalog_of(env.session.catalog).has_schema(parts[0]):
        known = env.tables.catalogs.get(parts[0].lower())
        if known is not None:
            return done("USE", SessionChange("use", known.name, "default"))
    catalog, schema = env.tables.schema_of(parts, command.name.span)
    return done("USE", SessionChange("use", catalog.name, schema))


def _set(command: c.SetConf, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    pairs = strings("key", "value")
    if command.key is None:
        shown = {s.key: env.setting(s.key) for s in SESSION_SETTINGS} | dict(env.session.settings)
        if command.verbose:
            documented = [(s.key, env.setting(s.key), s.help) for s in SESSION_SETTINGS]
            return rows_of("SET", strings("key", "value", "meaning"), list(zip(*documented, strict=True)))
        return rows_of("SET", pairs, [list(shown), list(shown.values())])
    if command.value is None:
        key = _stored_key(command.key, env)
        value = env.setting(key) if find_setting(key) is not None else env.session.settings.get(key)
        return rows_of("SET", pairs, [[command.key], [value if value is not None else "<undefined>"]])
    value = _unquoted(command.value)
    known = normalise_setting(command.key, value, runner.has_spark)
    if known is None and not is_tuning(command.key):
        raise UnsupportedError("CONFIG_NOT_AVAILABLE", f"Configuration {command.key} is not available.")
    assert known is not None
    key, text = known
    changes = (SessionChange("reset", _stored_key(key, env)), SessionChange("set", key, text))
    return rows_of("SET", pairs, [[command.key], [value]], changes=changes)


def _stored_key(key: str, env: Environment) -> str:
    """The key under which the session has a setting, however it is spelt here."""
    setting = find_setting(key)
    if setting is not None:
        return setting.key
    return next((known for known in env.session.settings if known.lower() == key.lower()), key.lower())


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def _set_zone(command: c.SetTimeZone, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    if command.interval is not None:
        literal = (
            literals.interval_text(command.interval.this, None)
            if "parts" not in command.interval.args
            else literals.interval_parts(command.interval.args["parts"], command.interval.args.get("to"), None)
        )
        months = not isinstance(literal.type, IntervalType) or literal.type.is_year_month
        seconds, rest = (0, 1) if months else divmod(abs(literal.value), 1_000_000)
        if rest or seconds > _LARGEST_OFFSET:
            raise UserError(
                "INVALID_INTERVAL_FORMAT.TIMEZONE_INTERVAL_OUT_OF_RANGE",
                "The interval value must be in the range of [-18, +18] hours with second precision.",
            )
        zone = f"{'-' if literal.value < 0 else '+'}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
        zone += f":{seconds % 60:02d}" if seconds % 60 else ""
    else:
        zone = command.zone if command.zone is not None else "UTC"
    known = normalise_setting(_ZONE_KEY, zone)
    assert known is not None
    return rows_of(
        "SET",
        strings("key", "value"),
        [[_ZONE_KEY], [zone]],
        changes=(SessionChange("set", *known),),
    )


def _reset(command: c.Reset, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    if command.key is None:
        return done("RESET", SessionChange("reset"))
    return done("RESET", SessionChange("reset", _stored_key(command.key, env)))


# ----------------------------------------------------------------------------------------------------------------- show


def _show_catalogs(command: c.ShowCatalogs, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    match = hive(command.pattern)
    names = sorted(k.name for k in env.tables.catalogs.values() if match(k.name))
    return rows_of("SHOW", strings("catalog"), [names])


def _show_schemas(command: c.ShowSchemas, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    name = str(command.catalog) if command.catalog is not None else env.session.catalog
    catalog = env.tables.catalog_of(name, command.catalog.span if command.catalog is not None else None)
    match = hive(command.pattern)
    return rows_of("SHOW", strings("databaseName"), [[s for s in catalog.schemas() if match(s)]])


def _schema_in(name: c.Name | None, env: Environment) -> tuple[Any, str]:
    if name is None:
        return env.tables.schema_of((env.session.catalog, env.session.schema))
    if len(name.parts) > 2:
        raise UserError("SCHEMA_NOT_FOUND", f"The schema `{name}` cannot be found.", span=name.span)
    return env.tables.schema_of(name.parts, name.span)


def _show_tables(command: c.ShowTables, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    catalog, schema = _schema_in(command.schema, env)
    match = hive(command.pattern)
    names = sorted(catalog.tables(schema) + catalog.other_tables(schema) + catalog.views(schema))
    rows = [(schema, t, False) for t in names if match(t)]
    rows += [("", v.name, True) for v in env.session.views.values() if match(v.name)]
    fields = struct(
        StructField("database", STRING, False),
        StructField("tableName", STRING, False),
        StructField("isTemporary", BOOLEAN, False),
    )
    return rows_of("SHOW", fields, [[r[i] for r in rows] for i in range(3)])


def _show_views(command: c.ShowViews, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    catalog, schema = _schema_in(command.schema, env)
    match = hive(command.pattern)
    rows = [(schema, v, False) for v in catalog.views(schema) if match(v)]
    rows += [("", v.name, True) for v in env.session.views.values() if match(v.name)]
    fields = struct(
        StructField("namespace", STRING, False),
        StructField("viewName", STRING, False),
        StructField("isTemporary", BOOLEAN, False),
    )
    return rows_of("SHOW", fields, [[r[i] for r in rows] for i in range(3)])


def _show_columns(command: c.ShowColumns, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    parts = command.table.parts
    if command.schema is not None:
        if len(parts) > 1:
            written, given = parts[:-1], command.schema.parts
            shared = min(len(written), len(given))
            if [p.lower() for p in written[-shared:]] != [p.lower() for p in given[-shared:]]:
                raise UserError(
                    "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE",
                    f"SHOW COLUMNS with conflicting namespaces: `{'`.`'.join(given)}` != `{'`.`'.join(written)}`.",
                    sqlstate="42K05",
                    span=command.schema.span,
                )
        parts = (*max(command.schema.parts, parts[:-1], key=len), parts[-1])
    fields, _ = _described(parts, command.table, env, runner)
    return rows_of("SHOW", strings("col_name"), [[f.name for f in fields]])


def _show_functions(command: c.ShowFunctions, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    catalog, schema = _schema_in(command.schema, env)
    match = hive(command.pattern)
    own = (
        []
        if command.scope == "SYSTEM"
        else [f"{catalog.name}.{schema}.{f}" for f in catalog.functions(schema) if match(f)]
    )
    public = [] if command.scope == "USER" else public_names()
    return rows_of("SHOW", strings("function"), [sorted([*own, *(n for n in public if match(n))])])


def _show_properties(
    command: c.ShowTblProperties, job: Statement, env: Environment, runner: Runner, emit: Emit
) -> Answer:
    table = None
    if not views.is_view(command.table, env):
        table = env.tables.find(command.table.parts, None, command.table.span)
    properties = dict(sorted(table.properties.items())) if table is not None else {}
    if command.key is not None:
        name = command.table if table is None else table.name
        value = properties.get(command.key, f"Table {name} does not have property: {command.key}")
        return rows_of("SHOW", strings("key", "value"), [[command.key], [value]])
    return rows_of("SHOW", strings("key", "value"), [list(properties), list(properties.values())])


# ------------------------------------------------------------------------------------------------------------- describe


def _described(
    parts: tuple[str, ...], name: c.Name, env: Environment, runner: Runner
) -> tuple[tuple[StructField, ...], Any]:
    """Columns of a table or view; the second is the table or the lasting view, None for a temporary one."""
    view = env.session.views.get(parts[0].lower()) if len(parts) == 1 else None
    if view is not None:
        if view.collation:
            raise unsupported("DESCRIBE of a table or view with collations", name.span)
        return views.columns(view, env, runner), None
    if len(parts) == 2 and parts[0].lower() in ("delta", "parquet") and "/" in parts[1]:
        table = env.tables.path(parts[0].lower(), parts[1], None, name.span)
    else:
        return (found := env.tables.find(parts, None, name.span)).schema.fields, found
    return table.schema.fields, table


_STATISTICS = ("min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len", "histogram")
_DESCRIBED = struct(
    StructField("col_name", STRING, False), StructField("data_type", STRING, False), StructField("comment", STRING)
)


def _describe(command: c.DescribeTable, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    fields, table = _described(command.table.parts, command.table, env, runner)
    if isinstance(table, (StoredView, StoredTable)) and table.collated:
        raise unsupported("DESCRIBE of a table or view with collations", command.table.span)
    if command.column is not None:
        return _describe_column(command, fields, table)
    rows: list[tuple[str, str, str | None]] = [(f.name, f.type.simple, f.comment) for f in fields]
    if isinstance(table, StoredView):
        rows += _view_details(table) if command.extended else []
        return rows_of("DESCRIBE", _DESCRIBED, [[r[i] for r in rows] for i in range(3)])
    if table is not None and table.partition_columns:
        by_name = {f.name: f for f in fields}
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [(n, by_name[n].type.simple, by_name[n].comment) for n in table.partition_columns]
    if command.extended and table is not None:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [
            ("Catalog", table.name.catalog, ""),
            ("Database", table.name.schema, ""),
            ("Table", table.name.table, ""),
            ("Type", "MANAGED" if table.name.catalog else "EXTERNAL", ""),
        ]
        if table.comment:
            rows.append(("Comment", table.comment, ""))
        rows += [
            ("Location", f"file:{table.location}", ""),
            ("Provider", _provider(table), ""),
        ]
        properties = ",".join(f"{k}={v}" for k, v in sorted(table.properties.items()))
        rows.append(("Table Properties", f"[{properties}]", ""))
    return rows_of("DESCRIBE", _DESCRIBED, [[r[i] for r in rows] for i in range(3)])


def _provider(table: Any) -> str:
    if isinstance(table, StoredTable):
        return table.format
    return "delta" if table.version is not None else "parquet"


def _view_details(view: StoredView) -> list[tuple[str, str, str | None]]:
    properties = ", ".join(f"{k}={v}" for k, v in sorted(view.properties.items()))
    rows = [
        ("Catalog", view.name.catalog),
        ("Database", view.name.schema),
        ("Table", view.name.table),
        ("Type", "VIEW"),
        *([("Comment", view.comment)] if view.comment else []),
        ("View Text", view.query),
        *([("Collation", view.collation)] if view.collation else []),
        ("View Schema Mode", view.mode or "COMPENSATION"),
        ("View Catalog and Namespace", f"{view.catalog}.{view.schema_name}"),
        ("View Query Output Columns", f"[{', '.join(f'`{c}`' for c in view.query_columns)}]"),
        ("Table Properties", f"[{properties}]"),
    ]
    return [("", "", ""), ("# Detailed Table Information", "", ""), *((key, value, "") for key, value in rows)]


def _show_create_table(
    command: c.ShowCreateTable, job: Statement, env: Environment, runner: Runner, emit: Emit
) -> Answer:
    view = None if views.is_view(command.table, env) else env.tables.find(command.table.parts, None, command.table.span)
    if not isinstance(view, StoredView):
        raise unsupported("SHOW CREATE TABLE of anything but a lasting view", command.table.span)
    columns = [
        quote_if_needed(f.name) + (f" COMMENT {quoted_text(f.comment)}" if f.comment else "")
        for f in view.schema.fields
    ]
    name = ".".join(quote_if_needed(n) for n in (view.name.catalog, view.name.schema, view.name.table))
    text = f"CREATE VIEW {name} (\n  " + ",\n  ".join(columns) + ")\n"
    if view.comment:
        text += f"COMMENT {quoted_text(view.comment)}\n"
    if view.properties:
        pairs = (f"{quoted_text(k)} = {quoted_text(v)}" for k, v in sorted(view.properties.items()))
        text += "TBLPROPERTIES (\n  " + ",\n  ".join(pairs) + ")\n"
    if view.collation:
        text += f"DEFAULT COLLATION {quote_if_needed(view.collation)}\n"
    text += f"WITH SCHEMA {view.mode or 'COMPENSATION'}\nAS {view.query}\n"
    return rows_of("SHOW", strings("createtab_stmt"), [[text]])


def _describe_column(command: c.DescribeTable, fields: tuple[StructField, ...], table: Any) -> Answer:
    assert command.column is not None
    parts = [p.lower() for p in command.column.parts]
    names = {f.name.lower(): f for f in fields}
    if len(parts) > 1:
        if parts[0] in names:
            raise unsupported("DESCRIBE of a field inside a column", command.column.span)
        qualifier = command.table.parts if table is None else (table.name.catalog, table.name.schema, table.name.table)
        if parts[:-1] == [p.lower() for p in qualifier[len(qualifier) - len(parts) + 1 :]]:
            parts = parts[-1:]
    found = names.get(".".join(parts))
    if found is None:
        known = ", ".join(f"`{f.name}`" for f in fields[:5])
        raise UserError(
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            f"A column, variable, or function parameter with name `{command.column}` cannot be resolved. Did you mean "
            f"one of the following? [{known}].",
            span=command.column.span,
        )
    rows = [("col_name", found.name), ("data_type", found.type.simple), ("comment", found.comment or "NULL")]
    if command.extended:
        rows += [(key, "NULL") for key in _STATISTICS]  # ANALYZE has gathered none
    return rows_of("DESCRIBE", strings("info_name", "info_value"), [[r[i] for r in rows] for i in range(2)])


def _describe_query(command: c.DescribeQuery, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    query, _ = runner.bind(command.query.tree, env)
    rows = [(f.name, f.type.simple, None) for f in query.schema.fields]
    return rows_of("DESCRIBE", _DESCRIBED, [[r[i] for r in rows] for i in range(3)])


def _describe_schema(command: c.DescribeSchema, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    catalog, schema = _schema_in(command.name, env)
    rows = [
        ("Catalog Name", catalog.name),
        ("Namespace Name", schema),
        ("Comment", _schema_comment(catalog, schema)),
        ("Location", f"file:{catalog.schema_location(schema)}"),
        ("Owner", ""),
    ]
    if command.extended:
        rows.append(("Properties", ""))
    # Databricks keeps the column names that Spark had before version 3.
    fields = strings("database_description_item", "database_description_value")
    return rows_of("DESCRIBE", fields, [[r[i] for r in rows] for i in range(2)])


def _schema_comment(catalog: Any, schema: str) -> str:
    comment = getattr(catalog, "schema_comment", None)
    return (comment(schema) or "") if comment is not None else ""


def _describe_catalog(
    command: c.DescribeCatalog, job: Statement, env: Environment, runner: Runner, emit: Emit
) -> Answer:
    catalog = env.tables.catalog_of(command.name.parts[-1], command.name.span)
    rows = [("Catalog Name", catalog.name), ("Comment", ""), ("Owner", "")]
    return rows_of("DESCRIBE", strings("info_name", "info_value"), [[r[i] for r in rows] for i in range(2)])


_PLAN = struct(StructField("plan", STRING, False))


def explained_elsewhere(engine: str, reason: str) -> Answer:
    """EXPLAIN of a statement that the embedded engine does not run."""
    return rows_of("EXPLAIN", _PLAN, [[f"Engine: {engine}\nReason: {reason}"]])


def _explain(command: c.Explain, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    inner = command.statement
    field = _PLAN
    if isinstance(inner, c.Insert):
        env.tables.find(inner.table.parts, None, inner.table.span)
    if isinstance(inner, (c.CreateTable, c.Insert)) and inner.query is not None:
        tree = inner.query.tree
    elif isinstance(inner, c.Query):
        tree = inner.tree
    else:
        return rows_of("EXPLAIN", field, [["Engine: gateway\nReason: answered without an engine"]])
    try:
        compiled, decision = runner.prepared(tree, env)
    except HandedOverError as handed:
        return explained_elsewhere(handed.handover.engine, handed.handover.reason)
    text = described(decision)
    if command.mode != "simple":
        text += f"\n\n== Engine Text ==\n{compiled.generated.text}"
    text += "\n\n" + runner.engine.explain(decision.query)
    return rows_of("EXPLAIN", field, [[text]])


Rule = Callable[[Any, Statement, Any, Any, Emit], Answer]
_RULES: dict[type, Rule] = {
    c.UseCatalog: _use_catalog,
    c.UseSchema: _use_schema,
    c.SetConf: _set,
    c.SetTimeZone: _set_zone,
    c.Reset: _reset,
    c.ShowCatalogs: _show_catalogs,
    c.ShowSchemas: _show_schemas,
    c.ShowTables: _show_tables,
    c.ShowViews: _show_views,
    c.ShowColumns: _show_columns,
    c.ShowFunctions: _show_functions,
    c.ShowTblProperties: _show_properties,
    c.DescribeTable: _describe,
    c.DescribeQuery: _describe_query,
    c.DescribeSchema: _describe_schema,
    c.DescribeCatalog: _describe_catalog,
    c.Explain: _explain,
    c.ShowCreateTable: _show_create_table,
    c.CreateView: views.create_view,
    c.AlterView: views.alter_view,
    c.DropView: views.drop_view,
    c.DropFunction: writes.drop_function,
    c.CreateSchema: writes.create_schema,
    c.DropSchema: writes.drop_schema,
    c.CreateTable: writes.create_table,
    c.DropTable: writes.drop_table,
    c.Insert: writes.insert,
}
