"""Frames of floats are computed anew, in the order of their rows and of no others, whatever order they come in."""

from __future__ import annotations

import math

import pyarrow as pa

from gateway.engine.functions.moving import moving
from gateway.sqltypes import BIGINT, DOUBLE
from gateway.worker_jobs import UdfSpec


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
