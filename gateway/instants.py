"""Dates, instants and time zones as Spark has them: calendar arithmetic on numpy arrays, Java's zone ids, Spark's text forms.

Everything is whole numbers: days since 1970, microseconds since 1970 (UTC for instants, wall clock for local times), in the
proleptic Gregorian calendar without limits on the year. A local time in a gap moves forward by the gap's length, one in an
overlap takes the earlier offset, as in `java.time`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import MAXYEAR, date
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway import tzif
from gateway.errors import UnsupportedError

Ints = npt.NDArray[np.int64]

MICROS_PER_SECOND = 1_000_000
MICROS_PER_MINUTE = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR = 3600 * MICROS_PER_SECOND
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND
_EPOCH = date(1970, 1, 1).toordinal()
MIN_DAY, MAX_DAY = -(2**31), 2**31 - 1

#: What Spark trims around text that it casts: white space and control characters of ASCII.
BLANKS = "".join(map(chr, range(33))) + "\x7f"

# java.time.ZoneId.SHORT_IDS
_SHORT_IDS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


def months_of(days: Ints) -> Ints:
    """Months since January 1970 of dates."""
    months: Ints = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months


def month_starts(months: Ints) -> Ints:
    """Days since 1970 of the first days of months (counted from January 1970)."""
    days: Ints = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days


def fields_of(days: Ints) -> tuple[Ints, Ints, Ints]:
    """Year, month 1..12, day 1..31 of dates."""
    months = months_of(days)
    return months // 12 + 1970, months % 12 + 1, days - month_starts(months) + 1


def month_lengths(months: Ints) -> Ints:
    """Numbers of days of months (counted from January 1970)."""
    lengths: Ints = month_starts(months + 1) - month_starts(months)
    return lengths


def add_months(days: Ints, count: Ints) -> Ints:
    """Dates moved by months, the day clamped to the month's end."""
    months = months_of(days)
    day = days - month_starts(months)
    moved = months + count
    days_moved: Ints = month_starts(moved) + np.minimum(day, month_lengths(moved) - 1)
    return days_moved


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970 of a date; None if there is no such day."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    if 1 <= year <= MAXYEAR:
        try:
            return date(year, month, day).toordinal() - _EPOCH
        except ValueError:
            return None
    months = np.array([(year - 1970) * 12 + month - 1], dtype=np.int64)
    if day > int(month_lengths(months)[0]):
        return None
    return int(month_starts(months)[0]) + day - 1


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone: a region (`region` is its IANA name) or a fixed `offset` in microseconds east of UTC.

    `id` is what Java calls a fixed offset; offsets with different ids are equal.
    """

    region: str | None
    offset: int = 0
    id: str = field(default="UTC", compare=False)

    @property
    def arrow(self) -> str | None:
        """Arrow's name of the zone; None for offsets that Arrow has no name for."""
        if self.region is not None:
            return self.region
        seconds = abs(self.offset) // MICROS_PER_SECOND
        if seconds % 60:
            return None
        return f"{'-' if self.offset < 0 else '+'}{seconds // 3600:02d}:{seconds // 60 % 60:02d}" if seconds else "UTC"


UTC = Zone(None)


def _offset(text: str) -> int | None:
    """Microseconds of Java's offset forms ±h, ±hh, ±hh:mm, ±hhmm, ±hh:mm:ss, ±hhmmss; None if it is none of them."""
    if len(text) < 2 or text[0] not in "+-" or not text.isascii():
        return None
    body = text[1:]
    parts = body.split(":")
    if len(parts) == 1:
        if len(body) == 1:
            parts = [body]
        elif len(body) in (2, 4, 6):
            parts = [body[i : i + 2] for i in range(0, len(body), 2)]
        else:
            return None
    elif len(parts) == 2:
        # Spark also takes +h:mm and +hh:m
        parts = [parts[0].rjust(2, "0") if len(parts[0]) == 1 else parts[0], parts[1].rjust(2, "0")]
        if any(len(p) != 2 for p in parts):
            return None
    elif len(parts) != 3 or len(parts[0]) not in (1, 2) or any(len(p) != 2 for p in parts[1:]):
        return None
    if not all(p.isdigit() for p in parts):
        return None
    hours, minutes, seconds = [*map(int, parts), 0, 0][:3]
    if minutes > 59 or seconds > 59 or hours * 3600 + minutes * 60 + seconds > 18 * 3600:
        return None
    total = (hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND
    return -total if text[0] == "-" else total


def _offset_id(offset: int) -> str:
    """An offset other than zero as Java writes it: ``+01:00``, ``-01:02:03``."""
    seconds = abs(offset) // MICROS_PER_SECOND
    text = f"{'-' if offset < 0 else '+'}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


@lru_cache(maxsize=512)
def zone_of(name: str) -> Zone | None:
    """The zone of a Java zone id (region, short id, ``Z``, ``UTC+1``, ``+01:00`` …); None for an unknown one."""
    name = _SHORT_IDS.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT", "Etc/UTC", "Etc/GMT"):
        return Zone(None, 0, name)
    for prefix in ("", "UTC", "GMT", "UT"):
        if name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in ("+", "-"):
            offset = _offset(name[len(prefix) :])
            if offset is None:
                return None
            return Zone(None, offset, prefix + _offset_id(offset) if offset else prefix or "Z")
    if len(name) < 2 or not name.isascii() or name.lower().startswith(("posix", "right", "local", "factory")):
        return None
    try:
        if ZoneInfo(name).key != name:
            return None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return Zone(name)


def known_zone(name: str) -> Zone:
    """The zone of a session setting that was checked when it was set; ValueError otherwise."""
    zone = zone_of(name)
    if zone is None:
        raise ValueError(f"unknown time zone {name}")
    return zone


def _period_offsets(values: Ints, bounds: Ints, table: tzif.Periods) -> Ints:
    """The offset of each value's period; `bounds` are the table's starts or their wall clock times."""
    if not len(values):
        return values
    if table.until is not None and int(values.max()) > table.until:
        beyond = (np.maximum(values, table.until - 1) - table.until) // tzif.CYCLE + 1
        values = values - beyond * tzif.CYCLE
    # most arrays lie within few periods
    low, high = np.searchsorted(bounds, [values.min(), values.max()], side="right")
    offsets: Ints = table.offsets[low : high + 1][np.searchsorted(bounds[low:high], values, side="right")]
    return offsets


def offsets_of(micros: Ints, zone: Zone) -> Ints:
    """Microseconds east of UTC that are in force at instants."""
    if zone.region is None:
        return np.full(len(micros), zone.offset, dtype=np.int64)
    table = tzif.periods(zone.region)
    return _period_offsets(micros, table.starts, table)


def _shifted(values: Ints, offsets: Ints | int) -> Ints:
    """values + offsets; refused where that leaves 64 bits, which Java's clocks do not know as a limit."""
    moved: Ints = values + offsets
    near_end = len(values) and (int(values.max()) > _NEAR_END or int(values.min()) < -_NEAR_END)
    if near_end and (((values ^ moved) & (offsets ^ moved)) < 0).any():
        raise UnsupportedError("UNSUPPORTED_FEATURE", BEYOND_CLOCK)
    return moved


_NEAR_END = 2**63 - MICROS_PER_DAY
#: What is said of the last hours that a timestamp can hold.
BEYOND_CLOCK = "A timestamp whose wall clock time is beyond the range of timestamps is not supported here."


def to_local(micros: Ints, zone: Zone) -> Ints:
    """Wall clock microseconds of instants."""
    return _shifted(micros, zone.offset if zone.region is None else offsets_of(micros, zone))


def to_instant(local: Ints, zone: Zone, kept: Ints | None = None) -> Ints:
    """Instants of wall clock microseconds; gaps move forward, overlaps take the earlier offset, or that of `kept` if it fits.

    `kept` are the offsets of the times that were moved to `local`, as `java.time.ZonedDateTime` keeps them.
    """
    if zone.region is None:
        return _shifted(local, -zone.offset)
    table = tzif.periods(zone.region)
    first = _shifted(local, -_period_offsets(local, table.walls, table))
    if kept is None:
        return first
    other = _shifted(local, -kept)
    return np.where(offsets_of(other, zone) == kept, other, first)


def instant_of(local: int, zone: Zone, kept: int | None = None) -> int:
    """`to_instant` of one value."""
    offsets = None if kept is None else np.array([kept], dtype=np.int64)
    return int(to_instant(np.array([local], dtype=np.int64), zone, offsets)[0])


def local_of(micros: int, zone: Zone) -> int:
    """`to_local` of one value."""
    return int(to_local(np.array([micros], dtype=np.int64), zone)[0])


def _digits(text: str, least: int, most: int) -> int | None:
    return int(text) if least <= len(text) <= most and text.isascii() and text.isdigit() else None


def parse_date(text: str) -> int | None:
    """Days since 1970 of Spark's date forms ``[+-]y{4,7}[-[m]m[-[d]d[( |T)anything]]]``; None for anything else."""
    text = text.strip(BLANKS)
    sign = 1
    if text[:1] in ("+", "-"):
        sign = -1 if text[0] == "-" else 1
        text = text[1:]
    parts = text.split("-", 2)
    if len(parts) == 3:
        day = parts[2]
        for i, c in enumerate(day):
            if c in " T":
                day = day[:i]
                break
        parts[2] = day
    year = _digits(parts[0], 4, 7)
    rest = [_digits(p, 1, 2) for p in parts[1:]]
    if year is None or None in rest:
        return None
    month, day_ = [*rest, 1, 1][:2]
    assert month is not None and day_ is not None
    days = days_of(sign * year, month, day_)
    return days if days is not None and MIN_DAY <= days <= MAX_DAY else None


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a timestamp text says: the wall clock, and its own zone if it names one. `days` None: a time of day only."""

    days: int | None
    micros: int  # of the day
    zone: Zone | None


def parse_stamp(text: str) -> Stamp | None:
    """Spark's timestamp forms (SparkDateTimeUtils.parseTimestampString); None for anything else.

    ``[+-]y{4,6}[-[m]m[-[d]d[( |T)[h]h[:[m]m[:[s]s[.f*][zone]]]]]]``, or the time alone with or without a leading T.
    """
    text = text.strip(BLANKS)
    if not text:
        return None
    sign, signed = 1, text[0] in "+-"
    if signed:
        sign = -1 if text[0] == "-" else 1
        text = text[1:]
    days: int | None = None
    if text[:1] == "T" and not signed:
        clock = text[1:]
    elif ":" in text[:3] and not signed and "-" not in text[:3]:
        clock = text
    else:
        head, mark, clock = _split_clock(text)
        parts = head.split("-")
        year = _digits(parts[0], 4, 6)
        rest = [_digits(p, 1, 2) for p in parts[1:]]
        if year is None or None in rest or len(parts) > 3 or (mark and len(parts) < 3):
            return None
        month, day = [*rest, 1, 1][:2]
        assert month is not None and day is not None
        days = days_of(sign * year, month, day)
        if days is None:
            return None
        if not mark:
            return Stamp(days, 0, None)
    time = _parse_clock(clock)
    return None if time is None else Stamp(days, time[0], time[1])


def _split_clock(text: str) -> tuple[str, bool, str]:
    for i, c in enumerate(text):
        if c in " T":
            return text[:i], True, text[i + 1 :]
    return text, False, ""


def _parse_clock(text: str) -> tuple[int, Zone | None] | None:
    """Microseconds of the day and the zone of ``[h]h[:[m]m[:[s]s[.f*][zone]]]``."""
    values, at = [], 0
    for part in range(3):
        start = at
        while at < len(text) and at - start < 3 and "0" <= text[at] <= "9":
            at += 1
        value = _digits(text[start:at], 1, 2)
        if value is None:
            return None
        values.append(value)
        if part < 2:
            if at == len(text):
                break
            if text[at] != ":":
                return None
            at += 1
    micros, zone = 0, None
    if at < len(text):
        if text[at] == ".":
            start = at + 1
            at = start
            while at < len(text) and "0" <= text[at] <= "9":
                at += 1
            micros = int(text[start:at][:6].ljust(6, "0"))
        if at < len(text):
            zone = zone_of(text[at:].strip())
            if zone is None:
                return None
    hour, minute, second = [*values, 0, 0][:3]
    if hour > 23 or minute > 59 or second > 59:
        return None
    return (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + micros, zone


def parse_timestamp(text: str, zone: Zone) -> int | None:
    """Instant of a timestamp text, read in `zone` unless it names its own; None if malformed.

    A time without a date means today in Spark: the caller decides (`parse_stamp`), here it is None.
    """
    stamp = parse_stamp(text)
    if stamp is None or stamp.days is None:
        return None
    local, own = stamp.days * MICROS_PER_DAY + stamp.micros, stamp.zone or zone
    if own.region is None:
        micros = local - own.offset
    elif abs(local) < 2**63 - MICROS_PER_DAY:
        micros = instant_of(local, own)
    elif abs(local) < 2**63 + MICROS_PER_DAY:
        raise UnsupportedError("UNSUPPORTED_FEATURE", BEYOND_CLOCK)
    else:
        return None
    return micros if -(2**63) <= micros < 2**63 else None


def parse_ntz(text: str, allow_zone: bool = True) -> int | None:
    """Wall clock microseconds of a timestamp text, a zone in it ignored (or refused); None if malformed."""
    stamp = parse_stamp(text)
    if stamp is None or stamp.days is None or (stamp.zone is not None and not allow_zone):
        return None
    micros = stamp.days * MICROS_PER_DAY + stamp.micros
    return micros if -(2**63) <= micros < 2**63 else None


def date_text(days: int) -> str:
    """A date as Spark prints it: ``2020-01-31``, ``+10000-01-01``, ``-0001-12-31``."""
    year, month, day = (int(a[0]) for a in fields_of(np.array([days], dtype=np.int64)))
    head = f"+{year}" if year > 9999 else f"{year:04d}" if year >= 0 else f"-{-year:04d}"
    return f"{head}-{month:02d}-{day:02d}"


def stamp_text(local: int) -> str:
    """A wall clock time as Spark prints it, the fraction without trailing zeros."""
    days, rest = divmod(local, MICROS_PER_DAY)
    seconds, micros = divmod(rest, MICROS_PER_SECOND)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{date_text(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def ints(array: pa.Array) -> Ints:
    """The integers behind an array of numbers, dates or timestamps; NULLs are 0."""
    kind: Any = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
    numbers = array.cast(kind) if not pa.types.is_integer(array.type) else array
    if numbers.null_count:
        numbers = pc.fill_null(numbers, 0)
    values: Ints = numbers.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return values
