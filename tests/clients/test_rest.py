"""The Statement Execution API: what its clients send is answered field by field, wrong requests are refused by name."""

from __future__ import annotations

import base64
import csv
import datetime
import io
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest

from gateway.auth.authenticators import token_line
from tests.live.gateway import HTTP_PATH, Server, start_server

ENDLESS = "SELECT count(*) FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1"
LARGE = "SELECT id, CAST(id AS STRING) AS s FROM range(1500000)"


class Api:
    """Calls with JSON in and out."""

    def __init__(self, server: Server, token: str = "none-needed") -> None:
        self.url = server.url
        self.token = token

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", **headers}
        request = urllib.request.Request(f"{self.url}/api/2.0{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def execute(self, statement: str, **fields: Any) -> Any:
        """The answer to POST statements."""
        status, answer = self.call("POST", "/sql/statements", {"statement": statement, "warehouse_id": "w", **fields})
        assert status == 200, answer
        return answer

    def ended(self, identifier: str) -> Any:
        """The answer to GET statements/{id} once it has ended."""
        while True:
            status, answer = self.call("GET", f"/sql/statements/{identifier}")
            assert status == 200, answer
            if answer["status"]["state"] not in ("PENDING", "RUNNING"):
                return answer
            time.sleep(0.05)


def download(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        data: bytes = answer.read()
        return data


@pytest.fixture
def api(server: Server) -> Api:
    return Api(server)


def test_rows_in_the_answer(api: Api) -> None:
    answer = api.execute(
        "SELECT concat('id-', id) AS strCol, id AS intCol, null AS nullCol FROM range(3)", disposition="INLINE"
    )
    assert answer["status"] == {"state": "SUCCEEDED"}
    assert answer["manifest"] == {
        "format": "JSON_ARRAY",
        "schema": {
            "column_count": 3,
            "columns": [
                {"name": "strCol", "type_text": "STRING", "type_name": "STRING", "position": 0},
                {"name": "intCol", "type_text": "BIGINT", "type_name": "LONG", "position": 1},
                {"name": "nullCol", "type_text": "VOID", "type_name": "NULL", "position": 2},
            ],
        },
        "total_chunk_count": 1,
        "total_row_count": 3,
        "total_byte_count": answer["manifest"]["total_byte_count"],
        "truncated": False,
        "chunks": answer["manifest"]["chunks"],
    }
    assert answer["result"]["data_array"] == [["id-0", "0", None], ["id-1", "1", None], ["id-2", "2", None]]
    assert {k: v for k, v in answer["manifest"]["chunks"][0].items() if k != "byte_count"} == {
        "chunk_index": 0,
        "row_offset": 0,
        "row_count": 3,
    }
    again = api.ended(answer["statement_id"])
    assert again == answer
    status, chunk = api.call("GET", f"/sql/statements/{answer['statement_id']}/result/chunks/0")
    assert (status, chunk) == (200, answer["result"])


@pytest.mark.parametrize(
    ("type_text", "type_name", "more"),
    [
        ("TINYINT", "BYTE", {}),
        ("SMALLINT", "SHORT", {}),
        ("INT", "INT", {}),
        ("FLOAT", "FLOAT", {}),
        ("DECIMAL(10,2)", "DECIMAL", {"type_precision": 10, "type_scale": 2}),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", {}),
        ("INTERVAL DAY TO HOUR", "INTERVAL", {"type_interval_type": "DAY TO HOUR"}),
        ("MAP<STRING, STRING>", "MAP", {}),
        ("STRUCT<street: STRING, zip: INT>", "STRUCT", {}),
    ],
)
def test_columns_as_recorded(api: Api, type_text: str, type_name: str, more: dict[str, Any]) -> None:
    answer = api.execute(f"SELECT CAST(NULL AS {type_text}) AS c")
    expected = {"name": "c", "type_text": type_text, "type_name": type_name, "position": 0, **more}
    assert answer["manifest"]["schema"]["columns"] == [expected]
    assert answer["result"]["data_array"] == [[None]]


def test_statements_without_a_result_and_without_rows(api: Api) -> None:
    answer = api.execute("CREATE SCHEMA IF NOT EXISTS rest", disposition="EXTERNAL_LINKS", format="ARROW_STREAM")
    assert answer["manifest"]["schema"] == {"column_count": 0} and answer["manifest"]["total_chunk_count"] == 0
    assert answer["result"] == {}
    assert api.execute("SELECT 1 AS a WHERE false")["result"] == {"data_array": []}
    none = api.execute("SELECT 1 AS a WHERE false", disposition="EXTERNAL_LINKS", format="ARROW_STREAM")
    assert (none["result"], none["manifest"]["total_chunk_count"]) == ({}, 0)


@pytest.mark.parametrize("form", ["JSON_ARRAY", "CSV", "ARROW_STREAM"])
def test_rows_behind_links(api: Api, form: str) -> None:
    answer = api.execute(LARGE, disposition="EXTERNAL_LINKS", format=form)
    identifier, chunks = answer["statement_id"], answer["manifest"]["chunks"]
    assert len(chunks) > 2 and answer["manifest"]["total_row_count"] == 1_500_000
    found: list[tuple[str, str]] = []
    for index, chunk in enumerate(chunks):
        status, result = api.call("GET", f"/sql/statements/{identifier}/result/chunks/{index}")
        assert status == 200
        link = result["external_links"][0]
        assert {k: link[k] for k in chunk} == chunk
        assert link.get("next_chunk_index") == (index + 1 if index + 1 < len(chunks) else None)
        until = datetime.datetime.fromisoformat(link["expiration"])
        assert until > datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        data = download(link["external_link"])
        if form == "JSON_ARRAY":
            rows = [tuple(row) for row in json.loads(data)]
        elif form == "CSV":
            rows = [(a, b) for a, b in csv.reader(io.StringIO(data.decode(), newline=""))]
            rows = rows[1:] if index == 0 else rows  # only the first chunk has a header
        else:
            table = pa.ipc.open_stream(data).read_all()
            rows = [(str(a), b) for a, b in zip(*(column.to_pylist() for column in table.columns), strict=True)]
        assert len(rows) == chunk["row_count"]
        found += rows
    assert sorted(int(a) for a, _ in found) == list(range(1_500_000)) and all(a == b for a, b in found)
    assert api.call("GET", f"/sql/statements/{identifier}/result/chunks/{len(chunks)}")[0] == 404
    assert api.call("DELETE", f"/sql/statements/{identifier}") == (200, {})
    assert api.call("GET", f"/sql/statements/{identifier}")[0] == 404


def test_small_results_in_the_answer_large_ones_behind_links(api: Api) -> None:
    both = {"disposition": "INLINE_OR_EXTERNAL_LINKS", "format": "ARROW_STREAM", "result_compression": "LZ4_FRAME"}
    small = api.execute("SELECT id FROM range(10)", **both)
    assert small["manifest"]["result_compression"] == "LZ4_FRAME"
    data = lz4.frame.decompress(base64.b64decode(small["result"]["attachment"]))
    assert pa.ipc.open_stream(data).read_all().column(0).to_pylist() == list(range(10))
    assert len(api.execute(LARGE, **both)["result"]["external_links"]) > 2


def test_what_is_too_large_for_the_answer_says_what_to_do(api: Api) -> None:
    answer = api.execute("SELECT repeat('x', 1000) AS x FROM range(40000)")
    assert answer["status"]["state"] == "FAILED" and answer["status"]["error"]["error_code"] == "RESOURCE_EXHAUSTED"
    assert "disposition=EXTERNAL_LINKS" in answer["status"]["error"]["message"]


def test_a_limit_that_stays_is_none_to_wait_for(api: Api) -> None:
    """Clients send again what is answered by 429, for minutes: only what may pass is told so."""
    status, told = api.call(
        "POST", "/sql/statements", {"statement": "SELECT 1 " + " " * (16 << 20), "warehouse_id": "w"}
    )
    assert (status, told["error_code"]) == (400, "BAD_REQUEST")
    assert "STATEMENT_TOO_LARGE" in told["message"]
    started = api.execute(
        "SELECT id, repeat('x', 100) AS s FROM range(400000)", disposition="INLINE", wait_timeout="50s"
    )
    status, told = api.call("GET", f"/sql/statements/{started['statement_id']}/result/chunks/0")
    assert (status, told["error_code"]) == (400, "BAD_REQUEST")
    assert "RESULT_TOO_LARGE" in told["message"]


def test_limits(api: Api) -> None:
    cut = api.execute("SELECT id FROM range(100)", row_limit=3)
    assert (cut["manifest"]["truncated"], cut["result"]["data_array"]) == (True, [["0"], ["1"], ["2"]])
    whole = api.execute("SELECT id FROM range(3)", row_limit=3)
    assert (whole["manifest"]["truncated"], whole["manifest"]["total_row_count"]) == (False, 3)
    cut = api.execute("SELECT id FROM range(1000000)", byte_limit=100_000)
    assert cut["manifest"]["truncated"] and 5_000 < cut["manifest"]["total_row_count"] < 12_500


def test_parameters(api: Api) -> None:
    named = [
        {"name": "a", "value": "7", "type": "INT"},
        {"name": "b", "value": None, "type": "DATE"},
        {"name": "c", "value": "x"},
    ]
    answer = api.execute("SELECT :a + 1 AS a, :b AS b, :c AS c", parameters=named)
    assert [c["type_text"] for c in answer["manifest"]["schema"]["columns"]] == ["INT", "DATE", "STRING"]
    assert answer["result"]["data_array"] == [["8", None, "x"]]
    placed = [{"ordinal": 2, "value": "b", "type": "STRING"}, {"ordinal": 1, "value": "a", "type": "STRING"}]
    assert api.execute("SELECT ? AS x, ? AS y", parameters=placed)["result"]["data_array"] == [["a", "b"]]


@pytest.mark.parametrize(
    ("kind", "text", "shown", "name"),
    [
        ("INTERVAL MONTH", "14", "1-2", "interval month"),  # @databricks/sql and databricks-sql-go have these two
        ("INTERVAL DAY", "-3", "-3 00:00:00.000000000", "interval day"),
        ("INTERVAL YEAR TO MONTH", "1-2", "1-2", "interval year to month"),
        ("INTERVAL DAY TO SECOND", "1 02:03:04.5", "1 02:03:04.500000000", "interval day to second"),
    ],
)
def test_parameters_that_are_intervals(api: Api, kind: str, text: str, shown: str, name: str) -> None:
    given = [{"name": "p", "value": text, "type": kind}]
    answer = api.execute("SELECT :p AS p, typeof(:p) AS t", parameters=given)
    assert answer["result"]["data_array"] == [[shown, name]]


@pytest.mark.parametrize(
    ("kind", "text", "condition"),
    [
        ("INTERVAL DAY", "x", "INVALID_PARAMETER_MARKER_VALUE"),
        ("INTERVAL DAY", "1_0", "INVALID_PARAMETER_MARKER_VALUE"),
        ("INTERVAL SECOND", "1e2", "INVALID_PARAMETER_MARKER_VALUE"),
        ("INTERVAL YEAR TO MONTH", "²-2", "INVALID_PARAMETER_MARKER_VALUE"),
        ("BINARY", "00ff", "UNSUPPORTED_FEATURE"),
    ],
)
def test_parameters_that_are_no_values(api: Api, kind: str, text: str, condition: str) -> None:
    status = api.execute("SELECT :p AS p", parameters=[{"name": "p", "value": text, "type": kind}])["status"]
    assert status["error"]["message"].startswith(f"[{condition}")


def test_errors_of_statements(api: Api) -> None:
    for text, condition, sqlstate in (
        ("SELEC 1", "PARSE_SYNTAX_ERROR", "42601"),
        ("SELECT x FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("SELECT 1 / 0", "DIVIDE_BY_ZERO", "22012"),
    ):
        status = api.execute(text)["status"]
        assert (status["state"], status["sql_state"], status["error"]["error_code"]) == (
            "FAILED",
            sqlstate,
            "BAD_REQUEST",
        )
        assert status["error"]["message"].startswith(f"[{condition}]")


def test_waiting_polling_and_cancelling(api: Api) -> None:
    started = time.monotonic()
    answer = api.execute(ENDLESS, wait_timeout="5s", on_wait_timeout="CANCEL")
    assert answer["status"] == {"state": "CANCELED"} and 4.5 < time.monotonic() - started < 20
    answer = api.execute(ENDLESS, wait_timeout="0s")
    identifier = answer["statement_id"]
    assert answer["status"]["state"] in ("PENDING", "RUNNING") and "manifest" not in answer
    status, shown = api.call("GET", f"/sql/statements/{identifier}/status")
    assert status == 200 and shown["status"]["state"] in ("PENDING", "RUNNING")
    assert api.call("GET", f"/sql/statements/{identifier}/result/chunks/0")[0] == 400
    as_databricks_jdbc = {"statementId": identifier}
    assert api.call("POST", f"/sql/statements/{identifier}/cancel", as_databricks_jdbc) == (200, {})
    assert api.ended(identifier)["status"]["state"] == "CANCELED"
    later = api.execute("SELECT 1 AS a", wait_timeout="0s")
    assert api.ended(later["statement_id"])["result"]["data_array"] == [["1"]]


def test_sessions(api: Api) -> None:
    status, made = api.call("POST", "/sql/sessions/", {"warehouse_id": "w", "catalog": "SPARK", "schema": "default"})
    assert status == 200
    session = made["session_id"]
    api.execute("SET TIME ZONE 'Asia/Tokyo'", session_id=session)
    shown = api.execute("SELECT current_timezone() AS z", session_id=session)
    assert shown["result"]["data_array"] == [["Asia/Tokyo"]]
    assert api.execute("SELECT current_timezone() AS z")["result"]["data_array"] != [["Asia/Tokyo"]]
    assert api.call("DELETE", f"/sql/sessions/{session}?warehouse_id=w") == (200, {})
    body = {"statement": "SELECT 1", "session_id": session}
    assert api.call("POST", "/sql/statements", body)[1]["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    assert api.call("DELETE", f"/sql/sessions/{session}")[0] == 404
    named = api.execute("SELECT current_catalog() AS c, current_schema() AS s", catalog="samples", schema="tpch")
    assert named["result"]["data_array"] == [["samples", "tpch"]]


def test_paths_of_newer_drivers(api: Api) -> None:
    _, made = api.call("POST", "/sql/warehouses/w/sessions", {"warehouse_id": "w", "execution_mode": "ASYNC"})
    base = f"/sql/warehouses/w/sessions/{made['session_id']}"
    status, answer = api.call("POST", f"{base}/statements", {"statement": "SELECT 1 AS a"})
    assert (status, answer["result"]["data_array"]) == (200, [["1"]])
    path = f"{base}/statements/{answer['statement_id']}"
    assert api.call("GET", path) == (200, answer) and api.call("DELETE", path) == (200, {})
    assert api.call("DELETE", base) == (200, {})


def test_a_session_of_its_own_ends_with_its_statement(tmp_path: Path) -> None:
    running = start_server(tmp_path, "--operation-idle", "2s")
    try:
        api = Api(running)
        api.call("DELETE", f"/sql/statements/{api.execute('SELECT 1')['statement_id']}")
        api.execute("SELECT 2")  # never closed
        end = time.monotonic() + 30
        while running.log.read_text().count("session closed") < 2 and time.monotonic() < end:
            time.sleep(0.2)
        assert running.log.read_text().count("session closed") == 2
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"statement": None}, "statement is missing"),
        ({"stmt": "x"}, "the body has unknown fields: stmt"),
        ({"format": "XML"}, "format is not one of"),
        ({"format": "CSV"}, "only supported for disposition=EXTERNAL_LINKS"),
        ({"wait_timeout": "1m"}, "wait_timeout must be"),
        ({"parameters": [{"name": "a", "valu": 1}]}, "parameters has unknown fields: valu"),
        ({"parameters": [{"name": "a", "value": "1"}, {"value": "2"}]}, "cannot be mixed"),
        ({"session_id": "x", "catalog": "main"}, "catalog and schema are those of the session"),
        ({"row_limit": -1}, "row_limit is not a positive number"),
    ],
)
def test_wrong_requests(api: Api, fields: dict[str, Any], message: str) -> None:
    status, answer = api.call("POST", "/sql/statements", {"statement": "SELECT 1", **fields})
    assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE") and message in answer["message"]


def test_what_is_not_there(api: Api) -> None:
    for method, path in (
        ("GET", "/sql/statements/x"),
        ("GET", "/sql/statements/00000000-0000-0000-0000-000000000000"),
        ("POST", "/sql/statements/00000000-0000-0000-0000-000000000000/cancel"),
        ("DELETE", "/sql/sessions/00000000-0000-0000-0000-000000000000"),
        ("GET", "/sql/queries"),
        ("GET", "/clusters/list"),
    ):
        assert api.call(method, path)[0] == 404, path
    assert api.call("PUT", "/sql/statements", {})[0] == 405
    assert api.call("POST", "/sql/statements", b"{")[1]["error_code"] == "MALFORMED_REQUEST"


def test_what_sdks_ask_beside_it(api: Api) -> None:
    assert api.call("GET", "/preview/scim/v2/Me")[1]["userName"] == "anonymous"
    (warehouse,) = api.call("GET", "/sql/warehouses?skip_cannot_use=true")[1]["warehouses"]
    assert warehouse["state"] == "RUNNING" and warehouse["odbc_params"]["protocol"] == "http"
    assert api.call("GET", "/sql/warehouses/abc")[1]["odbc_params"]["path"] == "/sql/1.0/warehouses/abc"
    assert api.call("GET", "/connector-service/feature-flags/PYTHON/4.9.0")[1] == {"flags": [], "ttl_seconds": 900}


@pytest.mark.parametrize("host", ["x:99999", "[:::::]", "[1]:5", "x y"])
def test_no_link_begins_with_a_name_that_is_none(api: Api, host: str) -> None:
    status, told = api.call("GET", "/sql/warehouses/abc", Host=host)
    assert (status, told["odbc_params"]["hostname"]) == (200, "localhost")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens"
    tokens.write_text("\n".join(token_line(name, f"{name}-token").strip() for name in ("ann", "bob")) + "\n")
    running = start_server(folder, "--auth", "token", "--token-file", str(tokens))
    yield running
    running.stop()


def test_statements_and_sessions_are_their_users_own(guarded: Server) -> None:
    ann, bob, nobody = (Api(guarded, token) for token in ("ann-token", "bob-token", "wrong"))
    session = ann.call("POST", "/sql/sessions", {})[1]["session_id"]
    identifier = ann.execute("SELECT 1 AS a", session_id=session)["statement_id"]
    assert nobody.call("GET", f"/sql/statements/{identifier}")[0] == 401
    for method, path in (
        ("GET", f"/sql/statements/{identifier}"),
        ("GET", f"/sql/statements/{identifier}/status"),
        ("GET", f"/sql/statements/{identifier}/result/chunks/0"),
        ("POST", f"/sql/statements/{identifier}/cancel"),
        ("DELETE", f"/sql/statements/{identifier}"),
        ("DELETE", f"/sql/sessions/{session}"),
    ):
        assert bob.call(method, path)[0] == 404
    assert bob.call("POST", "/sql/statements", {"statement": "SELECT 1", "session_id": session})[0] == 404
    assert ann.call("GET", f"/sql/statements/{identifier}")[1]["result"]["data_array"] == [["1"]]


VALUES = "SELECT 1 AS a, 'x\"y' AS s, CAST(1.5 AS DECIMAL(5, 2)) AS d, DATE'2020-02-02' AS t, X'01FF' AS b, null AS n, true o"


@pytest.mark.parametrize("flags", [{}, {"use_cloud_fetch": False}, {"use_hybrid_disposition": True}], ids=str)
def test_the_connector(server: Server, flags: dict[str, Any]) -> None:
    from databricks import sql

    with (
        sql.connect(
            server_hostname=server.url.rpartition(":")[0],
            _port=int(server.url.rpartition(":")[2]),
            http_path=HTTP_PATH,
            access_token="none-needed",
            use_sea=True,
            enable_telemetry=False,
            **flags,
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(VALUES)
        assert [tuple(row) for row in cursor.fetchall()] == [
            (1, 'x"y', Decimal("1.50"), datetime.date(2020, 2, 2), b"\x01\xff", None, True)
        ]
        cursor.execute("SELECT :a + 1 AS a", {"a": 5})
        assert cursor.fetchall()[0][0] == 6
        if flags.get("use_cloud_fetch", True):
            cursor.execute(LARGE)
            assert cursor.fetchall_arrow().num_rows == 1_500_000
        with pytest.raises(sql.exc.ServerOperationError, match="PARSE_SYNTAX_ERROR"):
            cursor.execute("SELEC 1")
        cursor.execute("SELECT 1 AS a WHERE false")
        assert cursor.fetchall() == []


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_examples_of_the_documentation_work(server: Server) -> None:
    """Each call of curl in docs/clients.md, as a shell runs it, with a server and a statement that are there."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    section = text.partition("\n## REST\n")[2].partition("\n## ")[0]
    calls = re.findall(r"^curl .*?(?<!\\)$", section, re.MULTILINE | re.DOTALL)
    assert len(calls) == 7
    answers: list[Any] = []
    statement = ""
    for call in calls:
        call = call.replace("http://127.0.0.1:8080", server.url).replace("$STATEMENT_ID", statement)
        done = subprocess.run(["sh", "-c", f"{call} --fail"], capture_output=True, timeout=90, check=True)
        answers.append(json.loads(done.stdout))
        statement = answers[-1].get("statement_id", statement)
    described, rows, started, told, cancelled, linked, before = answers
    assert described["openapi"].startswith("3.1")
    assert rows["result"]["data_array"] == [["AFRICA"], ["AMERICA"], ["ASIA"]]
    assert started["statement_id"] == told["statement_id"]
    assert cancelled == {}
    assert linked["result"]["external_links"]
    assert linked["statement_id"] in [query["query_id"] for query in before["res"]]
