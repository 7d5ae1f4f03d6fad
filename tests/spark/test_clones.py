"""Clones that either engine makes: the other reads and writes them, and no source changes."""

from __future__ import annotations

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_ASK = "SELECT * FROM {} ORDER BY id"
_ROWS = [(1, "a/b"), (2, "y z"), (3, None)]


def _made(sql: Sql, properties: str) -> None:
    for name in ("source", "ours", "deep", "theirs"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded(f"CREATE TABLE source (id INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ({properties})")
    sql.embedded("INSERT INTO source VALUES (1, 'a/b'), (2, 'y z'), (3, NULL), (4, 'a/b')")
    sql.embedded("DELETE FROM source WHERE id = 4")


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param("'delta.enableDeletionVectors' = 'true'", marks=pytest.mark.heavy),
        "'delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true', 'delta.enableChangeDataFeed' = 'true'",
    ],
)
def test_each_engine_reads_and_writes_the_clones_of_the_other(sql: Sql, properties: str) -> None:
    _made(sql, properties)
    sql.embedded("CREATE TABLE ours SHALLOW CLONE source")
    sql.embedded("CREATE TABLE deep DEEP CLONE source")
    sql.spark("CREATE TABLE theirs SHALLOW CLONE source")
    for name in ("ours", "deep", "theirs"):
        assert sql.spark(_ASK.format(name)) == sql.embedded(_ASK.format(name)) == _ROWS
        sql.spark(f"UPDATE {name} SET id = 11 WHERE id = 1")
        sql.embedded(f"DELETE FROM {name} WHERE id = 2")
        sql.spark(f"DELETE FROM {name} WHERE id = 3")
        sql.embedded(f"INSERT INTO {name} VALUES (5, 'n')")
        sql.embedded(f"OPTIMIZE {name}")
        rows = [(5, "n"), (11, "a/b")]
        assert sql.spark(_ASK.format(name)) == sql.embedded(_ASK.format(name)) == rows
        sql.embedded(f"RESTORE TABLE {name} TO VERSION AS OF 0")
        assert sql.spark(_ASK.format(name)) == sql.embedded(_ASK.format(name)) == _ROWS
    assert sql.spark(_ASK.format("source")) == _ROWS
    told = [sql.embedded(f"DESCRIBE HISTORY {name}")[-1][4] for name in ("ours", "theirs")]
    assert told == ["CLONE", "CLONE"]
