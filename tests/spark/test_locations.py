"""External tables: Spark reads and writes them by their names, where they lie."""

from __future__ import annotations

import pytest

from tests.live.gateway import Server
from tests.live.spark import Sql

pytestmark = pytest.mark.spark


def test_spark_reads_and_writes_an_external_table(sql: Sql, spark_server: Server) -> None:
    folder = spark_server.log.parent / "files" / "outside"
    for name in ("outside", "again"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded(f"CREATE TABLE outside LOCATION '{folder}' AS SELECT 1 AS a, 'x' AS b")
    sql.spark("INSERT INTO outside VALUES (2, 'y')")
    sql.spark("UPDATE outside SET b = 'z' WHERE a = 1")
    assert (
        sql.spark("SELECT * FROM outside ORDER BY a")
        == sql.embedded("SELECT * FROM outside ORDER BY a")
        == [(1, "z"), (2, "y")]
    )
    sql.spark("CREATE OR REPLACE TABLE outside (c INT)")
    sql.spark("INSERT INTO outside VALUES (7)")
    assert sql.embedded("SELECT * FROM outside") == [(7,)]
    sql.auto("DROP TABLE outside")
    sql.embedded(f"CREATE TABLE again LOCATION '{folder}'")
    assert sql.spark("SELECT * FROM again") == [(7,)]
    assert sql.spark("SELECT * FROM again VERSION AS OF 1 ORDER BY a") == [(1, "x"), (2, "y")]
