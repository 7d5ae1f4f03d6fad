"""Rows as bytes that are the same where the rows are: what the engine can tell apart quickly, whatever the types.

Of structs, of which count(DISTINCT a, b) makes its rows, the engine (DataFusion 55) keeps each as a value of its own, kilobytes
large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import MAX_TEXT_BYTES, Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import Bools, nulls
from gateway.engine.functions.lists import Lists

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_MISSING = -1  # in the place of a length


@implementation("row_key")
def row_key(spec: UdfSpec) -> Kernel:
    """The operands of a row as bytes, NULL where any of them is NULL; floats with one zero and one NaN."""

    def kernel(*args: pa.Array) -> pa.Array:
        void = np.logical_or.reduce([nulls(a) for a in args])
        return pc.if_else(pa.array(void), pa.scalar(None, pa.binary()), _joined([_encoded(a) for a in args]))

    return kernel


def _encoded(values: pa.Array) -> pa.Array:
    """Each value as bytes that end by themselves, so that no two rows of them are alike by chance. No result is NULL."""
    t, void = values.type, nulls(values)
    if pa.types.is_null(t):
        return _matrix(np.zeros((len(values), 1), dtype=np.uint8))
    if pa.types.is_struct(t):
        return _joined([_matrix(_flags(void)), *(_encoded(child) for child in values.flatten())])
    if pa.types.is_list(t) or pa.types.is_map(t):
        return _of_lists(Lists(values), void)
    if pa.types.is_string(t) or pa.types.is_binary(t):
        texts = values.cast(pa.binary()).fill_null(b"")
        return _joined([_matrix(_lengths(pc.binary_length(texts).to_numpy(), void)), texts])
    if pa.types.is_boolean(t):
        values = values.cast(pa.int8())
    elif pa.types.is_floating(t):
        values = _floats(values)
    return _matrix(np.hstack([_flags(void), _bytes(values, void)]))


def _of_lists(lists: Lists, void: Bools) -> pa.Array:
    """The number of elements, then these."""
    elements = _encoded(lists.values)
    ends = np.frombuffer(elements.buffers()[1], dtype=np.int32)[elements.offset : elements.offset + len(elements) + 1]
    rows = (
        np.append(lists.starts, lists.starts[-1:] + lists.lengths[-1:]) if len(lists.starts) else np.zeros(1, np.int64)
    )
    offsets = pa.py_buffer(np.ascontiguousarray(ends[rows]))
    together = pa.Array.from_buffers(pa.binary(), len(void), [None, offsets, elements.buffers()[2]])
    return _joined([_matrix(_lengths(lists.lengths, void)), together])


def _floats(values: pa.Array) -> pa.Array:
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False) + values.type.to_pandas_dtype()(0)
    return pa.array(np.where(np.isnan(numbers), np.nan, numbers).astype(numbers.dtype), values.type)


def _bytes(values: pa.Array, void: Bools) -> _Bytes:
    """The values' own bytes, those of fixed width."""
    width = values.type.bit_width // 8
    held = np.frombuffer(values.buffers()[1], dtype=np.uint8) if len(values) else np.zeros(0, dtype=np.uint8)
    rows = held[values.offset * width : (values.offset + len(values)) * width].reshape(-1, width)
    return np.where(void[:, None], np.uint8(0), rows)


def _flags(void: Bools) -> _Bytes:
    return np.where(void, 0, 1).astype(np.uint8)[:, None]


def _lengths(lengths: np.ndarray[Any, Any], void: Bools) -> _Bytes:
    return np.where(void, _MISSING, lengths).astype(np.int32).view(np.uint8).reshape(-1, 4)


def _matrix(rows: _Bytes) -> pa.Array:
    """The rows of a matrix as one value each."""
    count, width = rows.shape
    fixed = pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(np.ascontiguousarray(rows))])
    return fixed.cast(pa.binary())


def _joined(parts: list[pa.Array]) -> pa.Array:
    """The parts of each row, one behind the other. Raises RowError for more than an array holds: Arrow counts in 32 bits."""
    if sum(pc.sum(pc.binary_length(p)).as_py() or 0 for p in parts) > MAX_TEXT_BYTES:
        raise RowError(
            "RESOURCE_EXHAUSTED", f"Rows that are told apart have more than {MAX_TEXT_BYTES} bytes in a batch."
        )
    return pc.binary_join_element_wise(*parts, b"") if len(parts) > 1 else parts[0]
