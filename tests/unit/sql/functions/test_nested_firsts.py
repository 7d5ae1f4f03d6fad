"""first, last and any_value of nested values have what they have of a plain column of the same rows."""

from __future__ import annotations

import pytest

from tests.conformance.session import Session, open_runner

#: How a nested value is made of a number, and the number taken out again.
_NESTED = (("named_struct('x', {})", "{}.x"), ("array({})", "{}[0]"), ("map('k', {})", "{}['k']"))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = Session(open_runner(tmp_path_factory.mktemp("nested")))
    rows = "id, id * 7919 % 7001 AS g, IF(id % 3 = 0, NULL, id) AS x"
    session.execute(f"CREATE TABLE t AS SELECT {rows} FROM range(15000)")
    session.execute(f"INSERT INTO t SELECT {rows} FROM range(15000, 30000)")
    return session


@pytest.mark.parametrize(("made", "taken"), _NESTED)
@pytest.mark.parametrize("call", ["first({})", "last({})", "any_value({})", "first(IF(x IS NULL, NULL, {}), true)"])
def test_they_are_of_rows_of_their_group(session: Session, made: str, taken: str, call: str) -> None:
    groups = f"SELECT g, {call.format(made.format('id'))} AS f, count(*) AS n FROM t GROUP BY g"
    number = taken.format("f")
    text = f"SELECT count_if({number} * 7919 % 7001 = g), count(*), sum(n) FROM ({groups})"
    assert session.execute(text).rows() == [[7001, 7001, 30000]]


@pytest.mark.parametrize(("made", "taken"), _NESTED)
@pytest.mark.parametrize("call", ["first({})", "last({})", "first(IF(x IS NULL, NULL, {}), true)"])
def test_the_first_of_an_order_is_the_first(session: Session, made: str, taken: str, call: str) -> None:
    nested, plain = call.format(made.format("id")), call.format("id")
    groups = f"SELECT {nested} AS f, {plain} AS p FROM (SELECT * FROM t ORDER BY id DESC) GROUP BY g"
    assert session.execute(f"SELECT count_if({taken.format('f')} = p), count(*) FROM ({groups})").rows() == [
        [7001, 7001]
    ]
