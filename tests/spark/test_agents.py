"""What an agent asks to read is read on Spark, too, where it has to be; and nothing that Spark alone could run does more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.attacker import contents
from tests.live.agents import called, post
from tests.live.gateway import Server
from tests.live.spark import Sql

pytestmark = pytest.mark.spark


def ended(server: Server, query: str) -> Any:
    """The answer of the tool that reads, once it is there."""
    told = post(server, called("execute_sql_read_only", query=query))[1]["result"]
    while told["structuredContent"]["status"]["state"] in ("PENDING", "RUNNING"):
        identifier = told["structuredContent"]["statement_id"]
        told = post(server, called("poll_sql_result", statement_id=identifier))[1]["result"]
    return told


def test_what_the_embedded_engine_hands_over_is_read_on_spark(spark_server: Server, sql: Sql) -> None:
    sql.embedded("CREATE TABLE IF NOT EXISTS of_readers AS SELECT id FROM range(3)")
    before = contents(spark_server.warehouse)
    for query, rows in {
        "SELECT sum(id), try_to_number('7', '9') FROM of_readers TABLESAMPLE (100 PERCENT) REPEATABLE (1)": [
            ["3", "7"]
        ],
        "WITH a AS (SELECT id FROM of_readers TABLESAMPLE (100 PERCENT) REPEATABLE (1)) SELECT count(*) FROM a": [
            ["3"]
        ],
    }.items():
        assert "Engine: spark" in ended(spark_server, f"EXPLAIN {query}")["content"][0]["text"]
        told = ended(spark_server, query)
        assert told["isError"] is False, told
        found = told["structuredContent"]["result"]["data_array"]
        assert [[value.get("string_value") for value in row["values"]] for row in found] == rows
    assert contents(spark_server.warehouse) == before


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE of_writers USING parquet AS SELECT 1 AS x",
        "WITH a AS (SELECT 9 AS id) INSERT INTO of_readers SELECT * FROM a TABLESAMPLE (100 PERCENT) REPEATABLE (1)",
        "FROM of_readers INSERT INTO of_readers SELECT id INSERT INTO of_readers SELECT id",
        "BEGIN DECLARE x INT DEFAULT 1; INSERT INTO of_readers SELECT x; END",
        "DECLARE x INT DEFAULT 1",
        "ANALYZE TABLE of_readers COMPUTE STATISTICS",
        "CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1",
        "SELECT * FROM of_readers; DELETE FROM of_readers",
    ],
)
def test_what_only_spark_runs_is_refused_as_well(spark_server: Server, sql: Sql, query: str) -> None:
    sql.embedded("CREATE TABLE IF NOT EXISTS of_readers AS SELECT id FROM range(3)")
    before = contents(spark_server.warehouse)
    told = ended(spark_server, query)
    assert told["isError"] is True
    assert told["structuredContent"]["status"]["sql_state"] in ("25006", "42601")
    assert contents(spark_server.warehouse) == before
