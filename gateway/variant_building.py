"""VARIANT values made, in Parquet's binary encoding: of JSON, scalars of SQL, documents in parts; as by Spark's builder."""

from __future__ import annotations

import itertools
import json
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

DEEPEST = 200
LARGEST = 16 << 20  # bytes of a value, and characters of its JSON
#: The bytes of JSON's null.
NULL = b"\x00"
_LONGEST_NUMBER = 1000  # characters, Jackson's
_SPACE = " \t\n\r"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


class MalformedError(ValueError):
    """A text that is no JSON to Spark, or bytes that are no VARIANT."""


class OddError(ValueError):
    """What may be right, but was not proved to be taken here as Spark takes it."""


@dataclass(slots=True)
class _Whole:
    text: str


@dataclass(slots=True)  # a frozen one takes twice the time to be made
class Real:
    """A number with a fraction or an exponent, as it is written; NaN and the infinities, where a parser takes them."""

    text: str


@dataclass(slots=True)
class Members:
    """An object: its names, each with what it holds."""

    pairs: list[tuple[str, Any]]


#: A value in parts: the bytes of a scalar, or one as a parser of JSON has read it; a list of documents, or `Members` of them.
Document = bytes | list[Any] | Members


def _constant(text: str) -> Any:
    raise ValueError(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=_Whole, parse_float=Real, parse_constant=_constant, strict=True
)


def of_json(text: str) -> tuple[bytes, bytes]:
    """Metadata and value of the document at the start of a text; what stands behind is not looked at, as by Spark.

    Raises MalformedError where Spark's parser does, OddError for what it was not asked about.
    """
    at = len(text) - len(text.lstrip(_SPACE))
    try:
        document, end = _DECODER.raw_decode(text, at)
    except RecursionError as error:
        raise OddError("JSON that is nested too deeply") from error
    except ValueError as error:
        raise MalformedError(text) from error
    check_end(text, at, end)
    return of_document(document)


def check_end(text: str, at: int, end: int) -> None:
    """Raise MalformedError or OddError for a number or a word that goes on with what Jackson does not let it."""
    behind = text[end : end + 1]
    if text[at:end] in _LITERALS:
        if behind and behind >= "0" and behind not in "]}":
            if not behind.isascii():
                raise OddError("text behind a JSON document")
            if behind.isalnum() or behind in "_$\x7f":
                raise MalformedError(text)
    elif text[at] in "-0123456789":
        whole = _NUMBER.match(text, at)
        if whole is None or whole.end() != end or (behind and behind not in _SPACE):
            raise MalformedError(text)


class Builder:
    """One value and the names of its fields."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def value(self, document: Any, depth: int) -> bytes:
        if depth > DEEPEST:
            raise OddError("JSON that is nested too deeply")
        make = _MAKERS.get(type(document))
        if make is not None:
            return make(document)
        if isinstance(document, Members):
            return self._object(document.pairs, depth)
        return _sequence([self.value(one, depth + 1) for one in document])

    def _object(self, pairs: Sequence[tuple[str, Any]], depth: int) -> bytes:
        names = tuple([name for name, _ in pairs])
        if len(set(names)) < len(names):
            raise MalformedError("a name that is there twice")
        parts, numbers, starts, at = [], [], [], 0
        for name, document in pairs:
            if not name.isascii() and max(name) > "\ud7ff":
                raise OddError("a name of a field with such characters")
            numbers.append(self.names.setdefault(name, len(self.names)))
            parts.append(self.value(document, depth + 1))
            starts.append(at)
            at += len(parts[-1])
        order = _in_order(names) if _is_short(names) else _in_order.__wrapped__(names)
        ids, offsets = _width(max(numbers, default=0)), _width(at)
        large = len(names) > 0xFF
        head = 2 | (offsets - 1) << 2 | (ids - 1) << 4 | large << 6
        return b"".join(
            (
                bytes([head]) + len(names).to_bytes(4 if large else 1, "little"),
                _numbers([numbers[i] for i in order], ids),
                _numbers([*[starts[i] for i in order], at], offsets),
                *parts,
            )
        )

    def metadata(self) -> bytes:
        names = tuple(self.names)
        return metadata_of(names) if _is_short(names) else metadata_of.__wrapped__(names)


# Documents of a column have mostly the same names; what is remembered of them is small.
REMEMBERED, SHORT = 1024, 1000


def _is_short(names: tuple[str, ...]) -> bool:
    return len(names) <= SHORT and sum(map(len, names)) <= SHORT


@lru_cache(maxsize=REMEMBERED)
def _in_order(names: tuple[str, ...]) -> list[int]:
    return sorted(range(len(names)), key=names.__getitem__)


@lru_cache(maxsize=REMEMBERED)
def metadata_of(names: tuple[str, ...]) -> bytes:
    data = [name.encode() for name in names]
    ends = [0, *itertools.accumulate(map(len, data))]
    width = _width(max(ends[-1], len(data)))
    return b"".join((bytes([1 | (width - 1) << 6]), len(data).to_bytes(width, "little"), _numbers(ends, width), *data))


def _numbers(numbers: Sequence[int], width: int) -> bytes:
    return bytes(numbers) if width == 1 else b"".join([number.to_bytes(width, "little") for number in numbers])


def _width(number: int) -> int:
    """Bytes that Spark gives a number: 1 to 4."""
    return 1 if number <= 0xFF else 2 if number <= 0xFFFF else 3 if number <= 0xFFFFFF else 4


def _sequence(parts: Sequence[bytes]) -> bytes:
    ends = [0, *itertools.accumulate(map(len, parts))]
    width, large = _width(ends[-1]), len(parts) > 0xFF
    head = bytes([3 | (width - 1) << 2 | large << 4]) + len(parts).to_bytes(4 if large else 1, "little")
    return b"".join((head, _numbers(ends, width), *parts))


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "replace")  # a lone surrogate is ? to Java
    if len(data) <= 63:
        return bytes([1 | len(data) << 2]) + data
    return b"\x40" + struct.pack("<I", len(data)) + data


# Bytes behind the head of values of one size: NULL, truths, numbers, dates and times.
SIZES = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4}
DECIMALS = {8: (4, 9), 9: (8, 18), 10: (16, 38)}  # bytes, and digits at most
# Other scalars of one size by their heads: the SQL types that Spark casts them from, and their form.
SCALARS = {
    3: ("BIGINT", "<b"),
    4: ("BIGINT", "<h"),
    5: ("BIGINT", "<i"),
    6: ("BIGINT", "<q"),
    7: ("DOUBLE", "<d"),
    11: ("DATE", "<i"),
    12: ("TIMESTAMP", "<q"),
    13: ("TIMESTAMP_NTZ", "<q"),
    14: ("FLOAT", "<f"),
}
INTEGERS = ((3, "<b", 8), (4, "<h", 16), (5, "<i", 32), (6, "<q", 64))


def _whole(text: str) -> bytes:
    if len(text) > _LONGEST_NUMBER:
        raise OddError("a number of so many digits")
    number = int(text)
    for kind, form, bits in INTEGERS:
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return bytes([kind << 2]) + struct.pack(form, number)
    return _real(text)


def _real(text: str) -> bytes:
    """A decimal where it is written as one and has at most 38 digits, else a double."""
    if len(text) > _LONGEST_NUMBER:
        raise OddError("a number of so many digits")
    if "e" not in text and "E" not in text and text[-1].isdigit():
        number = Decimal(text)
        _, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        if -exponent <= 38 and (len(digits) <= 38 or len("".join(map(str, digits)).lstrip("0")) <= 38):
            return _decimal(number)
    return b"\x1c" + struct.pack("<d", float(text))


def _null(_: Any) -> bytes:
    return NULL


def _truth(value: bool) -> bytes:
    return b"\x04" if value else b"\x08"


# How what is no object and no array is written, by its class.
_MAKERS: dict[type, Callable[[Any], bytes]] = {
    type(None): _null,
    bool: _truth,
    str: _string,
    bytes: lambda value: value,
    _Whole: lambda number: _whole(number.text),
    int: lambda number: _whole(str(number)),
    Real: lambda number: _real(number.text),
}


def of_scalar(name: str, value: Any) -> tuple[bytes, bytes]:
    """Metadata and value of what `scalar_of` tells, a whole number or decimal in the fewest bytes, as Spark's builder does."""
    builder = Builder()
    if name == "BOOLEAN":
        part = b"\x04" if value else b"\x08"
    elif name == "STRING":
        part = _string(value)
    elif name == "BINARY":
        part = b"\x3c" + struct.pack("<I", len(value)) + value
    elif name == "DECIMAL":
        part = _decimal(value)
    elif name == "BIGINT":
        part = _whole(str(value))
    else:
        head = next(head for head, (known, _) in SCALARS.items() if known == name)
        part = bytes([head << 2]) + struct.pack(SCALARS[head][1], value)
    return builder.metadata(), part


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled, scale = int("".join(map(str, digits))) * 10 ** max(exponent, 0), max(-exponent, 0)
    most = max(scale, len(str(unscaled)))
    kind, size = next((kind, size) for kind, (size, top) in DECIMALS.items() if most <= top)
    signed: int = -unscaled if sign else unscaled
    return bytes([kind << 2, scale]) + signed.to_bytes(size, "little", signed=True)


def of_document(document: Document) -> tuple[bytes, bytes]:
    """Metadata and value of what `document_of` tells, or a parser of JSON.

    Raises MalformedError for a name twice, OddError for what is too large or nested too deeply.
    """
    builder = Builder()
    value = builder.value(document, 0)
    metadata = builder.metadata()
    if len(value) + len(metadata) > LARGEST:
        raise OddError(f"a VARIANT of more than {LARGEST} bytes")
    return metadata, value
