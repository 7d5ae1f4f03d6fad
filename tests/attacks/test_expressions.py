"""Whoever writes a table's log has its writers evaluate expressions: of the row, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import UnsupportedError, UserError
from gateway.protocol.client import Client, RemoteError
from gateway.sql.spark.allowed import check_expression
from tests.attacks.attacker import answer, outcome
from tests.live.gateway import Server

SECRET = "987654321"
FEATURES = ["checkConstraints", "generatedColumns", "invariants", "allowColumnDefaults", "appendOnly"]
READING = (
    "(SELECT max(v) FROM expressions.secret)",
    "((SELECT max(v) FROM expressions.secret))",
    "EXISTS (SELECT 1 FROM expressions.secret)",
    "id IN (SELECT n FROM expressions.secret)",
    "CASE WHEN id > 0 THEN (SELECT max(v) FROM expressions.secret) END",
    "(SELECT max(value) FROM text.`{file}`) = s",
)
# No expression of one row, or of more than what the row holds.
OTHERS = (
    "max(s)",
    "row_number() OVER (ORDER BY s)",
    "explode(array(s))",
    ":given",
    "s; DROP TABLE t",
    "",
    "s AS x",
    "*",
)
WRITES = {
    "delta.generationExpression": ("INSERT INTO expressions.t (id) VALUES (2L)", "UPDATE expressions.t SET id = 3"),
    "CURRENT_DEFAULT": ("INSERT INTO expressions.t (id) VALUES (2L)", "INSERT INTO expressions.t (id) SELECT 2L"),
    "delta.invariants": ("INSERT INTO expressions.t VALUES (2L, 'b')", "UPDATE expressions.t SET id = 3"),
    "delta.constraints.k": ("INSERT INTO expressions.t VALUES (2L, 'b')", "UPDATE expressions.t SET id = 3"),
    "Delta.Constraints.k": ("INSERT INTO expressions.t VALUES (2L, 'b')", "UPDATE expressions.t SET id = 3"),
}


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.thrift_url).open() as one:
        answer(one, "CREATE SCHEMA expressions")
        answer(one, f"CREATE TABLE expressions.secret AS SELECT '{SECRET}' AS v, 2 AS n")
        yield one
        answer(one, "DROP SCHEMA expressions CASCADE")


def keep(table: Path, place: str, text: str) -> None:
    """Have a table of the columns id and s keep an expression."""
    log = table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": FEATURES}
        if "metaData" in action and place.lower().startswith("delta.constraints"):
            action["metaData"]["configuration"][place] = text
        elif "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            invariant = json.dumps({"expression": {"expression": text}})
            schema["fields"][1]["metadata"][place] = invariant if place == "delta.invariants" else text
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))


@pytest.fixture
def table(client: Client, server: Server) -> Iterator[Path]:
    answer(client, "CREATE TABLE expressions.t AS SELECT 1L AS id, 'a' AS s")
    yield server.warehouse / "expressions" / "t"
    answer(client, "DROP TABLE expressions.t")


@pytest.mark.parametrize("place", WRITES)
@pytest.mark.parametrize("text", READING)
def test_an_expression_of_a_table_reads_no_other(
    client: Client, server: Server, table: Path, place: str, text: str
) -> None:
    file = server.warehouse.parent / "files" / "secret.txt"
    file.write_text(SECRET)
    keep(table, place, text.format(file=file))
    for statement in WRITES[place]:
        told = outcome(client, statement)
        assert isinstance(told, RemoteError)
        assert "[EXPRESSION_NOT_ALLOWED]" in str(told)
        assert SECRET not in str(told)
    assert answer(client, "SELECT * FROM expressions.t") == [{"id": 1, "s": "a"}]


@pytest.mark.parametrize("place", WRITES)
@pytest.mark.parametrize("text", OTHERS)
def test_what_is_not_of_one_row_is_refused(client: Client, table: Path, place: str, text: str) -> None:
    keep(table, place, text)
    for statement in WRITES[place]:
        told = outcome(client, statement)
        assert isinstance(told, RemoteError)
        assert "INTERNAL_ERROR" not in str(told)
    assert answer(client, "SELECT * FROM expressions.t") == [{"id": 1, "s": "a"}]


@pytest.mark.parametrize("text", ["id > 0", "s IS NOT NULL AND length(s) < 5"])
def test_what_is_of_one_row_holds(client: Client, table: Path, text: str) -> None:
    keep(table, "delta.constraints.k", text)
    answer(client, "INSERT INTO expressions.t VALUES (2L, 'b')")
    assert isinstance(outcome(client, "INSERT INTO expressions.t VALUES (-2, 'too long')"), RemoteError)


@pytest.mark.parametrize(
    "text", [*READING, "(FROM t SELECT 1)", "(VALUES (1)) = id", "(TABLE t) = id", "1; DROP TABLE t"]
)
def test_spark_evaluates_no_queries(text: str) -> None:
    with pytest.raises((UserError, UnsupportedError)):
        check_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'exit', 1)",
        "`java_method`('java.lang.System', 'getProperty', 'user.name')",
        "coalesce(s, /* */ REFLECT ('java.lang.System', 'exit', 1))",
        "read_files('/etc/passwd')",
        "IDENTIFIER('s' || 't')",
    ],
)
def test_spark_runs_no_code_of_tables(text: str) -> None:
    with pytest.raises(UnsupportedError):
        check_expression(text)


@pytest.mark.parametrize(
    "text", ["id + 1", "s LIKE 'select%'", "`select` > 0", "map('a', 1)['a']", "CAST(s AS DATE)", "(id) > (1)"]
)
def test_spark_evaluates_all_others(text: str) -> None:
    check_expression(text)
