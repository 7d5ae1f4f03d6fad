"""An operation: one statement or metadata call from its acceptance until its client lets go of it.

Its state moves only along `lifecycle.TRANSITIONS`. It takes in the worker's events (it is the pool's sink), keeps the rows
in a spool, and has the cursor that FetchResults moves (`cursor`). A result is complete when the state is FINISHED; fetches may
come before.

A large result can be fetched while it is made: once `STREAMING_BYTES` of it are there, clients are told FINISHED, so that they
start to fetch; the state itself stays RUNNING until the last row, so that timeouts and cancels hold, and a later error is that
of a fetch (HiveServer2 with incremental results does the same). The Python connector takes such an error for a lesser one than
that of a statement, so a result of which a row can fail is complete before it is shown (`Planned.streams`).

Cancelling, timing out and closing change the state at once; the slot is given back when the work has really stopped
(`Listener.stopped`). What has ended cannot be cancelled any more: the request is then without effect.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from gateway.engine.base import (
    Event,
    Finished,
    Handover,
    Job,
    Planned,
    Progress,
    Rows,
    Statement,
    Waiting,
    Writing,
    Yielded,
)
from gateway.errors import CanceledError, GatewayError, ServerError, from_wire
from gateway.results.spool import Spool
from gateway.service import holdings
from gateway.service.admission import Place
from gateway.service.api import ENDS, OperationStatus, Orientation, Outcome, Page, ResultMetadata, State
from gateway.service.cursor import LINK_BYTES, LINKED_BYTES, STREAMING_BYTES, Asked, Cursor, PageLimits
from gateway.service.lifecycle import TRANSITIONS, Times
from gateway.service.operation_log import OperationLog
from gateway.service.purposes import Purpose, nothing_to_do, time_zone
from gateway.service.result_cache import Answer
from gateway.service.session import Session, new_handle, text_of
from gateway.sqltypes import StructType, struct

_KEPT = "the same statement was answered before, and what it reads has not changed"


class Run(Protocol):
    """A job that a pool works on."""

    def cancel(self, error: GatewayError | None = None) -> None: ...


class Listener(Protocol):
    """What the service does when an operation moves on; called without the operation's lock."""

    def ended(self, operation: Operation) -> None:
        """The state has become one of `ENDS`; called once."""

    def stopped(self, operation: Operation) -> None:
        """No process works on it any more, so that its slot is free; called at least once."""

    def yielded(self, operation: Operation) -> None:
        """It began beside the slots, is not short, and waits for one now."""

    def grown(self, operation: Operation) -> None:
        """More of its rows are on disk."""

    def kills(self, operation: Operation, identifier: str) -> None:
        """It has asked for the end of a statement. Raises GatewayError."""


class Operation:
    """One operation; also the `engine.runs.Sink` of its job. All methods are safe from many threads."""

    def __init__(
        self,
        session: Session,
        purpose: Purpose,
        listener: Listener,
        clock: Callable[[], float],
        timeout: float | None,
        spool_directory: Path,
    ) -> None:
        self.handle = new_handle()
        self.id = text_of(self.handle)
        self.session = session
        self.purpose = purpose
        self.state = State.INITIALIZED
        self.ended_as = State.CLOSED  # the first of `ENDS` that it reaches: what has ended may be closed at once
        self.error: GatewayError | None = None
        self.planned: Planned | None = None
        self.handover: Handover | None = None
        self.finished: Finished | None = None
        self.progress = Progress(None, "")
        self.log = OperationLog()
        now = clock()
        self.times = Times(accepted=now)
        self.timeout = timeout
        self.deadline = None if timeout is None else now + timeout
        self.touched = now
        self.left = False  # its client has closed it, and goes on to read
        self.place: Place | None = None
        self.key: Hashable | None = None  # what its answer may be kept by
        self.held = self.on_disk = 0  # see `holdings`, with the service's lock held
        self._listener = listener
        self._clock = clock
        self._spool_directory = spool_directory
        lock = threading.RLock()
        self._changed = threading.Condition(lock)  # rows may be fetched, or it has ended
        self._known = threading.Condition(lock)  # the result's shape is, or it has ended
        self._time_zone = ""
        self._writes = False
        self._job: Job | None = None
        self._run: Run | None = None
        self._spool: Spool | None = None
        self._fetching = threading.Lock()
        self._cursor = Cursor(self.handle.guid, self._check_readable)
        self._streams = False  # enough rows of a large result are there for clients to begin
        self._linked: bool | None = None  # whether clients get links instead of rows; None: nobody has asked yet

    def queue(self) -> None:
        """It was accepted and waits, unless it runs or has ended already."""
        with self._changed:
            if self.state is State.INITIALIZED:
                self._move(State.PENDING)
                self.log.add(f"Statement {self.id} waits for a slot")

    def begin(self) -> Job | None:
        """It has a slot: the job to run, or None if it has ended meanwhile."""
        with self._changed:
            if self.state in ENDS:
                return None
            job = self.purpose.make_job(self.id)
            if isinstance(job, Statement):
                self.key = job.key if self.purpose.byte_limit is None else None
                if self.place is not None and self.place.brief:
                    job = replace(job, brief=True)
            self._job = job
            self._time_zone = time_zone(job)
            self._move(State.RUNNING)
            self.times.admitted = self._clock()
            waited = self.times.admitted - self.times.accepted
            self.log.add(f"Statement {self.id} runs, after {waited:.3f} s in the queue")
            return job

    def replay(self, answer: Answer) -> None:
        """It needs no slot: the same statement was answered before."""
        if self.begin() is None:
            return
        self.key = None  # it is kept already
        for event in answer.events():
            self.event(event)

    def answer(self) -> Answer | None:
        """What may be kept of it for the same statement: None if it has not finished with all rows in memory."""
        with self._changed:
            spool, planned, finished = self._spool, self.planned, self.finished
            if self.state is not State.FINISHED or spool is None or planned is None or finished is None:
                return None
            parts = spool.whole()
        return (
            None
            if parts is None
            else Answer(
                replace(planned, engine="cache", reason=_KEPT),
                parts,
                Finished(finished.rows, facts={"origin_id": self.id}),
            )
        )

    def attach(self, run: Run, job: Job) -> None:
        """The pool works on `job`, which `begin` gave; if the operation has ended or begun anew meanwhile, no longer."""
        with self._changed:
            ended = self.state in ENDS
            if not ended and job is self._job:
                self._run = run
            stop = ended and self.state is not State.FINISHED
        if stop:
            run.cancel(self.error)

    def stop(self, state: State, error: GatewayError) -> bool:
        """End it early in `state` (CANCELED, TIMEDOUT, ERROR, CLOSED) with `error`; False if it has ended already."""
        with self._changed:
            waited = self.state in (State.INITIALIZED, State.PENDING)
            if self.state in ENDS or not self._move(state, error):
                return False
            self.log.add(f"{state.value}: {error.message}", "WARN")
            if self._writes:
                error.message = f"{error.message.rstrip('.')}; its write may or may not have been committed."
            run = self._run
        self._free()
        if run is not None:
            run.cancel(error)
        elif waited:
            self._listener.stopped(self)
        self._listener.ended(self)
        return True

    def forget_request(self) -> None:
        """Let go of what was asked and told, which nobody needs of an operation that has ended and is recorded."""
        with self._changed:
            self._run = self._job = self.key = None
            self.purpose = replace(self.purpose, make_job=nothing_to_do, text="", parameters=())
            if self.finished is not None:
                self.finished = replace(self.finished, changes=(), facts={})
            if self.planned is not None:
                self.planned = replace(self.planned, witnesses=None)

    @property
    def weight(self) -> int:
        """About how many bytes of memory an ended one keeps."""
        error = self.error
        told = 0 if error is None else holdings.weight((error.message, error.statement or ""))
        columns = 0 if self.planned is None else len(self.planned.schema.fields)
        shape = holdings.weight((self.planned, self.handover)) + columns * holdings.COLUMN
        return holdings.OPERATION + told + shape + self.bytes[0]

    def close(self) -> None:
        """End it if it runs, and free everything. Idempotent."""
        if not self.stop(State.CLOSED, _closed()):
            with self._changed:
                self._move(State.CLOSED)
            self._free()
        with self._changed:  # it is part of a cycle, which is collected some time: what may be long goes now
            if self.planned is not None:
                self.planned = replace(self.planned, reason="", schema=struct())

    def wait(self, seconds: float) -> State:
        """The state as clients are told; until it is one of `ENDS`, waits up to `seconds`."""
        with self._changed:
            if seconds > 0 and self._shown not in ENDS:
                self._changed.wait_for(lambda: self._shown in ENDS, seconds)
            return self._shown

    @property
    def _shown(self) -> State:
        return State.FINISHED if self._streams and self.state is State.RUNNING else self.state

    def status(self) -> OperationStatus:
        """A snapshot."""
        with self._changed:
            return OperationStatus(
                handle=self.handle,
                operation_type=self.purpose.operation_type,
                state=self._shown,
                error=self.error,
                modified_rows=self.finished.modified_rows if self.finished is not None else None,
                started_ms=self.times.started_ms,
                completed_ms=self.times.completed_ms,
                progress_text=self.stage,
                progress_fraction=1.0 if self._shown is State.FINISHED else self.progress.fraction,
                protocol=self.session.protocol,
                writes=self._writes,
            )

    @property
    def stage(self) -> str:
        """What it does now, in words."""
        if self.state is not State.PENDING or self.progress.text:
            return self.progress.text
        position = None if self.place is None else self.place.position()
        return "Waiting for a slot" + (f": {position[0]} of {position[1]} in the queue" if position is not None else "")

    def _move(self, state: State, error: GatewayError | None = None) -> bool:
        if state not in TRANSITIONS[self.state]:
            return False
        was_ended = self.state in ENDS
        self.state = state
        if error is not None:
            self.error = error
        if state in ENDS and not was_ended:
            self.ended_as = state
            self.times.ended = self.touched = self._clock()
            self._changed.notify_all()
            self._known.notify_all()
        return True

    def _free(self) -> None:
        spool = self._spool
        if spool is not None:
            spool.close()

    def event(self, event: Event) -> None:
        """Take in an event of the job; those that come after the end are dropped."""
        if isinstance(event, Rows):
            spool = self._spool
            if spool is None:
                if self.state in ENDS:  # it ended before it was planned
                    return
                raise ServerError("INTERNAL_ERROR", "Rows came before the statement's schema.")
            if self.times.first_row is None:
                self.times.first_row = self._clock()
            spool.append(event)
            if event.data is None:
                self._listener.grown(self)
            if not self._streams and self._may_stream(spool):
                with self._changed:
                    self._streams = True
                    self._changed.notify_all()
        elif isinstance(event, Planned):
            self._plan(event)
        elif isinstance(event, Progress):
            self._resume()
            self.progress = event
            self.log.add(_progress_line(event))
        elif isinstance(event, Waiting):
            self._wait_for_engine(event)
        elif isinstance(event, Writing):
            self._resume()
            self._writes = True
        elif isinstance(event, Yielded):
            self._yield()
        else:
            try:
                if isinstance(event, Finished):
                    self._finish(event)
                else:
                    self._fail(event.error)
            finally:
                self._listener.stopped(self)

    def _may_stream(self, spool: Spool) -> bool:
        planned = self.planned
        pages = self.purpose.options.files is None  # files are counted before the first is given
        return pages and planned is not None and planned.streams and sum(spool.bytes) >= STREAMING_BYTES

    def spool_descriptor(self) -> int:
        """A descriptor of the file for rows."""
        spool = self._spool
        if spool is None:
            raise ServerError("INTERNAL_ERROR", "A file for rows was asked for before the statement's schema.")
        return spool.descriptor()

    def _wait_for_engine(self, event: Waiting) -> None:
        """It gives its slot back: another engine will run it, which counts for itself."""
        with self._changed:
            self.progress = Progress(None, event.text)
            self.handover = event.handover
            self._move(State.PENDING)
            if event.handover is not None:
                self.log.add(f"Goes to {event.handover.engine}: {event.handover.reason}")
            self.log.add(event.text)
        self._listener.stopped(self)

    def _yield(self) -> None:
        with self._changed:
            waits = self._move(State.PENDING)
            self._run = self._job = None
            self.log.add("It is not short: it waits for a slot")
        if waits:
            self._listener.yielded(self)
        else:
            self._listener.stopped(self)

    def _resume(self) -> None:
        with self._changed:
            if self.state is State.PENDING:
                self._move(State.RUNNING)

    def _plan(self, planned: Planned) -> None:
        self._resume()
        with self._changed:
            if self.state in ENDS:
                return
            self._writes |= planned.writes
            self.log.add(f"{planned.statement_type} on {planned.engine}: {planned.reason}")
            changed = self.planned is not None and _shape(self.planned.schema) != _shape(planned.schema)
            if self.planned is not None:  # the shape that clients were told stays, whoever delivers it
                self.planned = replace(planned, schema=self.planned.schema)
            if self._spool is None:
                self.planned = planned
                self.times.planned = self._clock()
                self._spool = Spool(
                    arrow_schema(planned.schema), self._spool_directory, self.purpose.row_limit, self.purpose.byte_limit
                )
                self._known.notify_all()
        if changed:  # run again by another process or engine, while somebody changed a table
            text = "The engine process was lost, and the result has another shape by now."
            self.stop(State.ERROR, ServerError("WORKER_LOST", text, retryable=True))

    def _finish(self, finished: Finished) -> None:
        failure = self._killing(finished)  # takes the locks of others
        with self._changed:
            if self.state in ENDS:
                return
            if self.state is State.PENDING:
                self._move(State.RUNNING)
            if self._spool is None:
                failure = ServerError("INTERNAL_ERROR", "The statement ended without a schema.")
            elif failure is None:
                try:
                    self.session.apply(finished.changes)
                except GatewayError as error:
                    failure = error
            if failure is None and self._spool is not None:
                self.finished = finished
                self._spool.end()
                self._move(State.FINISHED)
                self.log.add(self._end_line(finished))
        if failure is not None:
            self._fail(failure)
        else:
            self._listener.ended(self)

    def _killing(self, finished: Finished) -> GatewayError | None:
        """End the statements that this one was told to end; what went wrong."""
        if self.state in ENDS:
            return None
        for change in finished.changes:
            if change.kind == "kill":
                try:
                    self._listener.kills(self, change.name)
                except GatewayError as error:
                    return error
        return None

    def _fail(self, error: GatewayError) -> None:
        with self._changed:
            moved = self.state not in ENDS and self._move(State.ERROR, error)
            if moved:
                self.log.add(error.text(), "ERROR")
        if moved:
            self._free()
            self._listener.ended(self)

    def _end_line(self, finished: Finished) -> str:
        seconds = self._clock() - self.times.accepted
        if finished.modified_rows is not None:
            return f"{finished.modified_rows} rows written in {seconds:.3f} s"
        return f"{self.rows} rows in {seconds:.3f} s"

    def metadata(self) -> ResultMetadata:
        """Shape of the result; waits until it is known, and how large it is if that matters. Raises the operation's error."""
        with self._changed:
            self._known.wait_for(lambda: self.planned is not None or self.state in ENDS)
            if self._linked is None:
                self._linked = self._is_linked()
            self._raise_failure()
            assert self.planned is not None
            return ResultMetadata(
                schema=self.planned.schema,
                options=self.purpose.options,
                protocol=self.session.protocol,
                time_zone=self._time_zone,
                is_query=self.planned.is_query,
                is_metadata=self.purpose.is_metadata,
                linked=self._linked,
                is_staging=self.planned.is_staging,
            )

    def _is_linked(self) -> bool:
        """With the lock held: waits until clients may fetch; then what is there tells whether the result is large."""
        options = self.purpose.options
        if not (options.links and options.arrow) or self.planned is None or not self.planned.is_query:
            return False
        self._changed.wait_for(lambda: self._shown in ENDS)
        return self._spool is not None and sum(self._spool.bytes) >= LINKED_BYTES

    def fetch(
        self, orientation: Orientation, max_rows: int, max_bytes: int | None, offset: int | None, limits: PageLimits
    ) -> Page:
        """A page; waits for its first row or the end of the result. Raises the operation's error.

        NEXT goes on where the last page ended, PRIOR ends where it began, RELATIVE skips `offset` rows from where it
        ended; ABSOLUTE and NEXT with an `offset` start there, but NEXT with 0 goes on until another row was named with it;
        LAST waits for the end. The same page asked for again holds the same rows.
        """
        rows = min(max_rows, limits.max_rows) if max_rows > 0 else limits.default_rows
        size = min(max_bytes, limits.max_bytes) if max_bytes is not None and max_bytes > 0 else limits.default_bytes
        with self._fetching:
            metadata = self.metadata()
            assert self._spool is not None
            return self._cursor.page(metadata, self._spool, Asked(orientation, rows, size, offset))

    def outcome(self) -> Outcome:
        """The complete result. Raises the operation's error, and ServerError before its end."""
        metadata = self.metadata()
        spool = self._spool
        with self._changed:
            self._raise_failure()
            if self.state is not State.FINISHED or spool is None:
                raise ServerError("INTERNAL_ERROR", "A result was asked for before its end.")
        self._linked = True  # whoever is told where the pieces are may come for them
        return Outcome(metadata, spool.pieces(0, None, LINK_BYTES, sys.maxsize), spool.truncated)

    def piece(self, start: int, count: int, size: int = sys.maxsize) -> Page:
        """The rows of a link, as far as they fit into `size` bytes. Raises the operation's error."""
        metadata = self.metadata()
        spool = self._spool
        assert spool is not None
        try:
            parts = spool.read(start, count, size)
        except ServerError:
            self._check_readable()  # the reason why the spool is gone
            raise
        return Page(start, parts, has_more_rows=False, metadata=metadata, operation=self.handle.guid)

    @property
    def unread_rows(self) -> bool:
        """Whether a finished result has rows that were never fetched, or links that may be followed."""
        spool = self._spool
        unread = spool is not None and (bool(self._linked) or self._cursor.next_row < spool.rows)
        return self.state is State.FINISHED and unread

    @property
    def is_read_on(self) -> bool:
        """Whether its client goes on to read rows that it has not been given yet, or links, when it has closed it."""
        spool = self._spool
        if not self.purpose.options.reads_on or spool is None or self._shown is not State.FINISHED:
            return False
        return self.unread_rows or not spool.ended

    @property
    def rows(self) -> int:
        """Rows of the result so far."""
        return self._spool.rows if self._spool is not None else 0

    @property
    def bytes(self) -> tuple[int, int]:
        """Bytes that it holds in memory and on disk."""
        return self._spool.bytes if self._spool is not None else (0, 0)

    def _check_readable(self) -> None:
        with self._changed:
            self._raise_failure()

    def _raise_failure(self) -> None:
        """With the lock held: raise unless rows can be read."""
        if self.state in (State.CANCELED, State.ERROR, State.TIMEDOUT, State.CLOSED):
            error = self.error or _closed()
            raise from_wire(error.to_wire())  # a new one: an exception that is raised again grows


def _progress_line(progress: Progress) -> str:
    if progress.fraction is None:
        return progress.text
    return f"{progress.text or 'Done'}: {progress.fraction:.0%}"


def _closed() -> GatewayError:
    return CanceledError("OPERATION_CANCELED", "The operation was closed.")


# Parameters whose types no literal has (`CAST(NULL AS INT)`, `CAST(1.50 AS DECIMAL(10,2))`) are spelt so for Spark alone.
_TYPED_CONSTANT = re.compile(r"CAST\((-?[\w.]+) AS [A-Z_ ]+(?:\(\d+,\d+\))?\)")


def _shape(schema: StructType) -> list[tuple[str, str]]:
    """What two engines must agree on: names and types; whether a value may be NULL they know differently well."""
    return [(_TYPED_CONSTANT.sub(r"\1", f.name), f.type.simple) for f in schema.fields]


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a result's record batches."""
    fields: list[Any] = [pa.field(f.name, f.type.arrow(), f.nullable) for f in schema.fields]
    return pa.schema(fields)
