"""Elements of arrays and maps: by place, by key, by value, the smallest and the largest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import Bools, nulls, with_nulls
from gateway.engine.functions.casts import struct_children
from gateway.engine.functions.lists import (
    Lists,
    any_by_row,
    as_type,
    built,
    codes_together,
    one_zero,
    ranks,
)
from gateway.instants import Ints, ints
from gateway.sqltypes import MapType


def _index_error(condition: str, index: int, size: int) -> RowError:
    instead = "SQL function `get()`" if condition == "INVALID_ARRAY_INDEX" else "`try_element_at`"
    return RowError(
        condition,
        f"The index {index} is out of bounds. The array has {size} elements. Use the {instead} to tolerate accessing "
        "element at invalid index and return NULL instead.",
    )


_ORDERS: dict[str, Callable[[Ints, Ints], Bools]] = {
    "=": np.equal,
    "<=>": np.equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@implementation("nested_compare")
def nested_compare(spec: UdfSpec) -> Kernel:
    """Arrays and structs compared field by field, NULLs inside equal and first; params: (symbol,)."""
    symbol = str(spec.params[0])

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        together = ranks(pa.concat_arrays([a, as_type(b, a.type)]))
        left, right = together[: len(a)], together[len(a) :]
        result = _ORDERS[symbol](left, right)
        return pa.array(result) if symbol == "<=>" else pa.array(result, mask=(left < 0) | (right < 0))

    return kernel


@implementation("one_zero")
def key_with_one_zero(spec: UdfSpec) -> Kernel:
    """Arrays and structs whose floats have one zero, to be told apart by."""
    return one_zero


@implementation("list_size")
def list_size(spec: UdfSpec) -> Kernel:
    """Number of elements of an array or map."""

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        return with_nulls(lists.lengths, lists.void, pa.int32())

    return kernel


@implementation("array_item")
def array_item(spec: UdfSpec) -> Kernel:
    """``arr[i]`` from 0; INVALID_ARRAY_INDEX outside."""

    def kernel(a: pa.Array, index: pa.Array) -> pa.Array:
        lists, at = Lists(a), ints(index)
        void = lists.void | nulls(index)
        bad = ((at < 0) | (at >= lists.lengths)) & ~void
        if bad.any():
            row = int(np.argmax(bad))
            raise _index_error("INVALID_ARRAY_INDEX", int(at[row]), int(lists.lengths[row]))
        return lists.values.take(pa.array(np.where(void, 0, lists.starts + at), mask=void))

    return kernel


@implementation("array_field")
def array_field(spec: UdfSpec) -> Kernel:
    """One field of every struct of an array, as an array; params: (position of the field,)."""

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        return built(lists.lengths, struct_children(lists.values)[spec.params[0]], lists.void, spec.returns.arrow())

    return kernel


@implementation("array_element_at")
def array_element_at(spec: UdfSpec) -> Kernel:
    """element_at(array, i) from 1, or from the end; params: (is_try,): NULL outside instead of the error."""
    is_try = bool(spec.params[0])

    def kernel(a: pa.Array, index: pa.Array) -> pa.Array:
        lists, at = Lists(a), ints(index)
        void = lists.void | nulls(index)
        zero = (at == 0) & ~void
        outside = (np.abs(at) > lists.lengths) & ~void
        if ((at == -(2**31)) & ~void).any():
            # releases of Spark disagree: NULL, an overflow
            raise RowError("UNSUPPORTED_FEATURE", "The index -2147483648 is not supported.")
        bad = zero if is_try else zero | outside
        row = int(np.argmax(bad)) if bad.any() else -1  # the first one is told
        if row >= 0 and outside[row]:
            raise _index_error("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", int(at[row]), int(lists.lengths[row]))
        if row >= 0:
            raise RowError(
                "INVALID_INDEX_OF_ZERO",
                "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).",
            )
        void = void | outside
        place = lists.starts + np.where(at > 0, at - 1, lists.lengths + at)
        return lists.values.take(pa.array(np.where(void, 0, place), mask=void))

    return kernel


@implementation("map_item")
def map_item(spec: UdfSpec) -> Kernel:
    """The value of a key; NULL if it is missing."""

    def kernel(a: pa.Array, key: pa.Array) -> pa.Array:
        lists = Lists(a)
        keys, items = struct_children(lists.values)
        have, want = codes_together(keys, key)
        rows = lists.rows
        hits = np.flatnonzero((have == want[rows]) & (want[rows] >= 0))
        place = np.full(len(a), -1, dtype=np.int64)
        place[rows[hits]] = hits
        void = place < 0
        return items.take(pa.array(np.where(void, 0, place), mask=void))

    return kernel


@implementation("array_contains")
def array_contains(spec: UdfSpec) -> Kernel:
    """Whether an element equals; NULL if none does and one is NULL. On a map: whether it has the key."""
    is_map = isinstance(spec.args[0], MapType)

    def kernel(a: pa.Array, value: pa.Array) -> pa.Array:
        lists = Lists(a)
        elements = struct_children(lists.values)[0] if is_map else lists.values
        have, want = codes_together(elements, value)
        rows = lists.rows
        found = any_by_row(rows, have == want[rows], len(a))
        unknown = any_by_row(rows, have == -1, len(a)) & ~found
        return with_nulls(found, lists.void | nulls(value) | unknown, pa.bool_())

    return kernel


@implementation("array_position")
def array_position(spec: UdfSpec) -> Kernel:
    """Place (from 1) of the first equal element, 0 if none."""

    def kernel(a: pa.Array, value: pa.Array) -> pa.Array:
        lists = Lists(a)
        have, want = codes_together(lists.values, value)
        rows = lists.rows
        hits = np.flatnonzero((have == want[rows]) & (have >= 0))
        place = np.zeros(len(a), dtype=np.int64)
        place[rows[hits][::-1]] = lists.places[hits][::-1] + 1
        return with_nulls(place, lists.void | nulls(value), pa.int64())

    return kernel


@implementation("array_extreme")
def array_extreme(spec: UdfSpec) -> Kernel:
    """array_min, array_max: NULL elements do not count, the first of equal ones is told; params: ("min" | "max",)."""
    largest = spec.params[0] == "max"

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        rank = ranks(lists.values)
        known = np.flatnonzero(rank >= 0)
        rows = lists.rows[known]
        order = np.lexsort((-known, rank[known] if largest else -rank[known], rows))
        place = np.full(len(a), -1, dtype=np.int64)
        place[rows[order]] = known[order]  # the last of a row wins
        void = place < 0
        return lists.values.take(pa.array(np.where(void, 0, place), mask=void))

    return kernel


@implementation("wrapped_int")
def wrapped_int(spec: UdfSpec) -> Kernel:
    """The lower 32 bits of whole numbers, as Java's intValue takes them."""
    return lambda a: with_nulls(ints(a).astype(np.int32), nulls(a), pa.int32())
