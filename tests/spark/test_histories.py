"""Histories of tables that both engines write in turns, against a plain model, every version read by both."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.live.featured import FeaturedHistory
from tests.live.gateway import Server
from tests.live.histories import seeds
from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_STEPS = 8
# What Spark has no statement for, or what the catalog alone does.
_OURS = (
    "COPY INTO",
    "CREATE TABLE",
    "DROP TABLE",
    "SHOW COLUMNS",
    "VACUUM",
    "INSERT OVERWRITE",
    "INSERT INTO t BY NAME REPLACE",
)
_FROM_CHANGES = "table_changes"
_ASKED = "SELECT k, s, d, p"


class Turns:
    """Statements on either engine, by chance."""

    def __init__(self, sql: Sql, seed: int) -> None:
        self.sql, self.random = sql, random.Random(seed)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        if text.startswith(_ASKED):  # clients get NaN and NULL as the same
            asked = text.replace(_ASKED, "SELECT k, s, string(d) AS d, p", 1)
            return [(k, s, None if d is None else float(d), *more) for k, s, d, *more in self._rows(asked)]
        return self._rows(text)

    def _rows(self, text: str) -> list[tuple[Any, ...]]:
        ours = text.startswith(_OURS) or "RENAME TO" in text or _FROM_CHANGES in text or self.random.random() < 0.5
        return self.sql.embedded(text) if ours else self.sql.spark(text)

    run = rows


class SharedHistory(FeaturedHistory):
    """One whose statements Spark answers in its own way."""

    def ran(self, text: str, answer: list[tuple[Any, ...]], counts: tuple[int, ...]) -> None:
        """Spark may count otherwise."""


@pytest.mark.parametrize("seed", seeds(1000, 1))
def test_both_engines_write_a_history(sql: Sql, spark_server: Server, seed: int) -> None:
    sql.auto("DROP TABLE IF EXISTS t")
    files = spark_server.log.parent / "files" / f"of-{seed}"
    files.mkdir()
    warehouse = Path(str(sql.embedded("DESCRIBE SCHEMA `default`")[3][1]).removeprefix("file:"))
    history = SharedHistory(Turns(sql, seed), seed, warehouse / "t", files)
    for _ in range(_STEPS):
        history.step()
    for version, rows in enumerate(history.versions):
        for _ in range(2):
            history.compare(f"{_ASKED} FROM t VERSION AS OF {version}", rows, f"{history.features} {version}")
