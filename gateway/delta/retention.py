"""How long a table keeps files that are no part of it any more."""

from __future__ import annotations

from gateway.delta.table import Snapshot
from gateway.errors import unsupported

_PROPERTY = "delta.deletedFileRetentionDuration"
_DEFAULT = "interval 1 week"
_UNITS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}


def deleted_files_ms(snapshot: Snapshot) -> int:
    """`delta.deletedFileRetentionDuration` in milliseconds. Raises UnsupportedError for a text that is not understood."""
    text = snapshot.properties.get(_PROPERTY, _DEFAULT)
    words = text.lower().split()
    if words[:1] == ["interval"]:
        words = words[1:]
    numbers, units = words[::2], [unit.removesuffix("s") for unit in words[1::2]]
    if not words or len(words) % 2 or any(u not in _UNITS for u in units) or not all(map(_is_number, numbers)):
        raise unsupported(f"{_PROPERTY} = {text}")
    return sum(int(number) * _UNITS[unit] for number, unit in zip(numbers, units, strict=True))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
