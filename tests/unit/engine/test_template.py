"""Workers that are forked: what they have in common, how they end, and what becomes of them without their template."""

from __future__ import annotations

import errno
import gc
import os
import signal
import socket
import time
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.base import Finished, SessionState, Statement
from gateway.engine.channel import Channel, Fork, Forked, Ready, Start
from gateway.engine.forks import fork_for
from gateway.engine.pool import WorkerPool
from gateway.engine.pool_watch import PoolLimits
from gateway.engine.process import WorkerProcess
from gateway.engine.template import Template
from gateway.errors import ServerError
from gateway.runner import make_runner
from tests.live.fakes import FakeHandler
from tests.live.listener import Listener
from tests.live.processes import eventually, parent_of

WAIT = 30.0


def start_of(handler_factory: Any) -> Start:
    return Start(handler_factory, 1 << 30, 1 << 20)


def statement(text: str) -> Statement:
    return Statement("id", text, SessionState("main", "default", "somebody", {}))


@pytest.fixture
def template() -> Iterator[Template]:
    made = Template(start_of(FakeHandler()))
    yield made
    made.close()


def test_workers_lead_groups_of_their_own_and_tell_how_they_end(template: Template) -> None:
    one, other = (WorkerProcess.forked(template) for _ in range(2))
    assert isinstance(one.channel.receive(), Ready) and isinstance(other.channel.receive(), Ready)
    assert parent_of(one.pid) == parent_of(other.pid) != os.getpid()
    assert [os.getpgid(process.pid) for process in (one, other)] == [one.pid, other.pid]
    os.kill(one.pid, signal.SIGSEGV)
    eventually(lambda: not one.alive, WAIT)
    assert (one.alive, other.alive) == (False, True)
    assert one.reap() == "SIGSEGV"
    assert other.reap() == "SIGKILL"
    assert (one.reap(), other.reap()) == ("SIGSEGV", "SIGKILL")  # the second time nothing is asked
    assert not one.alive and not other.alive


def test_a_worker_whose_front_hangs_up_ends(template: Template) -> None:
    process = WorkerProcess.forked(template)
    process.channel.receive()
    process.channel.close()
    eventually(lambda: not process.alive, WAIT)
    assert process.reap() == "exit code 0"


def test_it_forks_with_no_thread_but_its_own(tmp_path: Path) -> None:
    """Those of allocators aside, which are made for it: of what others hold while it forks nobody would ever let go."""
    factory = partial(
        make_runner,
        warehouse=str(tmp_path),
        samples=str(tmp_path / "s"),
        allow_paths=(),
        spill=str(tmp_path),
        memory_limit=1 << 30,
    )
    template = Template(start_of(factory))
    try:
        process = WorkerProcess.forked(template)
        task = Path(f"/proc/{parent_of(process.pid)}/task")
        names = [(thread / "comm").read_text().strip() for thread in task.iterdir()]
        assert len([name for name in names if name != "jemalloc_bg_thd"]) == 1, names
        assert isinstance(process.channel.receive(), Ready)
        process.reap()
    finally:
        template.close()


def test_a_pool_whose_template_is_lost_has_another_one() -> None:
    pool = WorkerPool(FakeHandler(), 2)
    pool.start()
    try:
        pool.wait_ready(WAIT)
        before = pool.process_ids()
        os.kill(parent_of(before[0]), signal.SIGKILL)
        eventually(lambda: not any(Path(f"/proc/{pid}/task").exists() for pid in before), WAIT)
        sink = Listener()
        pool.submit(statement("rows 1"), sink)
        assert isinstance(sink.last(), Finished)
        assert not set(before) & set(pool.process_ids())
    finally:
        pool.stop()


class _Slow(FakeHandler):
    """One that takes for ever to travel."""

    def __reduce__(self) -> Any:
        return (time.sleep, (60,))


def test_a_template_that_does_not_get_ready_is_given_up() -> None:
    pool = WorkerPool(_Slow(), 2, PoolLimits(start=0.5))
    started = time.monotonic()
    pool.start()
    try:
        with pytest.raises(ServerError) as told:
            pool.wait_ready(WAIT)
        assert told.value.condition == "WORKER_LOST"
        assert time.monotonic() - started < 10
    finally:
        pool.stop()


class _Broken(FakeHandler):
    """One of a module that is not there."""

    def __reduce__(self) -> Any:
        return (import_module, ("no_such_thing",))


def test_what_cannot_be_imported_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    pool = WorkerPool(_Broken(), 2)
    pool.start()
    try:
        with pytest.raises(ServerError, match="cannot be started"):
            pool.wait_ready(WAIT)
    finally:
        pool.stop()
    assert "no_such_thing" in capfd.readouterr().err


def test_stopping_does_not_wait_for_a_template() -> None:
    pool = WorkerPool(_Slow(), 2)
    pool.start()
    eventually(lambda: pool._template is not None, WAIT)
    began = time.monotonic()
    pool.stop()
    assert time.monotonic() - began < 5


def test_no_room_for_one_more_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    template = Template(start_of(FakeHandler()))
    try:
        one = WorkerProcess.forked(template)
        assert isinstance(one.channel.receive(), Ready)
        monkeypatch.setattr(template, "_ask", lambda *_: Forked(0, errno.EAGAIN))
        with pytest.raises(BlockingIOError):
            WorkerProcess.forked(template)
        monkeypatch.undo()
        assert one.alive
        assert one.reap() == "SIGKILL"
    finally:
        template.close()


def test_the_template_says_that_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    spare, unused = socket.socketpair()
    front = Channel(ours)

    def no_room() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    class EndedError(Exception):
        pass

    def end(code: int) -> None:
        raise EndedError

    monkeypatch.setattr(os, "fork", no_room)
    monkeypatch.setattr(os, "_exit", end)
    with spare, unused:
        front.send(Fork(), spare.fileno())
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(EndedError):
            fork_for(Channel(theirs))
        assert front.receive() == Forked(0, errno.EAGAIN)
    gc.unfreeze()


def test_where_the_system_cannot_tell_of_others_processes_they_are_started_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refused)
    pool = WorkerPool(FakeHandler(), 1)
    pool.start()
    try:
        pool.wait_ready(WAIT)
        assert {parent_of(pid) for pid in pool.process_ids()} == {os.getpid()}
    finally:
        pool.stop()
