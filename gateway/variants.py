"""VARIANT values: Parquet's binary encoding of them, taken apart and shown as JSON, as Spark does.

Inside the engine a value is a text: a mark, then its metadata and value in base64. No JSON begins like it.
Source: the Parquet project's VariantEncoding.md; Spark's Variant.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

from gateway.floats import float_text
from gateway.instants import Zone, date_text, local_of, stamp_text
from gateway.variant_building import (
    DECIMALS,
    DEEPEST,
    INTEGERS,
    LARGEST,
    REMEMBERED,
    SCALARS,
    SHORT,
    SIZES,
    Builder,
    Document,
    MalformedError,
    Members,
    OddError,
    metadata_of,
)

MARK = "v:"
_EXACT = Context(prec=800)
_SIZE = struct.Struct("<I")
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # of the years 1 to 9999


# ---- the form inside the engine


def wrapped(metadata: bytes, value: bytes) -> str:
    """The text of a value."""
    return MARK + binascii.b2a_base64(_SIZE.pack(len(metadata)) + metadata + value, newline=False).decode()


def unwrapped(text: str) -> tuple[bytes, bytes]:
    """Metadata and value of a text. Raises MalformedError."""
    if not text.startswith(MARK):
        raise MalformedError("no VARIANT")
    try:
        data = binascii.a2b_base64(text[len(MARK) :], strict_mode=True)
        (size,) = _SIZE.unpack_from(data)
    except (binascii.Error, struct.error) as error:
        raise MalformedError("no VARIANT") from error
    return data[4 : 4 + size], data[4 + size :]


# ---- within others

Steps = Sequence[str | int]


def part_of(metadata: bytes, value: bytes, steps: Steps) -> tuple[bytes, bytes] | None:
    """Metadata and value of what lies within a value, by names of fields and places in arrays; None for nothing.

    Raises as `as_json` does.
    """
    try:
        reader = _Reader(value, _names(metadata))
        at: int | None = 0
        for step in steps:
            at = None if at is None else _step(reader, at, step)
        if at is None:
            return None
        if reader.kind(at) < 2:
            scalar = reader.scalar(at)
            if len(scalar) <= SHORT:
                return metadata_of(()), scalar
        builder = Builder()
        part = builder.value(_Copier(reader).tree(at, 0), 0)
        return builder.metadata(), part
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedError("no VARIANT") from error


def is_null(value: bytes) -> bool:
    """Whether a value is JSON's null."""
    return value[:1] == b"\x00"


def scalar_of(value: bytes) -> tuple[str, Any]:
    """The SQL type of a value, by its name, and what it is: numbers, days, microseconds as int; ARRAY and OBJECT as None.

    Raises as `as_json` does.
    """
    try:
        kind, head = value[0] & 3, value[0] >> 2
        if kind > 1:
            return ("OBJECT", "ARRAY")[kind - 2], None
        reader = _Reader(value, ())
        body = reader.scalar(0)[1:]
        if kind == 1 or head == 16:
            return "STRING", body[0 if kind else 4 :].decode()
        if head == 15:
            return "BINARY", body[4:]
        if head < 3:
            return (("VOID", None), ("BOOLEAN", True), ("BOOLEAN", False))[head]
        if head in DECIMALS:
            return "DECIMAL", reader.decimal(head, 1)
        name, form = SCALARS[head]
        return name, struct.unpack_from(form, body)[0]
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedError("no VARIANT") from error


def document_of(metadata: bytes, value: bytes) -> Document:
    """A value in parts, the members of its objects in the order of their names. Raises as `as_json` does."""
    try:
        found: Document = _Copier(_Reader(value, _names(metadata))).tree(0, 0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedError("no VARIANT") from error
    return found


def _step(reader: _Reader, at: int, step: str | int) -> int | None:
    kind = reader.kind(at)
    if isinstance(step, str):
        return next((inner for name, inner in reader.fields(at) if name == step), None) if kind == 2 else None
    return next((inner for i, inner in enumerate(reader.elements(at)) if i == step), None) if kind == 3 else None


@dataclass(slots=True)
class _Copier:
    """Values as documents, scalars as their bytes."""

    reader: _Reader
    size: int = 0

    def tree(self, at: int, depth: int) -> Any:
        self.reader.enter(depth)
        self.size += 1
        kind = self.reader.kind(at)
        if kind == 2:
            return Members([(name, self.tree(inner, depth + 1)) for name, inner in self.reader.fields(at)])
        if kind == 3:
            return [self.tree(inner, depth + 1) for inner in self.reader.elements(at)]
        scalar = self.reader.scalar(at)
        self.size += len(scalar)
        if self.size > LARGEST:
            raise OddError(f"a VARIANT of more than {LARGEST} bytes")
        return scalar


# ---- as JSON


def as_json(metadata: bytes, value: bytes, zone: Zone) -> str:
    """A value as Spark writes it: to_json. Raises MalformedError, and OddError for types that Spark may not have."""
    try:
        names = _names(metadata)
        writer = _Writer(value, names, zone)
        writer.write(0, 0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedError("no VARIANT") from error
    return "".join(writer.parts)


def _names(metadata: bytes) -> Sequence[str]:
    return _names_in(metadata) if len(metadata) <= SHORT else _names_in.__wrapped__(metadata)


@lru_cache(maxsize=REMEMBERED)
def _names_in(metadata: bytes) -> Sequence[str]:
    if metadata[0] & 0x0F != 1:
        raise MalformedError("a VARIANT of another version")
    width = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, width)
    first = 1 + width * (count + 2)
    if first > len(metadata):
        raise MalformedError("no VARIANT")
    starts = [_number(metadata, 1 + width * (i + 1), width) for i in range(count + 1)]
    if first + starts[-1] > len(metadata) or any(a > b for a, b in itertools.pairwise(starts)):
        raise MalformedError("names that are elsewhere, or stand for one another")
    return [metadata[first + a : first + b].decode() for a, b in itertools.pairwise(starts)]


def _number(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + width], "little")


class _Reader:
    """What a value's bytes say."""

    def __init__(self, data: bytes, names: Sequence[str]) -> None:
        self.data, self.names = data, names
        self.left = len(data)  # values that there can be, each with a byte of its own

    def enter(self, depth: int) -> None:
        """Raise OddError for a value too deep, or one of more than there are bytes: few may stand for millions."""
        self.left -= 1
        if depth > DEEPEST:
            raise OddError("a VARIANT that is nested too deeply")
        if self.left < 0:
            raise OddError("a VARIANT whose parts stand for one another")

    def kind(self, at: int) -> int:
        """0 of a scalar, 1 of a short text, 2 of an object, 3 of an array."""
        return self.data[at] & 3

    def fields(self, at: int) -> Iterator[tuple[str, int]]:
        """The fields of an object in their order, and where their values begin."""
        head = self.data[at] >> 2
        offset, ids, wide = (head & 3) + 1, (head >> 2 & 3) + 1, 4 if head >> 4 & 1 else 1
        count = _number(self.data, at + 1, wide)
        first = at + 1 + wide
        starts = first + ids * count
        base = starts + offset * (count + 1)
        if base > len(self.data):
            raise MalformedError("no VARIANT")
        for i in range(count):
            name = self.names[_number(self.data, first + ids * i, ids)]
            yield name, base + _number(self.data, starts + offset * i, offset)

    def elements(self, at: int) -> Iterator[int]:
        """Where the elements of an array begin."""
        head = self.data[at] >> 2
        offset, wide = (head & 3) + 1, 4 if head >> 2 & 1 else 1
        count = _number(self.data, at + 1, wide)
        starts = at + 1 + wide
        base = starts + offset * (count + 1)
        if base > len(self.data):
            raise MalformedError("no VARIANT")
        for i in range(count):
            yield base + _number(self.data, starts + offset * i, offset)

    def bytes_of(self, at: int, size: int) -> bytes:
        """Some bytes that have to be there."""
        if at + size > len(self.data):
            raise IndexError(at)
        return self.data[at : at + size]

    def scalar(self, at: int) -> bytes:
        """All bytes of a scalar or a short text."""
        rest = self.data[at] >> 2
        if self.kind(at) == 1:
            return self.bytes_of(at, 1 + rest)
        if rest in (15, 16):
            return self.bytes_of(at, 5 + _number(self.data, at + 1, 4))
        if rest not in SIZES:
            raise OddError(f"a VARIANT with a value of the type {rest}")
        return self.bytes_of(at, 1 + SIZES[rest])

    def decimal(self, kind: int, at: int) -> Decimal:
        """A number without zeros at its end, no -0."""
        size, most = DECIMALS[kind]
        unscaled = int.from_bytes(self.bytes_of(at + 1, size), "little", signed=True)
        if self.data[at] > most or abs(unscaled) >= 10**most:
            raise MalformedError("a decimal of more digits than its kind has")
        number = _EXACT.normalize(_EXACT.scaleb(Decimal(unscaled), -self.data[at]))
        return number or abs(number)


class _Writer(_Reader):
    def __init__(self, data: bytes, names: Sequence[str], zone: Zone) -> None:
        super().__init__(data, names)
        self.zone = zone
        self.parts: list[str] = []
        self.size = 0

    def put(self, text: str) -> None:
        self.size += len(text)
        if self.size > LARGEST:  # names may be long, and stand in many places
            raise OddError(f"a VARIANT whose JSON has more than {LARGEST} characters")
        self.parts.append(text)

    def write(self, at: int, depth: int) -> None:
        self.enter(depth)
        kind = self.kind(at)
        if kind < 2:
            self.put(_quoted(self.text(at)) if kind else self._primitive(self.data[at] >> 2, at + 1))
            return
        self.put("{" if kind == 2 else "[")
        if kind == 2:
            for i, (name, inner) in enumerate(self.fields(at)):
                self.put(("," if i else "") + _quoted(name) + ":")
                self.write(inner, depth + 1)
        else:
            for i, inner in enumerate(self.elements(at)):
                if i:
                    self.put(",")
                self.write(inner, depth + 1)
        self.put("}" if kind == 2 else "]")

    def text(self, at: int) -> str:
        """A short text."""
        return self.bytes_of(at + 1, self.data[at] >> 2).decode()

    def _primitive(self, kind: int, at: int) -> str:
        if kind < 3:
            return ("null", "true", "false")[kind]
        for known, form, _ in INTEGERS:
            if kind == known:
                return str(struct.unpack_from(form, self.data, at)[0])
        if kind in (7, 14):
            bits = 53 if kind == 7 else 24
            (number,) = struct.unpack_from("<d" if kind == 7 else "<f", self.data, at)
            text = float_text(number, bits)
            return text if math.isfinite(number) else f'"{text}"'
        if kind in DECIMALS:
            return format(self.decimal(kind, at), "f")
        if kind == 11:
            return f'"{_date(struct.unpack_from("<i", self.data, at)[0])}"'
        if kind in (12, 13):
            return f'"{self._time(struct.unpack_from("<q", self.data, at)[0], kind == 12)}"'
        if kind in (15, 16):
            data = self.bytes_of(at + 4, _number(self.data, at, 4))
            return f'"{base64.b64encode(data).decode()}"' if kind == 15 else _quoted(data.decode())
        raise OddError(f"a VARIANT with a value of the type {kind}")

    def _time(self, micros: int, zoned: bool) -> str:
        _date(micros // 86_400_000_000)
        local = local_of(micros, self.zone) if zoned else micros
        _date(local // 86_400_000_000)
        if not zoned:
            return stamp_text(local)
        seconds = (local - micros) // 1_000_000
        if seconds % 60:
            raise OddError("a time of a VARIANT in a zone whose clocks had seconds of their own")
        sign, minutes = "-" if seconds < 0 else "+", abs(seconds) // 60
        return f"{stamp_text(local)}{sign}{minutes // 60:02}:{minutes % 60:02}"


def _date(days: int) -> str:
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise OddError("a date of a VARIANT beyond the years 1 to 9999")
    return date_text(days)


_ESCAPED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES = re.compile(r'["\\\x00-\x1f]')


def _quoted(text: str) -> str:
    return f'"{_ESCAPES.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    return _ESCAPED.get(found.group()) or f"\\u{ord(found.group()):04X}"
