"""USE, SET, RESET, SHOW, DESCRIBE and EXPLAIN: columns and rows as Spark 4.2 and Databricks answer, and every refusal.

Where the two differ in names (SHOW SCHEMAS, SHOW TABLES, DESCRIBE SCHEMA), Databricks' are meant.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.config.session import SESSION_SETTINGS
from gateway.errors import GatewayError, UnsupportedError, UserError
from gateway.runner import Runner
from tests.unit.runner.session import Session

TABLE = (
    "CREATE TABLE t (id INT NOT NULL COMMENT 'key', Name STRING, p DATE) "
    "PARTITIONED BY (p) COMMENT 'a table' TBLPROPERTIES ('k' = 'v', 'a.b' = 1)"
)
DESCRIBED = [("col_name", "string", False), ("data_type", "string", False), ("comment", "string", True)]
DESCRIBED_COLUMN = [("info_name", "string", False), ("info_value", "string", False)]
SET = [("key", "string", False), ("value", "string", False)]
TABLES = [("database", "string", False), ("tableName", "string", False), ("isTemporary", "boolean", False)]
T_ROWS: list[tuple[str, str, str | None]] = [
    ("id", "int", "key"),
    ("Name", "string", None),
    ("p", "date", None),
    ("# Partition Information", "", ""),
    ("# col_name", "data_type", "comment"),
    ("p", "date", None),
]


@pytest.fixture
def shop(session: Session) -> Session:
    """A session in a schema with a table and a temporary view."""
    session.run(TABLE)
    session.run("CREATE TEMPORARY VIEW tv AS SELECT 1 AS a, 'x' AS b")
    return session


def refused(session: Session, text: str) -> GatewayError:
    """The error of a statement, which leaves the session as it was."""
    before = session.state
    with pytest.raises(GatewayError) as caught:
        session.run(text)
    assert session.state == before
    return caught.value


# ------------------------------------------------------------------------------------------------------ SHOW, DESCRIBE


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("SHOW CATALOGS", [("catalog", "string", False)], [("main",), ("samples",)]),
        ("SHOW CATALOGS LIKE 's*'", [("catalog", "string", False)], [("samples",)]),
        ("SHOW SCHEMAS", [("databaseName", "string", False)], [("default",), ("shop",)]),
        ("SHOW DATABASES LIKE 'SH*|x'", [("databaseName", "string", False)], [("shop",)]),
        (
            "SHOW SCHEMAS IN samples",
            [("databaseName", "string", False)],
            [("delta_types",), ("nyctaxi",), ("tpch",)],
        ),
        ("SHOW TABLES", TABLES, [("shop", "t", False), ("", "tv", True)]),
        ("SHOW TABLES IN SHOP LIKE 'T'", TABLES, [("shop", "t", False)]),
        ("SHOW TABLES FROM main.shop 'nope'", TABLES, []),
        ("SHOW TABLES IN samples.tpch LIKE 'reg*'", TABLES, [("tpch", "region", False)]),
        (
            "SHOW VIEWS",
            [("namespace", "string", False), ("viewName", "string", False), ("isTemporary", "boolean", False)],
            [("", "tv", True)],
        ),
        (
            "SHOW VIEWS LIKE 'x*'",
            [("namespace", "string", False), ("viewName", "string", False), ("isTemporary", "boolean", False)],
            [],
        ),
        ("SHOW COLUMNS IN t", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN t IN shop", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN Shop.T IN shop", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN main.shop.t IN shop", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN tv", [("col_name", "string", False)], [("a",), ("b",)]),
        ("SHOW FUNCTIONS LIKE 'abs'", [("function", "string", False)], [("abs",)]),
        ("SHOW USER FUNCTIONS LIKE 'abs'", [("function", "string", False)], []),
        ("SHOW TBLPROPERTIES t", SET, [("a.b", "1"), ("k", "v")]),
        ("SHOW TBLPROPERTIES t ('k')", SET, [("k", "v")]),
        ("SHOW TBLPROPERTIES t (a.b)", SET, [("a.b", "1")]),
        ("SHOW TBLPROPERTIES t ('none')", SET, [("none", "Table main.shop.t does not have property: none")]),
        ("SHOW TBLPROPERTIES tv", SET, []),
        ("DESCRIBE TABLE t", DESCRIBED, T_ROWS),
        ("DESC main.shop.t", DESCRIBED, T_ROWS),
        ("DESCRIBE tv", DESCRIBED, [("a", "int", None), ("b", "string", None)]),
        ("DESCRIBE EXTENDED tv", DESCRIBED, [("a", "int", None), ("b", "string", None)]),
        (
            "DESCRIBE t NAME",
            DESCRIBED_COLUMN,
            [("col_name", "Name"), ("data_type", "string"), ("comment", "NULL")],
        ),
        ("DESCRIBE t t.id", DESCRIBED_COLUMN, [("col_name", "id"), ("data_type", "int"), ("comment", "key")]),
        ("DESCRIBE tv a", DESCRIBED_COLUMN, [("col_name", "a"), ("data_type", "int"), ("comment", "NULL")]),
        (
            "DESCRIBE EXTENDED t id",
            DESCRIBED_COLUMN,
            [
                ("col_name", "id"),
                ("data_type", "int"),
                ("comment", "key"),
                *(
                    (k, "NULL")
                    for k in ["min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len", "histogram"]
                ),
            ],
        ),
        (
            "DESCRIBE QUERY SELECT 1 AS a, 'x' AS b, CAST(NULL AS DECIMAL(10,2)) AS c",
            DESCRIBED,
            [("a", "int", None), ("b", "string", None), ("c", "decimal(10,2)", None)],
        ),
        ("DESCRIBE SELECT 1", DESCRIBED, [("1", "int", None)]),
    ],
)
def test_answers(shop: Session, text: str, columns: list[Any], rows: list[Any]) -> None:
    result = shop.run(text)
    assert result.columns == columns
    assert result.rows == rows
    assert result.planned.is_query
    assert not result.planned.writes
    assert result.finished.modified_rows is None


def test_describe_extended(shop: Session) -> None:
    rows = shop.rows("DESCRIBE TABLE EXTENDED t")
    assert rows[: len(T_ROWS)] == T_ROWS
    assert rows[len(T_ROWS) : len(T_ROWS) + 2] == [("", "", ""), ("# Detailed Table Information", "", "")]
    facts = {name: value for name, value, _ in rows[len(T_ROWS) + 2 :]}
    location = facts.pop("Location")
    assert location.startswith("file:/")
    assert location.endswith("/shop/t")
    assert facts == {
        "Catalog": "main",
        "Database": "shop",
        "Table": "t",
        "Type": "MANAGED",
        "Comment": "a table",
        "Provider": "delta",
        "Table Properties": "[a.b=1,k=v]",
    }


def test_describe_schema_and_catalog(shop: Session) -> None:
    result = shop.run("DESCRIBE SCHEMA EXTENDED SHOP")
    assert [c[0] for c in result.columns] == ["database_description_item", "database_description_value"]
    facts = dict(result.rows)
    assert facts.pop("Location").endswith("/shop")
    assert facts == {
        "Catalog Name": "main",
        "Namespace Name": "shop",
        "Comment": "things",
        "Owner": "",
        "Properties": "",
    }
    assert "Properties" not in dict(shop.rows("DESCRIBE DATABASE shop"))
    assert dict(shop.rows("DESCRIBE CATALOG samples"))["Catalog Name"] == "samples"


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        ("SHOW SCHEMAS IN nope", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("SHOW SCHEMAS IN main.shop", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("SHOW TABLES IN nope", "SCHEMA_NOT_FOUND", "42704"),
        ("SHOW TABLES IN nope.shop", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("SHOW VIEWS IN nope", "SCHEMA_NOT_FOUND", "42704"),
        ("SHOW FUNCTIONS IN nope LIKE 'abs'", "SCHEMA_NOT_FOUND", "42704"),
        ("SHOW COLUMNS IN nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("SHOW COLUMNS IN shop.t IN default", "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE", "42K05"),
        ("SHOW COLUMNS IN tv IN shop", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("SHOW TBLPROPERTIES nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("SHOW TABLES LIKE '[a-z]*'", "UNSUPPORTED_FEATURE", "0A000"),
        ("SHOW PARTITIONS t", "UNSUPPORTED_FEATURE", "0A000"),
        ("SHOW CREATE TABLE t", "UNSUPPORTED_FEATURE", "0A000"),
        ("SHOW TABLE EXTENDED LIKE 't'", "UNSUPPORTED_FEATURE", "0A000"),
        ("DESCRIBE nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("DESCRIBE t nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("DESCRIBE t other.id", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("DESCRIBE samples.delta_types.all_types c_struct.name", "UNSUPPORTED_FEATURE", "0A000"),
        ("DESCRIBE SCHEMA nope", "SCHEMA_NOT_FOUND", "42704"),
        ("DESCRIBE CATALOG nope", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("DESCRIBE QUERY SELECT nope", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703"),
        ("DESCRIBE HISTORY t", "UNSUPPORTED_FEATURE", "0A000"),
        ("DESCRIBE t AS JSON", "PARSE_SYNTAX_ERROR", "42601"),
        ("EXPLAIN SELECT nope", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703"),
    ],
)
def test_refusals(shop: Session, text: str, condition: str, sqlstate: str) -> None:
    error = refused(shop, text)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)


# -------------------------------------------------------------------------------------------------------------- EXPLAIN


def test_explain_names_engine_and_reason(shop: Session) -> None:
    result = shop.run("EXPLAIN SELECT id FROM t WHERE id > 3")
    assert result.columns == [("plan", "string", False)]
    ((plan,),) = result.rows
    assert plan.startswith("Engine: datafusion\nReason: ")
    assert "Physical Plan" in plan
    ((extended,),) = shop.rows("EXPLAIN EXTENDED SELECT id FROM t WHERE id > 3")
    assert "== Engine Text ==\nSELECT" in extended


def test_explain_tells_what_is_not_answered(session: Session) -> None:
    ((plan,),) = session.rows("EXPLAIN SELECT xpath('<a/>', 'a')")
    assert plan.startswith("Engine: none\nReason: [UNSUPPORTED")


def test_explain_changes_nothing(shop: Session) -> None:
    for text in (
        "CREATE TABLE made AS SELECT 1 AS a",
        "INSERT INTO t VALUES (1, 'x', DATE'2020-01-01')",
        "DROP TABLE t",
    ):
        assert shop.run(f"EXPLAIN {text}").rows
    assert shop.rows("SELECT count(*) FROM t") == [(0,)]
    assert shop.rows("SHOW TABLES LIKE 'made'") == []


# ------------------------------------------------------------------------------------------------------------------ USE


@pytest.mark.parametrize(
    ("text", "catalog", "schema"),
    [
        ("USE default", "main", "default"),
        ("USE SHOP", "main", "shop"),
        ("USE SCHEMA shop", "main", "shop"),
        ("USE DATABASE shop", "main", "shop"),
        ("USE main.shop", "main", "shop"),
        ("USE samples", "samples", "default"),
        ("USE Samples.TPCH", "samples", "tpch"),
        ("USE CATALOG samples", "samples", "default"),
        ("SET CATALOG samples", "samples", "default"),
    ],
)
def test_use(session: Session, text: str, catalog: str, schema: str) -> None:
    result = session.run(text)
    assert result.rows == []
    assert not result.planned.is_query
    assert (session.state.catalog, session.state.schema) == (catalog, schema)
    assert session.rows("SELECT current_catalog(), current_schema()") == [(catalog, schema)]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("USE nope", "SCHEMA_NOT_FOUND"),
        ("USE SCHEMA samples", "SCHEMA_NOT_FOUND"),
        ("USE main.nope", "SCHEMA_NOT_FOUND"),
        ("USE nope.shop", "NO_SUCH_CATALOG_EXCEPTION"),
        ("USE CATALOG nope", "NO_SUCH_CATALOG_EXCEPTION"),
    ],
)
def test_use_of_what_is_missing(session: Session, text: str, condition: str) -> None:
    error = refused(session, text)
    assert error.condition == condition
    assert "nope" in error.message or "samples" in error.message


def test_names_follow_use(shop: Session) -> None:
    shop.run("USE samples.tpch")
    assert shop.rows("SELECT count(*) FROM region") == [(5,)]
    assert refused(shop, "SELECT * FROM t").condition == "TABLE_OR_VIEW_NOT_FOUND"
    shop.run("USE CATALOG main")
    assert refused(shop, "SELECT * FROM t").condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert shop.rows("SELECT count(*) FROM shop.t") == [(0,)]


def test_a_dropped_current_schema(session: Session) -> None:
    session.run("DROP SCHEMA shop")
    assert session.rows("SELECT current_schema()") == [("shop",)]
    assert refused(session, "SHOW TABLES").condition == "SCHEMA_NOT_FOUND"
    assert refused(session, "CREATE TABLE t (a INT)").condition == "SCHEMA_NOT_FOUND"


# ----------------------------------------------------------------------------------------------------------- SET, RESET


def test_set_and_reset(session: Session) -> None:
    result = session.run("SET use_cached_result = FALSE")
    assert (result.columns, result.rows) == (SET, [("use_cached_result", "FALSE")])
    assert session.state.settings == {"use_cached_result": "false"}
    assert session.rows("SET USE_CACHED_RESULT") == [("USE_CACHED_RESULT", "false")]
    assert session.run("RESET use_cached_result").rows == []
    assert session.state.settings == {}
    assert session.rows("SET use_cached_result") == [("use_cached_result", "true")]
    session.run("SET statement_timeout = 5")
    session.run("SET TIME ZONE 'Asia/Tokyo'")
    session.run("RESET")
    assert session.state.settings == {}


def test_set_alone_lists_everything(session: Session) -> None:
    session.run("SET spark.sql.shuffle.partitions = 7")
    shown = dict(session.rows("SET"))
    assert set(shown) == {s.key for s in SESSION_SETTINGS} | {"spark.sql.shuffle.partitions"}
    assert shown["spark.sql.shuffle.partitions"] == "7"
    result = session.run("SET -v")
    assert [c[0] for c in result.columns] == ["key", "value", "meaning"]
    assert {r[0] for r in result.rows} == {s.key for s in SESSION_SETTINGS}


@pytest.mark.parametrize(
    ("text", "zone", "stored"),
    [
        ("SET TIME ZONE 'Europe/Berlin'", "Europe/Berlin", "Europe/Berlin"),
        ("SET TIME ZONE LOCAL", "UTC", "UTC"),
        ("SET TIME ZONE '+2'", "+2", "+02:00"),
        ("SET TIME ZONE INTERVAL 2 HOURS", "+02:00", "+02:00"),
        ("SET TIME ZONE INTERVAL '-02:30' HOUR TO MINUTE", "-02:30", "-02:30"),
        ("SET TIME ZONE INTERVAL '1:30:15' HOUR TO SECOND", "+01:30:15", "+01:30:15"),
    ],
)
def test_set_time_zone(session: Session, text: str, zone: str, stored: str) -> None:
    result = session.run(text)
    assert (result.columns, result.rows) == (SET, [("spark.sql.session.timeZone", zone)])
    assert session.state.settings == {"timezone": stored}
    assert session.rows("SELECT current_timezone()") == [(stored,)]
    for key in ("timezone", "spark.sql.session.timeZone"):
        assert session.rows(f"SET {key}") == [(key, stored)]


@pytest.mark.parametrize(
    ("text", "kind", "condition", "sqlstate"),
    [
        ("SET no_such_key = 1", UnsupportedError, "CONFIG_NOT_AVAILABLE", "42K0I"),
        ("SET spark.no.such = 1", UnsupportedError, "CONFIG_NOT_AVAILABLE", "42K0I"),
        ("SET spark.sql.warehouse.dir = /x", UnsupportedError, "CONFIG_NOT_AVAILABLE", "42K0I"),
        ("SET use_cached_result = maybe", UserError, "INVALID_CONF_VALUE.REQUIREMENT", "22022"),
        ("SET statement_timeout = -1", UserError, "INVALID_CONF_VALUE.REQUIREMENT", "22022"),
        ("SET TIME ZONE 'Mars'", UserError, "INVALID_CONF_VALUE.TIME_ZONE", "22022"),
        ("SET timezone = Mars", UserError, "INVALID_CONF_VALUE.TIME_ZONE", "22022"),
        *(
            (
                f"SET TIME ZONE INTERVAL {i}",
                UserError,
                "INVALID_INTERVAL_FORMAT.TIMEZONE_INTERVAL_OUT_OF_RANGE",
                "22006",
            )
            for i in ("'20' HOURS", "'1' YEAR", "'1' DAY", "1.5 SECONDS")
        ),
        *(
            (f"SET {s.key} = other", UnsupportedError, "UNSUPPORTED_FEATURE.SET_VALUE", "0A000")
            for s in SESSION_SETTINGS
            if s.fixed
        ),
        ("SET spark.sql.ansi.enabled = false", UnsupportedError, "UNSUPPORTED_FEATURE.SET_VALUE", "0A000"),
        ("SET x y z", UserError, "INVALID_SET_SYNTAX", "42000"),
    ],
)
def test_set_refusals(session: Session, text: str, kind: type, condition: str, sqlstate: str) -> None:
    error = refused(session, text)
    assert isinstance(error, kind)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)


def test_fixed_settings_may_be_set_to_what_they_are(session: Session) -> None:
    for setting in SESSION_SETTINGS:
        if setting.fixed:
            session.run(f"SET {setting.key} = {setting.default.upper()}")
    assert session.rows("SET ansi_mode") == [("ansi_mode", "true")]


def test_unknown_keys_read_and_reset(session: Session) -> None:
    assert session.rows("SET no_such_key") == [("no_such_key", "<undefined>")]
    assert session.run("RESET no_such_key").rows == []


def test_settings_matter(runner: Runner) -> None:
    session = Session(runner)
    session.run("SET TIME ZONE 'Asia/Tokyo'")
    assert session.rows("SELECT CAST(TIMESTAMP'2020-01-01 00:00:00Z' AS STRING)") == [("2020-01-01 09:00:00",)]
    session.run("SET spark.sql.groupByOrdinal = false")
    with pytest.raises(GatewayError):
        session.run("SELECT id % 2, count(*) FROM range(4) GROUP BY 1")
