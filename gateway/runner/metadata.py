"""What BI tools ask at connect, with the columns of JDBC: catalogs, schemas, tables, columns, functions, types, keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from gateway.catalog.base import Catalog
from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.information import SCHEMA, information_of
from gateway.catalog.keys import Reference, keys_of, references_of
from gateway.catalog.objects import StoredKeys
from gateway.delta.outline import Outline
from gateway.delta.partitions import value_text
from gateway.engine.base import MetadataCall
from gateway.errors import GatewayError, ServerError
from gateway.runner.answer import Answer, rows_of
from gateway.runner.patterns import everything, jdbc
from gateway.sql.functions import public_names
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    TYPES,
    CharType,
    DataType,
    DecimalType,
    SqlType,
    StructField,
    StructType,
    struct,
)

Match = Callable[[str], bool]

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
# Hive's GetTypeInfoOperation; PRECISION is JDBC's column size.
_TYPE_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("TYPE_NAME", STRING),
    ("DATA_TYPE", INT),
    ("PRECISION", INT),
    ("LITERAL_PREFIX", STRING),
    ("LITERAL_SUFFIX", STRING),
    ("CREATE_PARAMS", STRING),
    ("NULLABLE", SMALLINT),
    ("CASE_SENSITIVE", BOOLEAN),
    ("SEARCHABLE", SMALLINT),
    ("UNSIGNED_ATTRIBUTE", BOOLEAN),
    ("FIXED_PREC_SCALE", BOOLEAN),
    ("AUTO_INCREMENT", BOOLEAN),
    ("LOCAL_TYPE_NAME", STRING),
    ("MINIMUM_SCALE", SMALLINT),
    ("MAXIMUM_SCALE", SMALLINT),
    ("SQL_DATA_TYPE", INT),
    ("SQL_DATETIME_SUB", INT),
    ("NUM_PREC_RADIX", INT),
)
_FUNCTION_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("FUNCTION_CAT", STRING),
    ("FUNCTION_SCHEM", STRING),
    ("FUNCTION_NAME", STRING),
    ("REMARKS", STRING),
    ("FUNCTION_TYPE", INT),
    ("SPECIFIC_NAME", STRING),
)
# KEQ_SEQ is how Hive's and Spark's servers spell it (GetPrimaryKeysOperation, GetCrossReferenceOperation).
_PRIMARY_KEY_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("TABLE_CAT", STRING),
    ("TABLE_SCHEM", STRING),
    ("TABLE_NAME", STRING),
    ("COLUMN_NAME", STRING),
    ("KEQ_SEQ", INT),
    ("PK_NAME", STRING),
)
_CROSS_REFERENCE_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("PKTABLE_CAT", STRING),
    ("PKTABLE_SCHEM", STRING),
    ("PKTABLE_NAME", STRING),
    ("PKCOLUMN_NAME", STRING),
    ("FKTABLE_CAT", STRING),
    ("FKTABLE_SCHEM", STRING),
    ("FKTABLE_NAME", STRING),
    ("FKCOLUMN_NAME", STRING),
    ("KEQ_SEQ", INT),
    ("UPDATE_RULE", INT),
    ("DELETE_RULE", INT),
    ("FK_NAME", STRING),
    ("PK_NAME", STRING),
    ("DEFERRABILITY", INT),
)
# Of ours, for the console.
MOST_FILES = 5_000
_FILE_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("FILE", STRING),
    ("PARTITION", STRING),
    ("BYTES", BIGINT),
    ("ROWS", BIGINT),
    ("HAS_DELETED", BOOLEAN),
)
#: TABLE_TYPE of what GetTables lists.
TABLE_TYPES = ("TABLE", "VIEW")
# java.sql.DatabaseMetaData
_NULLABLE, _SEARCHABLE, _NOT_SEARCHABLE, _KIND_UNKNOWN = 1, 3, 0, 1
_NO_ACTION, _INITIALLY_DEFERRED = 3, 5
# Types of the table that no column of a table can have.
_NO_COLUMNS = frozenset({"INTERVAL"})
_CREATE_PARAMS = {"DECIMAL": "precision,scale", "CHAR": "length", "VARCHAR": "length"}
_QUOTED = {"STRING": "'", "CHAR": "'", "VARCHAR": "'", "DATE": "DATE '", "TIMESTAMP": "TIMESTAMP '", "BINARY": "X'"}


def answer(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    """The rows of one metadata call."""
    rule = _RULES.get(call.kind)
    if rule is None:
        raise ServerError("INTERNAL_ERROR", f"There is no metadata call {call.kind}.")
    return rule(call, catalogs)


def _typed(columns: tuple[tuple[str, DataType], ...]) -> StructType:
    return struct(*(StructField(n, t) for n, t in columns))


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
    rows = [(s, c.name) for c, s in _schemas_of(_chosen(call, catalogs), match)]
    return rows_of("GET_SCHEMAS", _named("TABLE_SCHEM", "TABLE_CATALOG"), _columns_of(rows, 2))


def _columns_of(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(width)]


class Listed(NamedTuple):
    """A table or view by its place; it need not be one that can be opened."""

    catalog: Catalog
    schema: str
    name: str
    is_view: bool
    outline: Any = None

    @property
    def kind(self) -> str:
        return "VIEW" if self.is_view else "TABLE"

    def described(self) -> Any:
        """What has its columns and its comment: an outline, or else the table or view itself.

        None if it was dropped meanwhile. Raises GatewayError.
        """
        if self.is_view:
            return self.catalog.view(self.schema, self.name)
        if self.outline is not None:
            return self.outline
        return self.catalog.outline(self.schema, self.name) or self.catalog.table(self.schema, self.name)


def found(catalogs: Iterable[Catalog], schema: Match, table: Match) -> Iterator[Listed]:
    """Tables and views whose schemas and names match."""
    for catalog, s in _schemas_of(catalogs, schema):
        outlines = catalog.outlines(s)
        tables = ((t, False) for t in [*outlines, *catalog.other_tables(s)])
        for name, is_view in sorted([*tables, *((v, True) for v in catalog.views(s))]):
            if table(name):
                yield Listed(catalog, s, name, is_view, None if is_view else outlines.get(name))


def _schemas_of(catalogs: Iterable[Catalog], match: Match) -> Iterator[tuple[Any, str]]:
    for catalog in catalogs:
        known: dict[str, Any] = {s: catalog for s in catalog.schemas() if match(s)}
        if names_information(match):
            known[SCHEMA] = information_of(catalog.name, SCHEMA, {catalog.name.lower(): catalog})
        yield from ((known[s], s) for s in sorted(known))


# Names that a pattern which means the information schema, by its first letters at least, does not match.
_UNLIKE = ("", "t", "ormation_schema", "a_schema")


def names_information(match: Match) -> bool:
    """Whether a pattern means the information schema: nobody who lists all schemas is told of it."""
    return match(SCHEMA) and not any(map(match, _UNLIKE))


def comment_of(table: Listed) -> str:
    """A table's comment; a table that cannot be opened is still listed."""
    try:
        opened = table.described()
    except GatewayError:
        return ""
    return (opened.comment or "") if opened is not None else ""


def found_columns(
    catalogs: Iterable[Catalog], schema: Match, table: Match
) -> Iterator[tuple[Listed, int, StructField]]:
    """The columns of `found`, with their places from 0. Raises the error of a table that was meant alone."""
    for one, opened in _described(catalogs, schema, table):
        for position, field in enumerate(opened.schema.fields):
            yield one, position, field


def _described(catalogs: Iterable[Catalog], schema: Match, table: Match) -> Iterator[tuple[Listed, Any]]:
    """`found`, with what has their columns. Raises the error of a table that was meant alone."""
    tables = list(found(catalogs, schema, table))
    for one in tables:
        try:
            opened = one.described()
        except GatewayError:
            if len(tables) == 1:
                raise
            continue  # one of many: it is listed, asking for it alone tells what is wrong
        if opened is not None:
            yield one, opened


def measures(data_type: DataType) -> tuple[int | None, int | None, int | None]:
    """Size, digits behind the point and radix as JDBC tells them."""
    row = data_type.row
    if isinstance(data_type, DecimalType):
        return data_type.precision, data_type.scale, row.radix
    if isinstance(data_type, CharType):
        return data_type.length, row.digits, row.radix
    return row.size, row.digits, row.radix


def _tables(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    wanted = {t.upper() for t in call.table_types}
    rows: list[tuple[Any, ...]] = [
        (table.catalog.name, table.schema, table.name, table.kind, comment_of(table), *[None] * 5)
        for table in found(_chosen(call, catalogs), jdbc(call.schema), jdbc(call.table))
        if not wanted or table.kind in wanted
    ]
    if not wanted or "VIEW" in wanted:
        match = jdbc(call.table)
        if call.catalog is None and jdbc(call.schema)(""):
            views = [v for v in call.session.views.values() if match(v.name)]
            rows += [(None, None, v.name, "VIEW", v.comment or "", *[None] * 5) for v in views]
    return rows_of("GET_TABLES", _named(*_TABLE_COLUMNS), _columns_of(rows, len(_TABLE_COLUMNS)))


# In the order of `_told`.
_TOLD = (
    *("COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NUM_PREC_RADIX"),
    *("NULLABLE", "REMARKS", "ORDINAL_POSITION", "IS_NULLABLE"),
)
# Of tables that nobody has changed since they were listed last; and the newest answers over nothing but such tables.
_told_of: WeakKeyDictionary[Outline, list[tuple[Any, ...]]] = WeakKeyDictionary()
_answers: OrderedDict[str | None, tuple[list[tuple[Listed, Any]], Answer]] = OrderedDict()
_MOST_ANSWERS = 4


def _columns(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    """Asked again and again by tools: what is made of the same tables is the same answer."""
    tables = list(_described(_chosen(call, catalogs), jdbc(call.schema), jdbc(call.table)))
    known = _answers.get(call.column)
    if known is not None and known[0] == tables:
        return known[1]
    answer = _columns_of_tables(tables, jdbc(call.column))
    if all(isinstance(opened, Outline) for _, opened in tables):
        _answers[call.column] = tables, answer
        while len(_answers) > _MOST_ANSWERS:
            _answers.popitem(last=False)
    return answer


def _columns_of_tables(described: Iterable[tuple[Listed, Any]], match: Match) -> Answer:
    tables: list[Listed] = []
    rows: list[tuple[Any, ...]] = []
    for table, opened in described:
        told = _told(opened)
        if match is not everything:
            told = [row for row in told if match(row[0])]
        tables += [table] * len(told)
        rows += told
    unknown = [None] * len(rows)
    columns: dict[str, Sequence[Any]] = {
        "TABLE_CAT": [table.catalog.name for table in tables],
        "TABLE_SCHEM": [table.schema for table in tables],
        "TABLE_NAME": [table.name for table in tables],
        "IS_AUTO_INCREMENT": ["NO"] * len(rows),
        **{name: list(map(itemgetter(i), rows)) for i, name in enumerate(_TOLD)},
    }
    return rows_of("GET_COLUMNS", _typed(_COLUMN_COLUMNS), [columns.get(name, unknown) for name, _ in _COLUMN_COLUMNS])


def _told(opened: Any) -> list[tuple[Any, ...]]:
    """What GetColumns tells of the columns of a table or view."""
    known = _told_of.get(opened) if isinstance(opened, Outline) else None
    if known is not None:
        return known
    told = [
        (
            *(field.name, field.type.row.jdbc, field.type.sql, *measures(field.type)),
            *(int(field.nullable), field.comment or "", position, "YES" if field.nullable else "NO"),
        )
        for position, field in enumerate(opened.schema.fields)
    ]
    if isinstance(opened, Outline):
        _told_of[opened] = told
    return told


def _table_types(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    return rows_of("GET_TABLE_TYPES", _named("TABLE_TYPE"), [list(TABLE_TYPES)])


def _type_info(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    rows = [_type_row(t) for t in sorted(TYPES, key=lambda t: t.jdbc) if t.name not in _NO_COLUMNS]
    return rows_of("GET_TYPE_INFO", _typed(_TYPE_COLUMNS), _columns_of(rows, len(_TYPE_COLUMNS)))


def _type_row(row: SqlType) -> tuple[Any, ...]:
    numeric = row.radix is not None
    prefix = _QUOTED.get(row.name)
    largest = row.size if row.name == "DECIMAL" else (row.digits or 0)
    return (
        row.name,
        row.jdbc,
        row.size,
        prefix,
        "'" if prefix is not None else None,
        _CREATE_PARAMS.get(row.name),
        _NULLABLE,
        row.name in ("STRING", "CHAR", "VARCHAR"),
        _NOT_SEARCHABLE if row.name in ("ARRAY", "MAP", "STRUCT", "VARIANT") else _SEARCHABLE,
        not numeric,
        False,
        False,
        None,
        0,
        largest,
        None,
        None,
        row.radix,
    )


def _functions(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    """Functions of the catalogs, and those of the language, which belong to ``system.builtin``."""
    schema, function = jdbc(call.schema), jdbc(call.function)
    rows: list[tuple[Any, ...]] = []
    for catalog in _chosen(call, catalogs):
        for s in catalog.schemas():
            if schema(s):
                rows += [_function_row(catalog.name, s, name) for name in catalog.functions(s) if function(name)]
    if schema("builtin") and (call.catalog is None or jdbc(call.catalog)("system")):
        rows += [_function_row("system", "builtin", name) for name in public_names() if function(name)]
    rows.sort()
    return rows_of("GET_FUNCTIONS", _typed(_FUNCTION_COLUMNS), _columns_of(rows, len(_FUNCTION_COLUMNS)))


def _function_row(catalog: str, schema: str, name: str) -> tuple[Any, ...]:
    return catalog, schema, name, "", _KIND_UNKNOWN, name


def _named_exactly(name: str | None) -> Match:
    """Names of keys' tables are none of patterns."""
    return lambda found: not name or found.lower() == name.lower()


def keyed(catalogs: Iterable[Catalog], schema: Match, table: Match) -> Iterator[tuple[StoredKeys, list[Reference]]]:
    """The keys of tables, with those foreign ones that hold."""
    for catalog in catalogs:
        for s in filter(schema, catalog.schemas()):
            for stored in catalog.all_keys(s):
                if not table(stored.name.table):
                    continue
                try:
                    opened = catalog.table(s, stored.name.table)
                except GatewayError:
                    continue  # asking for that table tells what is wrong
                if opened is not None and (keys := keys_of(catalog, opened)).keys:
                    yield keys, references_of(catalog, keys)


def primary_rows(keys: StoredKeys) -> list[tuple[Any, ...]]:
    """A row for each column of a table's primary key."""
    name, key = keys.name, keys.primary
    if key is None:
        return []
    return [(name.catalog, name.schema, name.table, column, at, key.name) for at, column in enumerate(key.columns, 1)]


def foreign_rows(references: Iterable[Reference]) -> list[tuple[Any, ...]]:
    """A row for each column of foreign keys."""
    return [
        (
            *(one.parent.catalog, one.parent.schema, one.parent.table, parent),
            *(one.table.catalog, one.table.schema, one.table.table, column, at),
            *(_NO_ACTION, _NO_ACTION, one.key.name, one.primary.name, _INITIALLY_DEFERRED),
        )
        for one in references
        for at, (column, parent) in enumerate(zip(one.key.columns, one.primary.columns, strict=True), 1)
    ]


def _primary_keys(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    found = keyed(_chosen(call, catalogs), _named_exactly(call.schema), _named_exactly(call.table))
    rows = [row for keys, _ in found for row in primary_rows(keys)]
    return rows_of("GET_PRIMARY_KEYS", _typed(_PRIMARY_KEY_COLUMNS), _columns_of(rows, len(_PRIMARY_KEY_COLUMNS)))


def _cross_reference(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    found = keyed(_chosen(call, catalogs), _named_exactly(call.schema), _named_exactly(call.table))
    wanted = [_named_exactly(name) for name in call.parent]
    rows = [
        row
        for _, references in found
        for row in foreign_rows(references)
        if all(match(name) for match, name in zip(wanted, row[:3], strict=True))
    ]
    columns = _CROSS_REFERENCE_COLUMNS
    return rows_of("GET_CROSS_REFERENCE", _typed(columns), _columns_of(rows, len(columns)))


def _files(call: MetadataCall, catalogs: Mapping[str, Catalog]) -> Answer:
    """The data files of one Delta table, at most `MOST_FILES` of them, in the order of its log."""
    rows: list[tuple[Any, ...]] = []
    for one in found(_chosen(call, catalogs), _named_exactly(call.schema), _named_exactly(call.table)):
        table = None if one.is_view else one.catalog.table(one.schema, one.name)
        if not isinstance(table, DeltaBoundTable):
            continue
        snapshot = table.snapshot
        files = snapshot.files.only(range(min(MOST_FILES, len(snapshot.files))))
        types = [(name, snapshot.by_name[name].type, files.partitions[name]) for name in snapshot.partition_columns]
        for i, path in enumerate(files.logged):
            values = [f"{name}={value_text(column[i], type_)}" for name, type_, column in types]
            count = int(files.live_rows[i])
            rows.append(
                (path, ", ".join(values), int(files.sizes[i]), None if count < 0 else count, i in files.deleted)
            )
    return rows_of("GET_TABLES", _typed(_FILE_COLUMNS), _columns_of(rows, len(_FILE_COLUMNS)))


Rule = Callable[[MetadataCall, Mapping[str, Catalog]], Answer]
_RULES: dict[str, Rule] = {
    "catalogs": _catalogs,
    "schemas": _schemas,
    "tables": _tables,
    "columns": _columns,
    "table_types": _table_types,
    "type_info": _type_info,
    "functions": _functions,
    "primary_keys": _primary_keys,
    "cross_reference": _cross_reference,
    "files": _files,
}
