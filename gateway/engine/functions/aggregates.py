"""The scalar halves of aggregates: the engine collects (sum, count, array_agg), these finish per group.

List kernels work on the offsets of a ListArray with numpy (sort inside segments, `reduceat`), never per group in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.arithmetic import decimals_of_words, unscaled_words
from gateway.engine.functions.casts import struct_children
from gateway.engine.functions.distinct import vectorised
from gateway.engine.functions.hashing import bucket_hashes
from gateway.engine.functions.intervals import interval_overflow
from gateway.engine.functions.lists import Lists, as_type, built, joined, one_zero, ranks
from gateway.engine.functions.row_encoding import Vector, java_order, spark_order
from gateway.floats import float_text
from gateway.sqltypes import MAX_PRECISION, DecimalType, IntervalType

_WIDE = Context(prec=100)
_WORD = 1 << 63


@implementation("float_order")
def float_order(spec: UdfSpec) -> Kernel:
    """FLOAT to INT, DOUBLE to BIGINT, in Spark's order of floats; params: nothing, or that zeros keep their signs."""
    returns = spec.returns.arrow()
    order = java_order if spec.params else spark_order

    def kernel(value: pa.Array) -> pa.Array:
        nulls = value.is_null().to_numpy(zero_copy_only=False)
        return pa.array(order(pc.fill_null(value, 0.0).to_numpy(zero_copy_only=False)), returns, mask=nulls)

    return kernel


@implementation("float_of_order")
def float_of_order(spec: UdfSpec) -> Kernel:
    """The float that `float_order` made an integer of."""
    returns = spec.returns.arrow()

    def kernel(key: pa.Array) -> pa.Array:
        nulls = key.is_null().to_numpy(zero_copy_only=False)
        bits = pc.fill_null(key, 0).to_numpy(zero_copy_only=False)
        bits = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits).astype(bits.dtype)
        return pa.array(bits.view(returns.to_pandas_dtype()), returns, mask=nulls)

    return kernel


def _overflow(lenient: bool, message: str) -> None:
    if not lenient:
        raise RowError("ARITHMETIC_OVERFLOW", message)


@implementation("integer_total")
def integer_total(spec: UdfSpec) -> Kernel:
    """A sum computed in DECIMAL(30,0) as BIGINT (or an interval); params: whether overflow is NULL."""
    (lenient,) = spec.params
    returns = spec.returns.arrow()
    low, high = -(2 ** (returns.bit_width - 1)), 2 ** (returns.bit_width - 1) - 1
    is_interval = isinstance(spec.returns, IntervalType)

    def kernel(total: pa.Array) -> pa.Array:
        bounds = [pa.scalar(Decimal(b), total.type) for b in (low, high)]
        inside = pc.and_(pc.greater_equal(total, bounds[0]), pc.less_equal(total, bounds[1]))
        if pc.any(pc.invert(inside)).as_py():
            if is_interval and not lenient:
                raise interval_overflow("try_add")
            _overflow(lenient, "Overflow in sum. Use 'try_sum' to tolerate overflow and return NULL instead.")
            total = pc.if_else(inside, total, pa.scalar(None, total.type))
        return total.cast(pa.decimal128(30, 0)).cast(pa.int64()).cast(returns)

    return kernel


@implementation("decimal_total")
def decimal_total(spec: UdfSpec) -> Kernel:
    """A DECIMAL sum checked against its precision with a DOUBLE sum beside it (128 bits may wrap beyond 1.7e38).

    Params: whether overflow is NULL, and whether it is a window's, which Spark only looks at once it has its sum.
    """
    lenient, over = spec.params
    target = spec.returns
    assert isinstance(target, DecimalType)
    limit = 10**target.precision
    rough = 1.5 * 10.0 ** (38 - target.scale)

    def all_fit(total: pa.Array, estimate: pa.Array) -> bool:
        """Whether it is seen at once that no sum is too large."""
        found = unscaled_words(total)
        sizes = pc.fill_null(estimate, 0.0).to_numpy(zero_copy_only=False)
        return found is not None and _most(found[0]) < limit and bool((np.abs(sizes) <= rough).all())

    def kernel(total: pa.Array, estimate: pa.Array) -> pa.Array:
        if all_fit(total, estimate):
            return total
        units = [None if v is None else int(v.scaleb(target.scale, context=_WIDE)) for v in total.to_pylist()]
        sizes = estimate.to_pylist()
        wrong = [
            u is not None and (abs(u) >= limit or abs(e or 0.0) > rough) for u, e in zip(units, sizes, strict=True)
        ]
        if any(wrong):
            if over and not lenient:
                text = f"The sum cannot be represented as {target.sql}. Use 'try_sum' to tolerate it and return NULL instead."
                raise RowError("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", text)
            _overflow(
                lenient, "Overflow in sum of decimals. Use 'try_sum' to tolerate overflow and return NULL instead."
            )
            total = pc.if_else(pa.array(wrong), pa.scalar(None, total.type), total)
        return total

    return kernel


def _most(values: Vector) -> int:
    """The largest absolute value."""
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def _half_up(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_WIDE)


@implementation("decimal_mean")
def decimal_mean(spec: UdfSpec) -> Kernel:
    """sum / count as DECIMAL: Spark divides to 38 digits after the point and then cuts them, HALF_UP both times.

    Params: whether overflow is NULL.
    """
    (lenient,) = spec.params
    target = spec.returns
    assert isinstance(target, DecimalType)
    returns = target.arrow()
    limit = Decimal(10) ** (target.precision - target.scale)

    def mean(total: Decimal | None, count: int) -> Decimal | None:
        if total is None or not count:
            return None
        value = _half_up(_half_up(_WIDE.divide(total, Decimal(count)), MAX_PRECISION), target.scale)
        if abs(value) < limit:
            return value
        if lenient:
            return None
        raise RowError("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", f"{value} cannot be represented as {target.sql}.")

    def kernel(total: pa.Array, count: pa.Array) -> pa.Array:
        found = _word_means(total, count, target)
        if found is not None:
            return found
        pairs = zip(total.to_pylist(), count.to_pylist(), strict=True)
        return pa.array([mean(t, n) for t, n in pairs], returns)

    return kernel


def _word_means(total: pa.Array, count: pa.Array, target: DecimalType) -> pa.Array | None:
    """The means where all that they are made of fits into words of 64 bits, else None.

    They are rounded once: the first rounding, to 38 digits, moves no quotient to a half that was none, for the divisor is
    smaller than 10 to the digits between.
    """
    found = unscaled_words(total)
    shift = target.scale - total.type.scale
    if found is None or shift < 0 or target.scale > MAX_PRECISION - 19:
        return None
    units, valid = found
    counts = pc.fill_null(count, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    valid = valid & (counts != 0)
    if 2 * _most(units) * 10**shift + _most(counts) >= _WORD:
        return None
    sizes, counts = np.abs(units) * 10**shift, np.where(valid, counts, 1)
    means = (2 * sizes + counts) // (2 * counts)
    if _most(means) >= 10**target.precision:
        return None
    return decimals_of_words(np.where(valid, np.where(units < 0, -means, means), 0), valid, target.arrow())


@implementation("integer_mean")
def integer_mean(spec: UdfSpec) -> Kernel:
    """sum / count of intervals, HALF_UP."""
    returns = spec.returns.arrow()

    def kernel(total: pa.Array, count: pa.Array) -> pa.Array:
        pairs = zip(total.to_pylist(), count.to_pylist(), strict=True)
        means = [None if t is None or not n else int(_half_up(_WIDE.divide(t, Decimal(n)), 0)) for t, n in pairs]
        return pa.array(means, pa.int64()).cast(returns)

    return kernel


@implementation("correlation")
def correlation(spec: UdfSpec) -> Kernel:
    """corr checked as ANSI Spark does: with two or more pairs a side without variance is DIVIDE_BY_ZERO."""

    def kernel(value: pa.Array, pairs: pa.Array, spread: pa.Array) -> pa.Array:
        flat = pc.and_(pc.greater(pairs, 1), pc.equal(spread, 0.0))
        if pc.any(flat).as_py():
            raise RowError(
                "DIVIDE_BY_ZERO",
                "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.",
            )
        known = pc.fill_null(value, float("nan"))  # NULL here only because of a NaN or an infinity
        return pc.if_else(pc.greater(pairs, 1), known, pa.scalar(None, pa.float64()))

    return kernel


@implementation("list_or_empty")
def list_or_empty(spec: UdfSpec) -> Kernel:
    """A collected list, [] for a group without values."""
    returns = spec.returns.arrow()
    empty = pa.array([[]], returns)[0]

    def kernel(value: pa.Array) -> pa.Array:
        if not value.null_count:
            return value
        return pa.array([empty if not v.is_valid else v for v in value], returns) if len(value) < 64 else _filled(value)

    return kernel


def _filled(value: pa.ListArray) -> pa.ListArray:
    """NULL lists as empty ones, by offsets."""
    starts, values = _segments(value)
    offsets = pa.array(np.append(starts[:, 0], starts[-1, 1]) if len(starts) else [0], pa.int32())
    return pa.ListArray.from_arrays(offsets, values, type=value.type)


def _segments(value: pa.ListArray) -> tuple[Vector, pa.Array]:
    """(start, end) per row into the flattened values; NULL rows are empty."""
    lengths = pc.fill_null(pc.list_value_length(value), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths)
    return np.stack([ends - lengths, ends], axis=1), value.flatten()


def _sorted_groups(value: pa.ListArray) -> tuple[Vector, Vector, Vector]:
    """Float64 values sorted inside each group, with each group's start and size."""
    bounds, flat = _segments(value)
    numbers = flat.cast(pa.float64()).to_numpy(zero_copy_only=False)
    sizes = bounds[:, 1] - bounds[:, 0]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((java_order(numbers), groups))
    return numbers[order], bounds[:, 0], sizes


@implementation("list_percentile")
def list_percentile(spec: UdfSpec) -> Kernel:
    """percentile, median, percentile_cont / _disc of collected doubles.

    Params: the percentages (a tuple), whether the result is an array, whether discrete, whether sorted descending.
    """
    percentages, is_array, discrete, descending = spec.params
    returns = spec.returns.arrow()

    def one(numbers: Vector, starts: Vector, sizes: Vector, share: float) -> Vector:
        last = np.maximum(sizes - 1, 0)
        if discrete:
            rank = np.clip(np.ceil(sizes * share).astype(np.int64) - 1, 0, last)
            return _picked(numbers, starts, sizes, last - rank if descending else rank)
        place = last * share
        low, high = np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64)
        a = _picked(numbers, starts, sizes, last - low if descending else low)
        b = _picked(numbers, starts, sizes, last - high if descending else high)
        with np.errstate(all="ignore"):
            mixed = (high - place) * a + (place - low) * b
        return np.where((low == high) | (a == b), a, mixed)

    def kernel(value: pa.Array) -> pa.Array:
        numbers, starts, sizes = _sorted_groups(value)
        columns = [one(numbers, starts, sizes, share) for share in percentages]
        if not is_array:
            return pa.array(columns[0], returns, mask=sizes == 0)
        return _rows_of_lists(pa.array(np.stack(columns, axis=1).ravel()), len(percentages), sizes == 0, returns)

    return kernel


def _picked(numbers: Vector, starts: Vector, sizes: Vector, index: Vector) -> Vector:
    if not len(numbers):
        return np.zeros(len(starts))
    return numbers[np.where(sizes > 0, starts + index, 0)]


def _rows_of_lists(values: pa.Array, width: int, nulls: Vector, type_: pa.DataType) -> pa.Array:
    offsets = pa.array(np.arange(len(nulls) + 1) * width, pa.int32())
    lists = pa.ListArray.from_arrays(offsets, values, type=type_)
    return pc.if_else(pa.array(~nulls), lists, pa.scalar(None, type_)) if nulls.any() else lists


#: Digits of a decimal that a double always keeps.
_EXACT_DIGITS = 15


def _as_double(value: Decimal, type_: pa.Decimal128Type) -> Decimal:
    """The decimal that a double of it prints, which the type may not hold: Spark shows one that is none of its type."""
    rough = _half_up(Decimal(float_text(float(value), 53)), type_.scale)
    if abs(rough) >= Decimal(10) ** (type_.precision - type_.scale):
        raise RowError(
            "UNSUPPORTED_FEATURE", f"percentile_approx of {value}, which rounds to {rough}, is not supported."
        )
    return rough


@implementation("list_quantile")
def list_quantile(spec: UdfSpec) -> Kernel:
    """percentile_approx: the element of rank ceil(p * n), in the values' own type.

    That is what Spark's sketch answers while a group is not larger than the accuracy; beyond it is within the promised
    error, but a coarse accuracy is refused there. Params: percentages, is array, accuracy.
    """
    percentages, is_array, accuracy = spec.params
    returns = spec.returns.arrow()

    def kernel(value: pa.Array) -> pa.Array:
        bounds, flat = _segments(value)
        if pa.types.is_int64(flat.type) or pa.types.is_timestamp(flat.type):  # Spark's sketch holds doubles
            units = flat.cast(pa.int64()).to_numpy(zero_copy_only=False)
            rough = np.minimum(units.astype(np.float64), 9223372036854774784.0).astype(np.int64)
            rough = np.where(units.astype(np.float64) >= 2.0**63, np.iinfo(np.int64).max, rough)
            flat = pa.array(rough, pa.int64()).cast(flat.type)
        elif pa.types.is_decimal(flat.type) and flat.type.precision > _EXACT_DIGITS:
            flat = pa.array([None if v is None else _as_double(v, flat.type) for v in flat.to_pylist()], flat.type)
        sizes = bounds[:, 1] - bounds[:, 0]
        if accuracy < 1000 and len(sizes) and sizes.max() > accuracy:
            raise RowError(
                "UNSUPPORTED_FEATURE",
                f"percentile_approx with an accuracy of {accuracy} over a group of {sizes.max()} values is not supported.",
            )
        groups = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((_ranks(flat, java_order), groups))
        least = _kept_from(flat, bounds, order)
        picks = []
        for share in percentages:
            rank = np.clip(np.ceil(sizes * share).astype(np.int64) - 1, least, np.maximum(sizes - 1, 0))
            at = np.where(sizes > 0, bounds[:, 0] + rank, 0)
            picks.append(order[at] if len(order) else np.zeros(len(at), dtype=np.int64))
        taken = [
            flat.take(pa.array(p, mask=sizes == 0)) if len(flat) else pa.nulls(len(sizes), flat.type) for p in picks
        ]
        if not is_array:
            return as_type(taken[0], returns)
        joined = pa.concat_arrays(taken).take(
            pa.array(np.arange(len(taken) * len(sizes)).reshape(len(taken), -1).T.ravel())
        )
        return _rows_of_lists(joined, len(taken), sizes == 0, returns)

    return kernel


def _kept_from(values: pa.Array, bounds: Vector, order: Vector) -> Vector:
    """The least rank of each group: 1 where one number meets NaN alone, which Spark's sketch then loses, else 0."""
    least = np.zeros(len(bounds), dtype=np.int64)
    several = np.flatnonzero(bounds[:, 1] - bounds[:, 0] > 1)
    if pa.types.is_floating(values.type) and len(several):
        numbers = values.to_numpy(zero_copy_only=False)[order]
        first = bounds[several, 0]
        least[several] = ~np.isnan(numbers[first]) & np.isnan(numbers[first + 1])
    return least


def _ranks(values: pa.Array, order: Callable[[Vector], Vector] = spark_order) -> Vector:
    """Sort keys of any primitive values, of floats by `order`."""
    if pa.types.is_floating(values.type):
        return np.asarray(order(values.to_numpy(zero_copy_only=False)))
    if pa.types.is_integer(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False))


@implementation("list_in_order")
def list_in_order(spec: UdfSpec) -> Kernel:
    """The values of collected pairs (key, value), by their keys."""
    returns = spec.returns.arrow()

    def kernel(pairs: pa.Array) -> pa.Array:
        lists = Lists(pairs)
        keys, values = struct_children(lists.values)
        order = np.lexsort((ranks(keys), lists.rows))
        return built(lists.lengths, values.take(pa.array(order)), lists.void, returns)

    return kernel


@implementation("list_join")
def list_join(spec: UdfSpec) -> Kernel:
    """The texts of a list behind each other; NULL without any. Params: the separator."""
    (separator,) = spec.params
    return lambda texts: pc.if_else(pc.greater(pc.list_value_length(texts), 0), joined(texts, separator), None)


@implementation("list_join_distinct")
def list_join_distinct(spec: UdfSpec) -> Kernel:
    """listagg(DISTINCT x): each value once, where first seen; NULL without values. Params: the separator."""
    (separator,) = spec.params

    def kernel(value: pa.Array) -> pa.Array:
        rows = value.to_pylist()
        return pa.array([separator.join(dict.fromkeys(row)) if row else None for row in rows], pa.string())

    return kernel


@implementation("list_mode")
def list_mode(spec: UdfSpec) -> Kernel:
    """The most frequent value per list; ties: params "low", "high" or "any" (Spark's: the first in its hash map)."""
    (ties,) = spec.params
    returns = spec.returns.arrow()

    def kernel(value: pa.Array) -> pa.Array:
        bounds, flat = _segments(value)
        flat = one_zero(flat)
        sizes = bounds[:, 1] - bounds[:, 0]
        if not len(flat):
            return pa.nulls(len(sizes), returns)
        groups = np.repeat(np.arange(len(sizes)), sizes)
        keys = (
            _ranks(flat) if not pa.types.is_boolean(flat.type) else flat.cast(pa.int8()).to_numpy(zero_copy_only=False)
        )
        codes = np.unique(keys, return_inverse=True)[1].reshape(-1)
        pairs, first, counts = np.unique(groups * (codes.max() + 1) + codes, return_index=True, return_counts=True)
        group = pairs // (codes.max() + 1)
        code = pairs % (codes.max() + 1)
        tie = {"any": first, "low": code, "high": -code}[ties]
        if ties == "any" and (hashes := bucket_hashes(flat.take(pa.array(first)))) is not None:
            order = np.lexsort((first, hashes & (_map_capacities(group) - 1), -counts, group))
        else:
            order = np.lexsort((tie, -counts, group))
        winners = order[np.unique(group[order], return_index=True)[1]]
        at = np.zeros(len(sizes), dtype=np.int64)
        at[group[winners]] = first[winners]
        return as_type(flat.take(pa.array(at, mask=sizes == 0)), returns)

    return kernel


def _map_capacities(group: Vector) -> Vector:
    """Per entry: the capacity of an OpenHashMap with as many keys as its group has entries; from 64, at most 70 % full."""
    sizes = np.bincount(group)
    capacities = np.full(len(sizes), 64, dtype=np.uint32)
    while (full := sizes > (0.7 * capacities).astype(np.int64)).any():
        capacities[full] *= 2
    return capacities[group]


def _moments(value: pa.ListArray) -> tuple[Vector, Vector, Vector, Vector]:
    """Per list: size and the sums of the second, third and fourth powers of the distances from its mean."""
    bounds, flat = _segments(value)
    sizes = bounds[:, 1] - bounds[:, 0]
    numbers = flat.cast(pa.float64()).to_numpy(zero_copy_only=False)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    with np.errstate(all="ignore"):
        means = np.bincount(groups, numbers, len(sizes)) / sizes
        if len(numbers):  # that of equal values is the value, not what their sum is rounded to
            firsts = numbers[np.minimum(bounds[:, 0], len(numbers) - 1)]
            means = np.where(np.bincount(groups, numbers != firsts[groups], len(sizes)) == 0, firsts, means)
        away = numbers - means[groups]
        m2, m3, m4 = (np.bincount(groups, away**k, len(sizes)) for k in (2, 3, 4))
        # Spark adds all that to a part of no values, whose share is 0, or NaN where means are too large for their powers
        step = means / sizes
        m4 = m4 + means * step**3 * 0.0 + 6.0 * step * step * (0.0 * m2) + 4.0 * step * (0.0 * m3)
        m3 = m3 + means * step**2 * 0.0 + 3.0 * step * (0.0 * m2)
        m2 = m2 + means * step * 0.0
    return sizes, m2, m3, m4


def _moment(name: str, function: Callable[..., Vector], least: int) -> None:
    """Registers a statistic of (n, m2, m3, m4); NULL for lists shorter than `least`, NULL where it divides by m2 = 0."""

    def kernel(value: pa.Array) -> pa.Array:
        n, m2, m3, m4 = _moments(value)
        with np.errstate(all="ignore"):
            result = function(n, m2, m3, m4)
        flat = (m2 == 0) if name in ("list_skewness", "list_kurtosis") else np.zeros(len(n), dtype=bool)
        return pa.array(result, pa.float64(), mask=(n < least) | flat)

    vectorised(name)(kernel)


_moment("list_var_pop", lambda n, m2, m3, m4: m2 / n, 1)
_moment("list_var_samp", lambda n, m2, m3, m4: m2 / (n - 1), 2)
_moment("list_stddev_pop", lambda n, m2, m3, m4: np.sqrt(m2 / n), 1)
_moment("list_stddev_samp", lambda n, m2, m3, m4: np.sqrt(m2 / (n - 1)), 2)
_moment("list_skewness", lambda n, m2, m3, m4: np.sqrt(n) * m3 / np.sqrt(m2**3), 1)
_moment("list_kurtosis", lambda n, m2, m3, m4: n * m4 / (m2 * m2) - 3.0, 1)
