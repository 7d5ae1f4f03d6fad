"""Rows in the order of several columns at once: what is near in each of them lies near, so that statistics tell files apart.

Each column's values are cut into a thousand ranges of as many rows, as Delta does; rows go by the interleaved bits of their
ranges' numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway import sqltypes as t
from gateway.delta.schema import Column
from gateway.errors import unsupported

#: Bytes of files whose rows are put in order, which are all held.
MOST_BYTES = 512 << 20
_RANGES, _BITS = 1000, 10
_ROWS = 65_536
_FIRST = [("", "ascending", "at_start")]  # NULL before all others
Path = Sequence[str]


def check_ordered(columns: Sequence[Column], path: Path) -> None:
    """Raise UnsupportedError for a column whose values have no order here; `path` is one that is there."""
    column = _column(columns, path)
    if t.is_nested(column.type) or column.type == t.VOID:
        raise unsupported(f"rows in the order of {'.'.join(path)}, of type {column.type.sql},")


def _column(columns: Sequence[Column], path: Path) -> Column:
    name, *rest = path
    found = next(c for c in columns if c.name.lower() == name.lower())
    return _column(found.children, rest) if rest else found


def ordered(rows: pa.Table, columns: Sequence[Column], paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """Rows of a table, `columns` of it first, in the order of those at `paths`."""
    keys = [_ranges(_values(rows, columns, path)) for path in paths]
    if len(keys) == 1:
        order = pc.sort_indices(_sortable(_values(rows, columns, paths[0])), sort_keys=_FIRST).to_numpy()
    else:
        key: Any = np.zeros(rows.num_rows, dtype=object if len(keys) * _BITS > 63 else np.int64)
        for bit in range(_BITS - 1, -1, -1):
            for ranges in keys:
                key = (key << 1) | ((ranges * (1 << _BITS) // _RANGES >> bit) & 1)
        order = key.argsort(kind="stable")
    yield from rows.take(pa.array(order)).combine_chunks().to_batches(_ROWS)


def _values(rows: pa.Table, columns: Sequence[Column], path: Path) -> Any:
    name, *rest = path
    at = next(i for i, c in enumerate(columns) if c.name.lower() == name.lower())
    values, children = rows.column(at), columns[at].children
    for part in rest:
        child = next(i for i, c in enumerate(children) if c.name.lower() == part.lower())
        values, children = pc.struct_field(values, child), children[child].children
    return values


def _ranges(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of the range of each value; equal ones have the same, NULL the first."""
    numbers = np.asarray(pc.rank(_sortable(values), sort_keys=_FIRST, tiebreaker="min"), dtype=np.int64) - 1
    return numbers * _RANGES // max(len(numbers), 1)


def _sortable(values: Any) -> Any:
    """Values in whose place Arrow puts others in the same order."""
    arrow = values.type
    if pa.types.is_floating(arrow):
        return pc.if_else(pc.is_nan(values), pa.scalar(np.inf, arrow), values)  # the greatest, as in Spark
    for holds, plain in _PLAIN:
        if holds(arrow):
            return values.cast(plain)
    return values


# Of decimals doubles are near enough: what is only put in order stays what it is.
_PLAIN = (
    (pa.types.is_boolean, pa.int8()),
    (pa.types.is_decimal, pa.float64()),
    (pa.types.is_timestamp, pa.int64()),
    (pa.types.is_date, pa.int32()),
)
