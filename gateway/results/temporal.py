"""Dates, timestamps and ANSI intervals as text, by digit tables: no kernel per part, no per-row Python.

Rows of equal width are written into one numpy record array, whose bytes are then the data buffer of an Arrow string array.
Forms were checked against Spark 4.2: years beyond 9999 get a sign (``+10000-01-01``), fractions lose their trailing zeros.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.results.zones import wall_clock
from gateway.sqltypes import DAY_TIME_UNITS, IntervalType

Ints = npt.NDArray[np.int64]

_FIRST_DAY, _LAST_DAY = -719528, 2932896  # 0000-01-01 and 9999-12-31: four-digit years
_MICROS_PER_DAY = 86_400_000_000
_MICROS_PER = {"day": _MICROS_PER_DAY, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def fixed_width(rows: npt.NDArray[np.void] | npt.NDArray[np.bytes_]) -> pa.StringArray:
    """A string array whose rows are the items of `rows`, each `itemsize` ASCII bytes."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(rows.dtype.itemsize)
    return pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows)))


@lru_cache(maxsize=8)
def _digits(count: int, width: int) -> npt.NDArray[np.bytes_]:
    """Texts of 0 … count-1, zero-padded to `width`."""
    return np.char.zfill(np.arange(count).astype(f"S{width}"), width)


@lru_cache(maxsize=1)
def _clock_texts() -> npt.NDArray[np.bytes_]:
    """``HH:MM:SS`` of every second of a day."""
    out = np.empty(86400, dtype=[("h", "S2"), ("c", "S1"), ("m", "S2"), ("d", "S1"), ("s", "S2")])
    second = np.arange(86400)
    pairs = _digits(100, 2)
    out["h"], out["m"], out["s"] = pairs[second // 3600], pairs[second // 60 % 60], pairs[second % 60]
    out["c"] = out["d"] = b":"
    return out.view("S8")


@lru_cache(maxsize=1)
def _fraction_texts() -> pa.StringArray:
    """``.ffffff`` without trailing zeros of every microsecond of a second; empty for 0."""
    digits = fixed_width(_digits(1_000_000, 6))
    return pc.utf8_rtrim(pc.utf8_rtrim(pc.binary_join_element_wise(".", digits, ""), "0"), ".")


def _civil(days: Ints) -> npt.NDArray[np.bytes_]:
    """``YYYY-MM-DD`` of days since 1970-01-01, years 0 … 9999."""
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    month_number = months.astype(np.int64) + 1970 * 12
    out = np.empty(len(days), dtype=[("y", "S4"), ("a", "S1"), ("m", "S2"), ("b", "S1"), ("d", "S2")])
    out["y"] = _digits(10000, 4)[month_number // 12]
    out["m"] = _digits(100, 2)[month_number % 12 + 1]
    out["d"] = _digits(100, 2)[(dates - months.astype("M8[D]")).astype(np.int64) + 1]
    out["a"] = out["b"] = b"-"
    return out.view("S10")


def _date_rows(days: Ints) -> npt.NDArray[np.bytes_] | None:
    """`_civil` through a table of the days that occur when they lie close together; None if a year has not four digits."""
    if not len(days):
        return np.empty(0, "S10")
    first, last = int(days.min()), int(days.max())
    if first < _FIRST_DAY or last > _LAST_DAY:
        return None
    if last - first < len(days):
        return _civil(np.arange(first, last + 1))[days - first]
    return _civil(days)


def _long_date_text(days: Ints) -> pa.StringArray:
    """Dates of any year: sign and at least four digits."""
    months = days.astype("M8[D]").astype("M8[M]")
    month_number = months.astype(np.int64) + 1970 * 12
    year = month_number // 12
    digits = pc.utf8_lpad(pa.array(np.abs(year)).cast(pa.string()), 4, "0")
    sign = pc.if_else(pa.array(year < 0), "-", pc.if_else(pa.array(year > 9999), "+", ""))
    day = (days.astype("M8[D]") - months.astype("M8[D]")).astype(np.int64) + 1
    pairs = _digits(100, 2)
    return pc.binary_join_element_wise(
        sign, digits, "-", fixed_width(pairs[month_number % 12 + 1]), "-", fixed_width(pairs[day]), ""
    )


def date_text(days: Ints) -> pa.StringArray:
    """``YYYY-MM-DD`` of days since 1970-01-01."""
    rows = _date_rows(days)
    return _long_date_text(days) if rows is None else fixed_width(rows)


def timestamp_text(micros: Ints, time_zone: str | None) -> pa.StringArray:
    """``YYYY-MM-DD HH:MM:SS[.ffffff]`` of microseconds since the epoch; `time_zone` None for TIMESTAMP_NTZ."""
    seconds, fraction = np.divmod(micros, 1_000_000) if time_zone is None else wall_clock(micros, time_zone)
    days, clock = np.divmod(seconds, 86400)
    rows = _date_rows(days)
    if rows is None:
        text = pc.binary_join_element_wise(_long_date_text(days), " ", fixed_width(_clock_texts()[clock]), "")
    else:
        out = np.empty(len(seconds), dtype=[("d", "S10"), ("b", "S1"), ("t", "S8")])
        out["d"], out["b"], out["t"] = rows, b" ", _clock_texts()[clock]
        text = fixed_width(out)
    if fraction.any():
        text = pc.binary_join_element_wise(text, _fraction_texts().take(pa.array(fraction)), "")
    return text


def interval_display(values: Ints, kind: IntervalType) -> pa.StringArray:
    """The form of result columns: ``1-2`` (months) and ``1 02:03:04.500000000`` (microseconds), whatever the units are.

    That is what Databricks sends for `interval month` and `interval day` columns too (``0-1``, ``1 00:00:00.000000000``).
    """
    sign, size = _sign_and_size(values)
    if kind.is_year_month:
        return pc.binary_join_element_wise(sign, _integer(size // 12), "-", _integer(size % 12), "")
    days, rest = np.divmod(size, np.uint64(_MICROS_PER_DAY))
    seconds, fraction = np.divmod(rest.astype(np.int64), 1_000_000)
    clock = fixed_width(_clock_texts()[seconds])
    digits = fixed_width(_digits(1_000_000, 6)[fraction])
    return pc.binary_join_element_wise(sign, _integer(days), " ", clock, ".", digits, "000", "")


def interval_literal(values: Ints, kind: IntervalType) -> pa.StringArray:
    """The form of casts to STRING: ``INTERVAL '1-2' YEAR TO MONTH``, ``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""
    sign, size = _sign_and_size(values)
    units = kind.simple.removeprefix("interval ").upper()
    if kind.is_year_month:
        whole = [_integer(size // 12 if kind.start == "year" else size)]
        rest = ["-", _integer(size % 12)] if kind.start != kind.end else []
        return pc.binary_join_element_wise("INTERVAL '", sign, *whole, *rest, f"' {units}", "")
    parts: list[pa.StringArray | str] = []
    remaining = size
    first, last = DAY_TIME_UNITS.index(kind.start), DAY_TIME_UNITS.index(kind.end)
    for unit in DAY_TIME_UNITS[first : last + 1]:
        count, remaining = np.divmod(remaining, np.uint64(_MICROS_PER[unit]))
        if unit != kind.start:
            parts.append(" " if unit == "hour" else ":")
        digits = _integer(count)
        parts.append(digits if unit == "day" else pc.utf8_lpad(digits, 2, "0"))
    if kind.end == "second" and remaining.any():
        parts.append(_fraction_texts().take(pa.array(remaining.astype(np.int64))))
    return pc.binary_join_element_wise("INTERVAL '", sign, *parts, f"' {units}", "")


def _sign_and_size(values: Ints) -> tuple[pa.StringArray, npt.NDArray[np.uint64]]:
    """Signs as text and absolute values; unsigned, so that the smallest bigint has one too."""
    wide = values.astype(np.int64)
    negative = wide < 0
    size = wide.view(np.uint64)
    return pc.if_else(pa.array(negative), "-", ""), np.where(negative, np.uint64(0) - size, size)


def _integer(values: npt.NDArray[np.uint64]) -> pa.StringArray:
    return pa.array(values).cast(pa.string())
