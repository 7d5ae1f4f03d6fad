"""Frames of floats are computed anew, in the order of their rows and of no others, whatever order they come in."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from gateway.engine.functions.moving import Moving, moving
from gateway.sqltypes import BIGINT, DOUBLE
from gateway.worker_jobs import UdfSpec
from tests.conformance.session import Session, open_runner


def _asked(name: str, columns: list[list[float | None]], frames: list[tuple[int, int, int]]) -> list[float | None]:
    """The aggregate of frames, each given as the row's place, and the end and the size of its frame."""
    spec = UdfSpec("moving", (*(DOUBLE for _ in columns), BIGINT, BIGINT, BIGINT), DOUBLE, (name,))
    arrays = [pa.array(c, pa.float64()) for c in columns]
    counts = [pa.array(c, pa.int64()) for c in zip(*frames, strict=True)]
    found: list[float | None] = moving(spec)().evaluate_all([*arrays, *counts], len(frames)).to_pylist()
    return found


ONE_BEFORE = [(1, 1, 1), (2, 2, 2), (3, 3, 2), (4, 4, 2)]


def test_what_has_left_a_frame_leaves_nothing_behind() -> None:
    for large in (1e20, math.inf):
        found = _asked("sum", [[3.0, large, 3.0, -1.0]], ONE_BEFORE)
        assert found == [3.0, large, large, 2.0]
    assert _asked("var_pop", [[3.0, 1e20, 3.0, -1.0]], ONE_BEFORE)[3] == 4.0


def test_rows_come_in_any_order() -> None:
    order = [2, 0, 3, 1]
    values: list[float | None] = [3.0, 1e20, 3.0, -1.0]
    assert _asked("avg", [[values[i] for i in order]], [ONE_BEFORE[i] for i in order]) == [5e19, 3.0, 1.0, 5e19]


def test_nulls_are_no_values_and_too_few_values_are_null() -> None:
    values = [None, 2.0, None, 4.0]
    assert _asked("sum", [values], ONE_BEFORE) == [None, 2.0, 2.0, 4.0]
    assert _asked("var_samp", [values], [(1, 4, 4), *ONE_BEFORE[1:]]) == [2.0, None, None, None]
    assert _asked("regr_avgx", [[1.0, None], [2.0, 9.0]], [(1, 2, 2), (2, 0, 0)]) == [2.0, None]


def test_partitions_that_come_together_stay_apart() -> None:
    spec = UdfSpec("moving", (DOUBLE, BIGINT, BIGINT, BIGINT, BIGINT), DOUBLE, ("sum",))
    # value, place, end, size and partition of rows in no order: partition 7 has 1, NULL, 4; partition 3 has 1E20, 2
    rows = [(4.0, 3, 3, 2, 7), (2.0, 2, 2, 1, 3), (1.0, 1, 2, 2, 7), (1e20, 1, 2, 2, 3), (None, 2, 2, 1, 7)]
    types = (pa.float64(), *[pa.int64()] * 4)
    columns = [pa.array(c, kind) for c, kind in zip(zip(*rows, strict=True), types, strict=True)]
    assert moving(spec)().evaluate_all(columns, len(rows)).to_pylist() == [4.0, 2.0, 1.0, 1e20, None]


def test_many_partitions_are_computed_by_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    class Counting(Moving):
        def evaluate_all(self, values: list[pa.Array], num_rows: int) -> pa.Array:
            calls.append(num_rows)
            return super().evaluate_all(values, num_rows)

    monkeypatch.setattr("gateway.engine.datafusion.moving", lambda spec: lambda: Counting(spec))
    session = Session(open_runner(tmp_path))
    query = (
        "SELECT p, v, sum(x) OVER (PARTITION BY p ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s "
        "FROM (SELECT id % 2000 AS p, id AS v, CASE WHEN id < 2000 THEN 1E20D ELSE double(id) END AS x FROM range(8000))"
    )
    right = "CASE WHEN v < 4000 THEN s = 1E20D ELSE s = v + v - 2000 END"
    found = session.execute(f"SELECT count(*), count_if({right}) FROM ({query})")
    assert found.rows() == [[8000, 8000]]
    assert sum(calls) == 8000
    assert len(calls) <= 256
