"""Arrays to arrays of the same elements: ordering, cutting, removing, and arrays as sets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import nulls, with_nulls
from gateway.engine.functions.lists import (
    Lists,
    any_by_row,
    built,
    codes,
    codes_together,
    concatenated,
    first_marks,
    kept,
    one_zero,
    ranges,
    ranks,
)
from gateway.instants import ints


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
    """array_distinct: first occurrences, one NULL; as a set, it has one zero."""

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(one_zero(a))
        return kept(lists, first_marks(lists.rows, codes(lists.values)), lists.void, spec.returns.arrow())

    return kernel


@implementation("array_set")
def array_set(spec: UdfSpec) -> Kernel:
    """array_union, array_intersect, array_except; params: (which,)."""
    which = spec.params[0]

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        if which == "union":
            joined = one_zero(concatenated([a, b], spec.returns.arrow()))
            lists = Lists(joined)
            return kept(lists, first_marks(lists.rows, codes(lists.values)), lists.void, spec.returns.arrow())
        left, right = Lists(one_zero(a)), Lists(b)
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
