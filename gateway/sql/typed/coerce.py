"""Spark's ANSI type coercion as pure functions of types: implicit, explicit and store casts.

Source: Spark's AnsiTypeCoercion as measured for 529 ordered type pairs in 18 contexts (tests/data/coercion.csv is the truth).
Nothing here asks an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.sql.typed.common_types import decimal_for, may_be_null, plain
from gateway.sql.typed.nodes import Cast, Expr, Lit
from gateway.sql.typed.variant_casts import becomes_variant, comes_of_variant
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRALS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructType,
    array,
    decimal,
    is_datetime,
    is_fractional,
    is_integral,
    is_interval,
    is_nested,
    is_numeric,
    is_string,
    map_of,
)


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether CAST(source AS target) is allowed at analysis (ANSI); TRY_CAST allows the same pairs."""
    source, target = plain(source), plain(target)
    if source in (target, VOID):
        return True
    if target == VOID:
        return False
    if VARIANT in (source, target):
        return becomes_variant(source) if target == VARIANT else comes_of_variant(target)
    if is_nested(source):
        return target == STRING or _can_cast_nested(source, target)
    if is_nested(target):
        return False
    if STRING in (source, target):
        return True
    return BINARY not in (source, target) and _can_cast_plain(source, target)


def _can_cast_nested(source: DataType, target: DataType) -> bool:
    if isinstance(source, ArrayType):
        return isinstance(target, ArrayType) and can_cast(source.element, target.element)
    if isinstance(source, MapType):
        return isinstance(target, MapType) and can_cast(source.key, target.key) and can_cast(source.value, target.value)
    return (
        isinstance(source, StructType)
        and isinstance(target, StructType)
        and len(source.fields) == len(target.fields)
        and all(can_cast(f.type, g.type) for f, g in zip(source.fields, target.fields, strict=True))
    )


def _can_cast_plain(source: DataType, target: DataType) -> bool:
    """Of different types that are neither nested nor texts nor bytes."""
    if source == BOOLEAN:
        return is_numeric(target)
    if isinstance(source, IntervalType):
        if isinstance(target, IntervalType):
            return source.is_year_month == target.is_year_month
        return is_integral(target) or isinstance(target, DecimalType)
    if is_numeric(source):
        if isinstance(target, IntervalType):
            return not is_fractional(source)
        return is_numeric(target) or target in (BOOLEAN, TIMESTAMP)
    if source == TIMESTAMP and is_numeric(target):
        return True
    instants = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return source in instants and target in instants


def cast_refusal(source: DataType, target: DataType, is_try: bool) -> str:
    """The condition of a cast that `can_cast` does not allow: some have a function or a setting in Spark's advice."""
    source, target = plain(source), plain(target)
    if (is_numeric(source) and target == DATE) or (source == DATE and is_numeric(target)):
        return "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION"
    if not is_try and could_cast(source, target):
        return "DATATYPE_MISMATCH.CAST_WITH_CONF_SUGGESTION"
    return "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"


def could_cast(source: DataType, target: DataType) -> bool:
    """Whether Spark casts it with ANSI off."""
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return could_cast(source.element, target.element)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return could_cast(source.key, target.key) and could_cast(source.value, target.value)
    if isinstance(source, StructType) and isinstance(target, StructType):
        pairs = zip(source.fields, target.fields, strict=False)
        return len(source.fields) == len(target.fields) and all(could_cast(f.type, g.type) for f, g in pairs)
    legacy = (source == DATE and (target == BOOLEAN or is_numeric(target))) or (
        (source, target) in ((BOOLEAN, TIMESTAMP), (TIMESTAMP, BOOLEAN))
    )
    return legacy or (is_integral(source) and target == BINARY) or can_cast(source, target)


def keeps_keys(source: DataType, target: DataType) -> bool:
    """Whether no key of a map inside can become NULL: TRY_CAST allows no other casts of maps."""
    source, target = plain(source), plain(target)
    if isinstance(source, MapType) and isinstance(target, MapType):
        key, wanted = plain(source.key), plain(target.key)
        if key not in (wanted, VOID) and may_be_null(key, wanted):
            return False
    return all(map(keeps_keys, source.children(), target.children()))


def can_store(source: DataType, target: DataType) -> bool:
    """ANSI store assignment, which arguments of functions follow. What a table's column takes is in `assignment`."""
    if isinstance(target, CharType):
        target = STRING
    source = plain(source)
    if source in (target, VOID):
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return can_store(source.element, target.element)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return can_store(source.key, target.key) and can_store(source.value, target.value)
    if isinstance(source, StructType) and isinstance(target, StructType):
        return len(source.fields) == len(target.fields) and all(
            can_store(f.type, g.type) for f, g in zip(source.fields, target.fields, strict=True)
        )
    if is_nested(source) or is_nested(target):
        return False
    if target == STRING:
        return True
    if is_numeric(source) and is_numeric(target):
        return True
    return is_datetime(source) and is_datetime(target)


#: Classes of types that a function parameter may accept; a parameter is a sequence of DataTypes and class names.
CLASSES: dict[str, Callable[[DataType], bool]] = {
    "integral": is_integral,
    "numeric": is_numeric,
    "decimal": lambda t: isinstance(t, DecimalType),
    "fractional": is_fractional,
    "string": is_string,
    "text": is_string,  # a STRING that nothing is cast to
    "datetime": is_datetime,
    "interval": is_interval,
    "year_month": lambda t: isinstance(t, IntervalType) and t.is_year_month,
    "day_time": lambda t: isinstance(t, IntervalType) and not t.is_year_month,
    "array": lambda t: isinstance(t, ArrayType),
    "map": lambda t: isinstance(t, MapType),
    "struct": lambda t: isinstance(t, StructType),
    "atomic": lambda t: not is_nested(t),
    "any": lambda t: True,
}

Accepts = DataType | str


def accepts(spec: Accepts, t: DataType) -> bool:
    """Whether `t` is of the type or class `spec` without any cast."""
    return CLASSES[spec](t) if isinstance(spec, str) else plain(t) == spec


def implicit_type(source: DataType, specs: Sequence[Accepts]) -> DataType | None:
    """The type that an argument of type `source` is cast to for a parameter that accepts one of `specs`, in order.

    None if none of them is reachable: DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE. (Spark: AnsiTypeCoercion.implicitCast.)
    """
    source = plain(source)
    for spec in specs:
        if accepts(spec, source):
            return source
    for spec in specs:
        target = _implicit(source, spec)
        if target is not None:
            return target
    return None


_CLASS_DEFAULTS: dict[str, DataType] = {
    "integral": BIGINT,
    "numeric": DOUBLE,
    "decimal": decimal(38, 18),
    "fractional": DOUBLE,
    "string": STRING,
    "text": STRING,
    "datetime": TIMESTAMP,
    "atomic": STRING,
    "any": VOID,
}


def _implicit(source: DataType, spec: Accepts) -> DataType | None:
    if source == VOID:
        return _CLASS_DEFAULTS.get(spec) if isinstance(spec, str) else spec
    if isinstance(spec, str):
        if spec == "string":
            return STRING if not is_nested(source) else None
        if source == STRING and spec in ("integral", "numeric", "decimal", "fractional", "datetime"):
            return _CLASS_DEFAULTS[spec]
        if spec == "decimal" and is_integral(source):
            return decimal_for(source)
        if spec == "fractional" and is_numeric(source):
            return DOUBLE
        return None
    if is_nested(source) or is_nested(spec):
        return _implicit_nested(source, spec)
    if spec == STRING:
        return STRING
    if source == STRING:
        return spec
    return spec if can_store(source, spec) else None  # ANSI function calls follow store assignment


def _implicit_nested(source: DataType, spec: DataType) -> DataType | None:
    if isinstance(source, ArrayType) and isinstance(spec, ArrayType):
        element = implicit_type(source.element, [spec.element])
        if element is None:
            return None
        nothing = source.contains_null or (element != source.element and may_be_null(source.element, element))
        return array(element, source.contains_null) if spec.contains_null or not nothing else None
    if isinstance(source, MapType) and isinstance(spec, MapType):
        key, value = implicit_type(source.key, [spec.key]), implicit_type(source.value, [spec.value])
        return map_of(key, value, source.value_contains_null) if key and value else None
    return spec if isinstance(source, StructType) and can_store(source, spec) else None


def cast_nullable(source: DataType, target: DataType, nullable: bool, is_try: bool = False) -> bool:
    """Nullability of a cast (Spark's Cast.nullable: a list of pairs, whether or not the cast can give NULL under ANSI)."""
    if nullable or source == VOID:
        return True
    source, target = plain(source), plain(target)
    if source == VARIANT != target:
        return True  # JSON's null is NULL
    if source == target:
        return False
    if not is_try or (isinstance(source, DecimalType) and is_integral(target)):
        return may_be_null(source, target)
    return not (can_upcast if is_nested(source) else _upcasts)(source, target)


def can_upcast(source: DataType, target: DataType) -> bool:
    """Whether a column of a temporary view, made as `target`, may come as `source` by now (Spark's Cast.canUpCast)."""
    source, target = plain(source), plain(target)
    if source in (target, VOID):
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return source.contains_null <= target.contains_null and can_upcast(source.element, target.element)
    if isinstance(source, MapType) and isinstance(target, MapType):
        types = can_upcast(source.key, target.key) and can_upcast(source.value, target.value)
        return types and source.value_contains_null <= target.value_contains_null
    if isinstance(source, StructType) and isinstance(target, StructType):
        return len(source.fields) == len(target.fields) and all(
            f.nullable <= g.nullable and can_upcast(f.type, g.type)
            for f, g in zip(source.fields, target.fields, strict=True)
        )
    if is_nested(source) or is_nested(target) or target == BINARY:
        return False
    return _upcasts(source, target)


_WIDTHS = (*INTEGRALS, FLOAT, DOUBLE)


def _upcasts(source: DataType, target: DataType) -> bool:
    """Whether the cast loses nothing (Spark's Cast.canUpCast)."""
    if isinstance(target, DecimalType):
        return is_numeric(source) and not is_fractional(source) and _within(decimal_for(source), target)
    if isinstance(source, DecimalType) and is_integral(target):
        return source.scale == 0 and source.precision < decimal_for(target).precision
    if source in _WIDTHS and target in _WIDTHS:
        return _WIDTHS.index(source) <= _WIDTHS.index(target)
    if target == STRING:
        return not is_nested(source) and source != VARIANT
    if source == STRING:
        return target == BINARY
    if is_datetime(source):
        return target in (TIMESTAMP, TIMESTAMP_NTZ) or (source == TIMESTAMP and target == BIGINT)
    return (source == BIGINT and target == TIMESTAMP) or (is_interval(source) and is_interval(target))


def _within(d: DecimalType, target: DecimalType) -> bool:
    return d.precision - d.scale <= target.precision - target.scale and d.scale <= target.scale


def coerced(expr: Expr, target: DataType) -> Expr:
    """`expr` under an implicit cast to `target`; itself where the types agree; a typed NULL for NULL."""
    if expr.type == target:
        return expr
    if isinstance(expr, Lit) and expr.value is None:
        return Lit(target, True, None, expr.text)
    return Cast(target, cast_nullable(expr.type, target, expr.nullable), expr, implicit=True)
