"""Session time zones: Java's zone ids as Spark accepts them, turned into ids that Arrow knows; instants to wall clocks.

Arrow knows region names and ``+HH:MM``. Spark also takes ``GMT+1``, ``UT+2``, ``-08``, ``+1:30``, ``+0130``, ``+01:02:03``,
``Z`` and Java's three-letter ids (`java.time.ZoneId.SHORT_IDS`).

Arrow reads the transitions that a zone's file lists, which end in 2037, and knows no daylight saving time after that; Java goes
on with the zone's last rule. So later instants go through a table of transitions made from `zoneinfo`, which knows the rule.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.errors import UnsupportedError, UserError

SHORT_IDS: dict[str, str] = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip

_MAX_OFFSET_SECONDS = 18 * 3600  # java.time.ZoneOffset


@lru_cache(maxsize=256)
def offset_seconds(time_zone: str) -> int | None:
    """Seconds east of Greenwich of a fixed-offset id; None when the id is not of that form (a region name)."""
    zone = SHORT_IDS.get(time_zone, time_zone)
    if zone in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return 0
    for prefix in ("UTC", "GMT", "UT"):
        if zone.startswith((prefix + "+", prefix + "-")):
            zone = zone[len(prefix) :]
            break
    if zone[:1] not in ("+", "-"):
        return None
    parts = zone[1:].split(":")
    if len(parts) == 1 and len(parts[0]) in (4, 6):
        parts = [parts[0][i : i + 2] for i in range(0, len(parts[0]), 2)]
    if not 1 <= len(parts) <= 3 or not all(p.isascii() and p.isdigit() and 1 <= len(p) <= 2 for p in parts):
        return None
    hours, minutes, seconds = (*map(int, parts), 0, 0)[:3]
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > _MAX_OFFSET_SECONDS:
        return None
    return -total if zone[0] == "-" else total


@lru_cache(maxsize=256)
def arrow_zone(time_zone: str) -> str:
    """The id under which Arrow (and an Arrow client) knows the zone.

    Raises:
        UserError: INVALID_TIMEZONE for an id that nobody knows.
        UnsupportedError: an offset with seconds, which Arrow cannot name.
    """
    if time_zone in ("UTC", "Etc/UTC"):
        return time_zone
    offset = offset_seconds(time_zone)
    if offset is None:
        zone = SHORT_IDS.get(time_zone, time_zone)
        unknown = UserError("INVALID_TIMEZONE", f"The timezone: {time_zone} is invalid.")
        if not zone or zone[0] in "+-":  # Arrow takes no zone for none, and offsets beyond Java's
            raise unknown
        try:
            pc.local_timestamp(pa.scalar(0, pa.timestamp("us", zone)))
        except pa.ArrowException:
            raise unknown from None
        return zone
    if offset == 0:
        return "UTC"
    if offset % 60:
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"A session time zone with seconds ({time_zone}) is not supported."
        )
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def wall_clock(micros: npt.NDArray[np.int64], time_zone: str) -> npt.NDArray[np.int64]:
    """UTC microseconds -> microseconds of the zone's wall clock, both counted from 1970-01-01T00:00:00."""
    offset = offset_seconds(time_zone)
    if offset == 0:
        return micros
    if offset is not None:
        return micros + np.int64(offset * _SECOND)
    zone = arrow_zone(time_zone)
    instants = pa.array(micros, pa.int64()).view(pa.timestamp("us", zone))
    local: npt.NDArray[np.int64] = pc.local_timestamp(instants).view(pa.int64()).to_numpy()
    late = micros >= _LISTED_UNTIL
    if late.any():
        local = local.copy()
        local[late] = micros[late] + _late_offsets(micros[late], zone)
    return local


_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LISTED_UNTIL = int((datetime(2037, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * _SECOND
_LAST_RULE_UNTIL = int((datetime(2500, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * _SECOND
_CALENDAR_CYCLE = 146_097 * 86_400 * _SECOND  # 400 years: the same weekdays and leap years again
_PROBE_STEP = timedelta(days=7)  # shorter than any period between two changes of the clock after 2037


def _late_offsets(micros: npt.NDArray[np.int64], zone: str) -> npt.NDArray[np.int64]:
    """Offsets in microseconds of instants from 2037 on."""
    starts, offsets = _late_transitions(zone)
    beyond = np.maximum(micros - _LAST_RULE_UNTIL, -1) // _CALENDAR_CYCLE + 1
    period = np.searchsorted(starts, micros - beyond * _CALENDAR_CYCLE, side="right") - 1
    return np.asarray(offsets[period])


@lru_cache(maxsize=64)
def _late_transitions(zone: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Start and offset (microseconds) of every period of constant offset from 2037 to 2499."""
    info = ZoneInfo(zone)

    def offset_at(instant: datetime) -> timedelta:
        return instant.astimezone(info).utcoffset() or timedelta()

    instant = _EPOCH + timedelta(microseconds=_LISTED_UNTIL)
    end = _EPOCH + timedelta(microseconds=_LAST_RULE_UNTIL)
    offset = offset_at(instant)
    periods = [(instant, offset)]
    while instant < end:
        following = instant + _PROBE_STEP
        next_offset = offset_at(following)
        if next_offset != offset:
            low, high = instant, following
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                low, high = (middle, high) if offset_at(middle) == offset else (low, middle)
            periods.append((high, next_offset))
        instant, offset = following, next_offset
    tick = timedelta(microseconds=1)
    starts, offsets = zip(*(((start - _EPOCH) // tick, o // tick) for start, o in periods), strict=True)
    return np.array(starts, np.int64), np.array(offsets, np.int64)
