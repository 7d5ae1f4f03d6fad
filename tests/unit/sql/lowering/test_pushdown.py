"""Files are chosen by conditions that hold wherever a table's scan is read, not by those of one place."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.planner import plan
from gateway.sql.compile import compile_query
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from tests.conformance.session import Session, open_runner

_SETUP = (
    "CREATE TABLE inside (p INT, f INT)",
    *(f"INSERT INTO inside VALUES {rows}" for rows in ("(1, 1), (1, 2)", "(2, NULL)", "(3, 3)", "(9, 9)")),
    "CREATE TABLE outside (k INT, f INT)",
    "INSERT INTO outside VALUES (1, 1), (1, 5), (2, 1), (3, 3), (3, 1), (4, 1), (4, NULL)",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("pushdown")))
    for statement in _SETUP:
        made.execute(statement)
    return made


CORRELATED = "f NOT IN (SELECT f FROM inside i WHERE i.p = k)"
CASES: list[tuple[str, list[list[Any]]]] = [
    (
        f"SELECT k, f, {CORRELATED} FROM outside ORDER BY 1, 2",
        [[1, 1, False], [1, 5, True], [2, 1, False], [3, 1, True], [3, 3, False], [4, None, True], [4, 1, True]],
    ),
    (f"SELECT k, f FROM outside WHERE {CORRELATED} OR k = 0 ORDER BY 1, 2", [[1, 5], [3, 1], [4, None], [4, 1]]),
    (f"SELECT k, f FROM outside WHERE {CORRELATED} ORDER BY 1, 2", [[1, 5], [3, 1], [4, None], [4, 1]]),
    (
        "SELECT k, f FROM outside WHERE f NOT IN (SELECT f FROM inside WHERE p <> 2) OR k = 2 ORDER BY 1, 2",
        [[1, 5], [2, 1]],
    ),
    ("SELECT f IN (SELECT f FROM inside) FROM outside WHERE k < 3 ORDER BY f, k", [[True], [True], [False]]),
    ("SELECT f NOT IN (SELECT f FROM inside WHERE p > 2) FROM outside WHERE k = 3 ORDER BY f", [[True], [False]]),
]


@pytest.mark.parametrize(("sql", "rows"), CASES)
def test_rows_of_what_is_read_in_several_places(session: Session, sql: str, rows: list[list[Any]]) -> None:
    """IN outside of WHERE is never NULL in Spark: it joins, and asks whether there is a row."""
    assert session.execute(sql).rows() == rows


def files_read(session: Session, sql: str) -> set[int]:
    """How many files of ``inside`` are read, by each of its scans."""
    command = parse_command(read_statement(sql))
    assert isinstance(command, Query)
    env = session.runner.environment(session.state)
    query, _ = session.runner.bind(command.tree, env)
    scans = plan(compile_query(query, env.context)).scans
    return {scan.files_kept for scan in scans if scan.table.endswith("inside")}


def test_what_all_places_say_chooses_files(session: Session) -> None:
    assert files_read(session, f"SELECT {CORRELATED} FROM outside") == {4}
    common = "SELECT f NOT IN (SELECT f FROM inside i WHERE i.p = k AND i.p > 2) FROM outside"
    assert files_read(session, common) == {2}
    assert files_read(session, "SELECT * FROM inside WHERE f IS NULL") == {1}


def test_ranges_choose_files(session: Session) -> None:
    assert files_read(session, "SELECT * FROM inside WHERE p BETWEEN 2 AND 3") == {2}
    assert files_read(session, "SELECT * FROM inside WHERE p NOT BETWEEN 2 AND 3") == {4}


_SPREAD = "SELECT p, explode(fs) AS f FROM (SELECT p, collect_list(f) AS fs FROM inside GROUP BY p)"
_OF_GROUPS = (
    f"SELECT DISTINCT p, f FROM ({_SPREAD}) WHERE p = 3",
    f"SELECT p, count(*) FROM (SELECT * FROM ({_SPREAD}) WHERE p BETWEEN 3 AND 4) GROUP BY p, f",
    "SELECT DISTINCT p, x FROM (SELECT DISTINCT p, f FROM inside) LATERAL VIEW explode(array(1, 2)) AS x WHERE p IN (3)",
    "SELECT DISTINCT p FROM (SELECT g.p, count(*) FROM (SELECT p, f, count(*) AS n FROM inside GROUP BY p, f) AS g "
    "JOIN range(3) ON true GROUP BY g.p, g.n) WHERE p = 3",
)


@pytest.mark.parametrize("sql", _OF_GROUPS)
def test_conditions_on_keys_of_groups_that_are_repeated_reach_the_scan(session: Session, sql: str) -> None:
    assert files_read(session, sql) == {1}
    (plan,) = session.execute(f"EXPLAIN {sql}").rows()[0]
    assert any(word in plan for word in ("predicate=p@0 = 3", "predicate=p@0 >= 3"))


def test_groups_that_are_read_twice_keep_what_either_asks_for(session: Session) -> None:
    one, other = (f"SELECT DISTINCT p FROM g WHERE p {condition}" for condition in ("= 3", "< 3"))
    assert session.execute(f"WITH g AS ({_SPREAD}) {one} UNION ALL {other} ORDER BY p").rows() == [[1], [3]]
    asked = "SELECT k, k IN (SELECT DISTINCT p FROM ({}) WHERE p > 1 AND p = k) FROM outside WHERE f = 1 ORDER BY k"
    assert session.execute(asked.format(_SPREAD)).rows() == [[1, False], [2, False], [3, True], [4, False]]
