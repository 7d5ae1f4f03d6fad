"""Rows in an order that they have had before something else is computed of them: more than one batch, of several files."""

from __future__ import annotations

import pytest

from tests.conformance.session import Session, open_runner

_FIRST = "(SELECT * FROM t ORDER BY v, id LIMIT 100000)"
_ORDERED = (
    f"SELECT id, regexp_replace(s, '[0-9]+', '#') FROM {_FIRST}",
    f"SELECT id, upper(s), v + 1 FROM {_FIRST} WHERE v > 3",
    f"SELECT id, x FROM (SELECT id, regexp_replace(s, '[0-9]+', '#') AS x FROM {_FIRST}) WHERE x <> 'a' LIMIT 50000",
    f"SELECT id, regexp_replace(s, '[0-9]', e) FROM {_FIRST} LATERAL VIEW explode(array('#')) AS e",
    f"WITH c AS {_FIRST} SELECT id, regexp_replace(s, '[0-9]+', '#') FROM c",
    "SELECT id, regexp_replace(s, '[0-9]+', '#') FROM (SELECT * FROM t ORDER BY v, id)",
    "SELECT id, row_number() OVER (ORDER BY 1) FROM (SELECT * FROM t ORDER BY v, id)",
    "SELECT id, row_number() OVER (ORDER BY v, id) FROM t",
    "SELECT id, sum(v) OVER (ORDER BY v, id), regexp_replace(s, '[0-9]+', '#') FROM t",
    "SELECT id, s FROM t ORDER BY v, id LIMIT 60000",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = Session(open_runner(tmp_path_factory.mktemp("long")))
    for file in range(4):
        rows = f"SELECT id, string(id) AS s, id DIV 3 AS v FROM range({file * 50_000}, {(file + 1) * 50_000})"
        session.execute(f"CREATE TABLE t AS {rows}" if file == 0 else f"INSERT INTO t {rows}")
    return session


@pytest.mark.parametrize("text", _ORDERED)
def test_rows_come_in_it(session: Session, text: str) -> None:
    for _ in range(2):  # where they do not, they may by chance
        ids = [row[0] for row in session.execute(text).rows()]
        assert len(ids) > 40_000
        assert ids == sorted(ids)


@pytest.mark.parametrize(
    ("rows", "first", "last"),
    [
        ("SELECT id FROM t ORDER BY -id LIMIT 60000 OFFSET 5", 199_994, 139_995),
        ("SELECT id FROM t ORDER BY v DESC, s LIMIT 60000", 199_998, 139_998),
        ("SELECT id FROM (SELECT id FROM t ORDER BY -id LIMIT 90000) WHERE id % 2 = 0 LIMIT 30000", 199_998, 140_000),
        (
            "SELECT id FROM (SELECT id FROM t ORDER BY -v, -id LIMIT 60000) LATERAL VIEW explode(array(1)) AS e",
            199_999,
            140_000,
        ),
    ],
)
def test_aggregates_take_the_first_rows_in_an_order_that_they_do_not_see(
    session: Session, rows: str, first: int, last: int
) -> None:
    for _ in range(2):
        assert session.execute(f"SELECT first(id), last(id) FROM ({rows})").rows() == [[first, last]]
        places = session.execute(f"SELECT collect_list(id) FROM ({rows})").rows()[0][0]
        assert (places[0], places[-1]) == (first, last)
        numbered = f"SELECT id, row_number() OVER (ORDER BY 1) AS n FROM ({rows})"
        ends = session.execute(f"SELECT min_by(id, n), max_by(id, n) FROM ({numbered})").rows()
        assert ends == [[first, last]]


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT id, v FROM t ORDER BY v, id, v DESC, id DESC",
        "SELECT id, v FROM (SELECT id, v, id AS j FROM t) ORDER BY v, j, id DESC",
        "SELECT id, v, -id AS j, -id AS k FROM t ORDER BY v, j DESC, k",
        "SELECT id, v FROM t ORDER BY v, id, id LIMIT 150000",
    ],
)
def test_aggregates_over_an_order_that_has_a_key_twice(session: Session, rows: str) -> None:
    groups = f"SELECT v, first(id) AS f, last(id) AS l FROM ({rows}) GROUP BY v"
    assert session.execute(f"SELECT * FROM ({groups}) WHERE v IN (0, 41000) ORDER BY v").rows() == [
        [0, 0, 2],
        [41_000, 123_000, 123_002],
    ]


_NUMBERED = "(SELECT id, row_number() OVER (ORDER BY v DESC, id DESC) AS n FROM t)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"SELECT first(id), last(id) FROM {_NUMBERED} WHERE n <= 100000", [199_999, 100_000]),
        (f"SELECT array_sort(l) = l FROM (SELECT collect_list(n) AS l FROM {_NUMBERED})", [True]),
        (
            f"SELECT bool_and(array_sort(l) = l) FROM (SELECT collect_list(n) AS l FROM {_NUMBERED} GROUP BY id % 3)",
            [True],
        ),
        (f"SELECT max(abs(n - m)) FROM (SELECT n, row_number() OVER (ORDER BY 1) AS m FROM {_NUMBERED})", [0]),
        (f"SELECT max(abs(n - m)) FROM (SELECT n, sum(1) OVER (ROWS UNBOUNDED PRECEDING) AS m FROM {_NUMBERED})", [0]),
    ],
)
def test_what_takes_rows_as_they_come_has_them_in_the_order_of_a_window(
    session: Session, text: str, expected: list[object]
) -> None:
    for _ in range(2):
        assert session.execute(text).rows() == [expected]
