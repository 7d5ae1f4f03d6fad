"""Statements that share a context keep out of each other's tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gateway.engine.base import Query, Source
from gateway.engine.datafusion import DataFusionEngine, DataFusionExecution
from gateway.engine.economies import FEWER_RULES, NONE, ONE_PARTITION, Economy
from gateway.errors import UnsupportedError
from gateway.sqltypes import BIGINT, StructField, struct


class Number:
    """A table of one row, the number `n`; something may happen while it is registered."""

    def __init__(self, n: int, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._rows = pa.table({"n": pa.array([n], pa.int64())}).to_batches()
        self._meanwhile = meanwhile

    def register(self, ctx: Any, name: str) -> None:
        self._meanwhile()
        ctx.register_record_batches(name, [self._rows])

    def verify(self) -> bool:
        return True

    @property
    def numbered(self) -> bool:
        return False

    def one_by_one(self) -> Source:
        return self

    def plain(self) -> Source:
        return self

    def damaged(self) -> str | None:
        return None


def total(*numbers: Number) -> Query:
    sources = {f"t{i}": number for i, number in enumerate(numbers)}
    text = f"SELECT {' + '.join(f'{name}.n' for name in sources)} AS c0 FROM {', '.join(sources)}"
    return Query(text, struct(StructField("n", BIGINT)), sources, small=True)


def test_a_statement_that_is_closed_late_leaves_the_tables_of_the_next(tmp_path: Path) -> None:
    engine = DataFusionEngine(1 << 28, str(tmp_path))
    left = engine.run(total(Number(1)))
    left.start()
    following = engine.run(total(Number(2), Number(3, meanwhile=left.close)))
    assert [batch.to_pydict() for batch in following.batches()] == [{"c0": [5]}]


def test_a_table_goes_with_its_statement(tmp_path: Path) -> None:
    engine = DataFusionEngine(1 << 28, str(tmp_path))
    execution = engine.run(total(Number(1)))
    assert isinstance(execution, DataFusionExecution)
    execution.start()
    ctx = execution._ctx
    assert ctx is not None and ctx.table_exist("t0")
    execution.close()
    assert not ctx.table_exist("t0")


class PanicException(BaseException):
    """What a panic of Rust is to Python."""


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (PanicException("index out of bounds: the len is 1 but the index is 1"), 3),
        (ValueError("SanityCheckPlan"), 3),
        (PanicException("not a field"), 1),
        (KeyboardInterrupt("index out of bounds"), 1),
    ],
    ids=["panic", "error", "other panic", "interrupt"],
)
def test_what_is_at_odds_with_itself_is_planned_in_other_ways(tmp_path: Path, error: BaseException, tries: int) -> None:
    ways = []

    def made(economy: Economy) -> None:
        ways.append(economy)
        raise error

    execution = DataFusionExecution(DataFusionEngine(1 << 24, str(tmp_path)), total())
    with pytest.raises(type(error)):
        execution.first_planned(made)
    assert ways == [NONE, FEWER_RULES, ONE_PARTITION][:tries]


def test_what_is_at_odds_in_each_way_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(*_: object) -> None:
        raise PanicException("index out of bounds: the len is 2 but the index is 2")

    monkeypatch.setattr(DataFusionExecution, "_planned", planned)
    with pytest.raises(UnsupportedError) as caught:
        DataFusionExecution(DataFusionEngine(1 << 24, str(tmp_path)), total()).start()
    assert caught.value.condition == "UNSUPPORTED_FEATURE.ENGINE"
