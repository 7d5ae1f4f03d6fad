"""Common types: the one in which two values meet, decimals of operators, as pure functions of types.

Source: Spark's AnsiTypeCoercion as measured for 529 ordered type pairs in 18 contexts (tests/data/coercion.csv is the truth).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_UNITS,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRALS,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    VOID,
    YEAR_MONTH_UNITS,
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructField,
    StructType,
    array,
    decimal,
    interval,
    is_datetime,
    is_fractional,
    is_integral,
    is_nested,
    is_numeric,
    map_of,
    struct,
)

_INTEGRAL_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def plain(t: DataType) -> DataType:
    """CHAR and VARCHAR as they behave in expressions: STRING (also inside nested types)."""
    if type(t) is DataType:  # without parameters, as most are
        return t
    if isinstance(t, CharType):
        return STRING
    if isinstance(t, ArrayType):
        return array(plain(t.element), t.contains_null)
    if isinstance(t, MapType):
        return map_of(plain(t.key), plain(t.value), t.value_contains_null)
    if isinstance(t, StructType):
        return struct(*(StructField(f.name, plain(f.type), f.nullable, f.comment) for f in t.fields))
    return t


def nullable_inside(t: DataType) -> DataType:
    """The type with everything inside of it nullable, and without comments."""
    if isinstance(t, ArrayType):
        return array(nullable_inside(t.element), True)
    if isinstance(t, MapType):
        return map_of(nullable_inside(t.key), nullable_inside(t.value), True)
    if isinstance(t, StructType):
        return struct(*(StructField(f.name, nullable_inside(f.type), True) for f in t.fields))
    return t


def decimal_for(t: DataType) -> DecimalType:
    """The decimal that holds every value of an integral type; a decimal itself."""
    if isinstance(t, DecimalType):
        return t
    return decimal(_INTEGRAL_DIGITS[t], 0)


def decimal_for_literal(value: int) -> DecimalType:
    """The decimal of an integer literal in decimal arithmetic: its own digits."""
    return decimal(len(str(abs(value))), 0)


def bounded(precision: int, scale: int) -> DecimalType:
    """Least common decimal beyond 38 digits keeps the integer digits."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    return decimal(MAX_PRECISION, max(0, scale - (precision - MAX_PRECISION)))


def _adjusted(precision: int, scale: int) -> DecimalType:
    """Result of decimal arithmetic beyond 38 digits: at least min(scale, 6) fractional digits stay."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    digits = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - digits, min(scale, 6)))


def wider_decimal(a: DecimalType, b: DecimalType) -> DecimalType:
    """The decimal that both fit in."""
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale)
    return bounded(digits + scale, scale)


def _capped(precision: int, scale: int) -> DecimalType:
    """Result of decimal arithmetic without precision loss: the exact type, cut at 38."""
    return decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def arithmetic_decimal(symbol: str, a: DecimalType, b: DecimalType, precision_loss: bool = True) -> DecimalType:
    """Result type of ``a symbol b`` for + - * / %, as Spark has it."""
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    if not precision_loss and symbol == "/":
        digits, fraction = min(MAX_PRECISION, p1 - s1 + s2), min(MAX_PRECISION, max(6, s1 + p2 + 1))
        excess = digits + fraction - MAX_PRECISION
        if excess > 0:
            fraction -= excess // 2 + 1
            digits = MAX_PRECISION - fraction
        return _capped(digits + fraction, fraction)
    adjusted = _adjusted if precision_loss else _capped
    if symbol in ("+", "-"):
        scale = max(s1, s2)
        return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if symbol == "*":
        return adjusted(p1 + p2 + 1, s1 + s2)
    if symbol == "/":
        scale = max(6, s1 + p2 + 1)
        return adjusted(p1 - s1 + s2 + scale, scale)
    if symbol == "%":
        scale = max(s1, s2)
        return adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    raise ValueError(symbol)


def _widen_interval(a: IntervalType, b: IntervalType) -> IntervalType | None:
    if a.is_year_month != b.is_year_month:
        return None
    units = YEAR_MONTH_UNITS if a.is_year_month else DAY_TIME_UNITS
    start = min(units.index(a.start), units.index(b.start))
    end = max(units.index(a.end), units.index(b.end))
    return interval(units[start], units[end])


def least_common_type(a: DataType, b: DataType) -> DataType | None:
    """The type in which two values meet (coalesce, CASE, IN, comparisons, set operations); None if there is none."""
    a, b = plain(a), plain(b)
    if a == b:
        return a
    if a == VOID:
        return b
    if b == VOID:
        return a
    if is_numeric(a) and is_numeric(b):
        return _numeric(a, b)
    if a == STRING or b == STRING:
        return _with_string(b if a == STRING else a)
    if is_datetime(a) and is_datetime(b):
        return TIMESTAMP if TIMESTAMP in (a, b) else TIMESTAMP_NTZ
    if isinstance(a, IntervalType) and isinstance(b, IntervalType):
        return _widen_interval(a, b)
    return _nested(a, b)


def _numeric(a: DataType, b: DataType) -> DataType:
    if is_integral(a) and is_integral(b):
        return INTEGRALS[max(INTEGRALS.index(a), INTEGRALS.index(b))]
    if is_fractional(a) or is_fractional(b):
        return DOUBLE  # float with float was equal already
    return wider_decimal(decimal_for(a), decimal_for(b))


def _with_string(other: DataType) -> DataType | None:
    if is_integral(other):
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    return other if other in (BOOLEAN, BINARY, VARIANT) or is_datetime(other) else None


def _nested(
    a: DataType, b: DataType, meet: Callable[[DataType, DataType], DataType | None] = least_common_type
) -> DataType | None:
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        element = meet(a.element, b.element)
        if element is None:
            return None
        return array(element, a.contains_null or b.contains_null or _becomes_null(a.element, b.element, element))
    if isinstance(a, MapType) and isinstance(b, MapType):
        key, value = meet(a.key, b.key), meet(a.value, b.value)
        if key is None or value is None or _becomes_null(a.key, b.key, key):
            return None
        nothing = a.value_contains_null or b.value_contains_null or _becomes_null(a.value, b.value, value)
        return map_of(key, value, nothing)
    if isinstance(a, StructType) and isinstance(b, StructType) and len(a.fields) == len(b.fields):
        fields = []
        for f, g in zip(a.fields, b.fields, strict=True):
            t = meet(f.type, g.type)
            if t is None or f.name.lower() != g.name.lower():
                return None
            fields.append(StructField(f.name, t, f.nullable or g.nullable or _becomes_null(f.type, g.type, t)))
        return struct(*fields)
    return None


def _becomes_null(a: DataType, b: DataType, common: DataType) -> bool:
    """Whether what is inside of a nested value may become NULL, as far as Spark knows, where two types meet in a third."""
    return any(t not in (common, VOID) and may_be_null(t, common) for t in (a, b))


def may_be_null(source: DataType, target: DataType) -> bool:
    """Whether Spark takes a cast of what is no NULL for one that may be NULL (Cast.forceNullable)."""
    if target == STRING:
        return False
    if source == STRING:
        return target != BINARY
    if source == TIMESTAMP:
        return target in (TINYINT, SMALLINT, INT) or isinstance(target, DecimalType)
    if target == DATE or (source == DATE and target != TIMESTAMP):
        return True
    if isinstance(target, DecimalType):
        return not _fits_decimal(source, target)
    if is_integral(target):
        return is_fractional(source) or isinstance(source, DecimalType)
    return target == TIMESTAMP and is_fractional(source)


def _fits_decimal(source: DataType, target: DecimalType) -> bool:
    """Whether a decimal type surely holds the other type's values (rounding may carry into one more digit)."""
    if source == BOOLEAN:
        return target.precision > target.scale
    if not is_numeric(source) or is_fractional(source):
        return False
    d = decimal_for(source)
    digits, room = d.precision - d.scale, target.precision - target.scale
    return room > digits if d.scale > target.scale else room >= digits


def least_common_of(types: Iterable[DataType]) -> DataType | None:
    """`least_common_type` folded over `types`; VOID for none.

    Strings are taken last, so that the result doesn't depend on the order (`coalesce('1', 2, 2.5)`).
    """
    result: DataType = VOID
    for t in sorted(map(plain, types), key=_has_string):
        common = least_common_type(result, t)
        if common is None:
            return None
        result = common
    return result


def shared_type(a: DataType, b: DataType, wider: bool = False) -> DataType | None:
    """Spark's tightest common type (`wider`: a decimal may grow): no string becomes a number, an integer may become FLOAT."""
    if a == b or VOID in (a, b):
        return b if a == VOID else a
    if is_apart(a, b):
        return None
    if is_numeric(a) and is_numeric(b):
        common, decimals = least_common_type(a, b), [t for t in (a, b) if isinstance(t, DecimalType)]
        if not decimals:
            return FLOAT if FLOAT in (a, b) and DOUBLE not in (a, b) else common
        return common if wider or decimals == [common] else None
    return least_common_type(a, b) if wider or not is_nested(a) else _nested(a, b, shared_type)


def written_type(a: DataType, b: DataType) -> DataType | None:
    """The type of two values of an inline table's column: its rule knows no ANSI mode, and makes nothing of strings."""
    a, b = plain(a), plain(b)
    if a == b or VOID in (a, b):
        return b if a == VOID else a
    if STRING in (a, b):
        return None
    if isinstance(a, IntervalType) and isinstance(b, IntervalType):
        return _widen_interval(a, b)
    return _nested(a, b, written_type) if is_nested(a) or is_nested(b) else shared_type(a, b, wider=True)


def written_of(types: Iterable[DataType]) -> DataType | None:
    """`written_type` folded over the values of a column."""
    result: DataType | None = VOID
    for t in types:
        result = written_type(result, t) if result is not None else None
    return result


def is_apart(a: DataType, b: DataType) -> bool:
    """Whether two types, or what is inside of them, are STRING and something else than VOID, or intervals of other units."""
    if STRING in (a, b):
        return a != b and VOID not in (a, b)
    if isinstance(a, IntervalType) and isinstance(b, IntervalType):
        return a != b
    return any(map(is_apart, a.children(), b.children()))


def comparable_type(a: DataType, b: DataType) -> DataType | None:
    """The type in which comparisons and set operations meet: the least common one, or one structure under other names."""
    return least_common_type(a, b) or _same_structure(plain(a), plain(b))


def _same_structure(a: DataType, b: DataType) -> DataType | None:
    """The left type where both differ only in names of fields."""
    if isinstance(a, StructType) and isinstance(b, StructType) and len(a.fields) == len(b.fields):
        types = [_same_structure(f.type, g.type) for f, g in zip(a.fields, b.fields, strict=True)]
        fields = [
            StructField(f.name, t, f.nullable or g.nullable)
            for f, g, t in zip(a.fields, b.fields, types, strict=True)
            if t is not None
        ]
        return struct(*fields) if len(fields) == len(types) else None
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        element = _same_structure(a.element, b.element)
        return array(element, a.contains_null or b.contains_null) if element else None
    if isinstance(a, MapType) and isinstance(b, MapType):
        key, value = _same_structure(a.key, b.key), _same_structure(a.value, b.value)
        return map_of(key, value, a.value_contains_null or b.value_contains_null) if key and value else None
    return a if a == b else None


def comparable_of(types: Sequence[DataType]) -> DataType | None:
    """`least_common_of`, or the one structure that all have."""
    common = least_common_of(types)
    if common is not None or not types:
        return common
    result: DataType | None = plain(types[0])
    for t in types[1:]:
        result = _same_structure(result, plain(t)) if result is not None else None
    return result


def _has_string(t: DataType) -> bool:
    if isinstance(t, ArrayType):
        return _has_string(t.element)
    return t == STRING
