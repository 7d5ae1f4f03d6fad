"""Columns that a table computes itself: generated from others, or by default where a row gives none, as Delta does."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from gateway.delta import commit, log
from gateway.errors import UnsupportedError
from tests.unit.runner.session import Session, refused

_METADATA = {
    "s": {"CURRENT_DEFAULT": "concat('x', 'y')"},
    "g": {"delta.generationExpression": "CAST(id AS BIGINT) + 1"},
    "d": {"delta.generationExpression": "CAST(t AS DATE)"},
}
_PROTOCOL = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["allowColumnDefaults", "appendOnly", "generatedColumns", "invariants"],
}
_TIME = "TIMESTAMP'2020-01-02 03:04:05'"
_DAY = dt.date(2020, 1, 2)


@pytest.fixture(params=["", "PARTITIONED BY (d)"])
def generated(session: Session, request: pytest.FixtureRequest) -> Session:
    """``t`` with a column that has a default and two that are generated, and two rows."""
    session.run(f"CREATE TABLE t (id INT, s STRING, g BIGINT, d DATE, t TIMESTAMP) {request.param}")
    folder = session.runner.catalogs["main"].table_location("shop", "t")
    (metadata,) = [a["metaData"] for a in log.actions(folder, 0) if "metaData" in a]
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        field["metadata"] = _METADATA.get(field["name"], {})
    changed = {**metadata, "schemaString": json.dumps(schema)}
    commit.publish(folder, 1, [commit.info_action("X", {}, {}, False), {"protocol": _PROTOCOL}, {"metaData": changed}])
    session.run(f"INSERT INTO t (id, t) VALUES (1, {_TIME}), (2, NULL)")
    return session


def _rows(session: Session) -> list[tuple[Any, ...]]:
    return session.rows("SELECT id, s, g, d FROM t ORDER BY id")


_FIRST, _SECOND = (1, "xy", 2, _DAY), (2, "xy", 3, None)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO t (t, id) SELECT NULL, 7", [_FIRST, _SECOND, (7, "xy", 8, None)]),
        (f"INSERT INTO t BY NAME SELECT 8 AS id, 'z' AS s, {_TIME} AS t", [_FIRST, _SECOND, (8, "z", 9, _DAY)]),
        ("INSERT INTO t VALUES (9, NULL, 10, NULL, NULL)", [_FIRST, _SECOND, (9, None, 10, None)]),
        ("INSERT OVERWRITE t (id, t) VALUES (3, NULL)", [(3, "xy", 4, None)]),
        ("UPDATE t SET id = id + 10", [(11, "xy", 12, _DAY), (12, "xy", 13, None)]),
        (f"UPDATE t SET t = {_TIME}, g = 3 WHERE id = 2", [_FIRST, (2, "xy", 3, _DAY)]),
        ("DELETE FROM t WHERE g = 2", [_SECOND]),
        (
            "MERGE INTO t USING (SELECT * FROM VALUES (2, 'm'), (6, 'n') v(i, q)) q ON t.id = q.i WHEN MATCHED THEN "
            "UPDATE SET id = 5 WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.i, q.q)",
            [_FIRST, (5, "xy", 6, None), (6, "n", 7, None)],
        ),
        ("OPTIMIZE t", [_FIRST, _SECOND]),
    ],
)
def test_they_are_computed(generated: Session, statement: str, rows: list[tuple[Any, ...]]) -> None:
    generated.run(statement)
    assert _rows(generated) == rows


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("INSERT INTO t VALUES (9, 's', 11, NULL, NULL)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        ("UPDATE t SET g = 7", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        ("INSERT INTO t (id) VALUES (9)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t VALUES (9, 's')", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("UPDATE t SET s = DEFAULT || 'a'", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t (id, s, t) VALUES (9, DEFAULT || 'a', NULL)", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t (id, g, t) VALUES (9, DEFAULT, NULL)", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t (id, t) VALUES (99999999999, NULL)", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("INSERT INTO t (id, t) VALUES ('x', NULL)", "CAST_INVALID_INPUT"),
        ("INSERT INTO t SELECT DISTINCT id, DEFAULT, g, d, t FROM t", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t (id, s) SELECT max(id), DEFAULT FROM t", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t (id, s) SELECT id, DEFAULT AS s FROM t", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t (id, s) WITH r AS (SELECT 1 AS a) SELECT a, DEFAULT FROM r", "UNSUPPORTED_FEATURE"),
        (
            "MERGE INTO t USING (SELECT 9 AS i) q ON t.id = q.i WHEN NOT MATCHED THEN INSERT (id, g) VALUES (q.i, DEFAULT)",
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        ),
        (
            "MERGE INTO t USING (SELECT 1 AS i) q ON t.id = q.i WHEN MATCHED AND t.g > 5 THEN UPDATE SET g = 2 "
            "WHEN MATCHED THEN UPDATE SET id = 5",
            "UNSUPPORTED_FEATURE",
        ),
    ],
)
def test_what_is_wrong_or_not_proved(generated: Session, statement: str, condition: str) -> None:
    error = refused(generated, statement)
    assert error.condition == condition
    assert isinstance(error, UnsupportedError) == (condition == "UNSUPPORTED_FEATURE")
    assert _rows(generated) == [_FIRST, _SECOND]


def test_they_are_computed_of_what_the_table_holds(session: Session) -> None:
    """Not of what was given: of 3.7 in an INT column, of 3. As Delta with Spark answers each of these."""
    session.run(
        "CREATE TABLE k (id INT, h DOUBLE GENERATED ALWAYS AS (id / 2), s STRING GENERATED ALWAYS AS (CAST(id AS STRING)))"
    )
    for given in ("(id) VALUES (3.7)", "(id) VALUES (3L)", "(id) VALUES ('5')", "BY NAME SELECT 6.9D AS id"):
        session.run(f"INSERT INTO k {given}")
    rows = [(3, 1.5, "3"), (3, 1.5, "3"), (5, 2.5, "5"), (6, 3.0, "6")]
    assert session.rows("SELECT * FROM k ORDER BY id") == rows
    session.run(
        "CREATE TABLE x (a DECIMAL(10,2), n STRING GENERATED ALWAYS AS (CAST(a AS STRING)), s STRUCT<b: BIGINT>, "
        "m BIGINT NOT NULL GENERATED ALWAYS AS (s.b + 1))"
    )
    session.run("INSERT INTO x (s, a) VALUES (named_struct('b', 1), 1.555), (named_struct('b', 2), 1)")
    assert session.rows("SELECT a, n, m FROM x ORDER BY m") == [
        (Decimal("1.56"), "1.56", 2),
        (Decimal("1.00"), "1.00", 3),
    ]
    assert refused(session, "INSERT INTO x (s, a) VALUES (NULL, 1)").condition == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    session.run("CREATE TABLE e (ts TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(ts AS DATE))) PARTITIONED BY (d)")
    for given in ("'2020-01-05 23:00:00'", "DATE'2021-01-05'"):
        session.run(f"INSERT INTO e (ts) VALUES ({given})")
    session.run("INSERT OVERWRITE e (ts) SELECT string(ts + INTERVAL '2' HOUR) FROM e")
    assert session.rows("SELECT d FROM e ORDER BY d") == [(dt.date(2020, 1, 6),), (dt.date(2021, 1, 5),)]


def test_they_are_computed_of_columns_that_are_left_out_before_them(session: Session) -> None:
    """Of those behind them, which Delta with Spark fills in later, it is an error there, too."""
    session.run(
        "CREATE TABLE k (a INT DEFAULT 5, n INT, g INT GENERATED ALWAYS AS (a + 1), h INT GENERATED ALWAYS AS (n + 1), "
        "l INT GENERATED ALWAYS AS (z + 1), z INT) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    session.run("INSERT INTO k (z) VALUES (1)")
    session.run("INSERT INTO k BY NAME SELECT 2L AS z, 7S AS n")
    assert session.rows("SELECT * FROM k ORDER BY z") == [(5, None, 6, None, 2, 1), (5, 7, 6, 8, 3, 2)]
    assert refused(session, "INSERT INTO k (a) VALUES (1)").condition == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


def test_default_stands_for_what_the_column_has(session: Session) -> None:
    session.run(
        "CREATE TABLE k (id INT, s STRING DEFAULT concat('x', 'y'), n BIGINT DEFAULT 1 + 1, p DATE, v VARCHAR(3) DEFAULT 'v') "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    session.run("INSERT INTO k VALUES (1, DEFAULT, DEFAULT, DEFAULT, DEFAULT), (2, 'b', 5000000000, NULL, default)")
    session.run("INSERT INTO k (p, n, id) SELECT DEFAULT, DEFAULT, 3")
    session.run("INSERT INTO k (id, `s`) VALUES (4, DEFAULT)")
    first = [(1, "xy", 2, None, "v"), (2, "b", 5_000_000_000, None, "v")]
    assert session.rows("SELECT * FROM k ORDER BY id") == [*first, (3, "xy", 2, None, "v"), (4, "xy", 2, None, "v")]
    session.run("UPDATE k SET s = DEFAULT, n = DEFAULT, p = DEFAULT WHERE id = 2")
    assert session.rows("SELECT * FROM k WHERE id = 2") == [(2, "xy", 2, None, "v")]
    session.run("INSERT OVERWRITE k VALUES (5, DEFAULT, DEFAULT, DEFAULT, 'w')")
    assert session.rows("SELECT * FROM k") == [(5, "xy", 2, None, "w")]


def test_default_stands_for_it_in_clauses_and_beside_rows_that_are_read(session: Session) -> None:
    session.run(
        "CREATE TABLE k (id INT, s STRING DEFAULT concat('x', 'y'), v VARCHAR(3) DEFAULT 'v') "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    session.run("INSERT INTO k VALUES (1, 'a', 'b'), (2, 'c', 'd')")
    session.run(
        "MERGE INTO k USING (SELECT 1 AS i UNION ALL SELECT 3) q ON k.id = q.i WHEN MATCHED THEN UPDATE SET s = DEFAULT "
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.i, DEFAULT) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = DEFAULT"
    )
    assert session.rows("SELECT * FROM k ORDER BY id") == [(1, "xy", "b"), (2, "c", "v"), (3, "xy", "v")]
    session.run("MERGE INTO k USING (SELECT 4 AS i) q ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (q.i)")
    session.run("INSERT INTO k SELECT id + 10, DEFAULT, v FROM k WHERE id = 2 ORDER BY id LIMIT 1")
    session.run("INSERT INTO k SELECT 20, default, 'c' FROM (SELECT 'own' AS default)")
    added = [(4, "xy", "v"), (12, "xy", "v"), (20, "own", "c")]
    assert session.rows("SELECT * FROM k WHERE id > 3 ORDER BY id") == added
