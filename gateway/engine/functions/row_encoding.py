"""Values as bytes in Spark's order, so that what is nested is told apart, and put in order, as quickly as texts are.

Of structs, of which count(DISTINCT a, b) makes its rows, the engine (DataFusion 55) keeps each as a value of its own, kilobytes
large; and Python compares them one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import MAX_TEXT_BYTES, Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import Bools, nulls
from gateway.engine.functions.casts import list_parts, struct_children

Vector = np.ndarray[Any, Any]
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@implementation("row_key")
def row_key(spec: UdfSpec) -> Kernel:
    """The operands of a row as bytes, NULL where any of them is NULL."""
    return lambda *args: _known(_joined([_encoded(a) for a in args]), np.logical_or.reduce([nulls(a) for a in args]))


@implementation("order_key")
def order_key(spec: UdfSpec) -> Kernel:
    """The keys of ORDER BY as bytes in its order; params: of each whether it is descending, and whether NULL comes first."""
    return lambda *keys: _joined(
        [_directed(_encoded(k), nulls(k), *way) for k, way in zip(keys, spec.params, strict=True)]
    )


def _directed(keys: pa.Array, void: Bools, descending: bool, nulls_first: bool) -> pa.Array:
    """Bytes for a direction of ORDER BY: turned over, and those of NULL before or behind all others."""
    _, places, held = keys.buffers()
    starts = np.frombuffer(places, dtype=np.int32)[keys.offset : keys.offset + len(keys)]
    data = np.frombuffer(held, dtype=np.uint8).copy() if held is not None else np.zeros(0, dtype=np.uint8)
    if descending:
        data ^= 0xFF
    data[starts[void]] = 0 if nulls_first else 0xFF
    return pa.Array.from_buffers(pa.binary(), len(keys), [None, places, pa.py_buffer(data)], offset=keys.offset)


def encoded(values: pa.Array) -> pa.Array:
    """Each value as bytes that compare as the values do: NULL first (but NULL itself stays it), one zero, NaN last.

    Raises RowError for more bytes than an array holds.
    """
    return _known(_encoded(values), nulls(values))


def _known(keys: pa.Array, void: Bools) -> pa.Array:
    return pc.if_else(pa.array(void), pa.scalar(None, keys.type), keys) if void.any() else keys


def _encoded(values: pa.Array) -> pa.Array:
    """The same with bytes for NULL. They end by themselves: of two that are joined with others each has its place."""
    t, void = values.type, nulls(values)
    if pa.types.is_null(t):
        return _matrix(_flags(void))
    if pa.types.is_struct(t):
        return _joined([_matrix(_flags(void)), *map(_encoded, struct_children(values))])
    if pa.types.is_list(t) or pa.types.is_map(t):
        return _of_lists(values, void)
    if pa.types.is_string(t) or pa.types.is_binary(t):
        return _of_texts(values, void)
    return _matrix(np.hstack([_flags(void), np.where(void[:, None], np.uint8(0), _ordered(values))]))


def _of_lists(values: pa.Array, void: Bools) -> pa.Array:
    """A byte before each element, and another one behind the last."""
    offsets, elements = list_parts(values)
    inner = _joined([_matrix(np.ones((len(elements), 1), dtype=np.uint8)), _encoded(elements)])
    ends = np.frombuffer(inner.buffers()[1], dtype=np.int32)[inner.offset : inner.offset + len(inner) + 1]
    places = pa.py_buffer(np.ascontiguousarray(ends[offsets.to_numpy()]))
    together = pa.Array.from_buffers(pa.binary(), len(void), [None, places, inner.buffers()[2]])
    return _joined([_matrix(_flags(void)), together, _matrix(np.zeros((len(void), 1), dtype=np.uint8))])


def _of_texts(values: pa.Array, void: Bools) -> pa.Array:
    """Two zero bytes end a text; those within are marked."""
    texts = values.cast(pa.binary()).fill_null(b"")
    if pc.any(pc.match_substring(texts, b"\0")).as_py():
        texts = pc.replace_substring(texts, b"\0", b"\0\xff")
    return _joined([_matrix(_flags(void)), texts, _matrix(np.zeros((len(void), 2), dtype=np.uint8))])


def _ordered(values: pa.Array) -> _Bytes:
    """The values' own bytes, those of fixed width: the highest first, negative ones before the others."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_floating(values.type):
        values = pa.array(spark_order(values.fill_null(0).to_numpy(zero_copy_only=False)))
    width = values.type.bit_width // 8
    held = np.frombuffer(values.buffers()[1], dtype=np.uint8) if len(values) else np.zeros(0, dtype=np.uint8)
    rows = held[values.offset * width : (values.offset + len(values)) * width].reshape(-1, width)[:, ::-1].copy()
    rows[:, 0] ^= 0x80
    return rows


def spark_order(values: Vector) -> Vector:
    """Integers that sort as Spark sorts floats: one zero, NaN above everything."""
    return java_order(np.where(values == 0.0, 0.0, values).astype(values.dtype))


def java_order(values: Vector) -> Vector:
    """Integers that sort as Java compares floats, which percentiles do: -0.0 below 0.0, NaN above everything."""
    word: type[np.signedinteger[Any]] = np.int32 if values.dtype == np.float32 else np.int64
    values = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
    bits = np.ascontiguousarray(values).view(word)
    return np.where(bits < 0, bits ^ np.iinfo(word).max, bits).astype(word)


def _flags(void: Bools) -> _Bytes:
    return np.where(void, 0, 1).astype(np.uint8)[:, None]


def _matrix(rows: _Bytes) -> pa.Array:
    """The rows of a matrix as one value each."""
    count, width = rows.shape
    fixed = pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(np.ascontiguousarray(rows))])
    return fixed.cast(pa.binary())


def _joined(parts: list[pa.Array]) -> pa.Array:
    """The parts of each row, one behind the other: Arrow counts their bytes in 32 bits."""
    if sum(pc.sum(pc.binary_length(p).cast(pa.int64())).as_py() or 0 for p in parts) > MAX_TEXT_BYTES:
        text = f"Rows that are told apart have more than {MAX_TEXT_BYTES} bytes in a batch."
        raise RowError("RESOURCE_EXHAUSTED", text)
    return pc.binary_join_element_wise(*parts, b"") if len(parts) > 1 else parts[0]
