"""Comparison of answers: rows as multisets of canonical values, floats to nine digits."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa


def canonical(value: Any) -> Any:
    """A hashable value that is equal for equal values of different types."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal)):
        return float(f"{float(value):.9g}")
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, (list, tuple)):
        return tuple(canonical(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, canonical(v)) for k, v in value.items())
    return value


def same(left: pa.Table, right: pa.Table) -> bool:
    """Whether two results hold the same rows in any order; of large ones ten thousand are compared, by position."""
    if left.num_rows != right.num_rows or left.num_columns != right.num_columns:
        return False
    if left.num_rows > 100_000:
        starts = range(0, left.num_rows, left.num_rows // 1000)
        left, right = (pa.concat_tables([table.slice(start, 10) for start in starts]) for table in (left, right))
    return rows(left) == rows(right)


def rows(table: pa.Table) -> Counter[Any]:
    """The multiset of a table's rows."""
    columns = [[canonical(v) for v in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter()
