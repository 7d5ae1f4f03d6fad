"""Attacks on the TCP port: cut, broken, endless and foreign bytes; a new connection is answered throughout."""

from __future__ import annotations

import random
import socket
import ssl
import struct
from pathlib import Path

import pytest

from gateway.protocol import codec
from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes
from gateway.transport.sasl import PAYLOAD_LIMIT, Status, message
from tests.attacks import attacker
from tests.live.doors import Certificates, sasl_login, tcp_client
from tests.live.gateway import Server

OPEN = codec.encode_call("OpenSession", 0, ttypes.TOpenSessionReq(client_protocol=5, username="x" * 50))
FRAMED_OPEN = struct.pack(">I", len(OPEN)) + OPEN


def exchange(peer: socket.socket, data: bytes, until: bytes = b"") -> bytes:
    """What is answered to raw bytes: up to some, or until the server closes or says nothing for a while."""
    received = b""
    try:
        peer.sendall(data)
        while chunk := peer.recv(65536):
            received += chunk
            if until and until in received:
                break
    except (TimeoutError, ConnectionError):
        pass
    return received


def send(server: Server, data: bytes, until: bytes = b"") -> bytes:
    """What the TCP port answers."""
    with socket.create_connection(server.tcp_address, 5) as peer:
        return exchange(peer, data, until)


def answers(server: Server) -> None:
    """A new connection of either kind is served."""
    for user in ("me", None):
        with tcp_client(server, user).open() as client:
            assert client.execute("SELECT 1", arrow=False).columns == ["1"]


def descriptors(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def test_clients_that_vanish_at_any_byte(tcp_server: Server) -> None:
    answers(tcp_server)
    before = descriptors(tcp_server)
    conversations = (sasl_login() + FRAMED_OPEN, sasl_login(status=Status.COMPLETE) + FRAMED_OPEN, OPEN + OPEN)
    for conversation in conversations:
        for end in range(len(conversation) + 1):
            peer = socket.create_connection(tcp_server.tcp_address, 5)
            peer.sendall(conversation[:end])
            if end % 2:  # the other half goes without a word
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
    answers(tcp_server)
    assert descriptors(tcp_server) < before + 20


def test_bytes_one_by_one(tcp_server: Server) -> None:
    for conversation in (sasl_login() + FRAMED_OPEN, OPEN):
        with socket.create_connection(tcp_server.tcp_address, 2) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in conversation[:-1]:
                peer.sendall(bytes([byte]))
            assert b"OpenSession" in exchange(peer, conversation[-1:], b"OpenSession")


@pytest.mark.parametrize("framed", [True, False])
def test_calls_in_a_row_are_answered_in_order(tcp_server: Server, framed: bool) -> None:
    calls = [codec.encode_call("OpenSession", i, ttypes.TOpenSessionReq(client_protocol=5)) for i in range(40)]
    data = b"".join((struct.pack(">I", len(c)) if framed else b"") + c for c in calls)
    answer = send(tcp_server, (sasl_login() if framed else b"") + data, b"OpenSession" + (39).to_bytes(4, "big"))
    found, start = [], 0
    while (start := answer.find(b"OpenSession", start)) >= 0:
        found.append(int.from_bytes(answer[start + 11 : start + 15], "big"))
        start += 1
    assert found == list(range(40))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (sasl_login() + b"\x7f\xff\xff\xff", b"a frame of 2147483647 bytes exceeds the limit of 65536"),
        (sasl_login() + b"\xff\xff\xff\xff" + b"x" * 100, b"exceeds the limit"),
        (sasl_login() + struct.pack(">I", 65537) + b"x" * 200_000, b"a frame of 65537 bytes exceeds the limit"),
        (sasl_login() + struct.pack(">I", 5) + b"abcde", b"no strict binary protocol header"),
        (sasl_login() + struct.pack(">I", 0), b"Malformed request"),
        (OPEN[:8] + b"x" * 100_000, b"Malformed request"),
        (b"\x80\x01\x00\x01\xff\xff\xff\xff", b"bad length of the method name"),
        (b"\x80\x01\x00\x01\x00\x00\x00\x03abc\x00\x00\x00\x00\x0b\x00\x01\x7f\xff\xff\xff", b"exceeds the limit"),
        (b"\x80\x01\x00\x01\x00\x00\x00\x03abc\x00\x00\x00\x00" + b"\x0c\x00\x01" * 1000, b"levels of nesting"),
        (
            b"\x80\x01\x00\x01\x00\x00\x00\x03abc\x00\x00\x00\x00\x0f\x00\x01\x0c\x7f\xff\xff\xff" + b"\0" * 70_000,
            b"limit",
        ),
        (b"\x80\x01\x00\x01\x00\x00\x00\x03abc\x00\x00\x00\x00\x00", b"Invalid method name: 'abc'"),
        (message(Status.START, b"GSSAPI"), b"'GSSAPI' is not supported"),
        (message(Status.START, b"PLAIN\0\0me\0secret-token"), b"has no mechanism's name"),
        (message(Status.START, b"secret-token"), b"has no mechanism's name"),
        (message(Status.START, b"x" * 1000), b"is not supported"),
        (message(Status.START, b"PLAIN") + message(Status.OK, b"no credentials"), b"malformed"),
        (message(Status.START, b"PLAIN") + message(Status.OK, b"\0\xff\0\xfe"), b"malformed"),
        (message(Status.START, b"PLAIN") + message(Status.BAD, b"\0a\0b"), b"status 3"),
        (b"\x01" + struct.pack(">I", PAYLOAD_LIMIT + 1), b"longer than"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"This port speaks Thrift over TCP, not HTTP"),
        (b"\x00\x01\x02", b"This port speaks Thrift over TCP"),
    ],
)
def test_broken_bytes_are_told(tcp_server: Server, data: bytes, text: bytes) -> None:
    told = send(tcp_server, data, text)
    assert text in told
    assert b"secret-token" not in told and "secret-token" not in tcp_server.log.read_text()
    answers(tcp_server)


def test_mutants_of_conversations(tcp_server: Server) -> None:
    chance = random.Random(7)
    for conversation in (sasl_login() + FRAMED_OPEN, OPEN + OPEN):
        for _ in range(300):
            mutant = bytearray(conversation)
            for _ in range(chance.randint(1, 4)):
                mutant[chance.randrange(len(mutant))] = chance.randrange(256)
            with socket.create_connection(tcp_server.tcp_address, 5) as peer:
                peer.sendall(mutant)
                peer.shutdown(socket.SHUT_WR)
    answers(tcp_server)


def test_many_silent_connections_hold_nobody_up(tcp_server: Server) -> None:
    silent = []
    for i in range(300):
        peer = socket.create_connection(tcp_server.tcp_address, 5)
        peer.sendall((b"", sasl_login()[:7], sasl_login(), sasl_login() + FRAMED_OPEN[:20], OPEN[:10])[i % 5])
        silent.append(peer)
    answers(tcp_server)
    for peer in silent:
        peer.close()


def test_an_answer_that_nobody_reads(tcp_server: Server) -> None:
    """It waits in the server's and the system's buffers, within bounds, and others go on."""
    readers = []
    for _ in range(8):
        client = tcp_client(tcp_server, "slow").open()
        statement = ttypes.TExecuteStatementReq(
            sessionHandle=client._session, statement="SELECT repeat('x', 1000) FROM range(100000)", runAsync=True
        )
        operation = client.call("ExecuteStatement", statement).operationHandle
        fetch = codec.encode_call("FetchResults", 0, ttypes.TFetchResultsReq(operation, maxRows=100_000))
        peer = client._connection.peer  # type: ignore[attr-defined]
        for _ in range(5):
            peer.sendall(struct.pack(">I", len(fetch)) + fetch)
        readers.append(client)
    answers(tcp_server)
    assert attacker.resident_mib(tcp_server.process.pid) < 1500
    for client in readers:
        client._connection.close()


def test_thrift_on_the_port_of_http(tcp_server: Server) -> None:
    assert b"This port speaks HTTP, and the client speaks Thrift without SASL" in attacker.send(tcp_server, OPEN)
    answer = attacker.send(tcp_server, sasl_login())
    assert answer[0] == Status.ERROR
    assert b"This port speaks HTTP" in answer


def test_tls_on_plain_ports(tcp_server: Server) -> None:
    for address in (tcp_server.tcp_address, attacker.address(tcp_server)):
        with socket.create_connection(address, 5) as peer, pytest.raises(ssl.SSLError, match=r"WRONG_VERSION|RECORD"):
            ssl.create_default_context().wrap_socket(peer, server_hostname="localhost")
    answers(tcp_server)


def https_address(server: Server) -> tuple[str, int]:
    host, _, port = (server.https or "").removeprefix("https://").rpartition(":")
    return host, int(port)


def test_plain_words_on_ports_of_tls(tls_server: Server, certificates: Certificates) -> None:
    for address in (https_address(tls_server), tls_server.tcp_address):
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", OPEN, sasl_login(), b"\x00\x00", b"SSH-2.0-x\r\n"):
            with socket.create_connection(address, 5) as peer:
                answer = exchange(peer, data)
                assert b"This port speaks" in answer
                assert b"OpenSession" not in answer
    with tcp_client(tls_server, "me", tls=certificates.trust()).open() as client:
        assert client.execute("SELECT 1", arrow=False).columns == ["1"]


def test_handshakes_that_do_not_end(tls_server: Server, certificates: Certificates) -> None:
    hello = bytes.fromhex("160301020001")
    silent = []
    for address in (https_address(tls_server), tls_server.tcp_address):
        for i in range(60):
            peer = socket.create_connection(address, 5)
            peer.sendall((b"", hello[:1], hello, hello + b"\xff" * 100)[i % 4])
            silent.append(peer)
    with tcp_client(tls_server, "me", tls=certificates.trust()).open() as client:
        assert client.execute("SELECT 1", arrow=False).columns == ["1"]
    with Client(tls_server.thrift_url).open() as client:
        assert client.execute("SELECT 1").table().num_rows == 1
    for peer in silent:
        peer.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_of_tls_are_refused(tls_server: Server, version: ssl.TLSVersion) -> None:
    for address in (https_address(tls_server), tls_server.tcp_address):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, version
        with socket.create_connection(address, 5) as peer, pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(peer, server_hostname="localhost")
