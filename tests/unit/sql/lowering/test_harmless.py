"""Which statements need no look at what Spark computes before it reads a row: no constant of theirs can raise."""

from __future__ import annotations

import pytest

from gateway.engine.base import SessionState
from gateway.runner.handler import Runner
from gateway.sql.lowering import constants
from gateway.sql.lowering.harmless import is_harmless
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from gateway.sql.typed.nodes import Rel
from tests.conformance.session import Session, open_runner
from tests.fuzz.compare import same_multiset

_HARMLESS = (
    "SELECT id, id + 1 FROM t WHERE d BETWEEN DATE'2024-01-01' AND DATE'2024-01-01' + INTERVAL 30 DAYS",
    "SELECT d + 1 FROM t WHERE s IN ('a', 'b') AND id = 1999 + 1 AND d > CAST('2024-01-01' AS DATE)",
    "SELECT coalesce(x, 0) / nullif(id, 0), CASE WHEN id > 1 THEN 0.2 * x ELSE 0 END FROM t",
    "SELECT sum(x) / sum(id), count(1), rank() OVER (ORDER BY sum(x)) FROM t GROUP BY s",
    "SELECT * FROM (SELECT 's' AS side, id FROM t UNION ALL SELECT 'w', id FROM t) WHERE side = 's' AND id > 1",
    "SELECT side, CAST(n AS INT) FROM (SELECT 's' AS side, NULL AS n FROM t) GROUP BY ALL",
    "WITH c AS (SELECT s, sum(x) AS x FROM t GROUP BY s) SELECT a.x / b.x FROM c AS a JOIN c AS b ON a.s = b.s AND a.x > 0",
    "SELECT id FROM t AS a WHERE x > (SELECT 1.2 * avg(x) FROM t AS b WHERE b.s = a.s)",
    "SELECT id FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.s = a.s AND b.id > 2 + 3)",
    "SELECT s, x, grouping(s) FROM t GROUP BY ROLLUP (s, x)",
    "SELECT id FROM t WHERE false AND id = 1",
)
_NOT_KNOWN = (
    "SELECT id, 1 / 0 FROM t",
    "SELECT id + (1 / (SELECT 2) + 1 DIV 0) FROM t",
    "SELECT CASE WHEN id > 1 THEN 1 / 0 END FROM t",
    "SELECT coalesce(x, CAST('a' AS INT)) FROM t",
    "SELECT if(true, 1 DIV 0, id) FROM t",
    "SELECT 1 DIV if(true, 0, id) FROM t",
    "SELECT 2147483647 + 1 + id FROM t",
    "SELECT sum(1 DIV 0) FROM t",
    "SELECT sum(id) OVER (PARTITION BY id + 1 DIV 0 ORDER BY id) FROM t",
    "SELECT max(id) FILTER (WHERE CAST('x' AS BOOLEAN)) FROM t",
    "SELECT id FROM t ORDER BY id + 1 DIV 0",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id AND 1 DIV 0 = 1",
    "SELECT 1 DIV z FROM (SELECT 0 AS z FROM t)",
    "SELECT 1 DIV z FROM (SELECT 0 AS z FROM t UNION ALL SELECT 1 FROM t)",
    "SELECT id FROM (SELECT id, 0 AS z FROM t) WHERE 1 DIV z = id",
    "WITH c AS (SELECT id, 0 AS z FROM t) SELECT id FROM c WHERE EXISTS (SELECT 1 FROM c WHERE 1 DIV z = 1)",
    "SELECT 1 DIV CASE WHEN z = 0 THEN 0 ELSE id END FROM (SELECT id, 0 AS z FROM t)",
    "SELECT id FROM t AS a WHERE x > (SELECT 1 DIV count(*) FROM t AS b WHERE b.s = a.s)",
    "SELECT n FROM t AS a, LATERAL (SELECT 1 DIV count(*) AS n FROM t AS b WHERE b.s = a.s)",
    "SELECT CAST(v AS INT) FROM VALUES ('a'), ('1') AS w(v)",
    "SELECT id FROM (SELECT 0 AS z, id, rank() OVER (PARTITION BY id ORDER BY id) AS n FROM t) WHERE 1 DIV z > 0 AND n > 0",
    "SELECT 1 DIV z FROM (SELECT 0 AS z FROM t) LATERAL VIEW explode(array(1)) AS e",
    "SELECT explode(sequence(1, 1 DIV 0)) FROM t",
    "SELECT transform(array(id), e -> e + 1 DIV 0) FROM t",
    "SELECT element_at(array(1), 2) + id FROM t",
)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    runner = open_runner(tmp_path_factory.mktemp("harmless"))
    Session(runner).execute(
        "CREATE TABLE t AS SELECT CAST(id AS INT) AS id, string(id) AS s, DATE'2024-01-01' AS d, "
        "CAST(id AS DECIMAL(7, 2)) AS x FROM range(1, 4)"
    )
    return runner


def _bound(runner: Runner, text: str) -> tuple[Rel, SessionState]:
    command = parse_command(read_statement(text))
    assert isinstance(command, Query)
    state = SessionState("main", "default", "test", {})
    return runner.bind(command.tree, runner.environment(state))[0].rel, state


@pytest.mark.parametrize("text", _HARMLESS)
def test_statements_without_constants_that_raise(runner: Runner, text: str) -> None:
    rel, state = _bound(runner, text)
    assert is_harmless(rel, runner.environment(state).context)
    assert Session(runner).compiled(text).generated.first == ""


@pytest.mark.parametrize("text", _NOT_KNOWN)
def test_statements_that_need_a_look(runner: Runner, text: str) -> None:
    rel, state = _bound(runner, text)
    assert not is_harmless(rel, runner.environment(state).context)


@pytest.mark.parametrize("text", _HARMLESS)
def test_with_the_look_rows_are_the_same(runner: Runner, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(runner)
    without = session.execute(text).rows()
    monkeypatch.setattr(constants, "is_harmless", lambda rel, context: False)
    assert same_multiset(session.execute(text).rows(), without)
