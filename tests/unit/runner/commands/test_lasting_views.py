"""Lasting views: names, columns, types and cycles as Spark 4.2 answers; what sessions share and what they do not."""

from __future__ import annotations

import os

import pytest

from gateway.catalog.base import TableName
from gateway.catalog.objects import StoredFunction, StoredTable
from gateway.errors import GatewayError
from gateway.runner import Runner
from gateway.sqltypes import INT, StructField, struct, varchar
from tests.unit.runner.session import Session


def refused(session: Session, text: str) -> GatewayError:
    """The error of a statement."""
    with pytest.raises(GatewayError) as caught:
        session.run(text)
    return caught.value


@pytest.fixture
def shop(session: Session) -> Session:
    """A session with a table ``t (id, name)`` and a view ``v`` of it."""
    session.run("CREATE TABLE t (id INT, name STRING)")
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    session.run("CREATE VIEW v AS SELECT id, name FROM t")
    return session


def test_every_session_reads_it_under_its_own_names(shop: Session, runner: Runner) -> None:
    other = Session(runner)
    assert sorted(other.rows("SELECT * FROM shop.v")) == [(1, "a"), (2, "b")]
    assert sorted(other.rows("SELECT main.shop.V.id FROM main.shop.V")) == [(1,), (2,)]
    other.run("CREATE TABLE IF NOT EXISTS default.t (other INT)")  # the view's t is that of its own schema
    assert sorted(other.rows("SELECT id FROM shop.v")) == [(1,), (2,)]
    other.run("DROP TABLE default.t")
    shop.run("INSERT INTO t VALUES (3, 'c')")
    assert other.rows("SELECT count(*) FROM shop.v") == [(3,)]


def test_names_columns_comments_and_properties(shop: Session) -> None:
    shop.run(
        "CREATE VIEW w (x COMMENT 'the id', y) COMMENT 'both' TBLPROPERTIES ('a' = 'b', c.d = 1) AS SELECT id, name FROM v"
    )
    assert shop.run("SELECT * FROM w WHERE x = 1").columns == [("x", "int", True), ("y", "string", True)]
    assert shop.rows("DESCRIBE w") == [("x", "int", "the id"), ("y", "string", None)]
    assert shop.rows("SHOW COLUMNS IN w") == [("x",), ("y",)]
    assert shop.rows("SHOW TBLPROPERTIES w") == [("a", "b"), ("c.d", "1")]
    details = {row[0]: row[1] for row in shop.rows("DESCRIBE TABLE EXTENDED w")[2:]}
    assert details["Type"] == "VIEW"
    assert details["View Text"] == "SELECT id, name FROM v"
    assert details["View Catalog and Namespace"] == "main.shop"
    assert details["View Query Output Columns"] == "[`id`, `name`]"
    assert shop.rows("SHOW CREATE TABLE w") == [
        (
            "CREATE VIEW main.shop.w (\n  x COMMENT 'the id',\n  y)\nCOMMENT 'both'\nTBLPROPERTIES (\n  'a' = 'b',\n"
            "  'c.d' = '1')\nWITH SCHEMA COMPENSATION\nAS SELECT id, name FROM v\n",
        )
    ]
    assert shop.rows("DESCRIBE w x") == [("col_name", "x"), ("data_type", "int"), ("comment", "the id")]


def test_lists_and_metadata_calls(shop: Session) -> None:
    shop.run("CREATE TEMPORARY VIEW temporary AS SELECT 1 AS a")
    assert shop.rows("SHOW TABLES") == [("shop", "t", False), ("shop", "v", False), ("", "temporary", True)]
    assert shop.rows("SHOW VIEWS") == [("shop", "v", False), ("", "temporary", True)]
    assert shop.rows("SHOW VIEWS IN shop LIKE 'x*'") == []
    shop.run("CREATE OR REPLACE VIEW v COMMENT 'seen' AS SELECT id FROM t")
    tables = shop.ask("tables", catalog="main", schema="shop").rows
    assert [row[:5] for row in tables] == [
        ("main", "shop", "t", "TABLE", ""),
        ("main", "shop", "v", "VIEW", "seen"),
    ]
    only = shop.ask("tables", catalog="main", schema="shop", table_types=("VIEW",)).rows
    assert [row[2] for row in only] == ["v"]
    columns = shop.ask("columns", catalog="main", schema="shop", table="v").rows
    assert [(row[3], row[5], row[17]) for row in columns] == [("id", "INT", "YES")]


def test_made_replaced_altered_and_dropped(shop: Session) -> None:
    assert refused(shop, "CREATE VIEW V AS SELECT 1 AS a").condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    shop.run("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS a")
    assert shop.rows("SELECT max(id) FROM v") == [(2,)]
    shop.run("CREATE OR REPLACE VIEW v COMMENT 'kept' TBLPROPERTIES ('k' = 'v') AS SELECT 1 AS a")
    assert shop.rows("SELECT * FROM v") == [(1,)]
    shop.run("ALTER VIEW v AS SELECT 2 AS b, 3 AS c")
    assert shop.run("SELECT * FROM v").columns == [("b", "int", False), ("c", "int", False)]
    assert shop.rows("SHOW TBLPROPERTIES v") == [("k", "v")]
    shop.run("DROP VIEW v")
    assert refused(shop, "SELECT * FROM v").condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert refused(shop, "DROP VIEW v").condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert refused(shop, "ALTER VIEW v AS SELECT 1 AS a").condition == "TABLE_OR_VIEW_NOT_FOUND"
    shop.run("DROP VIEW IF EXISTS v")


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        ("CREATE VIEW t AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
        ("CREATE OR REPLACE VIEW t AS SELECT 1 AS a", "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE", "42809"),
        ("ALTER VIEW t AS SELECT 1 AS a", "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE", "42809"),
        ("CREATE TABLE v (a INT)", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
        ("CREATE OR REPLACE TABLE v (a INT)", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809"),
        ("CREATE TABLE v AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
        ("INSERT INTO v VALUES (1, 'x')", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809"),
        ("DROP TABLE v", "WRONG_COMMAND_FOR_OBJECT_TYPE", "42809"),
        ("DROP TABLE IF EXISTS v", "WRONG_COMMAND_FOR_OBJECT_TYPE", "42809"),
        ("DROP VIEW t", "WRONG_COMMAND_FOR_OBJECT_TYPE", "42809"),
        ("SELECT * FROM v VERSION AS OF 1", "UNSUPPORTED_FEATURE", "0A000"),
        ("CREATE VIEW w AS SELECT id, name AS ID FROM t", "COLUMN_ALREADY_EXISTS", "42711"),
        (
            "CREATE VIEW w (x) AS SELECT id, name FROM t",
            "CREATE_VIEW_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
            "21S01",
        ),
        ("CREATE VIEW IF NOT EXISTS v AS SELECT * FROM nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("CREATE VIEW w AS SELECT * FROM nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("CREATE VIEW nope.w AS SELECT 1 AS a", "SCHEMA_NOT_FOUND", "42704"),
        ("CREATE VIEW samples.tpch.w AS SELECT 1 AS a", "PERMISSION_DENIED", "42501"),
        ("CREATE VIEW w AS SELECT :x AS a", "UNBOUND_SQL_PARAMETER", "42P02"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "42601"),
        ("CREATE VIEW w WITH SCHEMA EVOLUTION AS SELECT 1 AS a", "UNSUPPORTED_FEATURE", "0A000"),
        ("ALTER VIEW v SET LOCATION 'x'", "UNSUPPORTED_FEATURE", "0A000"),
        ("DROP SCHEMA shop", "SCHEMA_NOT_EMPTY", "2BP01"),
    ],
)
def test_refusals(shop: Session, text: str, condition: str, sqlstate: str) -> None:
    error = refused(shop, text)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)
    assert sorted(shop.rows("SELECT * FROM v")) == [(1, "a"), (2, "b")]
    assert shop.rows("SHOW VIEWS") == [("shop", "v", False)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM w",
        "SELECT (SELECT max(a) FROM w) AS a",
        "SELECT * FROM t WHERE id IN (SELECT a FROM w)",
        "WITH c AS (SELECT * FROM w) SELECT * FROM c",
    ],
)
def test_no_temporary_view_in_it(shop: Session, query: str) -> None:
    shop.run("CREATE TEMPORARY VIEW w AS SELECT 1 AS a")
    error = refused(shop, f"CREATE VIEW u AS {query}")
    assert (error.condition, error.sqlstate) == ("INVALID_TEMP_OBJ_REFERENCE", "42K0F")
    assert "`w`" in error.message
    assert "`main`.`shop`.`u`" in error.message


def test_a_later_temporary_view_is_not_seen_in_it(shop: Session) -> None:
    shop.run("CREATE TEMPORARY VIEW t AS SELECT 7 AS id, 'x' AS name")
    assert sorted(shop.rows("SELECT id FROM v")) == [(1,), (2,)]
    assert shop.rows("SELECT id FROM t") == [(7,)]
    shop.run("CREATE TEMPORARY VIEW v AS SELECT 8 AS id")  # hides the lasting one by its bare name only
    assert shop.rows("SELECT id FROM v") == [(8,)]
    assert sorted(shop.rows("SELECT id FROM shop.v")) == [(1,), (2,)]
    shop.run("DROP VIEW v")
    assert sorted(shop.rows("SELECT id FROM v")) == [(1,), (2,)]


def test_cycles_are_found_before_they_are_made(shop: Session) -> None:
    shop.run("CREATE VIEW w AS SELECT id, name FROM v")
    for text in (
        "CREATE OR REPLACE VIEW v AS SELECT * FROM v",
        "CREATE OR REPLACE VIEW v AS SELECT * FROM shop.w",
        "ALTER VIEW v AS SELECT * FROM (SELECT * FROM w)",
        "CREATE OR REPLACE VIEW v AS SELECT id, name FROM t WHERE id IN (SELECT id FROM main.shop.w)",
    ):
        error = refused(shop, text)
        assert (error.condition, error.sqlstate) == ("RECURSIVE_VIEW", "42K0H")
    assert sorted(shop.rows("SELECT * FROM w")) == [(1, "a"), (2, "b")]
    shop.run("CREATE SCHEMA IF NOT EXISTS annex")
    shop.run("CREATE OR REPLACE VIEW annex.v AS SELECT * FROM shop.v")  # the same last name is no cycle
    assert shop.rows("SELECT count(*) FROM annex.v") == [(2,)]
    shop.run("DROP SCHEMA annex CASCADE")


def test_columns_keep_their_types(shop: Session) -> None:
    shop.run("CREATE VIEW every AS SELECT * FROM t")
    shop.run("CREATE OR REPLACE TABLE t AS SELECT 9 AS added, '12' AS id, 'n' AS name")
    assert shop.run("SELECT * FROM every").columns == [("id", "int", True), ("name", "string", True)]
    assert shop.rows("SELECT * FROM every") == [(12, "n")]
    shop.run("CREATE OR REPLACE TABLE t AS SELECT 'no number' AS id, 'n' AS name")
    assert refused(shop, "SELECT * FROM every").condition == "CAST_INVALID_INPUT"
    shop.run("CREATE OR REPLACE TABLE t AS SELECT 1 AS id")
    error = refused(shop, "SELECT * FROM every")
    assert (error.condition, error.sqlstate) == ("INCOMPATIBLE_VIEW_SCHEMA_CHANGE", "51024")
    assert "column name cannot be resolved" in error.message
    shop.run("DROP TABLE t")
    assert refused(shop, "SELECT * FROM every").condition == "TABLE_OR_VIEW_NOT_FOUND"


def test_equal_names_in_its_query(shop: Session) -> None:
    shop.run("CREATE VIEW pairs (a, b) AS SELECT x.id, y.id FROM t x JOIN t y ON y.id = x.id + 1")
    assert shop.rows("SELECT a, b FROM pairs") == [(1, 2)]


def test_it_means_the_same_in_every_time_zone(shop: Session) -> None:
    shop.run("SET TIME ZONE 'America/New_York'")
    shop.run("CREATE VIEW noon AS SELECT TIMESTAMP'2024-01-01 12:00:00' AS at")
    shop.run("CREATE VIEW fixed AS SELECT 1 AS a")
    shop.run("SET TIME ZONE 'UTC'")
    assert refused(shop, "SELECT * FROM noon").condition == "UNSUPPORTED_FEATURE"
    assert shop.rows("SELECT * FROM fixed") == [(1,)]
    shop.run("SET TIME ZONE 'America/New_York'")
    assert shop.run("SELECT * FROM noon").columns == [("at", "timestamp", False)]


def test_a_view_is_explained_and_inserted_from(shop: Session) -> None:
    assert "Engine: datafusion" in shop.rows("EXPLAIN SELECT * FROM v")[0][0]
    shop.run("CREATE TABLE copy AS SELECT * FROM v")
    shop.run("INSERT INTO copy SELECT * FROM v")
    assert shop.rows("SELECT count(*) FROM copy") == [(4,)]


def test_functions_need_spark(shop: Session) -> None:
    error = refused(shop, "CREATE FUNCTION f(x INT) RETURNS INT RETURN x")
    assert error.condition == "UNSUPPORTED_FEATURE"
    assert "--spark" in error.message
    assert refused(shop, "DROP FUNCTION f").condition == "ROUTINE_NOT_FOUND"
    shop.run("DROP FUNCTION IF EXISTS f")


def test_tables_of_other_formats_need_spark(shop: Session) -> None:
    error = refused(shop, "CREATE TABLE p (a INT) USING parquet")
    assert error.condition == "UNSUPPORTED_FEATURE"
    assert "--spark" in error.message


def test_a_function_that_only_spark_runs_is_refused_by_name(shop: Session, runner: Runner) -> None:
    shop.run("CREATE TEMPORARY VIEW before AS SELECT 1 AS a")
    function = StoredFunction(TableName("main", "shop", "F"), "(x INT) RETURNS INT RETURN x", "main", "shop")
    assert runner.catalogs["main"].put(function, False)
    for text in (
        "SELECT f(1)",
        "SELECT shop.f(1)",
        "SELECT * FROM main.shop.F(1)",
        "EXPLAIN SELECT f(1)",
        "CREATE VIEW w AS SELECT f(1) AS a",
        "INSERT INTO t SELECT f(1), 'x'",
    ):
        if text.startswith("EXPLAIN"):
            assert "`main.shop.F`" in shop.rows(text)[0][0]
            continue
        error = refused(shop, text)
        assert error.condition == "UNSUPPORTED_FEATURE", text
        assert "--spark" in error.message
    assert refused(shop, "SELECT default.f(1)").condition == "UNRESOLVED_ROUTINE"
    assert shop.rows("SHOW USER FUNCTIONS") == [("main.shop.f",)]
    assert refused(shop, "DROP SCHEMA shop").condition == "SCHEMA_NOT_EMPTY"
    shop.run("DROP FUNCTION main.shop.f")
    assert refused(shop, "SELECT f(1)").condition == "UNRESOLVED_ROUTINE"


def test_a_table_of_another_format_is_described_and_dropped_without_spark(shop: Session, runner: Runner) -> None:
    catalog = runner.catalogs["main"]
    location = catalog.table_location("shop", "p")
    os.makedirs(location)
    columns = struct(StructField("a", INT), StructField("b", varchar(3), True, "text"))
    name = TableName("main", "shop", "p")
    stored = StoredTable(name, location, "csv", columns, ("b",), "(a INT) USING csv", "rows", {"k": "v"})
    assert catalog.put(stored, False)
    assert shop.rows("DESCRIBE p")[:2] == [("a", "int", None), ("b", "varchar(3)", "text")]
    details = {row[0]: row[1] for row in shop.rows("DESCRIBE EXTENDED p")}
    assert (details["Provider"], details["Comment"], details["Location"]) == ("csv", "rows", f"file:{location}")
    assert shop.rows("SHOW TBLPROPERTIES p") == [("k", "v")]
    assert shop.rows("SHOW TABLES LIKE 'p'") == [("shop", "p", False)]
    assert shop.ask("tables", catalog="main", schema="shop", table="p").rows[0][2:5] == ("p", "TABLE", "rows")
    assert [row[3] for row in shop.ask("columns", catalog="main", schema="shop", table="p").rows] == ["a", "b"]
    for text in ("SELECT * FROM p", "INSERT INTO p VALUES (1, 'x')", "CREATE OR REPLACE TABLE p (a INT)"):
        error = refused(shop, text)
        assert (error.condition, "csv" in error.message, "--spark" in error.message) == (
            "UNSUPPORTED_FEATURE",
            True,
            True,
        )
    assert refused(shop, "CREATE TABLE p (a INT)").condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert refused(shop, "CREATE VIEW p AS SELECT 1 AS a").condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    shop.run("DROP TABLE p")
    assert not os.path.exists(location)
    assert refused(shop, "SELECT * FROM p").condition == "TABLE_OR_VIEW_NOT_FOUND"


@pytest.mark.parametrize(
    ("column", "condition"),
    [
        ("ARRAY<INT>", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
        ("DATE", "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION"),
    ],
)
def test_a_type_that_no_cast_takes(session: Session, column: str, condition: str) -> None:
    session.run("CREATE TABLE changing (a INT, b STRING)")
    session.run("CREATE VIEW lasting AS SELECT * FROM changing")
    session.run(f"CREATE OR REPLACE TABLE changing (a {column}, b STRING)")
    with pytest.raises(GatewayError) as caught:
        session.run("SELECT b FROM lasting")
    assert caught.value.condition == condition
