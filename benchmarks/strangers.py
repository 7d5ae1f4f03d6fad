"""SELECT 1 on new connections while others send what is no request: vanishing clients, half frames, wrong certificates."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from importlib import util
from pathlib import Path
from struct import pack

from benchmarks.doors import free_port
from benchmarks.measure import Row, Sample, settle, show
from benchmarks.systems import gateway_process
from gateway.auth import certificates
from gateway.protocol import codec
from gateway.protocol.client import DEFAULT_PATH, Client
from gateway.thrift_gen.TCLIService import ttypes

SECONDS, STRANGERS = 10.0, 4
MOST = 0.5
Place = tuple[str, int]


class _Crowd:
    """Threads that do bad things in turn until they are stopped; `done` counts them by kind."""

    def __init__(self, kinds: dict[str, Callable[[], None]]) -> None:
        self._over = threading.Event()
        self.done = dict.fromkeys(kinds, 0)
        self._threads = [threading.Thread(target=self._run, args=(kinds, i), daemon=True) for i in range(STRANGERS)]

    def __enter__(self) -> _Crowd:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, kinds: dict[str, Callable[[], None]], first: int) -> None:
        names = list(kinds)
        for name in itertools.islice(itertools.cycle(names), first, None):
            if self._over.is_set():
                return
            with contextlib.suppress(OSError):  # that the server ends the connection is its right
                kinds[name]()
            self.done[name] += 1


def _say(place: Place, data: bytes, *, reset: bool = False, listen: bool = False) -> None:
    """Send bytes on a connection of their own and go, with a reset or after an answer."""
    with socket.create_connection(place, 5) as peer:
        peer.sendall(data)
        if reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        if listen:
            peer.settimeout(2)
            peer.recv(4096)


def _distrusts(place: Place) -> None:
    """A client of TLS that does not know the server's authority, and breaks off."""
    with (
        socket.create_connection(place, 5) as peer,
        ssl.create_default_context(cadata=None).wrap_socket(peer, server_hostname="elsewhere.example"),
    ):
        pass


def _kinds(http: Place, https: Place, tcp: Place) -> dict[str, Callable[[], None]]:
    opening = codec.encode_call("OpenSession", 0, ttypes.TOpenSessionReq(client_protocol_i64=0xA508))
    head = f"POST {DEFAULT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: ".encode()
    whole = head + f"{len(opening)}\r\n\r\n".encode() + opening
    login = pack(">BI", 1, 5) + b"PLAIN" + pack(">BI", 5, 5) + b"\0me\0x"
    half = login + pack(">I", len(opening)) + opening[: len(opening) // 2]
    bad = b"POST /api/2.0/sql/statements HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + b"[" * 50_000
    return {
        "vanished": lambda: _say(http, whole[: len(whole) // 2], reset=True),
        "gone before the answer": lambda: _say(http, whole, reset=True),
        "half a frame": lambda: _say(tcp, half, reset=True),
        "a frame of 2 GiB": lambda: _say(tcp, login + pack(">I", 0x7FFFFFFF), listen=True),
        "no Thrift": lambda: _say(http, head + b"9\r\n\r\nno thrift", listen=True),
        "no HTTP": lambda: _say(http, os.urandom(200) + b"\r\n\r\n", listen=True),
        "no JSON": lambda: _say(http, bad, listen=True),
        "HTTP at HTTPS": lambda: _say(https, whole, listen=True),
        "HTTP at TCP": lambda: _say(tcp, whole, listen=True),
        "wrong certificate": lambda: _distrusts(https),
        "half a handshake": lambda: _say(https, b"\x16\x03\x01\x02\x00\x01\x00", reset=True),
    }


def _asked(url: str, seconds: float) -> Sequence[float]:
    """How long each SELECT 1 took, its connection included."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        with Client(url).open() as client:
            assert client.execute("SELECT 1 AS x").table().to_pylist() == [{"x": 1}]
        times.append(time.perf_counter() - start)
        time.sleep(0.01)
    return times


def run() -> list[Row]:
    """The slowest of the answers, and what was sent meanwhile."""
    if util.find_spec("cryptography") is None:
        return [Row("strangers", {"ours": "cryptography is not installed"})]
    https, tcp = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        chain, key = certificates.make_server(Path(folder), ["127.0.0.1"])
        flags = ("--tls-port", str(https), "--tls-cert", str(chain), "--tls-key", str(key), "--tcp-port", str(tcp))
        with gateway_process(*flags) as (url, pid, _):
            host, _, port = url.removeprefix("http://").rpartition(":")
            _asked(url, 1)
            settle(pid)
            kinds = _kinds((host, int(port)), ("127.0.0.1", https), ("127.0.0.1", tcp))
            with _Crowd(kinds) as crowd:
                times = _asked(url, SECONDS)
    missed = [name for name, count in crowd.done.items() if not count]
    shown = f"{show(Sample(tuple(times)).median)}, at most {show(max(times))}; {sum(crowd.done.values())} strangers"
    return [
        Row(
            f"SELECT 1 on a new connection, {len(kinds)} kinds of bad input beside it",
            {"ours": shown + (f" NONE OF {missed}" if missed else "")},
            f"<= {MOST * 1000:.0f} ms",
            max(times) <= MOST and not missed,
        )
    ]
