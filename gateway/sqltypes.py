"""THE type table: SQL name, JSON name, Arrow type, Thrift type, column slot, JDBC code, sizes.

`TYPES` has one row per Databricks type; a `DataType` is a row plus its parameters (precision, element, fields …).
Everything else (Thrift descriptors, Arrow schemas, GetColumns rows, DDL text) is derived from the two. Thrift names are
strings here, `protocol/convert.py` resolves them, so that this module imports no generated code.

Arrow types are those used *inside* (engine, spool): ANSI intervals travel as plain integers (months as int32, microseconds
as int64) because Arrow's year-month interval does not exist in pyarrow; encodings turn them into what a client asked for.
Columns that the engine reads hold texts as views (`DataType.scanned`), and what it gives is plain again. Bytes are no views:
DataFusion 55 does not bring those together with plain ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from gateway.errors import UnsupportedError


class Slot(StrEnum):
    """The arms of the Thrift union TColumn."""

    BOOL = "boolVal"
    BYTE = "byteVal"
    I16 = "i16Val"
    I32 = "i32Val"
    I64 = "i64Val"
    DOUBLE = "doubleVal"
    STRING = "stringVal"
    BINARY = "binaryVal"


@dataclass(frozen=True, slots=True)
class SqlType:
    """One row of the type table.

    `arrow` is None where parameters decide; `view` is what the engine reads instead, where that is another. `jdbc` is the
    java.sql.Types code, `size` COLUMN_SIZE and `digits` DECIMAL_DIGITS of GetColumns / GetTypeInfo (None: not applicable),
    `radix` NUM_PREC_RADIX.
    """

    name: str
    json: str
    arrow: pa.DataType | None
    thrift: str
    slot: Slot
    jdbc: int
    size: int | None
    digits: int | None
    radix: int | None
    view: pa.DataType | None = None


_TEXT = pa.string_view()

TYPES: tuple[SqlType, ...] = (
    SqlType("VOID", "void", pa.null(), "STRING_TYPE", Slot.STRING, 0, None, None, None),
    SqlType("BOOLEAN", "boolean", pa.bool_(), "BOOLEAN_TYPE", Slot.BOOL, 16, 1, None, None),
    SqlType("TINYINT", "byte", pa.int8(), "TINYINT_TYPE", Slot.BYTE, -6, 3, 0, 10),
    SqlType("SMALLINT", "short", pa.int16(), "SMALLINT_TYPE", Slot.I16, 5, 5, 0, 10),
    SqlType("INT", "integer", pa.int32(), "INT_TYPE", Slot.I32, 4, 10, 0, 10),
    SqlType("BIGINT", "long", pa.int64(), "BIGINT_TYPE", Slot.I64, -5, 19, 0, 10),
    SqlType("FLOAT", "float", pa.float32(), "FLOAT_TYPE", Slot.DOUBLE, 6, 7, 7, 10),
    SqlType("DOUBLE", "double", pa.float64(), "DOUBLE_TYPE", Slot.DOUBLE, 8, 15, 15, 10),
    SqlType("DECIMAL", "decimal", None, "DECIMAL_TYPE", Slot.STRING, 3, 38, 38, 10),
    SqlType("STRING", "string", pa.string(), "STRING_TYPE", Slot.STRING, 12, 2147483647, None, None, _TEXT),
    SqlType("VARCHAR", "varchar", pa.string(), "STRING_TYPE", Slot.STRING, 12, None, None, None, _TEXT),
    SqlType("CHAR", "char", pa.string(), "STRING_TYPE", Slot.STRING, 1, None, None, None, _TEXT),
    SqlType("BINARY", "binary", pa.binary(), "BINARY_TYPE", Slot.BINARY, -2, 2147483647, None, None),
    SqlType("DATE", "date", pa.date32(), "DATE_TYPE", Slot.STRING, 91, 10, None, None),
    SqlType("TIMESTAMP", "timestamp", pa.timestamp("us", "UTC"), "TIMESTAMP_TYPE", Slot.STRING, 93, 29, 6, None),
    SqlType("TIMESTAMP_NTZ", "timestamp_ntz", pa.timestamp("us"), "TIMESTAMP_TYPE", Slot.STRING, 93, 29, 6, None),
    SqlType("INTERVAL YEAR TO MONTH", "interval", pa.int32(), "STRING_TYPE", Slot.STRING, 1111, None, None, None),
    SqlType("INTERVAL DAY TO SECOND", "interval", pa.int64(), "STRING_TYPE", Slot.STRING, 1111, None, None, None),
    SqlType("VARIANT", "variant", pa.string(), "STRING_TYPE", Slot.STRING, 1111, None, None, None, _TEXT),
    SqlType("INTERVAL", "interval", pa.string(), "STRING_TYPE", Slot.STRING, 1111, None, None, None, _TEXT),
    SqlType("ARRAY", "array", None, "ARRAY_TYPE", Slot.STRING, 2003, None, None, None),
    SqlType("MAP", "map", None, "MAP_TYPE", Slot.STRING, 2000, None, None, None),
    SqlType("STRUCT", "struct", None, "STRUCT_TYPE", Slot.STRING, 2002, None, None, None),
)

ROWS: dict[str, SqlType] = {row.name: row for row in TYPES}


@dataclass(frozen=True, slots=True)
class DataType:
    """A type without parameters; subclasses add them. Equality is structural."""

    name: str

    @property
    def row(self) -> SqlType:
        """The row of the type table."""
        return ROWS[self.name]

    @property
    def sql(self) -> str:
        """Text as in DDL and error messages: ``DECIMAL(10,2)``, ``ARRAY<INT>``."""
        return self.name

    @property
    def simple(self) -> str:
        """Spark's simpleString, lower case: ``decimal(10,2)``, ``array<int>``."""
        return self.name.lower()

    def json(self) -> Any:
        """Spark's JSON form of the type (a string, or a dict for nested types)."""
        return self.row.json

    def arrow(self) -> pa.DataType:
        """Arrow type inside the gateway."""
        arrow = self.row.arrow
        if arrow is None:  # pragma: no cover - subclasses override
            raise TypeError(self.name)
        return arrow

    def scanned(self) -> pa.DataType:
        """Arrow type of a column that the engine reads: texts as views, but for those inside nested types."""
        return self.row.view or self.arrow()

    def children(self) -> Iterator[DataType]:
        """Direct element types of a nested type."""
        return iter(())

    def __str__(self) -> str:
        return self.simple


@dataclass(frozen=True, slots=True)
class DecimalType(DataType):
    """DECIMAL(precision 1..38, scale 0..precision)."""

    precision: int
    scale: int

    @property
    def sql(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def simple(self) -> str:
        return f"decimal({self.precision},{self.scale})"

    def json(self) -> Any:
        return self.simple

    def arrow(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale)


@dataclass(frozen=True, slots=True)
class CharType(DataType):
    """CHAR(n) or VARCHAR(n) of a table column; behaves as STRING in expressions."""

    length: int

    @property
    def sql(self) -> str:
        return f"{self.name}({self.length})"

    @property
    def simple(self) -> str:
        return f"{self.name.lower()}({self.length})"

    def json(self) -> Any:
        return self.simple


YEAR_MONTH_UNITS = ("year", "month")
DAY_TIME_UNITS = ("day", "hour", "minute", "second")


@dataclass(frozen=True, slots=True)
class IntervalType(DataType):
    """ANSI interval; `start` and `end` are units of one family, ``interval day to second``."""

    start: str
    end: str

    @property
    def sql(self) -> str:
        return self.simple.upper()

    @property
    def simple(self) -> str:
        return f"interval {self.start}" if self.start == self.end else f"interval {self.start} to {self.end}"

    def json(self) -> Any:
        return self.simple

    @property
    def is_year_month(self) -> bool:
        return self.start in YEAR_MONTH_UNITS


@dataclass(frozen=True, slots=True)
class ArrayType(DataType):
    """ARRAY<element>; `contains_null` says whether elements may be NULL."""

    element: DataType
    contains_null: bool = True

    @property
    def sql(self) -> str:
        return f"ARRAY<{self.element.sql}>"

    @property
    def simple(self) -> str:
        return f"array<{self.element.simple}>"

    def json(self) -> Any:
        return {"type": "array", "elementType": self.element.json(), "containsNull": self.contains_null}

    def arrow(self) -> pa.DataType:
        return pa.list_(pa.field("item", self.element.arrow()))

    def children(self) -> Iterator[DataType]:
        yield self.element


@dataclass(frozen=True, slots=True)
class MapType(DataType):
    """MAP<key, value>; keys are never NULL."""

    key: DataType
    value: DataType
    value_contains_null: bool = True

    @property
    def sql(self) -> str:
        return f"MAP<{self.key.sql}, {self.value.sql}>"

    @property
    def simple(self) -> str:
        return f"map<{self.key.simple},{self.value.simple}>"

    def json(self) -> Any:
        return {
            "type": "map",
            "keyType": self.key.json(),
            "valueType": self.value.json(),
            "valueContainsNull": self.value_contains_null,
        }

    def arrow(self) -> pa.DataType:
        if self.key == VOID:  # Arrow's keys are never NULL
            raise UnsupportedError("UNSUPPORTED_DATATYPE", f"Values of the type {self.sql} are not supported.")
        return pa.map_(pa.field("key", self.key.arrow(), nullable=False), pa.field("value", self.value.arrow()))

    def children(self) -> Iterator[DataType]:
        yield self.key
        yield self.value


@dataclass(frozen=True, slots=True)
class StructField:
    """A named field of a STRUCT, a table or a result."""

    name: str
    type: DataType
    nullable: bool = True
    comment: str | None = None

    def json(self) -> Any:
        metadata = {"comment": self.comment} if self.comment else {}
        return {"name": self.name, "type": self.type.json(), "nullable": self.nullable, "metadata": metadata}


@dataclass(frozen=True, slots=True)
class StructType(DataType):
    """STRUCT<name: type, …>; also the schema of a table or a result."""

    fields: tuple[StructField, ...]

    @property
    def sql(self) -> str:
        inner = ", ".join(
            f"{quote_if_needed(f.name)}: {f.type.sql}{'' if f.nullable else ' NOT NULL'}" for f in self.fields
        )
        return f"STRUCT<{inner}>"

    @property
    def simple(self) -> str:
        return "struct<" + ",".join(f"{f.name}:{f.type.simple}" for f in self.fields) + ">"

    def json(self) -> Any:
        return {"type": "struct", "fields": [f.json() for f in self.fields]}

    def arrow(self) -> pa.DataType:
        return pa.struct([pa.field(f.name, f.type.arrow()) for f in self.fields])

    def children(self) -> Iterator[DataType]:
        for field in self.fields:
            yield field.type


VOID = DataType("VOID")
BOOLEAN = DataType("BOOLEAN")
TINYINT = DataType("TINYINT")
SMALLINT = DataType("SMALLINT")
INT = DataType("INT")
BIGINT = DataType("BIGINT")
FLOAT = DataType("FLOAT")
DOUBLE = DataType("DOUBLE")
STRING = DataType("STRING")
BINARY = DataType("BINARY")
DATE = DataType("DATE")
TIMESTAMP = DataType("TIMESTAMP")
TIMESTAMP_NTZ = DataType("TIMESTAMP_NTZ")
VARIANT = DataType("VARIANT")
INTERVAL = DataType("INTERVAL")

INTEGRALS = (TINYINT, SMALLINT, INT, BIGINT)
FRACTIONALS = (FLOAT, DOUBLE)
MAX_PRECISION = 38
#: Texts that are a BOOLEAN, in lower case and without blanks around.
TRUTHS = dict.fromkeys(("true", "t", "yes", "y", "1"), True) | dict.fromkeys(("false", "f", "no", "n", "0"), False)

# Names tell types without parameters apart, and comparing them is quicker.
_INTEGRAL_NAMES = frozenset(t.name for t in INTEGRALS)
_FRACTIONAL_NAMES = frozenset(t.name for t in FRACTIONALS)


def decimal(precision: int, scale: int) -> DecimalType:
    """DECIMAL(precision, scale)."""
    return DecimalType("DECIMAL", precision, scale)


def array(element: DataType, contains_null: bool = True) -> ArrayType:
    """ARRAY<element>."""
    return ArrayType("ARRAY", element, contains_null)


def map_of(key: DataType, value: DataType, value_contains_null: bool = True) -> MapType:
    """MAP<key, value>."""
    return MapType("MAP", key, value, value_contains_null)


def struct(*fields: StructField) -> StructType:
    """STRUCT of `fields`."""
    return StructType("STRUCT", fields)


def char(length: int) -> CharType:
    """CHAR(length)."""
    return CharType("CHAR", length)


def varchar(length: int) -> CharType:
    """VARCHAR(length)."""
    return CharType("VARCHAR", length)


def interval(start: str, end: str | None = None) -> IntervalType:
    """ANSI interval from unit `start` to unit `end` (lower case, singular)."""
    family = "INTERVAL YEAR TO MONTH" if start in YEAR_MONTH_UNITS else "INTERVAL DAY TO SECOND"
    return IntervalType(family, start, end or start)


YEAR_MONTH = interval("year", "month")
DAY_TIME = interval("day", "second")


def is_integral(t: DataType) -> bool:
    return t.name in _INTEGRAL_NAMES


def is_decimal(t: DataType) -> bool:
    return isinstance(t, DecimalType)


def is_fractional(t: DataType) -> bool:
    return t.name in _FRACTIONAL_NAMES


def is_numeric(t: DataType) -> bool:
    return isinstance(t, DecimalType) or is_integral(t) or is_fractional(t)


def travels_as_text(t: DataType) -> bool:
    """Whether values are text inside the gateway too: VARIANT its JSON, INTERVAL (of no family) Spark's words for it."""
    return is_string(t) or t in (VARIANT, INTERVAL)


def is_string(t: DataType) -> bool:
    return t == STRING or isinstance(t, CharType)


def is_interval(t: DataType) -> bool:
    return isinstance(t, IntervalType)


def has_map(t: DataType) -> bool:
    """A map, or something with one inside: neither ordered nor comparable."""
    return isinstance(t, MapType) or (is_nested(t) and any(map(has_map, t.children())))


def has_variant(t: DataType) -> bool:
    """A VARIANT, or something with one inside."""
    return any(map(has_variant, t.children())) if is_nested(t) else t == VARIANT


def is_orderable(t: DataType) -> bool:
    """Whether values are told apart, compared and sorted."""
    return not has_map(t) and not has_variant(t)


def is_nested(t: DataType) -> bool:
    return isinstance(t, (ArrayType, MapType, StructType))


def is_datetime(t: DataType) -> bool:
    return t in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def quote_if_needed(name: str) -> str:
    """The identifier as Spark prints it in messages: back-quoted unless plain."""
    if name.isascii() and (name[:1].isalpha() or name[:1] == "_") and all(c.isalnum() or c == "_" for c in name):
        return name
    return quote_part(name)


def quote_part(name: str) -> str:
    """The identifier in back quotes, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(value: str) -> str:
    """A string literal: backslashes and quotes escaped, as Spark's parser undoes them."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
