"""Texts of settings to values: sizes, durations, switches. A bad text raises ValueError that says what is accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote

_BYTE_UNITS = {
    "": 1,
    "b": 1,
    **{unit: 1024**power for power, p in enumerate("kmgt", 1) for unit in (p, f"{p}b", f"{p}i", f"{p}ib")},
}
_SECOND_UNITS = {
    "": 1.0,
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_TRUE = {"true", "1", "yes", "on"}
_FALSE = {"false", "0", "no", "off"}


def _number_and_unit(text: str) -> tuple[str, str]:
    text = text.strip()
    end = next((i for i, c in enumerate(text) if c not in "0123456789."), len(text))
    return text[:end], text[end:].strip().lower()


def parse_bytes(text: str) -> int:
    """Bytes in "4GiB", "512 MB", "64k" or "1048576"; all units are powers of 1024."""
    number, unit = _number_and_unit(text)
    if unit not in _BYTE_UNITS:
        raise ValueError(f"'{text}' is not a size such as 512MiB or 4GiB")
    try:
        return int(float(number) * _BYTE_UNITS[unit])
    except (ValueError, OverflowError):
        raise ValueError(f"'{text}' is not a size such as 512MiB or 4GiB") from None


def format_bytes(size: int) -> str:
    """The shortest exact spelling of a size: 4294967296 is "4GiB"."""
    for unit, factor in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_seconds(text: str) -> float:
    """Seconds in "300", "300s", "20min", "8h" or "500ms"."""
    number, unit = _number_and_unit(text)
    if unit not in _SECOND_UNITS:
        raise ValueError(f"'{text}' is not a duration such as 300s, 20min or 8h")
    try:
        return float(number) * _SECOND_UNITS[unit]
    except ValueError:
        raise ValueError(f"'{text}' is not a duration such as 300s, 20min or 8h") from None


def parse_bool(text: str) -> bool:
    """True or False; Python's, SQL's and TOML's spellings."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"'{text}' is not true or false")


def parse_int(text: str, low: int, high: int) -> int:
    """A whole number between `low` and `high`, both inclusive."""
    try:
        number = int(text.strip())
    except ValueError:
        raise ValueError(f"'{text}' is not a whole number") from None
    if not low <= number <= high:
        raise ValueError(f"{number} is not between {low} and {high}")
    return number


def one_of(*words: str) -> Callable[[str], str]:
    """Takes one of `words`, whatever its case."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"'{text}' is not one of {', '.join(words)}")
        return text.lower()

    return parse


# What else may stand in a name or a password is written as %XX, so that it is certain where each ends.
_DATABASE = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^\s:@/?#]*)(?::(?P<password>[^\s:@/?#]*))?@)?"
    r"(?P<place>[^\s@/?#]*)(?P<name>/[^\s:@/?#]*)?(?:\?(?P<more>[^\s@?#]*))?"
)


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """The address of a PostgreSQL database. Its text may hold a password, so only what may be seen of it is shown."""

    text: str = field(repr=False)

    def __str__(self) -> str:
        user, place, name = (self._part(part) for part in ("user", "place", "name"))
        return f"postgresql://{user + '@' if user else ''}{place}{name}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be told of it: its password, and the values of its parameters."""
        found = [self._part("password"), *(pair.partition("=")[2] for pair in self._part("more").split("&"))]
        return tuple(dict.fromkeys(text for raw in found if raw for text in (raw, unquote(raw))))

    def _part(self, name: str) -> str:
        match = _DATABASE.fullmatch(self.text)
        return (match[name] or "") if match is not None else ""


def parse_history(text: str) -> bool | DatabaseUrl:
    """A switch, or the address of a database; what is wrong with it is told without it."""
    if _DATABASE.fullmatch(text):
        return DatabaseUrl(text)
    try:
        return parse_bool(text)
    except ValueError:
        form = "postgresql://USER:PASSWORD@HOST/DATABASE, with special characters as %XX"
        raise ValueError(f"is neither true nor false nor of the form {form}") from None
