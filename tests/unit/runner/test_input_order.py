"""The order of a query below, where Spark hands it on: to rows, to LIMIT, to aggregates that take rows as they come."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import UnsupportedError
from gateway.runner import Runner
from tests.unit.runner.session import Session

T = "VALUES (30, 'c', 1), (10, 'a', 1), (20, 'b', 2) AS t(v, k, g)"
LISTS = "(SELECT * FROM VALUES (3, array(1, 2)), (1, array(5, 4)), (2, array(9, 8)) AS t(id, a) ORDER BY id)"

#: The rows are those of Spark 4.2, in its order.
ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    f"SELECT first(v), last(v), any_value(k) FROM (SELECT * FROM {T} ORDER BY v)": [(10, 30, "a")],
    f"SELECT collect_list(k), listagg(k, '-') FROM (SELECT * FROM {T} ORDER BY v DESC)": [(["c", "b", "a"], "c-b-a")],
    f"SELECT collect_list(k) FILTER (WHERE v > 10) FROM (SELECT k, v FROM {T} ORDER BY -v)": [(["c", "b"],)],
    f"SELECT first(v) FROM (SELECT v FROM (SELECT * FROM {T} ORDER BY k) WHERE v > 10)": [(20,)],
    f"SELECT g, first(v) FROM (SELECT * FROM {T} ORDER BY v) GROUP BY g HAVING first(v) > 15": [(2, 20)],
    f"SELECT first(v), count(DISTINCT g) FROM (SELECT * FROM {T} ORDER BY v + g)": [(10, 2)],
    f"SELECT collect_list(v) FROM (SELECT v FROM {T} ORDER BY k LIMIT 2)": [([10, 20],)],
    f"WITH s AS (SELECT * FROM {T} ORDER BY v) SELECT (SELECT first(k) FROM s), (SELECT last(k) FROM s)": [("a", "c")],
    f"SELECT * FROM (SELECT v, k FROM {T} ORDER BY -v) LIMIT 2": [(30, "c"), (20, "b")],
    f"SELECT v FROM (SELECT v FROM {T} ORDER BY k) LIMIT 1": [(10,)],
    f"SELECT upper(k) FROM (SELECT v, k FROM {T} ORDER BY v + 1)": [("A",), ("B",), ("C",)],
    f"SELECT v FROM (SELECT v, k FROM (SELECT v, k FROM {T} ORDER BY k DESC)) LIMIT 2": [(30,), (20,)],
    f"SELECT v FROM (SELECT v FROM (SELECT * FROM {T} ORDER BY abs(v) DESC) LIMIT 2) LIMIT 1": [(30,)],
    f"SELECT max(v) FROM (SELECT v FROM (SELECT v FROM {T} ORDER BY k || 'x') LIMIT 2)": [(20,)],
    f"SELECT v, row_number() OVER (ORDER BY 1) FROM (SELECT v FROM (SELECT * FROM {T} ORDER BY v * 2 DESC))": [
        (30, 1), (20, 2), (10, 3),
    ],
    "SELECT v, lag(v) OVER (ORDER BY NULL), rank() OVER (ORDER BY 1), sum(v) OVER (ORDER BY 1), "
    f"sum(v) OVER (ORDER BY 1 ROWS UNBOUNDED PRECEDING) FROM (SELECT v FROM {T} ORDER BY v)": [
        (10, None, 1, 60, 10), (20, 10, 1, 60, 30), (30, 20, 1, 60, 60),
    ],
    f"SELECT v * 2 FROM (SELECT * FROM {T} ORDER BY k) WHERE v > 5": [(20,), (40,), (60,)],
    f"SELECT v FROM (SELECT * FROM {T} ORDER BY k) WHERE v > 10 LIMIT 1": [(20,)],
    f"WITH s AS (SELECT v, k FROM {T} ORDER BY v DESC) SELECT k FROM s WHERE v <> 20": [("c",), ("a",)],
    f"SELECT upper(k) FROM (SELECT * FROM (SELECT * FROM {T} ORDER BY v DESC) WHERE v < 30)": [("B",), ("A",)],
    f"WITH s AS (SELECT v FROM (SELECT v FROM (SELECT * FROM {T} ORDER BY v DESC) WHERE v > 5 LIMIT 2) ORDER BY v) "
    "SELECT collect_list(v), first(v) FROM s": [([20, 30], 20)],
    "SELECT count(*), first(id) FROM (SELECT id FROM range(10) ORDER BY id % 3 DESC, id)": [(10, 2)],
    f"SELECT id, e FROM {LISTS} LATERAL VIEW explode(a) AS e": [(1, 5), (1, 4), (2, 9), (2, 8), (3, 1), (3, 2)],
    f"SELECT id, e FROM {LISTS}, LATERAL explode(a) AS x(e) WHERE e > 4 LIMIT 2": [(1, 5), (2, 9)],
    f"SELECT id, p, e FROM {LISTS} LATERAL VIEW posexplode(a) AS p, e LIMIT 2": [(1, 0, 5), (1, 1, 4)],
    f"SELECT e, f FROM {LISTS} LATERAL VIEW explode(a) AS e LATERAL VIEW explode(a) AS f LIMIT 3": [
        (5, 5),
        (5, 4),
        (4, 5),
    ],
    f"SELECT e FROM (SELECT id, explode(a) AS e FROM {LISTS}) WHERE e <> 5 LIMIT 2": [(4,), (9,)],
    f"SELECT collect_list(e), first(e), last(e) FROM {LISTS} LATERAL VIEW explode(a) AS e": [
        ([5, 4, 9, 8, 1, 2], 5, 2)
    ],
    "SELECT k, e FROM (SELECT * FROM VALUES (1, array()), (3, array(1)) AS t(k, a) ORDER BY k DESC) "
    "LATERAL VIEW OUTER explode(a) AS e": [(3, 1), (1, None)],
    "SELECT k, e FROM (SELECT * FROM VALUES (3, array(1,2)), (1, array(5,4)), (1, array(9,8)) AS t(k, a) ORDER BY k) "
    "LATERAL VIEW explode(a) AS e": [(1, 5), (1, 4), (1, 9), (1, 8), (3, 1), (3, 2)],
    # A window that a generator reads is given the numbers of its rows.
    f"SELECT explode(collect_list(sum(v)) OVER ()) AS e FROM {T}": [(60,)],
}  # fmt: skip


@pytest.mark.parametrize("sql", list(ANSWERS))
def test_rows_come_in_the_order_of_the_query_below(runner: Runner, sql: str) -> None:
    assert Session(runner).rows(sql) == ANSWERS[sql]


def test_an_order_of_its_own_comes_first(runner: Runner) -> None:
    sql = f"SELECT listagg(k) WITHIN GROUP (ORDER BY k DESC) FROM (SELECT * FROM {T} ORDER BY k)"
    assert Session(runner).rows(sql) == [("cba",)]


def test_what_differs_each_time_is_computed_once_for_a_name(runner: Runner) -> None:
    with pytest.raises(UnsupportedError, match="used more than once"):
        Session(runner).rows(
            "WITH s AS (SELECT rand() AS r, id FROM range(3) ORDER BY id) "
            "SELECT (SELECT first(r) FROM s) = (SELECT first(r) FROM s)"
        )


def test_ordered_names_over_each_other_are_looked_at_once(runner: Runner) -> None:
    names = ", ".join(
        f"c{i} AS (SELECT g, first(v) AS v, collect_list(k)[0] AS k FROM c{i - 1} GROUP BY g ORDER BY v DESC)"
        for i in range(1, 21)
    )
    sql = f"WITH c0 AS (SELECT * FROM {T} ORDER BY v), {names} SELECT collect_list(v), first(k) FROM c20"
    assert Session(runner).rows(sql) == [([20, 10], "b")]
