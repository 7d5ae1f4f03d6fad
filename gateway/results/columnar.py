"""Record batches -> Thrift column payloads: the bytes that the binary protocol puts behind a list header.

Each column is one numpy byte swap, or one Arrow join of length prefixes and texts; no Python object is made per cell.
Batches are cut into slices of bounded size, so that text of large rows never passes Arrow's 2 GiB of one array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.errors import ServerError
from gateway.floats import doubles_of_floats
from gateway.results.arrow_types import plain
from gateway.results.display import wire_text
from gateway.sqltypes import FLOAT, DataType, Slot, StructType

_SLICE_ROWS = 131_072
_SLICE_BYTES = 128 << 20

# Big-endian element layout of TBinaryProtocol; a bool is one byte 0 or 1.
_FIXED: dict[Slot, str] = {
    Slot.BOOL: ">i1",
    Slot.BYTE: ">i1",
    Slot.I16: ">i2",
    Slot.I32: ">i4",
    Slot.I64: ">i8",
    Slot.DOUBLE: ">f8",
}


@dataclass(frozen=True, slots=True)
class ColumnPayload:
    """One column of a page.

    Attributes:
        slot: arm of TColumn.
        count: number of values.
        parts: list elements without the list header, in pieces; integers and doubles big-endian, strings and binaries as an
            i32 length and the bytes; 0 or '' where the value is null.
        nulls: bitmap of ceil(count / 8) bytes, least significant bit first, 1 = null, no bit set past the last row.
    """

    slot: Slot
    count: int
    parts: tuple[bytes | memoryview, ...]
    nulls: bytes

    @property
    def size(self) -> int:
        """Bytes of values and bitmap."""
        return sum(map(len, self.parts)) + len(self.nulls)


def encode(batches: Sequence[pa.RecordBatch], schema: StructType, *, time_zone: str) -> list[ColumnPayload]:
    """Columns of a page that holds all rows of `batches`; without batches every column is there with zero rows.

    Args:
        batches: rows in the internal Arrow types of `schema`, or in others that `arrow_types.plain` accepts.
        time_zone: session zone in which TIMESTAMP values are shown.

    Raises:
        UnsupportedError: UNSUPPORTED_RESULT_TYPE.
        UserError: NUMERIC_VALUE_OUT_OF_RANGE, DATETIME_OVERFLOW.
    """
    for batch in batches:
        if batch.num_columns != len(schema.fields):
            raise ServerError(
                "INTERNAL_ERROR", f"A batch has {batch.num_columns} columns, its schema {len(schema.fields)}."
            )
    return [
        _column([batch.column(i) for batch in batches], field.type, field.name, time_zone)
        for i, field in enumerate(schema.fields)
    ]


def _column(chunks: list[pa.Array], data_type: DataType, name: str, time_zone: str) -> ColumnPayload:
    slot = data_type.row.slot
    arrays = [plain(chunk, data_type, name) for chunk in chunks]
    count = sum(map(len, arrays))
    pieces = (piece for array in arrays if len(array) for piece in _slices(array))
    parts: tuple[memoryview, ...]
    if slot in _FIXED:
        parts = (_numbers(pieces, data_type, slot, count),)
    else:
        parts = tuple(_texts(piece, data_type, slot, time_zone) for piece in pieces)
    return ColumnPayload(slot, count, parts, _null_bitmap(arrays, count))


def _slices(array: pa.Array) -> Iterator[pa.Array]:
    """Parts of `array` small enough that their text surely fits an Arrow array, and the processor's caches better."""
    rows = _SLICE_ROWS if array.nbytes <= _SLICE_BYTES else max(1, len(array) * _SLICE_BYTES // array.nbytes)
    for start in range(0, len(array), min(rows, _SLICE_ROWS)):
        yield array.slice(start, min(rows, _SLICE_ROWS))


def _numbers(pieces: Iterable[pa.Array], data_type: DataType, slot: Slot, count: int) -> memoryview:
    found = np.empty(count, _FIXED[slot])
    start = 0
    for array in pieces:
        if data_type == FLOAT:
            array = doubles_of_floats(array)
        if array.null_count:
            array = array.fill_null(False if slot is Slot.BOOL else 0)
        found[start : start + len(array)] = array.to_numpy(zero_copy_only=False)
        start += len(array)
    return found.view(np.uint8).data


def _texts(array: pa.Array, data_type: DataType, slot: Slot, time_zone: str) -> memoryview:
    text = array if slot is Slot.BINARY else wire_text(array, data_type, time_zone)
    return _length_prefixed(text.cast(pa.binary()))


def _length_prefixed(values: pa.BinaryArray) -> memoryview:
    if values.null_count:
        values = values.fill_null(b"")
    lengths = pc.binary_length(values).to_numpy().astype(">i4")
    offsets = np.arange(len(values) + 1, dtype=np.int32) * np.int32(4)
    prefixes = pa.BinaryArray.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(lengths)]
    )
    joined = pc.binary_join_element_wise(prefixes, values, b"")
    _, bounds, data = joined.buffers()
    return memoryview(data.slice(0, int(np.frombuffer(bounds, np.int32)[len(values)])))


def _null_bitmap(arrays: list[pa.Array], count: int) -> bytes:
    if not any(array.null_count for array in arrays):
        return bytes((count + 7) // 8)
    flags = np.concatenate([array.is_null().to_numpy(zero_copy_only=False) for array in arrays])
    return np.packbits(flags, bitorder="little").tobytes()
