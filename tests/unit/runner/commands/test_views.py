"""Temporary views: names, columns, zones and cycles as Spark 4.2 answers."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.worker_jobs import Parameter
from tests.unit.runner.session import Session


def refused(session: Session, text: str, *parameters: Parameter) -> GatewayError:
    """The error of a statement, which leaves the session as it was."""
    before = session.state
    with pytest.raises(GatewayError) as caught:
        session.run(text, *parameters)
    assert session.state == before
    return caught.value


def test_made_replaced_and_dropped(session: Session) -> None:
    result = session.run("CREATE TEMPORARY VIEW v AS SELECT 1 AS a")
    assert not result.planned.is_query
    assert result.rows == []
    assert refused(session, "CREATE TEMP VIEW V AS SELECT 2 AS a").condition == "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"
    session.run("CREATE OR REPLACE TEMPORARY VIEW V AS SELECT 2 AS a")
    assert session.rows("SELECT a FROM v") == [(2,)]
    assert session.rows("SELECT v.a FROM V") == [(2,)]
    session.run("DROP VIEW v")
    assert refused(session, "DROP VIEW v").condition == "TABLE_OR_VIEW_NOT_FOUND"
    session.run("DROP VIEW IF EXISTS v")


def test_given_columns(session: Session) -> None:
    session.run("CREATE TEMPORARY VIEW v (x, y) AS SELECT 1 AS a, 'b' AS b")
    result = session.run("SELECT * FROM v")
    assert result.columns == [("x", "int", False), ("y", "string", False)]
    assert result.rows == [(1, "b")]
    assert session.rows("DESCRIBE v") == [("x", "int", None), ("y", "string", None)]
    assert refused(session, "SELECT a FROM v").condition == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        ("CREATE TEMPORARY VIEW v AS SELECT 1 AS a, 2 AS A", "COLUMN_ALREADY_EXISTS", "42711"),
        ("CREATE TEMPORARY VIEW v (x, X) AS SELECT 1, 2", "COLUMN_ALREADY_EXISTS", "42711"),
        (
            "CREATE TEMPORARY VIEW v (x) AS SELECT 1, 2",
            "CREATE_VIEW_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
            "21S01",
        ),
        (
            "CREATE TEMPORARY VIEW v (x, y, z) AS SELECT 1, 2",
            "CREATE_VIEW_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
            "21S01",
        ),
        ("CREATE TEMPORARY VIEW v AS SELECT * FROM nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM v", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("CREATE TEMPORARY VIEW v AS SELECT :x AS a", "UNBOUND_SQL_PARAMETER", "42P02"),
        ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1 AS a", "UNSUPPORTED_FEATURE", "0A000"),
        ("CREATE TEMPORARY VIEW shop.v AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "42601"),
        ("DROP VIEW region", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("DROP VIEW samples.tpch.region", "WRONG_COMMAND_FOR_OBJECT_TYPE", "42809"),
        ("DROP VIEW IF EXISTS samples.tpch.region", "WRONG_COMMAND_FOR_OBJECT_TYPE", "42809"),
    ],
)
def test_refusals(session: Session, text: str, condition: str, sqlstate: str) -> None:
    error = refused(session, text)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)


def test_no_parameters_inside(session: Session) -> None:
    error = refused(session, "CREATE TEMPORARY VIEW v AS SELECT ? AS a", Parameter(None, "INT", "1"))
    assert error.condition == "UNSUPPORTED_FEATURE"


def test_a_view_shadows_a_table_of_its_name(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS id")
    session.run("CREATE TEMPORARY VIEW t AS SELECT 99 AS id")
    assert session.rows("SELECT id FROM t") == [(99,)]
    assert session.rows("SELECT id FROM shop.t") == [(1,)]
    error = refused(session, "INSERT INTO t VALUES (2)")
    assert (error.condition, error.sqlstate) == ("EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809")
    session.run("CREATE TABLE IF NOT EXISTS t (b INT)")
    session.run("DROP TABLE t")  # the view, as in Spark
    assert session.rows("SELECT id FROM t") == [(1,)]
    session.run("DROP TABLE t")
    assert refused(session, "SELECT id FROM t").condition == "TABLE_OR_VIEW_NOT_FOUND"


def test_a_table_may_be_made_behind_a_view(session: Session) -> None:
    session.run("CREATE TEMPORARY VIEW n AS SELECT 1 AS a")
    session.run("CREATE TABLE n (b INT)")
    assert session.rows("SELECT * FROM n") == [(1,)]
    assert session.rows("SELECT * FROM shop.n") == []


def test_a_view_keeps_the_names_that_it_was_made_under(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS id")
    session.run("CREATE TEMPORARY VIEW v AS SELECT * FROM t")
    session.run("USE samples.tpch")
    assert session.rows("SELECT * FROM v") == [(1,)]
    assert session.rows("DESCRIBE v") == [("id", "int", None)]
    session.run("USE main.shop")
    session.run("CREATE TEMPORARY VIEW t AS SELECT 99 AS other")
    assert session.rows("SELECT * FROM v") == [(1,)]
    assert session.rows("SHOW COLUMNS IN v") == [("id",)]
    session.run("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT id + 1 AS id FROM v")  # not a cycle: v means the table
    assert session.rows("SELECT * FROM t") == [(2,)]


def test_views_of_views(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS id")
    session.run("CREATE TEMPORARY VIEW a AS SELECT 10 AS id")
    session.run("CREATE TEMPORARY VIEW b AS SELECT id + 1 AS id FROM a")
    session.run(
        "CREATE TEMPORARY VIEW c AS SELECT x.id * 2 AS id FROM b AS x JOIN a USING (id) UNION ALL SELECT id FROM b"
    )
    assert session.rows("SELECT * FROM c") == [(11,)]
    session.run("CREATE OR REPLACE TEMPORARY VIEW a AS SELECT 20 AS id")
    assert session.rows("SELECT * FROM b") == [(21,)]
    session.run("CREATE TEMPORARY VIEW t AS SELECT 5 AS id")
    session.run("CREATE TEMPORARY VIEW w AS SELECT * FROM t")
    session.run("DROP VIEW t")
    assert session.rows("SELECT * FROM w") == [(1,)]  # Spark finds the table now
    session.run("DROP VIEW a")
    assert refused(session, "SELECT * FROM b").condition == "TABLE_OR_VIEW_NOT_FOUND"


@pytest.mark.parametrize("text", ["SELECT * FROM v2", "SELECT * FROM v1", "SELECT (SELECT max(a) FROM v2) AS a"])
def test_cycles_are_refused_when_they_are_made(session: Session, text: str) -> None:
    session.run("CREATE TEMPORARY VIEW v1 AS SELECT 1 AS a")
    session.run("CREATE TEMPORARY VIEW v2 AS SELECT a FROM v1 WHERE a IN (SELECT a FROM v1)")
    error = refused(session, f"CREATE OR REPLACE TEMPORARY VIEW v1 AS {text}")
    assert (error.condition, error.sqlstate) == ("RECURSIVE_VIEW", "42K0H")
    assert session.rows("SELECT * FROM v2") == [(1,)]


def test_depth_is_limited(session: Session) -> None:
    session.run("CREATE TEMPORARY VIEW v0 AS SELECT 1 AS a")
    for i in range(1, 101):
        session.run(f"CREATE TEMPORARY VIEW v{i} AS SELECT a FROM v{i - 1}")
    assert session.rows("SELECT a FROM v99") == [(1,)]
    assert refused(session, "SELECT a FROM v100").condition == "VIEW_EXCEED_MAX_NESTED_DEPTH"


def test_a_table_that_is_gone(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS id")
    session.run("CREATE TEMPORARY VIEW v AS SELECT * FROM t")
    session.run("INSERT INTO t VALUES (2)")
    assert session.rows("SELECT count(*) FROM v") == [(2,)]
    session.run("DROP TABLE t")
    assert refused(session, "SELECT * FROM v").condition == "TABLE_OR_VIEW_NOT_FOUND"


def test_current_schema_is_the_sessions(session: Session) -> None:
    session.run("CREATE TEMPORARY VIEW v AS SELECT current_schema() AS s, current_catalog() AS c")
    session.run("USE samples.tpch")
    assert session.rows("SELECT s, c FROM v") == [("tpch", "samples")]


@pytest.mark.parametrize(
    ("query", "depends"),
    [
        ("SELECT 1 AS a, DATE'2020-01-01' AS d, 'x' AS s", False),
        ("SELECT id FROM range(3) WHERE id > 1 UNION SELECT 5", False),
        ("SELECT r_name, count(*) AS n FROM samples.tpch.region GROUP BY r_name", False),
        ("SELECT TIMESTAMP'2020-01-01 00:00:00Z' AS ts", False),
        ("SELECT TIMESTAMP'2020-01-01 00:00:00' AS ts", True),
        ("SELECT CAST(tpep_pickup_datetime AS STRING) AS s FROM samples.nyctaxi.trips", True),
        ("SELECT hour(tpep_pickup_datetime) AS h FROM samples.nyctaxi.trips", True),
        ("SELECT current_timezone() AS z", True),
    ],
)
def test_a_view_is_not_read_in_another_zone_if_that_matters(session: Session, query: str, depends: bool) -> None:
    # Spark reads such views under the zone that was set when they were made.
    session.run("SET TIME ZONE 'Europe/Berlin'")
    session.run(f"CREATE TEMPORARY VIEW v AS {query}")
    session.run("CREATE TEMPORARY VIEW w AS SELECT * FROM v")
    before = session.rows("SELECT * FROM v ORDER BY 1 LIMIT 1")
    session.run("SET TIME ZONE 'Asia/Tokyo'")
    for view in ("v", "w"):
        if depends:
            error = refused(session, f"SELECT * FROM {view} ORDER BY 1 LIMIT 1")
            assert error.condition == "UNSUPPORTED_FEATURE"
            assert "Europe/Berlin" in error.message
        else:
            assert len(session.rows(f"SELECT * FROM {view} ORDER BY 1 LIMIT 1")) == 1
    session.run("SET TIME ZONE 'Europe/Berlin'")
    assert session.rows("SELECT * FROM v ORDER BY 1 LIMIT 1") == before


GONE, NARROW = "INCOMPATIBLE_VIEW_SCHEMA_CHANGE", "CANNOT_UP_CAST_DATATYPE"


@pytest.mark.parametrize(
    ("query", "columns", "outcome"),
    [
        ("SELECT * FROM t", "a INT, b STRING, c INT", [("a", "int", True), ("b", "string", True)]),
        ("SELECT * FROM t", "c INT, b STRING, a INT", [("a", "int", True), ("b", "string", True)]),
        ("SELECT * FROM t", "A INT, B STRING", [("a", "int", True), ("b", "string", True)]),
        ("SELECT * FROM t", "a SMALLINT, b STRING", [("a", "int", True), ("b", "string", True)]),
        ("SELECT * FROM t", "a INT NOT NULL, b DATE", [("a", "int", False), ("b", "string", True)]),
        ("SELECT a FROM t", "a INT", [("a", "int", True)]),
        ("SELECT * FROM t", "a INT", GONE),
        ("SELECT * FROM t", "a INT, z STRING", GONE),
        ("SELECT * FROM t", "a BIGINT, b STRING", NARROW),
        ("SELECT b FROM t", "a INT, b BINARY", [("b", "string", True)]),
        ("SELECT b FROM t", "a INT, b ARRAY<STRING>", NARROW),
        ("SELECT a FROM t", "a STRING, b STRING", NARROW),
        ("SELECT b, count(*) AS n, a + 1 AS z FROM t GROUP BY ALL", "a BIGINT, b STRING", NARROW),
        ("SELECT a AS z, * FROM t", "a INT, b STRING, z INT", GONE),
        ("SELECT CAST(a AS BIGINT) AS a FROM t", "a TIMESTAMP, b STRING", [("a", "bigint", True)]),
        ("SELECT array(coalesce(a, 0)) AS c FROM t", "a INT NOT NULL, b STRING", [("c", "array<int>", False)]),
        ("SELECT array(a) AS c FROM t", "a SMALLINT, b STRING", [("c", "array<int>", False)]),
        ("SELECT named_struct('x', a) AS c FROM t", "a DOUBLE, b STRING", NARROW),
        ("SELECT map(1, a) AS c FROM t", "a TINYINT, b STRING", [("c", "map<int,int>", False)]),
    ],
)
def test_a_view_keeps_its_columns(session: Session, query: str, columns: str, outcome: Any) -> None:
    session.run("CREATE TABLE t (a INT, b STRING)")
    session.run(f"CREATE TEMPORARY VIEW v AS {query}")
    session.run("CREATE TEMPORARY VIEW w AS SELECT * FROM v")
    described = session.rows("DESCRIBE v")
    session.run(f"CREATE OR REPLACE TABLE t ({columns})")
    for view in ("v", "w"):
        if isinstance(outcome, str):
            assert refused(session, f"SELECT 1 FROM {view}").condition == outcome
        else:
            assert session.run(f"SELECT * FROM {view}").columns == outcome
    assert session.rows("DESCRIBE v") == described


def test_a_view_finds_its_columns_by_name(session: Session) -> None:
    session.run("CREATE TABLE t (a INT, b STRING)")
    session.run("CREATE TEMPORARY VIEW v (p, q) AS SELECT * FROM t")
    session.run("CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, 7Y AS a")
    assert session.rows("SELECT q, p FROM v") == [("x", 7)]
    session.run("DROP TABLE t")
    assert session.rows("DESCRIBE v") == [("p", "int", None), ("q", "string", None)]


def test_what_may_be_null_by_now_does_not_fit_an_array_without(session: Session) -> None:
    session.run("CREATE TABLE t (a INT NOT NULL)")
    session.run("CREATE TEMPORARY VIEW v AS SELECT array(a) AS c FROM t")
    session.run("CREATE OR REPLACE TABLE t (a INT)")
    assert refused(session, "SELECT c FROM v").condition == NARROW


def test_odd_names(session: Session) -> None:
    session.run("CREATE TEMPORARY VIEW `a ``b``.c` AS SELECT 1 AS `x y`")
    session.run("CREATE TEMPORARY VIEW outer_view AS SELECT `x y` FROM `A ``B``.C`")
    assert session.rows("SELECT * FROM outer_view") == [(1,)]
    assert session.rows("DESCRIBE `a ``b``.c`") == [("x y", "int", None)]
