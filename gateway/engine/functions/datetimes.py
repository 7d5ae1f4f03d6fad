"""Date and time functions that DataFusion lacks or answers differently, on whole arrays of days and microseconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation, patterns
from gateway.engine.functions.cast_numbers import Bools, nulls, timestamp_array, unscaled_to_decimal, with_nulls
from gateway.engine.functions.intervals import (
    UNIT_MICROS,
    add_checked,
    date_array,
    multiply_checked,
    toward_zero,
    wall_micros,
)
from gateway.instants import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    Ints,
    Zone,
    add_months,
    fields_of,
    ints,
    known_zone,
    month_lengths,
    month_starts,
    months_of,
    to_instant,
    to_local,
    zone_of,
)
from gateway.sqltypes import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, DecimalType


def void_of(*arrays: pa.Array) -> Bools:
    """Rows in which any argument is NULL."""
    void = nulls(arrays[0])
    for array in arrays[1:]:
        void = void | nulls(array)
    return void


def zone_param(spec: UdfSpec) -> Zone:
    """The session's zone, first of the params."""
    return known_zone(spec.params[0])


def walls(array: pa.Array, type: DataType, zone: Zone) -> Ints:
    """Wall clock microseconds of a TIMESTAMP (in `zone`), TIMESTAMP_NTZ or DATE array."""
    if type == DATE:
        return ints(array) * MICROS_PER_DAY
    return to_local(ints(array), zone) if type == TIMESTAMP else ints(array)


def per_constant(texts: pa.Array, rows: Callable[[str, Ints], pa.Array], type: pa.DataType, size: int) -> pa.Array:
    """An array put together from one call per distinct value of `texts` (mostly one); NULL where that is NULL."""
    encoded = texts.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if len(words) == 1 and not texts.null_count:
        return rows(words[0], np.arange(size))
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    pieces = [pa.nulls(int((codes == -1).sum()), type)]
    order = [np.flatnonzero(codes == -1)]
    for code, word in enumerate(words):
        index = np.flatnonzero(codes == code)
        pieces.append(rows(word, index))
        order.append(index)
    places = np.argsort(np.concatenate(order), kind="stable")
    return pa.concat_arrays(pieces).take(pa.array(places))


def invalid_zone(name: str) -> RowError:
    """INVALID_TIMEZONE."""
    return RowError(
        "INVALID_TIMEZONE",
        f"The timezone: {name} is invalid. The timezone must be either a region-based zone ID or a zone offset. Region IDs "
        "must have the form 'area/city', such as 'America/Los_Angeles'. Zone offsets must be in the format '(+|-)HH', "
        "'(+|-)HH:mm' or '(+|-)HH:mm:ss', e.g '-08' , '+01:00' or '-13:33:33', and must be in the range from -18:00 to "
        "+18:00. 'Z' and 'UTC' are accepted as synonyms for '+00:00'.",
    )


def checked_zone(name: str) -> Zone:
    """The zone that a value names."""
    zone = zone_of(name)
    if zone is None:
        raise invalid_zone(name)
    return zone


@implementation("local_time")
def local_time(spec: UdfSpec) -> Kernel:
    """TIMESTAMP to its wall clock (TIMESTAMP_NTZ); params: (zone,)."""
    zone = zone_param(spec)
    return lambda a: timestamp_array(to_local(ints(a), zone), nulls(a), TIMESTAMP_NTZ)


@implementation("second_fraction")
def second_fraction(spec: UdfSpec) -> Kernel:
    """Seconds of the minute with the fraction, DECIMAL(8,6), of wall clock times or day-time intervals."""
    assert isinstance(spec.returns, DecimalType)
    target = spec.returns

    def kernel(a: pa.Array) -> pa.Array:
        values = ints(a)
        part = np.fmod(values, MICROS_PER_MINUTE) if pa.types.is_integer(a.type) else values % MICROS_PER_MINUTE
        return unscaled_to_decimal(with_nulls(part, nulls(a), pa.int64()).cast(pa.decimal128(38, 0)), target)

    return kernel


@implementation("interval_field")
def interval_field(spec: UdfSpec) -> Kernel:
    """A field of an interval, cut toward zero; params: (field,)."""
    unit, most = {
        "year": (12, None), "month": (1, 12), "day": (MICROS_PER_DAY, None), "hour": (MICROS_PER_HOUR, 24),
        "minute": (MICROS_PER_MINUTE, 60),
    }[spec.params[0]]  # fmt: skip

    def kernel(a: pa.Array) -> pa.Array:
        units = toward_zero(ints(a), unit)
        return with_nulls(np.fmod(units, most) if most is not None else units, nulls(a), spec.returns.arrow())

    return kernel


@implementation("far_part")
def far_part(spec: UdfSpec) -> Kernel:
    """A field of dates and wall clock times of any year, as date_part counts it; params: (field,)."""
    field, is_date = spec.params[0], spec.args[0] == DATE

    def kernel(a: pa.Array) -> pa.Array:
        values = ints(a)
        days = values if is_date else values // MICROS_PER_DAY
        return with_nulls(_field(field, days, 0 if is_date else values % MICROS_PER_DAY), nulls(a), pa.int32())

    return kernel


_CLOCK = {"hour": (MICROS_PER_HOUR, 24), "minute": (MICROS_PER_MINUTE, 60), "second": (MICROS_PER_SECOND, 60)}


def _field(field: str, days: Ints, time: Ints | int) -> Ints:
    if field in _CLOCK:
        unit, most = _CLOCK[field]
        clock: Ints = np.asarray(time) // unit % most + np.zeros_like(days)
        return clock
    year, month, day = fields_of(days)
    thursday = days - (days + 3) % 7 + 3
    values: dict[str, Ints] = {
        "year": year,
        "quarter": (month + 2) // 3,
        "month": month,
        "day": day,
        "doy": days - month_starts((year - 1970) * 12) + 1,
        "week": (thursday - month_starts((fields_of(thursday)[0] - 1970) * 12)) // 7 + 1,
        "dow": (days + 4) % 7,
        "isodow": (days + 3) % 7 + 1,
    }
    return values[field]


@implementation("year_of_week")
def year_of_week(spec: UdfSpec) -> Kernel:
    """ISO year that the date's week belongs to."""

    def kernel(a: pa.Array) -> pa.Array:
        days = ints(a)
        thursday = days - (days + 3) % 7 + 3
        return with_nulls(fields_of(thursday)[0], nulls(a), pa.int32())

    return kernel


@implementation("weekday_name")
def weekday_name(spec: UdfSpec) -> Kernel:
    """``Mon`` … of dates."""
    names = pa.array([d[:3] for d in patterns.DAYS])
    return lambda a: names.take(with_nulls((ints(a) + 3) % 7, nulls(a), pa.int64()))


@implementation("month_name")
def month_name(spec: UdfSpec) -> Kernel:
    """``Jan`` … of dates."""
    names = pa.array([m[:3] for m in patterns.MONTHS])
    return lambda a: names.take(with_nulls(months_of(ints(a)) % 12, nulls(a), pa.int64()))


def wrapped_dates(days: Ints, void: Bools) -> pa.Array:
    """Days as DATE, in 32 bits that wrap around, as those of Spark do."""
    return with_nulls(days.astype(np.int32), void, pa.int32()).cast(pa.date32())


@implementation("last_day")
def last_day(spec: UdfSpec) -> Kernel:
    """The last day of the month."""

    def kernel(a: pa.Array) -> pa.Array:
        return wrapped_dates(month_starts(months_of(ints(a)) + 1) - 1, nulls(a))

    return kernel


@implementation("add_months_checked")
def add_months_checked(spec: UdfSpec) -> Kernel:
    """add_months(date, n)."""
    return lambda a, n: date_array(add_months(ints(a), ints(n)), void_of(a, n))


@implementation("date_add_wrapping")
def date_add_wrapping(spec: UdfSpec) -> Kernel:
    """date_add / date_sub: 32-bit days that wrap, as in Spark; params: (+1 | -1,)."""
    sign = spec.params[0]

    def kernel(a: pa.Array, n: pa.Array) -> pa.Array:
        return wrapped_dates(ints(a) + sign * ints(n), void_of(a, n))

    return kernel


_WEEKDAYS = {
    name: i
    for i, names in enumerate(
        (("MO", "MON", "MONDAY"), ("TU", "TUE", "TUESDAY"), ("WE", "WED", "WEDNESDAY"), ("TH", "THU", "THURSDAY"),
         ("FR", "FRI", "FRIDAY"), ("SA", "SAT", "SATURDAY"), ("SU", "SUN", "SUNDAY"))
    )
    for name in names
}  # fmt: skip


@implementation("next_day")
def next_day(spec: UdfSpec) -> Kernel:
    """The first such weekday after the date."""

    def kernel(a: pa.Array, names: pa.Array) -> pa.Array:
        days, void = ints(a), void_of(a, names)

        def rows(name: str, index: Ints) -> pa.Array:
            wanted = _WEEKDAYS.get(name.upper())
            if wanted is None:
                if void[index].all():
                    return pa.nulls(len(index), pa.date32())
                raise RowError("ILLEGAL_DAY_OF_WEEK", f"Illegal input for day of week: {name}.")
            start = days[index]
            return wrapped_dates(start + 1 + (wanted - (start + 1 + 3)) % 7, void[index])

        return per_constant(names, rows, pa.date32(), len(a))

    return kernel


@implementation("make_date")
def make_date(spec: UdfSpec) -> Kernel:
    """make_date(year, month, day)."""

    def kernel(*args: pa.Array) -> pa.Array:
        void = void_of(*args)
        year, month, day = (ints(a) for a in args)
        days, bad = days_of_fields(year, month, day, void, _MOST_YEARS)
        if bad.any():
            row = int(np.argmax(bad))
            raise out_of_bounds(int(year[row]), int(month[row]), int(day[row]))
        return date_array(days, void)

    return kernel


_MOST_YEARS = 999_999_999  # of java.time.LocalDate; of a DATE they are 5,881,580


def days_of_fields(year: Ints, month: Ints, day: Ints, void: Bools, most_years: int = 5_881_580) -> tuple[Ints, Bools]:
    months = np.where((month >= 1) & (month <= 12) & (np.abs(year) <= _MOST_YEARS), (year - 1970) * 12 + month - 1, 0)
    fits = (month >= 1) & (month <= 12) & (day >= 1) & (np.abs(year) <= most_years) & (day <= month_lengths(months))
    return np.where(fits & ~void, month_starts(months) + day - 1, 0), ~fits & ~void


def out_of_bounds(*values: int) -> RowError:
    year, month, day = values[:3]
    if not 1 <= month <= 12:
        text = f"Invalid value for MonthOfYear (valid values 1 - 12): {month}"
    elif not 1 <= day <= 31:
        text = f"Invalid value for DayOfMonth (valid values 1 - 28/31): {day}"
    else:
        text = f"Invalid date: year {year}, month {month}, day {day}"
    return RowError(
        "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION",
        f'{text}. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
    )


_TRUNC_DATE = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MM": "month", "MON": "month",
    "WEEK": "week",
}  # fmt: skip
_TRUNC_TIME = _TRUNC_DATE | {
    "DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second", "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}  # fmt: skip


def truncated_days(days: Ints, unit: str) -> Ints:
    """The first day of the year, quarter, month or ISO week."""
    if unit == "week":
        return days - (days + 3) % 7
    size = {"year": 12, "quarter": 3, "month": 1}[unit]
    return month_starts(months_of(days) // size * size)


@implementation("trunc")
def trunc(spec: UdfSpec) -> Kernel:
    """trunc(date, format): NULL for a format that it doesn't know."""

    def kernel(a: pa.Array, formats: pa.Array) -> pa.Array:
        days, void = ints(a), nulls(a)

        def rows(name: str, index: Ints) -> pa.Array:
            unit = _TRUNC_DATE.get(name.upper())
            if unit is None:
                return pa.nulls(len(index), pa.date32())
            return wrapped_dates(truncated_days(days[index], unit), void[index])

        return per_constant(formats, rows, pa.date32(), len(a))

    return kernel


@implementation("date_trunc")
def date_trunc(spec: UdfSpec) -> Kernel:
    """date_trunc(format, timestamp) on the wall clock; params: (zone,)."""
    zone, source = zone_param(spec), spec.args[1]

    def kernel(formats: pa.Array, a: pa.Array) -> pa.Array:
        values, void = ints(a), nulls(a)

        def rows(name: str, index: Ints) -> pa.Array:
            unit = _TRUNC_TIME.get(name.upper())
            if unit is None:
                return pa.nulls(len(index), spec.returns.arrow())
            start = _truncated(values[index], unit, zone, source)
            if (start > values[index]).any():  # wrapped around, before the first timestamp
                raise RowError("ARITHMETIC_OVERFLOW", "long overflow.")
            return timestamp_array(start, void[index], spec.returns)

        return per_constant(formats, rows, spec.returns.arrow(), len(a))

    return kernel


def _truncated(values: Ints, unit: str, zone: Zone, source: DataType) -> Ints:
    if unit == "microsecond":
        return values
    if unit in ("second", "millisecond"):
        size = MICROS_PER_SECOND if unit == "second" else 1000
        return values - values % size
    local = to_local(values, zone) if source == TIMESTAMP else values
    if unit in ("day", "hour", "minute"):
        # the offset in force stays where it can (hours that occur twice are told apart)
        moved, kept = local - local % UNIT_MICROS[unit], local - values
    else:
        moved, kept = truncated_days(local // MICROS_PER_DAY, unit) * MICROS_PER_DAY, None
    return to_instant(moved, zone, kept) if source == TIMESTAMP else moved


@implementation("months_between")
def months_between(spec: UdfSpec) -> Kernel:
    """months_between(a, b, roundOff) over timestamps; params: (zone,)."""
    zone = zone_param(spec)

    def kernel(a: pa.Array, b: pa.Array, rounded: pa.Array) -> pa.Array:
        left, right = to_local(ints(a), zone), to_local(ints(b), zone)
        d1, d2 = left // MICROS_PER_DAY, right // MICROS_PER_DAY
        m1, m2 = months_of(d1), months_of(d2)
        day1, day2 = d1 - month_starts(m1) + 1, d2 - month_starts(m2) + 1
        whole = (day1 == day2) | ((day1 == month_lengths(m1)) & (day2 == month_lengths(m2)))
        # exact time since midnight, which is not that of the clock on a day when it changes
        s1, s2 = (
            (ints(x) - to_instant(day * MICROS_PER_DAY, zone)) // MICROS_PER_SECOND for x, day in ((a, d1), (b, d2))
        )
        seconds = (day1 - day2) * 86_400 + s1 - s2
        result = np.where(whole, (m1 - m2).astype(np.float64), (m1 - m2) + seconds / (31 * 86_400.0))
        flags = np.asarray(pc.fill_null(rounded, True).to_numpy(zero_copy_only=False), dtype=np.bool_)
        # Java's Math.round: floor(x + 0.5)
        result = np.where(flags & ~whole, np.floor(result * 1e8 + 0.5) / 1e8, result)
        return with_nulls(result, void_of(a, b, rounded), pa.float64())

    return kernel


_MONTH_UNITS = {"month": 1, "quarter": 3, "year": 12}
_TIME_UNITS = UNIT_MICROS | {
    "week": 7 * MICROS_PER_DAY,
    "millisecond": 1000,
    "microsecond": 1,
    "dayofyear": MICROS_PER_DAY,
}


def _overflow(operation: str) -> RowError:
    return RowError("DATETIME_OVERFLOW", f"Datetime operation overflow: {operation}.")


@implementation("timestamp_add")
def timestamp_add(spec: UdfSpec) -> Kernel:
    """timestampadd(unit, count BIGINT, timestamp); params: (zone, unit). Days and more move the wall clock."""
    zone, unit = zone_param(spec), spec.params[1]
    source = spec.args[1]

    def failed() -> RowError:
        return _overflow(f"add {unit} to a timestamp")

    def kernel(count: pa.Array, a: pa.Array) -> pa.Array:
        values, steps, void = ints(a), ints(count), void_of(count, a)
        local = to_local(values, zone) if source == TIMESTAMP else values
        if unit in _MONTH_UNITS:
            if ((np.abs(steps.astype(np.float64)) > 2**31) & ~void).any():
                raise failed()
            days = add_months(local // MICROS_PER_DAY, np.where(void, 0, steps) * _MONTH_UNITS[unit])
            moved = wall_micros(days, local % MICROS_PER_DAY, void, failed)
        else:
            by_calendar = unit in ("day", "week", "dayofyear")
            span = multiply_checked(steps, _TIME_UNITS[unit], void, failed)
            moved = add_checked(local if by_calendar else values, span, void, failed)
            if not by_calendar:
                return timestamp_array(moved, void, spec.returns)
        result = to_instant(moved, zone, local - values) if source == TIMESTAMP else moved
        return timestamp_array(result, void, spec.returns)

    return kernel


@implementation("timestamp_diff")
def timestamp_diff(spec: UdfSpec) -> Kernel:
    """timestampdiff(unit, start, end): whole units between wall clock times, cut toward zero; params: (zone, unit)."""
    zone, unit = zone_param(spec), spec.params[1]

    def kernel(start: pa.Array, end: pa.Array) -> pa.Array:
        left, right = (walls(x, t, zone) for x, t in zip((start, end), spec.args, strict=True))
        void = void_of(start, end)
        size = _MONTH_UNITS.get(unit)
        if size is None:
            return with_nulls(_units_between(left, right, _TIME_UNITS[unit], void), void, pa.int64())
        (begin, begun), (last, ended) = (np.divmod(v, MICROS_PER_DAY) for v in (left, right))
        # as java.time.LocalDateTime.until: an unfinished day is taken off first, then months are counted between dates
        last = last - ((last > begin) & (ended < begun)) + ((last < begin) & (ended > begun))
        days = _packed(last) - _packed(begin)
        return with_nulls(np.sign(days) * (np.abs(days) // _PACKED // size), void, pa.int64())

    return kernel


def _units_between(left: Ints, right: Ints, size: int, void: Bools) -> Ints:
    """(right - left) / size cut toward zero; the difference itself may need more than 64 bits."""
    behind = right < left
    apart = np.where(behind, left.view(np.uint64) - right.view(np.uint64), right.view(np.uint64) - left.view(np.uint64))
    count = apart // np.uint64(size)
    if ((count > np.uint64(2**63 - 1)) & ~void).any():
        raise RowError("ARITHMETIC_OVERFLOW", "long overflow.")
    return np.where(behind, -1, 1) * count.astype(np.int64)


_PACKED = 32  # days of a month, as java.time.LocalDate counts months


def _packed(days: Ints) -> Ints:
    """Months since 1970 times 32, and the day of the month."""
    months = months_of(days)
    return months * _PACKED + days - month_starts(months)
