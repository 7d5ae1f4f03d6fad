"""Mutants of calls and of HTTP requests: each gets an answer or is cut, soon; nothing of it stays, and others go on."""

from __future__ import annotations

import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.protocol import codec
from gateway.protocol.client import Client
from gateway.protocol.handler import HandlerOptions, ThriftHandler, may_wait
from gateway.protocol.reader import MalformedError
from gateway.service.api import ExecuteRequest, Handle, MetadataRequest, OperationStatus, Principal, SessionInfo
from gateway.sqltypes import INT, StructField, struct
from tests.attacks.attacker import answer, post, resident_mib, send
from tests.attacks.frames import GUID, SECRET, http_mutant, made_calls, mutant, recorded_calls
from tests.conformance.shared import shared_folder
from tests.live.gateway import Server, start_server
from tests.unit.protocol.fake import FakeService, Operation, Script

_SECONDS = 2.0
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
# What any mutant may be answered with over HTTP; never 500.
_ANSWERS = {b"100", b"200", b"400", b"403", b"404", b"405", b"408", b"413", b"415", b"505"}


class _Everybodys(FakeService):
    """A service in which every handle is known."""

    def __init__(self) -> None:
        script = Script(struct(StructField("x", INT)), [(1,), (2,)])
        super().__init__()
        self.scripts = defaultdict(lambda: script)
        self._known = SessionInfo(Handle(GUID, SECRET), 0xA509, "main", "default", {}, "UTC")

    def session_info(self, principal: Principal, session: Handle) -> SessionInfo:
        return self._known

    def close_session(self, principal: Principal, session: Handle) -> None:
        """Nothing: it is everybody's."""

    def metadata(self, principal: Principal, session: Handle, request: MetadataRequest) -> OperationStatus:
        self.asked.append(request)
        return self.execute(principal, session, ExecuteRequest("SELECT 1"))

    def _operation(self, principal: Principal, operation: Handle) -> Operation:
        if not self.operations:
            self.execute(principal, operation, ExecuteRequest("SELECT 1"))
        return next(iter(self.operations.values()))[1]

    def close_operation(self, principal: Principal, operation: Handle) -> None:
        self.operations.pop(operation, None)


def _check_mutants(count: int, seed: int) -> None:
    """Answers of a handler, in this process."""
    rng = random.Random(seed)
    service = _Everybodys()
    handler = ThriftHandler(service, HandlerOptions(direct_wait_seconds=0.0, poll_seconds=0.0))
    calls = made_calls() + recorded_calls(shared_folder())
    for call in calls:
        assert b"unexpectedly" not in handler.handle(call, "alice", "agent")
    answered = 0
    for turn in range(count):
        body = mutant(rng, calls)
        started = time.perf_counter()
        may_wait(body)
        reply = handler.handle(body, "alice", "agent")
        took = time.perf_counter() - started
        assert took < _SECONDS, (turn, took, body[:2000])
        assert b"unexpectedly" not in reply, (turn, reply, body[:2000])
        try:
            codec.decode_reply(reply)
            answered += 1
        except (codec.ApplicationError, MalformedError) as error:
            assert isinstance(error, codec.ApplicationError), (turn, error, body[:2000])
        if turn % 100 == 0:
            for kept in (service.opened, service.executed, service.asked, service.fetched, service.waits):
                kept.clear()
            service.operations.clear()
            service.sessions.clear()
    assert count / 20 < answered < count  # both kinds were met


def test_mutants_of_frames() -> None:
    _check_mutants(4000, 1)


@pytest.mark.heavy
def test_many_mutants_of_frames() -> None:
    _check_mutants(100_000, 2)


def _held(server: Server) -> tuple[int, int]:
    """Threads and open files of a server."""
    folder = Path(f"/proc/{server.process.pid}")
    return len(os.listdir(folder / "task")), len(os.listdir(folder / "fd"))


def _soon(check: Callable[[], bool]) -> bool:
    """Whether something holds within some seconds."""
    end = time.monotonic() + 10
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _live_calls(server: Server) -> list[bytes]:
    """Calls in a session that is there; it is not closed by us, as a mutant may have done it."""
    session = Client(server.thrift_url).open()._session.sessionId
    return [call.replace(GUID, session.guid).replace(SECRET, session.secret) for call in made_calls()]


def _check_http(server: Server, frames: int, heads: int, seed: int) -> None:
    """Answers of a server to both kinds of mutants, and what it holds before and after."""
    rng = random.Random(seed)
    logged = server.log.stat().st_size
    calls: list[bytes] = []
    before = None
    for turn in range(frames + heads):
        if turn % 200 == 0:
            calls = made_calls() + _live_calls(server)
        if turn == (frames + heads) // 10:
            before = _held(server), resident_mib(server.process.pid)
        started = time.monotonic()
        if turn < frames:
            body = mutant(rng, calls)
            status, _ = post(server, body)
            assert status in (200, 400), (turn, status, body[:2000])
        else:
            body = http_mutant(rng, mutant(rng, calls) if rng.randrange(2) else rng.choice(calls))
            statuses = _STATUS.findall(send(server, body, hang_up=True))
            assert set(statuses) <= _ANSWERS, (turn, statuses, body[:2000])
        took = time.monotonic() - started
        assert took < _SECONDS + 3, (turn, took, body[:2000])
        if turn % 50 == 0:
            with Client(server.thrift_url).open() as other:
                assert answer(other, "SELECT 1 AS x") == [{"x": 1}]
    assert before is not None
    (threads, files), memory = before
    assert _soon(lambda: _held(server)[1] <= files + 16), _held(server)
    assert _held(server)[0] <= threads + 64  # of the pool that answers calls: it grows to what was in flight at once
    assert resident_mib(server.process.pid) < memory + 64
    told = server.log.read_bytes()[logged:]
    assert b"Traceback" not in told and b"unexpected error" not in told, told[-4000:]


def test_mutants_over_http(server: Server) -> None:
    _check_http(server, 100, 300, 3)


@pytest.mark.heavy
def test_many_mutants_over_http(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--memory-limit", "512MiB")
    _check_http(server, 3000, 12_000, 4)
    assert server.stop() == 0
