"""64-bit hashes of Arrow values, vectorised, under SQL's equality: what Spark and DataFusion rows are compared by.

Equal values have equal hashes whatever engine or batch they come from: NaN equals NaN, 0.0 equals -0.0, NULL only NULL, maps
regardless of the order of their entries. Sums of hashes (modulo 2**64) do not depend on the order of rows and count
duplicates. Not for keys that an enemy may choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)
_PRIME = np.uint64(0x100000001B3)
_BYTES: Hashes = np.random.default_rng(20240229).integers(0, 2**64, 256, dtype=np.uint64)
_NAN = np.uint64(0x7FF8000000000000)


def mix(values: Hashes) -> Hashes:
    """The finalizer of SplitMix64: every bit of the input moves about half of the output's."""
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def row_hashes(columns: Sequence[Hashes], rows: int) -> Hashes:
    """One hash per row from the hashes of its values; the order of columns matters."""
    total = np.zeros(rows, np.uint64)
    for column in columns:
        total = mix(total * _PRIME + column)
    return total


def value_hashes(values: pa.Array) -> Hashes:
    """One hash per value. Takes the plain types of `DataType.arrow()`; others raise TypeError."""
    if types.is_null(values.type) or len(values) == 0:
        return np.full(len(values), _NULL)
    hashes = mix(_payload(values) + np.uint64(1))
    if values.null_count:
        hashes[np.asarray(values.is_null())] = _NULL
    return hashes


def _payload(values: pa.Array) -> Hashes:
    """Something equal for equal values; what it is for NULLs does not matter."""
    type_ = values.type
    if types.is_boolean(type_):
        return _numpy(values.cast(pa.int8())).astype(np.int64).view(np.uint64)
    if types.is_integer(type_):
        return _numpy(values).astype(np.int64).view(np.uint64)
    if types.is_floating(type_):
        return _floats(values)
    if types.is_date32(type_):
        return _numpy(values.view(pa.int32())).astype(np.int64).view(np.uint64)
    if types.is_timestamp(type_):
        return _numpy(values.view(pa.int64())).view(np.uint64)
    if types.is_decimal128(type_):
        words = np.frombuffer(values.buffers()[1], np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
        return mix(words[0::2]) * _PRIME + words[1::2]
    if types.is_string(type_) or types.is_binary(type_):
        return _texts(values)
    if types.is_list(type_):
        return _segments(*_offsets(values), value_hashes, values.values, ordered=True)
    if types.is_map(type_):
        entries = pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"])
        return _segments(*_offsets(values), value_hashes, entries, ordered=False)
    if types.is_struct(type_):
        fields = [value_hashes(values.field(i)) for i in range(type_.num_fields)]
        return row_hashes(fields, len(values))
    raise TypeError(f"values of type {type_} cannot be compared")


def _numpy(values: pa.Array) -> npt.NDArray[Any]:
    if values.null_count:
        values = values.fill_null(0)
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def _floats(values: pa.Array) -> Hashes:
    with np.errstate(invalid="ignore"):  # signalling NaN
        floats = _numpy(values).astype(np.float64) + 0.0  # -0.0 becomes 0.0
    bits: Hashes = floats.view(np.uint64).copy()
    bits[np.isnan(floats)] = _NAN
    return bits


def _offsets(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each value's entries start and end in the child; nothing for NULLs."""
    offsets = values.offsets.to_numpy().astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:].copy()
    if values.null_count:
        missing = np.asarray(values.is_null())
        ends[missing] = starts[missing]
    return starts, ends


def _texts(values: pa.Array) -> Hashes:
    _, offsets_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return _segments(offsets[:-1], offsets[1:], lambda part: _BYTES[part], data, ordered=True)


def _segments(
    starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], hashes_of: Any, child: Any, *, ordered: bool
) -> Hashes:
    """Per segment the sum of its entries' hashes, each times a power of its place if `ordered`, and the length."""
    lengths = ends - starts
    first, last = int(starts.min()), int(ends.max())
    entries: Hashes = hashes_of(child[first:last])
    if ordered and len(entries):
        # Entries between segments (under NULLs) get a place too; they are in no sum.
        begins = np.repeat(starts - first, lengths)
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        powers = np.cumprod(np.full(int(lengths.max()) + 1, _PRIME))
        weighted = np.zeros(len(entries), np.uint64)
        weighted[begins + inside] = entries[begins + inside] * powers[inside]
        entries = weighted
    sums = np.concatenate(([np.uint64(0)], np.cumsum(entries, dtype=np.uint64)))
    total = sums[ends - first] - sums[starts - first]
    return mix(total) + lengths.astype(np.uint64) * _NULL
