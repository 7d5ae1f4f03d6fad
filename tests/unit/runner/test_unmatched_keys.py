"""Keys that an outer join leaves NULL, of a table of which one partition is read: `sql/lowering/unmatched.py`."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session

_ROWS = 80_000  # small tables are read on one partition
_HALF = _ROWS // 2


@pytest.fixture
def shop(session: Session) -> Session:
    """A session with `l(k)`, and `t(p, k, v)` that has every second of its keys, in one partition as far as `v` is small."""
    session.run("CREATE TABLE l (k BIGINT)")
    for file in range(4):
        session.run(f"INSERT INTO l SELECT 4 * id + {file} FROM range({_ROWS // 4})")
    session.run("CREATE TABLE t (p STRING, k BIGINT, v BIGINT) PARTITIONED BY (p)")
    session.run(f"INSERT INTO t SELECT 'a', 2 * id, id FROM range({_HALF})")
    session.run(f"INSERT INTO t SELECT 'b', 2 * id, id + {_HALF} FROM range({_HALF})")
    session.run(f"CREATE TEMPORARY VIEW u AS SELECT * FROM t WHERE v < {_HALF}")
    return session


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t.p, l.k FROM l LEFT JOIN (SELECT DISTINCT p, k FROM u) t ON l.k = t.k ORDER BY t.p, l.k LIMIT 3",
        "SELECT t.p, l.k FROM (SELECT DISTINCT p, k FROM u) t RIGHT JOIN l ON l.k = t.k ORDER BY t.p, l.k LIMIT 3",
        "SELECT t.p, l.k FROM (SELECT DISTINCT p, k FROM u) t FULL JOIN l ON l.k = t.k ORDER BY t.p, l.k LIMIT 3",
        "SELECT upper(t.p), l.k FROM l LEFT JOIN (SELECT DISTINCT p, k FROM u) t ON l.k = t.k ORDER BY 1, 2 LIMIT 3",
        "SELECT DISTINCT u.p, l.k FROM l LEFT JOIN u ON l.k = u.k ORDER BY u.p, l.k LIMIT 3",
        "SELECT u.p, l.k FROM l LEFT JOIN u ON l.k = u.k GROUP BY u.p, l.k ORDER BY u.p, l.k LIMIT 3",
    ],
)
def test_rows_that_met_none_come_first(shop: Session, text: str) -> None:
    assert [shop.rows(text) for _ in range(3)] == [[(None, 1), (None, 3), (None, 5)]] * 3


def test_all_rows_are_in_order(shop: Session) -> None:
    found = [shop.rows("SELECT u.p, l.k FROM l LEFT JOIN u ON l.k = u.k ORDER BY u.p, l.k") for _ in range(3)]
    assert found == [[*((None, k) for k in range(1, _ROWS, 2)), *(("a", k) for k in range(0, _ROWS, 2))]] * 3


def test_windows_see_their_rows_in_order(shop: Session) -> None:
    numbered = "SELECT u.p, l.k, row_number() OVER (ORDER BY u.p, l.k) AS n FROM l LEFT JOIN u ON l.k = u.k"
    text = f"SELECT count(*), count(p) FROM ({numbered}) WHERE n <= {_HALF}"
    assert [shop.rows(text) for _ in range(3)] == [[(_HALF, 0)]] * 3
