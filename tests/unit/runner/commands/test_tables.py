"""CREATE SCHEMA, CREATE TABLE, INSERT and DROP: answers, store assignment and refusals as Spark 4.2 gives them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from gateway.delta import commit
from gateway.errors import GatewayError, UnsupportedError
from tests.unit.runner.session import Session
from tests.unit.runner.written import folder_of, newest_info

AFFECTED = [("num_affected_rows", "bigint", True), ("num_inserted_rows", "bigint", True)]
WIDE = (
    "CREATE TABLE i (id INT NOT NULL, small SMALLINT, name STRING, d DECIMAL(5,2), ts TIMESTAMP, dt DATE, b BOOLEAN, "
    "v VARCHAR(3), arr ARRAY<INT>, st STRUCT<a: INT, b: STRING>, f FLOAT)"
)


@pytest.fixture
def shop(session: Session) -> Session:
    """A session with a narrow and a wide empty table and a view."""
    session.run("CREATE TABLE j (id INT, name STRING)")
    session.run(WIDE)
    session.run("CREATE TEMPORARY VIEW tv AS SELECT 1 AS a")
    return session


def refused(session: Session, text: str) -> GatewayError:
    """The error of a statement, which leaves session and warehouse as they were."""
    before = session.state, _warehouse(session)
    with pytest.raises(GatewayError) as caught:
        session.run(text)
    assert (session.state, _warehouse(session)) == before
    return caught.value


def _warehouse(session: Session) -> Any:
    """Names of all tables, their versions."""
    catalog = session.runner.catalogs["main"]
    tables = [(s, t) for s in catalog.schemas() for t in catalog.tables(s)]
    opened = [catalog.table(s, t) for s, t in tables]
    return catalog.schemas(), tables, [t.version for t in opened if t is not None]


def test_ddl_has_no_rows(session: Session) -> None:
    for text in (
        "CREATE SCHEMA IF NOT EXISTS shop",
        "CREATE TABLE t (a INT)",
        "CREATE TABLE IF NOT EXISTS t (b INT)",
        "CREATE OR REPLACE TABLE t (c INT)",
        "DROP TABLE t",
        "DROP TABLE IF EXISTS t",
        "DROP TABLE IF EXISTS nope.t",
        "DROP TABLE IF EXISTS nope.nope.t",
        "DROP SCHEMA IF EXISTS nope",
    ):
        result = session.run(text)
        assert result.rows == []
        assert not result.planned.is_query
        assert result.columns == [("Result", "string", True)]
        assert result.finished.modified_rows is None
    assert session.rows("SHOW TABLES") == []


def test_insert_counts_rows(shop: Session) -> None:
    result = shop.run("INSERT INTO j VALUES (1, 'a'), (2, NULL)")
    assert (result.columns, result.rows) == (AFFECTED, [(2, 2)])
    assert result.planned.writes
    assert result.planned.is_query
    assert result.finished.modified_rows == 2
    result = shop.run("INSERT INTO j SELECT 3, 'x' WHERE false")
    assert (result.rows, result.finished.modified_rows) == ([(0, 0)], 0)
    assert shop.rows("SELECT * FROM j ORDER BY id") == [(1, "a"), (2, None)]


def test_create_table_as_select(session: Session) -> None:
    result = session.run("CREATE TABLE t USING DELTA COMMENT 'c' AS SELECT id, 'x' AS s FROM range(3)")
    assert (result.columns, result.rows, result.finished.modified_rows) == (AFFECTED, [], 3)
    assert result.planned.writes
    rows = session.run("SELECT * FROM t ORDER BY id")
    assert rows.columns == [("id", "bigint", True), ("s", "string", True)]
    assert rows.rows == [(0, "x"), (1, "x"), (2, "x")]
    session.run("CREATE OR REPLACE TABLE t AS SELECT 1 AS one FROM t")
    assert session.rows("SELECT * FROM t") == [(1,), (1,), (1,)]
    session.run("CREATE TABLE IF NOT EXISTS t AS SELECT 2 AS two")
    assert session.rows("SELECT count(one) FROM t") == [(3,)]
    session.run("CREATE TABLE empty PARTITIONED BY (p) AS SELECT 1 AS a, 2 AS p WHERE false")
    assert session.rows("SELECT * FROM empty") == []


def test_columns_by_position_list_and_name(shop: Session) -> None:
    shop.run("INSERT INTO j (Name) VALUES ('only')")
    shop.run("INSERT INTO j (NAME, ID) VALUES ('listed', 2)")
    shop.run("INSERT INTO j BY NAME SELECT 'n' AS NAME, 5 AS id")
    shop.run("INSERT INTO j BY NAME SELECT 'm' AS name")
    shop.run("INSERT INTO TABLE shop.j SELECT id + 10, name FROM j WHERE id IS NOT NULL")
    assert shop.rows("SELECT * FROM j ORDER BY id NULLS FIRST, name") == [
        (None, "m"),
        (None, "only"),
        (2, "listed"),
        (5, "n"),
        (12, "listed"),
        (15, "n"),
    ]


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("small", "1.9", 1),
        ("small", "CAST(7 AS BIGINT)", 7),
        ("name", "2", "2"),
        ("name", "true", "true"),
        ("name", "DATE'2020-01-01'", "2020-01-01"),
        ("name", "X'6162'", "ab"),
        ("d", "1.239", Decimal("1.24")),
        ("d", "7", Decimal("7.00")),
        ("ts", "DATE'2020-01-01'", datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
        ("dt", "TIMESTAMP'2020-01-01 10:00:00'", datetime.date(2020, 1, 1)),
        ("v", "'ab '", "ab "),
        ("small", "'7'", 7),
        ("small", "true", 1),
        ("small", "TIMESTAMP'1970-01-01 00:01:00Z'", 60),
        ("name", "array(1)", "[1]"),
        ("ts", "'2020-01-01'", datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
        ("ts", "5", datetime.datetime(1970, 1, 1, 0, 0, 5, tzinfo=datetime.UTC)),
        ("dt", "'2023-09-06'", datetime.date(2023, 9, 6)),
        ("d", "'1.239'", Decimal("1.24")),
        ("b", "1", True),
        ("b", "'true'", True),
        ("arr", "array('4')", [4]),
        ("st", "named_struct('a', '1', 'b', true)", {"a": 1, "b": "true"}),
        ("arr", "array(1.5, NULL)", [1, None]),
        ("st", "named_struct('a', 1, 'b', 2)", {"a": 1, "b": "2"}),
        ("st", "named_struct('x', 1, 'y', 'z')", {"a": 1, "b": "z"}),
        ("f", "1e10", 1e10),
        ("f", "0.1", pytest.approx(0.1, rel=1e-6)),
        ("small", "NULL", None),
        ("st", "NULL", None),
    ],
)
def test_store_assignment(shop: Session, column: str, value: str, stored: Any) -> None:
    shop.run(f"INSERT INTO i (id, {column}) VALUES (1, {value})")
    assert shop.rows(f"SELECT {column} FROM i") == [(stored,)]


CAST = "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"
OVERFLOW = "CAST_OVERFLOW_IN_TABLE_INSERT"


@pytest.mark.parametrize(
    ("column", "value", "condition", "sqlstate"),
    [
        ("small", "X'31'", CAST, "42K09"),
        ("small", "DATE'2020-01-01'", "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION", "42K09"),
        ("b", "DATE'2020-01-01'", "DATATYPE_MISMATCH.CAST_WITH_CONF_SUGGESTION", "42K09"),
        ("arr", "1", CAST, "42K09"),
        ("arr", "array(array(1))", CAST, "42K09"),
        ("st", "named_struct('a', 1)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH", "42802"),
        ("st", "named_struct('a', 1, 'b', 'x', 'c', 2)", "DELTA_METADATA_MISMATCH", "42KDG"),
        ("ts", "'soon'", "CAST_INVALID_INPUT", "22018"),
        ("small", "'40000'", "CAST_INVALID_INPUT", "22018"),
        ("b", "'perhaps'", "CAST_INVALID_INPUT", "22018"),
        ("arr", "array('x')", "CAST_INVALID_INPUT", "22018"),
        ("d", "1234.5", OVERFLOW, "22003"),
        ("d", "'1234.5'", OVERFLOW, "22003"),
        ("d", "1e9", OVERFLOW, "22003"),
        ("arr", "array(3000000000)", OVERFLOW, "22003"),
        ("small", "40000", OVERFLOW, "22003"),
        ("small", "3e10", OVERFLOW, "22003"),
        ("small", "(SELECT max(id) + 40000 FROM range(3))", OVERFLOW, "22003"),
        ("v", "'four'", "DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001"),
        ("v", "'abc '", "DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001"),
        ("small", "CAST('x' AS INT)", "CAST_INVALID_INPUT", "22018"),
        ("small", "CAST(CAST(70000 AS BIGINT) AS TINYINT)", "CAST_OVERFLOW", "22003"),
    ],
)
def test_what_cannot_be_stored(shop: Session, column: str, value: str, condition: str, sqlstate: str) -> None:
    error = refused(shop, f"INSERT INTO i (id, {column}) SELECT 1, {value}")
    assert (error.condition, error.sqlstate) == (condition, sqlstate)
    if condition in (CAST, OVERFLOW):
        assert column in error.message
    assert shop.rows("SELECT count(*) FROM i") == [(0,)]


def test_one_bad_row_of_many_leaves_nothing(shop: Session) -> None:
    error = refused(shop, "INSERT INTO i (id, small) SELECT id, id FROM range(200000)")
    assert error.condition == OVERFLOW
    assert shop.rows("SELECT count(*) FROM i") == [(0,)]


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        ("INSERT INTO j VALUES (1)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH", "42802"),
        ("INSERT INTO j SELECT DATE'2020-01-01', 'a', 2", "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION", "42K09"),
        ("INSERT INTO j (id, name) VALUES (1)", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", "21S01"),
        ("INSERT INTO j (nope, id) VALUES (1)", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", "21S01"),
        ("INSERT INTO j (id, id) VALUES (1)", "COLUMN_ALREADY_EXISTS", "42711"),
        ("INSERT INTO j VALUES (1, 'a', 2)", "DELTA_METADATA_MISMATCH", "42KDG"),
        ("INSERT INTO j (id) VALUES (1, 2)", "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS", "21S01"),
        ("INSERT INTO j (id, nope) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("INSERT INTO j (id, ID) VALUES (1, 2)", "COLUMN_ALREADY_EXISTS", "42711"),
        ("INSERT INTO j BY NAME SELECT 'n' AS nome, 1 AS id", "DELTA_METADATA_MISMATCH", "42KDG"),
        ("INSERT INTO j BY NAME SELECT 1 AS id, 2 AS ID", "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA", "42711"),
        ("INSERT INTO i BY NAME SELECT 1 AS small", "DELTA_INSERT_COLUMN_MISMATCH", "42802"),
        ("INSERT INTO j SELECT DISTINCT id, DEFAULT FROM i", "UNSUPPORTED_FEATURE", "0A000"),
        ("INSERT INTO j SELECT 1, size(map())", "UNSUPPORTED_FEATURE", "0A000"),
        ("INSERT INTO j VALUES ()", "PARSE_SYNTAX_ERROR", "42601"),
        ("INSERT INTO nope VALUES (1)", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("INSERT INTO tv VALUES (1)", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809"),
        ("INSERT INTO j SELECT nope FROM j", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("INSERT INTO i (small) VALUES (1)", "DELTA_INSERT_COLUMN_MISMATCH", "42802"),
        ("INSERT INTO i (id) VALUES (NULL)", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502"),
        ("ALTER TABLE j ADD CONSTRAINT x UNIQUE (id)", "UNSUPPORTED_FEATURE", "0A000"),
        ("CREATE TABLE j (a INT)", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
        ("CREATE TABLE J AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
        ("CREATE TABLE nope.t (a INT)", "SCHEMA_NOT_FOUND", "42704"),
        ("CREATE TABLE nope.shop.t (a INT)", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("CREATE TABLE n (a INT, A INT)", "COLUMN_ALREADY_EXISTS", "42711"),
        ("CREATE TABLE n AS SELECT 1 AS a, 2 AS A", "COLUMN_ALREADY_EXISTS", "42711"),
        ("CREATE TABLE n AS SELECT NULL AS a", "UNSUPPORTED_DATATYPE", "0A000"),
        ("CREATE TABLE n AS SELECT INTERVAL '1' DAY AS a", "DELTA_UNSUPPORTED_DATA_TYPES", "0AKDC"),
        ("CREATE TABLE n AS SELECT 1 AS `a b`", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "42K05"),
        ("CREATE TABLE n AS SELECT * FROM nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("CREATE TABLE n AS SELECT 1 / 0 AS a", "DIVIDE_BY_ZERO", "22012"),
        ("CREATE TABLE n (a INT) PARTITIONED BY (b)", "COLUMN_NOT_DEFINED_IN_TABLE", "42703"),
        ("CREATE TABLE n (a INT) PARTITIONED BY (a)", "ALL_PARTITION_COLUMNS_NOT_ALLOWED", "KD005"),
        ("CREATE TABLE n (a INT, b INT) PARTITIONED BY (a, a)", "COLUMN_ALREADY_EXISTS", "42711"),
        ("CREATE TABLE n (a INT) LOCATION '/tmp/x'", "PATH_NOT_ALLOWED", "42501"),
        ("CREATE TABLE n (a INT) USING parquet", "UNSUPPORTED_FEATURE", "0A000"),
        ("CREATE TABLE n (a INT) TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')", None, None),
        ("CREATE TABLE `../n` (a INT)", "INVALID_IDENTIFIER", "42602"),
        ("CREATE TABLE delta.`/tmp/x` (a INT)", "UNSUPPORTED_FEATURE", "0A000"),
        ("CREATE SCHEMA shop", "SCHEMA_ALREADY_EXISTS", "42P06"),
        ("CREATE SCHEMA `default`", "SCHEMA_ALREADY_EXISTS", "42P06"),
        ("CREATE SCHEMA nope.x", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("CREATE SCHEMA x LOCATION '/tmp/x'", "UNSUPPORTED_FEATURE", "0A000"),
        ("DROP TABLE nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("DROP TABLE shop.tv", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("DROP SCHEMA nope", "SCHEMA_NOT_FOUND", "42704"),
        ("DROP SCHEMA shop", "SCHEMA_NOT_EMPTY", "2BP01"),
        ("DROP SCHEMA shop RESTRICT", "SCHEMA_NOT_EMPTY", "2BP01"),
        ("DROP SCHEMA default", "UNSUPPORTED_FEATURE", "0A000"),
        ("DROP CATALOG main", "UNSUPPORTED_FEATURE", "0A000"),
    ],
)
def test_refusals(shop: Session, text: str, condition: str | None, sqlstate: str | None) -> None:
    error = refused(shop, text)
    if condition is None:
        assert isinstance(error, UnsupportedError)
    else:
        assert (error.condition, error.sqlstate) == (condition, sqlstate)


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE samples.tpch.region",
        "DROP TABLE IF EXISTS samples.tpch.region",
        "INSERT INTO samples.tpch.region VALUES (9, 'x', 'y')",
        "CREATE TABLE samples.tpch.more (a INT)",
        "CREATE TABLE samples.tpch.more AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE samples.tpch.region (a INT)",
        "CREATE SCHEMA samples.more",
        "CREATE SCHEMA IF NOT EXISTS samples.tpch",
        "DROP SCHEMA samples.tpch CASCADE",
    ],
)
def test_samples_are_read_only(session: Session, text: str) -> None:
    error = refused(session, text)
    assert (error.condition, error.sqlstate) == ("PERMISSION_DENIED", "42501")
    assert session.rows("SELECT count(*) FROM samples.tpch.region") == [(5,)]


def test_schemas_come_and_go(session: Session) -> None:
    session.run("CREATE SCHEMA IF NOT EXISTS other COMMENT 'more'")
    session.run("CREATE TABLE other.t AS SELECT 1 AS a")
    session.run("CREATE TABLE other.u (a INT)")
    session.run("DROP SCHEMA Other CASCADE")
    assert session.rows("SHOW SCHEMAS LIKE 'other'") == []
    session.run("CREATE DATABASE other")
    assert session.rows("SHOW TABLES IN other") == []
    assert dict(session.rows("DESCRIBE SCHEMA other"))["Comment"] == ""
    session.run("DROP DATABASE other RESTRICT")


def test_a_statement_reads_one_version(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 2")
    session.run("INSERT INTO t SELECT x.a + y.a FROM t AS x CROSS JOIN t AS y")
    assert session.rows("SELECT count(*), sum(a) FROM t") == [(6, 15)]


@pytest.mark.rewrites
def test_tables_are_made_with_features_that_ask_nothing_of_writers(session: Session) -> None:
    """As SQLAlchemy makes all of its tables."""
    session.run(
        "CREATE TABLE f (a INT, b STRING) USING DELTA TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'enabled', 'k'='v')"
    )
    session.run("INSERT INTO f VALUES (1, 'x')")
    session.run("UPDATE f SET b = 'y'")
    detail = session.run("DESCRIBE DETAIL f")
    told = dict(zip((name for name, _, _ in detail.columns), detail.rows[0], strict=True))
    assert (told["minReaderVersion"], told["minWriterVersion"]) == (1, 7)
    assert told["tableFeatures"] == ["allowColumnDefaults", "appendOnly", "invariants"]
    assert told["properties"] == [("k", "v")]
    session.run(
        "CREATE OR REPLACE TABLE f (t TIMESTAMP_NTZ) TBLPROPERTIES ('delta.feature.allowcolumndefaults' = 'supported')"
    )
    detail = session.run("DESCRIBE DETAIL f")
    assert detail.rows[0][-3:] == (3, 7, ["allowColumnDefaults", "appendOnly", "invariants", "timestampNtz"])
    for value in ("'delta.feature.allowColumnDefaults' = 'no'", "'delta.feature.collations' = 'enabled'"):
        assert refused(session, f"CREATE TABLE g (a INT) TBLPROPERTIES ({value})").condition == "UNSUPPORTED_FEATURE"


def test_a_query_gives_a_table_its_columns_alone(session: Session) -> None:
    for columns, condition in (("(a INT)", "_LEGACY_ERROR_TEMP_0035"), ("(a)", "PARSE_SYNTAX_ERROR")):
        assert refused(session, f"CREATE TABLE n {columns} AS SELECT 1 AS a").condition == condition
    assert not session.runner.catalogs["main"].table("shop", "n")


def test_queries_that_stand_before_an_insert_are_read_by_it(session: Session) -> None:
    session.run("CREATE TABLE t (a INT, b INT)")
    session.run(
        "WITH x AS (SELECT 1 AS a, 2 AS b), y AS (SELECT * FROM x) INSERT INTO t SELECT b, a FROM y UNION ALL TABLE x"
    )
    assert session.rows("SELECT * FROM t ORDER BY a") == [(1, 2), (2, 1)]
    session.run("WITH x AS (SELECT 3 AS a) INSERT OVERWRITE t (a) SELECT * FROM x")
    assert session.rows("SELECT * FROM t") == [(3, None)]
    assert refused(session, "WITH x AS (SELECT nope) INSERT INTO t SELECT 1, 2").condition.startswith("UNRESOLVED")


def test_rows_made_of_the_tables_own_are_no_blind_append(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of another writer would have been read, too: a conflict, as with Delta."""
    session.run("CREATE TABLE t (a INT)")
    session.run("INSERT INTO t VALUES (1)")
    session.run("INSERT INTO t SELECT a + 1 FROM t")
    assert newest_info(session)["isBlindAppend"] is False
    session.run("INSERT INTO t VALUES (5)")
    assert newest_info(session)["isBlindAppend"] is True
    publish = commit.publish

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(commit, "publish", publish)
        session.run("INSERT INTO t VALUES (7)")
        publish(*arguments)

    for statement, condition in (
        ("INSERT INTO t SELECT a + 100 FROM t", "DELTA_CONCURRENT_APPEND"),
        (f"INSERT INTO t SELECT a + 100 FROM delta.`{folder_of(session)}`", "DELTA_CONCURRENT_APPEND"),
        ("INSERT INTO t SELECT 100", ""),
    ):
        monkeypatch.setattr(commit, "publish", late)
        if condition:
            with pytest.raises(GatewayError) as caught:
                session.run(statement)
            assert caught.value.condition.startswith(condition)
        else:
            session.run(statement)
    assert session.rows("SELECT * FROM t ORDER BY a") == [(1,), (2,), (5,), (7,), (7,), (7,), (100,)]


@pytest.mark.parametrize(
    "key", ["delta.targetFileSize", "delta.dataSkippingNumIndexedCols", "delta.checkpointInterval"]
)
def test_numbers_of_properties_have_an_end(session: Session, key: str) -> None:
    error = refused(session, f"CREATE TABLE t (a INT) TBLPROPERTIES ('{key}' = '{'1' * 5000}')")
    assert (error.condition, error.sqlstate) == ("UNSUPPORTED_FEATURE", "0A000")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("INSERT INTO t VALUES (1, map(), NULL)", [(1, [], None)]),
        ("INSERT INTO t VALUES (1, map(), map()), (2, NULL, map())", [(1, [], []), (2, None, [])]),
        ("INSERT INTO t VALUES (1, map('a', 1), map()), (2, map(), NULL)", [(1, [("a", 1.0)], []), (2, [], None)]),
        ("INSERT INTO t (n, id) SELECT map(), id FROM range(2)", [(0, None, []), (1, None, [])]),
        ("INSERT INTO t BY NAME SELECT map() AS n, 3 AS id", [(3, None, [])]),
        ("INSERT INTO t (id, m) SELECT 1, coalesce(NULL, map_concat(map(), map('a', 1.5D)))", [(1, [("a", 1.5)], None)]),
        ("INSERT INTO t SELECT id, CASE WHEN id > 0 THEN map('k', 2D) ELSE map() END, CAST(map() AS MAP<INT, ARRAY<STRING>>) "
         "FROM range(2)", [(0, [], []), (1, [("k", 2.0)], [])]),
        ("MERGE INTO t USING (SELECT 5 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, m) VALUES (id, map())",
         [(5, [], None)]),
    ],
)  # fmt: skip
def test_maps_without_entries(session: Session, text: str, stored: list[tuple[Any, ...]]) -> None:
    """They have the types of the columns that take them, as with Spark."""
    session.run("CREATE TABLE t (id INT, m MAP<STRING, DOUBLE>, n MAP<INT, ARRAY<STRING>>)")
    session.run(text)
    assert session.rows("SELECT * FROM t ORDER BY id") == stored
    session.run("UPDATE t SET m = map(), n = map()")
    assert session.rows("SELECT m, n FROM t") == [([], [])] * len(stored)
