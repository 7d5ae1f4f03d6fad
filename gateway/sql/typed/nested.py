"""Which arrays, structs and maps of different types are compared: inside of them Spark widens numbers, but reads no text."""

from __future__ import annotations

from gateway.sql.typed.common_types import plain
from gateway.sqltypes import (
    BIGINT,
    INT,
    SMALLINT,
    TINYINT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructType,
    is_datetime,
    is_fractional,
    is_integral,
    is_nested,
)

_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def are_compared(a: DataType, b: DataType) -> bool:
    """Whether values of two types with a common one are compared as they are; of types that stand alone, all are."""
    return not is_nested(a) or not is_nested(b) or _meet(a, b)


def _meet(a: DataType, b: DataType) -> bool:
    a, b = plain(a), plain(b)
    if a == b or VOID in (a, b):
        return True
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return _meet(a.element, b.element)
    if isinstance(a, StructType) and isinstance(b, StructType):
        return all(_meet(f.type, g.type) for f, g in zip(a.fields, b.fields, strict=True))
    if isinstance(a, MapType) and isinstance(b, MapType):
        return _meet(a.key, b.key) and _meet(a.value, b.value)
    if isinstance(a, DecimalType) or isinstance(b, DecimalType):
        return _holds(a, b) or _holds(b, a)
    numbers = all(is_integral(t) or is_fractional(t) for t in (a, b))
    return (
        numbers or (is_datetime(a) and is_datetime(b)) or (isinstance(a, IntervalType) and isinstance(b, IntervalType))
    )


def _holds(a: DataType, b: DataType) -> bool:
    """Whether `a` is a decimal with room for all digits of the integral `b`."""
    return isinstance(a, DecimalType) and is_integral(b) and a.precision - a.scale >= _DIGITS[b]
