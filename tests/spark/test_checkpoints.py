"""Checkpoints with statistics as structs: each engine reads what the other's hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_PROPERTIES = (
    "'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false', "
    "'delta.checkpointInterval' = '2', 'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"
)
_ROWS = (
    (1, "2020-01-01 00:00:00.123456", "a"),
    (2, "9999-12-31 00:00:00", None),
    (3, "0001-01-01 00:00:00.5", 'ü"'),
    (4, "2262-12-31 23:59:59.999999", "d"),
)


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize("writer", ["embedded", "spark"])
def test_statistics_as_structs_are_read_by_both(sql: Sql, writer: str, policy: str) -> None:
    write = getattr(sql, writer)
    sql.auto("DROP TABLE IF EXISTS structs")
    sql.embedded(
        "CREATE TABLE structs (id INT, at TIMESTAMP, s STRING, p DATE) PARTITIONED BY (p) "
        f"TBLPROPERTIES ({_PROPERTIES}, 'delta.checkpointPolicy' = '{policy}')"
    )
    for key, at, text in _ROWS:
        write(f"INSERT INTO structs SELECT {key}, timestamp'{at}', :s, date'2020-01-01'", s=text)
    warehouse = Path(str(sql.embedded("DESCRIBE SCHEMA `default`")[3][1]).removeprefix("file:"))
    log = warehouse / "structs" / "_delta_log"
    held = [pq.read_schema(path) for path in log.rglob("*.parquet")]
    adds = [schema.field("add").type for schema in held if "add" in schema.names]
    assert any(kind.get_field_index("stats_parsed") >= 0 > kind.get_field_index("stats") for kind in adds)
    assert any(kind.get_field_index("partitionValues_parsed") >= 0 for kind in adds)
    for at in ("9000-01-01", "2262-06-01", "2019-01-01", "0001-01-01"):
        ask = f"SELECT id FROM structs WHERE at > timestamp'{at}' ORDER BY id"
        assert sql.embedded(ask) == sql.spark(ask), ask
    numbers = "SELECT id, s, _metadata.row_id FROM structs ORDER BY id"
    for change in ("DELETE FROM structs WHERE id = 1", "UPDATE structs SET s = 'z' WHERE id = 2", "OPTIMIZE structs"):
        sql.embedded(change)
        assert sql.embedded(numbers) == sql.spark(numbers), change
        assert sql.embedded("SELECT count(*) FROM structs") == [(3,)]
