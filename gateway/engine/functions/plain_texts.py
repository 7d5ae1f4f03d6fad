"""Texts of digits at fixed places (``yyyy-MM-dd HH:mm:ss``, ``MM/dd/yyyy``), read for a whole array at once.

Each reader says of which rows it has read the text; what is left has to be read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.instants import MICROS_PER_DAY, MICROS_PER_SECOND, Ints, month_lengths, month_starts

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
_LIMITS = {"M": (1, 12), "d": (1, 31), "H": (0, 23), "m": (0, 59), "s": (0, 59)}
_FRACTION = 6  # digits of a second that count


@dataclass(frozen=True, slots=True)
class Field:
    """Digits of a text: `letter` as in a datetime pattern, from byte `start` to `stop`."""

    letter: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A text of `width` bytes: its fields, and the bytes that stand between them (any of several)."""

    width: int
    fields: tuple[Field, ...]
    between: tuple[tuple[int, bytes], ...]


def layout(parts: Sequence[tuple[str, int] | str]) -> Layout | None:
    """The layout of a datetime pattern; None where its texts have no fixed places, or fields that depend on others."""
    at, fields, between = 0, [], []
    year = False  # takes digits that follow but for those of numbers of fixed width
    for part in parts:
        if isinstance(part, str):
            if not part.isascii() or (year and part[0].isdigit()):
                return None
            year = False
            between += [(at + i, char.encode()) for i, char in enumerate(part)]
            at += len(part)
            continue
        letter, count = ("M", part[1]) if part[0] == "L" else part
        if (count != 2 and (letter, count) != ("y", 4) and letter != "S") or letter not in "yMdHmsS":
            return None
        if letter == "S" and year:
            return None
        year = year or letter == "y"
        fields.append(Field(letter, at, at + count))
        at += count
    if len({f.letter for f in fields}) < len(fields):
        return None
    return Layout(at, tuple(fields), tuple(between))


_DATE = layout([("y", 4), "-", ("M", 2), "-", ("d", 2)])
assert _DATE is not None
_DAYS: Layout = _DATE
_CLOCK = tuple(Field(letter, at, at + 2) for letter, at in (("H", 11), ("m", 14), ("s", 17)))
_BETWEEN = (*_DAYS.between, (10, b" T"), (13, b":"), (16, b":"))
_SECONDS = Layout(19, (*_DAYS.fields, *_CLOCK), _BETWEEN)
#: Spark's own forms of a timestamp without a zone.
STAMPS = (
    _DAYS,
    _SECONDS,
    *(
        Layout(20 + n, (*_SECONDS.fields, Field("S", 20, 20 + n)), (*_BETWEEN, (19, b".")))
        for n in range(1, _FRACTION + 1)
    ),
)


def read_layouts(array: pa.Array, layouts: Sequence[Layout]) -> tuple[Ints, Bools]:
    """Microseconds of the wall clock since 1970 of the texts that have one of the layouts, and which these are."""
    values, done = np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)
    by_width = {found.width: found for found in layouts}
    for width, rows, columns in _columns(array, by_width):
        found, good = _read(columns, by_width[width])
        values[rows], done[rows] = found, good
    return values, done


def read_days(array: pa.Array) -> tuple[Ints, Bools]:
    """Days since 1970 of texts ``yyyy-MM-dd``, and of those that go on behind it with a blank or a T; which these are."""
    values, done = read_layouts(array, (_DAYS,))
    values //= MICROS_PER_DAY
    longer = np.flatnonzero(_lengths(array) > _DAYS.width)
    if len(longer):
        columns = _gathered(array, longer, _DAYS.width + 1)
        found, good = _read(columns, Layout(_DAYS.width + 1, _DAYS.fields, (*_DAYS.between, (10, b" T"))))
        values[longer], done[longer] = found // MICROS_PER_DAY, good
    return values, done


def _read(columns: Bytes, form: Layout) -> tuple[Ints, Bools]:
    good = np.ones(len(columns), np.bool_)
    for at, chars in form.between:
        found = columns[:, at]
        good &= np.isin(found, list(chars)) if len(chars) > 1 else found == chars[0]
    numbers: dict[str, Any] = {"y": 1970, "M": 1, "d": 1, "H": 0, "m": 0, "s": 0, "S": 0}
    for field in form.fields:
        stop = min(field.stop, field.start + _FRACTION) if field.letter == "S" else field.stop
        value = np.zeros(len(columns), np.int64)
        for at in range(field.start, field.stop):
            digit = columns[:, at] - 48  # unsigned: what is below "0" is large
            good &= digit <= 9
            if at < stop:
                value = value * 10 + digit
        if field.letter == "S":
            value *= 10 ** (_FRACTION - (stop - field.start))
        elif field.letter == "y":
            value += 2000 if field.stop - field.start == 2 else 0
        else:
            low, high = _LIMITS[field.letter]
            good &= (value >= low) & (value <= high)
        numbers[field.letter] = value
    months = np.where(good, (numbers["y"] - 1970) * 12 + numbers["M"] - 1, 0)
    good &= numbers["d"] <= month_lengths(months)
    clock = ((numbers["H"] * 60 + numbers["m"]) * 60 + numbers["s"]) * MICROS_PER_SECOND + numbers["S"]
    return (month_starts(months) + numbers["d"] - 1) * MICROS_PER_DAY + clock, good


def _lengths(array: pa.Array) -> Ints:
    """Bytes of each text; -1 for NULL."""
    lengths = np.diff(_offsets(array))
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, -1)
    return lengths


def _offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)


def _columns(array: pa.Array, widths: Sequence[int] | dict[int, Any]) -> Iterator[tuple[int, Ints, Bytes]]:
    """For each width: the rows whose texts have it, and their bytes, a row each."""
    if not len(array):
        return
    lengths = _lengths(array)
    for width in widths:
        rows = np.flatnonzero(lengths == width)
        if len(rows):
            yield width, rows, _gathered(array, rows, width)


def _gathered(array: pa.Array, rows: Ints, width: int) -> Bytes:
    """The first `width` bytes of some rows, each of which has as many."""
    starts = _offsets(array)[rows].astype(np.int64)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    if len(rows) and starts[-1] - starts[0] == width * (len(rows) - 1) and (np.diff(starts) == width).all():
        return data[starts[0] : starts[0] + width * len(rows)].reshape(len(rows), width)
    every = np.ndarray((max(len(data) - width + 1, 0), width), np.uint8, data, strides=(1, 1))
    return every[starts]
