"""Arrays and maps: set-like, ordering, cutting and building functions on list offsets, without Python per row.

Elements are compared through whole-number codes: `codes` keeps equality (NaN = NaN, -0.0 = 0.0, NULL is -1), `ranks` keeps
Spark's order as well. Only nested elements are compared in Python, once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import Bools, nulls, with_nulls
from gateway.engine.functions.casts import list_parts, struct_children
from gateway.instants import Ints, ints
from gateway.sqltypes import MapType

# A batch that grows beyond this is refused before memory is taken.
MAX_ELEMENTS = 100_000_000


class Lists:
    """The rows of a list (or map) array as lengths and one flat array of values; NULL rows have length 0."""

    def __init__(self, array: pa.Array) -> None:
        offsets, self.values = list_parts(array)
        self.starts: Ints = offsets.to_numpy()[:-1].astype(np.int64)
        self.lengths: Ints = np.diff(offsets.to_numpy()).astype(np.int64)
        self.void: Bools = nulls(array)

    @property
    def rows(self) -> Ints:
        """The row that each value belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def places(self) -> Ints:
        """The place (from 0) of each value in its row."""
        return np.arange(len(self.values)) - np.repeat(self.starts, self.lengths)


def built(lengths: Ints, values: pa.Array, void: Bools, type: pa.DataType) -> pa.Array:
    """A list or map array of `type`: `lengths` of rows over flat `values`, NULL where `void` (of length 0)."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > 2**31 - 1:
        raise RowError("RESOURCE_EXHAUSTED", "The arrays of a batch have more than 2147483647 elements together.")
    mask = pa.array(void) if void.any() else None
    starts = pa.array(offsets.astype(np.int32))
    if pa.types.is_map(type):
        keys, items = struct_children(values)
        return pa.MapArray.from_arrays(starts, keys, items, type=type, mask=mask)
    return pa.ListArray.from_arrays(starts, values, type=type, mask=mask)


def kept(lists: Lists, keep: Bools, void: Bools, type: pa.DataType, order: Ints | None = None) -> pa.Array:
    """The lists with only the values where `keep`; `order` gives their places."""
    rows = lists.rows
    index = np.flatnonzero(keep) if order is None else order
    lengths = np.bincount(rows[index], minlength=len(lists.lengths)).astype(np.int64)
    return built(lengths, lists.values.take(pa.array(index)), void, type)


# ---------------------------------------------------------------------------------------------------------- comparison


def _plain(values: pa.Array) -> pa.Array | None:
    """Values in a form that Arrow compares as Spark does; None for nested ones."""
    if pa.types.is_nested(values.type):
        return None
    if pa.types.is_floating(values.type):
        # one zero, one NaN
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), pc.add(values, 0.0)).cast(
            values.type
        )
    return values


def _frozen(value: Any) -> Any:
    """A nested Python value as something hashable that is equal where Spark's is."""
    if isinstance(value, dict):
        return tuple(_frozen(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def codes(values: pa.Array) -> Ints:
    """One number per value, equal where the values are; NULL is -1."""
    plain = _plain(values)
    if plain is not None:
        if pa.types.is_null(plain.type):
            return np.full(len(plain), -1, dtype=np.int64)
        indices = plain.dictionary_encode().indices
        result: Ints = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return result
    seen: dict[Any, int] = {}
    return np.array(
        [-1 if v is None else seen.setdefault(_frozen(v), len(seen)) for v in values.to_pylist()], dtype=np.int64
    )


def _compared(a: Any, b: Any) -> int:
    """Spark's order of nested values: by element, NULL first, NaN last."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, dict):
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        for x, y in zip(a, b, strict=False):
            order = _compared(x, y)
            if order:
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    if isinstance(a, float) and (a != a or b != b):
        return int(a != a) - int(b != b)
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def _by_value(a: tuple[Any, int], b: tuple[Any, int]) -> int:
    return _compared(a[0], b[0])


def ranks(values: pa.Array) -> Ints:
    """One number per value in Spark's order, equal where the values are; NULL is -1."""
    plain = _plain(values)
    if plain is None:
        distinct = codes(values)
        _, first = np.unique(distinct, return_index=True)
        samples = values.take(pa.array(first)).to_pylist()
        known = [(v, int(distinct[i])) for v, i in zip(samples, first, strict=True) if v is not None]
        known.sort(key=cmp_to_key(_by_value))
        nested = np.full(len(known) + 2, -1, dtype=np.int64)
        for i, (_, code) in enumerate(known):
            nested[code] = i
        return nested[distinct]
    if pa.types.is_null(plain.type):
        return np.full(len(plain), -1, dtype=np.int64)
    encoded = plain.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    ranked: Ints = rank[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
    return ranked


def codes_together(*arrays: pa.Array) -> list[Ints]:
    """Codes of several arrays of one type that can be compared with each other."""
    both = codes(pa.concat_arrays([a.cast(arrays[0].type) if a.type != arrays[0].type else a for a in arrays]))
    return list(np.split(both, np.cumsum([len(a) for a in arrays])[:-1]))


def any_by_row(rows: Ints, flags: Bools, size: int) -> Bools:
    found = np.zeros(size, dtype=np.bool_)
    found[rows[flags]] = True
    return found


# ------------------------------------------------------------------------------------------------- elements and places


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
        together = ranks(pa.concat_arrays([a, b.cast(a.type)]))
        left, right = together[: len(a)], together[len(a) :]
        result = _ORDERS[symbol](left, right)
        return pa.array(result) if symbol == "<=>" else pa.array(result, mask=(left < 0) | (right < 0))

    return kernel


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
        # Spark looks at the bounds first
        if not is_try and outside.any():
            row = int(np.argmax(outside))
            raise _index_error("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", int(at[row]), int(lists.lengths[row]))
        if zero.any():
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
    """array_min, array_max: NULL elements do not count; params: ("min" | "max",)."""
    largest = spec.params[0] == "max"

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        rank = ranks(lists.values)
        known = np.flatnonzero(rank >= 0)
        rows = lists.rows[known]
        order = np.lexsort((rank[known] if largest else -rank[known], rows))
        place = np.full(len(a), -1, dtype=np.int64)
        place[rows[order]] = known[order]  # the last of a row wins
        void = place < 0
        return lists.values.take(pa.array(np.where(void, 0, place), mask=void))

    return kernel


# ------------------------------------------------------------------------------------------------- cutting and ordering


@implementation("array_sorted")
def array_sorted(spec: UdfSpec) -> Kernel:
    """sort_array and array_sort; params: (descending, nulls_first)."""
    descending, nulls_first = spec.params

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        rank = ranks(lists.values)
        key = -rank if descending else rank
        key = np.where(rank < 0, -(2**62) if nulls_first else 2**62, key)
        order = np.lexsort((key, lists.rows))
        return built(lists.lengths, lists.values.take(pa.array(order)), lists.void, spec.returns.arrow())

    return kernel


@implementation("array_reversed")
def array_reversed(spec: UdfSpec) -> Kernel:
    """The elements from last to first."""

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        order = np.repeat(lists.starts + lists.lengths - 1, lists.lengths) - lists.places
        return built(lists.lengths, lists.values.take(pa.array(order)), lists.void, spec.returns.arrow())

    return kernel


@implementation("array_slice")
def array_slice(spec: UdfSpec) -> Kernel:
    """slice(array, start, length): start from 1, or from the end."""

    def kernel(a: pa.Array, start: pa.Array, length: pa.Array) -> pa.Array:
        lists, at, count = Lists(a), ints(start), ints(length)
        void = lists.void | nulls(start) | nulls(length)
        if ((at == 0) & ~void).any():
            raise RowError(
                "INVALID_PARAMETER_VALUE.START",
                "The value of parameter(s) `start` in `slice` is invalid: Expects a positive or a negative value for "
                "`start`, but got 0.",
            )
        if ((count < 0) & ~void).any():
            raise RowError(
                "INVALID_PARAMETER_VALUE.LENGTH",
                "The value of parameter(s) `length` in `slice` is invalid: Expects `length` greater than or equal to 0, but "
                f"got {int(count[np.argmax((count < 0) & ~void)])}.",
            )
        first = np.where(at > 0, at - 1, lists.lengths + at)
        if ((first + count > 2**31 - 1) & ~void & (first >= 0) & (first < lists.lengths)).any():
            # Spark's interpreter and its generated code disagree here
            raise RowError(
                "UNSUPPORTED_FEATURE", "slice with a `length` that reaches beyond 2147483647 is not supported."
            )
        outside = (first < 0) | (first >= lists.lengths) | void
        taken = np.where(outside, 0, np.minimum(count, lists.lengths - first))
        index = ranges(lists.starts + np.where(outside, 0, first), taken)
        return built(taken, lists.values.take(pa.array(index)), void, spec.returns.arrow())

    return kernel


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """starts[i], starts[i] + 1, … for lengths[i] numbers, one row after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    result: Ints = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return result


@implementation("array_compacted")
def array_compacted(spec: UdfSpec) -> Kernel:
    """Without NULL elements."""

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        return kept(lists, ~nulls(lists.values), lists.void, spec.returns.arrow())

    return kernel


@implementation("array_removed")
def array_removed(spec: UdfSpec) -> Kernel:
    """Without the elements that equal; NULL elements stay."""

    def kernel(a: pa.Array, value: pa.Array) -> pa.Array:
        lists = Lists(a)
        have, want = codes_together(lists.values, value)
        keep = (have != want[lists.rows]) | (have < 0)
        void = lists.void | nulls(value)
        return kept(lists, keep & ~void[lists.rows], void, spec.returns.arrow())

    return kernel


@implementation("array_deduplicated")
def array_deduplicated(spec: UdfSpec) -> Kernel:
    """array_distinct: first occurrences, one NULL."""

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        return kept(lists, first_marks(lists.rows, codes(lists.values)), lists.void, spec.returns.arrow())

    return kernel


def first_marks(rows: Ints, numbers: Ints) -> Bools:
    """Marks the first occurrence of every number in its row."""
    marks = np.zeros(len(rows), dtype=np.bool_)
    order = np.lexsort((np.arange(len(rows)), numbers, rows))
    if len(order):
        r, n = rows[order], numbers[order]
        fresh = np.ones(len(order), dtype=np.bool_)
        fresh[1:] = (r[1:] != r[:-1]) | (n[1:] != n[:-1])
        marks[order[fresh]] = True
    return marks


@implementation("array_set")
def array_set(spec: UdfSpec) -> Kernel:
    """array_union, array_intersect, array_except; params: (which,)."""
    which = spec.params[0]

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        if which == "union":
            joined = concatenated([a, b], spec.returns.arrow())
            lists = Lists(joined)
            return kept(lists, first_marks(lists.rows, codes(lists.values)), lists.void, spec.returns.arrow())
        left, right = Lists(a), Lists(b)
        have, other = codes_together(left.values, right.values)
        span = int(max(have.max(initial=0), other.max(initial=0))) + 2
        member = np.isin(left.rows * span + have + 1, right.rows * span + other + 1)
        void = left.void | right.void
        keep = first_marks(left.rows, have) & (member if which == "intersect" else ~member)
        return kept(left, keep & ~void[left.rows], void, spec.returns.arrow())

    return kernel


@implementation("arrays_overlap")
def arrays_overlap(spec: UdfSpec) -> Kernel:
    """Whether a non-NULL element is in both; NULL if unknown because of a NULL element."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        left, right = Lists(a), Lists(b)
        have, other = codes_together(left.values, right.values)
        span = int(max(have.max(initial=0), other.max(initial=0))) + 2
        member = np.isin(left.rows * span + have + 1, right.rows * span + other + 1) & (have >= 0)
        found = any_by_row(left.rows, member, len(a))
        unknown = any_by_row(left.rows, have < 0, len(a)) | any_by_row(right.rows, other < 0, len(a))
        unknown = unknown & (left.lengths > 0) & (right.lengths > 0) & ~found
        return with_nulls(found, left.void | right.void | unknown, pa.bool_())

    return kernel


# ------------------------------------------------------------------------------------------------------------- building


def concatenated(arrays: list[pa.Array], type: pa.DataType) -> pa.Array:
    """Lists joined row by row; NULL where any is."""
    lists = [Lists(a) for a in arrays]
    void = lists[0].void
    for other in lists[1:]:
        void = void | other.void
    values = pa.concat_arrays([x.values.cast(type.value_type) for x in lists])
    bases = np.cumsum([0, *(len(x.values) for x in lists)])[:-1]
    lengths = np.stack([np.where(void, 0, x.lengths) for x in lists], axis=1)
    starts = np.stack([x.starts + base for x, base in zip(lists, bases, strict=True)], axis=1)
    index = ranges(starts.reshape(-1), lengths.reshape(-1))
    return built(lengths.sum(axis=1), values.take(pa.array(index)), void, type)


@implementation("arrays_joined")
def arrays_joined(spec: UdfSpec) -> Kernel:
    """concat of arrays."""
    return lambda *arrays: concatenated(list(arrays), spec.returns.arrow())


def _singles(values: pa.Array) -> pa.Array:
    """Every value as a list of one."""
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)


@implementation("void_list")
def void_list(spec: UdfSpec) -> Kernel:
    """As many untyped NULLs as the argument says."""

    def kernel(count: pa.Array) -> pa.Array:
        lengths = ints(count)
        return built(lengths, pa.nulls(int(lengths.sum())), nulls(count), spec.returns.arrow())

    return kernel


@implementation("array_extended")
def array_extended(spec: UdfSpec) -> Kernel:
    """array_append, array_prepend; params: ("append" | "prepend",)."""
    append = spec.params[0] == "append"

    def kernel(a: pa.Array, value: pa.Array) -> pa.Array:
        single = _singles(value)
        return concatenated([a, single] if append else [single, a], spec.returns.arrow())

    return kernel


@implementation("array_inserted")
def array_inserted(spec: UdfSpec) -> Kernel:
    """array_insert(array, position, value): from 1 or from the end, padded with NULLs."""

    def kernel(a: pa.Array, position: pa.Array, value: pa.Array) -> pa.Array:
        lists, at = Lists(a), ints(position)
        void = lists.void | nulls(position)
        if ((at == 0) & ~void).any():
            raise RowError(
                "INVALID_INDEX_OF_ZERO",
                "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).",
            )
        size = lists.lengths
        # a negative position counts from the end of the result; beyond the start, NULLs follow the value
        before = np.where(at > 0, np.minimum(at - 1, size), np.maximum(size + at + 1, 0))
        padding = np.where(at > 0, np.maximum(at - 1 - size, 0), np.maximum(-at - size - 1, 0))
        if int(np.where(void, 0, padding).sum()) > MAX_ELEMENTS:
            raise RowError("RESOURCE_EXHAUSTED", "array_insert pads an array beyond the limit of elements.")
        front, back = np.where(at > 0, padding, 0), np.where(at > 0, 0, padding)
        null = len(lists.values) + len(value)
        pieces = pa.concat_arrays([lists.values, value.cast(lists.values.type), pa.nulls(1, lists.values.type)])
        own = len(lists.values) + np.arange(len(a))
        lengths = np.stack([before, front, np.ones_like(size), back, size - before], axis=1)
        lengths = np.where(void[:, None], 0, lengths)
        starts = np.stack([lists.starts, np.zeros_like(size), own, np.zeros_like(size), lists.starts + before], axis=1)
        index = ranges(starts.reshape(-1), lengths.reshape(-1))
        kinds = np.repeat(np.tile(np.arange(5), len(a)), lengths.reshape(-1))
        index = np.where((kinds == 1) | (kinds == 3), null, index)
        return built(lengths.sum(axis=1), pieces.take(pa.array(index)), void, spec.returns.arrow())

    return kernel


@implementation("array_repeated")
def array_repeated(spec: UdfSpec) -> Kernel:
    """array_repeat(value, count)."""

    def kernel(value: pa.Array, count: pa.Array) -> pa.Array:
        void = nulls(count)
        lengths = np.where(void, 0, np.maximum(ints(count), 0))
        if int(lengths.sum()) > MAX_ELEMENTS:
            raise RowError("RESOURCE_EXHAUSTED", f"array_repeat makes more than {MAX_ELEMENTS} elements in a batch.")
        index = np.repeat(np.arange(len(value)), lengths)
        return built(lengths, value.take(pa.array(index)), void, spec.returns.arrow())

    return kernel


@implementation("array_flattened")
def array_flattened(spec: UdfSpec) -> Kernel:
    """flatten: NULL if any inner array is."""

    def kernel(a: pa.Array) -> pa.Array:
        outer = Lists(a)
        inner = Lists(outer.values)
        rows = outer.rows
        void = outer.void | any_by_row(rows, inner.void, len(a))
        lengths = np.bincount(rows, weights=inner.lengths, minlength=len(a)).astype(np.int64)
        keep = ~np.repeat(void[rows], inner.lengths)
        return built(np.where(void, 0, lengths), inner.values.filter(pa.array(keep)), void, spec.returns.arrow())

    return kernel


@implementation("array_text")
def array_text(spec: UdfSpec) -> Kernel:
    """array_join(array of strings, separator[, text for NULL])."""

    def kernel(a: pa.Array, separator: pa.Array, *replacement: pa.Array) -> pa.Array:
        lists = Lists(a)
        void = lists.void | nulls(separator)
        if replacement:
            void = void | nulls(replacement[0])
            filler = pc.fill_null(replacement[0], "").take(pa.array(lists.rows))
            texts = built(lists.lengths, pc.coalesce(lists.values, filler), lists.void, a.type)
        else:
            texts = kept(lists, ~nulls(lists.values), lists.void, a.type)
        joined = pc.binary_join(texts, pc.fill_null(separator, ""))
        return pc.if_else(pa.array(void), pa.scalar(None, pa.string()), joined)

    return kernel


@implementation("arrays_zipped")
def arrays_zipped(spec: UdfSpec) -> Kernel:
    """arrays_zip: structs of the i-th elements, shorter arrays padded with NULLs."""
    return lambda *arrays: zipped(list(arrays), spec.returns.arrow())


def zipped(arrays: list[pa.Array], type: pa.DataType) -> pa.Array:
    """Lists side by side as a list of structs of `type`."""
    lists = [Lists(a) for a in arrays]
    void = lists[0].void
    for other in lists[1:]:
        void = void | other.void
    lengths = np.where(void, 0, np.max(np.stack([x.lengths for x in lists]), axis=0))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns = []
    for x in lists:
        missing = places >= x.lengths[rows]
        index = np.where(missing, 0, x.starts[rows] + places)
        columns.append(x.values.take(pa.array(index, mask=missing)))
    structs = pa.StructArray.from_arrays(columns, fields=list(type.value_type))
    return built(lengths, structs, void, type)


@implementation("array_indexed")
def array_indexed(spec: UdfSpec) -> Kernel:
    """Every element with its place from 0: ARRAY<STRUCT<x, i: INT>>, for lambdas of two parameters."""
    type_ = spec.returns.arrow()

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        places = pa.array(lists.places.astype(np.int32))
        structs = pa.StructArray.from_arrays([lists.values, places], fields=list(type_.value_type))
        return built(lists.lengths, structs, lists.void, type_)

    return kernel
