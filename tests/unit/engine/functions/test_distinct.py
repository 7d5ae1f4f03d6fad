"""Kernels that are asked once for rows that are all the same."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gateway.engine.functions.distinct import once_for_constants


def asked(*columns: pa.Array, returns: pa.DataType | None = None) -> tuple[list[int], list[Any]]:
    """How many rows each call of a kernel that gives back its first argument has, and the result."""
    calls = []

    def kernel(*arrays: pa.Array) -> pa.Array:
        calls.append(len(arrays[0]))
        return arrays[0]

    result = once_for_constants(kernel, returns or columns[0].type)(*columns)
    assert result.type == columns[0].type
    return calls, result.to_pylist()


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (7, pa.int32()),
        (True, pa.bool_()),
        (Decimal("1.25"), pa.decimal128(38, 4)),
        (1.5, pa.float64()),
        (-0.0, pa.float32()),
        (math.inf, pa.float64()),
        (None, pa.int64()),
        (None, pa.decimal128(10, 2)),
        (10**15, pa.timestamp("us", "UTC")),
    ],
)
def test_the_same_rows_are_one(value: Any, type_: pa.DataType) -> None:
    calls, found = asked(pa.array([value] * 1000, type_), pa.array(["x"] * 1000))
    assert calls == [1]
    assert list(map(repr, found)) == [repr(pa.array([value], type_)[0].as_py())] * 1000


@pytest.mark.parametrize(
    "column",
    [
        pa.array([*[1] * 999, 2]),
        pa.array([1, *[2] * 998, 1]),
        pa.array([*[1] * 999, None]),
        pa.array([0.0, *[-0.0] * 998, 0.0]),
        pa.array([[1]] * 1000),
        pa.array([1] * 15),
        pa.array([], pa.int64()),
    ],
    ids=["last", "middle", "NULL", "signs", "nested", "few", "none"],
)
def test_other_rows_are_asked_together(column: pa.Array) -> None:
    assert asked(column) == ([len(column)], column.to_pylist())
    assert asked(pa.array([1] * len(column)), column)[0] == [len(column)]


def test_texts_are_left_to_the_kernel_which_knows_how_long_they_get() -> None:
    calls, found = asked(pa.array(["a"] * 100))
    assert (calls, found) == ([100], ["a"] * 100)


def test_nan_is_one_value() -> None:
    calls, found = asked(pa.array([math.nan] * 100))
    assert calls == [1] and all(map(math.isnan, found))
