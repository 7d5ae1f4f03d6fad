"""Sums of a column and constants from one sum and one count; rows and errors are those of each sum for itself."""

from __future__ import annotations

import re

import pytest

from gateway.errors import UserError
from tests.conformance.session import Session, open_runner

_SETUP = (
    "CREATE TABLE t AS SELECT CAST(id % 7 AS INT) AS k, CAST(nullif(id, 5) AS SMALLINT) AS s, CAST(id * 2 AS INT) AS i, "
    "id * 1000 AS l, CAST(2147483647 - id AS INT) AS large FROM range(40)",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("sums")))
    for statement in _SETUP:
        made.execute(statement)
    return made


def sums(session: Session, sql: str) -> int:
    """How many aggregates the engine is asked for."""
    compiled = session.compiled(sql)
    return len(set(re.findall(r"sum\([^)]*\)", compiled.generated.text)))


def test_sums_of_one_column_are_one(session: Session) -> None:
    shared = "SELECT sum(i + 1), sum(2 + i), sum(i - 3), sum(i + 4) FROM t"
    assert sums(session, shared) == 1
    assert session.execute(shared).rows() == [[1600, 1640, 1440, 1720]]


CASES = [
    ("i + 1", "i + 2", "i - 3"),
    ("s + 1", "s - 2", "30000 + s"),
    ("l + 1", "l + 2", "l - 300000000000"),
    ("i + CAST(1 AS TINYINT)", "i + 2", "i + 3"),
    ("i + 1L", "i + 2L", "i + 3L"),
    ("1 - i", "2 - i", "3 - i"),
    ("i + i", "i + i + 1", "i + NULL"),
]


@pytest.mark.parametrize("values", CASES, ids=[" ".join(c) for c in CASES])
@pytest.mark.parametrize(
    "rest",
    [
        "FROM t",
        "FROM t WHERE i < 0",
        "FROM t GROUP BY k ORDER BY k",
        "FROM t GROUP BY ROLLUP (k) ORDER BY k",
        "FROM t WHERE s IS NULL",
    ],
)
def test_rows_are_those_of_each_sum(session: Session, values: tuple[str, ...], rest: str) -> None:
    each = [session.execute(f"SELECT sum({v}) {rest}").rows() for v in values]
    together = session.execute(f"SELECT {', '.join(f'sum({v})' for v in values)} {rest}")
    assert together.rows() == [[value for row in rows for value in row] for rows in zip(*each, strict=True)]


def test_filters_tell_sums_apart(session: Session) -> None:
    two = [f"sum(i + {n}) FILTER (WHERE k = {k})" for k in (1, 2) for n in (1, 2, 3)]
    each = [session.execute(f"SELECT {one} FROM t").rows()[0][0] for one in two]
    assert session.execute(f"SELECT {', '.join(two)} FROM t").rows() == [each]


def test_what_overflows_still_does(session: Session) -> None:
    assert session.execute("SELECT sum(large + 0L), sum(large + 1L), sum(large + 2L) FROM t").rows()
    with pytest.raises(UserError) as raised:
        session.execute("SELECT sum(large + 0), sum(large + 1), sum(large - 1) FROM t")
    assert raised.value.condition == "ARITHMETIC_OVERFLOW"
