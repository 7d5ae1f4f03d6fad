"""What the console's page asks of a gateway at work, without a browser: sessions, statements, rows, files, the catalog."""

from __future__ import annotations

import csv
import http.client
import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.auth.authenticators import token_line
from tests.live.gateway import Server, start_server

PEOPLE = ("ann", "bob")


class Asked:
    """The calls of somebody who has signed in."""

    def __init__(self, server: Server, name: str) -> None:
        self._address = server.url.removeprefix("http://")
        self._cookie = ""
        status, _, headers = self.call("POST", "sign-in", {"token": f"{name}-token"})
        assert status == 200
        self._cookie = str(headers["set-cookie"]).partition(";")[0]
        self.session = self.json("POST", "sessions", {})["session_id"]

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes, http.client.HTTPMessage]:
        """Status, body and headers."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        headers = {"Content-Type": "application/json", "Cookie": self._cookie, "Sec-Fetch-Site": "same-origin"}
        connection.request(method, f"/console/api/{path}", None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        found = answer.status, answer.read(), answer.headers
        connection.close()
        return found

    def json(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a call that succeeds."""
        status, answer, _ = self.call(method, path, body)
        assert status == 200, answer
        return json.loads(answer)

    def run(self, statement: str) -> Any:
        """The last answer about a statement."""
        told = self.json("POST", "run", {"statement": statement, "session_id": self.session})
        while told["status"]["state"] in ("PENDING", "RUNNING"):
            told = self.json("GET", f"results/{told['statement_id']}?wait_timeout=5s")
        return told


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens"
    tokens.write_text("\n".join(token_line(name, f"{name}-token").strip() for name in PEOPLE) + "\n")
    running = start_server(folder, "--auth", "token", "--token-file", str(tokens))
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()


@pytest.fixture(scope="module")
def ann(guarded: Server) -> Asked:
    return Asked(guarded, "ann")


@pytest.fixture(scope="module")
def bob(guarded: Server) -> Asked:
    return Asked(guarded, "bob")


def test_rows_from_anywhere_and_no_more_than_there_are(ann: Asked) -> None:
    told = ann.run("SELECT id, IF(id % 2 = 0, NULL, 'x') AS x FROM range(5000) ORDER BY id")
    assert told["manifest"]["total_row_count"] == 5000 and "result" not in told
    path = f"results/{told['statement_id']}/rows"
    for start, count, first, number in ((0, 3, "0", 3), (4998, 100, "4998", 2), (1234, 2000, "1234", 2000)):
        rows = ann.json("GET", f"{path}?start={start}&count={count}")["rows"]
        assert (rows[0][0], len(rows)) == (first, number)
    assert ann.json("GET", f"{path}?start=5000&count=1")["rows"] == []
    assert ann.json("GET", f"{path}?start=0&count=2")["rows"] == [["0", None], ["1", "x"]]
    for query in ("start=-1", "count=0", "count=2001", "start=x", "more=1"):
        assert ann.call("GET", f"{path}?{query}")[0] == 400, query
    assert ann.json("DELETE", f"results/{told['statement_id']}", {}) == {}
    assert ann.call("GET", f"{path}?count=1")[0] == 404


def test_files(ann: Asked) -> None:
    told = ann.run(
        "SELECT id, CAST(id AS DECIMAL(9,2)) AS d, TIMESTAMP '2024-02-03 04:05:06' AS t FROM range(1000) ORDER BY id"
    )
    path = f"results/{told['statement_id']}"
    status, data, headers = ann.call("GET", f"{path}/arrow?part=0")
    table = pa.ipc.open_stream(data).read_all()
    assert (status, headers["content-type"]) == (200, "application/vnd.apache.arrow.stream")
    assert table.num_rows == 1000 and table.schema.field("d").type == pa.decimal128(9, 2)
    assert pq.read_table(io.BytesIO(ann.call("GET", f"{path}/parquet")[1])).num_rows == 1000
    lines = list(csv.reader(io.StringIO(ann.call("GET", f"{path}/csv")[1].decode())))
    assert lines[0] == ["id", "d", "t"] and len(lines) == 1001
    for wrong, status in (("csv?part=9", 404), ("csv?part=x", 400), ("exe", 404), ("arrow?part=-1", 400)):
        assert ann.call("GET", f"{path}/{wrong}")[0] == status, wrong
    empty = ann.run("SELECT 1 AS a WHERE false")["statement_id"]
    assert ann.json("GET", f"results/{empty}/rows?count=5")["rows"] == []
    assert ann.call("GET", f"results/{empty}/parquet")[0] == 404
    odd = ann.run("SELECT INTERVAL '2' MONTH AS m, 1 AS a, 2 AS a, NULL AS n")["statement_id"]
    for kind in ("csv", "arrow", "parquet"):
        assert ann.call("GET", f"results/{odd}/{kind}")[0] in (200, 400), kind
    done = ann.run("CREATE TABLE main.default.of_console (a INT)")["statement_id"]
    assert ann.call("GET", f"results/{done}/csv")[0] == 404
    assert {ann.call(method, f"{path}/csv")[0] for method in ("HEAD", "POST", "DELETE", "PUT")} == {404}


def test_results_and_sessions_are_their_holders_own(ann: Asked, bob: Asked) -> None:
    identifier = ann.run("SELECT 'private' AS p")["statement_id"]
    for path in ("", "/rows?count=1", "/csv", "/arrow", "/parquet"):
        status, answer, _ = bob.call("GET", f"results/{identifier}{path}")
        assert status in (400, 404) and b"private" not in answer, path
    assert bob.call("DELETE", f"results/{identifier}", {})[0] in (200, 404)
    assert ann.json("GET", f"results/{identifier}/rows?count=1")["rows"] == [["private"]]
    other = bob.call("POST", "run", {"statement": "SELECT 1", "session_id": ann.session})
    assert other[0] == 404
    assert bob.call("GET", f"statements/{identifier}")[0] == 404
    assert ann.json("GET", f"statements/{identifier}")["ended"]["text"] == "SELECT ? AS p"
    assert bob.call("DELETE", f"sessions/{ann.session}", {})[0] == 404


def test_what_fails_is_told_with_its_place(ann: Asked) -> None:
    told = ann.run("SELECT 1,\n no_such_name")
    assert told["status"]["state"] == "FAILED" and "(line 2, position 2)" in told["status"]["error"]["message"]
    found = ann.json("GET", f"statements/{told['statement_id']}")["ended"]
    assert found["condition"].startswith("UNRESOLVED_COLUMN") and "no_such_name" in found["message"]


def test_the_catalog(ann: Asked) -> None:
    def names(path: str) -> list[str]:
        return [item["name"] for item in ann.json("GET", f"catalog{path}")["items"]]

    assert names("") == ["main", "samples"]
    assert "tpch" in names("?catalog=samples")
    assert "nation" in names("?catalog=samples&schema=tpch")
    assert names("?catalog=samples&schema=tpch&table=nation")[0] == "n_nationkey"
    assert names("?catalog=samples&schema=t_ch") == []  # a name, no pattern
    assert names("?catalog=samples&schema=tpch&table=%25") == []
    assert ann.call("GET", "catalog?table=nation")[0] == 400
