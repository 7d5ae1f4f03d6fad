"""CASE inside of CASE: planned in no time however deep it is, and lazy all the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce

import pytest

from gateway.errors import GatewayError, ResourceError
from gateway.runner import Runner
from tests.unit.runner.session import Session

FORMS: dict[str, Callable[[str, int], str]] = {
    "when": lambda e, i: f"CASE WHEN {e} > {i} THEN {i} / x ELSE x END",
    "operand": lambda e, i: f"CASE {e} WHEN {i} THEN x ELSE {i} / x END",
    "truth": lambda e, i: f"CAST(CASE WHEN {e} > 0 THEN 1 / x > {i} ELSE x > 5 END AS INT)",
    "then": lambda e, i: f"CASE WHEN 1 / x > {i} THEN {e} ELSE {i} / x END",
    "else": lambda e, i: f"CASE WHEN 1 / x > {i} THEN {i} / x ELSE {e} END",
}


@contextmanager
def in_no_time() -> Iterator[None]:
    """What takes minutes, or all memory, where each level doubles it."""
    started = time.process_time()
    yield
    assert time.process_time() - started < 10


def thirty_times(form: Callable[[str, int], str]) -> str:
    """A form within itself."""
    return reduce(form, range(30), "x")


@pytest.mark.parametrize("form", list(FORMS))
def test_thirty_levels_are_planned_in_no_time(runner: Runner, form: str) -> None:
    text = thirty_times(FORMS[form])
    with in_no_time():
        assert len(Session(runner).rows(f"SELECT {text} FROM VALUES (1), (2) AS t(x)")) == 2


def test_branches_behind_nested_conditions_are_computed_for_their_rows_alone(runner: Runner) -> None:
    deep = "x = 2"
    for level in range(6):
        deep = f"CASE WHEN {deep} THEN x + {level} > 0 ELSE x < -{level} END"
    rows = "VALUES (1), (2), (3), (NULL) AS t(x)"
    query = (
        f"SELECT x, CASE WHEN x = 3 THEN 1 / (x - 2) WHEN {deep} THEN 1 / (x - 1) WHEN 1 / (x - 2) < 0 THEN 7 "
        f"ELSE 1 / (x - 3) END FROM {rows} ORDER BY x"
    )
    assert Session(runner).rows(query) == [(None, None), (1, 7.0), (2, 1.0), (3, 1.0)]


CHAINS: dict[str, Callable[[str, int], str]] = {
    "sum of products": lambda e, i: f"{e} + x * {i}",
    "sum of casts": lambda e, i: f"{e} + CAST(s AS INT)",
    "sum of quotients": lambda e, i: f"{e} + x / CAST(s AS INT)",
    "nullif": lambda e, i: f"nullif({e}, {i + 100})",
    "coalesce": lambda e, i: f"coalesce({e}, CAST(s AS INT))",
    "zeroifnull": lambda e, i: f"zeroifnull({e})",
    "coalesce of NULL": lambda e, i: f"coalesce(NULL, {e})",
    "coalesce of nullif": lambda e, i: f"coalesce(nullif({e}, {i + 100}), {i})",
    "replace": lambda e, i: f"replace({e}, '{i}', s)",
}


@pytest.mark.parametrize("form", list(CHAINS))
def test_chains_of_what_fails_are_planned_in_no_time(runner: Runner, form: str) -> None:
    text = thirty_times(CHAINS[form])
    with in_no_time():
        assert len(Session(runner).rows(f"SELECT {text} FROM VALUES (1, '3'), (NULL, NULL) AS t(x, s)")) == 2


DOUBLED: dict[str, Callable[[str, int], str]] = {
    "left": lambda e, i: f"left({e}, 3)",
    "sqrt": lambda e, i: f"sqrt({e})",
    "locate": lambda e, i: f"locate('a', s, {e})",
    "replace": lambda e, i: f"replace(s, 'a', {e})",
}


@pytest.mark.parametrize("form", list(DOUBLED))
def test_what_doubles_with_each_level_is_told_in_no_time(runner: Runner, form: str) -> None:
    text = thirty_times(DOUBLED[form])
    with in_no_time(), pytest.raises(ResourceError, match="STATEMENT_TOO_COMPLEX"):
        Session(runner).rows(f"SELECT {text} FROM (SELECT CAST(id AS INT) AS x, string(id) AS s FROM range(2))")


_SIXTY = range(60)
CONDITIONS = {
    "all of": (" AND ".join(f"CAST(s AS INT) <> {i}" for i in _SIXTY), [60, 61, 62]),
    "one of": (" OR ".join(f"CAST(s AS INT) = {i}" for i in _SIXTY), list(_SIXTY)),
    "a list": (f"x IN ({', '.join(f'CAST(string({i}) AS DOUBLE)' for i in _SIXTY)})", list(_SIXTY)),
    "both": (" AND ".join(f"(60 DIV (x - {i}) > 0 OR CAST(s AS INT) <= {i})" for i in _SIXTY), None),
    "behind others": (f"x > 59 AND {' AND '.join(f'1000 DIV (x - {i}) > 0' for i in _SIXTY)}", [60, 61, 62]),
}


@pytest.mark.parametrize("name", list(CONDITIONS))
def test_conditions_of_many_terms_that_may_fail_are_planned_in_no_time(runner: Runner, name: str) -> None:
    condition, expected = CONDITIONS[name]
    rows = "(SELECT CAST(id AS INT) AS x, string(id) AS s FROM range(63))"
    query = f"SELECT x FROM {rows} WHERE {condition} ORDER BY x"
    with in_no_time():
        if expected is None:
            with pytest.raises(GatewayError, match="DIVIDE_BY_ZERO"):
                Session(runner).rows(query)
        else:
            assert Session(runner).rows(query) == [(x,) for x in expected]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x = 0 OR 1 DIV x > 0 OR CAST(s AS INT) > 0", [0, 1]),
        ("(x = 0 OR 1 DIV x > 0) OR x = 2", [0, 1, 2]),
        ("NOT (x <> 0 AND 1 DIV x > 0 AND CAST(s AS INT) > 0)", [0, 2]),
        ("x > 0 AND (1 DIV x > 0 OR s IS NULL) AND 2 DIV x > 0", [1]),
        ("n OR 1 / (x - 3) < 0 OR x = 5", [0, 1, 2]),
        ("NOT (n AND 1 DIV (x - 3) = 0 AND 1 DIV (x - 4) = 0)", [2]),
    ],
)
def test_terms_are_asked_for_as_far_as_none_before_them_decides(
    runner: Runner, condition: str, expected: list[int]
) -> None:
    rows = "VALUES (0, 'a', true), (1, '1', NULL), (2, '0', false) AS t(x, s, n)"
    assert Session(runner).rows(f"SELECT x FROM {rows} WHERE {condition} ORDER BY x") == [(x,) for x in expected]
