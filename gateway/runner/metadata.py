"""The questions that BI tools ask at connect: GetCatalogs, GetSchemas, GetTables, GetColumns, with JDBC's columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.catalog.base import Catalog
from gateway.engine.base import MetadataCall
from gateway.errors import GatewayError, ServerError
from gateway.runner.answer import Answer, rows_of
from gateway.runner.patterns import jdbc
from gateway.sqltypes import (
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    CharType,
    DataType,
    DecimalType,
    StructField,
    StructType,
    struct,
)

_TABLE_COLUMNS = (
    "TABLE_CAT",
    "TABLE_SCHEM",
    "TABLE_NAME",
    "TABLE_TYPE",
    "REMARKS",
    "TYPE_CAT",
    "TYPE_SCHEM",
    "TYPE_NAME",
    "SELF_REFERENCING_COL_NAME",
    "REF_GENERATION",
)
_COLUMN_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("TABLE_CAT", STRING),
    ("TABLE_SCHEM", STRING),
    ("TABLE_NAME", STRING),
    ("COLUMN_NAME", STRING),
    ("DATA_TYPE", INT),
    ("TYPE_NAME", STRING),
    ("COLUMN_SIZE", INT),
    ("BUFFER_LENGTH", TINYINT),
    ("DECIMAL_DIGITS", INT),
    ("NUM_PREC_RADIX", INT),
    ("NULLABLE", INT),
    ("REMARKS", STRING),
    ("COLUMN_DEF", STRING),
    ("SQL_DATA_TYPE", INT),
    ("SQL_DATETIME_SUB", INT),
    ("CHAR_OCTET_LENGTH", INT),
    ("ORDINAL_POSITION", INT),
    ("IS_NULLABLE", STRING),
    ("SCOPE_CATALOG", STRING),
    ("SCOPE_SCHEMA", STRING),
    ("SCOPE_TABLE", STRING),
    ("SOURCE_DATA_TYPE", SMALLINT),
    ("IS_AUTO_INCREMENT", STRING),
)


def answer(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    """The rows of one metadata call."""
    rule = {"catalogs": _catalogs, "schemas": _schemas, "tables": _tables, "columns": _columns}.get(call.kind)
    if rule is None:
        raise ServerError("INTERNAL_ERROR", f"There is no metadata call {call.kind}.")
    return rule(call, catalogs)


def _named(*columns: str) -> StructType:
    return struct(*(StructField(c, STRING) for c in columns))


def _chosen(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Iterator[Catalog]:
    """The catalogs that the call means: ``SPARK`` is the session's, nothing means all of them."""
    wanted = call.catalog
    if wanted is not None and wanted.upper() == "SPARK":
        wanted = call.session.catalog
    match = jdbc(wanted)
    return (c for c in catalogs.values() if match(c.name))


def _catalogs(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    return rows_of("GET_CATALOGS", _named("TABLE_CAT"), [sorted(c.name for c in catalogs.values())])


def _schemas(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    match = jdbc(call.schema)
    rows = [(s, c.name) for c in _chosen(call, catalogs) for s in c.schemas() if match(s)]
    return rows_of("GET_SCHEMAS", _named("TABLE_SCHEM", "TABLE_CATALOG"), _columns_of(rows, 2))


def _columns_of(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(width)]


def _found(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Iterator[tuple[Catalog, str, str, bool]]:
    """Tables and views, with whether they are views."""
    schema, table = jdbc(call.schema), jdbc(call.table)
    for catalog in _chosen(call, catalogs):
        for s in catalog.schemas():
            if schema(s):
                tables = ((t, False) for t in catalog.tables(s) + catalog.other_tables(s))
                for name, is_view in sorted([*tables, *((v, True) for v in catalog.views(s))]):
                    if table(name):
                        yield catalog, s, name, is_view


def _tables(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    wanted = {t.upper() for t in call.table_types}
    rows: list[tuple[Any, ...]] = []
    for catalog, schema, name, is_view in _found(call, catalogs):
        kind = "VIEW" if is_view else "TABLE"
        if not wanted or kind in wanted:
            rows.append((catalog.name, schema, name, kind, _comment(catalog, schema, name, is_view), *[None] * 5))
    if not wanted or "VIEW" in wanted:
        match = jdbc(call.table)
        if call.catalog is None and jdbc(call.schema)(""):
            views = [v for v in call.session.views.values() if match(v.name)]
            rows += [(None, None, v.name, "VIEW", v.comment or "", *[None] * 5) for v in views]
    return rows_of("GET_TABLES", _named(*_TABLE_COLUMNS), _columns_of(rows, len(_TABLE_COLUMNS)))


def _opened(catalog: Catalog, schema: str, name: str, is_view: bool) -> Any:
    return catalog.view(schema, name) if is_view else catalog.table(schema, name)


def _comment(catalog: Catalog, schema: str, name: str, is_view: bool) -> str:
    """A table's comment; a table that cannot be opened is still listed."""
    try:
        found = _opened(catalog, schema, name, is_view)
    except GatewayError:
        return ""
    return (found.comment or "") if found is not None else ""


def _columns(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    match = jdbc(call.column)
    rows: list[tuple[Any, ...]] = []
    tables = list(_found(call, catalogs))
    for catalog, schema, table, is_view in tables:
        try:
            found = _opened(catalog, schema, table, is_view)
        except GatewayError:
            if len(tables) == 1:
                raise
            continue  # one of many: GetTables lists it, asking for it alone tells what is wrong
        if found is None:
            continue  # dropped meanwhile
        for position, f in enumerate(found.schema.fields):
            if match(f.name):
                rows.append(_column_row(catalog.name, schema, table, position, f))
    fields = struct(*(StructField(n, t) for n, t in _COLUMN_COLUMNS))
    return rows_of("GET_COLUMNS", fields, _columns_of(rows, len(_COLUMN_COLUMNS)))


def _column_row(catalog: str, schema: str, table: str, position: int, f: StructField) -> tuple[Any, ...]:
    row = f.type.row
    size, digits = row.size, row.digits
    if isinstance(f.type, DecimalType):
        size, digits = f.type.precision, f.type.scale
    elif isinstance(f.type, CharType):
        size = f.type.length
    return (
        catalog,
        schema,
        table,
        f.name,
        row.jdbc,
        f.type.sql,
        size,
        None,
        digits,
        row.radix,
        1 if f.nullable else 0,
        f.comment or "",
        None,
        None,
        None,
        None,
        position,
        "YES" if f.nullable else "NO",
        None,
        None,
        None,
        None,
        "NO",
    )
