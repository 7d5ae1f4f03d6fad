"""What belongs to a session: views, settings, parameters."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from tests.live.gateway import Connect, Server
from tests.live.spark import Background, Sql

pytestmark = pytest.mark.spark


def test_views_nested_replaced_and_dropped(sql: Sql) -> None:
    sql.auto("CREATE TEMPORARY VIEW inside AS SELECT 1 AS n")
    sql.auto("CREATE TEMPORARY VIEW outside AS SELECT n + 10 AS n FROM inside")
    assert sql.spark("SELECT n FROM outside") == [(11,)]
    sql.auto("CREATE OR REPLACE TEMPORARY VIEW inside AS SELECT 2 AS n")
    assert sql.spark("SELECT n FROM outside") == sql.embedded("SELECT n FROM outside") == [(12,)]
    sql.auto("DROP VIEW inside")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql.spark("SELECT n FROM inside")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql.spark("SELECT n FROM outside")


def test_a_view_over_a_table_that_is_made_anew(sql: Sql) -> None:
    sql.embedded("CREATE OR REPLACE TABLE under_view AS SELECT 1 AS n")
    sql.auto("CREATE TEMPORARY VIEW over_table AS SELECT n FROM under_view")
    assert sql.spark("SELECT * FROM over_table") == [(1,)]
    sql.embedded("DROP TABLE under_view")
    sql.embedded("CREATE TABLE under_view AS SELECT 5 AS n")
    assert sql.spark("SELECT * FROM over_table") == [(5,)]


@pytest.mark.parametrize("read_before", [False, True])
def test_a_view_keeps_the_columns_that_it_was_made_with(sql: Sql, read_before: bool) -> None:
    sql.embedded("CREATE OR REPLACE TABLE kept AS SELECT 1 AS n, 'x' AS s")
    sql.embedded("CREATE OR REPLACE TEMPORARY VIEW keeps AS SELECT * FROM kept")
    if read_before:
        assert sql.spark("SELECT * FROM keeps") == [(1, "x")]
    for columns, answer in (
        ("'new' AS a, 'y' AS s, 5Y AS n", [(5, "y")]),
        ("5L AS n, 'y' AS s", "CANNOT_UP_CAST_DATATYPE"),
        ("5 AS n", "INCOMPATIBLE_VIEW_SCHEMA_CHANGE"),
    ):
        sql.embedded(f"CREATE OR REPLACE TABLE kept AS SELECT {columns}")
        for run in (sql.embedded, sql.spark):
            if isinstance(answer, list):
                assert run("SELECT * FROM keeps") == answer
            else:
                with pytest.raises(Exception, match=answer):
                    run("SELECT n FROM keeps")


@pytest.mark.parametrize("order", ["hiding, reader", "reader, hiding"])
def test_a_view_that_hides_a_table_from_later_texts_only(sql: Sql, order: str) -> None:
    sql.embedded("CREATE OR REPLACE TABLE hiding AS SELECT 'table' AS x")
    sql.auto("CREATE TEMPORARY VIEW reader AS SELECT x AS y FROM hiding")
    sql.auto("CREATE TEMPORARY VIEW hiding AS SELECT 'view' AS x")
    for _ in range(2):
        for run in (sql.embedded, sql.spark):
            assert run(f"SELECT x, y FROM {order}") == [("view", "table")]
            assert run("SELECT x FROM hiding") == [("view",)]
            assert run("SELECT x FROM main.default.hiding") == [("table",)]
            assert run("SELECT y FROM reader") == [("table",)]


def test_a_view_made_under_another_catalog_and_schema(sql: Sql) -> None:
    sql.embedded("CREATE SCHEMA IF NOT EXISTS elsewhere")
    sql.embedded("CREATE OR REPLACE TABLE elsewhere.t AS SELECT 3 AS n")
    sql.auto("USE elsewhere")
    sql.auto("CREATE TEMPORARY VIEW from_elsewhere AS SELECT n FROM t")
    sql.auto("USE main.default")
    sql.auto("CREATE OR REPLACE TABLE t AS SELECT 4 AS n")
    assert sql.spark("SELECT v.n, t.n FROM from_elsewhere v, t") == [(3, 4)]
    sql.auto("USE CATALOG samples")
    assert sql.spark("SELECT n FROM from_elsewhere") == [(3,)]


def test_a_view_keeps_the_zone_that_it_was_made_under(sql: Sql) -> None:
    sql.auto("SET TIME ZONE 'America/New_York'")
    sql.auto("CREATE TEMPORARY VIEW zoned AS SELECT unix_timestamp(TIMESTAMP'2024-01-01 00:00:00') AS n")
    assert sql.spark("SELECT n FROM zoned") == [(1704085200,)]
    sql.auto("SET TIME ZONE 'UTC'")
    assert sql.spark("SELECT n FROM zoned") == [(1704085200,)]
    assert sql.spark("SELECT unix_timestamp(TIMESTAMP'2024-01-01 00:00:00')") == [(1704067200,)]


def test_two_sessions_with_views_of_one_name(spark_connect: Connect) -> None:
    first, second = Sql(spark_connect()), Sql(spark_connect())
    first.auto("CREATE TEMPORARY VIEW mine AS SELECT 1 AS n")
    second.auto("CREATE TEMPORARY VIEW mine AS SELECT 2 AS n")
    for _ in range(2):
        assert first.spark("SELECT n FROM mine") == [(1,)]
        assert second.spark("SELECT n FROM mine") == [(2,)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        Sql(spark_connect()).spark("SELECT n FROM mine")


def test_functions_that_another_session_changes(spark_connect: Connect) -> None:
    """What a session of Spark has looked up it would keep for ever."""
    first, second = Sql(spark_connect()), Sql(spark_connect())
    make = "CREATE OR REPLACE FUNCTION shared(n INT) RETURNS {} RETURN {}"
    first.auto(make.format("INT", "n + 1"))
    first.auto("CREATE OR REPLACE FUNCTION over_shared(n INT) RETURNS INT RETURN shared(n) * 10")
    second.auto("CREATE TEMPORARY FUNCTION passing(n INT) RETURNS INT RETURN shared(n) * 100")
    second.auto("CREATE TEMPORARY VIEW of_shared AS SELECT over_shared(1) AS n")
    second.auto("DECLARE VARIABLE kept INT DEFAULT 1")
    second.auto("SET VARIABLE kept = 7")
    asked = "SELECT shared(1), over_shared(1), passing(1), n, kept FROM of_shared"
    assert second.auto(asked) == [(2, 20, 200, 20, 7)]
    first.auto(make.format("INT", "n + 2"))
    assert second.auto(asked) == [(3, 30, 300, 30, 7)]
    first.auto("CREATE OR REPLACE FUNCTION over_shared(n INT) RETURNS INT RETURN 5")
    assert second.auto(asked) == [(3, 5, 300, 5, 7)]
    first.auto("DROP FUNCTION shared")
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        second.auto("SELECT shared(1)")
    # The new session cannot have what names it; the others are there, and a lasting function of its name is not meant.
    first.auto("CREATE OR REPLACE FUNCTION over_shared(n INT) RETURNS INT RETURN 6")
    first.auto("CREATE OR REPLACE FUNCTION passing(n INT) RETURNS INT RETURN 0")
    assert second.auto("SELECT over_shared(1), kept") == [(6, 7)]
    with pytest.raises(Exception, match="ROUTINE_NOT_FOUND"):
        second.auto("SELECT passing(1)")
    second.auto(make.format("STRING", "'another'"))
    assert first.auto("SELECT shared(1)") == second.auto("SELECT shared(1)") == [("another",)]
    first.auto("DROP FUNCTION shared")
    first.auto("CREATE FUNCTION shared(n INT) RETURNS TABLE (m INT) RETURN SELECT n + 9")
    assert second.auto("SELECT m FROM shared(1)") == [(10,)]
    for name in ("shared", "over_shared", "passing"):
        first.auto(f"DROP FUNCTION {name}")


def test_settings_of_the_session(sql: Sql) -> None:
    sql.auto("SET TIME ZONE 'Asia/Tokyo'")
    assert sql.spark("SELECT current_timezone(), hour(TIMESTAMP'2024-01-01 00:00:00Z')") == [("Asia/Tokyo", 9)]
    sql.auto("SET TIME ZONE 'UTC'")
    assert sql.spark("SELECT current_timezone()") == [("UTC",)]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql.spark("SELECT 1 / 0")
    assert sql.spark("SELECT user")[0][0] == sql.embedded("SELECT current_user()")[0][0]


def test_tuning_of_the_session(sql: Sql) -> None:
    partitions = "SELECT count(*) FROM (SELECT DISTINCT spark_partition_id() FROM range(100))"
    sql.auto("SET spark.sql.leafNodeDefaultParallelism = 3")
    assert sql.spark(partitions) == [(3,)]
    with pytest.raises(Exception, match=r"INVALID_CONF_VALUE.*leafNodeDefaultParallelism.*SQLSTATE"):
        sql.auto("SET spark.sql.leafNodeDefaultParallelism = many")
    assert sql.spark(partitions) == [(3,)]
    sql.auto("RESET spark.sql.leafNodeDefaultParallelism")
    assert sql.spark(partitions) == [(2,)]


PARAMETERS = [
    1,
    -(1 << 63),
    1.5,
    True,
    None,
    'it\'s \\ "😀" ? :p',
    Decimal("123.450"),
    datetime.date(1582, 10, 10),
    datetime.datetime(2024, 7, 1, 12, 0, 0, 123456),
    "%",
    "",
    12,
]


def test_twelve_parameters_of_every_type(sql: Sql) -> None:
    positional = "SELECT " + ", ".join("?" for _ in PARAMETERS)
    named = "SELECT " + ", ".join(f":p{i}" for i in reversed(range(len(PARAMETERS))))
    arguments = {f"p{i}": value for i, value in enumerate(PARAMETERS)}
    assert sql.spark(positional, *PARAMETERS) == sql.embedded(positional, *PARAMETERS)
    assert sql.spark(named, **arguments) == sql.embedded(named, **arguments)
    assert sql.spark("SELECT ?, '?', ? -- ?", 1, "a") == [(1, "?", "a")]
    with pytest.raises(Exception, match="UNBOUND_SQL_PARAMETER"):
        sql.spark("SELECT :nope", other=1)


def test_more_sessions_than_spark_keeps(spark_connect: Connect) -> None:
    connection = spark_connect()
    sql = Sql(connection)
    sql.auto("CREATE TEMPORARY VIEW kept AS SELECT 1 AS n")
    assert sql.spark("SELECT n FROM kept") == [(1,)]
    for i in range(70):  # another Spark session for each zone
        sql.auto(f"SET TIME ZONE '+{i // 10 % 10:02d}:{i % 10:02d}'")
        assert sql.spark("SELECT n FROM kept") == [(1,)]
    sql.auto("SET TIME ZONE 'UTC'")
    assert sql.spark("SELECT n FROM kept") == [(1,)]


def test_concurrent_statements_of_many_sessions(spark_server: Server) -> None:
    statements = [Background(spark_server, f"SELECT sum(id) + {i} FROM range(1000)") for i in range(12)]
    for i, statement in enumerate(statements):
        statement.close()
        assert statement.rows == [(499500 + i,)], statement.error


def test_settings_that_only_spark_honours(sql: Sql) -> None:
    sql.embedded("CREATE OR REPLACE TABLE honoured AS SELECT 1 AS aa, 2 AS ab, 3 AS c")
    sql.auto("CREATE OR REPLACE TEMPORARY VIEW strict AS SELECT CAST('7' AS INT) AS n")
    sql.auto("SET ANSI_MODE = false")
    sql.auto("SET spark.sql.parser.quotedRegexColumnNames = true")
    try:
        assert sql.auto("SELECT `a.*`, CAST('x' AS INT), n FROM honoured, strict") == [(1, 2, None, 7)]
        assert "only Spark honours" in sql.auto("EXPLAIN SELECT 1")[0][0]
        sql.auto("CREATE OR REPLACE TEMPORARY VIEW lax AS SELECT CAST('x' AS INT) AS n, strict.n AS m FROM strict")
        assert sql.auto("SELECT * FROM lax") == [(None, 7)]
        with pytest.raises(Exception, match="Making a temporary function under"):
            sql.auto("CREATE TEMPORARY FUNCTION passing() RETURNS INT RETURN 1")
        sql.auto("CREATE OR REPLACE VIEW lasting AS SELECT CAST('x' AS INT) AS n")
        sql.auto("CREATE OR REPLACE FUNCTION laxly() RETURNS INT RETURN CAST('x' AS INT)")
        sql.auto("RESET ANSI_MODE")
        assert sql.auto("SELECT * FROM lax") == [(None, 7)]
        assert sql.auto("SELECT laxly(), n FROM lasting") == [(None, None)]
        sql.auto("CREATE OR REPLACE FUNCTION strictly() RETURNS INT RETURN CAST('x' AS INT)")
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            sql.auto("SELECT strictly()")
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            sql.auto("SELECT CAST('x' AS INT) FROM honoured")
        with pytest.raises(Exception, match=r"which only Spark honours, but its gateway\.engine is datafusion"):
            sql.embedded("SELECT 1")
        sql.auto("RESET spark.sql.parser.quotedRegexColumnNames")
        sql.auto("SET spark.sql.legacy.nullInEmptyListBehavior = true")
        assert "only Spark honours" in sql.auto("EXPLAIN SELECT 1")[0][0]
        sql.auto("RESET SPARK.SQL.legacy.nullInEmptyListBehavior")
        assert "Engine: datafusion" in sql.auto("EXPLAIN SELECT 1")[0][0]
        with pytest.raises(Exception, match="CONFIG_NOT_AVAILABLE"):
            sql.auto("SET spark.sql.legacy.someCatalogPath = x")
    finally:
        sql.auto("RESET")
    assert sql.auto("SELECT 1") == [(1,)]
    assert "Engine: datafusion" in sql.auto("EXPLAIN SELECT 1")[0][0]


def test_explain_tells_the_engine_that_was_asked_for(sql: Sql) -> None:
    assert "Engine: spark" in sql.spark("EXPLAIN SELECT 1 AS x")[0][0]
    assert "Engine: datafusion" in sql.embedded("EXPLAIN SELECT 1 AS x")[0][0]


def test_the_log_tells_engine_and_reason(sql: Sql, spark_server: Server) -> None:
    sql.spark("SELECT 'for the log'")
    sql.auto("SELECT xpath_string('<a>b</a>', 'a')")
    sql.embedded("SELECT 'and this'")  # what was before is closed, and logged
    log = spark_server.log.read_text()
    assert 'engine=spark reason="gateway.engine is spark"' in log
    assert 'engine=spark reason="The function `xpath_string` is not supported by the embedded engine"' in log


def test_variables_of_nested_types(sql: Sql) -> None:
    sql.auto("SET TIME ZONE 'America/Los_Angeles'")
    try:
        sql.auto("DECLARE OR REPLACE VARIABLE m MAP<STRING, DOUBLE> DEFAULT map('a', 5.1, 'b', NULL)")
        sql.auto(
            "DECLARE OR REPLACE VARIABLE st STRUCT<a: INT, `b c`: ARRAY<DATE>, d: DECIMAL(5,2), e: BINARY, f: TIMESTAMP, "
            "g: ARRAY<INT>> DEFAULT named_struct('a', 1, 'b c', array(DATE'2020-01-02', NULL), 'd', 1.5, 'e', X'00FF', "
            "'f', TIMESTAMP'2020-01-01 00:00:00.5', 'g', array())"
        )
        sql.auto("DECLARE OR REPLACE VARIABLE b BINARY DEFAULT X'01'")
        sql.auto("CREATE OR REPLACE TEMPORARY VIEW of_variables AS SELECT m['a'] AS a, hex(b) AS b FROM range(1)")
        sql.auto("SET TIME ZONE 'UTC'")
        shown = sql.auto("SELECT m, size(st.g), to_json(st) FROM range(1)")
        text = '{"a":1,"b c":["2020-01-02",null],"d":1.50,"e":"AP8=","f":"2020-01-01T08:00:00.500Z","g":[]}'
        assert shown == [([("a", 5.1), ("b", None)], 0, text)]
        assert sql.auto("SELECT * FROM of_variables") == [(5.1, "01")]
        with pytest.raises(Exception, match="A variable of type VARIANT"):
            sql.auto("DECLARE OR REPLACE VARIABLE v VARIANT DEFAULT parse_json('1')")
    finally:
        sql.auto("RESET")


def test_a_script_sets_the_variables_of_its_session(sql: Sql) -> None:
    sql.auto("DECLARE OR REPLACE VAR counted INT = 1")
    try:
        assert sql.auto("BEGIN SET counted = 5; SELECT counted + 1; END") == [(6,)]
        sql.auto("SET TIME ZONE 'Asia/Tokyo'")  # another session of Spark, to which the variables are told
        assert sql.auto("SELECT counted") == [(5,)]
        sql.auto("BEGIN SET counted = 7; END")
        sql.auto("SET TIME ZONE 'UTC'")
        assert sql.auto("SELECT counted") == [(7,)]
    finally:
        sql.auto("DROP TEMPORARY VAR counted")
        sql.auto("RESET")
    with pytest.raises(Exception, match="42703"):
        sql.auto("SELECT counted")
