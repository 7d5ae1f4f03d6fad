"""Which columns a table may have: their names and types, and those that it is partitioned and clustered by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway import sqltypes as t
from gateway.delta.indexed import TOLD_BY, indexed_paths
from gateway.delta.schema import UnreadableType, holds_char
from gateway.errors import UnsupportedError, UserError

# What Parquet's readers in Spark do not accept in names without column mapping.
_FORBIDDEN_IN_NAMES = frozenset(" ,;{}()\n\t=")
_MOST_CLUSTERED = 4


def partition_columns(schema: t.StructType, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that a table is partitioned by, as it spells them. Raises UserError."""
    by_fold = {f.name.casefold(): f.name for f in schema.fields}
    out = []
    for name in names:
        if name.casefold() not in by_fold:
            text = f"The partition column {t.quote_if_needed(name)} is not in the table."
            raise UserError("COLUMN_NOT_DEFINED_IN_TABLE", text)
        out.append(by_fold[name.casefold()])
    if len(set(out)) != len(out):
        raise UserError("COLUMN_ALREADY_EXISTS", "A partition column is named twice.")
    if out and len(out) == len(schema.fields):
        raise UserError("ALL_PARTITION_COLUMNS_NOT_ALLOWED", "Cannot use all columns for partition columns.")
    return tuple(out)


def check_schema(schema: t.StructType, partition_by: Sequence[str], *, mapped: bool = False) -> None:
    """Raise UserError or UnsupportedError for columns that no table has, and those that none is partitioned by."""
    if not schema.fields:
        raise UnsupportedError("UNSUPPORTED_FEATURE", "A Delta table without columns is not supported.")
    check_fields(schema.fields, mapped=mapped)
    stored = [f.type for f in schema.fields if f.name not in partition_by]
    if stored and all(of == t.VOID for of in stored):
        raise UnsupportedError("UNSUPPORTED_DATATYPE", "A Delta table of VOID columns alone is not supported.")
    for f in schema.fields:
        if f.name in partition_by and (t.is_nested(f.type) or f.type in (t.VARIANT, t.VOID)):
            raise UserError("INVALID_PARTITION_COLUMN_DATA_TYPE", f"Cannot use {f.type.sql} for partition column.")


def check_fields(fields: Sequence[t.StructField], *, mapped: bool = False) -> None:
    """Raise UserError or UnsupportedError for names and types that no column of a table has."""
    _check_fields(fields, mapped)
    found = [
        f"{path}: {'YearMonth' if i.is_year_month else 'DayTime'}IntervalType({_unit(i, i.start)},{_unit(i, i.end)})"
        for f in fields
        for path, i in _intervals(f.name, f.type)
    ]
    if found:
        text = f"Found columns using unsupported data types: [{', '.join(found)}]."
        raise UserError("DELTA_UNSUPPORTED_DATA_TYPES", text)


def _intervals(path: str, data_type: t.DataType) -> Iterator[tuple[str, t.IntervalType]]:
    """The intervals in a type, with their places as Delta names them."""
    match data_type:
        case t.IntervalType():
            yield path, data_type
        case t.StructType():
            for f in data_type.fields:
                yield from _intervals(f"{path}.{f.name}", f.type)
        case t.ArrayType():
            yield from _intervals(f"{path}[]", data_type.element)
        case t.MapType():
            yield from _intervals(f"{path}[key]", data_type.key)
            yield from _intervals(f"{path}[value]", data_type.value)


def _unit(interval: t.IntervalType, unit: str) -> int:
    """The number that Spark has for a unit."""
    return (t.YEAR_MONTH_UNITS if interval.is_year_month else t.DAY_TIME_UNITS).index(unit)


def _check_fields(fields: Sequence[t.StructField], mapped: bool, *, inside: bool = False) -> None:
    seen: set[str] = set()
    for f in fields:
        if not f.name or not (mapped or _FORBIDDEN_IN_NAMES.isdisjoint(f.name)):
            text = f"The column name {f.name!r} holds one of the characters ' ,;{{}}()\\n\\t=', which Delta does not allow."
            raise UserError("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", text)
        if f.name.casefold() in seen:
            raise UserError("COLUMN_ALREADY_EXISTS", f"The column {t.quote_if_needed(f.name)} already exists.")
        seen.add(f.name.casefold())
        _check_not_null(f.name, f.type)
        if t.is_nested(f.type) and holds_char(f.type):
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE", f"CHAR or VARCHAR inside of column {f.name} is not supported."
            )
        if f.type != t.VOID or inside or not f.nullable:  # a column of NULLs is in the schema, and in no file
            _check_type(f.name, f.type, mapped)


def _check_type(name: str, data_type: t.DataType, mapped: bool) -> None:
    if data_type == t.VOID or isinstance(data_type, UnreadableType):
        text = f"A column of type {data_type.sql} ({t.quote_if_needed(name)}) cannot be stored in a Delta table."
        raise UnsupportedError("UNSUPPORTED_DATATYPE", text)
    if isinstance(data_type, t.StructType):
        if not data_type.fields:
            raise UnsupportedError("UNSUPPORTED_DATATYPE", f"Column {name}: a STRUCT without fields cannot be stored.")
        _check_fields(data_type.fields, mapped, inside=True)
        return
    for child in data_type.children():
        _check_type(name, child, mapped)


def _check_not_null(path: str, data_type: t.DataType) -> None:
    """Raise UserError DELTA_NESTED_NOT_NULL_CONSTRAINT for fields within elements, keys or values that are NOT NULL.

    Raises UnsupportedError for such elements and values themselves; no writer looks for either.
    """
    if isinstance(data_type, t.StructType):
        for f in data_type.fields:
            _check_not_null(f"{path}.{f.name}", f.type)
        return
    parts = ("element",) if isinstance(data_type, t.ArrayType) else ("key", "value")
    for part, of in zip(parts, data_type.children(), strict=False):
        if nested_not_null(of):
            text = (
                f"The {part} type of the field {path} contains a NOT NULL constraint. Delta does not support NOT NULL "
                f"constraints nested within arrays or maps. Parsed {part} type: {of.sql}"
            )
            raise UserError("DELTA_NESTED_NOT_NULL_CONSTRAINT", text)
    if nested_not_null(data_type):
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"NOT NULL of what is in {path} is not supported.")


def nested_not_null(data_type: t.DataType) -> bool:
    """Whether a nested field, element or value is NOT NULL."""
    match data_type:
        case t.StructType():
            return any(not f.nullable or nested_not_null(f.type) for f in data_type.fields)
        case t.ArrayType():
            return not data_type.contains_null or nested_not_null(data_type.element)
        case t.MapType():
            return not data_type.value_contains_null or any(nested_not_null(c) for c in data_type.children())
    return False


# ---- clustering


def check_clustering(schema: t.StructType, paths: Sequence[Sequence[str]], properties: Mapping[str, str]) -> None:
    """Raise UserError for columns, as paths of their names, that no table with `schema` is clustered by."""
    bad = []
    for path in paths:
        found = _type_at(schema, path)
        if found is None:
            text = f"Invalid partitioning: {_shown(path)} is missing or is in a map or array."
            raise UserError("UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED", text)
        if t.is_nested(found) or found.name not in TOLD_BY:
            bad.append(f"{'.'.join(path)} : {found.sql}")
    if len(paths) > _MOST_CLUSTERED:
        text = f"CLUSTER BY supports up to {_MOST_CLUSTERED} clustering columns, but the table has {len(paths)}."
        raise UserError("DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", text)
    twice = sorted({_shown(path) for at, path in enumerate(paths) if path in paths[:at]})
    if twice:
        text = f"Found duplicate column(s): {', '.join(twice)}. The duplicate was found in CLUSTER BY."
        raise UserError("DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY", text)
    if bad:
        text = f"CLUSTER BY is not supported because the following column(s): {', '.join(bad)} don't support data skipping."
        raise UserError("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", text)
    known = indexed_paths(schema, (), properties)
    unknown = [path for path in paths if tuple(path) not in known]
    if unknown:
        text = "Clustering requires clustering columns to have stats. Couldn't find clustering column(s) "
        raise UserError("DELTA_CLUSTERING_COLUMN_MISSING_STATS", f"{text}'{', '.join(map('.'.join, unknown))}'.")


def _shown(path: Sequence[str]) -> str:
    return ".".join(f"`{name}`" for name in path)


def _type_at(schema: t.DataType, path: Sequence[str]) -> t.DataType | None:
    for name in path:
        fields = schema.fields if isinstance(schema, t.StructType) else ()
        found = next((f.type for f in fields if f.name == name), None)
        if found is None:
            return None
        schema = found
    return schema
