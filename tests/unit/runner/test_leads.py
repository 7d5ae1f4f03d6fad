"""Values behind and before a row that are not NULL."""

from __future__ import annotations

import pytest

from tests.conformance.session import Session, open_runner

_VALUES = [i if i % 3 == 0 or i in (10, 11) else None for i in range(30)] + [None] * 3


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = Session(open_runner(tmp_path_factory.mktemp("leads")))
    rows = ", ".join(f"({i}, {'NULL' if x is None else x})" for i, x in enumerate(_VALUES))
    session.execute(f"CREATE TABLE t AS SELECT int(c1) AS id, int(c2) AS x FROM VALUES {rows} AS v(c1, c2)")
    return session


@pytest.mark.parametrize("offset", [-3, -2, -1, 1, 2, 3, 7, 40])
@pytest.mark.parametrize("default", [None, -1])
def test_null_is_passed_over(session: Session, offset: int, default: int | None) -> None:
    expected = []
    for at in range(len(_VALUES)):
        seen = _VALUES[at + 1 :] if offset > 0 else _VALUES[:at][::-1]
        found = [x for x in seen if x is not None]
        expected.append(found[abs(offset) - 1] if len(found) >= abs(offset) else default)
    extra = "" if default is None else f", {default}"
    for call in (f"lead(x, {offset}{extra})", f"lag(x, {-offset}{extra})"):
        text = f"SELECT id, {call} IGNORE NULLS OVER (ORDER BY id) FROM t ORDER BY id"
        assert [row[1] for row in session.execute(text).rows()] == expected


def test_each_partition_has_its_own(session: Session) -> None:
    text = "SELECT id, lead(x, 2, id) IGNORE NULLS OVER (PARTITION BY id % 2 ORDER BY id) FROM t ORDER BY id"
    expected = []
    for at in range(len(_VALUES)):
        found = [x for x in _VALUES[at + 2 :: 2] if x is not None]
        expected.append(found[1] if len(found) > 1 else at)
    assert [row[1] for row in session.execute(text).rows()] == expected


def test_values_of_other_types_are_passed_over(session: Session) -> None:
    given = "if(x IS NULL, NULL, array(x)) AS a, if(x IS NULL, NULL, parse_json(string(x))) AS j, string(x) AS s, id"
    calls = ", ".join(f"lead({c}, 2) IGNORE NULLS OVER (ORDER BY id)" for c in ("a", "s"))
    json = "to_json(lead(j, 2) IGNORE NULLS OVER (ORDER BY id))"
    text = f"SELECT {calls}, {json} FROM (SELECT {given} FROM t) ORDER BY id LIMIT 1 OFFSET 8"
    assert session.execute(text).rows() == [[[10], "10", "10"]]


_MANY = "(SELECT id, id * 7919 % 6000 AS k, if(id % 130 = 0, id * 7919 % 6000, NULL) AS v FROM range(60000))"


@pytest.mark.parametrize(
    "over",
    [
        "ORDER BY k",
        "ORDER BY k DESC",
        "PARTITION BY id % 7 ORDER BY k",
        "PARTITION BY k ORDER BY k",
        "ORDER BY k ROWS UNBOUNDED PRECEDING",
        "ORDER BY k, id",
        "ORDER BY array(k)",
    ],
)
def test_the_last_value_so_far_is_that_of_all_peers(session: Session, over: str) -> None:
    best = "min" if "DESC" in over else "max"  # values grow as what they are ordered by
    text = f"SELECT last(v, true) OVER ({over}) AS l, {best}(v) OVER ({over}) AS b FROM {_MANY}"
    counts = session.execute(f"SELECT count(*), count(l), count_if(NOT l <=> b) FROM ({text})").rows()[0]
    assert counts[0] == 60_000
    assert counts[1] > 400
    assert counts[2] == 0
