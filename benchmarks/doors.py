"""The same work through each door: SELECT 1 by HTTP, HTTPS, TCP and REST, and ten million rows as PyHive receives them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import util
from pathlib import Path
from struct import pack, unpack
from typing import Any
from urllib.parse import urlsplit

from benchmarks.measure import Row, Sample, rounds, show
from benchmarks.systems import ANEW, gateway_process
from gateway.auth import certificates
from gateway.protocol.client import Client
from gateway.protocol.versions import HIVE_V10

STATEMENTS, WARM_UP = 1000, 50
ROWS = 10_000_000
MOST = 1.5  # times what HTTP takes


class _Tcp:
    """Calls over TCP with SASL PLAIN, in the place of the client's connection."""

    def __init__(self, port: int) -> None:
        self._peer = socket.create_connection(("127.0.0.1", port))
        self._peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for status, payload in ((1, b"PLAIN"), (5, b"\0me\0x")):
            self._peer.sendall(pack(">BI", status, len(payload)) + payload)
        if self._receive(5) != pack(">BI", 5, 0):
            raise ConnectionError("the login was refused")

    def post(self, body: bytes) -> tuple[int, bytes]:
        self._peer.sendall(pack(">I", len(body)) + body)
        return 200, self._receive(*unpack(">I", self._receive(4)))

    def close(self) -> None:
        self._peer.close()

    def _receive(self, size: int) -> bytes:
        data = self._peer.recv(size, socket.MSG_WAITALL)
        if len(data) < size:
            raise ConnectionResetError("the server closed the connection")
        return data


class _Rest:
    """Statements by the Statement Execution API, in a session of it, on one connection."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._session = self._post("sessions", {"session_confs": ANEW})["session_id"]

    def select(self) -> None:
        """SELECT 1."""
        answer = self._post("statements", {"session_id": self._session, "statement": "SELECT 1"})
        assert answer["result"]["data_array"] == [["1"]], answer

    def _post(self, path: str, fields: dict[str, Any]) -> Any:
        body = json.dumps({"warehouse_id": "gateway", **fields})
        self._connection.request("POST", f"/api/2.0/sql/{path}", body)
        return json.loads(self._connection.getresponse().read())


def _select(clients: dict[str, Client], rest: _Rest, pid: int) -> dict[str, Sample]:
    """Single statements, through each door in turn; columnar, as over TCP there is nothing else."""
    work: dict[str, Callable[[], object]] = {
        name: partial(client.execute, "SELECT 1", arrow=False) for name, client in clients.items()
    }
    work["REST"] = rest.select
    times: dict[str, list[float]] = {name: [] for name in work}
    with contextlib.ExitStack() as stack:
        for client in clients.values():
            stack.enter_context(client.open(ANEW, protocol=HIVE_V10))

        def turn() -> None:
            for name, one in work.items():
                start = time.perf_counter()
                one()
                times[name].append(time.perf_counter() - start)

        rounds(turn, STATEMENTS, WARM_UP, server=pid)
    return {name: Sample(tuple(seconds[WARM_UP:])) for name, seconds in times.items()}


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _pyhive(port: int) -> tuple[int, float]:
    """Rows that PyHive's own client has received and decoded, and the seconds that it took."""
    from pyhive import hive

    connection: Any = hive.connect("127.0.0.1", port, auth="NONE", username="me")
    cursor = connection.cursor()
    start = time.perf_counter()
    cursor.execute(f"SELECT id FROM range({ROWS})")
    types = hive.ttypes
    request = types.TFetchResultsReq(
        operationHandle=cursor._operationHandle,  # noqa: SLF001
        orientation=types.TFetchOrientation.FETCH_NEXT,
        maxRows=1_000_000,
    )
    rows = 0
    while page := len(connection.client.FetchResults(request).results.columns[0].i64Val.values):
        rows += page
    seconds = time.perf_counter() - start
    connection.close()
    return rows, seconds


def run() -> list[Row]:
    """p50 by door, beside that of HTTP in the same process; and PyHive's rows."""
    if util.find_spec("cryptography") is None or util.find_spec("pyhive") is None:
        return [Row("doors", {"ours": "cryptography or PyHive is not installed"})]
    https, tcp = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        chain, key = certificates.make_server(Path(folder), ["127.0.0.1"])
        os.environ["SSL_CERT_FILE"] = str(Path(folder) / "ca.pem")
        flags = ("--tls-port", str(https), "--tls-cert", str(chain), "--tls-key", str(key), "--tcp-port", str(tcp))
        with gateway_process(*flags) as (url, pid, _):
            clients = {"HTTP": Client(url), "HTTPS": Client(f"https://127.0.0.1:{https}"), "TCP": Client(url)}
            clients["TCP"]._connection = _Tcp(tcp)  # type: ignore[assignment]  # noqa: SLF001
            samples = _select(clients, _Rest(url), pid)
            rows, seconds = _pyhive(tcp)
        del os.environ["SSL_CERT_FILE"]
    plain = samples["HTTP"].median
    result = [
        Row(
            f"SELECT 1, {name}, p50",
            {"ours": show(samples[name].median), "floor": f"{show(plain)} by HTTP"},
            f"<= {MOST:g} x HTTP",
            samples[name].median <= MOST * plain,
        )
        for name in ("HTTPS", "TCP", "REST")
    ]
    work = f"{ROWS // 1_000_000}M bigints, PyHive's client over TCP"
    shown = show(seconds) + ("" if rows == ROWS else " OTHER ROW COUNT")
    return [*result, Row(work, {"ours": shown}, "", rows == ROWS)]
