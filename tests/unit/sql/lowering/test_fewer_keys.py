"""Keys that others determine are computed over the groups; rows are those of grouping by all of them."""

from __future__ import annotations

import pytest

from gateway.errors import UserError
from tests.conformance.session import Session, open_runner

_SETUP = (
    "CREATE TABLE t AS SELECT id, nullif(CAST(id % 7 AS INT), 3) AS k, date_add(DATE'2024-01-30', CAST(id % 5 AS INT)) AS d, "
    "if(id % 2 = 0, 0.0D, -0.0D) AS f, array(id % 2) AS a, concat(' x', id % 3) AS s FROM range(60)",
    "CREATE TABLE u AS SELECT id % 7 AS k, id AS v FROM range(9)",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("keys")))
    for statement in _SETUP:
        made.execute(statement)
    return made


def keys(session: Session, sql: str) -> int:
    """By how many keys the engine groups."""
    compiled = session.compiled(sql)
    _, _, grouped = compiled.generated.text.partition(" GROUP BY ")
    return grouped.partition(" ORDER BY ")[0].partition(" HAVING ")[0].count(",") + 1


KEYS = [
    ("k, k + 1, k - 1", 1),
    ("d, year(d), dayofweek(d)", 1),
    ("k, d, k + 1, month(d)", 2),
    ("s, trim(s), upper(s), length(s)", 1),
    ("k, k IS NULL, if(k > 2, 'a', 'b')", 1),
    ("k, s, k || s, k = 1", 2),
    ("k, k + id % 2", 2),  # reads what is no key
    ("f, f + 1", 2),  # equal zeros
    ("a, a[0]", 2),
    ("k + 1, k + 2", 2),  # no column among them
    ("k, 10 DIV k", 2),  # may raise
    ("id, rand() < 2", 2),
]


@pytest.mark.parametrize(("by", "count"), KEYS, ids=[by for by, _ in KEYS])
def test_keys_that_others_determine_are_left_out(session: Session, by: str, count: int) -> None:
    assert keys(session, f"SELECT {by}, count(*) FROM t WHERE k <> 0 GROUP BY {by}") == count


@pytest.mark.parametrize("by", [by for by, _ in KEYS if "rand" not in by])  # which grouping sets do not take
@pytest.mark.parametrize("rest", ["", "HAVING count(*) > 3", "HAVING {} IS NOT NULL"])
def test_rows_are_those_of_all_keys(session: Session, by: str, rest: str) -> None:
    aggregates, having = "count(*), min(id), count(DISTINCT id % 4)", rest.format(by.partition(", ")[0])
    sql = f"SELECT {by}, {aggregates} FROM t WHERE k <> 0 GROUP BY {by} {having}"
    sets = f"SELECT {by}, {aggregates} FROM t WHERE k <> 0 GROUP BY GROUPING SETS (({by})) {having}"
    assert sorted(map(repr, session.execute(sql).rows())) == sorted(map(repr, session.execute(sets).rows()))


def test_groups_are_joined_sorted_and_asked_by_left_out_keys(session: Session) -> None:
    grouped = "SELECT k, k + 1 AS more, count(*) AS c FROM t GROUP BY k, k + 1"
    joined = session.execute(f"SELECT g.more, g.c, u.v FROM ({grouped}) g JOIN u ON g.more = u.k ORDER BY 1, 3")
    assert joined.rows()[:3] == [[1, 9, 1], [1, 9, 8], [2, 9, 2]]
    assert session.execute(f"SELECT more FROM ({grouped}) WHERE more > 5 ORDER BY more DESC").rows() == [[7], [6]]
    ordered = (
        "SELECT k, d, sum(id) FROM t GROUP BY k, year(d), k + 1, d, dayofweek(d) ORDER BY k + 1 DESC, dayofweek(d), d"
    )
    plain = "SELECT k, d, sum(id) FROM t GROUP BY k, d ORDER BY k DESC, dayofweek(d), d"
    assert session.execute(ordered).rows() == session.execute(plain).rows()
    assert session.execute("SELECT 1 FROM t GROUP BY k, k + 1 HAVING max(k + 1) <> k + 1").rows() == []
    window = "SELECT k + 1, rank() OVER (ORDER BY k + 1 DESC) FROM t WHERE k > 4 GROUP BY k, k + 1"
    assert session.execute(window).rows() == [[7, 1], [6, 2]]


def test_what_raises_still_does(session: Session) -> None:
    with pytest.raises(UserError) as raised:
        session.execute("SELECT k, 10 DIV k FROM t GROUP BY k, 10 DIV k HAVING count(*) > 99")
    assert raised.value.condition == "DIVIDE_BY_ZERO"
