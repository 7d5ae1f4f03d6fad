"""Where a message ends on a stream: behind SASL its length comes first; without SASL only its own structure tells.

Both kinds take whole messages off the front of a buffer and are asked again when more has come. Neither looks at a byte twice,
and what a peer declares is compared with the limits before it is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Protocol

from gateway.protocol.reader import Budget, MalformedError
from gateway.protocol.spec import FIXED, LIST, MAP, SET, STOP, STRING, STRUCT

_u32 = Struct(">I").unpack_from
_i32 = Struct(">i").unpack_from
_VERSION = 0x80010000
_NAME_LIMIT = 256


class Messages(Protocol):
    """The messages of one stream."""

    def take(self, buffer: bytearray) -> bytes | None:
        """The first message, off the front of `buffer`; None: more bytes are needed. Raises MalformedError."""

    def most(self, buffer: bytearray) -> int:
        """How many bytes the message may have that `buffer` begins with."""

    def head(self, size: int) -> bytes:
        """What goes before an answer of `size` bytes."""


class Framed:
    """Messages of which each has its length before it (SASL, and Thrift's framed transport)."""

    def __init__(self, budget: Budget) -> None:
        self._limit = budget.size

    def take(self, buffer: bytearray) -> bytes | None:
        """See `Messages`."""
        if len(buffer) < 4:
            return None
        (size,) = _u32(buffer)
        if size > self._limit:
            raise MalformedError(f"a frame of {size} bytes exceeds the limit of {self._limit}")
        if len(buffer) < 4 + size:
            return None
        message = bytes(memoryview(buffer)[4 : 4 + size])
        del buffer[: 4 + size]
        return message

    def most(self, buffer: bytearray) -> int:
        """See `Messages`: what is declared."""
        return min(self._limit, int(_u32(buffer)[0])) if len(buffer) >= 4 else self._limit

    def head(self, size: int) -> bytes:
        """See `Messages`."""
        return size.to_bytes(4, "big")


class Bare:
    """Messages of the strict binary protocol one behind the other, read as far as it takes to find their ends."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._buffer = bytearray()
        self._pos = 0  # may lie behind the bytes that are there
        self._left = 0
        self._steps: Iterator[None] = iter(())
        self._under_way = False

    def take(self, buffer: bytearray) -> bytes | None:
        """See `Messages`; it is the same buffer each time."""
        if not self._under_way:
            if not buffer:
                return None
            self._buffer, self._pos, self._left = buffer, 0, self._budget.elements
            self._steps, self._under_way = self._message(), True
        for _ in self._steps:
            return None
        self._under_way = False
        message = bytes(memoryview(buffer)[: self._pos])
        del buffer[: self._pos]
        return message

    def most(self, buffer: bytearray) -> int:
        """See `Messages`."""
        return self._budget.size

    def head(self, size: int) -> bytes:
        """See `Messages`."""
        return b""

    # Each step below ends with a yield where it takes more bytes to go on.

    def _message(self) -> Iterator[None]:
        yield from self._need(8)
        (word,), (size,) = _u32(self._buffer, 0), _i32(self._buffer, 4)
        if word & 0xFFFF0000 != _VERSION:
            raise MalformedError("no strict binary protocol header")
        if not 0 <= size <= _NAME_LIMIT:
            raise MalformedError("bad length of the method name")
        self._advance(12 + size)
        yield from self._value(STRUCT, 0)
        yield from self._need(0)

    def _need(self, size: int) -> Iterator[None]:
        while self._pos + size > len(self._buffer):
            yield

    def _value(self, kind: int, depth: int) -> Iterator[None]:
        if depth > self._budget.depth:
            raise MalformedError(f"more than {self._budget.depth} levels of nesting")
        self._spend(1)
        if kind in FIXED:
            self._advance(FIXED[kind])
        elif kind == STRING:
            yield from self._need(4)
            (length,) = _i32(self._buffer, self._pos)
            if length < 0:
                raise MalformedError(f"a string of {length} bytes")
            self._advance(4 + length)
        elif kind == STRUCT:
            while True:
                yield from self._need(1)
                field = self._buffer[self._pos]
                if field == STOP:
                    self._advance(1)
                    return
                self._advance(3)
                yield from self._value(field, depth + 1)
        elif kind in (LIST, SET):
            yield from self._need(5)
            yield from self._elements((self._buffer[self._pos],), 5, depth)
        elif kind == MAP:
            yield from self._need(6)
            yield from self._elements((self._buffer[self._pos], self._buffer[self._pos + 1]), 6, depth)
        else:
            raise MalformedError(f"unknown type {kind}")

    def _elements(self, kinds: tuple[int, ...], header: int, depth: int) -> Iterator[None]:
        (count,) = _i32(self._buffer, self._pos + header - 4)
        if count < 0:
            raise MalformedError(f"a container of {count} elements")
        self._advance(header)
        if all(kind in FIXED for kind in kinds):
            self._spend(count)
            self._advance(count * sum(FIXED[kind] for kind in kinds))
            return
        for _ in range(count):
            for kind in kinds:
                yield from self._value(kind, depth + 1)

    def _advance(self, size: int) -> None:
        self._pos += size
        if self._pos > self._budget.size:
            raise MalformedError(f"the message exceeds the limit of {self._budget.size} bytes")

    def _spend(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            raise MalformedError("too many elements")
