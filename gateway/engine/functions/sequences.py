"""sequence: arithmetic over numbers, and over dates and timestamps by intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import Bools, nulls
from gateway.engine.functions.lists import MAX_ELEMENTS, built, too_many
from gateway.instants import MICROS_PER_DAY, UTC, Ints, add_months, ints, known_zone, to_instant, to_local
from gateway.sqltypes import DATE, TIMESTAMP, ArrayType

_SAFE_MICROS = 2**63 - 2**53  # 285 years before the last timestamp


def _sequence_error(start: Any, stop: Any, step: Any) -> RowError:
    return RowError(
        "INVALID_PARAMETER_VALUE.SEQUENCE_BOUNDARIES",
        f"The value of parameter(s) in `sequence` is invalid: Illegal sequence boundaries: {start} to {stop} by {step}.",
    )


def _too_many(start: Ints, stop: Ints, step: Ints, void: Bools) -> RowError:
    spans = np.abs(stop.astype(np.float64) - start) / np.maximum(np.abs(step.astype(np.float64)), 1)
    row = int(np.argmax(np.where(void, 0, spans)))
    first, last, by = int(start[row]), int(stop[row]), abs(int(step[row])) or 1  # exact: beyond 64 bits
    return too_many("sequence", abs(last - first) // by + 1)


def stepped(start: Ints, stop: Ints, step: Ints, void: Bools) -> tuple[Ints, Ints, Ints]:
    """Lengths, row numbers and places of arithmetic sequences; raises on a step that never arrives."""
    bad = ((step == 0) & (start != stop) | (step > 0) & (start > stop) | (step < 0) & (start < stop)) & ~void
    if bad.any():
        row = int(np.argmax(bad))
        raise _sequence_error(start[row], stop[row], step[row])
    size = np.where(step == 0, 1, step)
    lengths = np.where(void, 0, (stop - start) // size + 1)
    if (lengths < 0).any() or int(lengths.astype(np.float64).sum()) > MAX_ELEMENTS:
        raise _too_many(start, stop, step, void)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return lengths, rows, places


@implementation("sequence_integers")
def sequence_integers(spec: UdfSpec) -> Kernel:
    """sequence(start, stop[, step]) of whole numbers."""
    assert isinstance(spec.returns, ArrayType)
    type_, element = spec.returns.arrow(), spec.returns.element.arrow()

    def kernel(start: pa.Array, stop: pa.Array, *step: pa.Array) -> pa.Array:
        first, last = ints(start), ints(stop)
        void = nulls(start) | nulls(stop)
        by = np.where(first <= last, 1, -1)
        if step:
            by, void = ints(step[0]), void | nulls(step[0])
        if ((np.abs(first.astype(np.float64) - last) >= 2.0**62) & ~void).any():
            raise _too_many(first, last, by, void)
        first, last, by = (np.where(void, 0, x) for x in (first, last, by))
        lengths, rows, places = stepped(first, last, by, void)
        return built(lengths, pa.array(first[rows] + by[rows] * places).cast(element), void, type_)

    return kernel


@implementation("sequence_moments")
def sequence_moments(spec: UdfSpec) -> Kernel:
    """sequence(start, stop, step) of DATE, TIMESTAMP, TIMESTAMP_NTZ by an interval; params: (zone,).

    Months and whole days move the wall clock from the start, i * step each time, as Spark's TemporalSequence does.
    """
    assert isinstance(spec.returns, ArrayType)
    type_, element = spec.returns.arrow(), spec.returns.element
    is_date, by_months = element == DATE, spec.args[2].arrow() == pa.int32()
    zone = known_zone(spec.params[0]) if element == TIMESTAMP else UTC

    def kernel(start: pa.Array, stop: pa.Array, step: pa.Array) -> pa.Array:
        void = nulls(start) | nulls(stop) | nulls(step)
        first, last, by = (np.where(void, 0, ints(x)) for x in (start, stop, step))
        scale = MICROS_PER_DAY if is_date else 1
        if max(np.abs(x.astype(np.float64)).max(initial=0) for x in (first, last)) * scale > _SAFE_MICROS:
            raise RowError("UNSUPPORTED_FEATURE", "sequence near the first or last timestamp is not supported.")
        estimate = by * 28 * MICROS_PER_DAY if by_months else by
        bad = ((by == 0) & (first != last) | (by > 0) & (first > last) | (by < 0) & (first < last)) & ~void
        if is_date and ((np.abs(by) < (1 if by_months else MICROS_PER_DAY)) & ~void).any():
            of = "year to month" if by_months else "day to second"
            raise RowError(
                "_LEGACY_ERROR_TEMP_3242",
                f"sequence step must be an interval {of} of day granularity if start and end values are dates",
            )
        if bad.any():
            row = int(np.argmax(bad))
            # As numbers, as Spark has them: Python's dates end in 9999.
            raise _sequence_error(first[row], last[row], by[row])
        span = np.abs(last.astype(np.float64) - first) * scale / np.maximum(np.abs(estimate), 1)
        if span.sum() > MAX_ELEMENTS:
            raise _too_many(first * scale, last * scale, estimate, void)
        lengths = np.where(void, 0, np.where(by == 0, 0, span.astype(np.int64)) + 2)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        start_local = to_local(first * scale, zone)
        local, offsets = start_local[rows], (start_local - first * scale)[rows]
        days, rest = local // MICROS_PER_DAY, local % MICROS_PER_DAY
        exact = np.zeros_like(days)
        if by_months:
            days = add_months(days, by[rows] * places)
        else:
            whole = np.sign(by) * (np.abs(by) // MICROS_PER_DAY)
            days = days + whole[rows] * places
            exact = (by - whole * MICROS_PER_DAY)[rows] * places
        micros = to_instant(days * MICROS_PER_DAY + rest, zone, offsets) + exact
        values = micros // scale
        # Spark stops at one microsecond behind the end, and backwards takes that one in.
        end = last[rows] * scale
        keep = np.where(by[rows] >= 0, micros <= end, micros >= end - 1)
        keep &= (by[rows] != 0) | (places == 0)
        counts = np.bincount(rows[keep], minlength=len(lengths)).astype(np.int64)
        numbers = pa.array(values[keep])
        moments = numbers.cast(pa.int32()).cast(pa.date32()) if is_date else numbers.cast(element.arrow())
        return built(counts, moments, void, type_)

    return kernel
