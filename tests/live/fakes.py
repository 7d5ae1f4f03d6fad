"""Fakes for tests of everything around engines: a handler that does what the statement's text says, a pool moved by hand.

For `FakeHandler` a statement is steps joined by ``;``. Each is a word and arguments: see `STEPS`. Unless the first step is
``plan``, ``write`` or ``unplanned``, the statement is planned first as a query with the columns ``id BIGINT, text STRING``.
Finished follows the last step.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from gateway.engine.base import (
    Emit,
    Failed,
    Finished,
    Job,
    MetadataCall,
    Planned,
    Planning,
    Progress,
    Rows,
    SessionChange,
    Writing,
    Yielded,
)
from gateway.engine.runs import Sink
from gateway.errors import CanceledError, GatewayError, ServerError, UserError
from gateway.sqltypes import BIGINT, STRING, StructField, struct

SCHEMA = struct(StructField("id", BIGINT), StructField("text", STRING))
_BATCH_ROWS = 8192


def batch(start: int, count: int, width: int = 0) -> pa.RecordBatch:
    """Rows `start` .. with their number as `id` and as `text` (padded to `width`)."""
    ids = range(start, start + count)
    return pa.record_batch(
        {"id": pa.array(ids, pa.int64()), "text": pa.array([str(i).rjust(width, ".") for i in ids], pa.string())}
    )


@dataclass
class _Run:
    emit: Emit
    job: Job
    rows: int = 0
    changes: list[SessionChange] = field(default_factory=list)


def _plan(run: _Run) -> None:
    run.emit(Planned("SELECT", "fake", "told so", SCHEMA, streams=True))


def _soon(run: _Run) -> None:
    run.emit(Planned("SELECT", "fake", "told so", SCHEMA, soon=True))


def _write(run: _Run) -> None:
    run.emit(Planned("INSERT", "fake", "told so", SCHEMA, writes=True, is_query=False))


def _writing(run: _Run) -> None:
    run.emit(Writing())


def _rows(run: _Run, count: str, size: str = str(_BATCH_ROWS), width: str = "0") -> None:
    stop = run.rows + int(count)
    while run.rows < stop:
        step = min(int(size), stop - run.rows)
        run.emit.rows(batch(run.rows, step, int(width)))
        run.rows += step


def _sleep(run: _Run, seconds: str) -> None:
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end and not run.emit.cancelled:
        time.sleep(0.005)
    run.emit(Progress(None, "slept"))


def _until(run: _Run, mark: str) -> None:
    while not os.path.exists(mark):
        time.sleep(0.005)


def _busy(run: _Run, seconds: str) -> None:
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:  # looks at nothing, so that no cancel is seen
        continue


def _die(run: _Run) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit(run: _Run, code: str) -> None:
    os._exit(int(code))


def _die_once(run: _Run, path: str) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    _die(run)


def _allocate(run: _Run, mebibytes: str) -> None:
    held = bytearray(os.urandom(1 << 20)) * int(mebibytes)
    _sleep(run, "30")
    del held


def _haunt(run: _Run, seconds: str) -> None:
    """A thread that goes on computing when the job has ended."""

    def work() -> None:
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            pass

    threading.Thread(target=work, daemon=True).start()


def _fail(run: _Run, condition: str = "DIVIDE_BY_ZERO") -> None:
    raise UserError(condition, "Division by zero.")


def _bug(run: _Run) -> None:
    raise ValueError("a bug in the handler")


def _progress(run: _Run, fraction: str) -> None:
    run.emit(Progress(float(fraction), "working"))


def _use(run: _Run, catalog: str, schema: str) -> None:
    run.changes.append(SessionChange("use", catalog, schema))


def _set(run: _Run, name: str, value: str) -> None:
    run.changes.append(SessionChange("set", name, value))


def _show(run: _Run) -> None:
    """One row: where the session is and what is set."""
    session = run.job.session
    text = f"{session.catalog}.{session.schema} {sorted(session.settings.items())} {sorted(session.views)}"
    run.emit.rows(pa.record_batch({"id": pa.array([os.getpid()], pa.int64()), "text": pa.array([text])}))
    run.rows += 1


STEPS: dict[str, Callable[..., None]] = {
    "plan": _plan,
    "soon": _soon,
    "write": _write,
    "writing": _writing,
    "unplanned": lambda run: None,
    "planning": lambda run: run.emit(Planning(True)),
    "computing": lambda run: run.emit(Planning(False)),
    "rows": _rows,  # count, rows per batch, width of the text
    "sleep": _sleep,  # seconds; stops when asked
    "until": _until,  # path of a mark
    "busy": _busy,  # seconds; never asks
    "haunt": _haunt,  # seconds
    "die": _die,
    "exit": _exit,  # exit code
    "die_once": _die_once,  # path of a mark
    "allocate": _allocate,  # MiB
    "fail": _fail,
    "bug": _bug,
    "progress": _progress,
    "use": _use,
    "set": _set,
    "show": _show,
}


@dataclass(frozen=True)
class FakeHandler:
    """The handler; `warm_seconds` is how long it takes to get ready, `broken` that it cannot."""

    warm_seconds: float = 0.0
    broken: bool = False

    def __call__(self) -> FakeHandler:
        """Serves as its own factory."""
        return self

    def warm_up(self) -> None:
        """Sleep, or fail."""
        if self.broken:
            raise RuntimeError("told to be broken")
        time.sleep(self.warm_seconds)

    def run(self, job: Job, emit: Emit) -> None:
        """Follow the text; a metadata call gives one row with its kind."""
        run = _Run(emit, job)
        steps = ["plan", "rows 1"] if isinstance(job, MetadataCall) else [s.strip() for s in job.text.split(";")]
        if steps[0].split()[0] not in ("plan", "soon", "write", "unplanned"):
            _plan(run)
        for step in steps:
            word, *arguments = step.split()
            STEPS[word](run, *arguments)
        emit(Finished(run.rows, changes=tuple(run.changes)))


class FakePool:
    """A pool without processes: nothing happens to a job until a test says so."""

    def __init__(self) -> None:
        self.runs: list[FakeRun] = []
        self.stopped = False
        self.free = True
        self.refusal: GatewayError | None = None  # what `submit` raises, if anything

    def submit(self, job: Job, sink: Sink) -> FakeRun:
        """Keep the job in `runs`."""
        if self.refusal is not None:
            raise self.refusal
        self.runs.append(FakeRun(job, sink))
        return self.runs[-1]

    def stop(self) -> None:
        """End every job as the real pool does."""
        self.stopped = True
        for run in self.runs:
            run.fail(run.cancelled or ServerError("WORKER_LOST", "The server is shutting down."))


class FakeRun:
    """A job in a `FakePool`; `cancelled` is the error of a cancel request."""

    def __init__(self, job: Job, sink: Sink) -> None:
        self.job = job
        self.sink = sink
        self.cancelled: GatewayError | None = None
        self.over = False
        self.rows = 0

    def cancel(self, error: GatewayError | None = None) -> None:
        """Note the request; the job stops when the test says so."""
        self.cancelled = self.cancelled or error or CanceledError("OPERATION_CANCELED", "cancelled")

    def plan(self, writes: bool = False) -> None:
        """The job is planned."""
        word = "INSERT" if writes else "SELECT"
        self.sink.event(Planned(word, "fake", "told so", SCHEMA, writes=writes, streams=not writes))

    def deliver(self, count: int) -> None:
        """The next `count` rows are there."""
        self.sink.event(Rows(count, batch(self.rows, count).serialize().to_pybytes()))
        self.rows += count

    def finish(self, *changes: SessionChange) -> None:
        """The job has ended well, unless it was cancelled or is over."""
        if self.cancelled is not None:
            self.fail(self.cancelled)
        elif not self.over:
            self.over = True
            self.sink.event(Finished(self.rows, changes=changes))

    def give_back(self) -> None:
        """The job is not short, unless it was cancelled or is over."""
        if self.cancelled is not None:
            self.fail(self.cancelled)
        elif not self.over:
            self.over = True
            self.sink.event(Yielded())

    def fail(self, error: GatewayError) -> None:
        """The job has ended with `error`, unless it is over."""
        if not self.over:
            self.over = True
            self.sink.event(Failed(error))
