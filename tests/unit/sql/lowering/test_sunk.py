"""How much is moved of conditions for what Spark computes while it plans: all of short statements, some of long ones."""

from __future__ import annotations

import pytest

from gateway.engine.base import SessionState
from gateway.runner.handler import Runner
from gateway.sql.lowering.sunk import Effort, Rules, sunk
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Expr
from gateway.sql.typed.walk import all_relations, nodes
from tests.conformance.session import open_runner


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return open_runner(tmp_path_factory.mktemp("sunk"))


def _filters(runner: Runner, levels: int) -> list[b.Filter]:
    steps = [f"t{i} AS (SELECT a + 1 AS a FROM t{i - 1} WHERE a > {-i})" for i in range(1, levels + 1)]
    text = f"WITH t0 AS (SELECT id AS a FROM range(3)), {', '.join(steps)} SELECT a FROM t{levels}"
    command = parse_command(read_statement(text))
    assert isinstance(command, Query)
    query, _ = runner.bind(command.tree, runner.environment(SessionState("main", "default", "test", {})))
    return [rel for rel in all_relations(query.rel) if isinstance(rel, b.Filter)]


def _moved(filters: list[b.Filter], effort: Effort) -> tuple[int, int]:
    """How many conditions arrive, and how many parts of conditions are moved."""
    parts = 0

    def is_steady(term: Expr) -> bool:
        nonlocal parts
        parts += len(nodes(term))
        return True

    rules = Rules(lambda rel: False, is_steady, effort)
    arrived = sum(len(terms) for each in filters for _, terms in sunk(each, rules))
    return arrived, parts


def test_of_a_few_filters_over_each_other_all_conditions_arrive(runner: Runner) -> None:
    assert _moved(_filters(runner, 4), Effort())[0] == 1 + 2 + 3 + 4


def test_of_many_no_more_is_moved_than_of_some(runner: Runner) -> None:
    some, many = (_moved(_filters(runner, levels), Effort())[1] for levels in (60, 120))
    assert some <= many < 1.1 * some
