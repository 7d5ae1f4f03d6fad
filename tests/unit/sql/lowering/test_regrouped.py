"""Rows that a generator has made of groups are told apart, put together and joined as any others."""

from __future__ import annotations

import pytest

from tests.conformance.session import Session, open_runner

_GROUPS = {
    "a key": "SELECT x, collect_list(id) AS xs FROM t GROUP BY x",
    "a key, and what it determines": "SELECT concat(x, '-') AS y, x, collect_list(id) AS xs FROM t GROUP BY concat(x, '-'), x",
    "rows that differ": "SELECT DISTINCT x, array(1, 2) AS xs FROM t",
    "a union": "SELECT x, array(1, 2) AS xs FROM t UNION SELECT 'a', array(1, 2)",
}
_MADE = "({groups}) LATERAL VIEW explode(xs) AS c"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("groups")))
    made.execute("CREATE TABLE t AS SELECT id, if(id < 2, 'a', 'b') AS x FROM range(4)")
    return made


@pytest.mark.parametrize("groups", list(_GROUPS))
def test_rows_are_told_apart(session: Session, groups: str) -> None:
    made = _MADE.format(groups=_GROUPS[groups])
    assert session.execute(f"SELECT DISTINCT x FROM {made} ORDER BY x").rows() == [["a"], ["b"]]
    assert session.execute(f"SELECT x, count(*) FROM {made} GROUP BY x, c ORDER BY x").rows() == [
        ["a", 1],
        ["a", 1],
        ["b", 1],
        ["b", 1],
    ]


@pytest.mark.parametrize("groups", list(_GROUPS))
def test_joins_have_all_rows(session: Session, groups: str) -> None:
    made = f"(SELECT x FROM {_MADE.format(groups=_GROUPS[groups])})"
    assert session.execute(f"SELECT u.v FROM {made} JOIN VALUES ('a', 7) AS u(x, v) USING (x)").rows() == [[7], [7]]
