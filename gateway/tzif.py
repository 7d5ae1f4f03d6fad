"""Time zone files (RFC 8536): the listed changes of the clock, and the rule of the footer that holds for ever after.

Arrow reads the list alone, which ends in 2037 or where the present rule begins (2007 in New York); Java goes on with the rule.
So zones are converted through the tables made here. The machine's files come before those of the package ``tzdata``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import TZPATH

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_DAY = 86_400
_MICROS = 1_000_000
_CYCLE_YEARS = 400
#: Microseconds of 400 years, after which the calendar has the same weekdays and leap years again.
CYCLE = 146_097 * _DAY * _MICROS
_TYPES = np.dtype([("offset", ">i4"), ("summer", "u1"), ("name", "u1")])


@dataclass(frozen=True, slots=True)
class Periods:
    """Periods of constant offset, in microseconds: `offsets[0]` before `starts[0]`, `offsets[i + 1]` from `starts[i]` on.

    `walls` are the starts on the wall clock: the first local times that the new offset alone, or it first, belongs to.
    What is later than `until` is as 400 years before, if `until` is not None.
    """

    starts: Ints
    offsets: Ints
    walls: Ints
    until: int | None


# Regions that became links in release 2024b, which Java has; older files of this system hold rules of their own.
_LINKS = {
    "CET": "Europe/Brussels",
    "MET": "Europe/Brussels",
    "EET": "Europe/Athens",
    "WET": "Europe/Lisbon",
    "EST5EDT": "America/New_York",
    "CST6CDT": "America/Chicago",
    "MST7MDT": "America/Denver",
    "PST8PDT": "America/Los_Angeles",
}


@lru_cache(maxsize=64)
def periods(key: str) -> Periods:
    """The periods of the zone with the IANA name `key`, which exists."""
    starts, offsets, footer = _listed(_content(_LINKS.get(key, key)))
    names_and_rules = footer.split(",")
    if len(names_and_rules) != 3:
        return _in_micros(starts, offsets, None)
    standard, summer = _standard_and_summer(names_and_rules[0])
    last_listed = int(starts[-1]) if len(starts) else 0
    first = _year_of(last_listed)
    years = np.arange(first, first + _CYCLE_YEARS + 2)
    to_summer = _moments(names_and_rules[1], years) - standard
    to_standard = _moments(names_and_rules[2], years) - summer
    moments = np.concatenate([to_summer, to_standard])
    after = np.concatenate([np.full(len(years), summer), np.full(len(years), standard)])
    order = np.argsort(moments, kind="stable")
    later = order[moments[order] > last_listed]
    until = int(_moments("J1/0", years[-1:])[0])
    return _in_micros(np.concatenate([starts, moments[later]]), np.concatenate([offsets, after[later]]), until)


def _in_micros(starts: Ints, offsets: Ints, until: int | None) -> Periods:
    """The periods from seconds; "since ever" of old files stays within 64 bits."""
    begun = np.maximum(starts, -(2**63) // _MICROS + 2 * _DAY)
    walls = begun + np.maximum(offsets[:-1], offsets[1:])
    return Periods(begun * _MICROS, offsets * _MICROS, walls * _MICROS, None if until is None else until * _MICROS)


def _content(key: str) -> bytes:
    for folder in TZPATH:
        path = Path(folder, key)
        if path.is_file():
            return path.read_bytes()
    return resources.files("tzdata").joinpath("zoneinfo", *key.split("/")).read_bytes()


def _listed(content: bytes) -> tuple[Ints, Ints, str]:
    """Starts, offsets (one more) and footer of the 64-bit block, which follows one of 32 bits."""

    def counts(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", content[at + 20 : at + 44])

    utc, standard, leaps, times, types, chars = counts(0)
    at = 44 + times * 5 + types * 6 + chars + leaps * 8 + standard + utc
    utc, standard, leaps, times, types, chars = counts(at)
    at += 44
    starts = np.frombuffer(content, ">i8", times, at).astype(np.int64)
    kinds = np.frombuffer(content, "u1", times, at + times * 8)
    at += times * 9
    offsets = np.frombuffer(content, _TYPES, types, at)["offset"].astype(np.int64)
    at += types * 6 + chars + leaps * 12 + standard + utc
    return starts, np.concatenate([offsets[:1], offsets[kinds]]), content[at:].strip().decode("ascii")


def _standard_and_summer(names: str) -> tuple[int, int]:
    """Seconds east of both times of ``EST5EDT`` or ``<+1030>-10:30<+11>-11``; an hour apart if the second says nothing."""
    values: list[int] = []
    rest = names
    for _ in range(2):
        rest = rest[rest.index(">") + 1 :] if rest.startswith("<") else rest.lstrip(_LETTERS)
        size = next((i for i, c in enumerate(rest) if c == "<" or c in _LETTERS), len(rest))
        values.append(-_seconds(rest[:size]) if size else values[0] + 3600)
        rest = rest[size:]
    return values[0], values[1]


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _seconds(text: str) -> int:
    """Seconds of ``[+-]h[:mm[:ss]]``."""
    parts = [*map(int, text.lstrip("+-").split(":")), 0, 0]
    total = parts[0] * 3600 + parts[1] * 60 + parts[2]
    return -total if text.startswith("-") else total


def _moments(rule: str, years: Ints) -> Ints:
    """Wall clock seconds since 1970 of ``M3.2.0/2`` (a weekday of a month) or ``J60`` and ``59`` (a day of the year)."""
    day, _, clock = rule.partition("/")
    seconds = _seconds(clock) if clock else 7200
    new_year = (years - 1970).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    if not day.startswith("M"):
        number = int(day.lstrip("J"))
        leap = np.diff(np.append(new_year, _new_year(int(years[-1]) + 1))) == 366
        days = new_year + (number - 1 + (leap & (number > 59)) if day.startswith("J") else number)
        return np.asarray(days * _DAY + seconds)
    month, week, weekday = map(int, day[1:].split("."))
    start = ((years - 1970) * 12 + month - 1).astype("datetime64[M]")
    first = start.astype("datetime64[D]").astype(np.int64)
    length = (start + 1).astype("datetime64[D]").astype(np.int64) - first
    # 1970-01-01 was a Thursday, weekday 4; week 5 is the last one
    days = first + (weekday - first - 4) % 7 + 7 * (week - 1)
    days = np.where(days >= first + length, days - 7, days)
    return np.asarray(days * _DAY + seconds)


def _new_year(year: int) -> int:
    return int(np.datetime64(f"{year}-01-01", "D").astype(np.int64))


def _year_of(second: int) -> int:
    return int(np.datetime64(second, "s").astype("datetime64[Y]").astype(np.int64)) + 1970
