"""VARIANT values: Parquet's binary encoding of them, made of JSON and shown as JSON, as Spark does both.

Inside the engine a value is a text: a mark, then its metadata and value in base64. No JSON begins like it.
Source: the Parquet project's VariantEncoding.md; Spark's VariantBuilder and Variant.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from gateway.floats import float_text
from gateway.instants import Zone, date_text, local_of, stamp_text

MARK = "v:"
_DEEPEST = 200
_LONGEST_NUMBER = 1000  # characters, Jackson's
_LARGEST = 16 << 20  # bytes of a value, and characters of its JSON
_EXACT = Context(prec=800)
#: The bytes of JSON's null.
NULL = b"\x00"
_SPACE = " \t\n\r"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # of the years 1 to 9999


class MalformedError(ValueError):
    """A text that is no JSON to Spark, or bytes that are no VARIANT."""


class OddError(ValueError):
    """What may be right, but was not proved to be taken here as Spark takes it."""


# ---- the form inside the engine


def wrapped(metadata: bytes, value: bytes) -> str:
    """The text of a value."""
    return MARK + base64.b64encode(struct.pack("<I", len(metadata)) + metadata + value).decode()


def unwrapped(text: str) -> tuple[bytes, bytes]:
    """Metadata and value of a text. Raises MalformedError."""
    if not text.startswith(MARK):
        raise MalformedError("no VARIANT")
    try:
        data = base64.b64decode(text[len(MARK) :], validate=True)
        (size,) = struct.unpack_from("<I", data)
    except (binascii.Error, struct.error) as error:
        raise MalformedError("no VARIANT") from error
    return data[4 : 4 + size], data[4 + size :]


# ---- of JSON


@dataclass(frozen=True, slots=True)
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
    builder = _Builder()
    value = builder.value(document, 0)
    metadata = builder.metadata()
    if len(value) + len(metadata) > _LARGEST:
        raise OddError(f"a VARIANT of more than {_LARGEST} bytes")
    return metadata, value


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


class _Builder:
    """One value and the names of its fields."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def value(self, document: Any, depth: int) -> bytes:
        if depth > _DEEPEST:
            raise OddError("JSON that is nested too deeply")
        match document:
            case None:
                return b"\x00"
            case bool():
                return b"\x04" if document else b"\x08"
            case str():
                return _string(document)
            case bytes():
                return document
            case _Whole():
                return _whole(document.text)
            case int():
                return _whole(str(document))
            case Real():
                return _real(document.text)
            case Members():
                return self._object(document.pairs, depth)
        return _sequence([self.value(one, depth + 1) for one in document])

    def _object(self, pairs: Sequence[tuple[str, Any]], depth: int) -> bytes:
        if len({name for name, _ in pairs}) < len(pairs):
            raise MalformedError("a name that is there twice")
        parts, places, at = [], {}, 0
        for name, document in pairs:
            if any(c > "\ud7ff" for c in name):
                raise OddError("a name of a field with such characters")
            number = self.names.setdefault(name, len(self.names))
            parts.append(self.value(document, depth + 1))
            places[name] = (number, at)
            at += len(parts[-1])
        fields = [places[name] for name in sorted(places)]
        ids, offsets = _width(max((number for number, _ in fields), default=0)), _width(at)
        large = len(fields) > 0xFF
        head = 2 | (offsets - 1) << 2 | (ids - 1) << 4 | large << 6
        numbers = b"".join(number.to_bytes(ids, "little") for number, _ in fields)
        starts = b"".join(start.to_bytes(offsets, "little") for _, start in fields) + at.to_bytes(offsets, "little")
        return bytes([head]) + len(fields).to_bytes(4 if large else 1, "little") + numbers + starts + b"".join(parts)

    def metadata(self) -> bytes:
        names = [name.encode() for name in self.names]
        size = sum(map(len, names))
        width = _width(max(size, len(names)))
        starts, at = [0], 0
        for name in names:
            at += len(name)
            starts.append(at)
        head = bytes([1 | (width - 1) << 6]) + len(names).to_bytes(width, "little")
        return head + b"".join(start.to_bytes(width, "little") for start in starts) + b"".join(names)


def _width(number: int) -> int:
    """Bytes that Spark gives a number: 1 to 4."""
    return 1 if number <= 0xFF else 2 if number <= 0xFFFF else 3 if number <= 0xFFFFFF else 4


def _sequence(parts: Sequence[bytes]) -> bytes:
    size = sum(map(len, parts))
    width, large = _width(size), len(parts) > 0xFF
    starts, at = [0], 0
    for part in parts:
        at += len(part)
        starts.append(at)
    head = bytes([3 | (width - 1) << 2 | large << 4]) + len(parts).to_bytes(4 if large else 1, "little")
    return head + b"".join(start.to_bytes(width, "little") for start in starts) + b"".join(parts)


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "replace")  # a lone surrogate is ? to Java
    if len(data) <= 63:
        return bytes([1 | len(data) << 2]) + data
    return b"\x40" + struct.pack("<I", len(data)) + data


# Bytes behind the head of values of one size: NULL, truths, numbers, dates and times.
_SIZES = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4}
_DECIMALS = {8: (4, 9), 9: (8, 18), 10: (16, 38)}  # bytes, and digits at most
# Other scalars of one size by their heads: the SQL types that Spark casts them from, and their form.
_SCALARS = {
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
_INTEGERS = ((3, "<b", 8), (4, "<h", 16), (5, "<i", 32), (6, "<q", 64))


def _whole(text: str) -> bytes:
    if len(text) > _LONGEST_NUMBER:
        raise OddError("a number of so many digits")
    number = int(text)
    for kind, form, bits in _INTEGERS:
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
        if -exponent <= 38 and len("".join(map(str, digits)).lstrip("0")) <= 38:
            return _decimal(number)
    return b"\x1c" + struct.pack("<d", float(text))


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
        builder = _Builder()
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
        if head in _DECIMALS:
            return "DECIMAL", reader.decimal(head, 1)
        name, form = _SCALARS[head]
        return name, struct.unpack_from(form, body)[0]
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedError("no VARIANT") from error


def of_scalar(name: str, value: Any) -> tuple[bytes, bytes]:
    """Metadata and value of what `scalar_of` tells, a whole number or decimal in the fewest bytes, as Spark's builder does."""
    builder = _Builder()
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
        head = next(head for head, (known, _) in _SCALARS.items() if known == name)
        part = bytes([head << 2]) + struct.pack(_SCALARS[head][1], value)
    return builder.metadata(), part


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled, scale = int("".join(map(str, digits))) * 10 ** max(exponent, 0), max(-exponent, 0)
    most = max(scale, len(str(unscaled)))
    kind, size = next((kind, size) for kind, (size, top) in _DECIMALS.items() if most <= top)
    signed: int = -unscaled if sign else unscaled
    return bytes([kind << 2, scale]) + signed.to_bytes(size, "little", signed=True)


def document_of(metadata: bytes, value: bytes) -> Document:
    """A value in parts, the members of its objects in the order of their names. Raises as `as_json` does."""
    try:
        found: Document = _Copier(_Reader(value, _names(metadata))).tree(0, 0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedError("no VARIANT") from error
    return found


def of_document(document: Document) -> tuple[bytes, bytes]:
    """Metadata and value of what `document_of` tells, or a parser of JSON.

    Raises MalformedError for a name twice, OddError for what is too large or nested too deeply.
    """
    builder = _Builder()
    value = builder.value(document, 0)
    metadata = builder.metadata()
    if len(value) + len(metadata) > _LARGEST:
        raise OddError(f"a VARIANT of more than {_LARGEST} bytes")
    return metadata, value


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
        if self.size > _LARGEST:
            raise OddError(f"a VARIANT of more than {_LARGEST} bytes")
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


def _names(metadata: bytes) -> list[str]:
    if metadata[0] & 0x0F != 1:
        raise MalformedError("a VARIANT of another version")
    width = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, width)
    first = 1 + width * (count + 2)
    if first > len(metadata):
        raise MalformedError("no VARIANT")
    starts = [_number(metadata, 1 + width * (i + 1), width) for i in range(count + 1)]
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
        if depth > _DEEPEST:
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
        if rest not in _SIZES:
            raise OddError(f"a VARIANT with a value of the type {rest}")
        return self.bytes_of(at, 1 + _SIZES[rest])

    def decimal(self, kind: int, at: int) -> Decimal:
        """A number without zeros at its end, no -0."""
        size, most = _DECIMALS[kind]
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
        if self.size > _LARGEST:  # names may be long, and stand in many places
            raise OddError(f"a VARIANT whose JSON has more than {_LARGEST} characters")
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
        for known, form, _ in _INTEGERS:
            if kind == known:
                return str(struct.unpack_from(form, self.data, at)[0])
        if kind in (7, 14):
            bits = 53 if kind == 7 else 24
            (number,) = struct.unpack_from("<d" if kind == 7 else "<f", self.data, at)
            text = float_text(number, bits)
            return text if math.isfinite(number) else f'"{text}"'
        if kind in _DECIMALS:
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
