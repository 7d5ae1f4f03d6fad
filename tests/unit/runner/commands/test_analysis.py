"""ANALYZE: what Spark tells of a Parquet table with the same rows, kept with the table and for that table alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError, ServerError
from tests.unit.runner.session import Session
from tests.unit.runner.written import folder_of

COLUMNS = (
    "i INT, s STRING, t TIMESTAMP, d DECIMAL(10,2), x DOUBLE, b BOOLEAN, bi BINARY, dt DATE, n TIMESTAMP_NTZ, e STRING, "
    "f FLOAT"
)
ROWS = """(1, 'ab', TIMESTAMP'2024-01-01 10:00:00', 1.5, 2.5D, true, X'0102', DATE'2024-01-01',
           TIMESTAMP_NTZ'2024-01-01 00:00:00.5', NULL, 1.5F),
          (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          (2, 'abcdeé', TIMESTAMP'2025-01-01 10:00:00', -1.5, -2.5D, false, X'01', DATE'2020-01-01',
           TIMESTAMP_NTZ'2023-01-01 00:00:00.5', NULL, double('nan'))"""
# As Spark 4.2 tells them: min, max, num_nulls, distinct_count, avg_col_len, max_col_len.
TOLD = {
    "i": ("1", "2", "0", "2", "4", "4"),
    "s": ("NULL", "NULL", "1", "2", "4", "6"),
    "t": ("2024-01-01 10:00:00.000000 -0500", "2025-01-01 10:00:00.000000 -0500", "1", "2", "8", "8"),
    "d": ("-1.50", "1.50", "1", "2", "8", "8"),
    "x": ("-2.5", "2.5", "1", "2", "8", "8"),
    "b": ("false", "true", "1", "2", "1", "1"),
    "bi": ("NULL", "NULL", "1", "2", "2", "2"),
    "dt": ("2020-01-01", "2024-01-01", "1", "2", "4", "4"),
    "n": ("2023-01-01 00:00:00.500000", "2024-01-01 00:00:00.500000", "1", "2", "8", "8"),
    "e": ("NULL", "NULL", "3", "0", "20", "20"),
    "f": ("1.5", "NaN", "1", "2", "4", "4"),
}
NOTHING = ("NULL",) * 6


@pytest.fixture
def filled(session: Session) -> Session:
    session.run("SET TIME ZONE 'America/New_York'")
    session.run(f"CREATE TABLE t ({COLUMNS})")
    session.run(f"INSERT INTO t VALUES {ROWS}")
    return session


def _of_column(session: Session, column: str, table: str = "t") -> tuple[str, ...]:
    rows = session.rows(f"DESCRIBE EXTENDED {table} {column}")
    assert [key for key, _ in rows[3:]] == [
        *("min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len", "histogram")
    ]
    assert rows[-1][1] == "NULL"
    return tuple(value for _, value in rows[3:-1])


def _of_table(session: Session, table: str = "t") -> str | None:
    return next((text for key, text, _ in session.rows(f"DESCRIBE EXTENDED {table}") if key == "Statistics"), None)


def _size(session: Session) -> int:
    ((size,),) = [(row[10],) for row in session.rows("DESCRIBE DETAIL t")]
    return int(size)


def test_columns_are_told_as_spark_tells_them(filled: Session) -> None:
    assert {name: _of_column(filled, name) for name in TOLD} == dict.fromkeys(TOLD, NOTHING)
    result = filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    assert (result.planned.statement_type, result.rows) == ("ANALYZE", [])
    assert {name: _of_column(filled, name) for name in TOLD} == TOLD
    assert _of_table(filled) == f"{_size(filled)} bytes, 3 rows"


def test_moments_are_told_in_the_zone_of_who_asks(filled: Session) -> None:
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS t")
    filled.run("SET TIME ZONE 'Asia/Kolkata'")
    assert _of_column(filled, "t")[:2] == ("2024-01-01 20:30:00.000000 +0530", "2025-01-01 20:30:00.000000 +0530")


def test_those_that_are_named_join_those_before(filled: Session) -> None:
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS I, s")
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS dt")
    known = {name for name in TOLD if _of_column(filled, name) != NOTHING}
    assert known == {"i", "s", "dt"}


def test_without_a_scan_rows_are_known_only_while_nothing_changes(filled: Session) -> None:
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    assert _of_table(filled) == f"{_size(filled)} bytes"
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS")
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    assert _of_table(filled) == f"{_size(filled)} bytes, 3 rows"
    filled.run("INSERT INTO t (i) VALUES (9)")
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    assert _of_table(filled) == f"{_size(filled)} bytes"


def test_they_are_told_as_json(filled: Session) -> None:
    def told() -> dict[str, Any] | None:
        ((text,),) = filled.rows("DESCRIBE EXTENDED t AS JSON")
        found: dict[str, Any] | None = json.loads(text).get("statistics")
        return found

    assert told() is None
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    assert told() == {"size_in_bytes": _size(filled)}
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS i")
    assert told() == {"size_in_bytes": _size(filled), "num_rows": 3}
    path = Path(folder_of(filled)).parent / "_objects" / "t.statistics.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "facts": {"bytes": "many"}}))
    with pytest.raises(ServerError) as caught:
        told()
    assert caught.value.condition == "CATALOG_FILE_CORRUPT"


def test_they_go_with_the_table(filled: Session) -> None:
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS i")
    filled.run("ALTER TABLE t RENAME TO u")
    assert (_of_column(filled, "i", "u"), _of_table(filled, "u")) != (NOTHING, None)
    filled.run("CREATE TABLE t (i INT)")
    assert (_of_column(filled, "i"), _of_table(filled)) == (NOTHING, None)
    filled.run("DROP TABLE u")
    filled.run("CREATE TABLE u (i INT)")
    assert (_of_column(filled, "i", "u"), _of_table(filled, "u")) == (NOTHING, None)


def test_a_table_whose_statistics_are_damaged_is_not_half_renamed(filled: Session) -> None:
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS")
    (Path(folder_of(filled)).parent / "_objects" / "t.statistics.json").write_text("no JSON")
    with pytest.raises(ServerError) as caught:
        filled.run("ALTER TABLE t RENAME TO u")
    assert caught.value.condition == "CATALOG_FILE_CORRUPT"
    assert filled.rows("SELECT count(*) FROM t") == [(3,)]
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS")
    filled.run("ALTER TABLE t RENAME TO u")
    assert (_of_table(filled, "u") or "").endswith(" 3 rows")


def test_all_tables_of_a_schema(filled: Session) -> None:
    filled.run("CREATE TABLE u AS SELECT id FROM range(10)")
    filled.run("CREATE VIEW v AS SELECT 1 AS x")
    filled.run("ANALYZE TABLES COMPUTE STATISTICS")
    assert (_of_table(filled) or "").endswith(" bytes, 3 rows")
    assert (_of_table(filled, "u") or "").endswith(" bytes, 10 rows")
    filled.run("ANALYZE TABLES IN shop COMPUTE STATISTICS NOSCAN")
    assert (_of_table(filled, "u") or "").endswith(" bytes, 10 rows")


def test_all_tables_of_a_schema_but_those_that_are_damaged(filled: Session) -> None:
    for name in ("a", "b", "u"):
        filled.run(f"CREATE TABLE {name} AS SELECT id FROM range(10)")
    for name in ("a", "b"):
        (Path(folder_of(filled)).parent / name / "_delta_log" / f"{1:020}.json").write_text("no JSON")
    with pytest.raises(GatewayError) as caught:
        filled.run("ANALYZE TABLES IN shop COMPUTE STATISTICS")
    assert caught.value.condition == "DELTA_LOG_CORRUPT"
    assert "of the table `a`: " in caught.value.message
    assert "Nor has it of `b` (DELTA_LOG_CORRUPT)." in caught.value.message
    assert caught.value.span is not None
    assert (_of_table(filled) or "").endswith(" bytes, 3 rows")
    assert (_of_table(filled, "u") or "").endswith(" bytes, 10 rows")


@pytest.mark.parametrize(
    "change",
    [
        {"columns": {"t": "no JSON"}},
        {"columns": {"t": "[]"}},
        {"columns": {"t": '{"min": 1}'}},
        {"columns": {"t": '{"min": "soon"}'}},
        {"columns": {"t": '{"min": "99999999999999999999999999"}'}},
        {"columns": {"t": "[" * 100_000}},
        {"columns": []},
        {"facts": 1},
    ],
    ids=repr,
)
def test_what_is_damaged_is_told_and_made_anew(filled: Session, change: dict[str, Any]) -> None:
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS t")
    path = Path(folder_of(filled)).parent / "_objects" / "t.statistics.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ServerError) as caught:
        filled.rows("DESCRIBE EXTENDED t t")
    assert caught.value.condition == "CATALOG_FILE_CORRUPT"
    assert filled.rows("SELECT count(*) FROM t") == [(3,)]
    filled.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS t")
    assert _of_column(filled, "t") == TOLD["t"]


def test_odd_names(session: Session) -> None:
    session.run("CREATE TABLE `a``b` (`c``d` INT, `e.f` STRING)")
    session.run("INSERT INTO `a``b` VALUES (1, 'x'), (NULL, 'yz')")
    session.run("ANALYZE TABLE `a``b` COMPUTE STATISTICS FOR COLUMNS `c``d`, `e.f`")
    assert _of_column(session, "`c``d`", "`a``b`") == ("1", "1", "1", "1", "4", "4")
    assert _of_column(session, "`e.f`", "`a``b`") == ("NULL", "NULL", "0", "2", "2", "2")


@pytest.mark.parametrize(
    ("statement", "condition", "sqlstate"),
    [
        ("ANALYZE TABLE nope COMPUTE STATISTICS", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("ANALYZE TABLE delta.`/data/t` COMPUTE STATISTICS", "UNSUPPORTED_FEATURE", "0A000"),
        ("ANALYZE TABLE samples.nyctaxi.trips COMPUTE STATISTICS", "PERMISSION_DENIED", "42501"),
        ("ANALYZE TABLE information_schema.tables COMPUTE STATISTICS", "PERMISSION_DENIED", "42501"),
        ("ANALYZE TABLES IN nope COMPUTE STATISTICS", "SCHEMA_NOT_FOUND", "42704"),
        ("ANALYZE TABLE v COMPUTE STATISTICS", "UNSUPPORTED_FEATURE.ANALYZE_VIEW", "0A000"),
        ("ANALYZE TABLE tv COMPUTE STATISTICS", "EXPECT_PERMANENT_VIEW_NOT_TEMP", "42809"),
        ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS zz", "COLUMN_NOT_FOUND", "42703"),
        ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS i, I", "COLUMN_ALREADY_EXISTS", "42711"),
        (
            "ANALYZE TABLE a COMPUTE STATISTICS FOR ALL COLUMNS",
            "UNSUPPORTED_FEATURE.ANALYZE_UNSUPPORTED_COLUMN_TYPE",
            "0A000",
        ),
        ("ANALYZE TABLE t COMPUTE STATISTICS foo", "INVALID_SQL_SYNTAX.ANALYZE_TABLE_UNEXPECTED_NOSCAN", "42000"),
        ("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN FOR ALL COLUMNS", "PARSE_SYNTAX_ERROR", "42601"),
        ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS", "PARSE_SYNTAX_ERROR", "42601"),
        ("ANALYZE TABLE t PARTITION (i = 1) COMPUTE STATISTICS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "0A000"),
    ],
)
def test_what_is_wrong_is_told(filled: Session, statement: str, condition: str, sqlstate: str) -> None:
    filled.run("CREATE VIEW v AS SELECT 1 AS x")
    filled.run("CREATE TEMPORARY VIEW tv AS SELECT 1 AS x")
    filled.run("CREATE TABLE a (x ARRAY<INT>)")
    with pytest.raises(GatewayError) as caught:
        filled.run(statement)
    assert (caught.value.condition, caught.value.sqlstate) == (condition, sqlstate)
    assert caught.value.span is not None
