"""Comparison of answers: rows as multisets of canonical values, floats to nine digits."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


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
    """Whether two results hold the same rows in any order; of large ones a thousand, by their first column."""
    if left.num_rows != right.num_rows or left.num_columns != right.num_columns:
        return False
    if left.num_rows > 100_000:
        left, right = (_sample(table) for table in (left, right))
    return rows(left) == rows(right)


def _sample(table: pa.Table) -> pa.Table:
    order = pc.sort_indices(table.column(0)).to_pylist()
    return pa.concat_tables([table.slice(at, 1) for at in order[:: len(order) // 1000]])


def near(left: pa.Table, right: pa.Table) -> bool:
    """Whether two ordered results are the same up to the last digit of the coarser decimal.

    DataFusion cuts averages and quotients of decimals where Spark rounds them, and gives them fewer digits.
    """
    if left.num_rows != right.num_rows or left.num_columns != right.num_columns:
        return False
    for ours, theirs in zip(left.columns, right.columns, strict=True):
        scales = [c.type.scale for c in (ours, theirs) if pa.types.is_decimal(c.type)]
        unit = 10.0 ** -min(scales) if scales else 0.0
        for a, b in zip(ours.to_pylist(), theirs.to_pylist(), strict=True):
            number = isinstance(a, (float, Decimal)) and isinstance(b, (float, Decimal))
            if not (abs(float(a) - float(b)) <= unit * 1.001 if number else canonical(a) == canonical(b)):
                return False
    return True


def alike(left: pa.Table, right: pa.Table) -> bool:
    """Whether two results hold the same rows in any order, numbers that are not whole up to their first five digits.

    DataFusion cuts quotients of decimals after few digits, and what is reckoned on with them has fewer still.
    """
    if left.num_rows != right.num_rows or left.num_columns != right.num_columns:
        return False
    types = [(a.type, b.type) for a, b in zip(left.columns, right.columns, strict=True)]
    broken = [any(pa.types.is_floating(t) or pa.types.is_decimal(t) for t in pair) for pair in types]

    def key(row: tuple[Any, ...]) -> tuple[list[str], list[float]]:
        whole = [repr(canonical(value)) for value, inexact in zip(row, broken, strict=True) if not inexact]
        numbers = [value for value, inexact in zip(row, broken, strict=True) if inexact]
        return whole, [-math.inf if number is None else float(number) for number in numbers]

    def ordered(table: pa.Table) -> list[tuple[Any, ...]]:
        return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=key)

    return all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
        if inexact and a is not None and b is not None
        else canonical(a) == canonical(b)
        for one, other in zip(ordered(left), ordered(right), strict=True)
        for a, b, inexact in zip(one, other, broken, strict=True)
    )


def rows(table: pa.Table) -> Counter[Any]:
    """The multiset of a table's rows."""
    columns = [[canonical(v) for v in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter()
