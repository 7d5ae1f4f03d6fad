"""Broken and hostile requests: frames, heads, handles, parameters, names. The server stays up and nobody else notices."""

from __future__ import annotations

import gzip
import http.client
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.protocol import codec
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import address, answer, outcome, post, resident_mib, send
from tests.live.gateway import HTTP_PATH, Server

POST = f"POST {HTTP_PATH} HTTP/1.1\r\nHost: x\r\n"
OPEN = codec.encode_call("OpenSession", 0, ttypes.TOpenSessionReq(client_protocol_i64=0xA509))
HEAD = OPEN[: 4 + 4 + len("OpenSession") + 4]

# An unknown field of the request, and what goes deeper with every repetition: containers of one element.
NESTS = {
    "maps of maps": (b"\x0d\x00\x63", b"\x03\x0d\x00\x00\x00\x01\x07"),
    "maps with maps as keys": (b"\x0d\x00\x63", b"\x0d\x03\x00\x00\x00\x01"),
    "lists of lists": (b"\x0f\x00\x63", b"\x0f\x00\x00\x00\x01"),
    "sets of lists of maps": (
        b"\x0e\x00\x63",
        b"\x0f\x00\x00\x00\x01\x0d\x00\x00\x00\x01\x03\x0e\x00\x00\x00\x01\x07",
    ),
    "structs with maps": (b"\x0d\x00\x63", b"\x03\x0c\x00\x00\x00\x01\x07\x0d\x00\x01"),
}


@pytest.fixture(autouse=True)
def still_up(server: Server) -> Iterator[None]:
    yield
    with Client(server.thrift_url).open() as client:
        assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\xff" * 500, b"400"),
        (bytes.fromhex("1603010200010001fc0303") + b"\x07" * 500, b"400"),  # a TLS hello
        (f"{POST}Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde".encode(), b"400"),
        (f"{POST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(), b"400"),
        (f"{POST}Content-Length: -3\r\n\r\n".encode(), b"400"),
        (f"{POST}Content-Length: 99999999999\r\n\r\n".encode(), b"413"),
        (f"{POST}Transfer-Encoding: chunked\r\n\r\n".encode() + (b"100000\r\n" + b"x" * 2**20 + b"\r\n") * 34, b"413"),
        (f"{POST}Content-Length: 1000\r\n\r\nshort".encode(), b""),
    ],
    ids=["garbage", "tls", "two lengths", "length and chunks", "negative", "huge", "endless chunks", "cut"],
)
def test_broken_http(server: Server, data: bytes, status: bytes) -> None:
    received = send(server, data, hang_up=status == b"")
    assert received[9:12] in (status, b"")  # b"": cut before we could read it


def test_a_body_that_is_too_large_is_answered_so_that_its_client_can_read_it(server: Server) -> None:
    """A client that sends all of it before it reads gets the 413, not a broken connection."""
    size = (32 << 20) + 1_000_000
    for head in (f"Content-Length: {size}", "Transfer-Encoding: chunked"):
        with socket.create_connection(address(server), 20) as peer:
            peer.sendall(f"{POST}{head}\r\n\r\n".encode())
            body = b"x" * size if "Length" in head else b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n"
            peer.sendall(body)
            received = b""
            while chunk := peer.recv(65536):
                received += chunk
        assert received.startswith(b"HTTP/1.1 413")
        assert b"REQUEST_TOO_LARGE" in received
        assert b"exceeds the limit of 33554432 bytes" in received


def test_a_body_is_never_taken_for_a_request(server: Server) -> None:
    """With an offer of another protocol the parser leaves a body unread, and would take it for the next request."""
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    offer = "Connection: Upgrade\r\nUpgrade: h2c\r\n"
    with socket.create_connection(address(server), 20) as peer:
        peer.sendall(f"{POST}{offer}Content-Length: {len(smuggled)}\r\n\r\n".encode())
        time.sleep(0.1)
        received = b""
        try:
            peer.sendall(smuggled)
            while chunk := peer.recv(65536):
                received += chunk
        except (ConnectionResetError, BrokenPipeError):
            pass  # closed with our body unread
    assert b" 200 " not in received and received.count(b"HTTP/1.1 ") <= 1
    chunked = send(server, f"{POST}{offer}Transfer-Encoding: chunked\r\n\r\n".encode() + smuggled)
    connect = send(server, b"CONNECT /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled)
    assert b" 200 " not in chunked + connect
    whole = send(server, f"GET /healthz HTTP/1.1\r\nHost: x\r\n{offer}\r\n".encode() + smuggled)
    assert whole.count(b" 200 OK") == 1 and b"connection: close" in whole


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/2.0\r\nHost: x\r\n", b"505"),
        (b"GET /healthz HTTP/0.9\r\nHost: x\r\n", b"505"),
        (b"GET /healthz HTTP/1.1\r\n", b"400"),
        (b"GET /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", b"400"),
        (b"GET /healthz HTTP/1.0\r\n", b"200"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n", b"501"),
    ],
)
def test_what_a_proxy_may_read_otherwise_is_refused(server: Server, head: bytes, status: bytes) -> None:
    received = send(server, head + b"\r\n0\r\n\r\n" if b"chunked" in head else head + b"\r\n")
    assert received[9:12] == status and b"connection: close" in received


def test_garbage_behind_a_request_leaves_no_trace_and_does_not_fill_the_log(server: Server) -> None:
    before = server.log.stat().st_size
    whole = f"{POST}Content-Length: {len(OPEN)}\r\n\r\n".encode() + OPEN
    for _ in range(100):
        send(server, whole + b"garbage\r\n\r\n")
    told = server.log.read_bytes()[before:]
    assert b"Traceback" not in told
    assert told.count(b"Invalid HTTP request") <= 40  # 20 in 10 seconds


@pytest.mark.parametrize(("size", "status"), [(100_000, b"200"), (200_000, b"400")])
def test_a_head_has_the_same_limit_in_one_segment(server: Server, size: int, status: bytes) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx: " + b"y" * size + b"\r\n\r\n"
    assert send(server, head)[9:12] in ((status,) if status == b"200" else (status, b""))
    many = b"".join(b"x-%d: %s\r\n" % (i, b"y" * 90) for i in range(size // 100))
    assert send(server, head.partition(b"x: ")[0] + many + b"\r\n")[9:12] in (
        status,
        b"" if status == b"400" else status,
    )


def test_an_endless_head_is_cut(server: Server) -> None:
    before = resident_mib(server.process.pid)
    lines = b"".join(b"x-%d: %s\r\n" % (i, b"y" * 80) for i in range(200_000))
    assert b" 200 " not in send(server, b"GET /healthz HTTP/1.1\r\n" + lines)[:20]
    assert b" 200 " not in send(server, b"GET /healthz HTTP/1.1\r\nx: " + b"y" * 20_000_000)[:20]
    assert b" 200 " not in send(server, b"GET /" + b"y" * 20_000_000)[:20]
    assert resident_mib(server.process.pid) - before < 32


@pytest.mark.parametrize("piece", [b"a:\r\n" * 16384, b"a" * 65536], ids=["lines", "half a line"])
@pytest.mark.parametrize("path", ["/console/api/sign-in", "/nothing"])
def test_what_follows_a_body_without_end_is_cut(server: Server, path: str, piece: bytes) -> None:
    """Lines behind the last chunk, before anybody has said who they are."""
    before = resident_mib(server.process.pid)
    sent = 0
    with socket.create_connection(address(server), 20) as peer:
        peer.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode())
        peer.sendall(b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + piece[:3])
        with pytest.raises(OSError):
            while sent < 512 << 20:
                peer.sendall(piece)
                sent += len(piece)
    assert resident_mib(server.process.pid) - before < 64


def test_what_follows_a_body_is_no_header(server: Server) -> None:
    """It would be one that a proxy has not looked at."""
    body = b"%x\r\n%b\r\n0\r\n" % (len(OPEN), OPEN)
    for line in (
        b"Authorization: Basic eDp5",
        b"Host: elsewhere",
        b"Origin: http://elsewhere",
        b"Content-Encoding: gzip",
    ):
        told = send(
            server,
            f"{POST}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + body + line + b"\r\n\r\n",
        )
        assert told.startswith(b"HTTP/1.1 200"), line


def test_a_head_of_many_short_lines_is_cut(server: Server) -> None:
    """As objects they would take thirty times what they are as bytes."""
    peers = [socket.create_connection(address(server), 20) for _ in range(40)]
    before = resident_mib(server.process.pid)
    for peer in peers:
        try:
            peer.sendall(POST.encode() + b"a:\r\n" * 30_000)
        except OSError:  # cut already
            continue
    assert all(peer.recv(65536).startswith(b"HTTP/1.1 400") for peer in peers)
    assert resident_mib(server.process.pid) - before < 64
    for peer in peers:
        peer.close()
    assert send(
        server,
        f"{POST}Connection: close\r\nContent-Length: {len(OPEN)}\r\n".encode() + b"a:\r\n" * 500 + b"\r\n" + OPEN,
    ).startswith(b"HTTP/1.1 200")


def test_a_compressed_bomb_is_not_unpacked(server: Server) -> None:
    status, _ = post(server, gzip.compress(b"\0" * 50_000_000), Content_Encoding="gzip")
    assert status == 415


@pytest.mark.parametrize(
    "body",
    [
        *(OPEN[:cut] for cut in (0, 1, 5, 10, 20, len(OPEN) - 1)),
        HEAD + b"\x0b\x00\x02\x7f\xff\xff\xff",  # a string of 2 GiB
        b"\x80\x01\x00\x01\xff\xff\xff\xf0abc",
        HEAD + b"\x0c\x00\x01\x0f\x05\x00\x0c\x00\x4c\x4b\x40" + b"\x00" * 5_000_002,  # 5M empty structs
        HEAD + b"\x0c\x00\x01" * 100_000,
        HEAD + b"\x0d\x00\x01\x0b\x0b\x7f\xff\xff\xff",
        *(HEAD + b"\x0c\x00\x01" + field + item * 5_000 for field, item in NESTS.values()),
    ],
    ids=["0", "1", "5", "10", "20", "all but one", "2 GiB", "negative", "structs", "depth", "map", *NESTS],
)
def test_broken_thrift(server: Server, body: bytes) -> None:
    before = resident_mib(server.process.pid)
    status, reply = post(server, body)
    assert status in (200, 400)
    if status == 200:
        with pytest.raises(codec.ApplicationError):
            codec.decode_reply(reply)
    assert resident_mib(server.process.pid) - before < 64


def test_mutants_of_requests(server: Server) -> None:
    """Each gets an HTTP answer; which one is decided elsewhere."""
    rng = random.Random(9)
    execute = ttypes.TExecuteStatementReq(
        sessionHandle=ttypes.TSessionHandle(sessionId=ttypes.THandleIdentifier(guid=b"g" * 16, secret=b"s" * 16)),
        statement="SELECT 1",
    )
    seeds = [OPEN, codec.encode_call("ExecuteStatement", 0, execute)]
    peer = http.client.HTTPConnection(*address(server), timeout=20)
    for turn in range(1500):
        body = bytearray(seeds[turn % 2])
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(body))
            match rng.randrange(3):
                case 0:
                    body[at] = rng.randrange(256)
                case 1:
                    del body[at : at + rng.randrange(1, 20)]
                case _:
                    body[at:at] = rng.randbytes(rng.randrange(8))
            body = body or bytearray(b"x")
        peer.request("POST", HTTP_PATH, bytes(body))
        reply = peer.getresponse()
        reply.read()
        assert reply.status in (200, 400, 401)
    peer.close()


def test_text_that_is_not_utf8(server: Server) -> None:
    with Client(server.thrift_url).open() as client:
        request = ttypes.TExecuteStatementReq(sessionHandle=client._session, statement="SELECT 'QQQQ'")
        body = codec.encode_call("ExecuteStatement", 0, request).replace(b"QQQQ", b"\xff\xfe\xc3\x28")
        _, reply = post(server, body)
        with pytest.raises(codec.ApplicationError, match="UTF-8"):
            codec.decode_reply(reply)


def handle(guid: bytes, secret: bytes) -> Any:
    identifier = ttypes.THandleIdentifier(guid=guid, secret=secret)
    return ttypes.TOperationHandle(operationId=identifier, operationType=0, hasResultSet=True)


VERBS: dict[str, Callable[[Any], Any]] = {
    "GetOperationStatus": lambda h: ttypes.TGetOperationStatusReq(operationHandle=h),
    "GetResultSetMetadata": lambda h: ttypes.TGetResultSetMetadataReq(operationHandle=h),
    "FetchResults": lambda h: ttypes.TFetchResultsReq(operationHandle=h, orientation=0, maxRows=10),
    "CancelOperation": lambda h: ttypes.TCancelOperationReq(operationHandle=h),
}


def test_handles_of_others_and_of_nobody(server: Server) -> None:
    with Client(server.thrift_url, user="alice").open() as alice, Client(server.thrift_url, user="bob").open() as bob:
        request = ttypes.TExecuteStatementReq(sessionHandle=alice._session, statement="SELECT id FROM range(1000)")
        own = alice.call("ExecuteStatement", request).operationHandle
        guid = own.operationId.guid
        texts = set()
        for verb, make in VERBS.items():
            for who, wrong in (
                (bob, own),
                (alice, handle(guid, os.urandom(16))),
                (alice, handle(os.urandom(16), own.operationId.secret)),
                (alice, handle(b"", b"")),
                (alice, handle(b"x" * 100_000, b"y")),
                (alice, None),
            ):
                with pytest.raises(RemoteError, match="INVALID_OPERATION_HANDLE") as caught:
                    who.call(verb, make(wrong))
                assert len(str(caught.value)) < 500
                if who is bob:
                    texts.add(str(caught.value))
        bob.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=own))  # says yes, does nothing
        assert len(texts) == 1  # like one that does not exist
        alice.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=own))
        alice.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=own))
        with pytest.raises(RemoteError, match="INVALID_OPERATION_HANDLE"):
            alice.call("FetchResults", VERBS["FetchResults"](own))
        request = ttypes.TExecuteStatementReq(sessionHandle=alice._session, statement="SELECT 1")
        with pytest.raises(RemoteError, match="INVALID_SESSION_HANDLE"):
            bob.call("ExecuteStatement", request)
        with pytest.raises(RemoteError, match="INVALID_SESSION_HANDLE"):
            alice.call("ExecuteStatement", ttypes.TExecuteStatementReq(sessionHandle=None, statement="SELECT 1"))


def parameter(value: str | None, kind: str, name: str = "p") -> Any:
    held = ttypes.TSparkParameterValue(stringValue=value) if value is not None else None
    return ttypes.TSparkParameter(name=name, value=held, type=kind)


@pytest.mark.parametrize("value", ["a'; DROP TABLE x; --", "\\' OR 1=1 \\", "a\0b", "", "\U0001f600", '"', "`;`"])
def test_parameters_stay_data(server: Server, value: str) -> None:
    with Client(server.thrift_url).open() as client:
        assert answer(client, "SELECT :p AS x", parameters=[parameter(value, "STRING")]) == [{"x": value}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("abc", "INT"),
        ("99999999999", "INT"),
        ("1; SELECT 2", "BIGINT"),
        ("9" * 100_000, "DECIMAL"),
        ("nope", "DATE"),
        ("1", "FOO"),
        ("1", "INT); DROP TABLE x; --"),
    ],
)
def test_parameters_of_the_wrong_type(server: Server, value: str, kind: str) -> None:
    with Client(server.thrift_url).open() as client:
        error = outcome(client, "SELECT :p AS x", parameters=[parameter(value, kind)])
        assert isinstance(error, RemoteError)
        assert error.sqlstate in ("22023", "0A000", "42601", "42704")
        assert len(str(error)) < 10_000


def test_large_and_many_parameters(server: Server) -> None:
    with Client(server.thrift_url).open() as client:
        big = [parameter("x" * 5_000_000, "STRING")]
        assert answer(client, "SELECT length(:p) AS x", parameters=big) == [{"x": 5_000_000}]
        many = [parameter(str(i), "INT", f"p{i}") for i in range(5000)]
        assert answer(client, "SELECT :p4999 AS x", parameters=many) == [{"x": 4999}]


@pytest.mark.parametrize("name", ["nope", "a`b", "x" * 100_000, "default'; DROP TABLE x; --", "a\0b"])
def test_names_of_schemas_stay_names(server: Server, name: str) -> None:
    with Client(server.thrift_url).open(schema=name) as client:
        assert answer(client, "SELECT current_schema() AS x") == [{"x": name}]
        assert isinstance(outcome(client, "SELECT * FROM t"), RemoteError)


@pytest.mark.parametrize(
    "configuration",
    [
        {"spark.sql.ansi.enabled": "false"},
        {"spark.sql.session.timeZone": "Mars"},
        {"statement_timeout": "abc"},
        {"STATEMENT_TIMEOUT": "-1"},
    ],
)
def test_wrong_session_settings_are_refused_by_name(server: Server, configuration: dict[str, str]) -> None:
    with pytest.raises(RemoteError) as caught:
        Client(server.thrift_url).open(configuration)
    assert next(iter(configuration)).lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    "pattern", ["%", "_", "\\", "\\%", "'", '"; --', "(a+)+$", "[", "*|*", "x" * 65536, "%" * 2000]
)
def test_patterns_of_metadata_calls(server: Server, pattern: str) -> None:
    with Client(server.thrift_url).open() as client:
        limits = ttypes.TSparkGetDirectResults(maxRows=10)
        for verb, request in (
            ("GetSchemas", ttypes.TGetSchemasReq(client._session, schemaName=pattern, getDirectResults=limits)),
            ("GetTables", ttypes.TGetTablesReq(client._session, tableName=pattern, getDirectResults=limits)),
            ("GetColumns", ttypes.TGetColumnsReq(client._session, columnName=pattern, getDirectResults=limits)),
        ):
            direct = client.call(verb, request).directResults
            assert direct.operationStatus.operationState == ttypes.TOperationState.FINISHED_STATE
        shown = outcome(
            client, "SHOW TABLES IN samples.tpch LIKE '" + pattern.replace("\\", "\\\\").replace("'", "\\'") + "'"
        )
        assert isinstance(shown, (list, RemoteError))
        assert "INTERNAL" not in str(shown)


def test_wrong_fetches(server: Server) -> None:
    with Client(server.thrift_url).open() as client:
        request = ttypes.TExecuteStatementReq(sessionHandle=client._session, statement="SELECT id FROM range(10)")
        own = client.call("ExecuteStatement", request).operationHandle
        with pytest.raises(RemoteError, match="INVALID_FETCH_ORIENTATION") as caught:
            client.call("FetchResults", ttypes.TFetchResultsReq(operationHandle=own, orientation=99, maxRows=5))
        assert caught.value.sqlstate == "HY106"
        far = ttypes.TFetchResultsReq(operationHandle=own, orientation=0, maxRows=5, startRowOffset=2**62)
        assert not client.call("FetchResults", far).hasMoreRows


def test_requests_in_a_row_hold_up_nobody(server: Server) -> None:
    """Of twenty thousand that one packet after the other brings, each is looked at once, not with all before it."""
    with socket.create_connection(address(server), 30) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20_000)
        start = time.monotonic()
        assert send(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 ")
        assert time.monotonic() - start < 4  # it took twelve seconds
