"""Casts between numbers, BOOLEAN, dates and timestamps with Spark's ANSI meaning, on whole Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.functions import RowError
from gateway.engine.functions.decimal_digits import cut, rounded_to
from gateway.floats import float_text
from gateway.instants import MICROS_PER_DAY, MICROS_PER_SECOND, Zone, ints, to_instant, to_local
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRALS,
    MAX_PRECISION,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    DecimalType,
    decimal,
    is_fractional,
    is_integral,
)

Bools = npt.NDArray[np.bool_]

LIMITS = {TINYINT: 2**7, SMALLINT: 2**15, INT: 2**31, BIGINT: 2**63}
_INT64_DIGITS = 19
_LONG_DIGITS = 18  # of a DECIMAL that is a column Spark holds up to so many as 64 bits, else a BigDecimal
_NEAR = 1e-5  # more than a few bits of a double that an INT has room for
# enough digits for every decimal of SQL and for the exact value of a double
EXACT = Context(prec=800, rounding=ROUND_HALF_UP)


@dataclass(slots=True)
class Converted:
    """A converted array; `bad` marks the rows that failed (their values are void), `error` says how for one of them."""

    array: pa.Array
    bad: Bools | None = None
    error: Callable[[Any], RowError] | None = None


class Bad(Exception):  # noqa: N818 - a signal, never shown
    """One value cannot be converted."""


def overflow(source: DataType, target: DataType) -> Callable[[Any], RowError]:
    """CAST_OVERFLOW for a value of `source`."""
    suffix = {BIGINT: "L", SMALLINT: "S", TINYINT: "T", DOUBLE: "D"}.get(source, "")
    if isinstance(source, DecimalType):
        suffix = "BD"

    def error(value: Any) -> RowError:
        return RowError(
            "CAST_OVERFLOW",
            f'The value {value}{suffix} of the type "{source.sql}" cannot be cast to "{target.sql}" due to an overflow. '
            "Use `try_cast` to tolerate overflow and return NULL instead.",
        )

    return error


def out_of_range(target: DecimalType) -> Callable[[Any], RowError]:
    """NUMERIC_VALUE_OUT_OF_RANGE for a value that has too many digits for `target`."""

    def error(value: Any) -> RowError:
        return RowError(
            "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
            f"{value} cannot be represented as Decimal({target.precision}, {target.scale}). If necessary set "
            '"spark.sql.ansi.enabled" to "false" to bypass this error, and return NULL instead.',
        )

    return error


def malformed(source: DataType, target: DataType) -> Callable[[Any], RowError]:
    """CAST_INVALID_INPUT for a value of `source`."""

    def error(value: Any) -> RowError:
        shown = f"'{value}'" if isinstance(value, str) else value
        return RowError(
            "CAST_INVALID_INPUT",
            f'The value {shown} of the type "{source.sql}" cannot be cast to "{target.sql}" because it is malformed. '
            "Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate malformed input "
            "and return NULL instead.",
        )

    return error


def nulls(array: pa.Array) -> Bools:
    """Which rows are NULL."""
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), dtype=np.bool_)


def with_nulls(values: npt.NDArray[Any], void: Bools, type: pa.DataType) -> pa.Array:
    """A numpy array as an Arrow array of `type` with NULLs where `void`."""
    return pa.array(values, mask=void if void.any() else None).cast(type, safe=False)


def each(array: pa.Array, type: pa.DataType, convert: Callable[[Any], Any]) -> tuple[pa.Array, Bools | None]:
    """`convert` once per distinct value; rows for which it raises `Bad` are marked."""
    encoded = array.dictionary_encode()
    results: list[Any] = []
    failed: list[int] = []
    for i, value in enumerate(encoded.dictionary.to_pylist()):
        try:
            results.append(convert(value))
        except Bad:
            results.append(None)
            failed.append(i)
    converted = pa.array(results, type).take(encoded.indices)
    if not failed:
        return converted, None
    flags = pa.array(np.isin(np.arange(len(results)), failed)).take(encoded.indices)
    return converted, np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def floats(array: pa.Array) -> npt.NDArray[Any]:
    """The numbers of a float array in their own width; NULLs are 0."""
    filled = pc.fill_null(array, 0.0) if array.null_count else array
    values: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def to_integral(array: pa.Array, source: DataType, target: DataType, doubled: bool | None = None) -> Converted:
    """Any number to a whole one: the fraction is cut off; `doubled` as in `casts.caster`."""
    limit, type_, void = LIMITS[target], target.arrow(), nulls(array)
    error = overflow(source, target)
    if is_integral(source):
        values = ints(array)
        if INTEGRALS.index(source) <= INTEGRALS.index(target):
            return Converted(array.cast(type_))
        bad = ((values < -limit) | (values >= limit)) & ~void
        return Converted(with_nulls(np.where(bad, 0, values), void, type_), bad, error)
    if is_fractional(source):
        given = floats(array)
        with np.errstate(invalid="ignore"):
            # Spark compares floor and ceiling with the limits as doubles: 2^63 passes and is cut to the largest BIGINT
            wide = given.astype(np.float64)
            bad = ~((np.floor(wide) <= float(limit - 1)) & (np.ceil(wide) >= -limit)) & ~void
            wide = np.trunc(np.where(bad, 0.0, wide))
            high = wide >= limit
            whole = np.where(high, limit - 1, np.where(high, 0, wide).astype(np.int64))
        return Converted(with_nulls(whole, void, type_), bad, error)
    assert isinstance(source, DecimalType)
    if doubled is None:
        doubled = source.precision > _LONG_DIGITS
    return _whole_of_decimals(array, target, doubled and target != BIGINT, error)


def _whole_of_decimals(array: pa.Array, target: DataType, doubled: bool, error: Callable[[Any], RowError]) -> Converted:
    limit, type_, void = LIMITS[target], target.arrow(), nulls(array)
    try:
        whole = cut(array, 0).cast(pa.int64())
    except pa.ArrowInvalid:

        def alone(value: Decimal) -> int:
            whole = int(float(value)) if doubled else int(value.to_integral_value(ROUND_DOWN, EXACT))
            if not -limit <= whole < limit:
                raise Bad
            return whole

        return Converted(*each(array, type_, alone), error)
    values = ints(whole)
    if doubled:
        values = _up_to_the_next(array, values)
    bad = ((values < -limit) | (values >= limit)) & ~void
    return Converted(with_nulls(np.where(bad, 0, values), void, type_), bad, error)


def _up_to_the_next(array: pa.Array, whole: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Decimals without their fractions, `whole`, but for those that are the next number as doubles.

    Arrow's own double is a few bits off: it tells which ones may be, their texts which are.
    """
    rough = floats(array.cast(pa.float64()))
    near = np.flatnonzero(
        (np.rint(rough) != whole) & (np.abs(rough - np.rint(rough)) < _NEAR) & (np.abs(rough) < 2**53)
    )
    if not len(near):
        return whole
    exact = floats(array.take(pa.array(near)).cast(pa.string()).cast(pa.float64()))
    whole = whole.copy()
    whole[near] = exact.astype(np.int64)
    return whole


def decimal_of(value: Decimal, target: DecimalType) -> Decimal:
    """`value` rounded half up to `target`; Bad if it has too many digits."""
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, EXACT)
    if rounded and rounded.adjusted() >= target.precision - target.scale:
        raise Bad
    return rounded


def to_decimal(array: pa.Array, source: DataType, target: DecimalType) -> Converted:
    """Any number to a decimal, rounded half up. NaN and infinities become NULL, as in Spark."""
    type_, error = target.arrow(), out_of_range(target)
    if is_fractional(source):
        return _decimal_of_floats(array, target, error)
    if is_integral(source):
        return _decimal_of_whole(array, target, error)
    assert isinstance(source, DecimalType)
    if source.scale > target.scale:
        array = rounded_to(array, target.scale, "half_towards_infinity")
    elif source.precision - source.scale + target.scale > MAX_PRECISION:
        array = array.cast(pa.decimal256(76, target.scale))  # Arrow itself multiplies without a look at what is lost
    try:
        return Converted(array.cast(type_))
    except pa.ArrowInvalid:
        exact = array.cast(pa.decimal256(76, array.type.scale))
        limit = pa.scalar(Decimal(10 ** (target.precision - target.scale)), exact.type)
        large = pc.fill_null(pc.greater_equal(pc.abs(exact), limit), False)
        fits = pc.if_else(large, pa.scalar(Decimal(0), exact.type), exact)
        return Converted(fits.cast(type_), large.to_numpy(zero_copy_only=False), error)


def _decimal_of_whole(array: pa.Array, target: DecimalType, error: Callable[[Any], RowError]) -> Converted:
    """Arrow itself casts no integers to decimals that do not hold all of their type."""
    values, digits, bad = ints(array), target.precision - target.scale, None
    if digits < _INT64_DIGITS:
        bad = (values <= -(10**digits)) | (values >= 10**digits)
        values = np.where(bad, 0, values)
    void = nulls(array)
    if target.precision < _INT64_DIGITS:
        unscaled = with_nulls(values * 10**target.scale, void, pa.int64())
        return Converted(unscaled_to_decimal(unscaled.cast(pa.decimal128(38, 0)), target), bad, error)
    wide = with_nulls(values, void, pa.int64()).cast(pa.decimal256(_INT64_DIGITS + target.scale, target.scale))
    return Converted(wide.cast(target.arrow()), bad, error)


def _decimal_of_floats(array: pa.Array, target: DecimalType, error: Callable[[Any], RowError]) -> Converted:
    """Spark goes through the shortest decimal text of the (widened) double."""
    values, void = floats(array).astype(np.float64), nulls(array)
    void = void | ~np.isfinite(values)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.abs(np.where(void, 0.0, values)) * 10.0**target.scale
        # away from a tie, and small enough that the product's error cannot reach one
        sure = (
            (scaled < 1e12) & (np.abs(scaled - np.floor(scaled) - 0.5) > 1e-3) & (scaled < 10.0**target.precision - 1)
        )
    if (scaled < 1e12).all() and (scaled < 10.0**target.precision - 1).all():
        whole = (np.sign(np.where(void, 0.0, values)) * np.floor(scaled + 0.5)).astype(np.int64)
        for row in np.flatnonzero(~sure):
            whole[row] = int(
                decimal_of(Decimal(float_text(float(values[row]), 53)), target).scaleb(target.scale, EXACT)
            )
        whole_decimals = with_nulls(whole, void, pa.int64()).cast(pa.decimal128(38, 0))
        return Converted(unscaled_to_decimal(whole_decimals, target))
    doubles = with_nulls(values, void, pa.float64())
    return Converted(*each(doubles, target.arrow(), lambda v: decimal_of(Decimal(float_text(v, 53)), target)), error)


def unscaled_to_decimal(whole: pa.Array, target: DecimalType) -> pa.Array:
    """Whole decimals(38,0) read as the unscaled values of `target` decimals."""
    buffers = whole.buffers()
    return pa.Array.from_buffers(target.arrow(), len(whole), buffers, whole.null_count, whole.offset)


def to_fractional(array: pa.Array, source: DataType, target: DataType) -> Converted:
    """Any number to FLOAT or DOUBLE, rounded once."""
    if isinstance(source, DecimalType):
        # arrow divides two doubles; the text is read exactly
        return Converted(array.cast(pa.string()).cast(target.arrow()))
    if is_integral(source) and target == FLOAT:
        return Converted(with_nulls(ints(array).astype(np.float32), nulls(array), pa.float32()))
    return Converted(array.cast(target.arrow(), safe=False))


def to_boolean(array: pa.Array, source: DataType) -> Converted:
    """Numbers: everything but zero is true (NaN too)."""
    if is_fractional(source):
        return Converted(with_nulls(floats(array) != 0, nulls(array), pa.bool_()))
    return Converted(pc.not_equal(array, pa.scalar(0, array.type)))


def from_boolean(array: pa.Array, target: DataType) -> Converted:
    """1 and 0."""
    small = array.cast(pa.int8())
    if isinstance(target, DecimalType):
        return to_decimal(small, TINYINT, target)
    return Converted(small.cast(target.arrow()))


def timestamp_array(micros: npt.NDArray[np.int64], void: Bools, target: DataType) -> pa.Array:
    """Microseconds as TIMESTAMP or TIMESTAMP_NTZ."""
    return with_nulls(micros, void, pa.int64()).cast(target.arrow())


def date_to_timestamp(array: pa.Array, target: DataType, zone: Zone) -> Converted:
    """Midnight, in the session's zone for TIMESTAMP."""
    days, void = ints(array), nulls(array)
    bad = (np.abs(days) > 2**63 // MICROS_PER_DAY) & ~void
    local = np.where(bad, 0, days) * MICROS_PER_DAY
    micros = to_instant(local, zone) if target == TIMESTAMP else local
    return Converted(timestamp_array(micros, void, target), bad, datetime_overflow)


def datetime_overflow(value: Any) -> RowError:
    """ARITHMETIC_OVERFLOW of a date that has no microseconds in 64 bits."""
    return RowError("ARITHMETIC_OVERFLOW", f"long overflow: {value} is out of the range of timestamps.")


def timestamp_to_date(array: pa.Array, source: DataType, zone: Zone) -> Converted:
    """The day on the wall clock."""
    micros, void = ints(array), nulls(array)
    local = to_local(micros, zone) if source == TIMESTAMP else micros
    return Converted(with_nulls((local // MICROS_PER_DAY).astype(np.int32), void, pa.int32()).cast(pa.date32()))


def between_timestamps(array: pa.Array, source: DataType, zone: Zone) -> Converted:
    """TIMESTAMP to TIMESTAMP_NTZ and back: the same wall clock."""
    micros, void = ints(array), nulls(array)
    if source == TIMESTAMP:
        return Converted(timestamp_array(to_local(micros, zone), void, TIMESTAMP_NTZ))
    return Converted(timestamp_array(to_instant(micros, zone), void, TIMESTAMP))


_SECONDS = decimal(20, 6)


def timestamp_to_number(array: pa.Array, target: DataType) -> Converted:
    """Seconds since 1970: floored for whole numbers, with the fraction for others."""
    micros, void = ints(array), nulls(array)
    if is_integral(target):
        seconds = with_nulls(micros // MICROS_PER_SECOND, void, pa.int64())
        result = to_integral(seconds, BIGINT, target)
        result.error = overflow(TIMESTAMP, target)
        return result
    if isinstance(target, DecimalType):
        exact = unscaled_to_decimal(with_nulls(micros, void, pa.int64()).cast(pa.decimal128(38, 0)), _SECONDS)
        return to_decimal(exact, _SECONDS, target)
    doubles = with_nulls(micros / 1e6, void, pa.float64())
    return Converted(doubles.cast(target.arrow(), safe=False))


def saturated(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Doubles cut to 64-bit integers, those beyond as the nearest one."""
    inside = np.abs(values) < 2.0**63
    ends = np.where(values > 0, np.int64(2**63 - 1), np.int64(-(2**63)))
    return np.where(inside, np.where(inside, values, 0.0).astype(np.int64), ends)


#: How Scala multiplies: to 34 digits.
_DECIMAL128 = Context(prec=34, rounding=ROUND_HALF_EVEN)


def number_to_timestamp(array: pa.Array, source: DataType) -> Converted:
    """Seconds since 1970 to an instant, the fraction beyond microseconds cut off."""
    void, error = nulls(array), overflow(source, TIMESTAMP)
    if isinstance(source, DecimalType):

        def scaled(value: Decimal) -> int:
            with localcontext(_DECIMAL128):
                whole = int(value * MICROS_PER_SECOND)
            # as java.math.BigDecimal.longValue, which Spark calls: the low 64 bits
            return (whole + 2**63) % 2**64 - 2**63

        micros, bad = each(array, pa.int64(), scaled)
        return Converted(micros.cast(TIMESTAMP.arrow()), bad, error)
    if is_fractional(source):
        # text such as NaN is malformed, a number that is too large overflows
        values = floats(array).astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            product = values * 1e6
            bad = ~(np.abs(product) <= 2.0**63) & ~void
        whole = saturated(np.where(bad | void, 0.0, product))

        def failed(value: Any) -> RowError:
            return (error if np.isfinite(value) else malformed(source, TIMESTAMP))(value)

        return Converted(timestamp_array(whole, void, TIMESTAMP), bad, failed)
    # whole seconds stop at the ends of 64 bits
    most = (2**63 - 1) // MICROS_PER_SECOND
    seconds = ints(array)
    ends = np.where(seconds > 0, 2**63 - 1, -(2**63))
    beyond = (seconds > most) | (seconds < -most)
    micros_ = np.where(beyond, ends, np.clip(seconds, -most, most) * MICROS_PER_SECOND)
    return Converted(timestamp_array(micros_, void, TIMESTAMP))


def scalar_cast(
    source: DataType, target: DataType, zone: Zone, doubled: bool | None = None
) -> Callable[[pa.Array], Converted] | None:
    """The kernel for a pair of numbers, BOOLEAN, dates and timestamps; None if it is another kind of pair."""
    numeric = is_integral(source) or is_fractional(source) or isinstance(source, DecimalType)
    if source == BOOLEAN:
        to_number = is_integral(target) or is_fractional(target) or isinstance(target, DecimalType)
        return (lambda a: from_boolean(a, target)) if to_number else None
    if numeric:
        if target == BOOLEAN:
            return lambda a: to_boolean(a, source)
        if is_integral(target):
            return lambda a: to_integral(a, source, target, doubled)
        if isinstance(target, DecimalType):
            return lambda a: to_decimal(a, source, target)
        if is_fractional(target):
            return lambda a: to_fractional(a, source, target)
        return (lambda a: number_to_timestamp(a, source)) if target == TIMESTAMP else None
    if source == DATE:
        return (lambda a: date_to_timestamp(a, target, zone)) if target in (TIMESTAMP, TIMESTAMP_NTZ) else None
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        if target == DATE:
            return lambda a: timestamp_to_date(a, source, zone)
        if target in (TIMESTAMP, TIMESTAMP_NTZ):
            return lambda a: between_timestamps(a, source, zone)
        if is_integral(target) or is_fractional(target) or isinstance(target, DecimalType):
            return lambda a: timestamp_to_number(a, target)
    return None
