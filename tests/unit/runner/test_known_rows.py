"""A SELECT without FROM whose values are known is answered without a plan, with what the engine would say."""

from __future__ import annotations

import pytest

from gateway.errors import GatewayError
from gateway.runner import Runner
from gateway.sql.functions.context import SURROUNDINGS
from gateway.sql.lowering.constant_rows import known_rows
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from tests.unit.runner.session import Session

KNOWN = (
    "1",
    "1Y, 2S, 3, 4L, 99999999999999999999",
    "-128Y, -9223372036854775808, -2147483648",
    "1.50, -0.0, 0.00, 1e3, 1.5D, -0.0D, 1e-300, 2.5F, 12345678901234567890.123456789BD, -1BD",
    "true, false, NULL",
    "'', 'a', 'it''s', '\u00e9\U0001f600', \"x\", r'\\n', 'a' 'b'",
    "X'', X'00ff', DATE'2024-02-29', DATE'0001-01-01', DATE'9999-12-31'",
    "TIMESTAMP'2024-11-03 01:30:00', TIMESTAMP_NTZ'2024-11-03 01:30:00.123456', TIMESTAMP'1582-10-10 00:00:00'",
    "INTERVAL '3' MONTH, INTERVAL '1-2' YEAR TO MONTH, INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL -'7' DAY",
    "1 + 1 AS two, 7 * 6, 10 - 3",
    "CAST(1 AS STRING), CAST('7' AS INT), CAST(1 AS DECIMAL(10, 2)), CAST(NULL AS DATE), CAST(1.5 AS DOUBLE)",
    "typeof(1), current_catalog(), current_schema(), current_timezone()",
    "1 AS a, 1 AS a, 2 AS `b c`",
)
COMPUTED = (
    "1 / 2",
    "double('inf')",
    "rand()",
    "array(1)",
    "named_struct('a', 1)",
    "map(1, 2)",
    "upper('a')",
    "CASE WHEN true THEN 1 END",
)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("items", KNOWN)
def test_what_is_known_is_what_the_engine_says(session: Session, runner: Runner, items: str, zone: str) -> None:
    session.run(f"SET TIME ZONE '{zone}'")
    found, computed = session.run(f"SELECT {items}"), session.run(f"SELECT {items} FROM range(1)")
    assert found.columns == computed.columns
    assert repr(found.rows) == repr(computed.rows)
    assert found.planned.schema == computed.planned.schema
    assert _is_known(session, runner, items)


VALUES = (
    "* FROM VALUES (1, 'a'), (NULL, 'b'), (3L, 'c') AS v(x, y)",
    "y, x, x + 1 AS more, x AS again FROM VALUES (1, 1.5), (2, NULL) AS v(x, y)",
    "x.* FROM (SELECT a, a * 2 AS b FROM VALUES (1), (2) AS v(a)) AS x",
    "CAST(a AS BIGINT), DATE'2024-01-01' FROM (SELECT '7' AS a)",
    "cast(x AS DECIMAL(10, 2)) FROM VALUES (1), (-1) AS v(x)",
    "1 FROM VALUES (1), (2)",
)
COMPUTED_VALUES = (
    "1 FROM (SELECT rand() AS a)",  # whatever is not known may raise, though nobody reads it
    "x FROM VALUES (1, array(1)) AS v(x, y)",
    "x FROM VALUES (1), (2) AS v(x) WHERE x > 0",
    "x FROM VALUES (2), (1) AS v(x) ORDER BY x",
    "DISTINCT x FROM VALUES (1), (1) AS v(x)",
    f"* FROM VALUES {', '.join(['(1)'] * 257)}",
)


@pytest.mark.parametrize("items", VALUES)
def test_known_rows_are_those_that_the_engine_says(session: Session, runner: Runner, items: str) -> None:
    found, computed = session.run(f"SELECT {items}"), session.run(f"SELECT {items} WHERE rand() < 2")
    assert found.columns == computed.columns
    assert repr(found.rows) == repr(computed.rows)
    assert found.planned.schema == computed.planned.schema
    assert _is_known(session, runner, items)


@pytest.mark.parametrize("items", COMPUTED_VALUES)
def test_other_rows_are_computed(session: Session, runner: Runner, items: str) -> None:
    assert session.rows(f"SELECT {items}")
    assert not _is_known(session, runner, items)


def test_a_row_that_nobody_reads_raises_as_ever(session: Session) -> None:
    whole, read = "SELECT * FROM (SELECT 1 AS b, 1 / 0 AS a)", "SELECT b FROM (SELECT 1 AS b, 1 / 0 AS a)"
    with pytest.raises(GatewayError):
        session.run(whole)
    assert session.rows(read) == session.rows(f"{read} WHERE rand() < 2")


def test_inserted_rows_are_known(session: Session) -> None:
    session.run("CREATE TABLE t (id BIGINT, p DECIMAL(6, 2), s STRING)")
    session.run("ALTER TABLE t ADD CONSTRAINT c CHECK (id < 9)")
    session.run("INSERT INTO t VALUES (1, 2, 'd'), (2, NULL, '7')")
    session.run("INSERT INTO t (p, id) SELECT '1.255', 3")
    assert repr(session.rows("SELECT * FROM t ORDER BY id")) == (
        "[(1, Decimal('2.00'), 'd'), (2, None, '7'), (3, Decimal('1.26'), None)]"
    )
    for row, condition in (
        ("9, 1, 'a'", "DELTA_VIOLATE_CONSTRAINT"),
        ("1, 99999, 'a'", "CAST_OVERFLOW"),
        ("'x', 1, ''", "CAST"),
    ):
        with pytest.raises(GatewayError) as raised:
            session.run(f"INSERT INTO t VALUES ({row})")
        assert condition in raised.value.condition or raised.value.condition.startswith("NUMERIC")


@pytest.mark.parametrize("items", COMPUTED)
def test_what_is_not_known_is_computed(session: Session, runner: Runner, items: str) -> None:
    assert len(session.rows(f"SELECT {items}")) == 1
    assert not _is_known(session, runner, items)


def test_each_name_of_the_surroundings_is_known(session: Session) -> None:
    for name in SURROUNDINGS:
        found, computed = session.run(f"SELECT {name}()"), session.run(f"SELECT {name}() FROM range(1)")
        assert found.columns == computed.columns
        assert len(found.rows) == 1 and type(found.rows[0][0]) is type(computed.rows[0][0])


@pytest.mark.parametrize("items", ["1, 1 / 0", "2147483647 + 1", "CAST('x' AS INT)", "1, raise_error('a')"])
def test_what_raises_does_so(session: Session, items: str) -> None:
    with pytest.raises(GatewayError):
        session.run(f"SELECT {items}")


def test_the_plan_of_a_known_row_is_told(session: Session) -> None:
    ((text,),) = session.rows("EXPLAIN SELECT 1")
    assert text.startswith("Engine: datafusion") and "ProjectionExec" in text


def test_rows_of_a_table_are_counted_without_a_plan(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT id FROM range(7)")
    for expected in (7, 8):
        assert session.rows("SELECT count(*) FROM t") == [(expected,)]
        session.run("INSERT INTO t VALUES (7)")


def _is_known(session: Session, runner: Runner, items: str) -> bool:
    env = runner.environment(session.state)
    command = parse_command(read_statement(f"SELECT {items}"))
    assert isinstance(command, Query)
    query, _ = runner.bind(command.tree, env)
    return known_rows(query.rel, env.context) is not None
