"""The end marker (type 0) inside containers: no element of any list, set or map has that type."""

from __future__ import annotations

import struct

import pytest

from gateway.protocol import codec
from gateway.protocol.reader import Budget

STRUCT, MAP, SET, LIST, I32 = 12, 13, 14, 15, 8


def call(kind: int, head: bytes) -> bytes:
    """A CloseSession request with an unknown field of type `kind` that begins with `head` and has no elements' bytes."""
    name = b"CloseSession"
    message = struct.pack("!II", 0x80010001, len(name)) + name + struct.pack("!i", 7)
    field = struct.pack("!bh", kind, 999) + head
    return message + struct.pack("!bh", STRUCT, 1) + field + b"\0" + b"\0"


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("kind", [LIST, SET])
def test_no_element_has_the_type_of_the_end_marker(kind: int, size: int) -> None:
    with pytest.raises(codec.BadCallError):
        codec.decode_call(call(kind, struct.pack("!bi", 0, size)), Budget())


@pytest.mark.parametrize(("key", "value"), [(0, I32), (I32, 0), (0, 0)])
def test_no_key_or_value_has_the_type_of_the_end_marker(key: int, value: int) -> None:
    with pytest.raises(codec.BadCallError):
        codec.decode_call(call(MAP, struct.pack("!bbi", key, value, 2) + b"\0" * 8), Budget())


def test_empty_containers_are_skipped_whatever_type_they_name() -> None:
    for body in (call(LIST, struct.pack("!bi", I32, 0)), call(MAP, struct.pack("!bbi", 0, 0, 0))):
        assert codec.decode_call(body, Budget()).method == "CloseSession"
