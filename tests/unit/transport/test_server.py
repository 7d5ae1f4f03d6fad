"""The server below HTTP: how it starts and stops, and which connections it cuts."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import threading
import time

import pytest

from gateway.auth.authenticators import AllowAll
from gateway.errors import ConfigError
from gateway.transport import server as server_module
from gateway.transport.http import HttpApp, HttpLimits, Probes
from gateway.transport.server import BoundedProtocol, HeadFirst, HttpServer, bind
from gateway.transport.unsent import Unsent
from tests.live.processes import eventually
from tests.unit.transport.raw import OPEN, PATH, Raw, as_user, ask, post


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


class _Written:
    """A transport that remembers what was written to it at once."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.parts.append(bytes(data))

    def close(self) -> None:
        self.parts.append(b"closed")

    def is_closing(self) -> bool:
        return self.parts[-1:] == [b"closed"]


def _written(*parts: bytes, turns: bool = False) -> list[bytes]:
    """What is written of an answer of some parts, with a turn of the loop behind each or behind all."""
    to = _Written()

    async def answer() -> None:
        one = HeadFirst(to, asyncio.get_running_loop())  # type: ignore[arg-type]
        for part in parts:
            one.write(part) if part != b"close" else one.close()
            if turns:
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(answer())
    return to.parts


def test_a_head_leaves_with_what_follows_it() -> None:
    large = bytes(1 << 20)
    assert _written(b"head", b"one", b"two") == [b"headone", b"two"]
    assert _written(b"head", large) == [b"head", large]
    assert _written(b"head") == [b"head"]
    assert _written(b"head", b"close") == [b"head", b"closed"]
    assert _written(b"head", b"one", b"close") == [b"headone", b"closed"]


def test_a_head_waits_for_no_later_turn() -> None:
    assert _written(b"head", b"one", b"two", turns=True) == [b"head", b"one", b"two"]
    assert _written(b"HTTP/1.1 100 Continue", b"head", b"one", turns=True) == [
        b"HTTP/1.1 100 Continue",
        b"head",
        b"one",
    ]


def test_stop_lets_a_call_in_flight_finish() -> None:
    started, go_on = threading.Event(), threading.Event()

    def handle(body: bytes, identity: str, user_agent: str, origin: str) -> bytes:
        started.set()
        assert go_on.wait(10)
        return b"done " + identity.encode() + b" " + user_agent.encode()

    app = HttpApp(handle, AllowAll(), Probes(lambda: None, lambda: b""), limits=HttpLimits(threads=1))
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
    app = HttpApp(
        lambda body, identity, client, origin: b"",
        AllowAll(),
        Probes(lambda: None, lambda: b""),
        limits=HttpLimits(threads=1),
    )
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

    app = HttpApp(handle, AllowAll(), Probes(lambda: None, lambda: b""), limits=HttpLimits(threads=1))
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
        lambda body, identity, client, origin: parts,
        AllowAll(),
        Probes(lambda: None, lambda: b""),
        limits=HttpLimits(threads=4),
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
        eventually(lambda: unsent._held["mallory"] <= 80 << 20, 10)
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
