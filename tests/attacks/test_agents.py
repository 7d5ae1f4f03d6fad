"""Hostile messages to the door of agents, and ways around the tool that only reads: nothing happens, nobody else notices."""

from __future__ import annotations

import json
import random
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from gateway.protocol.client import Client
from tests.attacks.attacker import ENDLESS, answer, contents, resident_mib
from tests.live.agents import called, cancel, post
from tests.live.gateway import Server, start_server

LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
# Each would change something if it ran.
CHANGES = [
    "INSERT INTO {t} VALUES (9)",
    "-- SELECT\nINSERT INTO {t} VALUES (9)",
    "/* SELECT 1; */ INSERT INTO {t} VALUES (9)",
    "SELECT 1; INSERT INTO {t} VALUES (9)",
    ";INSERT INTO {t} VALUES (9)",
    "(INSERT INTO {t} VALUES (9))",
    "WITH a AS (SELECT 9 AS id) INSERT INTO {t} SELECT id FROM a",
    "WITH a (SELECT 9 AS id) INSERT INTO {t} SELECT id FROM a",
    "WITH a AS (SELECT 1), b AS (SELECT 2) DELETE FROM {t}",
    "WITH a AS (SELECT 1) UPDATE {t} SET id = 9",
    "WITH a AS (SELECT 1 AS id) MERGE INTO {t} USING a ON {t}.id = a.id WHEN MATCHED THEN DELETE",
    "FROM range(3) INSERT INTO {t} SELECT id",
    "FROM range(3) INSERT OVERWRITE TABLE {t} SELECT id",
    "DELETE FROM {t}",
    "UPDATE {t} SET id = 9",
    "TRUNCATE TABLE {t}",
    "DROP TABLE {t}",
    "ALTER TABLE {t} ADD COLUMN x INT",
    "COMMENT ON TABLE {t} IS 'x'",
    "OPTIMIZE {t}",
    "VACUUM {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 0",
    "CREATE TABLE {t}_2 AS SELECT 1 AS x",
    "CREATE OR REPLACE TABLE {t} AS SELECT 1 AS x",
    "CREATE VIEW {t}_v AS SELECT 1 AS x",
    "CREATE SCHEMA {s}",
    "EXPLAIN INSERT INTO {t} VALUES (9)",
    "EXPLAIN ANALYZE INSERT INTO {t} VALUES (9)",
    "EXPLAIN ANALYZE DELETE FROM {t}",
    "EXPLAIN EXTENDED CREATE TABLE {t}_2 AS SELECT 1 AS x",
    "BEGIN INSERT INTO {t} VALUES (9); END",
    "BEGIN SELECT 1; DELETE FROM {t}; END",
    "EXECUTE IMMEDIATE 'DELETE FROM {t}'",
    "DESCRIBE INSERT INTO {t} VALUES (9)",
    "SHOW TABLES; DROP TABLE {t}",
    "SELECT * FROM (INSERT INTO {t} VALUES (9))",
    "SELECT (DELETE FROM {t})",
    "INSERT INTO IDENTIFIER('{t}') VALUES (9)",
    "SET gateway.engine = spark",
    "USE samples",
    "CALL system.rollback('{t}')",
    "CACHE TABLE {t}",
]


@pytest.fixture(autouse=True)
def still_up(server: Server) -> Iterator[None]:
    yield
    with Client(server.thrift_url).open() as client:
        assert answer(client, "SELECT 1 AS x") == [{"x": 1}]
    assert post(server, LISTING)[0] == 200


@pytest.mark.parametrize("text", CHANGES)
def test_the_tool_that_reads_changes_nothing(server: Server, text: str) -> None:
    name = "kept_from_agents"
    if not (server.warehouse / "default" / name).exists():
        made = post(server, called("execute_sql", query=f"CREATE TABLE {name} AS SELECT id FROM range(3)"))
        assert made[1]["result"]["isError"] is False
    before = contents(server.warehouse)
    status, told = post(server, called("execute_sql_read_only", query=text.format(t=name, s="of_agents")))
    assert (status, told["result"]["isError"]) == (200, True)
    assert told["result"]["structuredContent"]["status"]["sql_state"] in ("25006", "42601", "0A000")
    assert contents(server.warehouse) == before


def test_messages_that_are_none(server: Server) -> None:
    call = json.dumps(called("execute_sql", query="CREATE TABLE of_broken_messages AS SELECT 1 AS x"))
    for body, status in {
        b"": 400,
        b"[" * 3_000_000: 400,
        b'{"a":' * 1_000_000: 400,
        b'{"jsonrpc":"2.0","id":' + b"9" * 2_000_000 + b',"method":"ping"}': 400,
        b'{"jsonrpc":"2.0","id":"' + b"x" * 2_000_000 + b'","method":"ping"}': 400,
        b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}': 400,
        call.replace('"id": 1', '"id": 1, "id": 1').encode(): 400,
        call.replace('"name"', '"name": "poll_sql_result", "name"').encode(): 400,
        call.replace('"query"', '"query": "SELECT 1", "query"').encode(): 400,
        call.encode("utf-16"): 400,
        b"\xef\xbb\xbf" + call.encode(): 400,
        json.dumps([json.loads(call)] * 100).encode(): 400,
        json.dumps([[json.loads(call)]]).encode(): 200,  # a batch of one that is no message
        call.replace('"params"', '"parms"').encode(): 200,
    }.items():
        found, told = post(server, body)
        assert found == status, body[:100]
        assert "error" in (told[0] if isinstance(told, list) else told)
        assert len(json.dumps(told)) < 1000
    assert not (server.warehouse / "default" / "of_broken_messages").exists()


def test_values_of_all_types_in_all_places(server: Server) -> None:
    """A message with one part replaced is answered or refused, and never by an error of the server."""
    values: list[Any] = [None, True, 0, -1, 1 << 70, 1.5, "", "x", "\u0000", "\ud800", [], {}, [[]], {"a": {"b": []}}]
    whole = called("execute_sql_read_only", query="SELECT :p", parameters=[{"name": "p", "value": "1", "type": "INT"}])
    whole["params"]["arguments"] |= {"catalog": "main", "schema": "default", "row_limit": 3, "warehouse_id": "w"}
    whole["params"]["_meta"] = {"progressToken": 1}

    def variants(found: Any) -> Iterator[Any]:
        yield from values
        items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
        for key, inner in items:
            for other in variants(inner):
                copy = dict(found) if isinstance(found, dict) else list(found)
                copy[key] = other
                yield copy

    some = list(variants(whole))
    random.Random(5).shuffle(some)
    for message in some[:250]:
        status, told = post(server, message)
        assert status in (200, 202, 400), message
        if isinstance(told, dict) and "error" in told:
            assert told["error"]["code"] in (-32600, -32602, -32601), (message, told)


def test_headers_of_versions_are_texts_of_strangers(server: Server) -> None:
    for version in ("x" * 4000, "2026-07-28, 2025-11-25", "é".encode().decode("latin-1"), "../..", "2026-07-28 "):
        assert post(server, LISTING, MCP_Protocol_Version=version)[0] == 400
    odd = f"=?base64?{b64encode(b'execute_sql' * 500).decode()}?="
    assert post(server, LISTING, MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/list", Mcp_Name=odd)[0] == 400


def test_what_a_web_page_could_send_is_refused(server: Server) -> None:
    """Pages send an Origin, and without asking before only some types of content; that a name leads here does not help them."""
    for origin in ("http://evil.example", "null", server.url, "http://localhost:1"):
        assert post(server, LISTING, Origin=origin)[0] == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert post(server, LISTING, Content_Type=kind)[0] == 415


def test_what_is_not_the_callers(tmp_path: Path) -> None:
    tokens, (one, other) = tmp_path / "tokens", ("dapi" + "1" * 32, "dapi" + "2" * 32)
    tokens.write_text(f"{token_line('one', one)}\n{token_line('other', other)}\n")
    tokens.chmod(0o600)
    server = start_server(tmp_path / "server", "--auth", "token", "--token-file", str(tokens))
    try:
        create = called("execute_sql", query="CREATE TABLE of_nobody AS SELECT 1 AS x")
        for token in (None, "", "dapi", one[:-1], f"{one}x"):
            assert post(server, create, token)[0] == 401
        assert not (server.warehouse / "default" / "of_nobody").exists()
        mine = post(server, called("execute_sql", query="SELECT 'secret' AS x"), one)[1]["result"]["structuredContent"]
        identifier = mine["statement_id"]
        for guess in (
            identifier,
            identifier.upper(),
            f" {identifier}",
            identifier.replace("-", ""),
            "0" * 32,
            "",
            "x" * 9999,
        ):
            told = post(server, called("poll_sql_result", statement_id=guess), other)[1]["result"]
            assert told["isError"] is True and "secret" not in json.dumps(told)
            assert told["structuredContent"]["status"]["error"]["error_code"] == "RESOURCE_DOES_NOT_EXIST"
        assert "secret" in json.dumps(post(server, called("poll_sql_result", statement_id=identifier), one)[1])
    finally:
        server.stop()


def test_agents_that_wait_hold_up_nobody(server: Server) -> None:
    """Statements that take long come back after a while, and keep neither threads nor others' calls."""
    before = resident_mib(server.process.pid)
    with ThreadPoolExecutor(24) as threads:
        asked = [threads.submit(post, server, called("execute_sql_read_only", query=ENDLESS)) for _ in range(24)]
        time.sleep(1)
        start = time.monotonic()
        assert post(server, LISTING)[0] == 200
        assert time.monotonic() - start < 5
        found = [each.result()[1]["result"]["structuredContent"] for each in asked]
    assert {each["status"]["state"] for each in found} <= {"PENDING", "RUNNING"}
    assert resident_mib(server.process.pid) - before < 200
    for each in found:
        cancel(server, each["statement_id"])
