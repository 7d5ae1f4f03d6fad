"""Results compared as bags of rows, exactly and with a tolerance for floats."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from gateway.errors import UnsupportedError
from gateway.pipelines.jobs import compare as module
from gateway.pipelines.jobs.compare import Rows, compare, match_floats
from gateway.results.arrow_types import sql_type_of


def rows(table: pa.Table) -> Rows:
    """A table as a result in small batches."""
    types = tuple(sql_type_of(f.type) for f in table.schema)
    return Rows(tuple(table.column_names), types, lambda: table.to_batches(max_chunksize=2))


def floats(*values: Any) -> Rows:
    return rows(pa.table({"k": pa.array([1] * len(values)), "d": pa.array(values, pa.float64())}))


def test_order_does_not_matter_but_how_often_does() -> None:
    left = rows(pa.table({"a": [1, 2, 2, None], "b": ["x", "y", "y", None]}))
    assert compare(left, rows(pa.table({"a": [2, None, 1, 2], "b": ["y", None, "x", "y"]}))).same
    other = compare(left, rows(pa.table({"a": [1, 1, 2, None], "b": ["x", "x", "y", None]})))
    assert (other.same, other.only_left, other.only_right) == (False, 1, 1)
    assert other.left_rows is not None and other.left_rows.to_pylist() == [{"0": 2, "1": "y"}]
    assert other.right_rows is not None and other.right_rows.to_pylist() == [{"0": 1, "1": "x"}]


def test_the_same_columns_in_other_rows_differ() -> None:
    outcome = compare(rows(pa.table({"a": [1, 2], "b": [1, 2]})), rows(pa.table({"a": [1, 2], "b": [2, 1]})))
    assert outcome.left is not None and outcome.right is not None
    assert outcome.left.column_sums == outcome.right.column_sums
    assert (outcome.only_left, outcome.only_right) == (2, 2)


def test_columns_must_fit() -> None:
    one = rows(pa.table({"a": [1]}))
    assert compare(one, rows(pa.table({"a": [1], "b": [1]}))).problems == ["1 and 2 columns: ['a'], ['a', 'b']"]
    types = compare(one, rows(pa.table({"a": pa.array([1], pa.int32())})))
    assert (types.problems, types.left, types.same) == (["column a is BIGINT and INT"], None, False)
    names = compare(one, rows(pa.table({"A": [1]})))
    assert names.problems == ["column 1 is named 'a' and 'A'"] and names.left is not None and not names.only_left


def test_empty_results() -> None:
    empty = rows(pa.table({"a": pa.array([], pa.int64())}))
    assert compare(empty, empty).same
    outcome = compare(empty, rows(pa.table({"a": [1, 1]})), most_rows=1)
    assert (outcome.only_left, outcome.only_right) == (0, 2)
    assert outcome.right_rows is not None and outcome.right_rows.num_rows == 1


def test_tolerance() -> None:
    left = floats(1.0, math.nan, -0.0, None, math.inf, 1e300)
    near = floats(1e300 * (1 + 1e-12), 1.0 + 1e-12, math.nan, 0.0, None, math.inf)
    assert not compare(left, near).same
    outcome = compare(left, near, tolerance=1e-9)
    assert outcome.same and outcome.matched == 2
    for value, wrong in ((1.0, 1.1), (math.nan, 1.0), (math.inf, -math.inf), (None, 0.0), (math.inf, 1e308)):
        assert not compare(floats(value), floats(wrong), tolerance=1e-3).same, (value, wrong)
    exact = rows(pa.table({"k": [1, 2], "d": [1.0, 2.0]}))
    assert not compare(exact, rows(pa.table({"k": [2, 1], "d": [1.0, 2.0]})), tolerance=0.4).same


def test_tolerance_within_nested_values() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float64())))])
    left = pa.table({"s": pa.array([{"m": [("a", [1.0, None]), ("b", [])]}], kind)})
    near = pa.table({"s": pa.array([{"m": [("b", []), ("a", [1.0 + 1e-13, None])]}], kind)})
    longer = pa.table({"s": pa.array([{"m": [("b", []), ("a", [1.0 + 1e-13])]}], kind)})
    assert compare(rows(left), rows(near), tolerance=1e-9).same
    assert not compare(rows(left), rows(longer), tolerance=1e-9).same


def test_too_many_rows_for_a_tolerance_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_MATCHED", 1)
    with pytest.raises(UnsupportedError, match="2 rows differ"):
        compare(floats(1.0, 2.0), floats(1.1, 2.1), tolerance=1e-9)


def test_as_many_pairs_as_there_can_be() -> None:
    draw = random.Random(7)
    for _ in range(200):
        size = draw.randint(0, 5)
        left = [(draw.choice([0.0, 0.1, 0.2, math.nan]), draw.choice([0.0, 0.1, 0.2])) for _ in range(size)]
        right = [(draw.choice([0.0, 0.1, 0.2, math.nan]), draw.choice([0.0, 0.1, 0.2])) for _ in range(size)]
        pairs = match_floats(left, right, 0.11)
        assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
        near = {
            (i, j)
            for i, j in itertools.product(range(size), range(size))
            if all((a != a and b != b) or abs(a - b) <= 0.11 for a, b in zip(left[i], right[j], strict=True))
        }
        assert set(pairs) <= near
        best = max(sum((i, j) in near for i, j in enumerate(order)) for order in itertools.permutations(range(size)))
        assert len(pairs) == best
