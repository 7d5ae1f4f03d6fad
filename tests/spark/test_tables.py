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
            "DROP TABLE IF EXISTS source",  # a table that is replaced keeps its features
            f"CREATE TABLE source (a INT, n TIMESTAMP_NTZ, c CHAR(3)) TBLPROPERTIES ({MAPPED}, "
            "'delta.enableDeletionVectors' = 'true', 'delta.constraints.c' = 'a > 0')",
            f"CREATE TABLE {NAME} LIKE source",
            f"INSERT INTO {NAME} VALUES (1, NULL, 'x')",
        ),
        (f"INSERT INTO {NAME} VALUES (2, NULL, 'y'), (3, NULL, 'z')", f"DELETE FROM {NAME} WHERE a = 3"),
        [(1, None, "x  "), (2, None, "y  ")],
    ),
    "void": (
        (
            f"CREATE TABLE {NAME} AS SELECT 1 AS a, NULL AS b",
            f"INSERT INTO {NAME} VALUES (2, NULL), (3, NULL)",
            f"UPDATE {NAME} SET b = NULL, a = 4 WHERE a = 3",
            f"OPTIMIZE {NAME}",
        ),
        (
            f"INSERT INTO {NAME} VALUES (5, NULL)",
            f"DELETE FROM {NAME} WHERE a = 4",
            f"ALTER TABLE {NAME} ALTER COLUMN b TYPE INT",
            f"INSERT INTO {NAME} VALUES (6, 7)",
        ),
        [(1, None), (2, None), (5, None), (6, 7)],
    ),
    "renamed_and_dropped": (
        (
            f"CREATE TABLE {NAME} (a INT, b STRING, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<z: INT>>, p INT) "
            "PARTITIONED BY (p)",
            f"INSERT INTO {NAME} VALUES (1, 'x', named_struct('x', 1, 'y', 2), array(named_struct('z', 3)), 4)",
            f"ALTER TABLE {NAME} SET TBLPROPERTIES ({MAPPED})",
            f"ALTER TABLE {NAME} RENAME COLUMN a TO `a b`",
            f"ALTER TABLE {NAME} RENAME COLUMN s.x TO xx",
            f"ALTER TABLE {NAME} RENAME COLUMN l.element.z TO zz",
            f"ALTER TABLE {NAME} RENAME COLUMN p TO q",
            f"ALTER TABLE {NAME} DROP COLUMNS (b, s.y)",
            f"ALTER TABLE {NAME} ADD COLUMNS (b STRING AFTER q, s.y INT FIRST)",
        ),
        (
            f"INSERT INTO {NAME} (`a b`, q, b) VALUES (2, 5, 'y')",
            f"ALTER TABLE {NAME} RENAME COLUMN b TO c",
            f"ALTER TABLE {NAME} DROP COLUMN s.xx",
        ),
        [(1, {"y": None}, [{"zz": 3}], 4, None), (2, None, None, 5, "y")],
    ),
    "widened": (
        (
            f"CREATE TABLE {NAME} (a INT, b TINYINT, l ARRAY<INT>, p INT) PARTITIONED BY (p) "
            "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
            f"INSERT INTO {NAME} VALUES (1, 2, array(3), 4)",
            f"ALTER TABLE {NAME} ALTER COLUMN b TYPE DOUBLE",
            f"ALTER TABLE {NAME} ALTER COLUMN l.element TYPE BIGINT",
            f"ALTER TABLE {NAME} ALTER COLUMN p TYPE BIGINT",
        ),
        (
            f"INSERT INTO {NAME} VALUES (2, 2.5D, array(5000000000), 5000000000)",
            f"ALTER TABLE {NAME} ALTER COLUMN a TYPE BIGINT",
        ),
        [(1, 2.0, [3], 4), (2, 2.5, [5000000000], 5000000000)],
    ),
    "altered": (
        (
            f"CREATE TABLE {NAME} (a INT, b STRING, c INT) TBLPROPERTIES ({DEFAULTS})",
            f"ALTER TABLE {NAME} ALTER COLUMN b SET DEFAULT concat('x', 'y')",
            f"ALTER TABLE {NAME} ALTER COLUMN c AFTER a",
            f"ALTER TABLE {NAME} CLUSTER BY (a)",
            f"INSERT INTO {NAME} (a) VALUES (1)",
        ),
        (f"INSERT INTO {NAME} (a) VALUES (2)", f"OPTIMIZE {NAME}", f"ALTER TABLE {NAME} CLUSTER BY NONE"),
        [(1, None, "xy"), (2, None, "xy")],
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
