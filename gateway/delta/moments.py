"""Dates and times in Parquet files that an engine would take for others: of the calendar before 1582, and of nanoseconds.

Spark before version 3, and a later one that is told to, counts days by the calendar that has the Julian one before 15 October
1582; it says so in the file, and Spark reads them as the same year, month and day of today's (`DataSourceUtils` of Spark).
Nanoseconds are cut off downwards, by DataFusion towards 1970. What is compared with milliseconds DataFusion cuts off to such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.delta.footers import arrow_schema
from gateway.errors import UnsupportedError

_VERSION, _OLD_DATES, _OLD_INT96 = (
    f"org.apache.spark.{name}".encode() for name in ("version", "legacyDateTime", "legacyINT96")
)
_FIRST_DAY = -141_427  # 1582-10-15, from which on both calendars are one
# 1900-01-01, as Spark has it: until then clocks went by the sun in some zones, and what they showed is what is kept.
_FIRST_INSTANT = -2_208_988_800_000_000
_JULIAN_DAY = 2_440_588  # of 1970-01-01


@dataclass(frozen=True)
class Calendar:
    """What of a file may be by the old calendar: dates and instants in 64 bits, and instants in 96."""

    dates: bool
    int96: bool

    def mended(self, values: pa.Array, name: str) -> pa.Array:
        """Values of the column `name` by today's calendar. Raises UnsupportedError for instants before 1900.

        What those are depends on a zone and its history.
        """
        kind = values.type
        if not _holds_moments(kind):
            return values
        if pa.types.is_date32(kind):
            return _dates(values) if self.dates else values
        if pa.types.is_timestamp(kind):
            # Without a zone they are in 96 bits, or by no zone's clock, which no calendar changes.
            if (self.dates if kind.tz is not None else self.int96) and _are_old(values):
                text = f"A file holds the column {name} with instants before 1900 by the calendar of Spark before version 3."
                raise UnsupportedError("UNSUPPORTED_FEATURE", text)
            return values
        if pa.types.is_struct(kind):
            children = [self.mended(child, name) for child in values.flatten()]
            mask = values.is_null() if values.null_count else None
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
        if pa.types.is_map(kind):
            keys, items = self.mended(values.keys, name), self.mended(values.items, name)
            child = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
        else:
            if pa.types.is_fixed_size_list(kind):
                kind = pa.list_(kind.value_field)
                values = values.cast(kind)
            child = self.mended(values.values, name)
        buffers = values.buffers()[:2]
        return pa.Array.from_buffers(kind, len(values), buffers, offset=values.offset, children=[child])


def _holds_moments(kind: pa.DataType) -> bool:
    if kind.num_fields:
        return any(_holds_moments(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def calendar_of(file: pq.ParquetFile) -> Calendar | None:
    """The calendar that a file's writer names, None for today's; its version is compared as Spark does, as a text."""
    told = file.metadata.metadata or {}
    version = told.get(_VERSION)
    if version is None:  # Spark takes it for today's
        return None
    found = Calendar(version < b"3.0.0" or _OLD_DATES in told, version < b"3.1.0" or _OLD_INT96 in told)
    return found if found.dates or found.int96 else None


def suspects(file: pq.ParquetFile) -> frozenset[str]:
    """Columns, or those with fields, with dates or times that DataFusion may take for others."""
    calendar, schema, leaf = calendar_of(file), file.schema_arrow, 0
    found = {field.name for field in schema if pa.types.is_timestamp(field.type) and field.type.unit == "ms"}
    if calendar is None and not any(_holds_nanoseconds(field.type) for field in schema):
        return frozenset(found)
    others = _in_other_units(file)
    for field in schema:
        count = leaf_count(field.type)
        if any(_is_suspect(file, calendar, field.name in others, at) for at in range(leaf, leaf + count)):
            found.add(field.name)
        leaf += count
    return frozenset(found)


def _holds_nanoseconds(kind: pa.DataType) -> bool:
    return _holds_units(kind, ("ns",))  # so are those in 96 bits


def _holds_units(kind: pa.DataType, units: tuple[str, ...]) -> bool:
    if kind.num_fields:
        return any(_holds_units(kind.field(i).type, units) for i in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind) and kind.unit in units)


def leaf_count(kind: pa.DataType) -> int:
    """How many columns a Parquet file has of a type."""
    return sum(leaf_count(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else 1


def _in_other_units(file: pq.ParquetFile) -> frozenset[str]:
    """Columns not in microseconds by a file's schema of Arrow, as DataFusion then reads instants in 96 bits."""
    try:
        schema = arrow_schema(file.metadata)
    except (ValueError, OSError, pa.ArrowException):  # whatever it may say
        return frozenset(file.schema_arrow.names)
    return frozenset(field.name for field in schema or () if _holds_units(field.type, ("s", "ms", "ns")))


def _is_suspect(file: pq.ParquetFile, calendar: Calendar | None, in_other_units: bool, at: int) -> bool:
    leaf = file.schema.column(at)
    if leaf.physical_type == "INT96":
        return (calendar is not None and calendar.int96) or in_other_units
    if leaf.logical_type.type not in ("DATE", "TIMESTAMP"):
        return False
    kind = str(leaf.logical_type)
    if "timeUnit=nanoseconds" in kind:
        return _may_be_below(file, at, 0)
    if calendar is None or not calendar.dates or "isAdjustedToUTC=false" in kind:
        return False
    scale = 1000 if "timeUnit=milliseconds" in kind else 1
    return _may_be_below(file, at, _FIRST_DAY if leaf.logical_type.type == "DATE" else _FIRST_INSTANT // scale)


def _may_be_below(file: pq.ParquetFile, at: int, first: int) -> bool:
    return any(least is None or least < first for least in _least(file.metadata, at))


def _least(metadata: pq.FileMetaData, at: int) -> Iterator[int | None]:
    """The least value of a leaf in each row group that has one; None where that is not told."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        told = group.column(at).statistics
        if told is not None and told.has_min_max:
            yield told.min_raw
        elif told is None or not told.has_null_count or told.null_count < group.column(at).num_values:
            yield None


def _are_old(values: pa.Array) -> bool:
    least = pc.min(values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())).as_py()
    return least is not None and least < _FIRST_INSTANT


def _dates(values: pa.Array) -> pa.Array:
    days = values.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
    old = days < _FIRST_DAY
    if not old.any():
        return values
    found = days.copy()
    found[old] = of_today(days[old])
    return pa.array(found, pa.int32(), mask=values.is_null().to_numpy(zero_copy_only=False)).cast(pa.date32())


def of_today(days: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Days of the Julian calendar, counted from 1970-01-01, as those of the same year, month and day of today's.

    A 29 February that today's has not is the day behind the 28th, as for Spark.
    """
    shifted = days.astype(np.int64) + _JULIAN_DAY + 32_082  # from 1 March 4801 BC
    years = (4 * shifted + 3) // 1461
    in_year = shifted - 1461 * years // 4
    months = (5 * in_year + 2) // 153  # from March
    day = in_year - (153 * months + 2) // 5
    since_1970 = (years - 4800 - 1970) * 12 + months + 2
    firsts = since_1970.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return (firsts + day).astype(np.int32)
