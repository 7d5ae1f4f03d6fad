"""Reading structs of the strict binary protocol from bytes, within a budget.

Nothing is allocated for what a message declares, only for bytes that are there: a string's length is compared with the
bytes left, a container's count with the bytes left and with the budget, both before the first element is touched. Each
field, element and struct costs one unit of the budget. Unknown fields, and known ones with another wire type, are skipped
as bytes; `Reader.extras` keeps them on request. Absent fields are None, never a default of the IDL.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, error
from typing import Any

from gateway.protocol.spec import (
    BOOL,
    BYTE,
    DOUBLE,
    FIXED,
    I16,
    I32,
    I64,
    LEAST,
    LIST,
    MAP,
    SET,
    STRING,
    STRUCT,
    Plan,
)

# What Python raises on bytes that end too early or are no text; callers of a `Reader` turn these into their own errors.
DAMAGE = (IndexError, error, UnicodeDecodeError)

_i8 = Struct(">b").unpack_from
_i16 = Struct(">h").unpack_from
_i32 = Struct(">i").unpack_from
_i64 = Struct(">q").unpack_from
_double = Struct(">d").unpack_from
_LARGE = 1 << 16  # bytes: smaller values are copied, so that they do not keep their message


class MalformedError(ValueError):
    """The bytes are no valid message, or exceed the budget; the text says what and where."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on one incoming message: its bytes, nesting, and the number of fields, elements and structs."""

    size: int = 16 * 1024 * 1024
    depth: int = 64
    elements: int = 100_000


@dataclass(frozen=True, slots=True)
class RawValues:
    """Values of a column left as they came: `count` of them in Thrift's list layout, without the list header."""

    count: int
    data: memoryview


class Reader:
    """A cursor over one message.

    Args:
        buf: the whole message.
        budget: see `Budget`.
        pos: where to start.
        keep_unknown: collect unknown fields in `extras`: ``id(struct) -> [(field id, bytes of the field)]``.
        raw_columns: leave `values` of TxxxColumn structs as `RawValues`, and large binaries as views of the message.
    """

    __slots__ = ("buf", "end", "extras", "left", "limit", "pos", "raw_columns")

    def __init__(
        self,
        buf: bytes | bytearray,
        budget: Budget,
        pos: int = 0,
        *,
        keep_unknown: bool = False,
        raw_columns: bool = False,
    ) -> None:
        self.buf = buf
        self.end = len(buf)
        if self.end > budget.size:
            raise MalformedError(f"message of {self.end} bytes exceeds the limit of {budget.size}")
        self.pos = pos
        self.left = budget.elements
        self.limit = budget.depth
        self.extras: dict[int, list[tuple[int, bytes]]] | None = {} if keep_unknown else None
        self.raw_columns = raw_columns

    # Written out in one loop: it reads every field of every message.
    def struct(self, plan: Plan, depth: int = 0) -> Any:  # noqa: C901, PLR0912, PLR0915
        """The struct at the cursor as an instance of the plan's class."""
        if depth > self.limit:
            raise MalformedError(f"more than {self.limit} levels of nesting")
        buf = self.buf
        pos = self.pos
        end = self.end
        fields = plan.fields
        value: Any
        target = plan.cls(*plan.nones)
        self.spend(1)
        while True:
            ttype = buf[pos]
            if ttype == 0:
                break
            start = pos
            number = buf[pos + 1] << 8 | buf[pos + 2]
            pos += 3
            self.left -= 1
            if self.left < 0:
                raise MalformedError("too many elements")
            field = fields.get(number)
            if field is None or field[0] != ttype:
                self.pos = pos
                self.skip(ttype, depth + 1)
                pos = self.pos
                if self.extras is not None:
                    self.extras.setdefault(id(target), []).append((number, bytes(buf[start:pos])))
                continue
            if ttype == STRING:
                (size,) = _i32(buf, pos)
                pos += 4
                stop = pos + size
                if size < 0 or stop > end:
                    raise MalformedError(f"{field[1]}: {size} bytes declared, {end - pos} there")
                if field[2]:
                    value = buf[pos:stop].decode()
                elif self.raw_columns and size >= _LARGE:
                    value = memoryview(buf)[pos:stop].toreadonly()
                else:
                    value = bytes(buf[pos:stop])
                pos = stop
            elif ttype == I32:
                (value,) = _i32(buf, pos)
                pos += 4
            elif ttype == BOOL:
                value = buf[pos] != 0
                pos += 1
            elif ttype == I64:
                (value,) = _i64(buf, pos)
                pos += 8
            elif ttype == STRUCT:
                self.pos = pos
                value = self.struct(field[2], depth + 1)
                pos = self.pos
            elif plan.column and ttype == LIST and self.raw_columns:
                self.pos = pos
                value = self.raw(field[2][0], depth + 1)
                pos = self.pos
            else:
                self.pos = pos
                value = self.value(ttype, field[2], depth + 1)
                pos = self.pos
            setattr(target, field[1], value)
        self.pos = pos + 1
        return target

    def value(self, ttype: int, arg: Any, depth: int) -> Any:
        """The value of a known type at the cursor; `arg` as in `spec.Field`."""
        if depth > self.limit:
            raise MalformedError(f"more than {self.limit} levels of nesting")
        pos = self.pos
        if ttype == STRING:
            (size,) = _i32(self.buf, pos)
            pos += 4
            if size < 0 or pos + size > self.end:
                raise MalformedError(f"{size} bytes declared, {self.end - pos} there")
            self.pos = pos + size
            data = self.buf[pos : pos + size]
            return data.decode() if arg else bytes(data)
        if ttype == STRUCT:
            return self.struct(arg, depth)
        if ttype in (LIST, SET):
            etype, count = self.list_header()
            if count and etype != arg[0]:
                raise MalformedError(f"list of type {etype} where {arg[0]} belongs")
            self.spend(count)
            inner = arg[1]
            return [self.value(etype, inner, depth + 1) for _ in range(count)]
        if ttype == MAP:
            return self._map(arg, depth)
        self.pos = pos + FIXED[ttype]
        if ttype == I32:
            return _i32(self.buf, pos)[0]
        if ttype == I64:
            return _i64(self.buf, pos)[0]
        if ttype == BOOL:
            return self.buf[pos] != 0
        if ttype == DOUBLE:
            return _double(self.buf, pos)[0]
        if ttype == I16:
            return _i16(self.buf, pos)[0]
        if ttype == BYTE:
            return _i8(self.buf, pos)[0]
        raise MalformedError(f"unknown type {ttype}")

    def _map(self, arg: tuple[int, Any, int, Any], depth: int) -> dict[Any, Any]:
        ktype, vtype, count = self.map_header()
        if count and (ktype, vtype) != (arg[0], arg[2]):
            raise MalformedError(f"map of types {ktype}, {vtype} where {arg[0]}, {arg[2]} belong")
        self.spend(2 * count)
        result: dict[Any, Any] = {}
        for _ in range(count):
            key = self.value(ktype, arg[1], depth + 1)
            result[key] = self.value(vtype, arg[3], depth + 1)
        return result

    def spend(self, units: int) -> None:
        """Charge the budget."""
        self.left -= units
        if self.left < 0:
            raise MalformedError("too many elements")

    def list_header(self) -> tuple[int, int]:
        """Element type and count, the count checked against the bytes that are there."""
        etype = self.buf[self.pos]
        (count,) = _i32(self.buf, self.pos + 1)
        self.pos += 5
        self._check_count(count, LEAST.get(etype))
        return etype, count

    def map_header(self) -> tuple[int, int, int]:
        """Key type, value type and count, the count checked against the bytes that are there."""
        ktype, vtype = self.buf[self.pos], self.buf[self.pos + 1]
        (count,) = _i32(self.buf, self.pos + 2)
        self.pos += 6
        least = LEAST[ktype] + LEAST[vtype] if ktype in LEAST and vtype in LEAST else None
        self._check_count(count, least)
        return ktype, vtype, count

    def _check_count(self, count: int, least: int | None) -> None:
        if count == 0:
            return
        if least is None:
            raise MalformedError("container of an unknown type")
        if count < 0 or count * least > self.end - self.pos:
            raise MalformedError(f"{count} elements declared, {self.end - self.pos} bytes there")

    def seek_field(self, number: int) -> None:
        """Move to the value of a field of the struct at the cursor; fields before it are skipped. ValueError if it lacks it."""
        while True:
            ttype = self.buf[self.pos]
            if ttype == 0:
                raise ValueError(f"no field {number}")
            found = self.buf[self.pos + 1] << 8 | self.buf[self.pos + 2]
            self.pos += 3
            if found == number:
                return
            self.skip(ttype, 1)

    def enter_union(self) -> None:
        """Move to the struct in the only field of the union at the cursor."""
        self.pos += 3

    def raw(self, etype: int, depth: int) -> RawValues:
        """The values of a column, undecoded."""
        start_type, count = self.list_header()
        if count and start_type != etype:
            raise MalformedError(f"list of type {start_type} where {etype} belongs")
        start = self.pos
        self._skip_items(etype, count, depth)
        return RawValues(count, memoryview(self.buf)[start : self.pos])

    def skip(self, ttype: int, depth: int) -> None:
        """Move past a value of any type without decoding it."""
        if depth > self.limit:
            raise MalformedError(f"more than {self.limit} levels of nesting")
        width = FIXED.get(ttype)
        if width is not None:
            self._advance(width)
        elif ttype == STRING:
            (size,) = _i32(self.buf, self.pos)
            self.pos += 4
            self._advance(size)
        elif ttype == STRUCT:
            self._skip_struct(depth)
        elif ttype in (LIST, SET):
            etype, count = self.list_header()
            self._skip_items(etype, count, depth)
        elif ttype == MAP:
            ktype, vtype, count = self.map_header()
            if ktype in FIXED and vtype in FIXED:
                self._advance(count * (FIXED[ktype] + FIXED[vtype]))
                return
            self.spend(2 * count)
            for _ in range(count):
                self.skip(ktype, depth + 1)
                self.skip(vtype, depth + 1)
        else:
            raise MalformedError(f"unknown type {ttype}")

    def _advance(self, size: int) -> None:
        if size < 0 or self.pos + size > self.end:
            raise MalformedError(f"{size} bytes declared, {self.end - self.pos} there")
        self.pos += size

    def _skip_struct(self, depth: int) -> None:
        buf = self.buf
        self.spend(1)
        while True:
            ttype = buf[self.pos]
            if ttype == 0:
                self.pos += 1
                return
            self.spend(1)
            self.pos += 3
            self.skip(ttype, depth + 1)

    def _skip_items(self, etype: int, count: int, depth: int) -> None:
        if depth > self.limit:
            raise MalformedError(f"more than {self.limit} levels of nesting")
        width = FIXED.get(etype)
        if width is not None:
            self._advance(count * width)
        elif etype == STRING and self.raw_columns:
            self._skip_strings(count)
        else:
            self.spend(count)
            for _ in range(count):
                self.skip(etype, depth + 1)

    def _skip_strings(self, count: int) -> None:
        """Past `count` strings; for a client's own large pages, so it is not charged."""
        buf = self.buf
        pos = self.pos
        end = self.end
        for _ in range(count):
            (size,) = _i32(buf, pos)
            pos += 4 + size
            if size < 0 or pos > end:
                raise MalformedError(f"{size} bytes declared, too few there")
        self.pos = pos
