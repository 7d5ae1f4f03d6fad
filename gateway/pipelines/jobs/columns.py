"""Schemas of what is loaded against that of the table: which columns are new, which types take which values unchanged.

Types are pyspark's. Names match case-insensitively, as in Spark; the table's spelling wins.
"""

from __future__ import annotations

from typing import Any

from gateway.engine.spark.session import first_line
from gateway.errors import ConfigError

_INTEGRALS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # with the digits of the largest value
_EXACT_IN_DOUBLE = ("tinyint", "smallint", "int", "float")
_EXACT_IN_FLOAT = ("tinyint", "smallint")


def parse_schema(text: str) -> Any:
    """The StructType of a DDL text, ``id INT, name STRING``; needs a Spark session. Raises ConfigError."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise ConfigError("schema", f"'{text}' is not a list of columns: {first_line(error)}") from error
    if not isinstance(schema, StructType) or not schema.fields:
        raise ConfigError("schema", f"'{text}' has no columns")
    check_names([f.name for f in schema.fields], "the schema")
    return schema


def check_names(names: list[str], where: str) -> None:
    """Raise ConfigError if a name is empty or appears twice."""
    seen: set[str] = set()
    for name in names:
        if not name.strip():
            raise ConfigError("columns", f"{where} has a column without a name")
        if name.lower() in seen:
            raise ConfigError("columns", f"{where} has the column '{name}' twice")
        seen.add(name.lower())


def by_name(schema: Any) -> dict[str, Any]:
    """Fields by lower-case name."""
    return {f.name.lower(): f for f in schema.fields}


def check_given(given: Any, table: Any, name: str, *, evolve: bool) -> None:
    """Raise ConfigError if the schema `given` has columns that the table `name` lacks, or that cannot hold its values."""
    known = by_name(table)
    for field in given.fields:
        own = known.get(field.name.lower())
        if own is None and not evolve:
            raise ConfigError("schema", f"{name} has no column '{field.name}': --evolve adds it")
        if own is not None and not _takes(field.dataType, own.dataType):
            types = f"{own.dataType.simpleString()} in {name}, not {field.dataType.simpleString()}"
            raise ConfigError("schema", f"the column '{own.name}' is {types}")


def _takes(source: Any, target: Any) -> bool:
    """Whether values of `source` are ones of `target`; nested ones are looked at as they are loaded."""
    return source.typeName() == target.typeName() in ("struct", "array", "map") or is_lossless(source, target)


def merged(table: Any, found: Any, path: str = "") -> tuple[Any, list[str]]:
    """The struct `table` with the fields of `found` that it lacks, at any depth, and their dotted names.

    Types of fields that both have are the table's, unless both are nested in the same way.
    """
    from pyspark.sql.types import StructField, StructType

    known = by_name(table)
    news: list[str] = []
    fields = dict(known)
    for field in found.fields:
        name = field.name.lower()
        if name not in known:
            fields[name] = StructField(field.name, field.dataType, True)
            news.append(path + field.name)
            continue
        own = known[name]
        kind, inner = _merged_type(own.dataType, field.dataType, f"{path}{own.name}.")
        if inner:
            fields[name] = StructField(own.name, kind, own.nullable, own.metadata)
            news += inner
    return StructType(list(fields.values())), news


def _merged_type(table: Any, found: Any, path: str) -> tuple[Any, list[str]]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(table, StructType) and isinstance(found, StructType):
        return merged(table, found, path)
    if isinstance(table, ArrayType) and isinstance(found, ArrayType):
        kind, news = _merged_type(table.elementType, found.elementType, f"{path}element.")
        return ArrayType(kind, table.containsNull), news
    if isinstance(table, MapType) and isinstance(found, MapType):
        kind, news = _merged_type(table.valueType, found.valueType, f"{path}value.")
        return MapType(table.keyType, kind, table.valueContainsNull), news
    return table, []


def widest(left: Any, right: Any) -> Any:
    """A type for the values of both, as files that are read as text need it: STRING if nothing else fits."""
    from pyspark.sql.types import DoubleType, NullType, StringType, StructType

    if left == right or isinstance(right, NullType):
        return left
    if isinstance(left, NullType):
        return right
    if isinstance(left, StructType) and isinstance(right, StructType):
        return merged(left, right)[0]
    for small, large in ((left, right), (right, left)):
        if is_lossless(small, large):
            return large
    numbers = (*_INTEGRALS, "float", "double", "decimal")
    if all(t.typeName() in numbers or t.simpleString() in numbers for t in (left, right)):
        return DoubleType()
    return StringType()


def is_lossless(source: Any, target: Any) -> bool:
    """Whether every value of `source` is a value of `target` (not so for nested types that differ)."""
    a, b = str(source.simpleString()), str(target.simpleString())
    if a == b or a == "void":
        return True
    if a in _INTEGRALS and b in _INTEGRALS:
        return _INTEGRALS[a] <= _INTEGRALS[b]
    if b == "double":
        return a in _EXACT_IN_DOUBLE
    if b == "float":
        return a in _EXACT_IN_FLOAT
    if b.startswith("decimal"):
        whole = int(target.precision - target.scale)
        if a in _INTEGRALS:
            return whole >= _INTEGRALS[a]
        if a.startswith("decimal"):
            return whole >= int(source.precision - source.scale) and int(target.scale) >= int(source.scale)
    if b == "string":
        return a.startswith(("char", "varchar"))
    return a == "date" and b == "timestamp_ntz"


def can_widen(source: Any, target: Any) -> bool:
    """Whether Delta changes a column of type `source` to `target` without rewriting its files."""
    a, b = str(source.simpleString()), str(target.simpleString())
    if a == b:
        return False
    if a in _INTEGRALS and b in _INTEGRALS:
        return _INTEGRALS[a] < _INTEGRALS[b]
    if b == "double":
        return a in _EXACT_IN_DOUBLE
    if b.startswith("decimal"):
        if a in _INTEGRALS:
            return int(target.precision - target.scale) >= (20 if a == "bigint" else 10)
        return a.startswith("decimal") and is_lossless(source, target)
    return a == "date" and b == "timestamp_ntz"


def type_at(schema: Any, parts: list[str]) -> Any:
    """The type of a column or nested field (of arrays ``element``, of maps ``key`` and ``value``); None if there is none."""
    kind = schema
    for part in parts:
        match kind.typeName(), part.lower():
            case "struct", name:
                field = by_name(kind).get(name)
                kind = None if field is None else field.dataType
            case "array", "element":
                kind = kind.elementType
            case "map", "key":
                kind = kind.keyType
            case "map", "value":
                kind = kind.valueType
            case _:
                kind = None
        if kind is None:
            return None
    return kind
