"""Comparisons with CHAR columns: where Spark 4.2 pads the shorter side with spaces, and where it compares texts as they are."""

from __future__ import annotations

import pytest

from gateway.errors import UnsupportedError
from gateway.runner import Runner
from tests.unit.runner.session import Session

# A statement and the sorted numbers that Spark answers.
ANSWERS: list[tuple[str, list[int]]] = [
    ("SELECT id FROM t WHERE c = 'x'", [1]),
    ("SELECT id FROM t WHERE 'x' = c", [1]),
    ("SELECT id FROM t WHERE c <=> 'x'", [1]),
    ("SELECT id FROM t WHERE c <=> NULL", [3]),
    ("SELECT id FROM t WHERE c <> 'x'", [2, 4, 5]),
    ("SELECT id FROM t WHERE NOT c = 'x'", [2, 4, 5]),
    ("SELECT id FROM t WHERE c IS DISTINCT FROM 'x'", [2, 3, 4, 5]),
    ("SELECT id FROM t WHERE c = 'x      '", [1]),
    ("SELECT id FROM t WHERE c = lower('X')", [1]),
    ("SELECT id FROM t WHERE c = 'x' || ''", [1]),
    ("SELECT id FROM t WHERE c = concat('X ', 'ABCDEFG')", []),
    ("SELECT id FROM t WHERE equal_null(c, 'x')", [1]),
    ("SELECT id FROM t WHERE c < 'x'", [2, 4]),
    ("SELECT id FROM t WHERE c >= 'x'", [1, 5]),
    ("SELECT id FROM t WHERE c < 'abcd '", [4]),
    ("SELECT id FROM t WHERE c <= 'abcd '", [2, 4]),
    ("SELECT id FROM t WHERE c <= concat('abcd', ' ')", [2, 4]),
    ("SELECT id FROM t WHERE c < 'abcde'", [2, 4]),
    ("SELECT id FROM t WHERE c IN ('x', 'abcd')", [1, 2]),
    ("SELECT id FROM t WHERE c NOT IN ('x')", [2, 4, 5]),
    ("SELECT id FROM t WHERE c IN ('x  ', 'abcd   ', 'abcdefg')", [1, 2]),
    ("SELECT id FROM t WHERE c IN (lower('X   '), concat('ab', 'cd   '))", [1, 2]),
    ("SELECT id FROM t WHERE c IN ('x', NULL)", []),
    ("SELECT id FROM t WHERE c IN ('x', s)", [2]),
    ("SELECT id FROM t WHERE c IN (d)", [1, 2, 4]),
    ("SELECT id FROM t WHERE c IN (d, 'abcd')", [2]),
    ("SELECT id FROM t WHERE c IN (v, d)", [2]),
    ("SELECT id FROM t WHERE 'x' IN (c)", []),
    ("SELECT id FROM t WHERE s IN (c, d)", [2]),
    ("SELECT id FROM t WHERE c = d", [1, 2, 4]),
    ("SELECT id FROM t WHERE d = c", [1, 2, 4]),
    ("SELECT id FROM t WHERE c <=> d", [1, 2, 4]),
    ("SELECT id FROM t WHERE c <> d", [5]),
    ("SELECT id FROM t WHERE c < d", [5]),
    ("SELECT id FROM t WHERE c = v", [2]),
    ("SELECT id FROM t WHERE c = s", [2]),
    ("SELECT id FROM t WHERE c BETWEEN 'x' AND 'x'", []),
    ("SELECT id FROM t WHERE nullif(c, 'x') IS NULL", [3]),
    ("SELECT id FROM t WHERE upper(c) = 'X'", []),
    ("SELECT id FROM t WHERE CAST(c AS STRING) = 'x'", []),
    ("SELECT id FROM t WHERE coalesce(c, 'q') = 'x'", []),
    ("SELECT id FROM t WHERE c LIKE 'x'", []),
    ("SELECT id FROM t WHERE c LIKE 'x%'", [1]),
    ("SELECT id FROM t WHERE c || 'y' = 'xy'", []),
    ("SELECT id FROM t WHERE length(c) = 4", [1, 2, 4, 5]),
    ("SELECT id FROM t WHERE v = 'x '", [3]),
    ("SELECT id FROM t WHERE v = 'x'", [1]),
    ("SELECT id FROM t WHERE c = CAST('x' AS CHAR(4))", [1]),
    ("SELECT id FROM t WHERE c IN (SELECT d FROM t)", []),
    ("SELECT id FROM t WHERE c = (SELECT max(d) FROM t)", []),
    ("SELECT id FROM t WHERE c = (SELECT c FROM t WHERE id = 1)", [1]),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t b WHERE t.c = b.d)", [1, 2, 4]),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 WHERE c = 'x')", [1]),
    ("SELECT id FROM t WHERE decode(c, 'x', 1, 'abcd', 2) = 2", [2]),
    ("SELECT id FROM t WHERE CASE c WHEN d THEN 1 WHEN 'y' THEN 2 END > 0", [1, 2, 4, 5]),
    ("SELECT id FROM t WHERE exists(array('x'), e -> e = c)", []),
    ("SELECT id FROM t WHERE exists(array(1), e -> c = 'x')", [1]),
    ("SELECT id FROM t WHERE array_contains(array(c), 'x')", []),
    ("SELECT id FROM t WHERE struct(c) = struct('x')", []),
    ("SELECT id FROM seen WHERE c = 'x'", [1]),
    ("SELECT id FROM seen WHERE c = e", [1, 2, 4]),
    ("SELECT id FROM (SELECT id, c AS e FROM t) WHERE e = 'x'", [1]),
    ("SELECT id FROM (SELECT id, max(c) AS m FROM t GROUP BY id) WHERE m = 'x'", []),
    ("SELECT id FROM (SELECT id, c AS m FROM t UNION ALL SELECT id, d FROM t) WHERE m = 'x'", [1]),
    ("SELECT id FROM (SELECT id, d AS m FROM t UNION ALL SELECT id, c FROM t) WHERE m = 'x'", [1, 3]),
    ("SELECT id FROM (SELECT id, s AS m FROM t UNION ALL SELECT id, c FROM t) WHERE m = 'x'", [1]),
    ("SELECT id FROM (SELECT id, c AS m FROM t EXCEPT SELECT id, d FROM t) WHERE m = 'x'", [1]),
    ("SELECT a.id FROM t a JOIN t b ON a.c = b.d", [1, 1, 2, 4]),
    ("SELECT id FROM t JOIN (SELECT d AS c FROM t) USING (c)", [1, 1, 2, 4]),
    ("SELECT a.id FROM t a, LATERAL (SELECT a.c AS e) t WHERE e = 'x'", []),
    ("SELECT a.id FROM t a, LATERAL (SELECT 1 WHERE a.c = 'x') t", [1]),
    ("SELECT count(*) FROM t GROUP BY c HAVING c = 'x'", [1]),
    ("SELECT 1 FROM t HAVING max(c) = 'x'", []),
    ("SELECT count(*) FROM t GROUP BY CUBE(c, d) HAVING c = 'x'", [1, 1]),
    ("SELECT id FROM t LATERAL VIEW explode(array('x', 'abcd')) g AS e WHERE c = e", [2]),
    ("SELECT id FROM t QUALIFY max(c) OVER (PARTITION BY id) = 'x'", []),
]


@pytest.fixture(scope="module")
def padded(runner: Runner) -> Session:
    """A session with CHAR of two lengths, VARCHAR and STRING in a table `t`, and a view `seen` over it."""
    session = Session(runner)
    session.run("CREATE SCHEMA padded")
    session.run("USE padded")
    session.run("CREATE TABLE t (id INT, c CHAR(4), d CHAR(6), v VARCHAR(6), s STRING)")
    rows = (
        "(1, 'x', 'x', 'x', 'x'), (2, 'abcd', 'abcd', 'abcd', 'abcd'), (3, NULL, 'x ', 'x ', 'x '), (4, '', '', '', '')"
    )
    session.run(f"INSERT INTO t VALUES {rows}, (5, 'y', 'z', 'w', 'u')")
    session.run("CREATE TEMP VIEW seen AS SELECT id, c, d AS e FROM t")
    return session


@pytest.mark.parametrize(("sql", "wanted"), ANSWERS, ids=[sql for sql, _ in ANSWERS])
def test_as_spark_pads(padded: Session, sql: str, wanted: list[int]) -> None:
    assert sorted(row[0] for row in padded.rows(sql)) == wanted


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT id FROM t WHERE c IN ('x', CAST(NULL AS STRING))", "NULL in the list"),  # Spark loses an item
        ("SELECT decode(c, d, 1, 2) FROM t", "`decode` of a CHAR column"),
    ],
)
def test_refused(padded: Session, sql: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        padded.rows(sql)


def test_names_and_types_know_of_no_padding(padded: Session) -> None:
    items = "c = 'x', c IN ('x', 'y '), c = d, c = lower('X'), max(c)"
    found = padded.run(f"SELECT {items} FROM t GROUP BY ALL").columns
    assert [name for name, _, _ in found] == ["(c = x)", "(c IN (x, y ))", "(c = d)", "(c = lower(X))", "max(c)"]
    assert found[-1][1] == "string"


def test_changes(padded: Session) -> None:
    """Conditions and constants of UPDATE and DELETE; a column's writer pads and measures the constants."""
    padded.run("CREATE TABLE changed (id INT, c CHAR(4), v VARCHAR(3))")
    padded.run("INSERT INTO changed VALUES (1, 'x', 'v'), (2, 'y', 'w'), (3, 'z', 'u')")
    padded.run("UPDATE changed SET c = 'q', v = 'abc' WHERE c = 'x'")
    padded.run("DELETE FROM changed WHERE c IN ('y', 'k')")
    assert padded.rows("SELECT * FROM changed ORDER BY id") == [(1, "q   ", "abc"), (3, "z   ", "u")]


def test_a_field_that_was_added_as_char_is_a_text(padded: Session) -> None:
    """Spark leaves its length in the field's own metadata, and goes by that of columns alone."""
    padded.run("CREATE TABLE inside (id INT, s STRUCT<a: INT>)")
    padded.run("ALTER TABLE inside ADD COLUMNS (s.y CHAR(3), s.v VARCHAR(1))")
    padded.run("INSERT INTO inside SELECT 1, named_struct('a', 1, 'y', 'q', 'v', 'vv')")
    assert padded.rows("SELECT s.y || '|', s.y = 'q', s.y = 'q  ', s.v FROM inside") == [("q|", True, False, "vv")]
