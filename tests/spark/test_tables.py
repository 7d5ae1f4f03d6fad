"""Tables that are made and altered here: Spark reads and writes them, and what it has written is read here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

NAME = "main.default.made"
DEFAULTS = "'delta.feature.allowColumnDefaults' = 'supported'"
MAPPED = "'delta.columnMapping.mode' = 'name'"
Rows = list[tuple[object, ...]]
# What is done here, what Spark does to the table then, and its rows at last (by the first column).
CASES: dict[str, tuple[Sequence[str], Sequence[str], Rows]] = {
    "defaults": (
        (f"CREATE TABLE {NAME} (a INT, b STRING DEFAULT concat('x', 'y') COMMENT 'c') TBLPROPERTIES ({DEFAULTS})",),
        (f"INSERT INTO {NAME} (a) VALUES (1)", f"INSERT INTO {NAME} VALUES (2, DEFAULT)"),
        [(1, "xy"), (2, "xy")],
    ),
    "generated": (
        (
            f"CREATE TABLE {NAME} (a INT NOT NULL, g INT GENERATED ALWAYS AS (a + 1)) PARTITIONED BY (g)",
            f"INSERT INTO {NAME} (a) VALUES (1)",
        ),
        (f"INSERT INTO {NAME} (a) VALUES (5)", f"UPDATE {NAME} SET a = 2 WHERE a = 1"),
        [(2, 3), (5, 6)],
    ),
    "checks": (
        (
            f"CREATE TABLE {NAME} (a INT, b STRING, CONSTRAINT small CHECK (a < 9))",
            f"INSERT INTO {NAME} VALUES (1, 'x')",
        ),
        (f"INSERT INTO {NAME} VALUES (2, 'y')",),
        [(1, "x"), (2, "y")],
    ),
    "clustered": (
        (
            f"CREATE TABLE {NAME} (`a b` INT, s STRUCT<x: STRING>) CLUSTER BY (`a b`, s.x) TBLPROPERTIES ({MAPPED})",
            f"INSERT INTO {NAME} VALUES (1, named_struct('x', 'y'))",
        ),
        (f"INSERT INTO {NAME} VALUES (2, NULL)", f"OPTIMIZE {NAME}", f"ALTER TABLE {NAME} CLUSTER BY (s.x)"),
        [(1, {"x": "y"}), (2, None)],
    ),
    "partitioned": (
        (f"CREATE TABLE {NAME} (a INT) PARTITIONED BY (p STRING, q DATE)", f"INSERT INTO {NAME} VALUES (1, 'x', NULL)"),
        (f"INSERT INTO {NAME} VALUES (2, NULL, NULL)",),
        [(1, "x", None), (2, None, None)],
    ),
    "like": (
        (
            f"CREATE OR REPLACE TABLE source (a INT, n TIMESTAMP_NTZ, c CHAR(3)) TBLPROPERTIES ({MAPPED}, "
            "'delta.enableDeletionVectors' = 'true', 'delta.constraints.c' = 'a > 0')",
            f"CREATE TABLE {NAME} LIKE source",
            f"INSERT INTO {NAME} VALUES (1, NULL, 'x')",
        ),
        (f"INSERT INTO {NAME} VALUES (2, NULL, 'y'), (3, NULL, 'z')", f"DELETE FROM {NAME} WHERE a = 3"),
        [(1, None, "x  "), (2, None, "y  ")],
    ),
    "replaced": (
        (
            f"CREATE TABLE {NAME} (a INT) CLUSTER BY (a) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
            f"INSERT INTO {NAME} VALUES (1), (2)",
            f"DELETE FROM {NAME} WHERE a = 1",
            f"CREATE OR REPLACE TABLE {NAME} TBLPROPERTIES ({MAPPED}) AS SELECT 1 AS `x y`, 2 AS z",
        ),
        (f"INSERT INTO {NAME} VALUES (3, 4)", f"DELETE FROM {NAME} WHERE z = 2"),
        [(3, 4)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_spark_reads_and_writes_what_is_made_here(sql: Sql, case: str) -> None:
    here, there, expected = CASES[case]
    sql.embedded(f"DROP TABLE IF EXISTS {NAME}")
    for text in here:
        sql.embedded(text)
    before = sql.embedded(f"SELECT * FROM {NAME} ORDER BY 1")
    assert sql.spark(f"SELECT * FROM {NAME} ORDER BY 1") == before
    for text in there:
        sql.spark(text)
    assert sql.spark(f"SELECT * FROM {NAME} ORDER BY 1") == expected
    assert sql.embedded(f"SELECT * FROM {NAME} ORDER BY 1") == expected
