"""Bad statements get the right condition, SQLSTATE and position as ServerOperationError; the server stays up."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from databricks.sql import exc

from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server, connect_to, start_server

CASES: tuple[tuple[str, str, str], ...] = (
    # statement, words of the message in this order, SQLSTATE
    ("^ FOO BAR", "PARSE_SYNTAX_ERROR", "42601"),
    ("SELECT 1 +", "PARSE_SYNTAX_ERROR", "42601"),
    ("SELECT\n  1,\n  FROM WHERE", "line 3", "42601"),
    ("SELEC 1", "PARSE_SYNTAX_ERROR", "42601"),
    ("SELECT * FROM no_such_table", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
    ("SELECT nme FROM (SELECT 1 AS name)", "UNRESOLVED_COLUMN", "42703"),
    ("SELECT no_such_function(1)", "no_such_function", "42883"),
    ("SELECT 1 / 0", "DIVIDE_BY_ZERO", "22012"),
    ("SELECT 1 % 0", "REMAINDER_BY_ZERO", "22012"),
    ("SELECT CAST('abc' AS INT)", "CAST_INVALID_INPUT", "22018"),
    ("SELECT CAST('2024-13-01' AS DATE)", "CAST_INVALID_INPUT", "22018"),
    ("SELECT 2147483647 + 1", "ARITHMETIC_OVERFLOW", "22003"),
    ("SELECT 9223372036854775807 + 1", "ARITHMETIC_OVERFLOW", "22003"),
    ("SELECT CAST(300 AS TINYINT)", "CAST_OVERFLOW", "22003"),
    ("SELECT id + 9223372036854775807 FROM range(3)", "ARITHMETIC_OVERFLOW", "22003"),
    ("SELECT 1 UNION SELECT 1, 2", "NUM_COLUMNS_MISMATCH", "42826"),
    ("SELECT id FROM range(3) GROUP BY id HAVING max(x) > 1", "UNRESOLVED_COLUMN", "42703"),
    ("SELECT id, count(*) FROM range(3)", "MISSING_GROUP_BY", "42803"),
    ("SET spark.sql.ansi.enabled = false", "ansi", "0A000"),
    ("SELECT raise_error('boom')", "boom", "P0001"),
)


@pytest.mark.parametrize(("statement", "words", "sqlstate"), CASES, ids=[c[0] for c in CASES])
def test_condition(cursor: Any, statement: str, words: str, sqlstate: str) -> None:
    with pytest.raises(exc.ServerOperationError) as caught:
        cursor.execute(statement).fetchall()
    message = str(caught.value)
    assert words in message
    assert f"SQLSTATE: {sqlstate}" in message
    assert cursor.execute("SELECT 'alive'").fetchone()[0] == "alive"


@pytest.mark.parametrize(
    ("statement", "line", "column", "marked"),
    [
        ("SELECT 1,\n  nope FROM range(1)", 2, 3, "nope"),
        ("SELECT nofn(1)", 1, 8, "nofn(1)"),
        ("SELECT * FROM\n\n no_such_table", 3, 2, "no_such_table"),
        ("SELECT 'ä€😀' || nope", 1, 17, "nope"),
        ("SELECT 1 FROM range(3) WHERE id = = 2", 1, 35, "="),
        ("DROP TABLE nope", 1, 12, "nope"),
        ("SELECT id FROM range(3) WHERE id IN (SELECT nope FROM range(2))", 1, 45, "nope"),
    ],
)
def test_position_of_what_is_wrong_in_the_text(
    cursor: Any, statement: str, line: int, column: int, marked: str
) -> None:
    with pytest.raises(exc.ServerOperationError) as caught:
        cursor.execute(statement)
    head, _, shown = str(caught.value).partition(f"\n\n== SQL (line {line}, position {column}) ==\n")
    assert head.endswith(f"(line {line}, pos {column - 1})")
    *_, text, carets = shown.splitlines()
    start = carets.index("^")
    assert text[start : start + carets.count("^")] == marked


def test_the_text_is_where_databricks_jdbc_looks_for_it(server: Server) -> None:
    """It shows `status.errorMessage` of a state of ERROR, and "no error details from server" where that is empty."""
    with Client(server.thrift_url).open() as client:
        request = ttypes.TExecuteStatementReq(
            client._session, "SELECT nope", runAsync=True, getDirectResults=ttypes.TSparkGetDirectResults(maxRows=10)
        )
        ended = client.call("ExecuteStatement", request).directResults.operationStatus
        assert ended.operationState == ttypes.TOperationState.ERROR_STATE
        assert ended.status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS
        assert "UNRESOLVED_COLUMN" in ended.status.errorMessage == ended.errorMessage
        request.statement = "SELECT 1"
        fine = client.call("ExecuteStatement", request).directResults.operationStatus
        assert fine.status.errorMessage is None


def test_near_names_are_offered(cursor: Any) -> None:
    with pytest.raises(exc.ServerOperationError, match="name"):
        cursor.execute("SELECT nme FROM (SELECT 1 AS name)")
    with pytest.raises(exc.ServerOperationError, match="orders"):
        cursor.execute("SELECT * FROM samples.tpch.order")


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, id="10,000 nested parentheses"),
        pytest.param(
            "SELECT count(*) FROM range(10) WHERE " + " AND ".join(f"id <> {i + 100}" for i in range(8000)), id="AND"
        ),
        pytest.param(
            f"SELECT count(*) FROM range(10) WHERE id IN ({','.join(map(str, range(100_000)))})", id="IN list"
        ),
        pytest.param("SELECT " + ", ".join(f"{i} AS c{i}" for i in range(5000)), id="5,000 columns"),
        pytest.param("SELECT length(repeat('x', 1000000000))", id="repeat"),
        pytest.param("SELECT " + "-" * 5000 + "1", id="signs"),
        pytest.param("SELECT '" + "x" * 2_000_000 + "'", id="2 MB of text"),
        pytest.param("SELECT " + " UNION ALL SELECT ".join("1" for _ in range(3000)), id="3,000 unions"),
        pytest.param("", id="empty"),
        pytest.param("  -- only a comment", id="comment"),
        pytest.param("SELECT 1; SELECT 2", id="two statements"),
        pytest.param("SELECT '\x00'", id="NUL"),
        pytest.param("SELECT 'open", id="open string"),
        pytest.param("/* open", id="open comment"),
    ],
)
def test_monsters_get_an_answer_or_a_clear_error(connect: Any, statement: str) -> None:
    with connect().cursor() as cursor:
        try:
            cursor.execute(statement).fetchall()
        except exc.DatabaseError as error:
            message = str(error)
            assert message.startswith("[")
            assert "SQLSTATE: " in message
            assert "SQLSTATE: XX000" not in message
        assert cursor.execute("SELECT 'alive'").fetchone()[0] == "alive"


def test_the_right_answers_of_monsters(cursor: Any) -> None:
    items = ",".join(map(str, range(0, 20_000, 2)))
    assert cursor.execute(f"SELECT count(*) FROM range(100) WHERE id IN ({items})").fetchone()[0] == 50
    cursor.execute("SELECT " + ", ".join(f"{i} AS c{i}" for i in range(1000)))
    assert tuple(cursor.fetchone()) == tuple(range(1000))


def test_missing_catalog_and_schema(connect: Any) -> None:
    with connect().cursor() as cursor:
        with pytest.raises(exc.ServerOperationError, match="nowhere"):
            cursor.execute("USE CATALOG nowhere")
        with pytest.raises(exc.ServerOperationError, match="nowhere"):
            cursor.execute("SELECT * FROM nowhere.x.y")


def test_paths_outside_the_allowed_folders_are_refused(cursor: Any) -> None:
    with pytest.raises(exc.ServerOperationError, match=r"PATH_NOT_ALLOWED.*42501"):
        cursor.execute("SELECT * FROM parquet.`/etc/passwd`")


def test_sort_larger_than_memory_gives_all_rows_in_order(tmp_path: Path) -> None:
    rows, step = 10_000_000, 1_000_003
    server = start_server(tmp_path, "--memory-limit", "64MiB", "--slots", "1")
    try:
        with connect_to(server) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM range({rows}) ORDER BY id % {step}, id")
            found = cursor.fetchall_arrow().column("id").to_numpy()
        assert spilled_bytes(server) > 0, "the sort fitted into memory"
    finally:
        assert server.stop() == 0
    ids = np.arange(rows)
    assert np.array_equal(found, ids[np.argsort(ids % step, kind="stable")])


def spilled_bytes(server: Server) -> float:
    """What statements have written to disk for want of memory, as /metrics tells."""
    with urllib.request.urlopen(server.url + "/metrics", timeout=20) as page:
        lines = page.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("spill_bytes_total "))
