"""Schemas and rows in Arrow's form from a server that may be anybody: checked before anything is made of them.

Arrow checks neither that names are texts nor how much it is asked to make of a few bytes. What is refused here no gateway
sends: buffers that are packed within a message, that overlap, or that leave parts of it out, and types of which one value may
stand in many places.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error

import pyarrow as pa

_MOST_NESTED = 1 << 26  # values within lists and maps of one batch
_MOST_BARE = 1 << 23  # of those that take no byte, such as NULLs without a type
_SLACK = 4096  # bytes of a batch that belong to no column, beside the padding of buffers
_PADDING = 64  # bytes that a buffer's length is rounded up to, at most
_DEEPEST = 64  # levels of a type

_u16, _i32 = Struct("<H").unpack_from, Struct("<i").unpack_from
_pair = Struct("<qq").iter_unpack  # FieldNode: length, nulls; Buffer: offset, length
_PAIR = 16
_HEADER = 2  # fields of Message
_NODES, _BUFFERS, _COMPRESSION = 1, 2, 3  # fields of RecordBatch
_NULL = pa.null()
_REPEATING = frozenset(
    type_.id
    for type_ in (
        pa.string_view(),
        pa.binary_view(),
        pa.list_view(_NULL),
        pa.large_list_view(_NULL),
        pa.run_end_encoded(pa.int32(), _NULL),
        pa.dense_union([]),
        pa.sparse_union([]),
        pa.dictionary(pa.int32(), _NULL),
    )
)
_TIMESTAMP, _STRUCT = pa.timestamp("us").id, pa.struct([]).id


class Form:
    """What all batches of a result look like.

    Args:
        data: the message of a schema. Raises ValueError and pa.ArrowException for what is none.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(data))
        self._types = [found for field in self.schema for found in _types(field, True, 0)]

    def batch(self, data: bytes | memoryview) -> pa.RecordBatch:
        """The rows of a message, in about as much memory as it has bytes. Raises ValueError and pa.ArrowException."""
        message = pa.ipc.read_message(pa.py_buffer(data))
        if message.type != "record batch" or message.body is None:
            raise ValueError("no rows")
        if len(data) - message.metadata.size - message.body.size > _SLACK:
            raise ValueError("more than the rows")
        try:
            _check(message.metadata.to_pybytes(), message.body.size, self._types)
        except error as damage:
            raise ValueError("rows whose description ends too early") from damage
        batch = pa.ipc.read_record_batch(message, self.schema)
        batch.validate(full=True)  # else what names bytes outside of it would be read
        return batch


def _types(field: pa.Field, of_rows: bool, depth: int) -> Iterator[tuple[pa.DataType, bool]]:
    """Types in the order in which a batch describes their values, and whether those are as many as it has rows.

    Raises ValueError for names and zones that are no texts, and for types that may repeat a value.
    """
    type_ = field.type
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if depth > _DEEPEST:
        raise ValueError(f"a type of more than {_DEEPEST} levels")
    if type_.id in _REPEATING:
        raise ValueError(f"rows of type {type_}")
    str(field.name)  # reading it decodes it
    if type_.id == _TIMESTAMP:
        str(type_.tz)
    yield type_, of_rows
    for place in range(type_.num_fields):
        yield from _types(type_.field(place), of_rows and type_.id == _STRUCT, depth + 1)


def _check(metadata: bytes, size: int, types: list[tuple[pa.DataType, bool]]) -> None:
    """Raises ValueError for a Message of a RecordBatch that makes more of `size` bytes than there is, struct.error for none."""
    header = _table(metadata, _field(metadata, _table(metadata, 0), _HEADER))
    if _field(metadata, header, _COMPRESSION):
        raise ValueError("rows that are packed once more")
    used = [length for _, length in _pairs(metadata, header, _BUFFERS)]
    if min(used, default=0) < 0 or sum(used) > size:
        raise ValueError("columns that overlap")
    if size - sum(used) > _PADDING * len(used) + _SLACK:
        raise ValueError("more bytes than the columns have")
    lengths = [length for length, _ in _pairs(metadata, header, _NODES)]
    if len(lengths) != len(types):
        raise ValueError("other columns than were told")
    nested = [(length, type_) for length, (type_, of_rows) in zip(lengths, types, strict=True) if not of_rows]
    bare = sum(length for length, type_ in nested if _is_bare(type_))
    if bare > _MOST_BARE or sum(length for length, _ in nested) > _MOST_NESTED:
        raise ValueError("lists that are longer than they may be")


def _is_bare(type_: pa.DataType) -> bool:
    """Whether values of the type may take no byte, however many there are."""
    if pa.types.is_fixed_size_list(type_):
        return bool(type_.list_size == 0)
    if pa.types.is_fixed_size_binary(type_):
        return bool(type_.byte_width == 0)
    return bool(pa.types.is_null(type_) or (pa.types.is_struct(type_) and not type_.num_fields))


def _table(data: bytes, place: int) -> int:
    """Where the table (or vector) is that the offset at `place` leads to."""
    (offset,) = _i32(data, _inside(data, place))
    return _inside(data, place + int(offset))


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 for one that is left out."""
    (back,) = _i32(data, table)
    names = _inside(data, table - int(back))
    (size,) = _u16(data, names)
    place = 4 + 2 * number
    if place + 2 > size:
        return 0
    (offset,) = _u16(data, names + place)
    return _inside(data, table + int(offset)) if offset else 0


def _pairs(data: bytes, table: int, number: int) -> Iterator[tuple[int, int]]:
    """The structs of two numbers in a vector of a table."""
    field = _field(data, table, number)
    if not field:
        return iter(())
    vector = _table(data, field)
    (count,) = _i32(data, vector)
    part = data[vector + 4 : vector + 4 + _PAIR * max(0, int(count))]
    return _pair(part)


def _inside(data: bytes, place: int) -> int:
    if not 0 <= place < len(data):
        raise ValueError("rows that are described outside of their message")
    return place
