"""Messages of agents are answered as their version of the protocol has it; what is wrong is named, and nothing is executed."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import UserError
from gateway.mcp import answers, server, versions
from gateway.mcp.server import McpServer
from gateway.mcp.tools import SqlTools
from gateway.rest.statements import StatementApi
from gateway.results.links import LinkSigner
from gateway.service.service import GatewayService
from gateway.worker_jobs import Statement
from tests.live.fakes import FakePool
from tests.unit.service.settings import service_config

NEWEST = versions.STATELESS[-1]
META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "warehouse_id": "abc",
}


class Agent:
    """Messages to a server whose pool does what a test says."""

    def __init__(self, pool: FakePool, mcp: McpServer) -> None:
        self.pool = pool
        self.mcp = mcp

    def post(self, body: Any, version: str | None = None, who: str = "me", **headers: str) -> tuple[int, Any]:
        """Status and JSON, None for no body."""
        given = {"content-type": "application/json", **({versions.VERSION_HEADER: version} if version else {})}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = [(name.encode(), value.encode()) for name, value in given.items() if value]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer = self.mcp.answer(raw, data, who)
        return status, json.loads(answer) if answer else None

    def ask(self, method: str, version: str | None = None, **params: Any) -> tuple[int, Any]:
        """A request, with all that its version wants."""
        headers = {}
        if version in versions.STATELESS:
            params["_meta"] = META
            headers = {"mcp_method": method, "mcp_name": params.get("name", "")}
        return self.post({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, version, **headers)

    def call(self, name: str, version: str | None = "2025-11-25", **arguments: Any) -> Any:
        """The result of a tool."""
        status, answer = self.ask("tools/call", version, name=name, arguments=arguments)
        assert status == 200, answer
        return answer["result"]


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setattr(server, "WAIT_SECONDS", 0.0)
    pool = FakePool()
    statements = StatementApi(GatewayService(pool, service_config(tmp_path)), LinkSigner(60))
    return Agent(pool, McpServer(SqlTools(statements)))


@pytest.mark.parametrize("version", versions.OPENED)
def test_a_version_that_is_known_is_agreed_on(agent: Agent, version: str) -> None:
    status, answer = agent.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={})
    assert status == 200
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["capabilities"] == {"tools": {}}
    assert answer["result"]["serverInfo"]["name"] == "delta-sql-gateway"


@pytest.mark.parametrize("version", ["2099-01-01", NEWEST, "", "x"])
def test_another_one_is_answered_by_the_newest_that_is_opened(agent: Agent, version: str) -> None:
    assert agent.ask("initialize", protocolVersion=version)[1]["result"]["protocolVersion"] == "2025-11-25"


def test_the_newest_version_is_discovered_not_opened(agent: Agent) -> None:
    status, answer = agent.ask("server/discover", NEWEST)
    assert status == 200
    assert answer["result"]["supportedVersions"][0] == NEWEST
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["_meta"][versions.SERVER_INFO]["name"] == "delta-sql-gateway"
    for method in ("initialize", "ping"):
        status, answer = agent.ask(method, NEWEST)
        assert (status, answer["error"]["code"]) == (404, -32601)
    assert agent.ask("server/discover")[1]["error"]["code"] == -32601


@pytest.mark.parametrize("version", ["2099-01-01", "2025-06-19", "x" * 500])
def test_unknown_versions_are_told_the_known_ones(agent: Agent, version: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
    bodies: list[Any] = [asked, [], {"jsonrpc": "2.0", "method": "notifications/x"}]
    for body in bodies:
        status, answer = agent.post(body, version)
        assert (status, answer["error"]["code"]) == (400, -32022)
        assert answer["error"]["data"] == {
            "supported": [NEWEST, *versions.OPENED[::-1]],
            "requested": version[:100],
        }


def test_requests_of_the_newest_version_say_the_same_everywhere(agent: Agent) -> None:
    def post(message: Any = None, **headers: str) -> tuple[int, int]:
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "nothing", "_meta": META}}
        given = {"mcp_method": "tools/call", "mcp_name": "nothing"} | headers
        status, answer = agent.post(body | (message or {}), NEWEST, **given)
        return status, answer["error"]["code"]

    unknown_tool = (400, -32602)
    assert post() == unknown_tool
    assert post(mcp_name=f"=?base64?{base64.b64encode(b'nothing').decode()}?=") == unknown_tool
    for headers in (
        {"mcp_method": ""},
        {"mcp_method": "tools/list"},
        {"mcp_name": ""},
        {"mcp_name": "execute_sql"},
        {"mcp_name": "=?base64?####?="},
        {"mcp_name": "=?base64?/////w==?="},
    ):
        assert post(**headers) == (400, -32020), headers
    other = META | {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    assert post({"params": {"name": "nothing", "_meta": other}}) == (400, -32020)
    nameless: list[Any] = [{}, {"_meta": 1}, {"_meta": {}}]
    for params in nameless:
        assert post({"params": params}) == (400, -32602)
    untold = META | {"io.modelcontextprotocol/protocolVersion": None}
    assert post({"params": {"_meta": untold}}) == (400, -32020)
    raw = [(b"content-type", b"application/json"), *[(b"mcp-protocol-version", NEWEST.encode())] * 2]
    status, text = agent.mcp.answer(raw, b"{}", "me")
    assert (status, json.loads(text)["error"]["code"]) == (400, -32020)


REQUEST = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe{", -32700),
        (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": {"x": 1, "x": 2}}}', -32700),
        (b"[" * 200_000, -32700),
        (b'{"a":' * 2_000 + b"1" + b"}" * 2_000, -32700),
        (b'{"jsonrpc": "2.0", "id": ' + b"9" * 10_000 + b', "method": "ping"}', -32700),
        (1, -32600),
        ("ping", -32600),
        (None, -32600),
        ({}, -32600),
        ([], -32600),
        ([REQUEST] * 21, -32600),
        (REQUEST | {"jsonrpc": "1.0"}, -32600),
        (REQUEST | {"jsonrpc": 2.0}, -32600),
        (REQUEST | {"id": None}, -32600),
        (REQUEST | {"id": True}, -32600),
        (REQUEST | {"id": 1.5}, -32600),
        (REQUEST | {"id": {}}, -32600),
        (REQUEST | {"id": "x" * 257}, -32600),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', -32600),
        (REQUEST | {"id": 1 << 63}, -32600),
        (REQUEST | {"method": 5}, -32600),
        (REQUEST | {"params": []}, -32600),
        (REQUEST | {"params": "x"}, -32600),
    ],
    ids=str,
)
def test_what_is_no_message_is_refused(agent: Agent, body: Any, code: int) -> None:
    status, answer = agent.post(body)
    assert (status, answer["error"]["code"]) == (400, code)
    assert not agent.pool.runs


@pytest.mark.parametrize("identifier", [0, -1, (1 << 63) - 1, "", "x" * 256, "é\n\u0000"])
def test_ids_come_back_as_they_are(agent: Agent, identifier: Any) -> None:
    assert agent.post(REQUEST | {"id": identifier}) == (200, {"jsonrpc": "2.0", "id": identifier, "result": {}})


@pytest.mark.parametrize("version", [None, *versions.OPENED, *versions.STATELESS])
def test_notifications_have_no_answer(agent: Agent, version: str | None) -> None:
    for method in ("notifications/initialized", "notifications/cancelled", "tools/call"):
        assert agent.post({"jsonrpc": "2.0", "method": method, "params": {"name": "execute_sql"}}, version) == (
            202,
            None,
        )
    assert agent.post({"jsonrpc": "2.0", "id": 1, "result": {}}, version)[0] in (202, 400)
    assert not agent.pool.runs


def test_batches_are_answered_where_the_version_has_them(agent: Agent) -> None:
    batch = [REQUEST, {"jsonrpc": "2.0", "method": "notifications/x"}, REQUEST | {"id": "b", "method": "x"}, 5]
    batch.append({"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}})
    for version in (None, "2024-11-05", "2025-03-26"):
        status, found = agent.post(batch, version)
        assert status == 200
        assert [(a["id"], a.get("error", {}).get("code")) for a in found] == [
            (7, None),
            ("b", -32601),
            (None, -32600),
            (9, -32600),
        ]
        assert agent.post([batch[1]], version) == (202, None)
    for version in ("2025-06-18", "2025-11-25", NEWEST):
        status, answer = agent.post(batch, version)
        assert (status, answer["error"]["code"]) == (400, -32600)


def test_methods_that_are_not_there(agent: Agent) -> None:
    for method in ("resources/list", "prompts/list", "logging/setLevel", "tools/List", "", "x" * 10_000, "_call"):
        status, answer = agent.ask(method)
        assert (status, answer["error"]["code"]) == (200, -32601)
        assert len(json.dumps(answer)) < 500


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", {}),
        ("initialize", {"protocolVersion": 5}),
        ("tools/list", {"cursor": "x"}),
        ("tools/call", {}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "nothing"}),
        ("tools/call", {"name": "execute_sql", "arguments": []}),
        ("tools/call", {"name": "execute_sql", "arguments": "SELECT 1"}),
    ],
)
def test_wrong_parameters_are_errors_of_the_protocol(agent: Agent, method: str, params: Any) -> None:
    for version in (None, "2025-11-25"):
        status, answer = agent.ask(method, version, **params)
        assert (status, answer["error"]["code"]) == (200, -32602)
    assert not agent.pool.runs


@pytest.mark.parametrize(
    ("content_type", "accept", "status"),
    [
        ("application/json", "application/json, text/event-stream", 200),
        ("Application/JSON; charset=utf-8", "*/*", 200),
        ("application/json", "", 200),
        ("application/json", "text/event-stream", 406),
        ("application/json", "text/html", 406),
        ("text/plain", "application/json", 415),
        ("application/x-www-form-urlencoded", "application/json", 415),
        ("", "application/json", 415),
    ],
)
def test_only_json_is_taken_and_given(agent: Agent, content_type: str, accept: str, status: int) -> None:
    raw = [(b"content-type", content_type.encode()), *([(b"accept", accept.encode())] if accept else [])]
    assert agent.mcp.answer(raw, json.dumps(REQUEST).encode(), "me")[0] == status


def test_tools_say_what_they_do(agent: Agent) -> None:
    tools_told = agent.ask("tools/list")[1]["result"]["tools"]
    tools = {tool["name"]: tool for tool in tools_told}
    assert list(tools) == ["execute_sql", "execute_sql_read_only", "poll_sql_result"]
    for name, tool in tools.items():
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert tool["annotations"]["readOnlyHint"] is (name != "execute_sql")
        assert tool["annotations"]["destructiveHint"] is (name == "execute_sql")
    assert tools["execute_sql"]["inputSchema"]["required"] == ["query"]
    assert tools["poll_sql_result"]["inputSchema"]["required"] == ["statement_id"]
    assert agent.ask("tools/list", NEWEST)[1]["result"]["ttlMs"] > 0


@pytest.mark.parametrize(("name", "read_only"), [("execute_sql", False), ("execute_sql_read_only", True)])
def test_a_statement_that_takes_long_is_polled(agent: Agent, name: str, read_only: bool) -> None:
    asked: dict[str, Any] = {
        "query": "Q",
        "catalog": "main",
        "schema": "s",
        "parameters": [{"name": "p", "value": "1", "type": "INT"}],
    }
    first = agent.call(name, **asked, row_limit=5)
    shown = first["structuredContent"]
    assert shown["status"] == {"state": "RUNNING"}
    assert "poll_sql_result" in shown["note"] and not first["isError"]
    (run,) = agent.pool.runs
    assert isinstance(run.job, Statement)
    assert (run.job.text, run.job.read_only, run.job.row_limit) == ("Q", read_only, 6)
    assert (run.job.session.catalog, run.job.session.schema, run.job.session.user) == ("main", "s", "me")
    assert run.job.parameters[0].value == "1"
    run.plan()
    run.deliver(3)
    run.finish()
    for poll in ("poll_sql_result", "poll_response"):
        told = agent.call(poll, statement_id=shown["statement_id"])
        found = told["structuredContent"]
        assert json.loads(told["content"][0]["text"]) == found
        assert found["status"] == {"state": "SUCCEEDED"}
        assert [c["name"] for c in found["manifest"]["schema"]["columns"]] == ["id", "text"]
        assert found["manifest"]["truncated"] is False and "note" not in found
        assert [row["values"][0] for row in found["result"]["data_array"]] == [
            {"string_value": str(i)} for i in range(3)
        ]


def test_rows_that_are_left_out_are_told(agent: Agent) -> None:
    shown = agent.call("execute_sql", query="Q", row_limit=2)["structuredContent"]
    run = agent.pool.runs[0]
    run.plan()
    run.deliver(3)
    run.finish()
    found = agent.call("poll_sql_result", statement_id=shown["statement_id"])["structuredContent"]
    assert found["manifest"]["truncated"] is True
    assert found["manifest"]["total_row_count"] == len(found["result"]["data_array"]) == 2
    assert found["note"].startswith("Only the first 2 rows are given")


def test_a_result_has_a_size_that_fits(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 4096)
    shown = agent.call("execute_sql", query="Q")["structuredContent"]
    run = agent.pool.runs[0]
    run.plan()
    run.deliver(100)
    run.finish()
    told = agent.call("poll_sql_result", statement_id=shown["statement_id"])
    found = told["structuredContent"]
    assert 10 < len(found["result"]["data_array"]) < 100
    assert found["manifest"]["truncated"] is True and "note" in found
    assert len(json.dumps(found)) < 2 * 4096


def test_errors_of_sql_are_answers_of_the_tool(agent: Agent) -> None:
    shown = agent.call("execute_sql", query="Q")["structuredContent"]
    agent.pool.runs[0].fail(UserError("DIVIDE_BY_ZERO", "Division by zero."))
    told = agent.call("poll_sql_result", statement_id=shown["statement_id"])
    assert told["isError"] is True
    assert told["content"][0]["text"].startswith("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    status = told["structuredContent"]["status"]
    assert (status["state"], status["sql_state"]) == ("FAILED", "22012")
    assert status["error"] == {
        "error_code": "BAD_REQUEST",
        "condition": "DIVIDE_BY_ZERO",
        "message": "Division by zero.",
    }


def test_a_refusal_before_the_start_is_an_answer_of_the_tool(agent: Agent, tmp_path: Path) -> None:
    told = agent.call("execute_sql", query="x" * (service_config(tmp_path).max_statement + 1))
    assert told["isError"] is True and "STATEMENT_TOO_LARGE" in told["content"][0]["text"]
    assert not agent.pool.runs


def test_statements_of_others_are_unknown(agent: Agent) -> None:
    shown = agent.call("execute_sql", query="Q")["structuredContent"]
    request = {"name": "poll_sql_result", "arguments": {"statement_id": shown["statement_id"]}}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": request}
    told = agent.post(body, who="somebody else")[1]["result"]
    never = agent.call("poll_sql_result", statement_id="00000000-0000-0000-0000-000000000000")
    assert told["isError"] is never["isError"] is True
    for found, name in ((told, shown["statement_id"]), (never, "00000000-0000-0000-0000-000000000000")):
        assert found["structuredContent"]["status"]["error"]["error_code"] == "RESOURCE_DOES_NOT_EXIST"
        assert found["content"][0]["text"].replace(name, "") == told["content"][0]["text"].replace(
            shown["statement_id"], ""
        )


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("execute_sql", {}, "query is missing"),
        ("execute_sql", {"query": None}, "query is missing"),
        ("execute_sql", {"query": 5}, "query is not a string"),
        ("execute_sql", {"query": ["SELECT 1"]}, "query is not a string"),
        ("execute_sql", {"query": "Q", "sql": "Q"}, "arguments has unknown fields: sql"),
        ("execute_sql", {"query": "Q", "row_limit": 0}, "row_limit is not a positive number"),
        ("execute_sql", {"query": "Q", "row_limit": 10_001}, "row_limit is more than 10000"),
        ("execute_sql", {"query": "Q", "row_limit": "5"}, "row_limit is not a positive number"),
        ("execute_sql", {"query": "Q", "catalog": {}}, "catalog is not a string"),
        ("execute_sql", {"query": "Q", "parameters": {}}, "parameters is not a list"),
        ("execute_sql", {"query": "Q", "parameters": [1]}, "parameters is not an object"),
        (
            "execute_sql",
            {"query": "Q", "parameters": [{"name": "a", "value": "1"}, {"value": "2"}]},
            "Named and positional parameters cannot be mixed.",
        ),
        ("poll_sql_result", {}, "statement_id is missing"),
        ("poll_sql_result", {"statement_id": 5}, "statement_id is not a string"),
    ],
)
def test_wrong_arguments_are_told_to_the_model_or_by_the_protocol(
    agent: Agent, name: str, arguments: Any, text: str
) -> None:
    for version in ("2025-11-25", NEWEST):
        told = agent.call(name, version, **arguments)
        assert (told["isError"], told["content"][0]["text"]) == (True, text)
    status, answer = agent.ask("tools/call", "2025-06-18", name=name, arguments=arguments)
    assert (status, answer["error"]) == (200, {"code": -32602, "message": text})
    assert not agent.pool.runs


def test_answers_are_made_one_after_the_other(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """While rows become text no other thread gets on: of one caller one answer is made, of all two."""
    busy: Counter[str] = Counter()
    most: Counter[str] = Counter()
    lock = threading.Lock()

    def told(service: Any, principal: Any, status: Any) -> Any:
        with lock:
            busy[principal.name] += 1
            most[principal.name] = max(most[principal.name], busy[principal.name])
            most["all"] = max(most["all"], busy.total())
        time.sleep(0.02)
        with lock:
            busy[principal.name] -= 1
        return {"content": [], "structuredContent": {}, "isError": False}

    monkeypatch.setattr(answers, "told", told)
    asked = {"name": "execute_sql", "arguments": {"query": "SELECT 1"}}
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": asked}
    with ThreadPoolExecutor(24) as executor:
        callers = ("ann", "bob", "eve") * 8
        statuses = [s for s, _ in executor.map(lambda who: agent.post(request, "2025-11-25", who), callers)]
    assert statuses == [200] * 24
    assert most == {"ann": 1, "bob": 1, "eve": 1, "all": 2}
