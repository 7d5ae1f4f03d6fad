"""Agents use the gateway as they use a warehouse: by the Model Context Protocol, with its own client for Python.

The client runs in the interpreter that GATEWAY_TEST_MCP names, else in this one, which then needs the package `mcp` (1.30 and
2.3 have been tried). What needs no client is asked by plain HTTP.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from tests.attacks.attacker import ENDLESS
from tests.live.agents import PATH, called, cancel, post
from tests.live.gateway import Server, start_server

PYTHON = os.environ.get("GATEWAY_TEST_MCP") or (sys.executable if importlib.util.find_spec("mcp") else None)
SCRIPT = Path(__file__).with_name("agent_session.py")
needs_client = pytest.mark.skipif(
    PYTHON is None, reason="the package mcp is not installed, and GATEWAY_TEST_MCP not set"
)


class Agent:
    """A session of the client; `started` is what it learned of the server."""

    def __init__(self, server: Server, mode: str, token: str = "none-needed") -> None:
        assert PYTHON is not None
        pipe = subprocess.PIPE
        command = [PYTHON, str(SCRIPT), server.url + PATH, token, mode]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        self.started = self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the client ended with {self.process.wait(30)}"
        return json.loads(line)

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([tool, arguments]) + "\n")
        self.process.stdin.flush()
        return self._read()

    def rows(self, tool: str, query: str, **arguments: Any) -> list[list[str | None]]:
        """The rows of a statement, by whichever of the tools."""
        told = self.call(tool, query=query, **arguments)
        while told["structuredContent"]["status"]["state"] in ("PENDING", "RUNNING"):
            told = self.call("poll_sql_result", statement_id=told["structuredContent"]["statement_id"])
        assert not told["isError"], told
        assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
        found = told["structuredContent"]["result"].get("data_array", [])
        return [[value.get("string_value") for value in row["values"]] for row in found]

    def end(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()


@pytest.fixture(params=["session", "auto", "legacy", "2026-07-28"])
def agent(request: pytest.FixtureRequest, server: Server) -> Iterator[Agent]:
    mode = str(request.param)
    if mode != "session" and PYTHON is not None:
        text = "from importlib.metadata import version; print(version('mcp'))"
        found = subprocess.run([PYTHON, "-c", text], capture_output=True, text=True, check=True).stdout
        if found.startswith("1."):
            pytest.skip(f"mcp {found.strip()} opens sessions only")
    opened = Agent(server, mode)
    yield opened
    opened.end()


@needs_client
def test_an_agent_reads_and_writes(agent: Agent) -> None:
    told = agent.started
    assert told["protocol"] in ("2025-06-18", "2025-11-25", "2026-07-28")
    assert [tool["name"] for tool in told["tools"]] == ["execute_sql", "execute_sql_read_only", "poll_sql_result"]
    table = f"main.default.of_agents_{time.time_ns()}"
    assert agent.rows("execute_sql", f"CREATE TABLE {table} AS SELECT id, CAST(NULL AS INT) AS n FROM range(3)") == []
    assert agent.rows("execute_sql_read_only", f"SELECT id, n FROM {table} ORDER BY id") == [
        ["0", None],
        ["1", None],
        ["2", None],
    ]
    asked = {"parameters": [{"name": "n", "value": "1", "type": "INT"}], "catalog": "main", "schema": "default"}
    name = table.rpartition(".")[2]
    assert agent.rows("execute_sql_read_only", f"SELECT count(*) FROM {name} WHERE id < :n", **asked) == [["1"]]
    for text in (f"DROP TABLE {table}", f"WITH a AS (SELECT 9 AS id) INSERT INTO {table} SELECT id, 1 FROM a"):
        refused = agent.call("execute_sql_read_only", query=text)
        assert refused["isError"] is True
        assert refused["structuredContent"]["status"]["sql_state"] == "25006"
        assert refused["content"][0]["text"].startswith("[NOT_READ_ONLY]")
    assert agent.rows("execute_sql", f"SELECT count(*) FROM {table}") == [["3"]]
    assert agent.rows("execute_sql", f"DROP TABLE {table}") == []
    failed = agent.call("execute_sql_read_only", query="SELECT 1 / 0")
    assert failed["isError"] is True and "DIVIDE_BY_ZERO" in failed["content"][0]["text"]
    assert agent.call("nothing")["error"]["code"] == -32602
    assert agent.call("execute_sql", sql="SELECT 1").get("isError") is True


@needs_client
def test_a_statement_that_takes_long_is_polled(server: Server) -> None:
    agent = Agent(server, "session")
    told = agent.call("execute_sql_read_only", query=ENDLESS)["structuredContent"]
    assert told["status"] == {"state": "RUNNING"}
    again = agent.call("poll_sql_result", statement_id=told["statement_id"])
    assert again["structuredContent"]["status"] == {"state": "RUNNING"} and not again["isError"]
    cancel(server, told["statement_id"])
    ended = agent.call("poll_sql_result", statement_id=told["statement_id"])
    assert ended["isError"] is True and ended["structuredContent"]["status"]["state"] == "CANCELED"
    agent.end()


def test_a_result_is_no_larger_than_an_agent_can_take(server: Server) -> None:
    for text, most in (
        ("SELECT id FROM range(100000)", 1000),
        ("SELECT repeat('x', 100000) FROM range(100)", 11),
        ("SELECT repeat('x', 5000000)", 0),
        (f"SELECT {', '.join(f'id AS c{i}' for i in range(1000))} FROM range(900)", 200),
    ):
        status, answer = post(server, called("execute_sql_read_only", query=text))
        assert status == 200
        shown = answer["result"]["structuredContent"]
        assert shown["status"]["state"] == "SUCCEEDED"
        assert shown["manifest"]["truncated"] is True and shown["note"].startswith("Only the first")
        assert len(shown["result"]["data_array"]) <= most
        assert len(json.dumps(shown)) < 1_500_000
    assert (
        len(
            post(server, called("execute_sql", query="SELECT id FROM range(9000)", row_limit=9000))[1]["result"][
                "structuredContent"
            ]["result"]["data_array"]
        )
        == 9000
    )


def test_only_posts_are_answered_and_only_to_those_who_are_known(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    one, other = "dapi" + "1" * 32, "dapi" + "2" * 32
    tokens.write_text(f"{token_line('one', one)}\n{token_line('other', other)}\n")
    tokens.chmod(0o600)
    server = start_server(tmp_path / "server", "--auth", "token", "--token-file", str(tokens))
    try:
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert post(server, listing, None)[0] == post(server, listing, "dapi" + "3" * 32)[0] == 401
        assert post(server, listing, one)[0] == 200
        assert post(server, listing, one, Origin="http://evil.example")[0] == 403
        for method in ("GET", "DELETE", "PUT"):
            request = urllib.request.Request(
                server.url + PATH, method=method, headers={"Authorization": f"Bearer {one}"}
            )
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request, timeout=30)
            assert (caught.value.code, caught.value.headers["Allow"]) == (405, "POST")
            caught.value.close()
        shown = post(server, called("execute_sql", query="SELECT 1"), one)[1]["result"]["structuredContent"]
        poll = called("poll_sql_result", statement_id=shown["statement_id"])
        assert post(server, poll, one)[1]["result"]["isError"] is False
        assert post(server, poll, other)[1]["result"]["isError"] is True
    finally:
        server.stop()


def test_the_examples_of_the_documentation_work(server: Server) -> None:
    """The settings for agents are JSON that names this path, and the call of curl gives the tools."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    section = text.partition("\n## Agents")[2].partition("\n## ")[0]
    settings = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]
    assert settings and all(PATH in json.dumps(block) for block in settings)
    calls = re.findall(r"^curl .*?(?<!\\)$", section, re.MULTILINE | re.DOTALL)
    assert calls
    for call in calls:
        text = call.replace("http://127.0.0.1:8080", server.url)
        done = subprocess.run(["sh", "-c", f"{text} --fail"], capture_output=True, timeout=90, check=True)
        assert "error" not in json.loads(done.stdout)
