"""Rows as pictures: what is drawn for which columns, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from gateway.cli.chart import chart
from gateway.errors import ConfigError


@pytest.fixture(autouse=True)
def _screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "20")


def drawn(columns: dict[str, Any], kind: str = "auto") -> list[str]:
    batch = pa.RecordBatch.from_pydict(columns)
    return chart(batch.schema, [batch], kind).splitlines()


def test_bars_over_texts() -> None:
    title, *bars = drawn({"city": ["Oslo", "Rom", "Bern", "Wien"], "n": [2, 4, None, -2]})
    assert title == "n by city"
    lengths = {line.split()[0]: line.count("█") for line in bars}
    assert lengths["Rom"] // 2 == lengths["Oslo"] == lengths["Wien"] > 10 and lengths["Bern"] == 0
    assert [line.split()[-1] for line in bars] == ["2", "4", "Bern", "-2"]
    assert bars[3].index("█") < bars[0].index("█"), "what is negative goes to the left"


def test_a_bar_for_each_number() -> None:
    title, *bars = drawn({"city": ["Oslo", "Rom"], "n": [1, 2], "m": [3.5, 4.0]})
    assert title == "n, m by city"
    assert [line.split()[0] for line in bars] == ["Oslo", "m", "Rom", "m"]


@pytest.mark.parametrize("largest", [5e-324, 1e-310, 1.7e308])
def test_bars_of_the_smallest_and_largest_numbers(largest: float) -> None:
    _, first, second, third = drawn({"x": ["a", "b", "c"], "n": [largest, -largest, 0.0]})
    assert first.count("█") == second.count("█") > 10 and third.count("█") == 0


def test_no_more_than_forty_bars() -> None:
    lines = drawn({"city": [f"c{i}" for i in range(100)], "n": list(range(100))})
    assert len(lines) == 42 and lines[-1] == "(40 of 100 rows drawn)"


def test_lines_over_days() -> None:
    days = [dt.date(2026, 1, 1) + dt.timedelta(n) for n in range(50)]
    lines = drawn({"day": days, "y": [math.sin(n / 5) for n in range(50)]})
    assert lines[0] == "y by day" and "2026-01-01" in lines[-1]
    assert len(lines) == 17 and max(map(len, lines)) <= 60


@pytest.mark.parametrize("kind", ["line", "scatter"])
def test_nothing_that_is_no_number_is_drawn(kind: str) -> None:
    lines = drawn({"x": [1, 2, 3, 4], "y": [1.0, math.nan, math.inf, None]}, kind)
    assert lines[0] == "y by x"


def test_one_number_alone_goes_over_its_rows() -> None:
    assert drawn({"n": [3, 1, 2]}, "bar")[1].startswith("1 ")


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        ({"city": ["Oslo"]}, "auto", "no number"),
        ({"n": pa.array([], pa.int32())}, "auto", "no rows"),
        ({"n": [1]}, "cake", "not cake"),
        ({"x": [1, 2], "n": [1e308, -1e308]}, "line", "beyond 1e\\+300"),
        ({"x": [1e308, 2.0], "n": [1, 2]}, "scatter", "beyond 1e\\+300"),
    ],
)
def test_refused(columns: dict[str, Any], kind: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        drawn(columns, kind)


def test_labels_cannot_move_the_cursor() -> None:
    assert "\x1b" not in "\n".join(drawn({"a\x1b[2J": ["x\x1b[2Jy"], "n\x1b": [1]}))
