"""Bodies of requests share one room: who sends slowly keeps out nobody else."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.auth.authenticators import AllowAll
from gateway.transport.http import HttpApp, HttpLimits, Probes
from gateway.transport.server import HttpServer
from tests.unit.transport.raw import PATH, Raw, as_user, ask, post


@pytest.fixture
def roomy() -> Iterator[HttpServer]:
    """Bodies of 100,000 bytes at most, eight of them at once; a caller is called as the user of its Basic header."""
    app = HttpApp(
        lambda body, identity, client, origin: f"{identity}:{len(body)}".encode(),
        AllowAll(),
        Probes(lambda: None, lambda: b""),
        limits=HttpLimits(threads=4, body=100_000, body_seconds=20.0, room_seconds=2.0),
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop(1.0)
    app.close()


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
