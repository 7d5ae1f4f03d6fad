"""A database of the history that answers nothing, nonsense or without end: no statement waits for it or fails by it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.config.values import DatabaseUrl
from gateway.errors import ServerError
from gateway.history import postgres as stores
from gateway.history.postgres import PostgresStore
from gateway.history.records import STATEMENTS
from gateway.history.search import History
from gateway.history.store import PassingError
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


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


def _heads(*types: int) -> bytes:
    """The description of columns of these types (OIDs)."""
    columns = b"".join(b"x\0" + struct.pack(">IHIhih", 0, 0, oid, -1, -1, 0) for oid in types)
    return _message(b"T", struct.pack(">H", len(types)) + columns)


def _row(*values: bytes | None) -> bytes:
    cells = (struct.pack(">i", -1) if v is None else struct.pack(">i", len(v)) + v for v in values)
    return _message(b"D", struct.pack(">H", len(values)) + b"".join(cells))


BOOL, BIGINT, INT, TEXT, JSON, NAME, NUMERIC = 16, 20, 23, 25, 114, 19, 1700
OURS = _heads(BOOL, TEXT) + _row(b"t", b"Delta SQL Gateway, history, version 1")
COLUMNS = _heads(NAME) + b"".join(_row(name.encode()) for name in ("id", "weight", *STATEMENTS.columns))
# What the statements in which a word is are answered with: rows, or a piece that is sent without end.
Answers = Mapping[str, bytes | tuple[bytes, bytes]]
SOUND: Answers = {
    "obj_description": OURS,
    "pg_attribute": COLUMNS,
    "FETCH": _heads(TEXT),
    "coalesce(sum": _heads(NUMERIC) + _row(b"0"),
    "set_config": _heads(TEXT, TEXT) + _row(b"1", b"1"),
}


class Speaking:
    """A server that speaks the protocol, and answers what it is told to; what it was asked is in `asked`."""

    def __init__(self, answers: Answers, encoding: bytes = b"UTF8", tags: Mapping[str, bytes] | None = None) -> None:
        self.answers = {**SOUND, **answers}
        self.encoding = encoding
        self.tags = tags or {}
        self.asked: list[str] = []
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def url(self) -> DatabaseUrl:
        return DatabaseUrl(f"postgresql://ann:{SECRET}@127.0.0.1:{self.listener.getsockname()[1]}/kept?sslmode=disable")

    def __enter__(self) -> Speaking:
        stores.SILENCE.forget()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._speak, args=(self.listener.accept()[0],), daemon=True).start()

    def _speak(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError, struct.error), peer, peer.makefile("rb") as told:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            told.read(struct.unpack(">I", told.read(4))[0] - 4)
            parameters = ((b"server_encoding", b"UTF8"), (b"client_encoding", self.encoding))
            said = b"".join(_message(b"S", name + b"\0" + value + b"\0") for name, value in parameters)
            ready = _message(b"Z", b"I")
            peer.sendall(_message(b"R", struct.pack(">I", 0)) + said + ready)
            text = ""
            while True:
                kind, size = struct.unpack(">cI", told.read(5))
                body = told.read(size - 4)
                if kind == b"P":
                    text = body.split(b"\0")[1].decode()
                elif kind == b"Q":
                    text = body.rstrip(b"\0").decode()
                if kind in (b"Q", b"E"):
                    self._answer(peer, text, described=kind == b"E")
                elif kind == b"D":
                    peer.sendall(self._split(text)[0] or _message(b"n"))
                peer.sendall({b"Q": ready, b"S": ready, b"P": _message(b"1"), b"B": _message(b"2")}.get(kind, b""))

    def _split(self, text: str) -> tuple[bytes, bytes, bytes]:
        """The head of the answer, its rows, and what comes without end."""
        found = next((answer for word, answer in self.answers.items() if word in text), b"")
        once, endless = found if isinstance(found, tuple) else (found, b"")
        size = 1 + struct.unpack(">I", once[1:5])[0] if once[:1] == b"T" else 0
        return once[:size], once[size:], endless

    def _answer(self, peer: socket.socket, text: str, *, described: bool) -> None:
        self.asked.append(text)
        head, rows, endless = self._split(text)
        peer.sendall(rows if described else head + rows)
        while endless:
            peer.sendall(endless)
            self.sent += len(endless)
        tag = next((tag for word, tag in self.tags.items() if word in text), b"OK")
        peer.sendall(b"" if rows.startswith(b"E") else _message(b"C", tag + b"\0"))


def _read(url: DatabaseUrl, **more: Any) -> list[Any]:
    return [row for piece in History(url, open_to_all=True).rows("", ["text"], **more) for row in piece]


def _error(code: bytes) -> bytes:
    return _message(b"E", b"SERROR\0C" + code + b"\0M\x1b[2J" + SECRET.encode() + b"\0\0")


STRANGE: dict[str, tuple[Answers, str]] = {
    "a comment that is a number": (
        {"obj_description": _heads(BOOL, INT) + _row(b"t", b"5")},
        "what PostgreSQL would not",
    ),
    "one column": ({"obj_description": _heads(BOOL) + _row(b"t")}, "what PostgreSQL would not"),
    "no columns": ({"obj_description": _heads() + _row()}, "what PostgreSQL would not"),
    "deep JSON": (
        {"obj_description": _heads(BOOL, JSON) + _row(b"t", b"[" * 200_000)},
        "what PostgreSQL would not",
    ),
    "rows without columns": ({"FETCH": _heads() + _row()}, "values of other types"),
    "rows of more columns": ({"FETCH": _heads(TEXT, TEXT) + _row(b"x", b"y")}, "values of other types"),
    "a number for a text": ({"FETCH": _heads(INT) + _row(b"5")}, "values of other types"),
    "a number that is none": ({"FETCH": _heads(INT) + _row(b"x")}, "other types|would not"),
    "a text that is no UTF-8": ({"FETCH": _heads(TEXT) + _row(b"\xff")}, "HISTORY_UNREADABLE"),
    "more rows than asked for": ({"FETCH": _heads(TEXT) + _row(b"x") * 2000}, "what PostgreSQL would not"),
    "an SQLSTATE with an escape": ({"FETCH": _error(b"\x1b[31m")}, "what PostgreSQL would not"),
    "an SQLSTATE of its own": ({"FETCH": _error(b"ZZ999")}, "SQLSTATE ZZ999"),
}


@pytest.mark.parametrize("how", STRANGE)
def test_strange_answers_are_told_and_nothing_of_them(how: str) -> None:
    answers, told = STRANGE[how]
    with Speaking(answers) as server, pytest.raises(ServerError, match=told) as caught:
        _read(server.url)
    assert caught.value.condition == "HISTORY_UNREADABLE" and caught.value.retryable
    assert str(caught.value).isprintable() and SECRET not in str(caught.value)


def test_a_server_that_does_not_take_our_encoding_is_not_read() -> None:
    with Speaking({}, encoding=b"SQL_ASCII") as server:
        with pytest.raises(ServerError, match="does not speak UTF-8"):
            _read(server.url)
        with pytest.raises(PassingError, match="does not speak UTF-8"):
            PostgresStore(server.url, STATEMENTS).write([])


@pytest.mark.parametrize(
    "answer",
    [
        _heads(NAME, TEXT) + _row(b"a", b"b"),
        _heads(JSON) + _row(b'{"x": [1]}'),
        _heads(JSON) + _row(b"[" * 200_000),
    ],
)
def test_what_strange_answers_keep_from_being_written_may_be_written_later(answer: bytes) -> None:
    with Speaking({"pg_attribute": answer}) as server, pytest.raises(PassingError, match="would not"):
        PostgresStore(server.url, STATEMENTS).write([])


WIDE = _row(b"y" * 30_000)
ENDLESS: dict[str, Answers] = {
    "rows": {"FETCH": (_heads(TEXT), WIDE * 30)},
    "a row": {"FETCH": (_heads(TEXT) + b"D" + struct.pack(">I", 1 << 30), b"y" * 65_536)},
    "notices": {"obj_description": (b"", _message(b"N", b"SWARNING\0C01000\0M" + b"x" * 9000 + b"\0\0") * 9)},
    "columns of the catalog": {"obj_description": (_heads(BOOL, TEXT), OURS[len(_heads(BOOL, TEXT)) :] * 999)},
}


@pytest.mark.parametrize("how", ENDLESS)
def test_what_comes_without_end_is_cut_off(how: str) -> None:
    with Speaking(ENDLESS[how]) as server:
        started = time.monotonic()
        with pytest.raises(ServerError, match=r"HISTORY_UNREADABLE.*more than was asked for"):
            _read(server.url, limit=1)
        assert time.monotonic() - started < 5.0
        assert server.sent < 256 << 20


def test_rows_beyond_a_limit_are_not_asked_for() -> None:
    with Speaking({"FETCH": _heads(TEXT) + _row(b"x")}) as server:
        assert _read(server.url, limit=1) == [("x",)]
        assert _read(server.url) == [("x",)]  # fewer than were asked for: there are no more
        assert sum("FETCH" in text for text in server.asked) == 2


def test_the_console_takes_in_one_row_of_a_statement(tmp_path: Path) -> None:
    with Speaking({"FETCH": (_heads(*[TEXT] * 32), _row(*[b"y" * 30_000] * 32))}) as server:
        gateway = start_server(tmp_path, "--history", server.url.text, "--slots", "1")
        try:
            for path in ("/console/api/statements/abc", "/console/api/statements", "/api/2.0/sql/history/queries"):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(f"{gateway.url}{path}", timeout=20.0)
                assert caught.value.code == 503 and b"HISTORY_UNREADABLE" in caught.value.read()
            assert resident_mib(gateway.process.pid) < 400
        finally:
            assert gateway.stop() == 0
        assert "Traceback" not in gateway.log.read_text()


def test_rows_are_removed_so_many_times_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_MOST_CHUNKS", 5)
    answers: Answers = {
        "coalesce(sum": _heads(NUMERIC) + _row(b"1e9"),
        "SELECT max(id)": _heads(BIGINT) + _row(b"5"),
    }
    removals: tuple[Callable[[PostgresStore], None], ...] = (
        lambda store: store.prune_by_size(1 << 20, lambda: True),
        lambda store: store.prune_by_age(5, lambda: True),
    )
    for remove in removals:
        with Speaking(answers, tags={"DELETE": b"DELETE 2000"}) as server:
            store = PostgresStore(server.url, STATEMENTS)
            remove(store)
            store.close()
            assert sum("DELETE" in text for text in server.asked) == 5
