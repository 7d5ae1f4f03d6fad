"""Statements that share a context keep out of each other's tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.engine.base import Query, Source
from gateway.engine.datafusion import DataFusionEngine, DataFusionExecution
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
