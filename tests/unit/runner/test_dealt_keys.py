"""ORDER BY … LIMIT over rows that come in sides, each with constants of its own: `sql/lowering/dealt_keys.py`."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session

_TIMES = 12  # which side the engine reads first differs from run to run
_SIDES = "abcd"
_ROWS = 30_000


@pytest.fixture(params=("partitions", "union", "union of partitions"))
def shop(session: Session, request: pytest.FixtureRequest) -> Session:
    """A session with `t(p, x, y)`: the later the letter the larger x."""
    by = "" if request.param == "union" else " PARTITIONED BY (p)"
    session.run(f"CREATE TABLE stored (p STRING, x BIGINT, y BIGINT){by}")
    for place, side in enumerate(_SIDES):
        session.run(f"INSERT INTO stored SELECT '{side}', id + {place * 100}, id % 10 FROM range({_ROWS})")
    texts = {
        "partitions": "SELECT * FROM stored",
        "union": " UNION ALL ".join(f"SELECT '{s}' AS p, x, y FROM stored WHERE p = '{s}'" for s in _SIDES),
        "union of partitions": " UNION ALL ".join(f"SELECT * FROM stored WHERE p = '{s}'" for s in _SIDES),
    }
    session.run(f"CREATE TEMPORARY VIEW t AS {texts[request.param]}")
    return session


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT p, x FROM t ORDER BY p DESC, x LIMIT 3", [("d", 300), ("d", 301), ("d", 302)]),
        ("SELECT p, x FROM t ORDER BY p DESC, x DESC LIMIT 2", [("d", _ROWS + 299), ("d", _ROWS + 298)]),
        ("SELECT p, x FROM t ORDER BY p, x LIMIT 2 OFFSET 1", [("a", 1), ("a", 2)]),
        ("SELECT p, x FROM t WHERE x % 100 = 50 ORDER BY x DESC, p LIMIT 2", [("d", _ROWS + 250), ("c", _ROWS + 150)]),
        ("SELECT x FROM t ORDER BY upper(p) DESC, x LIMIT 2", [(300,), (301,)]),
        ("SELECT x FROM t ORDER BY CASE p WHEN 'c' THEN 0 ELSE 1 END, x LIMIT 2", [(200,), (201,)]),
        ("SELECT p, x, y FROM t ORDER BY y DESC, p DESC, x LIMIT 2", [("d", 309, 9), ("d", 319, 9)]),
        ("SELECT p, x, y FROM t WHERE y = 7 ORDER BY p DESC, x LIMIT 2", [("d", 307, 7), ("d", 317, 7)]),
        ("SELECT p, n FROM t JOIN VALUES (0, 'n'), (1, 'm') v(k, n) ON y = k ORDER BY p DESC, n DESC, x LIMIT 1", [("d", "n")]),
        ("SELECT q, z FROM (SELECT p || 'z' AS q, x + 1 AS z FROM t) ORDER BY q DESC, z LIMIT 2", [("dz", 301), ("dz", 302)]),
        ("SELECT x FROM t WHERE x IN (SELECT x FROM t ORDER BY p DESC, x LIMIT 1) ORDER BY p, x LIMIT 1", [(300,)]),
    ],
)  # fmt: skip
def test_no_side_takes_the_place_of_another(shop: Session, text: str, rows: list[tuple[object, ...]]) -> None:
    assert [shop.rows(text) for _ in range(_TIMES)] == [rows] * _TIMES


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT 'b' AS s, id FROM range(9) UNION ALL SELECT 'a', id + 50 FROM range(9) ORDER BY s, id LIMIT 1", [("a", 50)]),
        ("SELECT 2 AS s, 1 AS n FROM range(9) UNION ALL SELECT 1, 5 FROM range(9) ORDER BY s, n LIMIT 1", [(1, 5)]),
        ("SELECT 2D AS s, id FROM range(9) UNION ALL SELECT 1D, id + 50 FROM range(9) ORDER BY s, id LIMIT 1", [(1.0, 50)]),
        ("SELECT 0 AS v, 0 AS w FROM range(4) UNION ALL SELECT 2, i FROM VALUES (1), (NULL), (0) t(i)"
         " ORDER BY w DESC NULLS FIRST, v LIMIT 2 OFFSET 1", [(2, 1), (0, 0)]),
    ],
)  # fmt: skip
def test_sides_of_constants(session: Session, text: str, rows: list[tuple[object, ...]]) -> None:
    assert [session.rows(text) for _ in range(_TIMES)] == [rows] * _TIMES


def test_keys_of_tables_are_left_alone(session: Session) -> None:
    """So that files and row groups are left out by the rows that have been found."""
    session.run("CREATE TABLE t (p STRING, x BIGINT, y BIGINT) PARTITIONED BY (p)")
    session.run("INSERT INTO t VALUES ('a', 1, 2), ('b', 3, 4)")
    told = session.rows("EXPLAIN SELECT p, x FROM t ORDER BY x, y LIMIT 1")
    assert "beside" not in told[0][0]
