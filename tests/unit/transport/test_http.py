"""The HTTP side on a real socket: framing, limits, authentication, and a real client over the scripted service."""

import base64
import contextlib
import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest

from gateway.auth.authenticators import AllowAll, StaticTokens, token_line
from gateway.errors import ConfigError, UserError
from gateway.protocol import codec
from gateway.protocol.client import Client, RemoteError
from gateway.protocol.handler import VERBS, ThriftHandler, may_wait
from gateway.sqltypes import BIGINT, INT, STRING, StructField, decimal
from gateway.sqltypes import struct as struct_of
from gateway.thrift_gen.TCLIService import ttypes
from gateway.transport import server as server_module
from gateway.transport.http import HttpApp, Probes, is_thrift_path
from gateway.transport.server import BoundedProtocol, HttpServer, bind
from gateway.transport.unsent import Unsent
from tests.live.processes import eventually
from tests.unit.protocol.fake import FakeService, Script

PATH = "/sql/1.0/warehouses/test"
NUMBERS = struct_of(StructField("n", BIGINT), StructField("d", decimal(10, 2)), StructField("s", STRING))
ROWS = [(i, Decimal(i) / 4, None if i % 7 == 0 else f"value {i}") for i in range(5_000)]
SCRIPTS = {
    "SELECT 1": Script(struct_of(StructField("1", INT)), [(1,)]),
    "NUMBERS": Script(NUMBERS, ROWS),
    "SLOW": Script(NUMBERS, ROWS[:3], polls=2),
    "FAIL": Script(error=UserError("DIVIDE_BY_ZERO", "Division by zero.")),
    "DDL": Script(is_query=False),
}
OPEN = codec.encode_call("OpenSession", 5, ttypes.TOpenSessionReq(client_protocol_i64=0xA508))
LIMIT = 200_000


class Probe:
    """What the pages beside Thrift are told."""

    reason: str | None = None


@pytest.fixture(scope="module")
def probe() -> Probe:
    return Probe()


@pytest.fixture(scope="module")
def service() -> FakeService:
    return FakeService(dict(SCRIPTS))


@pytest.fixture(scope="module")
def server(service: FakeService, probe: Probe) -> Iterator[HttpServer]:
    app = HttpApp(
        ThriftHandler(service).handle,
        AllowAll(),
        Probes(lambda: probe.reason, lambda: b"rows_total 1\n"),
        body_limit=LIMIT,
        body_seconds=1.0,
        threads=16,
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop(1.0)
    app.close()


class Raw:
    """A connection on which bytes are sent as given."""

    def __init__(self, server: HttpServer) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), 10)

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionResetError
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", "0")):
            body += self.socket.recv(65536)
        return int(lines[0].split()[1]), headers, body


def post(body: bytes, path: str = PATH, *lines: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def ask(server: HttpServer, data: bytes) -> tuple[int, dict[str, str], bytes]:
    with Raw(server) as raw:
        raw.send(data)
        return raw.answer()


# -------------------------------------------------------------------------------------------------------------- routing


@pytest.mark.parametrize(
    "path",
    [
        "/sql/1.0/warehouses/abc",
        "/sql/1.0/endpoints/abc",
        "/sql/protocolv1/o/0/c1",
        "/cliservice",
        "/cliservice/",
        "//sql/1.0/warehouses/abc",
        "//sql//1.0///warehouses/abc/",
        "/sql/1.0/warehouses/abc?o=123",
    ],
)
def test_thrift_paths(server: HttpServer, path: str) -> None:
    status, headers, body = ask(server, post(OPEN, path))
    assert (status, headers["content-type"]) == (200, "application/x-thrift")
    assert codec.decode_reply(body).value.status.statusCode == 0


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/sql/1.0/warehouses",
        "/sql/1.0/warehouses/a/b",
        "/sql/2.0/warehouses/a",
        "/sql/protocolv1/o/0",
        "/cliservice/x",
        "/api/2.0/connector-service/feature-flags/PYTHON/4.9.0",
        "/telemetry-ext",
    ],
)
def test_unknown_paths_are_json_404(server: HttpServer, path: str) -> None:
    assert not is_thrift_path(path)
    for request in (post(b"{}", path), f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()):
        status, headers, body = ask(server, request)
        assert (status, headers["content-type"]) == (404, "application/json")
        assert json.loads(body)["error_code"] == "ENDPOINT_NOT_FOUND"


def test_get_on_thrift_path(server: HttpServer) -> None:
    status, headers, _ = ask(server, f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert (status, headers["allow"]) == (405, "POST")


def test_probes(server: HttpServer, probe: Probe) -> None:
    def get(path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        return ask(server, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())

    assert get("/healthz")[0] == 200
    assert get("/readyz")[0] == 200
    probe.reason = "draining"
    try:
        status, _, body = get("/readyz")
        assert (status, json.loads(body)["reason"]) == (503, "draining")
        assert get("/healthz")[0] == 200
    finally:
        probe.reason = None
    status, headers, body = get("/metrics")
    assert (status, body) == (200, b"rows_total 1\n")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert get("/metrics", "DELETE")[0] == 405


# -------------------------------------------------------------------------------------------------------------- framing


def test_answer_leaves_in_one_segment(server: HttpServer) -> None:
    with Raw(server) as raw:
        for _ in range(50):
            raw.send(post(OPEN))
            first = raw.socket.recv(1 << 20)
            head, _, body = first.partition(b"\r\n\r\n")
            assert body, "the head came alone"
            assert f"content-length: {len(body)}".encode() in head.lower()


def test_connection_is_kept_alive(server: HttpServer) -> None:
    with Raw(server) as raw:
        for _ in range(5):
            raw.send(post(OPEN))
            status, headers, _ = raw.answer()
            assert status == 200
            assert headers.get("connection", "keep-alive") != "close"
            assert "server" not in headers


def test_chunked_body(server: HttpServer) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunks = b"".join(b"1\r\n" + OPEN[i : i + 1] + b"\r\n" for i in range(len(OPEN)))
    status, _, body = ask(server, head + chunks + b"0\r\n\r\n")
    assert status == 200
    assert codec.decode_reply(body).seqid == 5


def test_byte_by_byte(server: HttpServer) -> None:
    with Raw(server) as raw:
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in post(OPEN):
            raw.send(bytes([byte]))
        assert raw.answer()[0] == 200


def test_declared_body_over_the_limit_is_not_read(server: HttpServer) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {LIMIT + 1}\r\n\r\n"
    status, headers, body = ask(server, head.encode())
    assert (status, headers["connection"]) == (413, "close")
    assert str(LIMIT) in headers["x-thriftserver-error-message"]
    assert json.loads(body)["error_code"] == "REQUEST_TOO_LARGE"


def test_streamed_body_is_cut_at_the_limit(server: HttpServer) -> None:
    with Raw(server) as raw:
        raw.send(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        sent = 0
        raw.socket.settimeout(10)
        try:
            while sent < 100 * LIMIT:
                raw.send(chunk)
                sent += 0x10000
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 100 * LIMIT, "the server read on"


def test_body_at_the_limit_is_read(server: HttpServer) -> None:
    status, _, body = ask(server, post(bytes(LIMIT)))
    assert status == 200
    with pytest.raises(codec.ApplicationError):
        codec.decode_reply(body)


def test_body_that_never_ends(server: HttpServer) -> None:
    with Raw(server) as raw:
        raw.send(post(OPEN)[:-1])
        status, headers, _ = raw.answer()
        assert (status, headers["connection"]) == (408, "close")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "GZIP"])
def test_compressed_bodies_are_refused(server: HttpServer, encoding: str) -> None:
    bomb = gzip.compress(bytes(10_000_000))
    status, _, body = ask(server, post(bomb, PATH, f"Content-Encoding: {encoding}"))
    assert (status, json.loads(body)["error_code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_web_pages_are_refused(server: HttpServer) -> None:
    assert ask(server, post(OPEN, PATH, "Origin: http://evil.example"))[0] == 403


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x00\x01" + bytes(64),
        b"garbage\r\n\r\n",
        b"POST /cliservice HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /cliservice HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /cliservice HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /cliservice HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    ],
)
def test_bad_http_is_refused_and_the_server_lives(server: HttpServer, data: bytes) -> None:
    status, _, _ = ask(server, data)
    assert status == 400
    assert ask(server, post(OPEN))[0] == 200


def test_vanished_clients_leave_the_server_alive(server: HttpServer) -> None:
    whole = post(OPEN)
    for size in range(1, len(whole), 7):
        with Raw(server) as raw:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.send(whole[:size])
    assert ask(server, whole)[0] == 200


# ------------------------------------------------------------------------------------------------------- authentication


@pytest.fixture
def guarded() -> Iterator[HttpServer]:
    name, digest = token_line("ann", "secret-token").split(":")
    app = HttpApp(
        ThriftHandler(FakeService(dict(SCRIPTS))).handle,
        StaticTokens([(name, digest)]),
        Probes(lambda: None, lambda: b""),
        threads=2,
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop(1.0)
    app.close()


def test_missing_and_wrong_credentials_are_401(guarded: HttpServer) -> None:
    for lines in ((), ("Authorization: Bearer wrong",), ("Authorization: Basic dG9rZW46",)):
        status, headers, body = ask(guarded, post(OPEN, PATH, *lines))
        assert status == 401
        assert headers["content-type"] == "application/json"
        assert headers["www-authenticate"].startswith("Bearer")
        assert headers["x-databricks-reason-phrase"]
        assert json.loads(body)["error_code"] == "UNAUTHENTICATED"
        assert b"secret" not in body


def test_credentials_are_checked_before_the_body(guarded: HttpServer) -> None:
    with Raw(guarded) as raw:
        raw.send(post(OPEN)[:-20])
        assert raw.answer()[0] == 401


def test_bearer_and_basic(guarded: HttpServer) -> None:
    with Client(guarded.url, token="secret-token").open() as client:
        assert client.execute("SELECT 1").table().to_pydict() == {"1": [1]}
    with Client(guarded.url, user="token", password="secret-token").open() as client:
        assert client.execute("SELECT 1").table().num_rows == 1
    with pytest.raises(RemoteError, match="HTTP 401"):
        Client(guarded.url, token="wrong").open()


def test_probes_need_no_token(guarded: HttpServer) -> None:
    assert ask(guarded, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 200


# --------------------------------------------------------------------------------------------------------------- server


def test_port_in_use_is_a_setting_error(server: HttpServer) -> None:
    with pytest.raises(ConfigError, match="port: cannot listen on") as caught:
        bind("127.0.0.1", server.port)
    assert caught.value.setting == "port"


def test_unknown_host_is_a_setting_error() -> None:
    with pytest.raises(ConfigError) as caught:
        bind("no-such-host.invalid", 0)
    assert caught.value.setting == "host"


def test_listener_has_no_delay() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_idle_connections_are_kept_for_two_minutes_at_least(server: HttpServer) -> None:
    assert server._server.config.timeout_keep_alive >= 120


def test_stop_lets_a_call_in_flight_finish() -> None:
    started, go_on = threading.Event(), threading.Event()

    def handle(body: bytes, identity: str, user_agent: str, origin: str) -> bytes:
        started.set()
        assert go_on.wait(10)
        return b"done " + identity.encode() + b" " + user_agent.encode()

    app = HttpApp(handle, AllowAll(), Probes(lambda: None, lambda: b""), threads=1)
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    with Raw(server) as raw:
        raw.send(post(b"x", PATH, "User-Agent: me"))
        assert started.wait(10)
        stopper = threading.Thread(target=server.stop, args=(10.0,))
        stopper.start()
        time.sleep(0.3)
        go_on.set()
        assert raw.answer()[2] == b"done anonymous me"
    stopper.join(10)
    assert not stopper.is_alive()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), 1)
    app.close()


def test_stop_cuts_requests_that_never_end(capsys: pytest.CaptureFixture[str]) -> None:
    app = HttpApp(lambda body, identity, client, origin: b"", AllowAll(), Probes(lambda: None, lambda: b""), threads=1)
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    with Raw(server) as raw:
        raw.send(post(OPEN)[:-1])
        time.sleep(0.1)
        server.stop(1.0)
    app.close()
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("sent", [b"", b"POST /cliser", b"\r\n", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
@pytest.mark.parametrize("before", [0, 1])
def test_a_connection_without_a_request_is_cut(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sent: bytes, before: int
) -> None:
    monkeypatch.setattr("gateway.transport.server.HEAD_SECONDS", 0.3)
    with Raw(server) as raw:
        for _ in range(before):
            raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert raw.answer()[0] == 200
        raw.send(sent)
        idle_after_an_answer = before and not sent
        raw.socket.settimeout(1.0 if idle_after_an_answer else 10)
        if idle_after_an_answer:  # it is kept, for much longer
            with pytest.raises(TimeoutError):
                raw.socket.recv(1)
            return
        with contextlib.suppress(ConnectionResetError):
            assert raw.socket.recv(1) == b""
    assert "no request came within 0.3 seconds" in capsys.readouterr().err


def test_a_slow_answer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.transport.server.HEAD_SECONDS", 0.2)

    def handle(body: bytes, identity: str, user_agent: str, origin: str) -> bytes:
        time.sleep(0.6)
        return b"slow"

    app = HttpApp(handle, AllowAll(), Probes(lambda: None, lambda: b""), threads=1)
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    try:
        assert ask(server, post(b"x"))[2] == b"slow"
    finally:
        server.stop(1.0)
        app.close()


def test_more_connections_than_the_limit_are_cut(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = server._server.server_state
    monkeypatch.setattr(server_module._guests[state], "limit", len(state.connections) + 2)
    request = post(OPEN)
    with Raw(server) as first, Raw(server) as second:
        for raw, user in ((first, b"ann:x"), (second, b"bob:x")):
            raw.send(post(OPEN, PATH, f"Authorization: Basic {base64.b64encode(user).decode()}"))
            assert raw.answer()[0] == 200
        with Raw(server) as third, pytest.raises(OSError):
            third.send(request)
            third.answer()
        for raw in (first, second):
            raw.send(request)
            assert raw.answer()[0] == 200
    assert "are open" in capsys.readouterr().err
    monkeypatch.undo()
    assert ask(server, request)[0] == 200


@pytest.mark.parametrize("header", ["Authorization: Basic YW5uOng=", "Host: other", "HOST: x"])
def test_headers_that_say_twice_who_calls_or_whom(server: HttpServer, header: str) -> None:
    for request in (
        post(OPEN, PATH, "Authorization: Basic Ym9iOng=", header),
        post(b"", "/oidc/v1/token", "Authorization: x", header),
    ):
        status, _, body = ask(server, request)
        assert status == 400 and b"is there twice" in body


def test_one_caller_has_half_of_the_connections(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond it go first, also while a call is answered on them; the others' stay."""
    state = server._server.server_state
    eventually(lambda: not state.connections, 10)
    monkeypatch.setattr(server_module._guests[state], "limit", 6)
    mine, theirs = [Raw(server) for _ in range(5)], Raw(server)
    for raw in (*mine, theirs):
        raw.send(
            post(
                OPEN, PATH, f"Authorization: Basic {base64.b64encode(b'ann:x' if raw is theirs else b'me:x').decode()}"
            )
        )
        assert raw.answer()[0] == 200
    later = [Raw(server) for _ in range(2)]
    eventually(lambda: sum(map(closed, mine)) == 2, 10)
    assert [closed(raw) for raw in mine] == [False] * 3 + [True] * 2
    for raw in (*mine[:3], theirs, *later):
        raw.socket.settimeout(10)
        raw.send(post(OPEN))
        assert raw.answer()[0] == 200
        raw.socket.close()


def test_slow_calls_do_not_block_the_loop() -> None:
    go_on = threading.Event()

    def handle(body: bytes, identity: str, user_agent: str, origin: str) -> bytes:
        assert go_on.wait(10)
        return b"x"

    app = HttpApp(handle, AllowAll(), Probes(lambda: None, lambda: b""), threads=1)
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    try:
        with Raw(server) as raw:
            raw.send(post(b"x"))
            assert ask(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 200
            go_on.set()
            assert raw.answer()[0] == 200
    finally:
        server.stop(1.0)
        app.close()


def test_failed_logins_are_told_but_not_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = StaticTokens([("me", sha256(b"right").hexdigest())])
    app = HttpApp(lambda body, identity, client, origin: b"", tokens, Probes(lambda: None, lambda: b""), threads=2)
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    try:
        for _ in range(30):
            assert ask(server, post(b"x", PATH, "Authorization: Bearer wr\x9b[2Jong"))[0] == 401
    finally:
        server.stop(1.0)
        app.close()
    lines = [line for line in capsys.readouterr().err.splitlines() if "login failed" in line]
    assert len(lines) == 20
    assert "address=127.0.0.1 mech=bearer" in lines[0]
    assert "ong" not in lines[0].partition("reason=")[0]


def test_who_waits_for_statements_holds_nobody_else_up() -> None:
    go_on = threading.Event()

    def handle(body: bytes, identity: str, user_agent: str, origin: str) -> bytes:
        if body == b"wait" and identity == "greedy":
            assert go_on.wait(20)
        return body

    tokens = StaticTokens((name, sha256(f"{name}-token".encode()).hexdigest()) for name in ("greedy", "other"))
    pages = Probes(lambda: None, lambda: b"")
    app = HttpApp(handle, tokens, pages, may_wait=lambda body: body == b"wait", threads=4)
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    with ExitStack() as stack:
        greedy = [stack.enter_context(Raw(server)) for _ in range(12)]
        try:
            for raw in greedy:
                raw.send(post(b"wait", PATH, "Authorization: Bearer greedy-token"))
            for body in (b"wait", b"status"):
                status, _, answered = ask(server, post(body, PATH, "Authorization: Bearer other-token"))
                assert (status, answered) == (200, body)
            # Their own quick calls too, behind none of those that wait.
            assert ask(server, post(b"cancel", PATH, "Authorization: Bearer greedy-token"))[2] == b"cancel"
            go_on.set()
            assert [raw.answer()[2] for raw in greedy] == [b"wait"] * 12
        finally:
            go_on.set()
            server.stop(1.0)
            app.close()


def test_calls_that_no_statement_holds_up() -> None:
    quick = {"OpenSession", "CloseSession", "GetInfo", "GetOperationStatus", "CancelOperation", "CloseOperation"}
    quick |= {"GetQueryId", "SetClientInfo"}
    body = {name: struct.pack(">II", 0x80010001, len(name)) + name.encode() + b"\0\0\0\0" for name in VERBS}
    assert {name for name in VERBS if not may_wait(body[name])} == quick
    assert not any(map(may_wait, (b"", b"\x80\x01", body["GetInfo"][:-1], b"GET / HTTP/1.1")))


# ------------------------------------------------------------------------------------------------------------ our client


@pytest.fixture
def client(server: HttpServer) -> Iterator[Client]:
    with Client(server.url).open({"a": "b"}, schema="sales") as client:
        yield client


def test_client_reads_arrow(client: Client) -> None:
    for lz4 in (False, True):
        result = client.execute("NUMBERS", lz4=lz4, max_rows=700)
        assert result.columns == ["n", "d", "s"]
        table = result.table()
        assert [tuple(row.values()) for row in table.to_pylist()] == ROWS
    assert client.protocol == 0xA509


def test_client_reads_columns(client: Client) -> None:
    pages = list(client.execute("NUMBERS", arrow=False, max_rows=2_000).pages())
    assert [p.startRowOffset for p in pages] == [0, 2_000, 4_000]
    values = b"".join(bytes(p.columns[0].i64Val.values.data) for p in pages)
    assert values == struct.pack(">5000q", *range(5_000))
    assert sum(p.columns[2].stringVal.values.count for p in pages) == 5_000


@pytest.mark.parametrize("direct", [False, True])
def test_client_waits_and_shows_progress(client: Client, direct: bool) -> None:
    seen: list[Any] = []
    result = client.execute("SLOW", direct=direct, progress=seen.append)
    assert result.table().num_rows == 3
    assert seen
    assert all(s.operationState == ttypes.TOperationState.RUNNING_STATE for s in seen)


@pytest.mark.parametrize("direct", [False, True])
def test_client_raises_errors_and_leaves_nothing(client: Client, service: FakeService, direct: bool) -> None:
    before = len(service.operations)
    with pytest.raises(RemoteError, match=r"^\[DIVIDE_BY_ZERO\]") as caught:
        client.execute("FAIL", direct=direct)
    assert caught.value.sqlstate == "22012"
    assert len(service.operations) == before


def test_client_reopens_a_closed_connection(client: Client) -> None:
    assert client.execute("SELECT 1").table().num_rows == 1
    connection = client._connection
    assert connection._socket is not None
    connection._socket.shutdown(socket.SHUT_RDWR)
    assert client.execute("DDL").columns == ["Result"]


def test_client_sends_nothing_twice() -> None:
    """A server that takes a request and dies: the statement may have run."""
    received = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                received.append(peer.recv(65536))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(ConnectionResetError):
            Client(f"http://127.0.0.1:{listener.getsockname()[1]}").open()
        thread.join(10)
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert len(received) == 1


def test_client_does_not_take_other_urls() -> None:
    for url in ("httpx://x", "localhost:8080", "ftp://x"):
        with pytest.raises(ValueError, match="http"):
            Client(url)


# ------------------------------------------------------------------------------------------------------ the real client


@pytest.fixture
def connection(server: HttpServer) -> Iterator[Any]:
    sql = pytest.importorskip("databricks.sql")
    connection = sql.connect(
        server_hostname="localhost",
        http_path=PATH,
        _connection_uri=server.url + PATH,
        access_token="x",
        enable_telemetry=False,
        use_cloud_fetch=False,
    )
    yield connection
    connection.close()


def test_connector_reads_rows_and_description(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("NUMBERS")
        assert [d[:2] for d in cursor.description] == [("n", "bigint"), ("d", "decimal"), ("s", "string")]
        assert cursor.description[1][4:6] == (10, 2)
        assert [tuple(row) for row in cursor.fetchall()] == ROWS


def test_connector_pages(connection: Any) -> None:
    with connection.cursor(arraysize=999) as cursor:
        cursor.execute("NUMBERS")
        rows: list[tuple[object, ...]] = []
        while page := cursor.fetchmany(1_000):
            rows += [tuple(row) for row in page]
        assert rows == ROWS


def test_connector_ddl_and_slow_statements(connection: Any) -> None:
    with connection.cursor() as cursor:
        assert cursor.execute("DDL").fetchall() == []
        assert [d[:2] for d in cursor.description] == [("Result", "string")]
        assert len(cursor.execute("SLOW").fetchall()) == 3
        cursor.execute_async("SLOW")
        cursor.get_async_execution_result()
        assert len(cursor.fetchall()) == 3


def test_connector_sees_a_server_operation_error(connection: Any) -> None:
    from databricks.sql.exc import ServerOperationError

    with connection.cursor() as cursor, pytest.raises(ServerOperationError, match="DIVIDE_BY_ZERO"):
        cursor.execute("FAIL")


def test_connector_without_arrow(server: HttpServer, service: FakeService) -> None:
    """The columnar path of the same client, asked for by a session of an older protocol."""
    with Client(server.url).open(protocol=5) as client:
        result = client.execute("NUMBERS", arrow=True, max_rows=10_000)
        assert result.metadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
        assert result.metadata.arrowSchema is None
        (page,) = result.pages()
        assert page.columns[1].stringVal.values.count == 5_000


def test_an_answer_in_parts_arrives_whole() -> None:
    large = bytes(range(256)) * 20_000
    app = HttpApp(
        lambda body, identity, client, origin: [b"head", memoryview(large), bytearray(b"middle"), large, b"end"],
        AllowAll(),
        Probes(lambda: None, lambda: b""),
        threads=1,
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    try:
        with Raw(server) as raw:
            for _ in range(2):  # the connection stays usable
                raw.send(post(b"x", PATH))
                assert raw.answer()[2] == b"head" + large + b"middle" + large + b"end"
    finally:
        server.stop(1.0)


# ----------------------------------------------------------------------------------------------------- room for bodies


@pytest.fixture
def roomy() -> Iterator[HttpServer]:
    """Bodies of 100,000 bytes at most, eight of them at once; a caller is called as the user of its Basic header."""
    app = HttpApp(
        lambda body, identity, client, origin: f"{identity}:{len(body)}".encode(),
        AllowAll(),
        Probes(lambda: None, lambda: b""),
        threads=4,
        body_limit=100_000,
        body_seconds=20.0,
        room_seconds=2.0,
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop(1.0)
    app.close()


def as_user(name: str) -> str:
    return "Authorization: Basic " + base64.b64encode(f"{name}:x".encode()).decode()


def half_sent(server: HttpServer, name: str, chunked: bool = False) -> Raw:
    """A body of which 70,000 bytes have come, and then no more."""
    raw = Raw(server)
    length = "Transfer-Encoding: chunked" if chunked else "Content-Length: 100000"
    start = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n{length}\r\n{as_user(name)}\r\n\r\n".encode()
    raw.send(start + (b"11170\r\n" if chunked else b"") + b"x" * 70_000 + (b"\r\n" if chunked else b""))
    return raw


@pytest.mark.parametrize("chunked", [False, True])
def test_half_sent_bodies_keep_out_nobody_else(roomy: HttpServer, chunked: bool) -> None:
    slow = [half_sent(roomy, "mallory", chunked) for _ in range(20)]
    time.sleep(0.2)
    assert ask(roomy, post(b"x" * 100_000, PATH, as_user("ann")))[2] == b"ann:100000"
    assert ask(roomy, post(b"x" * 60_000, PATH, as_user("mallory")))[2] == b"mallory:60000"  # small ones need no room
    status, headers, body = ask(roomy, post(b"x" * 100_000, PATH, as_user("mallory")))
    assert (status, headers["retry-after"], json.loads(body)["error_code"]) == (503, "1", "TEMPORARILY_UNAVAILABLE")
    for raw in slow:
        raw.socket.close()
    assert ask(roomy, post(b"x" * 100_000, PATH, as_user("mallory")))[2] == b"mallory:100000"


def test_room_is_given_in_order_and_back(roomy: HttpServer) -> None:
    slow = [half_sent(roomy, "ann") for _ in range(4)]
    time.sleep(0.2)
    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(ask, roomy, post(b"x" * 90_000, PATH, as_user("ann"))) for _ in range(8)]
        time.sleep(0.1)
        for raw in slow:
            raw.send(b"x" * 30_000)
            assert raw.answer()[2] == b"ann:100000"
        assert [a.result(10)[2] for a in answers] == [b"ann:90000"] * 8


# ------------------------------------------------------------------------------------- connections and answers in excess


def closed(raw: Raw) -> bool:
    """Whether the server has closed a connection on which nothing was sent."""
    raw.socket.settimeout(0.05)
    try:
        return raw.socket.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_too_many_connections_cost_strangers_theirs(guarded: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module._guests[guarded._server.server_state], "limit", 10)
    friend = Raw(guarded)
    friend.send(post(OPEN, PATH, "Authorization: Bearer secret-token"))
    assert friend.answer()[0] == 200
    strangers = [Raw(guarded) for _ in range(9)]
    connections = guarded._server.server_state.connections
    eventually(lambda: len(connections) == 10, 10)  # they count in the order in which they are taken
    for raw in strangers[:3]:  # these move behind those that say nothing
        raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.answer()[0] == 200
    more = [Raw(guarded) for _ in range(7)]
    eventually(lambda: sum(map(closed, strangers)) >= 7, 10)
    assert [closed(raw) for raw in strangers] == [True, False, False] + [True] * 6
    more[-1].socket.settimeout(10)
    for raw in (friend, more[-1]):
        raw.socket.settimeout(10)
        raw.send(post(OPEN, PATH, "Authorization: Bearer secret-token"))
        assert raw.answer()[0] == 200
    for raw in (friend, *strangers, *more):
        raw.socket.close()


def test_answers_that_are_not_taken_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    unsent: Unsent[BoundedProtocol] = Unsent(40 << 20)
    monkeypatch.setattr(server_module, "_unsent", unsent)
    parts = [b"x" * (4 << 20)] * 2
    app = HttpApp(
        lambda body, identity, client, origin: parts, AllowAll(), Probes(lambda: None, lambda: b""), threads=4
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    try:
        slow = []
        for _ in range(20):  # of 8 MiB each; 10 are twice a share
            raw = Raw(server)
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.send(post(b"x", PATH, as_user("mallory")))
            slow.append(raw)
        time.sleep(0.5)
        assert unsent._held["mallory"] <= 80 << 20
        assert len(ask(server, post(b"x", PATH, as_user("ann")))[2]) == 8 << 20
        for raw in slow:
            raw.socket.close()
        eventually(lambda: not unsent._held, 10)
    finally:
        server.stop(1.0)
        app.close()


@pytest.mark.parametrize(
    ("descriptors", "kinds", "most"), [(1 << 20, 2, 4096), (4096, 1, 1920), (1024, 2, 192), (64, 1, 8)]
)
def test_connections_leave_descriptors_for_files(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, kinds: int, most: int
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (descriptors, descriptors))
    assert server_module.connections_each(kinds) == most
