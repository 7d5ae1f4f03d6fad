"""HTTP on a real socket: paths, framing, limits, authentication, and who waits for whom."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from contextlib import ExitStack
from hashlib import sha256

import pytest

from gateway.auth.authenticators import AllowAll, StaticTokens
from gateway.protocol import codec
from gateway.protocol.client import Client, RemoteError
from gateway.protocol.handler import VERBS, may_wait
from gateway.transport.http import HttpApp, HttpLimits, Probes, is_thrift_path
from gateway.transport.server import HttpServer
from tests.unit.transport.raw import LIMIT, OPEN, PATH, Probe, Raw, ask, post


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


@pytest.mark.parametrize("header", ["Authorization: Basic YW5uOng=", "Host: other", "HOST: x"])
def test_headers_that_say_twice_who_calls_or_whom(server: HttpServer, header: str) -> None:
    for request in (
        post(OPEN, PATH, "Authorization: Basic Ym9iOng=", header),
        post(b"", "/oidc/v1/token", "Authorization: x", header),
    ):
        status, _, body = ask(server, request)
        assert status == 400 and b"is there twice" in body


@pytest.mark.parametrize(("kind", "is_told"), [("application/x-thrift", True), ("application/json", False)])
def test_a_client_of_thrift_is_told_of_a_slip_in_its_path(server: HttpServer, kind: str, is_told: bool) -> None:
    status, head, _ = ask(server, post(OPEN, "/sql/1.0/warehouse/x", f"Content-Type: {kind}"))
    assert status == 404
    assert ("x-thriftserver-error-message" in str(head).lower()) == is_told


def test_slow_calls_do_not_block_the_loop() -> None:
    go_on = threading.Event()

    def handle(body: bytes, identity: str, user_agent: str, origin: str) -> bytes:
        assert go_on.wait(10)
        return b"x"

    app = HttpApp(handle, AllowAll(), Probes(lambda: None, lambda: b""), limits=HttpLimits(threads=1))
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


def test_metrics_are_made_for_all_who_ask_at_once() -> None:
    """They are everybody's, and each time holds up the loop; nobody is told what was made before they asked."""
    made: list[float] = []

    def metrics() -> bytes:
        made.append(time.monotonic())
        return b"%d" % len(made)

    app = HttpApp(lambda body, identity, client, origin: b"", AllowAll(), Probes(lambda: None, metrics))
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    try:
        with ExitStack() as stack:
            raws = [stack.enter_context(Raw(server)) for _ in range(20)]
            for _ in range(10):
                before = len(made)
                for raw in raws:
                    raw.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                assert all(int(raw.answer()[2]) > before for raw in raws)
        assert len(made) <= 2 + (made[-1] - made[0]) / 0.05
    finally:
        server.stop(1.0)
        app.close()


def test_failed_logins_are_told_but_not_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = StaticTokens([("me", sha256(b"right").hexdigest())])
    app = HttpApp(
        lambda body, identity, client, origin: b"",
        tokens,
        Probes(lambda: None, lambda: b""),
        limits=HttpLimits(threads=2),
    )
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
    app = HttpApp(handle, tokens, pages, may_wait=lambda body: body == b"wait", limits=HttpLimits(threads=4))
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


def test_an_answer_in_parts_arrives_whole() -> None:
    large = bytes(range(256)) * 20_000
    app = HttpApp(
        lambda body, identity, client, origin: [b"head", memoryview(large), bytearray(b"middle"), large, b"end"],
        AllowAll(),
        Probes(lambda: None, lambda: b""),
        limits=HttpLimits(threads=1),
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
