"""Columns of equal names on two sides of a join: a filter above it must not reach the other side's file."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session


@pytest.fixture
def sides(session: Session) -> Session:
    """Tables `a` and `b` with the same column names; `b` has no NULL."""
    session.run("CREATE TABLE a (k INT, ts INT, v5 INT)")
    session.run("CREATE TABLE b (k INT, ts INT, v5 INT)")
    session.run("INSERT INTO a VALUES (1, NULL, 1), (2, 20, 2), (3, NULL, 3)")
    session.run("INSERT INTO b VALUES (1, 100, 1), (2, 200, 2), (9, 900, 9)")
    return session


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT a.ts, b.ts FROM a RIGHT JOIN b ON a.k = b.k WHERE a.ts IS NULL", [(None, 100), (None, 900)]),
        ("SELECT a.ts, b.ts FROM b LEFT JOIN a ON a.k = b.k WHERE a.ts IS NULL", [(None, 100), (None, 900)]),
        ("SELECT x.v5, y.v5 FROM a x RIGHT JOIN b y ON x.k = y.k WHERE x.v5 IS NULL", [(None, 9)]),
        ("SELECT x.ts, y.k FROM a x RIGHT JOIN a y ON x.k = y.k + 1 WHERE x.ts IS NULL", [(None, 2), (None, 3)]),
        (
            "WITH q AS (SELECT k, ts FROM a) SELECT x.ts, y.k FROM q x RIGHT JOIN q y ON x.k = y.k + 1 WHERE x.ts IS NULL",
            [(None, 2), (None, 3)],
        ),
        (
            "SELECT x.id, y.id FROM range(2) x RIGHT JOIN range(4) y ON x.id = y.id WHERE x.id IS NULL",
            [(None, 2), (None, 3)],
        ),
        ("SELECT a.ts, max(b.ts) FROM a RIGHT JOIN b ON a.k = b.k GROUP BY a.ts HAVING a.ts IS NULL", [(None, 900)]),
    ],
)
def test_a_filter_above_an_outer_join_keeps_to_its_side(
    sides: Session, text: str, rows: list[tuple[object, ...]]
) -> None:
    assert sorted(sides.rows(text), key=repr) == sorted(rows, key=repr)
