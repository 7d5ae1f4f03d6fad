"""`aggregate` and `array_sort` by lambdas, over arrays of all lengths in batches: what Python gives for them one by one."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gateway.engine.bodies import EngineBody
from gateway.engine.functions.comparators import compared
from gateway.errors import GatewayError, ResourceError, UnsupportedError
from gateway.sqltypes import BIGINT
from gateway.worker_jobs import BodySpec
from tests.unit.runner.session import Session

Step = Callable[[int, int, int], int]
_ROWS = 20_000  # some batches of the engine
# Lambdas, and what they do; the first one is written into itself, the others are asked for an element at a time.
_FOLDS: dict[str, Step] = {
    "(a, x) -> a * 3 % 1000003 + x + k": lambda a, x, k: a * 3 % 1000003 + x + k,
    "(a, x) -> CASE WHEN x > a THEN x ELSE a + k END": lambda a, x, k: x if x > a else a + k,
    """(a, x) -> a + x + length('"c0" "c1"') - 9""": lambda a, x, k: a + x,
    "(a, x) -> x": lambda a, x, k: x,
    "(a, x) -> k": lambda a, x, k: k,
}


def _folded(step: Step, elements: Sequence[int], k: int) -> int:
    state = k
    for x in elements:
        state = step(state, x, k)
    return state


def _sorted(elements: Sequence[int], k: int) -> list[int]:
    return sorted(elements, key=lambda x: -((x + k) % 10))


@pytest.fixture(scope="module")
def lists() -> list[list[int] | None]:
    chance = random.Random(7)
    lengths = [chance.choice((0, 0, 1, 2, 3, 7, 31, 32, 33, 70, None)) for _ in range(_ROWS)]
    return [None if n is None else [chance.randrange(100) for _ in range(n)] for n in lengths]


def _asked(session: Session, folder: Path, lists: list[list[int] | None], item: str) -> list[Any]:
    """What an item over the columns `k` (the number of the row) and `v` (its array) is for each row."""
    folder = Path(session.runner.environment(session.state).tables.paths.roots[-1]) / folder.name
    folder.mkdir(parents=True)
    rows = pa.table({"k": pa.array(range(len(lists)), pa.int64()), "v": pa.array(lists, pa.list_(pa.int64()))})
    pq.write_table(rows, folder / "lists.parquet", row_group_size=5000)
    found = sorted(session.rows(f"SELECT k, {item} FROM parquet.`{folder}`"), key=itemgetter(0))
    assert [k for k, _ in found] == list(range(len(lists)))
    return [value for _, value in found]


@pytest.mark.parametrize("body", _FOLDS)
def test_all_lengths_are_folded_at_once(
    session: Session, tmp_path: Path, lists: list[list[int] | None], body: str
) -> None:
    found = _asked(session, tmp_path, lists, f"aggregate(v, k, {body}, a -> a - 1)")
    assert found == [None if v is None else _folded(_FOLDS[body], v, k) - 1 for k, v in enumerate(lists)]


def test_all_lengths_are_sorted_at_once(session: Session, tmp_path: Path, lists: list[list[int] | None]) -> None:
    found = _asked(session, tmp_path, lists, "array_sort(v, (l, r) -> CAST((r + k) % 10 - (l + k) % 10 AS INT))")
    assert found == [None if v is None else _sorted(v, k) for k, v in enumerate(lists)]


@pytest.mark.parametrize(
    ("array", "order", "message"),
    [
        ("sequence(1, 3001)", "l - r", "more than 3000 elements with a comparator"),
        ("sequence(1, 40)", "1 - (l + r) % 3", "contradicts itself"),
    ],
)
def test_orders_that_are_left_to_spark(session: Session, array: str, order: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        session.rows(f"SELECT array_sort({array}, (l, r) -> {order})")


def test_an_error_of_one_row_is_the_statements(session: Session) -> None:
    text = "SELECT aggregate(array(1, id), 0L, (a, x) -> a + if(x = 77, CAST(raise_error('it is ' || x) AS BIGINT), x))"
    with pytest.raises(GatewayError, match="it is 77") as raised:
        session.rows(f"{text} FROM range(100)")
    assert raised.value.condition == "USER_RAISED_EXCEPTION"


def test_what_may_not_stand_in_itself_is_not_asked_in_turn() -> None:
    body = EngineBody(BodySpec('"c0" + "c0"', (BIGINT, BIGINT), BIGINT), lambda: None, None, ValueError)
    assert not body.is_chained
    with pytest.raises(ValueError, match="may not stand in itself"):
        body.in_turn(pa.array([1]), [pa.array([1])])


def test_a_state_that_grows_without_end_is_stopped(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.engine.functions.folds._MOST_BYTES", 16 << 20)
    with pytest.raises(ResourceError, match="aggregate makes takes more than 16 MiB"):
        session.rows("SELECT length(aggregate(sequence(1, 60), 'xy', (a, x) -> a || a || a || a))")


@pytest.mark.parametrize(
    "item",
    [
        "aggregate(array(1, 2), 0D, (a, x) -> a + rand())",
        "aggregate(array(1, 2), '', (a, x) -> a || uuid())",
        "aggregate(array(1), 'x', (a, x) -> a, a -> a || uuid())",
        "array_sort(sequence(1, 20), (l, r) -> CAST(rand() * 3 AS INT) - 1)",
    ],
)
def test_what_is_by_chance_is_another_in_each_row(session: Session, item: str) -> None:
    """Also of constant arrays, of which the engine would compute one value."""
    assert session.rows(f"SELECT count(DISTINCT v) > 90 FROM (SELECT {item} AS v FROM range(100))") == [(True,)]


class _Difference:
    is_chained = False

    def once(self, *columns: pa.Array) -> pa.Array:
        return pc.subtract(*columns)

    def in_turn(self, state: pa.Array, elements: Sequence[pa.Array], *others: pa.Array) -> pa.Array:
        raise NotImplementedError


def test_rows_are_sorted_a_few_at_a_time() -> None:
    """Their pairs would take more than 80 MiB at once."""
    length, rows = 200, 2000
    elements = [(place * 7919 + row) % 1009 for row in range(rows) for place in range(length)]
    lists = pa.ListArray.from_arrays(
        pa.array(range(0, len(elements) + 1, length), pa.int32()), pa.array(elements, pa.int32())
    )
    tracemalloc.start()
    try:
        found = compared(_Difference())(lists)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert found.to_pylist() == [sorted(each) for each in lists.to_pylist()]
