"""DESCRIBE: columns and facts of tables, views, queries, schemas and catalogs."""

from __future__ import annotations

from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.information import Relation
from gateway.catalog.keys import told
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta.creation import told_properties
from gateway.delta.expressions import DEFAULT
from gateway.delta.schema import declared_of
from gateway.engine.base import Emit, Statement
from gateway.errors import UserError, unsupported
from gateway.runner.answer import Answer, rows_of, strings
from gateway.runner.commands import views
from gateway.runner.commands.analysis import counts_of, shown, shown_of, statistics_of
from gateway.runner.commands.described_json import table_json, temporary_view_json, view_json
from gateway.runner.commands.schemas import schema_in
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import STRING, StructField, struct

_AS_JSON = struct(StructField("json_metadata", STRING, False))
_DESCRIBED = struct(
    StructField("col_name", STRING, False), StructField("data_type", STRING, False), StructField("comment", STRING)
)


def described_fields(
    parts: tuple[str, ...], name: c.Name, env: Environment, runner: Queries
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


def describe_table(command: c.DescribeTable, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DESCRIBE of a table, a view, or a column of one."""
    fields, table = described_fields(command.table.parts, command.table, env, runner)
    if isinstance(table, (StoredView, StoredTable)) and table.collated:
        raise unsupported("DESCRIBE of a table or view with collations", command.table.span)
    if command.column is not None:
        return _describe_column(command, fields, table, env)
    if command.as_json:
        return rows_of("DESCRIBE", _AS_JSON, [[_json_of(command, fields, table, env)]])
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
            ("Type", _kind(table), ""),
        ]
        if table.comment:
            rows.append(("Comment", table.comment, ""))
        if not isinstance(table, Relation):
            rows += [("Location", f"file:{table.location}", ""), ("Provider", _provider(table), "")]
        properties = ",".join(f"{k}={v}" for k, v in sorted(properties_of(table).items()))
        rows.append(("Table Properties", f"[{properties}]", ""))
        if found := shown(statistics_of(table, env)):
            rows.append(("Statistics", found, ""))
        rows += _defaults(table)
        if keys := _keys(table, env):
            rows += [("", "", ""), ("# Constraints", "", ""), *((key, text, "") for key, text in keys)]
    return rows_of("DESCRIBE", _DESCRIBED, [[r[i] for r in rows] for i in range(3)])


def properties_of(table: Any) -> dict[str, str]:
    """A table's properties, of one of a catalog with those that tell of its protocol."""
    if isinstance(table, DeltaBoundTable):
        return told_properties(table.snapshot)
    return dict(sorted(table.properties.items()))


def _keys(table: Any, env: Environment) -> list[tuple[str, str]]:
    if not isinstance(table, DeltaBoundTable) or not table.name.catalog:
        return []
    return told(env.tables.catalog_of(table.name.catalog), table)


def _defaults(table: Any) -> list[tuple[str, str, str | None]]:
    columns = table.snapshot.columns if isinstance(table, DeltaBoundTable) else ()
    found: list[tuple[str, str, str | None]] = [
        (x.name, x.type.simple, x.metadata[DEFAULT]) for x in columns if DEFAULT in x.metadata
    ]
    return [("", "", ""), ("# Column Default Values", "", ""), *found] if found else []


def _json_of(command: c.DescribeTable, fields: tuple[StructField, ...], table: Any, env: Environment) -> str:
    if table is None:
        parts = command.table.parts
        view = env.session.views.get(parts[0].lower()) if len(parts) == 1 else None
        if view is not None:
            return temporary_view_json(view, fields)
    if isinstance(table, StoredView):
        return view_json(table)
    if isinstance(table, Relation):
        raise unsupported("DESCRIBE … AS JSON of a relation of the information schema", command.table.span)
    if table is None or not table.name.catalog:
        raise unsupported("DESCRIBE … AS JSON of files by their path", command.table.span)
    if isinstance(table, DeltaBoundTable):
        fields = declared_of(table.snapshot.columns).fields
    counts = counts_of(statistics_of(table, env), table.name.table)
    return table_json(table, fields, _provider(table), _keys(table, env), counts)


def _kind(table: Any) -> str:
    if isinstance(table, Relation):
        return "VIEW"
    return "MANAGED" if table.name.catalog and not getattr(table, "external", False) else "EXTERNAL"


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


def _describe_column(command: c.DescribeTable, fields: tuple[StructField, ...], table: Any, env: Environment) -> Answer:
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
        rows += shown_of(statistics_of(table, env), found, env.context.time_zone).items()
    return rows_of("DESCRIBE", strings("info_name", "info_value"), [[r[i] for r in rows] for i in range(2)])


def describe_query(command: c.DescribeQuery, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DESCRIBE QUERY."""
    query, _ = runner.bind(command.query.tree, env)
    rows = [(f.name, f.type.simple, None) for f in query.schema.fields]
    return rows_of("DESCRIBE", _DESCRIBED, [[r[i] for r in rows] for i in range(3)])


def describe_schema(command: c.DescribeSchema, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DESCRIBE SCHEMA."""
    catalog, schema = schema_in(command.name, env)
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


def describe_catalog(
    command: c.DescribeCatalog, job: Statement, env: Environment, runner: Queries, emit: Emit
) -> Answer:
    """DESCRIBE CATALOG."""
    catalog = env.tables.catalog_of(command.name.parts[-1], command.name.span)
    rows = [("Catalog Name", catalog.name), ("Comment", ""), ("Owner", "")]
    return rows_of("DESCRIBE", strings("info_name", "info_value"), [[r[i] for r in rows] for i in range(2)])
