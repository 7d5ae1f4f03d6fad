"""Lowering of CAST: DataFusion's own where its meaning is Spark's for that pair of types, our kernel for all others.

Also casts of constants at compile time, for typed literals and for pruning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from decimal import Context as Digits

from gateway import instants
from gateway.sql.functions.held import cut_as_double
from gateway.sql.functions.lowerings import raises
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.coerce import can_cast
from gateway.sql.typed.common_types import decimal_for, plain
from gateway.sql.typed.nodes import Cast, Expr, Lit, Udf
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRALS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructType,
    decimal,
    has_variant,
    is_integral,
    is_nested,
    is_string,
)

# What a scalar of a VARIANT is cast from.
_SCALARS = (BOOLEAN, BIGINT, DOUBLE, FLOAT, decimal(38, 0), STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)
_LIMITS = {TINYINT: 2**7, SMALLINT: 2**15, INT: 2**31, BIGINT: 2**63}
_LAST_DAY = 2_932_896  # of the year 9999; the engine knows what is beyond
_EXACT = Digits(prec=100, rounding=ROUND_HALF_UP)


def parse_date(text: str) -> int | None:
    """Days since 1970 of a DATE literal's text in any of Spark's forms; None if malformed."""
    return instants.parse_date(text)


def parse_timestamp(text: str, zone: str) -> int | None:
    """Epoch microseconds of a TIMESTAMP literal's text, read in `zone` unless it names its own; None if malformed."""
    return instants.parse_timestamp(text, instants.known_zone(zone))


def parse_timestamp_ntz(text: str) -> int | None:
    """Wall clock microseconds of a TIMESTAMP_NTZ literal's text (a zone in it is ignored); None if malformed."""
    return instants.parse_ntz(text)


_SPECIAL_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1, "now": 0}


def special_date(text: str, context: Context) -> int | None:
    """Days of the words that Spark takes for constant dates (epoch, now, today, tomorrow, yesterday); None for others."""
    word = text.strip(instants.BLANKS).lower()
    if word == "epoch":
        return 0
    if word not in _SPECIAL_DAYS:
        return None
    local = instants.local_of(context.clock.now_us, instants.known_zone(context.time_zone))
    return local // instants.MICROS_PER_DAY + _SPECIAL_DAYS[word]


def special_timestamp(text: str, context: Context, zoneless: bool = False) -> int | None:
    """Microseconds of the same words for constant timestamps; wall clock with `zoneless`."""
    word = text.strip(instants.BLANKS).lower()
    zone = instants.known_zone(context.time_zone)
    if word == "now":
        return instants.local_of(context.clock.now_us, zone) if zoneless else context.clock.now_us
    days = special_date(text, context)
    if days is None:
        return None
    if word == "epoch" or zoneless:
        return days * instants.MICROS_PER_DAY
    return instants.instant_of(days * instants.MICROS_PER_DAY, zone)


def becomes_scalar(target: DataType) -> bool:
    """Whether a VARIANT can be cast to a type here, and its values to one."""
    return is_string(target) or isinstance(target, DecimalType) or target in (*INTEGRALS, *_SCALARS)


def casts_variants(source: DataType, target: DataType) -> bool:
    """Whether a cast is done here of which a type is or holds a VARIANT."""
    source, target = plain(source), plain(target)
    if source in (target, VOID):
        return True
    if source == VARIANT:
        return becomes_value(target)
    if target == VARIANT:
        return casts_variants(source.element, VARIANT) if isinstance(source, ArrayType) else becomes_scalar(source)
    if target == STRING or not (has_variant(source) or has_variant(target)):
        return True
    return all(map(casts_variants, source.children(), target.children()))


def becomes_value(target: DataType) -> bool:
    """Whether a VARIANT can be cast to a type here, one of parts too."""
    match target:
        case ArrayType():
            return becomes_value(target.element)
        case MapType():
            return target.key == STRING and becomes_value(target.value)
        case StructType():
            names = {f.name for f in target.fields}
            return len(names) == len(target.fields) and all(f.nullable and becomes_value(f.type) for f in target.fields)
    return target == VARIANT or becomes_scalar(target)


def cast_variant(variant: Expr, target: DataType, context: Context, tries: bool) -> Expr:
    """What an engine's VARIANT is as a value of another type."""
    params = (context.time_zone, tries, _castable(target))
    return bound.udf("variant_cast", target, variant, params=params, raises=True)


def _castable(target: DataType) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """For each scalar type within one the names of those that a VARIANT's value may have to become it."""
    found = {leaf.name: tuple(source.name for source in _SCALARS if can_cast(source, leaf)) for leaf in _leaves(target)}
    return tuple(found.items())


def _leaves(target: DataType) -> Iterator[DataType]:
    """The scalar types within one."""
    inner = list(target.children())
    if not inner and not is_nested(target):
        yield target
    for child in inner:
        yield from _leaves(child)


def lower_cast(cast: Cast, arg: Expr, context: Context) -> Expr:
    """The engine-level form of `cast`, whose argument is already lowered to `arg`."""
    source, target = plain(cast.arg.type), plain(cast.type)
    if isinstance(arg, Lit):
        if arg.value is None:
            return Lit(cast.type, True, None)
        folded = fold_cast(arg, target, context)
        if folded is not None:
            return replace(folded, type=cast.type)
    if source == VOID:
        if not isinstance(
            arg, Lit
        ):  # raise_error, or what holds its value: the type says nothing of whether it is computed
            return bound.udf("typed_null", cast.type, arg, raises=raises(arg))
        return Lit(cast.type, True, None)
    if isinstance(arg, Udf) and arg.impl == "raise_row":
        return replace(arg, type=cast.type)  # it has no value, and its own type may be one that Arrow lacks
    if source == VARIANT != target:
        return cast_variant(arg, cast.type, context, cast.is_try)
    if target == VARIANT != source:
        return bound.udf("variant_of", cast.type, arg, nullable=cast.nullable)
    if _same_storage(source, target):
        return replace(arg, type=cast.type, nullable=cast.nullable)
    if has_variant(source) or has_variant(target):
        params = (context.time_zone, cast.is_try, _castable(target))
        return bound.udf("cast_within", cast.type, arg, params=params, nullable=cast.nullable, raises=True)
    native = _native(source, target, context)
    if native is not None:
        return bound.EngineCast(cast.type, cast.nullable, arg, native, cast.is_try and native)
    zone, doubled = context.time_zone if _zoned(source, target) else "UTC", cut_as_double(cast.arg, target)
    return bound.udf(
        "cast",
        cast.type,
        arg,
        params=(zone, cast.is_try) if doubled is None else (zone, cast.is_try, doubled),
        nullable=cast.nullable,
        raises=not cast.is_try and _fails(source, target),
    )


def _same_storage(source: DataType, target: DataType) -> bool:
    """Whether the engine's value is the same: only nullability, or an interval's unused leading fields, differ."""
    if isinstance(source, IntervalType) or isinstance(target, IntervalType):
        if not (isinstance(source, IntervalType) and isinstance(target, IntervalType)):
            return False
        if source.is_year_month:
            return source.end == target.end or target.end == "month"
        return source.end == target.end or target.end == "second"
    if source.name != target.name or source.arrow() != target.arrow():
        return False
    left, right = list(source.children()), list(target.children())
    return len(left) == len(right) and all(_same_storage(a, b) for a, b in zip(left, right, strict=True))


def _native(source: DataType, target: DataType, context: Context) -> bool | None:
    """Whether DataFusion's CAST can fail for the pair; None where its meaning differs from Spark's."""
    if is_integral(source):
        if is_integral(target):
            # a narrowing one is ours: its overflow has another condition than a guard's
            return None if INTEGRALS.index(target) < INTEGRALS.index(source) else False
        if target in (DOUBLE, STRING, BOOLEAN) or (target == FLOAT and source in (TINYINT, SMALLINT)):
            return False
        if isinstance(target, DecimalType):
            return _rescaled(decimal_for(source), target)
        return None
    if isinstance(source, DecimalType):
        if isinstance(target, DecimalType):
            return _rescaled(source, target)
        if target == DOUBLE and source.precision <= 15:
            return False
        return None
    if source == FLOAT:
        return False if target == DOUBLE else None
    if source == BOOLEAN:
        return False if is_integral(target) or target in (STRING, DOUBLE) else None
    if source == STRING:
        return False if target.name == "BINARY" else None
    if source == DATE:
        return False if target == STRING else None
    if source in (TIMESTAMP, TIMESTAMP_NTZ) and target == DATE:
        return False if source == TIMESTAMP_NTZ or instants.known_zone(context.time_zone) == instants.UTC else None
    return None


def _rescaled(source: DecimalType, target: DecimalType) -> bool | None:
    """That the engine's cast cannot fail; None where it can, or loses digits.

    Beside a constant its optimizer casts the constant instead, and so compares what was not rounded.
    """
    return False if _holds(source, target) and source.precision - source.scale + target.scale <= 38 else None


def _holds(source: DecimalType, target: DecimalType) -> bool:
    return source.scale <= target.scale and source.precision - source.scale <= target.precision - target.scale


def _zoned(source: DataType, target: DataType) -> bool:
    """Whether the session's zone matters: a TIMESTAMP is on either side, at any depth."""
    return any(t == TIMESTAMP or any(_zoned(c, c) for c in t.children()) for t in (source, target))


def _fails(source: DataType, target: DataType) -> bool:
    """Whether our kernel can fail for some value of the pair."""
    if target in (STRING, BOOLEAN) and source != STRING:
        return source.name == "BINARY"
    if target in (DOUBLE, FLOAT):
        return source == STRING
    return not (source in (TIMESTAMP, TIMESTAMP_NTZ) and target in (DATE, TIMESTAMP, TIMESTAMP_NTZ))


def fold_cast(literal: Lit, type: DataType, context: Context | None = None) -> Lit | None:
    """`literal` cast to `type` at compile time; None where that is not cheap, not certain, or fails at run time.

    Casts that read the session's zone need `context`.
    """
    value, source = literal.value, plain(literal.type)
    target = plain(type)
    if value is None:
        return Lit(type, True, None)
    folded = _folded(value, source, target, context)
    return None if folded is None else Lit(type, False, folded)


def _folded(value: object, source: DataType, target: DataType, context: Context | None) -> object | None:
    if source == target:
        return value
    if isinstance(value, str) and source == STRING:
        return _folded_text(value, target, context)
    if isinstance(value, bool):
        return int(value) if is_integral(target) else None
    if isinstance(value, int) and is_integral(source):
        return _folded_integer(value, target)
    if isinstance(value, Decimal):
        if isinstance(target, DecimalType):
            return _folded_decimal(value, target)
        if target == DOUBLE:
            return float(value)
        return f"{value:f}" if target == STRING else None
    if source == DATE and isinstance(value, int):
        return _folded_date(value, target, context)
    return None


def _folded_integer(value: int, target: DataType) -> object | None:
    if is_integral(target):
        return value if -_LIMITS[target] <= value < _LIMITS[target] else None
    if target == DOUBLE:
        return float(value)
    if target == STRING:
        return str(value)
    return _folded_decimal(Decimal(value), target) if isinstance(target, DecimalType) else None


def _folded_date(days: int, target: DataType, context: Context | None) -> object | None:
    if target == STRING:
        return instants.date_text(days)
    if abs(days) > _LAST_DAY:
        return None
    if target == TIMESTAMP_NTZ:
        return days * instants.MICROS_PER_DAY
    if target == TIMESTAMP and context is not None:
        return instants.instant_of(days * instants.MICROS_PER_DAY, instants.known_zone(context.time_zone))
    return None


def _folded_text(text: str, target: DataType, context: Context | None) -> object | None:
    if is_integral(target):
        digits = text.strip(instants.BLANKS)
        body = digits[1:] if digits[:1] in ("+", "-") else digits
        if body.isascii() and body.isdigit() and len(body) < 20 and -_LIMITS[target] <= int(digits) < _LIMITS[target]:
            return int(digits)
        return None
    if target == DATE:
        days = instants.parse_date(text)
        return special_date(text, context) if days is None and context is not None else days
    if target == TIMESTAMP and context is not None:
        micros = instants.parse_timestamp(text, instants.known_zone(context.time_zone))
        return special_timestamp(text, context) if micros is None else micros
    if target == TIMESTAMP_NTZ:
        micros = instants.parse_ntz(text)
        return special_timestamp(text, context, zoneless=True) if micros is None and context is not None else micros
    return None


def _folded_decimal(value: Decimal, target: DecimalType) -> Decimal | None:
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _EXACT)
    if not rounded:
        return abs(rounded)  # no decimal is -0
    return None if rounded.adjusted() >= target.precision - target.scale else rounded
