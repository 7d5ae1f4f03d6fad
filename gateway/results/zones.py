"""Session time zones: Java's zone ids as Spark accepts them, turned into ids that Arrow knows; instants to wall clocks.

Arrow knows region names and ``+HH:MM``. Spark also takes ``GMT+1``, ``UT+2``, ``-08``, ``+1:30``, ``+0130``, ``+01:02:03``,
``Z`` and Java's three-letter ids (`java.time.ZoneId.SHORT_IDS`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.errors import UnsupportedError, UserError
from gateway.instants import Zone, offsets_of

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


def wall_clock(micros: npt.NDArray[np.int64], time_zone: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """UTC microseconds -> whole seconds of the zone's wall clock since 1970-01-01T00:00:00, and microseconds of the second.

    In seconds, because the wall clock of the last hours of BIGINT microseconds has no BIGINT microseconds.
    """
    seconds, fraction = np.divmod(micros, 1_000_000)
    offset = offset_seconds(time_zone)
    if offset is None:
        seconds = seconds + offsets_of(micros, Zone(arrow_zone(time_zone))) // 1_000_000
    elif offset:
        seconds = seconds + offset
    return seconds, fraction
