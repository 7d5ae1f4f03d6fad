"""What one caller may ask of the Statement Execution API: answers and requests that grow, and others who are waiting."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.rest.manifest import PATH
from tests.attacks.attacker import ENDLESS, address, until
from tests.live.gateway import Server, start_server


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("rest"), "--slots", "2")
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


def ask(server: Server, method: str, path: str, body: Any = None, user: str = "mallory") -> tuple[int, bytes]:
    """Status and body of a call."""
    connection = http.client.HTTPConnection(*address(server), timeout=120)
    token = base64.b64encode(f"{user}:x".encode()).decode()
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request(method, path, sent, {"Authorization": f"Basic {token}"})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def execute(server: Server, statement: str, **fields: Any) -> dict[str, Any]:
    status, body = ask(server, "POST", PATH, {"statement": statement, "wait_timeout": "50s", **fields})
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


def peak_mib(server: Server, call: Callable[[], Any]) -> float:
    """The most memory that the front process has while a call lasts."""
    process = Path(f"/proc/{server.process.pid}")
    (process / "clear_refs").write_text("5")
    call()
    return int((process / "status").read_text().partition("VmHWM:")[2].split()[0]) / 1024


def _collect(found: list[tuple[int, bytes]], server: Server, path: str) -> None:
    found.append(ask(server, "GET", path))


@pytest.mark.parametrize(
    "value",
    [
        "null",
        f"named_struct('{'n' * 2000}', null)",
        pytest.param("id % 2 = 0", marks=pytest.mark.heavy),
        pytest.param("array(null, null)", marks=pytest.mark.heavy),
    ],
)
def test_rows_that_are_small_until_they_are_text(own: Server, value: str) -> None:
    """In Arrow they take bits or nothing: the front process does not make gigabytes of them."""
    statement = f"SELECT {value} AS x FROM range(10000000)"
    inline: list[dict[str, Any]] = []
    assert peak_mib(own, lambda: inline.append(execute(own, statement))) < 600
    assert "Inline byte limit exceeded" in inline[0]["status"]["error"]["message"]
    for form in ("JSON_ARRAY", "CSV"):
        linked = execute(own, statement, disposition="EXTERNAL_LINKS", format=form)
        url = linked["result"]["external_links"][0]["external_link"].removeprefix(own.url)
        files: list[tuple[int, bytes]] = []
        assert peak_mib(own, partial(_collect, files, own, url)) < 800
        assert files[0][0] == 200 and len(files[0][1]) < 100 << 20
        ask(own, "DELETE", f"{PATH}/{linked['statement_id']}")


def test_a_row_may_not_be_as_large_as_memory(own: Server) -> None:
    texts = ", ".join(f"repeat('{i}', 100000000 + CAST(id AS INT)) AS c{i}" for i in range(6))
    found = execute(own, f"SELECT {texts} FROM range(1)")
    while found["status"]["state"] in ("PENDING", "RUNNING"):
        time.sleep(0.5)
        found = json.loads(ask(own, "GET", f"{PATH}/{found['statement_id']}")[1])
    assert found["status"]["state"] == "FAILED" and "RESULT_TOO_LARGE" in found["status"]["error"]["message"]


@pytest.mark.heavy
def test_large_answers_are_made_one_after_the_other(own: Server) -> None:
    inline = execute(own, "SELECT id FROM range(1500000)")["statement_id"]
    links = execute(own, "SELECT id, id + 1 AS y FROM range(5000000)", disposition="EXTERNAL_LINKS")
    urls = [link["external_link"].removeprefix(own.url) for link in links["result"]["external_links"]]
    found: list[tuple[int, bytes]] = []

    def flood() -> None:
        paths = [f"{PATH}/{inline}", *urls]
        threads = [threading.Thread(target=_collect, args=(found, own, paths[i % len(paths)])) for i in range(60)]
        for thread in threads:
            thread.start()
        assert json.loads(ask(own, "GET", f"{PATH}/{inline}/status")[1])["status"]["state"] == "SUCCEEDED"
        for thread in threads:
            thread.join()

    assert peak_mib(own, flood) < 1600
    assert [status for status, _ in found] == [200] * 60


@pytest.mark.parametrize(
    "body",
    [
        b'{"statement": "SELECT 1", "query_tags": [' + b"1," * 14_000_000 + b"1]}",
        b'{"statement": "SELECT 1", "query_tags": {' + b",".join(b'"%x": 1' % i for i in range(2_000_000)) + b"}}",
        b'{"statement": "SELECT 1 -- ' + b"\\n" * 16_000_000 + b'"}',
    ],
    ids=["values", "keys", "escapes"],
)
def test_a_body_of_many_values_holds_up_nobody(own: Server, body: bytes) -> None:
    refused: list[tuple[int, bytes]] = []
    thread = threading.Thread(target=lambda: refused.append(ask(own, "POST", PATH, body)))
    thread.start()
    slowest = 0.0
    while thread.is_alive():
        began = time.monotonic()
        ask(own, "GET", "/healthz", user="ann")
        slowest = max(slowest, time.monotonic() - began)
    assert refused[0][0] == 400 and b"MALFORMED_REQUEST" in refused[0][1]
    assert slowest < 3


def test_half_characters_reach_no_engine(own: Server) -> None:
    for field in ("statement", "schema", "catalog"):
        body = {"statement": "SELECT 1", field: "\ud800'"}
        assert ask(own, "POST", PATH, body) == (
            400,
            json.dumps(
                {
                    "error_code": "INVALID_PARAMETER_VALUE",
                    "message": f"{field} holds half a character (a lone surrogate)",
                }
            ).encode(),
        )


def test_who_has_too_many_that_wait_is_told_so(tmp_path: Path) -> None:
    """It was told that there is no such session, which ends nobody's wish to send it again."""
    server = start_server(tmp_path, "--slots", "1", "--queue-limit", "0")
    asked = {"statement": ENDLESS, "wait_timeout": "0s"}
    began = [ask(server, "POST", PATH, asked) for _ in range(12)]
    for status, body in began:
        if status == 200:
            ask(server, "POST", f"{PATH}/{json.loads(body)['statement_id']}/cancel")
    assert server.stop() == 0
    refused = [json.loads(body) for status, body in began if status == 429]
    assert {status for status, _ in began} == {200, 429}
    assert all("All slots are taken" in each["message"] for each in refused)


def test_a_write_that_is_cancelled_may_have_been_committed(own: Server) -> None:
    execute(own, "CREATE TABLE IF NOT EXISTS main.default.cancelled (n BIGINT)")
    text = f"INSERT INTO main.default.cancelled {ENDLESS}"
    started = json.loads(ask(own, "POST", PATH, {"statement": text, "wait_timeout": "0s"})[1])["statement_id"]

    def kind() -> Any:
        listed = json.loads(ask(own, "GET", "/api/2.0/sql/history/queries")[1])["res"]
        return [each["statement_type"] for each in listed if each["query_id"] == started]

    until(lambda: kind() == ["INSERT"], "it is planned")
    ask(own, "POST", f"{PATH}/{started}/cancel")
    status = json.loads(ask(own, "GET", f"{PATH}/{started}")[1])["status"]
    assert status["state"] == "CANCELED" and "may or may not have been committed" in status["error"]["message"]
