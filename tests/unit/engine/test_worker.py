"""A worker's messages arrive whole and in order, and whatever breaks in it ends as one clear error."""

import errno
import gc
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest

from gateway.engine import worker
from gateway.engine.base import Emit, Failed, Finished, Handler, Job, Planned, Rows, SessionState, Statement
from gateway.engine.channel import CancelJob, Channel, JobEvent, NotReady, RunJob, SpoolGiven, SpoolWanted, Start
from gateway.engine.confinement import Folders
from gateway.engine.launch import Launched
from gateway.engine.mailbox import OwnMailbox
from gateway.engine.worker import run_job
from gateway.errors import CanceledError, ResourceError, Span, UserError, from_wire
from gateway.sqltypes import BIGINT, StructField, array, struct
from tests.live.fakes import SCHEMA, FakeHandler, batch

START = Start(FakeHandler(), 1 << 30, 256 << 10)


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = (Channel(s) for s in socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


class Scripted:
    """A handler made of a function."""

    def __init__(self, act: object) -> None:
        self.act = act

    def warm_up(self) -> None: ...

    def run(self, job: Job, emit: Emit) -> None:
        self.act(emit)  # type: ignore[operator]


def events(ends: tuple[Channel, Channel], handler: Handler, text: str = "x") -> list[object]:
    ours, theirs = ends
    job = Statement("s", text, SessionState("c", "s", "u", {}))
    run_job(handler, theirs, START, RunJob(7, job), OwnMailbox(theirs, 7))
    found: list[object] = []
    while ours.has_message():
        message = ours.receive()
        assert isinstance(message, JobEvent) and message.run_id == 7
        found.append(message.event)
    return found


def planned(schema: object = SCHEMA) -> Planned:
    return Planned("SELECT", "fake", "", schema)  # type: ignore[arg-type]


def failure(found: list[object]) -> str:
    last = found[-1]
    assert isinstance(last, Failed)
    return last.error.message


def test_messages_of_any_size_and_descriptors_arrive_whole(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    read, write = os.pipe()
    ours.send("x" * 100)
    ours.send({"with": "descriptor"}, write)
    ours.send(b"y" * 150_000)
    assert theirs.has_message()
    assert theirs.receive() == "x" * 100
    assert theirs.receive() == {"with": "descriptor"}
    with os.fdopen(theirs.take_descriptor(), "wb") as file:
        file.write(b"hello")
    assert os.read(read, 10) == b"hello"
    assert theirs.receive() == b"y" * 150_000
    assert not theirs.has_message()
    ours.close()
    assert theirs.has_message() and theirs.receive() is None
    os.close(read)
    os.close(write)


def test_finished_is_sent_last_and_nothing_after_it(ends: tuple[Channel, Channel]) -> None:
    def act(emit: Emit) -> None:
        emit(planned())
        emit(Finished(1))
        emit.rows(batch(0, 1))

    found = events(ends, Scripted(act))
    assert [type(e) for e in found] == [Planned, Rows, Finished]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda emit: emit(planned()), "without Finished"),
        (lambda emit: [emit(planned()), emit(Finished(0, facts={"f": lambda: 0}))], "cannot be sent"),
        (lambda emit: emit.rows(batch(0, 1)), "before the statement's schema"),
        (lambda emit: [emit(Finished(0)), emit(planned())], "came after Finished"),
        (lambda emit: emit(Rows(1, b"")), "may not emit Rows"),
        (lambda emit: [emit(planned()), emit.rows(pa.record_batch({"id": [1]}))], "1 columns where 2"),
        (
            lambda emit: [emit(planned()), emit.rows(pa.record_batch({"id": [1], "text": [2]}))],
            "column text as int64 where string",
        ),
    ],
)
def test_a_handler_that_breaks_the_contract_is_an_error(
    ends: tuple[Channel, Channel], act: object, message: str
) -> None:
    assert message in failure(events(ends, Scripted(act)))


def test_names_and_nullability_of_children_do_not_matter(ends: tuple[Channel, Channel]) -> None:
    column = pa.array([[1]], pa.list_(pa.field("element", pa.int64(), nullable=False)))

    def act(emit: Emit) -> None:
        emit(planned(struct(StructField("a", array(BIGINT)))))
        emit.rows(pa.record_batch({"c0": column}))
        emit(Finished(1))

    found = events(ends, Scripted(act))
    rows = found[1]
    assert isinstance(rows, Rows) and rows.data is not None
    schema = pa.schema([pa.field("a", array(BIGINT).arrow())])
    assert pa.ipc.read_record_batch(pa.py_buffer(rows.data), schema).to_pylist() == [{"a": [1]}]


def test_what_ends_soon_travels_together_and_in_order(ends: tuple[Channel, Channel]) -> None:
    ours, _ = ends
    seen = []

    def act(emit: Emit, *, soon: bool) -> None:
        emit(replace(planned(), soon=soon))
        seen.append(ours.has_message())
        emit.rows(batch(0, 3))
        seen.append(ours.has_message())
        emit(Finished(3))

    for soon in (False, True):
        kinds = [type(event) for event in events(ends, Scripted(partial(act, soon=soon)))]
        assert kinds == [Planned, Rows, Finished]
    assert seen == [True, True, False, False]


def test_what_was_held_back_comes_before_an_error_and_before_rows_on_disk(ends: tuple[Channel, Channel]) -> None:
    def fails(emit: Emit) -> None:
        emit(replace(planned(), soon=True))
        emit.rows(batch(0, 3))
        raise UserError("DIVIDE_BY_ZERO", "no")

    assert [type(event) for event in events(ends, Scripted(fails))] == [Planned, Rows, Failed]

    def large(emit: Emit) -> None:
        emit(replace(planned(), soon=True))
        emit.rows(batch(0, 3))
        emit.rows(batch(3, 100_000))
        emit(Finished(100_003))

    with tempfile.TemporaryFile() as spool:
        ours, theirs = ends
        ours.send(SpoolGiven(7), os.dup(spool.fileno()))
        mailbox = OwnMailbox(theirs, 7)
        run_job(
            Scripted(large), theirs, START, RunJob(7, Statement("s", "x", SessionState("c", "s", "u", {}))), mailbox
        )
        kinds = [type(m.event) if isinstance(m, JobEvent) else type(m) for m in (ours.receive() for _ in range(5))]
    assert kinds == [Planned, Rows, SpoolWanted, Rows, Finished]


def test_empty_batches_are_not_sent_but_checked(ends: tuple[Channel, Channel]) -> None:
    def act(emit: Emit) -> None:
        emit(planned())
        emit.rows(batch(0, 0))
        emit(Finished(0))

    assert [type(e) for e in events(ends, Scripted(act))] == [Planned, Finished]


def test_a_cancel_is_seen_by_the_next_event_and_by_asking(ends: tuple[Channel, Channel]) -> None:
    ours, _ = ends
    ours.send(CancelJob(6))  # of a job that has ended: no news
    seen = []

    def act(emit: Emit) -> None:
        emit(planned())
        seen.append(emit.cancelled)
        ours.send(CancelJob(7))
        seen.append(emit.cancelled)
        emit.rows(batch(0, 1))

    found = events(ends, Scripted(act))
    assert seen == [False, True]
    assert isinstance(found[-1], Failed) and isinstance(found[-1].error, CanceledError)


def test_a_full_disk_is_a_lack_of_resources(ends: tuple[Channel, Channel], capfd: pytest.CaptureFixture[str]) -> None:
    def act(emit: Emit) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/wh/s/t")

    last = events(ends, Scripted(act))[-1]
    assert isinstance(last, Failed) and isinstance(last.error, ResourceError)
    assert (last.error.condition, last.error.sqlstate) == ("RESOURCE_EXHAUSTED", "53100")
    assert "no space left" in last.error.message and "/wh/s/t" in last.error.message
    assert capfd.readouterr().err == ""


def test_a_disk_that_fails_under_an_open_file_is_told(ends: tuple[Channel, Channel]) -> None:
    def act(emit: Emit) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    last = events(ends, Scripted(act))[-1]
    assert isinstance(last, Failed) and last.error.condition == "FAILED_READ_FILE"
    assert "Input/output error" in last.error.message


def test_an_error_carries_its_statement_and_place(ends: tuple[Channel, Channel]) -> None:
    def act(emit: Emit) -> None:
        raise UserError("PARSE_SYNTAX_ERROR", "Syntax error.", span=Span(7, 12))

    last = events(ends, Scripted(act), "SELECT wrong")[-1]
    assert isinstance(last, Failed)
    text = str(last.error)
    assert "(line 1, pos 7)" in text and "SELECT wrong\n       ^^^^^" in text
    assert str(from_wire(last.error.to_wire())) == text


def test_endless_recursion_is_a_clear_error(ends: tuple[Channel, Channel]) -> None:
    def act(emit: Emit) -> None:
        act(emit)

    last = events(ends, Scripted(act))[-1]
    assert isinstance(last, Failed) and last.error.condition == "STATEMENT_TOO_COMPLEX"


@pytest.mark.parametrize(("fits", "names"), [(True, ()), (False, ()), (True, ("gone",))])
def test_a_start_that_a_folder_spoils_is_no_fault(
    ends: tuple[Channel, Channel],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    fits: bool,
    names: tuple[str, ...],
) -> None:
    """One that was exchanged meanwhile, and that this process may not read, or that is gone."""

    def spoilt() -> Handler:
        raise OSError(errno.ENOENT, "No such file or directory", *names)

    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(worker, "refuse_lazy_free", lambda: True)
    monkeypatch.setattr(worker, "confine", lambda folders: SimpleNamespace(fits=lambda: fits))
    worker.serve(ends[1], Start(spoilt, 1, 1, folders=Folders((), "drafts")))
    assert isinstance(ends[0].receive(), NotReady)
    assert ("Traceback" in capfd.readouterr().err) is (fits and not names)


def test_a_worker_whose_parent_is_another_exits_at_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.run(
            [sys.executable, "-c", "from gateway.engine.worker import main; main()", str(theirs.fileno()), "1"],
            pass_fds=[theirs.fileno()],
            timeout=30,
            check=False,
        )
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("name", "usual", "other"), [("MIMALLOC_ALLOW_THP", "0", "1"), ("MIMALLOC_PURGE_DELAY", "200", "9")]
)
def test_a_worker_returns_memory_as_said_unless_the_operator_asks(
    monkeypatch: pytest.MonkeyPatch, name: str, usual: str, other: str
) -> None:
    for given, wanted in ((None, usual), (other, other)):
        if given is not None:
            monkeypatch.setenv(name, given)
        launched = Launched()
        try:
            variables = b""
            while not variables:  # empty until the new program is set up
                with open(f"/proc/{launched.process.pid}/environ", "rb") as file:
                    variables = file.read()
            values = dict(line.partition(b"=")[::2] for line in variables.split(b"\0"))
        finally:
            launched.socket.close()
            launched.process.wait(30)
        assert values[name.encode()] == wanted.encode()
        assert values[b"RUST_MIN_STACK"] == b"134217728"
