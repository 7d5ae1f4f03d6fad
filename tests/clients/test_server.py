"""The server process as operators see it: health, tokens, signals, orphans, bad requests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from gateway.cli import main
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import HTTP_PATH, Server, clean_environment, start_server
from tests.live.processes import eventually

ENDLESS = "SELECT count(*) FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1"


def status_of(url: str, body: bytes | None = None, **headers: str) -> int:
    """HTTP status of a GET, or a POST with `body`."""
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def descendants(pid: int) -> set[int]:
    """Process ids of all descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def wait_for_end(pids: set[int], seconds: float) -> set[int]:
    """Those of `pids` that still run after `seconds`."""
    end = time.monotonic() + seconds
    while pids and time.monotonic() < end:
        pids = {p for p in pids if Path(f"/proc/{p}").exists() and "Z" not in _state(p)}
        time.sleep(0.05)
    return pids


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_pages(server: Server) -> None:
    assert status_of(server.url + "/healthz") == 200
    assert status_of(server.url + "/readyz") == 200
    assert status_of(server.url + "/metrics") == 200
    assert status_of(server.url + "/api/2.0/clusters/list") == 404
    assert status_of(server.thrift_url) == 405


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"garbage" * 100,
        b"\x80\x01\x00\x01\x00\x00\x00\x0bOpenSession",
        b"\x80\x01\x00\x01\xff\xff\xff\xff",
    ],
)
def test_garbage_does_no_harm(server: Server, body: bytes) -> None:
    assert status_of(server.thrift_url, body) in (200, 400)
    with Client(server.thrift_url).open() as client:
        assert client.execute("SELECT 1").table().num_rows == 1


def test_a_cut_request_does_no_harm(server: Server) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as peer:
        peer.sendall(f"POST {HTTP_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nshort".encode())
    assert status_of(server.url + "/readyz") == 200


def test_too_large_a_body_is_refused(server: Server) -> None:
    assert status_of(server.thrift_url, b"x" * (33 * 1024 * 1024)) == 413
    assert status_of(server.url + "/readyz") == 200


def test_foreign_handles_look_like_missing_ones(server: Server) -> None:
    with Client(server.thrift_url, user="alice").open() as alice, Client(server.thrift_url, user="bob").open() as bob:
        bob._session = alice._session
        with pytest.raises(RemoteError, match="SessionHandle"):
            bob.execute("SELECT 1")
        bob._session = None


def test_a_foreign_operation_is_neither_read_nor_ended(server: Server) -> None:
    with Client(server.thrift_url, user="alice").open() as alice, Client(server.thrift_url, user="bob").open() as bob:
        statement = ttypes.TExecuteStatementReq(sessionHandle=alice._session, statement="SELECT 42 AS n", runAsync=True)
        operation = alice.call("ExecuteStatement", statement).operationHandle
        status, fetch = ttypes.TGetOperationStatusReq(operation), ttypes.TFetchResultsReq(operation, maxRows=10)
        verbs: dict[str, Any] = {
            "GetOperationStatus": status,
            "FetchResults": fetch,
            "GetResultSetMetadata": ttypes.TGetResultSetMetadataReq(operation),
            "CancelOperation": ttypes.TCancelOperationReq(operation),
        }
        guessed = ttypes.TOperationHandle(
            ttypes.THandleIdentifier(operation.operationId.guid, os.urandom(16)), operation.operationType, True
        )
        for method, request in verbs.items():
            texts = []
            for handle in (operation, guessed):
                request.operationHandle = handle
                with pytest.raises(RemoteError) as caught:
                    bob.call(method, request)
                texts.append(str(caught.value))
            assert "INVALID_OPERATION_HANDLE" in texts[0], method
            assert texts[0] == texts[1], method  # nothing tells that the first is right
        bob.call("CloseOperation", ttypes.TCloseOperationReq(operation))  # closing what is not there is no error
        status.operationHandle = fetch.operationHandle = operation
        states = ttypes.TOperationState
        under_way = (states.INITIALIZED_STATE, states.PENDING_STATE, states.RUNNING_STATE)
        while (state := alice.call("GetOperationStatus", status).operationState) in under_way:
            time.sleep(0.02)
        assert state == states.FINISHED_STATE
        (column,) = alice.call("FetchResults", fetch).results.columns
        assert bytes(column.i32Val.values.data) == (42).to_bytes(4, "big")


def test_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = tmp_path / "tokens.txt"
    assert main(["token", "alice", "--token-file", str(tokens)]) == 0
    token = capsys.readouterr().out.strip()
    server = start_server(tmp_path, "--auth", "token", "--token-file", str(tokens))
    try:
        with Client(server.url, token=token).open() as client:
            assert client.execute("SELECT current_user()").table().column(0).to_pylist() == ["alice"]
        for wrong in ("dapi" + "0" * 32, "", token[:-1]):
            with pytest.raises(RemoteError, match="401"):
                Client(server.url, token=wrong).open()
        assert token not in server.log.read_text()
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_statements_end(tmp_path: Path, asked: signal.Signals) -> None:
    if signal.getsignal(asked) is signal.SIG_IGN:
        pytest.skip(f"whoever runs the tests has {asked.name} ignored, as nohup does")
    server = start_server(tmp_path)
    client = Client(server.url).open()
    result = client.execute("SELECT id FROM range(300000)", max_rows=1000)
    workers = descendants(server.process.pid)
    server.process.send_signal(asked)
    assert sum(batch.num_rows for batch in result.batches()) == 300_000
    client.close()
    assert server.process.wait(30) == 0
    assert not wait_for_end(workers, 5)
    assert not (tmp_path / "ready.json").exists()


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    server = start_server(tmp_path)
    with Client(server.url).open() as client:
        workers = descendants(server.process.pid)
        answer: list[Any] = []

        def stop_twice(_: Any) -> None:
            if not answer:
                answer.append(True)
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
                server.process.send_signal(signal.SIGTERM)

        with pytest.raises((OSError, RemoteError)):
            client.execute(ENDLESS, progress=stop_twice)
        client._session = None
    assert server.process.wait(10) != 0
    assert not wait_for_end(workers, 10)


def test_kill_leaves_no_orphan(tmp_path: Path) -> None:
    server = start_server(tmp_path)
    client = Client(server.url).open()
    client.execute("SELECT id, repeat('x', 100) FROM range(200000)", max_rows=10)
    workers = descendants(server.process.pid)
    assert workers
    server.process.kill()
    server.process.wait()
    assert not wait_for_end(workers, 10)
    left = [p for folder in ("spool", "spill") for p in (tmp_path / "state" / folder).rglob("*") if p.is_file()]
    assert left == []
    again = start_server(tmp_path)
    assert again.stop() == 0


SPILLING = "SELECT id, repeat('x', 50) AS t FROM range(20000000) ORDER BY id % 1000003, id"


def test_the_next_start_removes_what_a_kill_has_left(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def left() -> set[Path]:
        return {p for folder in ("spool", "spill") for p in (state / folder).rglob("*") if p.is_file()}

    server = start_server(tmp_path, "--memory-limit", "128MiB", "--slots", "1")
    workers = descendants(server.process.pid)
    with Client(server.url).open() as client:

        def kill_once_spilled(_: Any) -> None:
            end = time.monotonic() + 60
            while not left() and time.monotonic() < end:
                time.sleep(0.02)
            workers.update(descendants(server.process.pid))
            server.process.kill()

        with pytest.raises(OSError):
            client.execute(SPILLING, direct=False, progress=kill_once_spilled)
        client._session = None
    server.process.wait()
    assert not wait_for_end(workers, 10)
    orphans = left()
    assert orphans, "nothing was spilled"
    assert all(p.is_relative_to(state / "spill") for p in orphans)

    again = start_server(tmp_path, "--memory-limit", "128MiB", "--slots", "1")
    eventually(lambda: not left() & orphans, 10)  # one of several engine processes is at it
    assert {p.name for p in state.iterdir() if p.suffix != ".db" and ".db-" not in p.name} == {
        "samples",
        "spill",
        "spool",
    }
    assert again.stop() == 0
    assert left() == set()
    assert list((state / "spill").iterdir()) == [] and list((state / "spool").iterdir()) == []
    assert {p.name for p in tmp_path.iterdir()} == {"server.log", "state", "warehouse"}


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    server = start_server(tmp_path)
    try:
        with Client(server.url).open() as client:
            for _ in range(2):
                for worker in descendants(server.process.pid):
                    os.kill(worker, signal.SIGKILL)
                assert client.execute("SELECT 41 + 1").table().column(0).to_pylist() == [42]
    finally:
        assert server.stop() == 0


def test_tables_are_made_without_vectors_where_the_operator_says_so(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--deletion-vectors", "false", "--memory-limit", "512MiB")
    shown = "SHOW TBLPROPERTIES t ('delta.enableDeletionVectors')"
    with Client(server.url).open() as client:

        def told() -> str:
            return str(client.execute(shown).table().column(1)[0].as_py())

        client.execute("CREATE TABLE t (id INT)").table()
        assert "does not have" in told()
        client.execute("SET spark.databricks.delta.properties.defaults.enableDeletionVectors = true").table()
        client.execute("CREATE OR REPLACE TABLE t (id INT)").table()
        assert told() == "true"
    assert server.stop() == 0


def test_ready_file_and_log(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--log-format", "json")
    try:
        facts = json.loads((tmp_path / "ready.json").read_text())
        assert facts == {"pid": server.process.pid, "http": server.url, "tcp": None, "https": None}
        with Client(server.url).open() as client:
            client.execute("SELECT 'secret text'").close()
    finally:
        assert server.stop() == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert {"gateway ready", "session opened", "gateway stopped"} <= {line["event"] for line in lines}
    assert any("statement_id" in line for line in lines)
    assert "secret text" not in server.log.read_text()


BAD_STARTS = {
    "port": ["--port", "{taken}"],
    "host": ["--host", "192.0.2.1", "--auth", "token", "--token-file", "{folder}/tokens"],
    "auth": ["--host", "0.0.0.0"],
    "token-file": ["--auth", "token", "--token-file", "{folder}/missing"],
    "slots": ["--slots", "many"],
    "memory-limit": ["--memory-limit", "4 parsecs"],
    "ready-file": ["--ready-file", "{folder}"],
    "warehouse": ["--warehouse", "{folder}/tokens"],
    "state": ["--state", "{folder}/tokens/below"],
    "config": ["--config", "{folder}/missing.toml"],
    "prot": ["--config", "{folder}/bad.toml"],
    "GATEWAY_PROT": [],
    "unrecognized arguments: --prot": ["--prot", "1"],
}


@pytest.mark.parametrize("named", BAD_STARTS)
def test_a_bad_start_says_why_and_leaves_nothing(tmp_path: Path, named: str) -> None:
    (tmp_path / "tokens").write_text(token_line("alice", "secret") + "\n")
    (tmp_path / "bad.toml").write_text("prot = 1\n")
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "gateway", "serve", "--warehouse", str(tmp_path / "w"), "--port", "0"]
    command += ["--state", str(tmp_path / "s"), "--ready-file", str(ready)]
    environment = clean_environment() | ({"GATEWAY_PROT": "1"} if named == "GATEWAY_PROT" else {})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = {"folder": str(tmp_path), "taken": taken.getsockname()[1]}
        command += [part.format(**words) for part in BAD_STARTS[named]]
        # Whatever the server starts holds its pipes: they end when nothing of it is left.
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("usage: ")]
    assert done.returncode == 2 and done.stdout == "" and len(lines) == 1, done.stderr
    assert lines[0].startswith(("gateway: ", "gateway: error: ")) and named in lines[0]
    assert not ready.exists()


def test_query_command_over_a_running_server(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", "--url", server.url, "--quiet", "SELECT id, id * 2 AS twice FROM range(3)"]) == 0
    assert capsys.readouterr().out == "id  twice\n--  -----\n 0      0\n 1      2\n 2      4\n"
    assert main(["query", "--url", server.url, "--quiet", "SELECT 1 AS a, 'x' AS b", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a,b\n1,x\n"
    path = tmp_path / "rows.parquet"
    assert main(["query", "--url", server.url, "--quiet", "SELECT id FROM range(100000)", "-o", str(path)]) == 0
    assert path.stat().st_size > 1000
    assert main(["query", "--url", server.url, "--quiet", "SELECT nonsense"]) == 1
    assert "UNRESOLVED_COLUMN" in capsys.readouterr().err
