"""Rows of arrays and maps as lengths over one flat array of values, without Python per row.

Elements are compared through whole-number codes: `codes` keeps equality (NaN = NaN, -0.0 = 0.0, NULL is -1), `ranks` keeps
Spark's order as well.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.functions import MAX_TEXT_BYTES, RowError
from gateway.engine.functions.cast_numbers import Bools, nulls
from gateway.engine.functions.casts import list_parts, struct_children
from gateway.engine.functions.row_encoding import encoded
from gateway.instants import Ints

# A batch that grows beyond this is refused before memory is taken.
MAX_ELEMENTS = 100_000_000
_MAX_ARRAY = 2_147_483_632  # elements of one array of Spark


def too_many(function: str, longest: int, parameter: str | None = "count") -> RowError:
    """The error where arrays get too long: Spark's if one alone is too long for it (`longest` elements)."""
    if longest <= _MAX_ARRAY:
        return RowError("RESOURCE_EXHAUSTED", f"{function} makes more than {MAX_ELEMENTS} elements in a batch.")
    kind, why = "FUNCTION", f"unsuccessful try to create arrays in the function `{function}`"
    if parameter is not None:
        kind, why = "PARAMETER", f"the value of parameter(s) `{parameter}` in the function `{function}` is invalid"
    return RowError(
        f"COLLECTION_SIZE_LIMIT_EXCEEDED.{kind}",
        f"Can't create array with {longest} elements which exceeding the array size limit {_MAX_ARRAY}, {why}.",
    )


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


def joined(lists: pa.Array, separator: pa.Array | str) -> pa.Array:
    """Each list's texts with a separator between them. Raises ArrowCapacityError for more than an array of texts holds.

    Arrow's own kernel counts bytes in 32 bits and writes past its end.
    """
    texts = Lists(lists)
    is_text = isinstance(separator, str)
    width = len(separator.encode()) if is_text else pc.binary_length(pc.fill_null(separator, ""))
    between = int((np.maximum(texts.lengths - 1, 0) * np.asarray(width, dtype=np.int64)).sum())
    size = between + (pc.sum(pc.binary_length(texts.values).cast(pa.int64())).as_py() or 0)
    if size > MAX_TEXT_BYTES:
        raise pa.ArrowCapacityError(f"texts of {size} bytes")
    return pc.binary_join(lists, separator)


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


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """starts[i], starts[i] + 1, … for lengths[i] numbers, one row after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    result: Ints = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return result


def as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    """A cast, which loses the NULLs of lists of nothing else (pyarrow) where there is nothing to do."""
    return array if array.type.equals(type) else array.cast(type)


def concatenated(arrays: list[pa.Array], type: pa.DataType) -> pa.Array:
    """Lists joined row by row; NULL where any is."""
    lists = [Lists(a) for a in arrays]
    void = lists[0].void
    for other in lists[1:]:
        void = void | other.void
    values = pa.concat_arrays([as_type(x.values, type.value_type) for x in lists])
    bases = np.cumsum([0, *(len(x.values) for x in lists)])[:-1]
    lengths = np.stack([np.where(void, 0, x.lengths) for x in lists], axis=1)
    starts = np.stack([x.starts + base for x, base in zip(lists, bases, strict=True)], axis=1)
    index = ranges(starts.reshape(-1), lengths.reshape(-1))
    return built(lengths.sum(axis=1), values.take(pa.array(index)), void, type)


def _plain(values: pa.Array) -> pa.Array:
    """Values in a form that Arrow compares as Spark does."""
    if pa.types.is_nested(values.type):
        return encoded(values)
    if pa.types.is_floating(values.type):
        # one zero, one NaN
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), pc.add(values, 0.0)).cast(
            values.type
        )
    return values


def one_zero(values: pa.Array) -> pa.Array:
    """The values with 0.0 for every -0.0, at any depth."""
    t = values.type
    if pa.types.is_floating(t):
        return pc.add(values, pa.scalar(0.0, t))
    if not _has_floats(t):
        return values
    mask = values.is_null() if values.null_count else None
    if pa.types.is_struct(t):
        return pa.StructArray.from_arrays([one_zero(c) for c in struct_children(values)], fields=list(t), mask=mask)
    lists = Lists(values)
    return built(lists.lengths, one_zero(lists.values), lists.void, t)


def _has_floats(t: pa.DataType) -> bool:
    if pa.types.is_struct(t):
        return any(_has_floats(f.type) for f in t)
    if pa.types.is_list(t):
        return _has_floats(t.value_type)
    return bool(pa.types.is_floating(t))


def codes(values: pa.Array) -> Ints:
    """One number per value, equal where the values are; NULL is -1."""
    plain = _plain(values)
    if pa.types.is_null(plain.type):
        return np.full(len(plain), -1, dtype=np.int64)
    indices = plain.dictionary_encode().indices
    result: Ints = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return result


def ranks(values: pa.Array) -> Ints:
    """One number per value in Spark's order, equal where the values are; NULL is -1."""
    plain = _plain(values)
    if pa.types.is_null(plain.type):
        return np.full(len(plain), -1, dtype=np.int64)
    distinct = plain.dictionary_encode()
    order = pc.array_sort_indices(distinct.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    ranked: Ints = rank[pc.fill_null(distinct.indices, -1).to_numpy(zero_copy_only=False)]
    return ranked


def codes_together(*arrays: pa.Array) -> list[Ints]:
    """Codes of several arrays of one type that can be compared with each other."""
    both = codes(pa.concat_arrays([as_type(a, arrays[0].type) for a in arrays]))
    return list(np.split(both, np.cumsum([len(a) for a in arrays])[:-1]))


def any_by_row(rows: Ints, flags: Bools, size: int) -> Bools:
    found = np.zeros(size, dtype=np.bool_)
    found[rows[flags]] = True
    return found


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
