"""Writing structs in the strict binary protocol as a list of buffers, joined once by the caller.

Ready-made column bytes are spliced: a `Spliced` stands where a list of values belongs, and its parts reach the wire as
they are. Binary fields take any bytes-like object. None means absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

from gateway.protocol.spec import BOOL, BYTE, DOUBLE, FIXED, I16, I32, I64, LIST, MAP, SET, STRING, STRUCT, Plan

Buffer = bytes | bytearray | memoryview

_header = Struct(">bh").pack
_field = {
    BOOL: Struct(">bh?").pack,
    BYTE: Struct(">bhb").pack,
    I16: Struct(">bhh").pack,
    I32: Struct(">bhi").pack,
    I64: Struct(">bhq").pack,
    DOUBLE: Struct(">bhd").pack,
}
_scalar = {
    BOOL: Struct(">?").pack,
    BYTE: Struct(">b").pack,
    I16: Struct(">h").pack,
    I32: Struct(">i").pack,
    I64: Struct(">q").pack,
    DOUBLE: Struct(">d").pack,
}
_string_field = Struct(">bhi").pack
_size = Struct(">i").pack
_list = Struct(">bi").pack
_map = Struct(">bbi").pack

Extras = Mapping[int, Sequence[tuple[int, bytes]]]


@dataclass(frozen=True, slots=True)
class Spliced:
    """`count` list elements, ready-made: big-endian values, or length-prefixed strings, one after the other."""

    count: int
    parts: Sequence[Buffer]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A whole struct, ready-made; see `codec.encode_struct`."""

    data: bytes


def write_struct(out: list[Buffer], plan: Plan, value: Any, extras: Extras | None = None) -> None:
    """Append the struct `value` to `out`; `extras` are fields kept by a `Reader`, put back in order of their ids."""
    kept = list(extras.get(id(value), ())) if extras else []
    append = out.append
    for number, (ttype, name, arg) in plan.fields.items():
        item = getattr(value, name)
        if item is None:
            continue
        while kept and kept[0][0] < number:
            append(kept.pop(0)[1])
        pack = _field.get(ttype)
        if pack is not None:
            append(pack(ttype, number, item))
        elif ttype == STRING:
            data = item.encode() if isinstance(item, str) else _flat(item)
            append(_string_field(STRING, number, len(data)))
            append(data)
        else:
            append(_header(ttype, number))
            _write_value(out, ttype, arg, item, extras)
    for _number, data in kept:
        append(data)
    append(b"\0")


def _write_value(out: list[Buffer], ttype: int, arg: Any, value: Any, extras: Extras | None) -> None:
    pack = _scalar.get(ttype)
    if pack is not None:
        out.append(pack(value))
    elif ttype == STRING:
        data = value.encode() if isinstance(value, str) else _flat(value)
        out.append(_size(len(data)))
        out.append(data)
    elif ttype == STRUCT:
        if isinstance(value, Encoded):
            out.append(value.data)
        else:
            write_struct(out, arg, value, extras)
    elif ttype in (LIST, SET):
        etype, inner = arg
        if isinstance(value, Spliced):
            _splice(out, etype, value)
            return
        out.append(_list(etype, len(value)))
        for item in value:
            _write_value(out, etype, inner, item, extras)
    elif ttype == MAP:
        ktype, karg, vtype, varg = arg
        out.append(_map(ktype, vtype, len(value)))
        for key, item in value.items():
            _write_value(out, ktype, karg, key, extras)
            _write_value(out, vtype, varg, item, extras)
    else:
        raise TypeError(f"Thrift type {ttype}")


def _splice(out: list[Buffer], etype: int, value: Spliced) -> None:
    width = FIXED.get(etype)
    if width is not None:
        there = sum(len(part) if isinstance(part, (bytes, bytearray)) else part.nbytes for part in value.parts)
        if there != value.count * width:
            raise ValueError(f"{value.count} values of {width} bytes declared, {there} bytes given")
    out.append(_list(etype, value.count))
    out.extend(map(_flat, value.parts))


def _flat(part: Buffer) -> Buffer:
    """The part with one byte per item."""
    if isinstance(part, (bytes, bytearray)):
        return part
    return part.cast("B") if part.nbytes else b""
