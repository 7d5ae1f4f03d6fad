"""Timestamps made from and turned into text, numbers, fields and other zones."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation, patterns
from gateway.engine.functions.cast_numbers import floats, nulls, saturated, timestamp_array, with_nulls
from gateway.engine.functions.datetimes import (
    checked_zone,
    days_of_fields,
    out_of_bounds,
    per_constant,
    void_of,
    walls,
    zone_param,
)
from gateway.engine.functions.intervals import interval_overflow, multiply_checked, wall_micros
from gateway.engine.functions.plain_texts import read_layouts
from gateway.instants import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    Ints,
    ints,
    to_instant,
    to_local,
)
from gateway.sqltypes import TIMESTAMP, TIMESTAMP_NTZ, DecimalType


@implementation("date_format")
def date_format(spec: UdfSpec) -> Kernel:
    """date_format(timestamp, pattern); params: (zone,). DATE counts as midnight."""
    zone, source = zone_param(spec), spec.args[0]

    def kernel(a: pa.Array, formats: pa.Array) -> pa.Array:
        local, void = walls(a, source, zone), nulls(a)
        if source == TIMESTAMP:
            offsets = local - ints(a)
        else:
            # Spark formats a DATE or NTZ value as the instant at that wall clock
            instants = to_instant(local, zone)
            local = to_local(instants, zone)
            offsets = local - instants

        def rows(pattern: str, index: Ints) -> pa.Array:
            if void[index].all():
                return pa.nulls(len(index), pa.string())
            texts = patterns.write(local[index], offsets[index], zone, pattern)
            return pc.if_else(pa.array(void[index]), pa.scalar(None, pa.string()), texts) if void.any() else texts

        return per_constant(formats, rows, pa.string(), len(a))

    return kernel


def _unparsable(text: str, function: str) -> RowError:
    return RowError(
        "CANNOT_PARSE_TIMESTAMP",
        f"Text '{text}' could not be parsed. Use `{function}` to tolerate invalid input string and return NULL instead.",
    )


@implementation("parse_datetime")
def parse_datetime(spec: UdfSpec) -> Kernel:
    """Text by pattern to TIMESTAMP or TIMESTAMP_NTZ; params: (zone, is_try, name of the tolerant function)."""
    zone, is_try, function = zone_param(spec), bool(spec.params[1]), spec.params[2]
    target = zone if spec.returns == TIMESTAMP else None

    def kernel(texts: pa.Array, formats: pa.Array) -> pa.Array:
        def one(text: str, pattern: str) -> int | None:
            try:
                value = patterns.read(text, pattern, target)
            except RowError as error:
                if target is None and error.condition.startswith(patterns.OLD_PATTERNS):
                    raise patterns.unknown(pattern) from None
                raise
            if value is None and not is_try:
                raise _unparsable(text, function)
            return value

        def rows(pattern: str, index: Ints) -> pa.Array:
            given = texts if len(index) == len(texts) else texts.take(pa.array(index))
            values, left = (
                np.zeros(len(given), np.int64),
                np.flatnonzero(given.is_valid().to_numpy(zero_copy_only=False)),
            )
            fixed = patterns.layout_of(pattern) if len(left) else None
            if fixed is not None:
                values, done = read_layouts(given, [fixed])
                if target is not None:
                    values = to_instant(values, target)
                left = left[~done[left]]
            void = nulls(given)
            if len(left):
                encoded = given.take(pa.array(left)).dictionary_encode()
                found = pa.array([one(text, pattern) for text in encoded.dictionary.to_pylist()], pa.int64())
                numbers = found.take(encoded.indices)
                values[left], void[left] = ints(numbers), nulls(numbers)
            return with_nulls(values, void, pa.int64()).cast(spec.returns.arrow())

        return per_constant(formats, rows, spec.returns.arrow(), len(texts))

    return kernel


def _long_overflow() -> RowError:
    return RowError("ARITHMETIC_OVERFLOW", "long overflow.")


@implementation("epoch_units")
def epoch_units(spec: UdfSpec) -> Kernel:
    """unix_seconds, unix_millis: floored; params: (microseconds per unit[, truncates])."""
    unit = spec.params[0]
    if len(spec.params) > 1:  # as Java divides
        return lambda a: with_nulls((ints(a) + np.where(ints(a) < 0, unit - 1, 0)) // unit, nulls(a), pa.int64())
    return lambda a: with_nulls(ints(a) // unit, nulls(a), pa.int64())


@implementation("from_epoch")
def from_epoch(spec: UdfSpec) -> Kernel:
    """timestamp_seconds, timestamp_millis, timestamp_micros of whole numbers; params: (microseconds per unit[, wraps])."""
    unit, wraps = spec.params[0], len(spec.params) > 1

    def kernel(a: pa.Array) -> pa.Array:
        values, void = ints(a), nulls(a)
        micros = values * unit if wraps else multiply_checked(values, unit, void, _long_overflow)
        return timestamp_array(micros, void, TIMESTAMP)

    return kernel


@implementation("from_epoch_fraction")
def from_epoch_fraction(spec: UdfSpec) -> Kernel:
    """timestamp_seconds of decimals and floats; NaN and infinities are NULL."""

    def kernel(a: pa.Array) -> pa.Array:
        if isinstance(spec.args[0], DecimalType):
            values: list[int | None] = []
            for value in a.to_pylist():
                if value is None:
                    values.append(None)
                    continue
                micros: Decimal = value * MICROS_PER_SECOND
                if not -(2**63) <= micros < 2**63:
                    raise _long_overflow()
                if micros != micros.to_integral_value():
                    raise RowError("ARITHMETIC_OVERFLOW", "Rounding necessary.")
                values.append(int(micros))
            return pa.array(values, pa.int64()).cast(TIMESTAMP.arrow())
        numbers = floats(a).astype(np.float64)
        void = nulls(a) | ~np.isfinite(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            product = np.where(void, 0.0, numbers) * 1e6
        return timestamp_array(saturated(product), void, TIMESTAMP)

    return kernel


@implementation("utc_shift")
def utc_shift(spec: UdfSpec) -> Kernel:
    """from_utc_timestamp ("from") and to_utc_timestamp ("to"); params: (direction,)."""
    forward = spec.params[0] == "from"

    def kernel(a: pa.Array, names: pa.Array) -> pa.Array:
        values, void = ints(a), nulls(a)

        def rows(name: str, index: Ints) -> pa.Array:
            if void[index].all():
                return pa.nulls(len(index), TIMESTAMP.arrow())
            zone = checked_zone(name)
            moved = to_local(values[index], zone) if forward else to_instant(values[index], zone)
            return timestamp_array(moved, void[index], TIMESTAMP)

        return per_constant(names, rows, TIMESTAMP.arrow(), len(a))

    return kernel


@implementation("convert_timezone")
def convert_timezone(spec: UdfSpec) -> Kernel:
    """convert_timezone(source zone, target zone, timestamp_ntz)."""

    def kernel(sources: pa.Array, targets: pa.Array, a: pa.Array) -> pa.Array:
        values, void = ints(a), void_of(sources, targets, a)
        size = len(a)

        def from_source(name: str, index: Ints) -> pa.Array:
            if void[index].all():
                return pa.nulls(len(index), pa.int64())
            return pa.array(to_instant(values[index], checked_zone(name)))

        instants = ints(per_constant(sources, from_source, pa.int64(), size))

        def to_target(name: str, index: Ints) -> pa.Array:
            if void[index].all():
                return pa.nulls(len(index), TIMESTAMP_NTZ.arrow())
            return timestamp_array(to_local(instants[index], checked_zone(name)), void[index], TIMESTAMP_NTZ)

        return per_constant(targets, to_target, TIMESTAMP_NTZ.arrow(), size)

    return kernel


_HALF = 1 << 31


@implementation("make_timestamp")
def make_timestamp(spec: UdfSpec) -> Kernel:
    """make_timestamp(y, mo, d, h, mi, sec DECIMAL(16,6)[, zone]); params: (zone, is_try)."""
    session, is_try = zone_param(spec), bool(spec.params[1])

    def kernel(*args: pa.Array) -> pa.Array:
        void = void_of(*args)
        year, month, day, hour, minute = (ints(a) for a in args[:5])
        if len(args) > 6:  # zones are looked up first, where nothing is NULL
            for name in pc.unique(args[6].filter(pa.array(~void))).to_pylist():
                checked_zone(name)
        seconds = (ints(_micros(args[5])) + _HALF) % (2 * _HALF) - _HALF  # Spark's are an INT, which wraps around
        days, bad_date = days_of_fields(year, month, day, void)
        bad = bad_date | (((hour < 0) | (hour > 23) | (minute < 0) | (minute > 59)) & ~void)
        # 60 whole seconds roll over into the next minute, a fraction beyond is refused
        bad_second = ((seconds < 0) | (seconds > 60 * MICROS_PER_SECOND)) & ~void
        if not is_try and (bad.any() or bad_second.any()):
            row = int(np.argmax(bad | bad_second))
            if bad_date[row]:
                raise out_of_bounds(int(year[row]), int(month[row]), int(day[row]))
            if bad[row]:
                raise RowError(
                    "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION",
                    f"Invalid value for hour or minute: {hour[row]}, {minute[row]}. If necessary set "
                    '"spark.sql.ansi.enabled" to "false" to bypass this error.',
                )
            if seconds[row] > 60 * MICROS_PER_SECOND and seconds[row] < 61 * MICROS_PER_SECOND:
                raise RowError(
                    "INVALID_FRACTION_OF_SECOND",
                    "Valid range for seconds is [0, 60] (inclusive), but the provided value is "
                    f"{int(seconds[row]) / 1e6:f}. To avoid this error, use `try_make_timestamp`, which returns NULL on "
                    "error.",
                )
            raise RowError(
                "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION",
                f"Invalid value for SecondOfMinute (valid values 0 - 59): {int(seconds[row]) // MICROS_PER_SECOND}. If "
                'necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
            )
        void = void | bad | bad_second
        clock = np.where(void, 0, hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE + seconds)
        local = wall_micros(days, clock, void, _long_overflow)
        if spec.returns == TIMESTAMP_NTZ:
            return timestamp_array(local, void, TIMESTAMP_NTZ)
        if len(args) == 6:
            return timestamp_array(to_instant(local, session), void, TIMESTAMP)

        def rows(name: str, index: Ints) -> pa.Array:
            if void[index].all():
                return pa.nulls(len(index), TIMESTAMP.arrow())
            return timestamp_array(to_instant(local[index], checked_zone(name)), void[index], TIMESTAMP)

        return per_constant(args[6], rows, TIMESTAMP.arrow(), len(local))

    return kernel


def _micros(seconds: pa.Array) -> pa.Array:
    """DECIMAL(p,6) seconds as whole microseconds."""
    whole = pa.Array.from_buffers(
        pa.decimal128(38, 0), len(seconds), seconds.buffers(), seconds.null_count, seconds.offset
    )
    return whole.cast(pa.int64())


@implementation("make_dt_interval")
def make_dt_interval(spec: UdfSpec) -> Kernel:
    """make_dt_interval(days, hours, mins, secs DECIMAL(18,6))."""

    def kernel(*args: pa.Array) -> pa.Array:
        days, hours, minutes = (a.to_pylist() for a in args[:3])
        seconds = _micros(args[3]).to_pylist()
        out: list[int | None] = []
        for d, h, m, s in zip(days, hours, minutes, seconds, strict=True):
            if None in (d, h, m, s):
                out.append(None)
                continue
            total = d * MICROS_PER_DAY + h * MICROS_PER_HOUR + m * MICROS_PER_MINUTE + s
            if not -(2**63) <= total < 2**63:
                raise interval_overflow()
            out.append(total)
        return pa.array(out, pa.int64())

    return kernel


@implementation("make_ym_interval")
def make_ym_interval(spec: UdfSpec) -> Kernel:
    """make_ym_interval(years, months)."""

    def kernel(years: pa.Array, months: pa.Array) -> pa.Array:
        total, void = ints(years) * 12 + ints(months), void_of(years, months)
        if (((total < -(2**31)) | (total >= 2**31)) & ~void).any():
            raise interval_overflow()
        return with_nulls(np.where(void, 0, total), void, pa.int32())

    return kernel
