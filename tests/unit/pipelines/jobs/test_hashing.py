"""Hashes of values: equal where SQL says equal, whatever the batch, the offsets or the order of map entries."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.catalog.samples import all_types
from gateway.pipelines.jobs.hashing import row_hashes, value_hashes

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
MAP = pa.map_(pa.string(), pa.float64())
DIFFERENT: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    (pa.int8(), [0, 1, -1, 127, -128, None]),
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), None]),
    (pa.float32(), [0.0, 1.5, math.nan, math.inf, -math.inf, None]),
    (pa.float64(), [0.0, 5e-324, 1.5, math.nan, math.inf, -math.inf, None]),
    (pa.decimal128(38, 2), [Decimal(0), Decimal("0.01"), Decimal("-0.01"), Decimal("9" * 36 + ".99"), None]),
    (pa.string(), ["", "a", "b", "ab", "ba", "a\0", "aa", "ünï", None]),
    (pa.binary(), [b"", b"\0", b"\0\0", b"\1\0", b"\0\1", None]),
    (pa.date32(), [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), None]),
    (pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), None]),
    (pa.list_(pa.int32()), [[], [None], [1], [1, 2], [2, 1], [None, None], None]),
    (MAP, [[], [("a", 1.0)], [("a", None)], [("b", 1.0)], [("a", 1.0), ("b", 2.0)], [("a", 2.0), ("b", 1.0)], None]),
    (STRUCT, [{"a": None, "b": None}, {"a": 1, "b": None}, {"a": 1, "b": []}, {"a": 1, "b": ["x"]}, None]),
]


@pytest.mark.parametrize(("type_", "values"), DIFFERENT, ids=[str(t) for t, _ in DIFFERENT])
def test_different_values_have_different_hashes(type_: pa.DataType, values: list[Any]) -> None:
    hashes = value_hashes(pa.array(values, type_)).tolist()
    assert len(set(hashes)) == len(values)
    # The same in other batches, behind other values, one by one.
    again = value_hashes(pa.array([values[-2], *values, values[0]], type_).slice(1, len(values))).tolist()
    assert again == hashes
    assert [value_hashes(pa.array([v], type_)).tolist()[0] for v in values] == hashes
    assert value_hashes(pa.array([], type_)).tolist() == []


def test_equal_in_sql_is_equal_here() -> None:
    zeros = value_hashes(pa.array([0.0, -0.0])).tolist()
    assert zeros[0] == zeros[1]
    payloads = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    assert len(set(value_hashes(pa.array(payloads)).tolist())) == 1
    maps = value_hashes(pa.array([[("a", 1.0), ("b", -0.0)], [("b", 0.0), ("a", 1.0)]], MAP)).tolist()
    assert maps[0] == maps[1]
    nulls = value_hashes(pa.nulls(1)).tolist() + value_hashes(pa.array([None], pa.string())).tolist()
    assert nulls[0] == nulls[1]


def test_rows_depend_on_the_order_of_columns_and_not_on_batches() -> None:
    table = pa.table({name: values for name, (_, values) in all_types().items()})
    columns = [value_hashes(c.chunk(0)) for c in table.columns]
    whole = row_hashes(columns, table.num_rows)
    assert len(set(whole.tolist())) == table.num_rows
    assert row_hashes(columns[::-1], table.num_rows).tolist() != whole.tolist()
    parts = [
        row_hashes([value_hashes(c) for c in batch.columns], batch.num_rows)
        for batch in table.to_batches(max_chunksize=2)
    ]
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_what_has_no_hash_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be compared"):
        value_hashes(pa.array([1], pa.duration("s")))
