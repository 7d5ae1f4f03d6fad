"""ANSI intervals (months as int32, microseconds as int64): text forms, casts, arithmetic with numbers, dates and timestamps."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import (
    EXACT,
    LIMITS,
    Bad,
    Bools,
    Converted,
    each,
    nulls,
    out_of_range,
    overflow,
    with_nulls,
)
from gateway.instants import (
    MAX_DAY,
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    MIN_DAY,
    Ints,
    add_months,
    ints,
    known_zone,
    to_instant,
    to_local,
)
from gateway.sqltypes import (
    DAY_TIME_UNITS,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
    IntervalType,
    is_fractional,
    is_integral,
)

UNIT_MICROS = {
    "day": MICROS_PER_DAY, "hour": MICROS_PER_HOUR, "minute": MICROS_PER_MINUTE, "second": MICROS_PER_SECOND,
}  # fmt: skip


def interval_text(value: int, type: IntervalType) -> str:
    """``INTERVAL '1-2' YEAR TO MONTH``, ``INTERVAL '1 02:03:04.5' DAY TO SECOND``: Spark's ANSI form."""
    return f"INTERVAL '{interval_body(value, type)}' {type.sql.removeprefix('INTERVAL ')}"


def interval_body(value: int, type: IntervalType) -> str:
    """The part between the quotes of `interval_text`."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if type.is_year_month:
        if type.start == type.end:
            return f"{sign}{size // 12 if type.start == 'year' else size}"
        return f"{sign}{size // 12}-{size % 12}"
    first, last = DAY_TIME_UNITS.index(type.start), DAY_TIME_UNITS.index(type.end)
    parts = []
    for i, unit in enumerate(DAY_TIME_UNITS[first : last + 1]):
        count, size = divmod(size, UNIT_MICROS[unit])
        text = str(count) if unit == "day" else f"{count:02d}"
        if i:
            text = (" " if DAY_TIME_UNITS[first + i - 1] == "day" else ":") + text
        parts.append(text)
    if type.end == "second" and size:
        parts.append(f".{size:06d}".rstrip("0"))
    return sign + "".join(parts)


def _pattern(type: IntervalType) -> re.Pattern[str]:
    if type.is_year_month:
        body = r"(?P<year>\d+)-(?P<month>\d+)" if type.start != type.end else rf"(?P<{type.start}>\d+)"
    else:
        first, last = DAY_TIME_UNITS.index(type.start), DAY_TIME_UNITS.index(type.end)
        body = ""
        for i, unit in enumerate(DAY_TIME_UNITS[first : last + 1]):
            body += "" if not i else (r"\s+" if DAY_TIME_UNITS[first + i - 1] == "day" else ":")
            body += rf"(?P<{unit}>\d{{1,{9 if not i else 2}}})" if i or unit != "second" else r"(?P<second>\d{1,13})"
        if type.end == "second":
            body += r"(\.(?P<fraction>\d{1,9}))?"
    suffix = type.sql.removeprefix("INTERVAL ").replace(" ", r"\s+")
    inner = rf"(?P<sign>[+-])?{body}"
    return re.compile(
        rf"\s*(?:INTERVAL\s+(?P<outer>[+-])?\s*'{inner}'\s+{suffix}|{inner.replace('(?P<', '(?P<b_')})\s*",
        re.IGNORECASE | re.ASCII,
    )


_DIGITS = 1000  # of one field; Python reads some thousand at most


def parse_interval(text: str, type: IntervalType) -> int | None:
    """The value of an interval text of exactly the type's fields; None if malformed or out of range."""
    match = _pattern(type).fullmatch(text)
    if match is None:
        return None
    groups = {k.removeprefix("b_"): v for k, v in match.groupdict().items() if v is not None}
    if any(len(v) > _DIGITS for v in groups.values()):
        return None
    sign = -1 if (groups.get("sign") == "-") != (groups.get("outer") == "-") else 1
    if type.is_year_month:
        months = int(groups.get("month", 0))
        if type.start != type.end and months > 11:
            return None
        value = sign * (int(groups.get("year", 0)) * 12 + months)
        return value if -(2**31) <= value < 2**31 else None
    limits = {"hour": 23, "minute": 59, "second": 59}
    total = 0
    for unit in DAY_TIME_UNITS:
        count = int(groups.get(unit, 0))
        if unit != type.start and count > limits.get(unit, count):
            return None
        total += count * UNIT_MICROS[unit]
    total = sign * (total + int(groups.get("fraction", "0")[:6].ljust(6, "0")))
    return total if -(2**63) <= total < 2**63 else None


def interval_cast(source: DataType, target: DataType) -> Callable[[pa.Array], Converted] | None:
    """The kernel of a cast from or to an interval; None if neither side is one."""
    if isinstance(source, IntervalType):
        if target == STRING:
            return lambda a: Converted(each(a, pa.string(), lambda v: interval_text(v, source))[0])
        if isinstance(target, IntervalType):
            return lambda a: Converted(_cut(a, target))
        if is_integral(target):
            return lambda a: _to_integral(a, source, target)
        if isinstance(target, DecimalType):
            return lambda a: _to_decimal(a, source, target)
        return None
    if not isinstance(target, IntervalType):
        return None
    if source == STRING:
        return lambda a: _read(a, target)
    if is_integral(source) or isinstance(source, DecimalType):
        return lambda a: _from_number(a, source, target)
    return None


def _read(array: pa.Array, target: IntervalType) -> Converted:
    def read(text: str) -> int:
        value = parse_interval(text, target)
        if value is None:
            raise Bad
        return value

    def error(text: str) -> RowError:
        form = target.sql.removeprefix("INTERVAL ").lower()
        return RowError(
            "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING",
            f"Error parsing '{text}' to interval. Please ensure that the value provided is in a valid format for defining "
            "an interval. You can reference the documentation for the correct format. "
            f"Interval string does not match {form} format when cast to {target.simple}: {text}.",
        )

    return Converted(*each(array, target.arrow(), read), error)


def _unit(type: IntervalType) -> int:
    """What one of the end field's units is worth in the internal number."""
    return (12 if type.end == "year" else 1) if type.is_year_month else UNIT_MICROS[type.end]


def toward_zero(values: Ints, unit: int) -> Ints:
    quotient = values // unit
    quotient += (values < 0) & (quotient * unit != values)
    return quotient


def _cut(array: pa.Array, target: IntervalType) -> pa.Array:
    unit = _unit(target)
    if unit == 1 or target.end == "second":
        return array
    return with_nulls(toward_zero(ints(array), unit) * unit, nulls(array), target.arrow())


def _to_integral(array: pa.Array, source: IntervalType, target: DataType) -> Converted:
    values, void, limit = toward_zero(ints(array), _unit(source)), nulls(array), LIMITS[target]
    bad = ((values < -limit) | (values >= limit)) & ~void
    shown = overflow(source, target)
    return Converted(
        with_nulls(np.where(bad, 0, values), void, target.arrow()), bad, lambda v: shown(interval_text(v, source))
    )


def _to_decimal(array: pa.Array, source: IntervalType, target: DecimalType) -> Converted:
    unit = _unit(source)

    def convert(value: int) -> Decimal:
        with localcontext(EXACT):
            exact = Decimal(value) / unit if source.end == "second" else Decimal(int(value / unit))
            rounded = exact.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP)
        if rounded and rounded.adjusted() >= target.precision - target.scale:
            raise Bad
        return rounded

    return Converted(*each(array, target.arrow(), convert), out_of_range(target))


def _from_number(array: pa.Array, source: DataType, target: IntervalType) -> Converted:
    limit, unit = 2**31 if target.is_year_month else 2**63, _unit(target)

    def convert(value: Any) -> int:
        with localcontext(EXACT):
            whole = int((Decimal(value) * unit).to_integral_value(ROUND_HALF_UP))
        if not -limit <= whole < limit:
            raise Bad
        return whole

    return Converted(*each(array, target.arrow(), convert), overflow(source, target))


_INTERVAL_OVERFLOW = "Integer overflow while operating with intervals."
_WITHOUT = "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION"
_WITH = "INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION"


def interval_overflow(function: str | None = None) -> RowError:
    """INTERVAL_ARITHMETIC_OVERFLOW; `function` tolerates it."""
    if function:
        return RowError(_WITH, f"{_INTERVAL_OVERFLOW} Use `{function}` to tolerate overflow and return NULL instead.")
    return RowError(_WITHOUT, f"{_INTERVAL_OVERFLOW} Try devising appropriate values for the interval parameters.")


def add_checked(a: Ints, b: Ints, void: Bools, error: Callable[[], RowError]) -> Ints:
    """a + b in 64 bits; raises where it wraps."""
    with np.errstate(over="ignore"):
        total = a + b
    if ((((a ^ total) & (b ^ total)) < 0) & ~void).any():
        raise error()
    return total


def subtract_checked(a: Ints, b: Ints, void: Bools, error: Callable[[], RowError]) -> Ints:
    """a - b in 64 bits; raises where it wraps."""
    with np.errstate(over="ignore"):
        total = a - b
    if ((((a ^ b) & (a ^ total)) < 0) & ~void).any():
        raise error()
    return total


def wall_micros(days: Ints, clock: Ints, void: Bools, error: Callable[[], RowError]) -> Ints:
    """Microseconds of days and a time of day; raises beyond 64 bits."""
    if ((np.abs(days) > 2**63 // MICROS_PER_DAY + 1) & ~void).any():
        raise error()
    # the first day has no midnight in 64 bits, but the one after it has
    early = np.where(days < 0, 1, 0)
    return add_checked(np.where(void, 0, days + early) * MICROS_PER_DAY, clock - early * MICROS_PER_DAY, void, error)


def multiply_checked(a: Ints, size: int, void: Bools, error: Callable[[], RowError]) -> Ints:
    """a * size in 64 bits for a positive size; raises where it wraps."""
    if (((a > (2**63 - 1) // size) | (a < -(2**63 // size))) & ~void).any():
        raise error()
    return np.where(void, 0, a) * size


def _both(a: pa.Array, b: pa.Array) -> Bools:
    void: Bools = nulls(a) | nulls(b)
    return void


@implementation("interval_sum")
def interval_sum(spec: UdfSpec) -> Kernel:
    """interval ± interval of one family; params: ("+" | "-",)."""
    months, minus = pa.types.is_int32(spec.returns.arrow()), spec.params[0] == "-"

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        void = _both(a, b)
        function = "try_subtract" if minus else "try_add"
        total = (subtract_checked if minus else add_checked)(
            ints(a), ints(b), void, lambda: interval_overflow(function)
        )
        if months and ((np.abs(total + 0.5) > 2**31) & ~void).any():
            raise interval_overflow(function)
        return with_nulls(total, void, spec.returns.arrow())

    return kernel


@implementation("interval_negate")
def interval_negate(spec: UdfSpec) -> Kernel:
    """-interval."""
    lowest = -(2**31) if pa.types.is_int32(spec.returns.arrow()) else -(2**63)

    def kernel(a: pa.Array) -> pa.Array:
        values, void = ints(a), nulls(a)
        if ((values == lowest) & ~void).any():
            raise interval_overflow()
        return with_nulls(-values, void, spec.returns.arrow())

    return kernel


@implementation("interval_scale")
def interval_scale(spec: UdfSpec) -> Kernel:
    """interval * number or interval / number, rounded half up; params: ("*" | "/", is_try)."""
    divide, is_try = spec.params[0] == "/", bool(spec.params[1]) if len(spec.params) > 1 else False
    type_ = spec.returns.arrow()
    limit = 2**31 if pa.types.is_int32(type_) else 2**63
    fractional = is_fractional(spec.args[1])

    def scaled(value: int, factor: Any) -> int | None:
        if divide and factor == 0:
            if is_try:
                return None
            raise RowError(
                "INTERVAL_DIVIDED_BY_ZERO",
                "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.",
            )
        if fractional:
            # Spark computes in doubles and rounds with Guava's DoubleMath.roundTo…(HALF_UP)
            number = value / factor if divide else value * factor
            if number != number or abs(number) == float("inf"):
                if is_try:
                    return None
                raise RowError("ARITHMETIC_OVERFLOW", "input is infinite or NaN.")
            whole = int(Decimal(number).to_integral_value(ROUND_HALF_UP, EXACT))
        else:
            with localcontext(EXACT):
                exact = Decimal(value) / Decimal(factor) if divide else Decimal(value) * Decimal(factor)
                whole = int(exact.to_integral_value(ROUND_HALF_UP))
        if not -limit <= whole < limit:
            if is_try:
                return None
            raise interval_overflow("try_divide" if divide else "try_multiply")
        return whole

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        if not divide and is_integral(spec.args[1]):
            values, factors, void = ints(a), ints(b), _both(a, b)
            if (np.abs(values.astype(np.float64) * factors) < min(limit, 2**62)).all():
                return with_nulls(values * factors, void, type_)
        pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
        return pa.array([None if v is None or f is None else scaled(v, f) for v, f in pairs], type_)

    return kernel


def date_array(days: Ints, void: Bools) -> pa.Array:
    """Days as DATE; beyond 32 bits is Spark's DATETIME_OVERFLOW / ARITHMETIC_OVERFLOW."""
    if (((days < MIN_DAY) | (days > MAX_DAY)) & ~void).any():
        raise RowError("ARITHMETIC_OVERFLOW", "integer overflow. The date is out of range.")
    return with_nulls(np.where(void, 0, days).astype(np.int32), void, pa.int32()).cast(pa.date32())


@implementation("date_add_days")
def date_add_days(spec: UdfSpec) -> Kernel:
    """Date ± days; params: (+1 | -1,)."""
    sign = spec.params[0] if spec.params else 1
    return lambda dates, count: date_array(ints(dates) + sign * ints(count), _both(dates, count))


@implementation("date_add_months")
def date_add_months(spec: UdfSpec) -> Kernel:
    """Date + months, clamped to the month's end."""

    def kernel(dates: pa.Array, count: pa.Array) -> pa.Array:
        return date_array(add_months(ints(dates), ints(count)), _both(dates, count))

    return kernel


@implementation("ts_add_months")
def ts_add_months(spec: UdfSpec) -> Kernel:
    """TIMESTAMP(_NTZ) + months on the wall clock; params: (zone,)."""
    zone = known_zone(spec.params[0]) if spec.returns == TIMESTAMP else None

    def error() -> RowError:
        return RowError("DATETIME_OVERFLOW", "Datetime operation overflow: add months to a timestamp.")

    def kernel(stamps: pa.Array, count: pa.Array) -> pa.Array:
        micros, void = ints(stamps), _both(stamps, count)
        local = to_local(micros, zone) if zone else micros
        days = add_months(local // MICROS_PER_DAY, ints(count))
        moved = wall_micros(days, local % MICROS_PER_DAY, void, error)
        result = to_instant(moved, zone, local - micros) if zone else moved
        return with_nulls(result, void, pa.int64()).cast(spec.returns.arrow())

    return kernel


@implementation("ts_add_micros")
def ts_add_micros(spec: UdfSpec) -> Kernel:
    """TIMESTAMP(_NTZ) + microseconds: whole days are days of the wall clock, the rest is exact time; params: (zone,)."""
    zone = known_zone(spec.params[0]) if spec.returns == TIMESTAMP else None

    def error() -> RowError:
        return RowError("DATETIME_OVERFLOW", "Datetime operation overflow: add an interval to a timestamp.")

    def kernel(stamps: pa.Array, micros: pa.Array) -> pa.Array:
        void = _both(stamps, micros)
        values, count = (np.where(void, 0, ints(a)) for a in (stamps, micros))
        if zone is not None and zone.region is not None:
            rest = np.fmod(count, MICROS_PER_DAY)
            local = to_local(values, zone)
            moved = to_instant(add_checked(local, count - rest, void, error), zone, local - values)
            total = add_checked(moved, rest, void, error)
        else:
            total = add_checked(values, count, void, error)
        return with_nulls(total, void, pa.int64()).cast(spec.returns.arrow())

    return kernel


@implementation("sub_dates")
def sub_dates(spec: UdfSpec) -> Kernel:
    """Date - date as INTERVAL DAY in microseconds."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        days, void = ints(a) - ints(b), _both(a, b)
        if ((np.abs(days) > 106_751_991) & ~void).any():
            raise interval_overflow()
        return with_nulls(np.where(void, 0, days) * MICROS_PER_DAY, void, pa.int64())

    return kernel


@implementation("sub_timestamps")
def sub_timestamps(spec: UdfSpec) -> Kernel:
    """timestamp - timestamp as INTERVAL DAY TO SECOND; params: (zone,).

    Spark takes both to the wall clock of the session's zone before it subtracts.
    """
    zone = known_zone(spec.params[0]) if spec.args[0] == TIMESTAMP else None

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        left, right, void = ints(a), ints(b), _both(a, b)
        if zone is not None and zone.region is not None:
            left, right = to_local(left, zone), to_local(right, zone)
        return with_nulls(subtract_checked(left, right, void, interval_overflow), void, pa.int64())

    return kernel
