"""Arrays from values and from other arrays: joining, inserting, repeating, flattening, zipping; arrays as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import nulls
from gateway.engine.functions.lists import (
    MAX_ELEMENTS,
    Lists,
    any_by_row,
    as_type,
    built,
    concatenated,
    joined,
    kept,
    ranges,
    too_many,
)
from gateway.instants import ints

_MAX_BYTES = 1 << 31  # that arrays of one batch are repeated to


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
        padding = np.where(void, 0, padding)
        if int(padding.sum()) > MAX_ELEMENTS:
            raise too_many("array_insert", int((size + padding).max()) + 1, None)
        front, back = np.where(at > 0, padding, 0), np.where(at > 0, 0, padding)
        null = len(lists.values) + len(value)
        pieces = pa.concat_arrays([lists.values, as_type(value, lists.values.type), pa.nulls(1, lists.values.type)])
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
            raise too_many("array_repeat", int(lengths.max()))
        if len(value) and int(lengths.sum()) * (value.nbytes / len(value)) > _MAX_BYTES:
            raise RowError("RESOURCE_EXHAUSTED", "array_repeat makes more than 2 GiB in a batch.")
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
        text = joined(texts, pc.fill_null(separator, ""))
        return pc.if_else(pa.array(void), pa.scalar(None, pa.string()), text)

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
