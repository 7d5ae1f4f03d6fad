"""Constants as literals of Spark's grammar that have exactly their type and value."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa

from gateway.errors import unsupported
from gateway.sql.bind import literals
from gateway.sql.bind.parameters import Given
from gateway.sql.typed.nodes import Lit
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructType,
    quoted_text,
)

_SUFFIXES: dict[DataType, str] = {TINYINT: "Y", SMALLINT: "S", INT: "", BIGINT: "L"}
_LOWEST: dict[DataType, int] = {TINYINT: -(1 << 7), SMALLINT: -(1 << 15), INT: -(1 << 31), BIGINT: -(1 << 63)}


def spark_literal(literal: Lit) -> str:
    """Text that Spark reads as `literal`. Raises UnsupportedError for a type that has no literal."""
    value, type_ = literal.value, literal.type
    if value is None:
        return "NULL" if type_ == VOID else f"CAST(NULL AS {type_.sql})"
    if type_ == STRING:
        return quoted_text(value)
    if type_ == BOOLEAN:
        return "true" if value else "false"
    if type_ in _SUFFIXES:
        if value == _LOWEST[type_]:  # its digits alone would not fit
            return f"CAST('{value}' AS {type_.sql})"
        return f"{value}{_SUFFIXES[type_]}"
    if type_ in (DOUBLE, FLOAT):
        if not math.isfinite(value):
            return f"CAST('{literals.java_double(value, type_ == FLOAT)}' AS {type_.sql})"
        return f"{value!r}{'F' if type_ == FLOAT else 'D'}"
    if isinstance(type_, DecimalType):
        return _decimal(value, type_)
    if type_ == BINARY:
        return f"X'{bytes(value).hex().upper()}'"
    if type_ == DATE:
        return f"DATE'{literals.date_text(value)}'"
    if type_ == TIMESTAMP:
        return f"TIMESTAMP_LTZ'{literals.timestamp_text(value, 'UTC')}Z'"
    if type_ == TIMESTAMP_NTZ:
        return f"TIMESTAMP_NTZ'{literals.timestamp_text(value, 'UTC')}'"
    if isinstance(type_, IntervalType):
        return literals.interval_display(value, type_)
    raise unsupported(f"a value of type {type_.sql} in a statement for Spark")


def spark_given(given: Given) -> str:
    """Text that Spark reads as the value of a parameter. Raises as `spark_literal`."""
    if isinstance(given, Lit):
        return spark_literal(given)
    return f"{given.function}({', '.join(map(spark_given, given.items))})"


def spark_value(scalar: pa.Scalar, type_: DataType) -> str:
    """Text that Spark reads as an Arrow scalar of `type_`, nested ones included. Raises as `spark_literal`."""
    if not scalar.is_valid:
        return f"CAST(NULL AS {type_.sql})"
    if isinstance(type_, ArrayType):
        items = ", ".join(spark_value(item, type_.element) for item in scalar)
        return f"CAST(array({items}) AS {type_.sql})"
    if isinstance(type_, MapType):
        entries = scalar.values  # structs of a key and a value
        pairs = zip(entries.field(0), entries.field(1), strict=True)
        named = ", ".join(f"{spark_value(k, type_.key)}, {spark_value(v, type_.value)}" for k, v in pairs)
        return f"CAST(map({named}) AS {type_.sql})"
    if isinstance(type_, StructType):
        fields = zip(scalar.values(), type_.fields, strict=True)
        named = ", ".join(f"{quoted_text(f.name)}, {spark_value(value, f.type)}" for value, f in fields)
        return f"CAST(named_struct({named}) AS {type_.sql})"
    value = (
        scalar.value if isinstance(scalar, (pa.Date32Scalar, pa.TimestampScalar, pa.DurationScalar)) else scalar.as_py()
    )
    return spark_literal(Lit(type_, False, value))


def _decimal(value: Decimal, type_: DecimalType) -> str:
    text = f"{value:f}"
    digits = value.as_tuple()
    exponent = digits.exponent if isinstance(digits.exponent, int) else 0
    own = (max(len(digits.digits), -exponent), max(-exponent, 0))
    if own == (type_.precision, type_.scale):
        return f"{text}BD"
    return f"CAST('{text}' AS {type_.sql})"
