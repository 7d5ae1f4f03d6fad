"""Tables that Spark makes and writes to, beside sessions that make, drop and rename what has their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from databricks.sql.exc import ServerOperationError

from tests.live.gateway import Server
from tests.live.processes import eventually
from tests.live.spark import Background, Sql
from tests.spark.test_running import COUNTED, SCAN, running

pytestmark = pytest.mark.spark

# A second or two.
SLOW = "SELECT sum(length(sha2(repeat(CAST(id AS STRING), 2000), 512))) AS n FROM range(0, 60000, 1, 2)"
ROWS = [(60000 * 128,)]


def _warehouse(server: Server) -> Path:
    return server.log.parent / "warehouse"


def _is_being_made(server: Server) -> bool:
    return any((_warehouse(server) / ".drafts").glob("*"))


@pytest.mark.parametrize("format_", ["", "USING parquet "])
def test_a_name_may_be_made_anew_after_any_end_of_its_table(sql: Sql, format_: str) -> None:
    sql.auto("DROP SCHEMA IF EXISTS anew CASCADE")
    sql.auto("CREATE SCHEMA anew")
    for end in ("DROP TABLE anew.t", "DROP SCHEMA anew CASCADE", "ALTER TABLE anew.t RENAME TO anew.u"):
        if format_ and "RENAME" in end:
            continue
        sql.spark(f"CREATE TABLE anew.t {format_}AS SELECT 1 AS a")
        sql.embedded(end)
        sql.auto("CREATE SCHEMA IF NOT EXISTS anew")
        sql.spark(f"CREATE TABLE IF NOT EXISTS anew.t {format_}AS SELECT 2 AS a")
        assert sql.spark("SELECT * FROM anew.t") == [(2,)]
        sql.embedded("DROP TABLE anew.t")
        sql.spark("CREATE VIEW anew.t AS SELECT 3 AS a")
        assert sql.spark("SELECT * FROM anew.t") == [(3,)]
        sql.embedded("DROP VIEW anew.t")
    sql.spark("CREATE TABLE anew.empty (a INT) USING csv")
    sql.spark("INSERT INTO anew.empty VALUES (1)")
    assert sql.spark("SELECT * FROM anew.empty") == [(1,)]
    sql.embedded("DROP SCHEMA anew CASCADE")


@pytest.mark.parametrize("format_", ["", "USING parquet "])
def test_what_is_made_or_dropped_while_spark_makes_a_table_stays_as_it_is(
    spark_server: Server, sql: Sql, format_: str
) -> None:
    assert sql.spark(COUNTED) == [(4950,)]
    for statement, look, rows, condition in (
        ("CREATE VIEW beside.t AS SELECT 1 AS v", "SELECT * FROM beside.t", [(1,)], "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE beside.t AS SELECT 2 AS v", "SELECT * FROM beside.t", [(2,)], "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("DROP SCHEMA beside CASCADE", "SHOW SCHEMAS LIKE 'beside'", [], "SCHEMA_NOT_FOUND"),
    ):
        sql.auto("CREATE SCHEMA beside")
        made = Background(spark_server, f"CREATE TABLE beside.t {format_}AS {SLOW}")
        eventually(lambda: _is_being_made(spark_server), 60)
        sql.embedded(statement)
        made.join(60)
        assert condition in str(made.error)
        made.close()
        assert sql.embedded(look) == rows
        assert not _is_being_made(spark_server)
        sql.auto("DROP SCHEMA IF EXISTS beside CASCADE")


def test_a_table_that_spark_writes_to_keeps_its_name(spark_server: Server, sql: Sql) -> None:
    sql.auto("CREATE TABLE held (n BIGINT)")
    written = Background(spark_server, f"INSERT INTO held {SCAN}")
    running(spark_server, written)
    for statement in ("DROP TABLE held", "DROP TABLE IF EXISTS held", "ALTER TABLE held RENAME TO moved"):
        with pytest.raises(ServerOperationError, match=r"WRITE_CONFLICT.*they have to end first"):
            sql.embedded(statement)
    written.cancel()
    written.close()
    sql.spark(f"INSERT INTO held {SLOW}")
    sql.embedded("ALTER TABLE held RENAME TO moved")
    sql.embedded("CREATE TABLE held (n STRING)")
    assert (sql.embedded("SELECT * FROM held"), sql.embedded("SELECT * FROM moved")) == ([], ROWS)
    sql.embedded("DROP TABLE moved")
    sql.embedded("DROP TABLE held")
