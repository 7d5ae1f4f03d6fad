"""SHOW … IN CATALOG: what drivers ask by SQL in the place of metadata calls, with the columns that they read.

Columns as recorded of Databricks servers, and as databricks-jdbc reads them (MetadataResultConstants.java).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gateway.catalog.base import Catalog
from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.keys import keys_of, references_of
from gateway.engine.base import Emit, Statement
from gateway.runner import metadata
from gateway.runner.answer import Answer, rows_of
from gateway.runner.environment import Environment, Queries
from gateway.runner.patterns import hive
from gateway.sql.functions import public_names
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import BOOLEAN, INT, SMALLINT, STRING, DataType, StructField, struct

Columns = tuple[tuple[str, DataType], ...]

_TABLES: Columns = (
    ("namespace", STRING),
    ("tableName", STRING),
    ("isTemporary", BOOLEAN),
    ("information", STRING),
    ("catalogName", STRING),
    ("tableType", STRING),
    ("remarks", STRING),
)
_COLUMNS: Columns = (
    ("col_name", STRING),
    ("catalogName", STRING),
    ("namespace", STRING),
    ("tableName", STRING),
    ("columnType", STRING),
    ("columnSize", INT),
    ("decimalDigits", INT),
    ("radix", INT),
    ("isNullable", STRING),
    ("remarks", STRING),
    ("ordinalPosition", INT),
    ("isAutoIncrement", STRING),
    ("isGenerated", STRING),
)
_FUNCTIONS: Columns = (
    ("functionName", STRING),
    ("namespace", STRING),
    ("catalogName", STRING),
    ("remarks", STRING),
    ("functionType", SMALLINT),
    ("specificName", STRING),
)
_PRIMARY_KEYS: Columns = (
    ("catalogName", STRING),
    ("namespace", STRING),
    ("tableName", STRING),
    ("col_name", STRING),
    ("keySeq", INT),
    ("constraintName", STRING),
)
_FOREIGN_KEYS: Columns = (
    ("parentCatalogName", STRING),
    ("parentNamespace", STRING),
    ("parentTableName", STRING),
    ("parentColName", STRING),
    *_PRIMARY_KEYS[:5],
    ("updateRule", SMALLINT),
    ("deleteRule", SMALLINT),
    ("constraintName", STRING),
    ("parentConstraintName", STRING),
    ("deferrability", SMALLINT),
)
_KIND_UNKNOWN = 1  # java.sql.DatabaseMetaData.functionResultUnknown


def show_listed(command: c.ShowListed, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW TABLES | COLUMNS | FUNCTIONS IN CATALOG."""
    if command.catalog is None:
        catalogs = list(env.tables.catalogs.values())
    else:
        catalogs = [env.tables.catalog_of(str(command.catalog), command.catalog.span)]
    columns, rows = _LISTS[command.kind]
    return _rows(columns, rows(command, catalogs))


def show_keys(command: c.ShowKeys, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW [FOREIGN] KEYS; a table that is not there is told."""
    table = env.tables.find(command.table.parts, None, command.table.span)
    if not isinstance(table, DeltaBoundTable):
        return _rows(_FOREIGN_KEYS if command.foreign else _PRIMARY_KEYS, [])
    catalog = env.tables.catalog_of(table.name.catalog)
    keys = keys_of(catalog, table)
    if command.foreign:
        return _rows(_FOREIGN_KEYS, metadata.foreign_rows(references_of(catalog, keys)))
    return _rows(_PRIMARY_KEYS, metadata.primary_rows(keys))


def _rows(columns: Columns, rows: Sequence[tuple[Any, ...]]) -> Answer:
    fields = struct(*(StructField(name, type_) for name, type_ in columns))
    return rows_of("SHOW", fields, [[row[i] for row in rows] for i in range(len(columns))])


def _tables(command: c.ShowListed, catalogs: Sequence[Catalog]) -> list[tuple[Any, ...]]:
    return [
        (t.schema, t.name, False, "", t.catalog.name, t.kind, metadata.comment_of(t))
        for t in metadata.found(catalogs, hive(command.schema), hive(command.pattern))
    ]


def _columns(command: c.ShowListed, catalogs: Sequence[Catalog]) -> list[tuple[Any, ...]]:
    match = hive(command.pattern)
    rows = []
    for table, position, field in metadata.found_columns(catalogs, hive(command.schema), hive(command.table)):
        if match(field.name):
            size, digits, radix = metadata.measures(field.type)
            rows.append(
                (
                    *(field.name, table.catalog.name, table.schema, table.name, field.type.sql, size, digits, radix),
                    *(str(field.nullable).lower(), field.comment or "", position, "NO", "NO"),
                )
            )
    return rows


def _functions(command: c.ShowListed, catalogs: Sequence[Catalog]) -> list[tuple[Any, ...]]:
    schema, match = hive(command.schema), hive(command.pattern)
    named = [(f, s, k.name) for k in catalogs for s in k.schemas() if schema(s) for f in k.functions(s) if match(f)]
    if schema("builtin"):
        named += [(f, "builtin", "system") for f in public_names() if match(f)]
    return [(f, s, k, "", _KIND_UNKNOWN, f) for f, s, k in sorted(named)]


_LISTS: dict[str, tuple[Columns, Callable[[c.ShowListed, Sequence[Catalog]], list[tuple[Any, ...]]]]] = {
    "tables": (_TABLES, _tables),
    "columns": (_COLUMNS, _columns),
    "functions": (_FUNCTIONS, _functions),
}
