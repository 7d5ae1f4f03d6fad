"""The time limits of a TCP connection: a login, a message, an answer or a call that does not come in time ends it."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.auth.authenticators import AllowAll
from gateway.auth.base import Identity
from gateway.protocol.reader import Budget
from gateway.transport import door
from gateway.transport.sasl import Status, message
from gateway.transport.server import HttpServer, bind
from gateway.transport.tcp import TcpDoor, TcpLimits
from tests.live.processes import eventually

LOGIN = message(Status.START, b"PLAIN") + message(Status.OK, b"\0me\0x")
CALL = struct.pack(">I", 4) + b"call"
LARGE = 64 << 20


class Echo:
    """Answers a call with itself, `long` after a while, `large` with more than any buffer holds."""

    def __init__(self) -> None:
        self.hung_up: list[set[Any]] = []

    def answer(
        self, body: bytes, identity: str, user_agent: str, origin: str = "", sessions: set[Any] | None = None
    ) -> Any:
        if body == b"long":
            time.sleep(1.5)
        if sessions is not None:
            sessions.add(body)
        return b"x" * LARGE if body == b"full" else body + identity.encode()

    def hang_up(self, identity: str, sessions: set[Any]) -> None:
        self.hung_up.append(set(sessions))
        sessions.clear()


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    raise NotImplementedError


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def peer(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A connection to a door with short limits."""
    monkeypatch.setattr(door, "FIRST_BYTE_SECONDS", 0.7)
    limits = TcpLimits(login=0.7, message=0.7, answer=0.7, idle=1.2, threads=4)
    tcp = TcpDoor(bind("127.0.0.1", 0), echo, AllowAll(), trusting=True, may_wait=lambda body: True, limits=limits)
    server = HttpServer(nothing, "127.0.0.1", 0, doors=[tcp])
    server.start()
    with socket.create_connection(("127.0.0.1", tcp.port), 10) as connection:
        yield connection
    server.stop(1.0)


def ended_after(connection: socket.socket) -> float:
    """How long the server keeps a connection on which nothing more comes; what it still says is read."""
    start = time.monotonic()
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - start


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        (b"", 0.6, 1.1),
        (LOGIN[:3], 0.6, 1.1),
        (LOGIN[:-1], 0.6, 1.1),
        (LOGIN, 1.1, 1.7),
        (LOGIN + CALL[:2], 0.6, 1.1),
        (LOGIN + CALL[:-1], 0.6, 1.1),
        (LOGIN + CALL, 1.1, 1.7),
        (b"\x80\x01\x00\x01", 0.6, 1.1),
        (LOGIN + struct.pack(">I", 4) + b"long", 2.5, 3.5),
    ],
)
def test_what_does_not_come_in_time_ends_the_connection(
    peer: socket.socket, said: bytes, least: float, most: float
) -> None:
    peer.sendall(said)
    assert least < ended_after(peer) < most + 1.0  # loaded machines are late


def test_a_message_drop_by_drop_is_not_waited_for_longer(peer: socket.socket) -> None:
    peer.sendall(LOGIN)
    start = time.monotonic()
    with pytest.raises(ConnectionError):
        for _ in range(100):
            peer.sendall(struct.pack(">I", 200) if time.monotonic() == start else b"x")
            time.sleep(0.1)
    assert time.monotonic() - start < 5


def test_an_answer_that_is_not_read_ends_the_connection(peer: socket.socket, echo: Echo) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    peer.sendall(LOGIN + struct.pack(">I", 4) + b"full")
    time.sleep(2.5)
    received = 0
    with pytest.raises(ConnectionError):
        while data := peer.recv(1 << 20):
            received += len(data)
        raise ConnectionResetError
    assert received < LARGE
    assert echo.hung_up


def test_sessions_are_closed_with_the_connection(peer: socket.socket, echo: Echo) -> None:
    peer.sendall(LOGIN + CALL + struct.pack(">I", 4) + b"long")
    time.sleep(0.3)
    peer.close()
    end = time.monotonic() + 5
    while len(echo.hung_up) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert echo.hung_up == [{b"call"}, {b"long"}]  # at once, and again for what was under way


def test_the_door_closes_with_the_server(peer: socket.socket, echo: Echo) -> None:
    peer.sendall(LOGIN + CALL)
    assert peer.recv(5) == message(Status.COMPLETE, b"")
    assert peer.recv(100) == struct.pack(">I", 6) + b"callme"


@pytest.fixture
def crowded(echo: Echo) -> Iterator[tuple[str, int]]:
    """The address of a door with room for six."""
    limits = TcpLimits(connections=6, idle=600.0)
    tcp = TcpDoor(bind("127.0.0.1", 0), echo, AllowAll(), trusting=True, may_wait=lambda body: True, limits=limits)
    server = HttpServer(nothing, "127.0.0.1", 0, doors=[tcp])
    server.start()
    yield "127.0.0.1", tcp.port
    server.stop(1.0)


def logged_in(address: tuple[str, int], user: str) -> socket.socket:
    connection = socket.create_connection(address, 10)
    connection.sendall(message(Status.START, b"PLAIN") + message(Status.OK, f"\0{user}\0x".encode()))
    assert connection.recv(1) == bytes([Status.COMPLETE])
    assert called(connection)
    return connection


def called(connection: socket.socket) -> bool:
    """Whether a call is answered."""
    try:
        connection.sendall(CALL)
        while data := connection.recv(65536):
            if b"call" in data:
                return True
    except OSError:
        pass
    return False


def test_of_too_many_connections_those_of_strangers_go(crowded: tuple[str, int]) -> None:
    ann = logged_in(crowded, "ann")
    silent = []
    for i in range(20):
        silent.append(socket.create_connection(crowded, 10))
        silent[-1].sendall((b"", LOGIN[:7])[i % 2])
    assert called(logged_in(crowded, "bob"))
    assert called(ann)


def test_of_too_many_connections_those_beyond_a_callers_half_go(crowded: tuple[str, int]) -> None:
    ann = logged_in(crowded, "ann")
    mine = [logged_in(crowded, "me") for _ in range(5)]
    bob = logged_in(crowded, "bob")
    assert [called(connection) for connection in mine] == [True] * 3 + [False, True]
    assert called(ann) and called(bob)


def test_a_token_for_a_while_opens_no_call_behind_its_end(echo: Echo) -> None:
    class Briefly(AllowAll):
        def authenticate(self, headers: Mapping[str, str]) -> Identity:
            return replace(super().authenticate(headers), ends=time.time() + 1.0)

    tcp = TcpDoor(
        bind("127.0.0.1", 0),
        echo,
        Briefly(),
        trusting=True,
        may_wait=lambda body: True,
        limits=TcpLimits(idle=60.0, threads=4),
    )
    server = HttpServer(nothing, "127.0.0.1", 0, doors=[tcp])
    server.start()
    try:
        one = logged_in(("127.0.0.1", tcp.port), "ann")
        assert called(one)
        time.sleep(1.1)
        assert not called(one)
    finally:
        server.stop(1.0)


def test_half_sent_messages_have_a_share_of_memory(echo: Echo) -> None:
    """What a caller sends beyond it stays unread, and others' messages come through."""
    size, limits = 1 << 20, TcpLimits(idle=600.0, budget=Budget(size=1 << 20), room=3.0)
    tcp = TcpDoor(bind("127.0.0.1", 0), echo, AllowAll(), trusting=True, may_wait=lambda body: True, limits=limits)
    server = HttpServer(nothing, "127.0.0.1", 0, doors=[tcp])
    server.start()
    address = "127.0.0.1", tcp.port
    try:
        half = []
        for _ in range(20):
            half.append(logged_in(address, "me"))
            half[-1].sendall(struct.pack(">I", size) + bytes(size - 1))
        eventually(lambda: len(tcp.bodies._waiting) == 16, 10)
        assert sum(len(connection._buffer) for connection in tcp._served) < 4 * size + 20 * (size // 2)
        for _ in range(2):  # the room is given back
            ann = logged_in(address, "ann")
            ann.sendall(struct.pack(">I", size) + bytes(size))
            received = 0
            while received < size:
                received += len(ann.recv(1 << 20))
        half[0].sendall(b"\0")
        assert half[0].recv(4) == struct.pack(">I", size + 2)
        eventually(lambda: sum(map(cut, half[4:])) >= 15, 15)  # there was no room for them in time
    finally:
        server.stop(1.0)


def cut(connection: socket.socket) -> bool:
    """Whether the server has ended a connection."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
