"""Overflow guards: left out where statistics bound the values, there where they do not."""

from __future__ import annotations

import pytest

from gateway.errors import UserError
from tests.unit.runner.session import Session

BIGGEST = 9223372036854775807


@pytest.fixture
def numbers(session: Session) -> Session:
    session.run(
        "CREATE TABLE shop.small AS SELECT id, CAST(id AS INT) AS i, CAST(id AS DECIMAL(15,2)) AS d FROM range(100)"
    )
    session.run(f"CREATE TABLE shop.big AS SELECT {BIGGEST} - id AS b, CAST(2147483640 + id AS INT) AS i FROM range(5)")
    return session


def engine_text(session: Session, query: str) -> str:
    return str(session.rows(f"EXPLAIN EXTENDED {query}")[0][0])


@pytest.mark.parametrize(
    "query", ["SELECT id + 1 FROM shop.small", "SELECT i * i FROM shop.small", "SELECT sum(id) FROM shop.small"]
)
def test_bounded_values_need_no_kernel(numbers: Session, query: str) -> None:
    assert "u_" not in engine_text(numbers, query)


def test_bounded_decimals_are_the_engines_own(numbers: Session) -> None:
    query = "SELECT d * (1 - d) * (1 + d) AS x FROM shop.small"
    assert "decimal_arithmetic" not in engine_text(numbers, query)
    rows = numbers.rows(f"SELECT max(x) = 99 * -98 * 100 OR min(x) = 99 * -98 * 100 FROM ({query})")
    assert rows == [(True,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b + 5 FROM shop.big",
        "SELECT i + 8 FROM shop.big",
        "SELECT -(-b - 2) FROM shop.big",
        "SELECT b * 2 FROM shop.big",
        "SELECT sum(b) FROM shop.big",
        "SELECT sum(b) FROM (SELECT b FROM shop.big UNION ALL SELECT b FROM shop.big)",
        "SELECT sum(x.b) FROM shop.big x CROSS JOIN shop.small y",
        "SELECT b + id FROM shop.big, shop.small",
        # A row of either side beside none of the other: two rows of one and one.
        "SELECT sum(b) FROM (SELECT b FROM shop.big LIMIT 1) FULL JOIN (SELECT 9223372036854775800 AS b) USING (b)",
    ],
)
def test_values_that_may_overflow_raise(numbers: Session, query: str) -> None:
    with pytest.raises(UserError) as caught:
        numbers.rows(query)
    assert caught.value.condition == "ARITHMETIC_OVERFLOW"


def test_a_sum_at_the_limit_is_right(numbers: Session) -> None:
    assert numbers.rows("SELECT sum(b - 9223372036854775803) FROM shop.big") == [(10,)]


@pytest.mark.parametrize(
    ("query", "streams"),
    [
        ("SELECT id, concat('row ', CAST(id AS STRING)) FROM range(10)", True),
        ("SELECT i + 1, upper(CAST(d AS STRING)) FROM shop.small WHERE id > 3 ORDER BY 1", True),
        ("SELECT 1 div id FROM range(1, 10)", False),
        ("SELECT b + 1 FROM shop.big WHERE b < 5", False),
        ("SELECT CASE WHEN id > 0 THEN CAST(CAST(id AS STRING) AS INT) END FROM range(10)", False),
        ("SELECT id FROM range(10) WHERE 10 div (id + 1) > 1", False),
        ("SELECT x FROM (SELECT 5 % (id + 1) AS x FROM range(10)) WHERE x > 1", False),
    ],
)
def test_rows_are_shown_early_only_where_none_can_fail(numbers: Session, query: str, streams: bool) -> None:
    assert numbers.run(query).planned.streams is streams
