"""What one caller, or a stranger, takes by the hundred: others' calls are answered, and the server keeps its size."""

from __future__ import annotations

import base64
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol import codec
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import ENDLESS, address, answer, outcome, resident_mib
from tests.live.gateway import HTTP_PATH, Server, start_server

pytestmark = pytest.mark.heavy


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    server = start_server(tmp_path, "--memory-limit", "512MiB", "--slots", "2")
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


def slowest(call: Callable[[], Any], times: int = 20) -> float:
    """Seconds that the slowest of several calls takes."""
    seconds = []
    for _ in range(times):
        began = time.monotonic()
        call()
        seconds.append(time.monotonic() - began)
    return max(seconds)


def begin(client: Client, text: str = ENDLESS, **fields: Any) -> Any:
    return client.call("ExecuteStatement", ttypes.TExecuteStatementReq(client._session, text, runAsync=True, **fields))


def test_statements_that_are_waited_for_hold_up_no_other_call(own: Server) -> None:
    """And the threads that waited for them, 256 for one caller, have ended half a minute later."""
    tasks = Path(f"/proc/{own.process.pid}/task")
    before = len([*tasks.iterdir()])
    flood = [Client(own.thrift_url, user="mallory", timeout=120).open() for _ in range(270)]

    def wait(client: Client) -> None:
        with pytest.raises((RemoteError, OSError)):  # until its session is closed
            client.call("ExecuteStatement", ttypes.TExecuteStatementReq(client._session, ENDLESS, runAsync=False))

    threads = [threading.Thread(target=wait, args=(client,)) for client in flood]
    for thread in threads:
        thread.start()
    time.sleep(4)
    with Client(own.thrift_url, user="ann").open() as ann:
        operations = [begin(ann).operationHandle for _ in range(20)]
        turns = iter(operations)
        info = ttypes.TGetInfoReq(ann._session, 17)
        assert slowest(lambda: ann.call("GetInfo", info)) < 0.5
        assert slowest(lambda: ann.call("CancelOperation", ttypes.TCancelOperationReq(next(turns)))) < 0.5
        turns = iter(operations)
        assert slowest(lambda: ann.call("GetOperationStatus", ttypes.TGetOperationStatusReq(next(turns)))) < 0.5
        turns = iter(operations)
        assert slowest(lambda: ann.call("CloseOperation", ttypes.TCloseOperationReq(next(turns)))) < 0.5
        assert slowest(lambda: Client(own.thrift_url, user="ann").open().close()) < 0.5
        closer = Client(own.thrift_url, user="mallory")
        for client in flood:
            closer.call("CloseSession", ttypes.TCloseSessionReq(client._session))
            client._session = None
        crowd = len([*tasks.iterdir()])
        for thread in threads:
            thread.join(60)
        assert answer(ann, "SELECT 1 AS x") == [{"x": 1}]
        end = time.monotonic() + 30
        while len([*tasks.iterdir()]) > before + 40 and time.monotonic() < end:
            time.sleep(0.5)
        assert crowd > before + 100
        assert len([*tasks.iterdir()]) <= before + 40


def test_5000_silent_connections(own: Server) -> None:
    with Client(own.thrift_url, user="ann").open() as ann:
        peers = [socket.create_connection(address(own)) for _ in range(5000)]
        for peer in peers[::2]:
            try:
                peer.sendall(b"POST /cliservice HTTP/1.1\r\nHost")
            except OSError:  # cut already
                continue
        with Client(own.thrift_url, user="bob").open() as bob:
            assert answer(bob, "SELECT 1 AS x") == [{"x": 1}]
        assert answer(ann, "SELECT 2 AS x") == [{"x": 2}]
        assert resident_mib(own.process.pid) < 250
        for peer in peers:
            peer.close()


def test_answers_that_nobody_takes_hold_a_share(own: Server) -> None:
    body = base64.b64encode(b"mallory:x").decode()
    readers = []
    with Client(own.thrift_url, user="mallory").open() as mallory, Client(own.thrift_url, user="ann").open() as ann:
        for _ in range(100):
            operation = begin(mallory, "SELECT id, repeat('x', 1000) AS x FROM range(10000)").operationHandle
            body_bytes = codec.encode_call("FetchResults", 1, ttypes.TFetchResultsReq(operation, 0, maxRows=10**6))
            peer = socket.create_connection(address(own))
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"POST {HTTP_PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {body}\r\nContent-Length: {len(body_bytes)}"
            peer.sendall(head.encode() + b"\r\n\r\n" + body_bytes)
            readers.append(peer)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            assert answer(ann, "SELECT 1 AS x") == [{"x": 1}]
            assert resident_mib(own.process.pid) < 1100
            time.sleep(1)
        for peer in readers:
            peer.close()


def test_what_one_caller_leaves_behind_stays_within_a_share(own: Server) -> None:
    parameter = ttypes.TSparkParameter(
        name="p", value=ttypes.TSparkParameterValue(stringValue="x" * 15_000_000), type="STRING"
    )
    errors = 0
    with Client(own.thrift_url, user="mallory").open() as mallory, Client(own.thrift_url, user="ann").open() as ann:
        for text, times, parameters in (
            ("SELECT length(:p) AS x", 30, [parameter]),
            (f"{ENDLESS} AND length(:p) = b.id", 30, [parameter]),
            ("SELECT id, 'x' AS x FROM range(5000)", 500, None),
            ("SELECT id, 'x' AS x FROM range(100000)", 500, None),
        ):
            for _ in range(times):
                try:
                    begin(mallory, text, parameters=parameters)
                except RemoteError as error:
                    assert error.sqlstate == "53200"
                    errors += 1
        assert resident_mib(own.process.pid) < 1000
        assert len(os.listdir(f"/proc/{own.process.pid}/fd")) < 2000
        mallory.call("CloseSession", ttypes.TCloseSessionReq(mallory._session))
        mallory._session = None
        assert answer(ann, "SELECT 1 AS x") == [{"x": 1}]
    assert errors


def test_sessions_by_the_thousand(own: Server) -> None:
    line = Client(own.thrift_url, user="mallory")
    refused = 0
    for turn in range(12_000):
        request = ttypes.TOpenSessionReq(
            client_protocol_i64=0xA509, configuration={"query_tags": "x" * (turn % 100) * 500}
        )
        try:
            line.call("OpenSession", request)
        except RemoteError as error:
            assert error.sqlstate == "53200"
            refused += 1
            if refused > 50:
                break
    assert refused
    assert resident_mib(own.process.pid) < 400
    with Client(own.thrift_url, user="ann").open() as ann:
        assert answer(ann, "SELECT 1 AS x") == [{"x": 1}]
    line._connection.close()


SLOW_TEXT = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT regexp_replace('{SLOW_TEXT}', '(a|aa)+(?=$)', 'x') AS x",
        f"SELECT regexp_count(concat('{SLOW_TEXT}', id), '(a|aa)+(?=$)') AS x FROM range(2)",
        f"CREATE TABLE never AS SELECT rlike('{SLOW_TEXT}', '(a|aa)+(?=$)') AS x",
        "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(80_000)),
    ],
    ids=["constant", "rows", "write", "columns"],
)
def test_what_takes_for_ever_ends(own: Server, text: str) -> None:
    with Client(own.thrift_url, user="mallory").open() as mallory, Client(own.thrift_url, user="ann").open() as ann:
        thread_error: list[Any] = []
        thread = threading.Thread(target=lambda: thread_error.append(outcome(mallory, text, timeout_seconds=600)))
        thread.start()
        while thread.is_alive():
            assert answer(ann, "SELECT 1 AS x") == [{"x": 1}]
            thread.join(1)
        assert "STATEMENT_TOO_COMPLEX" in str(thread_error[0])
