"""Thrift's compact protocol as trees that can be changed anywhere: footers of Parquet files that lie.

A struct is {number: (type, value)}, a list (type, values), everything else an int, a bool or bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = {BYTE: 8, 4: 16, 5: 32, 6: 64}  # how many bits each has
#: The way to a value: numbers of fields, and places in lists.
Path = tuple[int, ...]
_LONG = 15


def footer(data: bytes) -> dict[int, Any]:
    """The footer of a Parquet file."""
    return read(data, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))[0]


def with_footer(data: bytes, changed: dict[int, Any]) -> bytes:
    """A Parquet file with another footer."""
    told = written(STRUCT, changed)
    kept = data[: len(data) - 8 - int.from_bytes(data[-8:-4], "little")]
    return kept + told + len(told).to_bytes(4, "little") + b"PAR1"


def leaves(kind: int, value: Any, path: Path = ()) -> Iterator[tuple[Path, int, Any]]:
    """All that is no struct and no list: the way to it, its type and value."""
    if kind == STRUCT:
        for number, (of, each) in value.items():
            yield from leaves(of, each, (*path, number))
    elif kind in (LIST, SET):
        for place, each in enumerate(value[1]):
            yield from leaves(value[0], each, (*path, place))
    else:
        yield path, kind, value


def changed(kind: int, value: Any, path: Path, new: Any) -> Any:
    """A tree with another value in one place."""
    if not path:
        return new
    first, *rest = path
    if kind == STRUCT:
        of, each = value[first]
        return {**value, first: (of, changed(of, each, tuple(rest), new))}
    of, values = value
    return of, [changed(of, v, tuple(rest), new) if i == first else v for i, v in enumerate(values)]


def _number(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while data[at] > 127:
        found, shift, at = found | (data[at] & 127) << shift, shift + 7, at + 1
    return found | data[at] << shift, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return read(data, at)
    if kind in (LIST, SET):
        count, of = data[at] >> 4, data[at] & 15
        count, at = _number(data, at + 1) if count == _LONG else (count, at + 1)
        values = []
        for _ in range(count):
            each, at = (data[at] == TRUE, at + 1) if of in (TRUE, FALSE) else _value(data, at, of)
            values.append(each)
        return (of, values), at
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind == BYTE:
        return data[at], at + 1
    if kind == DOUBLE:
        return data[at : at + 8], at + 8
    found, at = _number(data, at)
    return (data[at : at + found], at + found) if kind == BINARY else ((found >> 1) ^ -(found & 1), at)


def read(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """The struct that begins at `at`, and where it ends."""
    fields: dict[int, Any] = {}
    last = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        assert step, "a field that is far from the one before"
        last += step
        value, at = _value(data, at + 1, kind)
        fields[last] = (kind, value)
    return fields, at + 1


def unsigned(number: int) -> bytes:
    """A number in as many bytes of seven bits as it has."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def written(kind: int, value: Any) -> bytes:
    """The bytes of a value."""
    if kind == STRUCT:
        found, last = b"", 0
        for number, (of, each) in sorted(value.items()):
            of = (TRUE if each else FALSE) if of in (TRUE, FALSE) else of
            found += bytes([(number - last) << 4 | of]) + written(of, each)
            last = number
        return found + b"\0"
    if kind in (LIST, SET):
        of, values = value
        head = bytes([len(values) << 4 | of]) if len(values) < _LONG else bytes([0xF0 | of]) + unsigned(len(values))
        flags = of in (TRUE, FALSE)
        return head + b"".join(bytes([TRUE if v else FALSE]) if flags else written(of, v) for v in values)
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value & 255])
    if kind == BINARY:
        return unsigned(len(value)) + bytes(value)
    if kind == DOUBLE:
        return bytes(value)
    return unsigned(((value << 1) ^ (value >> 63)) & (2**64 - 1))
