"""A database of the history that answers nothing, nonsense or without end: no statement waits for it or fails by it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.protocol.client import Client
from tests.attacks.attacker import answer, resident_mib, until
from tests.live.gateway import start_server

SECRET = "geheim-4711"
_READY = b"R" + struct.pack(">II", 8, 0) + b"Z" + struct.pack(">Ic", 5, b"I")
_ROW_OF_ONE = b"D" + struct.pack(">IHI", 4 + 2 + 4 + 1, 1, 1) + b"x"
_TOLD_TWICE = struct.pack(">I", (1 << 30) - 1)
_REFUSAL = f"SFATAL\0C28000\0M{SECRET}\0\0".encode()
# What is sent at once, what again and again, and whether the connection is cut then.
ANSWERS: dict[str, tuple[bytes, bytes, bool]] = {
    "nothing": (b"", b"", False),
    "garbage": (bytes(range(256)) * 64, b"", False),
    "an error of a gigabyte": (b"E" + _TOLD_TWICE + b"M", b"x" * 65536, False),
    "half a message": (_READY + b"T" + struct.pack(">I", 500) + b"\0", b"", True),
    "rows without end": (_READY + b"T" + struct.pack(">IH", 6, 0), _ROW_OF_ONE * 4000, False),
    "nothing behind the sign-in": (_READY, b"", False),
    "a password in plain text": (b"R" + struct.pack(">II", 8, 3), b"", False),
    "an error that tells the secret": (b"E" + struct.pack(">I", len(_REFUSAL) + 4) + _REFUSAL, b"", True),
}


@contextlib.contextmanager
def database(how: str) -> Iterator[tuple[int, list[bytes]]]:
    """A port on which something answers like this, and what it was told."""
    first, again, cut = ANSWERS[how]
    told: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    peers: list[socket.socket] = []

    def converse(peer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if peer.recv(8)[4:] == struct.pack(">I", 80877103):  # a wish for TLS
                peer.sendall(b"N")
            told.append(peer.recv(65536))
            peer.sendall(first)
            while again:
                peer.sendall(again)
            if cut:
                peer.close()

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                peers.append(listener.accept()[0])
                threading.Thread(target=converse, args=(peers[-1],), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield listener.getsockname()[1], told
    finally:
        for one in (listener, *peers):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@pytest.mark.parametrize("how", ANSWERS)
def test_no_statement_waits_for_a_broken_database(tmp_path: Path, how: str) -> None:
    with database(how) as (port, told):
        server = start_server(
            tmp_path, "--history", f"postgresql://user:{SECRET}@127.0.0.1:{port}/kept", "--slots", "2"
        )
        with Client(server.thrift_url).open() as client:
            answer(client, "SELECT 0 AS x")
            until(lambda: told, "the database is spoken to")
            for at in range(20):
                start = time.monotonic()
                assert answer(client, f"SELECT {at} AS x") == [{"x": at}]
                assert time.monotonic() - start < 5
            assert resident_mib(server.process.pid) < 600
        assert server.stop() == 0
        log = server.log.read_text()
        assert SECRET not in log
        assert "Traceback" not in log
        assert "history cannot be written" in log or "history is not complete" in log
