"""Everything that is not a query: session commands, SHOW and DESCRIBE, EXPLAIN, views, schemas and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.config.session import (
    SESSION_SETTINGS,
    TIMEZONE,
    find_setting,
    is_tuning,
    normalise_setting,
)
from gateway.engine.base import Emit, SessionChange, Statement, TempView
from gateway.errors import GatewayError, UserError, unsupported
from gateway.planner import described
from gateway.runner import writes
from gateway.runner.answer import Answer, done, rows_of, strings
from gateway.runner.patterns import hive
from gateway.sql import command_nodes as c
from gateway.sql import literals
from gateway.sql.functions import CATALOGUE
from gateway.sqltypes import BOOLEAN, STRING, IntervalType, StructField, struct

if TYPE_CHECKING:
    from gateway.runner.handler import Environment, Runner


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
    spelled = next((s for s in catalog.schemas() if s.lower() == schema.lower()), schema)
    return done("USE", SessionChange("use", catalog.name, spelled))


def _set(command: c.SetConf, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    pairs = strings("key", "value")
    if command.key is None:
        shown = {s.key: env.setting(s.key) for s in SESSION_SETTINGS} | dict(env.session.settings)
        if command.verbose:
            documented = [(s.key, env.setting(s.key), s.help) for s in SESSION_SETTINGS]
            return rows_of("SET", strings("key", "value", "meaning"), list(zip(*documented, strict=True)))
        return rows_of("SET", pairs, [list(shown), list(shown.values())])
    if command.value is None:
        setting = find_setting(command.key)
        value = env.setting(setting.key) if setting is not None else env.session.settings.get(command.key.lower())
        return rows_of("SET", pairs, [[command.key], [value if value is not None else "<undefined>"]])
    value = _unquoted(command.value)
    known = normalise_setting(command.key, value)
    if known is None and not is_tuning(command.key):
        if not command.key.lower().startswith(("spark.", "hive.")) and "." not in command.key:
            raise UserError(
                "CONFIG_NOT_AVAILABLE",
                f"Configuration {command.key} is not available.",
            )
        raise unsupported(f"The configuration key {command.key}")
    assert known is not None
    key, text = known
    return rows_of("SET", pairs, [[command.key], [value]], changes=(SessionChange("set", key, text),))


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
        if not isinstance(literal.type, IntervalType) or literal.type.is_year_month:
            raise UserError("INVALID_INTERVAL_FORMAT", "A time zone offset must be an interval of hours to seconds.")
        minutes, rest = divmod(abs(literal.value), 60_000_000)
        if rest or minutes > 18 * 60:
            raise UserError(
                "INVALID_TIMEZONE", "The interval value must be in the range of [-18, +18] hours with second precision."
            )
        zone = f"{'-' if literal.value < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    else:
        zone = command.zone if command.zone is not None else "UTC"
    known = normalise_setting(TIMEZONE, zone)
    assert known is not None
    return rows_of(
        "SET",
        strings("key", "value"),
        [["spark.sql.session.timeZone"], [zone]],
        changes=(SessionChange("set", *known),),
    )


def _reset(command: c.Reset, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    if command.key is None:
        return done("RESET", SessionChange("reset"))
    setting = find_setting(command.key)
    return done("RESET", SessionChange("reset", setting.key if setting is not None else command.key.lower()))


# ----------------------------------------------------------------------------------------------------------------- show


def _show_catalogs(command: c.ShowCatalogs, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    match = hive(command.pattern)
    names = sorted(k.name for k in env.tables.catalogs.values() if match(k.name))
    return rows_of("SHOW", strings("catalog"), [names])


def _show_schemas(command: c.ShowSchemas, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    name = command.catalog.parts[-1] if command.catalog is not None else env.session.catalog
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
    rows = [(schema, t, False) for t in catalog.tables(schema) if match(t)]
    rows += [("", v.name, True) for v in env.session.views.values() if match(v.name)]
    fields = struct(
        StructField("database", STRING, False),
        StructField("tableName", STRING, False),
        StructField("isTemporary", BOOLEAN, False),
    )
    return rows_of("SHOW", fields, [[r[i] for r in rows] for i in range(3)])


def _show_views(command: c.ShowViews, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    if command.schema is not None:
        _schema_in(command.schema, env)
    match = hive(command.pattern)
    views = [v for v in env.session.views.values() if match(v.name)]
    fields = struct(
        StructField("namespace", STRING, False),
        StructField("viewName", STRING, False),
        StructField("isTemporary", BOOLEAN, False),
    )
    return rows_of("SHOW", fields, [[""] * len(views), [v.name for v in views], [True] * len(views)])


def _show_columns(command: c.ShowColumns, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    parts = command.table.parts
    if command.schema is not None:
        parts = (*command.schema.parts, parts[-1])
    fields, _ = _described(parts, command.table, env, runner)
    return rows_of("SHOW", strings("col_name"), [[f.name for f in fields]])


def _show_functions(command: c.ShowFunctions, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    match = hive(command.pattern)
    public = [] if command.scope == "USER" else [n for n in CATALOGUE if n[0].isalpha() and " " not in n]
    return rows_of("SHOW", strings("function"), [sorted(n for n in public if match(n))])


def _show_properties(
    command: c.ShowTblProperties, job: Statement, env: Environment, runner: Runner, emit: Emit
) -> Answer:
    table = env.tables.table(command.table.parts, None, command.table.span)
    properties = dict(sorted(table.properties.items()))
    if command.key is not None:
        value = properties.get(command.key, f"Table {table.name} does not have property: {command.key}")
        return rows_of("SHOW", strings("key", "value"), [[command.key], [value]])
    return rows_of("SHOW", strings("key", "value"), [list(properties), list(properties.values())])


# ------------------------------------------------------------------------------------------------------------- describe


def _described(
    parts: tuple[str, ...], name: c.Name, env: Environment, runner: Runner
) -> tuple[tuple[StructField, ...], Any]:
    """Columns of a table or temporary view; the second is the table, None for a view."""
    view = env.session.views.get(parts[0].lower()) if len(parts) == 1 else None
    if view is not None:
        query, _ = runner.bind(env.tables.view_tree(view), _inside(env, view))
        names = view.columns or tuple(f.name for f in query.schema.fields)
        fields = tuple(StructField(n, f.type, f.nullable) for n, f in zip(names, query.schema.fields, strict=True))
        return fields, None
    if len(parts) == 2 and parts[0].lower() in ("delta", "parquet") and "/" in parts[1]:
        table = env.tables.path(parts[0].lower(), parts[1], None, name.span)
    else:
        table = env.tables.table(parts, None, name.span)
    return table.schema.fields, table


def _inside(env: Environment, view: TempView) -> Environment:
    return replace(
        env,
        tables=env.tables.inside(view),
        context=replace(env.context, catalog=view.catalog, schema=view.schema),
    )


_DESCRIBED = struct(
    StructField("col_name", STRING, False), StructField("data_type", STRING, False), StructField("comment", STRING)
)


def _describe(command: c.DescribeTable, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    fields, table = _described(command.table.parts, command.table, env, runner)
    if command.column is not None:
        return _describe_column(command, fields)
    rows: list[tuple[str, str, str | None]] = [(f.name, f.type.simple, f.comment) for f in fields]
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
            ("Provider", "delta" if table.version is not None else "parquet", ""),
        ]
        properties = ",".join(f"{k}={v}" for k, v in sorted(table.properties.items()))
        rows.append(("Table Properties", f"[{properties}]", ""))
    return rows_of("DESCRIBE", _DESCRIBED, [[r[i] for r in rows] for i in range(3)])


def _describe_column(command: c.DescribeTable, fields: tuple[StructField, ...]) -> Answer:
    assert command.column is not None
    wanted = command.column.parts[-1].lower()
    found = next((f for f in fields if f.name.lower() == wanted), None)
    if found is None:
        known = ", ".join(f"`{f.name}`" for f in fields[:5])
        raise UserError(
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            f"A column, variable, or function parameter with name `{command.column}` cannot be resolved. Did you mean "
            f"one of the following? [{known}].",
            span=command.column.span,
        )
    rows = [("col_name", found.name), ("data_type", found.type.simple), ("comment", found.comment or "NULL")]
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
        ("Location", ""),
        ("Owner", ""),
    ]
    return rows_of("DESCRIBE", strings("info_name", "info_value"), [[r[i] for r in rows] for i in range(2)])


def _schema_comment(catalog: Any, schema: str) -> str:
    comment = getattr(catalog, "schema_comment", None)
    return (comment(schema) or "") if comment is not None else ""


def _describe_catalog(
    command: c.DescribeCatalog, job: Statement, env: Environment, runner: Runner, emit: Emit
) -> Answer:
    catalog = env.tables.catalog_of(command.name.parts[-1], command.name.span)
    rows = [("Catalog Name", catalog.name), ("Comment", ""), ("Owner", "")]
    return rows_of("DESCRIBE", strings("info_name", "info_value"), [[r[i] for r in rows] for i in range(2)])


def _explain(command: c.Explain, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    inner = command.statement
    field = struct(StructField("plan", STRING, False))
    if isinstance(inner, (c.CreateTable, c.Insert)) and inner.query is not None:
        tree = inner.query.tree
    elif isinstance(inner, c.Query):
        tree = inner.tree
    else:
        return rows_of(
            "EXPLAIN", field, [[f"Engine: gateway\nReason: {type(inner).__name__} is answered without an engine"]]
        )
    try:
        compiled, decision = runner.prepared(tree, env)
    except GatewayError as error:
        if error.condition.startswith("UNSUPPORTED"):
            text = f"Engine: none\nReason: {error.text(job.text)}"
            return rows_of("EXPLAIN", field, [[text]])
        raise
    text = described(decision)
    if command.mode != "simple":
        text += f"\n\n== Engine Text ==\n{compiled.generated.text}"
    text += "\n\n" + runner.engine.explain(decision.query)
    return rows_of("EXPLAIN", field, [[text]])


# ----------------------------------------------------------------------------------------------------------------- views


def _create_view(command: c.CreateView, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    if not command.temporary:
        raise unsupported("CREATE VIEW (only TEMPORARY views)", command.name.span)
    if len(command.name.parts) > 1:
        raise UserError(
            "TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS",
            f"CREATE TEMPORARY VIEW or the corresponding Dataset APIs only accept single-part view names, but got: "
            f"`{command.name}`.",
            sqlstate="428EK",
            span=command.name.span,
        )
    name = command.name.parts[0]
    if name.lower() in env.session.views and not command.replace:
        if command.if_not_exists:
            return done("CREATE_VIEW")
        raise UserError(
            "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
            f"Cannot create the temporary view `{name}` because it already exists. Choose a different name, drop or "
            "replace the existing view.",
            span=command.name.span,
        )
    if env.parameters:
        raise unsupported("parameter markers in a view", command.query.span)
    query, _ = runner.bind(command.query.tree, env)
    columns = tuple(v.name for v in command.columns)
    if columns and len(columns) != len(query.schema.fields):
        raise UserError(
            "CREATE_VIEW_COLUMN_ARITY_MISMATCH."
            + ("TOO_MANY" if len(columns) < len(query.schema.fields) else "NOT_ENOUGH")
            + "_DATA_COLUMNS",
            f"Cannot create view `{name}`: it names {len(columns)} columns, its query has {len(query.schema.fields)}.",
            sqlstate="21S01",
            span=command.name.span,
        )
    labels = columns or tuple(f.name for f in query.schema.fields)
    seen: set[str] = set()
    for label in labels:
        if label.lower() in seen:
            raise UserError(
                "COLUMN_ALREADY_EXISTS",
                f"The column `{label.lower()}` already exists. Choose another name or rename the existing column.",
                span=command.name.span,
            )
        seen.add(label.lower())
    view = TempView(name, command.query.text, columns, env.session.catalog, env.session.schema, command.comment)
    return done("CREATE_VIEW", SessionChange("put_view", name.lower(), view=view))


def _drop_view(command: c.DropView, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    name = command.name.parts[-1]
    if len(command.name.parts) == 1 and name.lower() in env.session.views:
        return done("DROP_VIEW", SessionChange("drop_view", name.lower()))
    if command.if_exists:
        return done("DROP_VIEW")
    catalog, schema, table = env.tables.qualified(command.name.parts)
    known = env.tables.catalogs.get(catalog.lower())
    if known is not None and known.table(schema, table) is not None:
        raise UserError(
            "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE", f"`{command.name}` is a table, not a view.", span=command.name.span
        )
    raise env.tables.missing(command.name.parts, command.name.span)


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
    c.CreateView: _create_view,
    c.DropView: _drop_view,
    c.CreateSchema: writes.create_schema,
    c.DropSchema: writes.drop_schema,
    c.CreateTable: writes.create_table,
    c.DropTable: writes.drop_table,
    c.Insert: writes.insert,
}
