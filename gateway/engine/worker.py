"""A worker process: makes a handler, then runs jobs and sends their events; `pool` or `shared` starts and kills it.

It runs one job at a time, or, where its engine is shared (Spark), several in threads.

One thread (with a deep stack) reads jobs and runs them; a cancel request is seen when an event is sent or `cancelled` is
asked, by looking at the socket without waiting. Whatever does not look is killed from outside. A second thread waits for
the other end to hang up, beside the kernel's own signal on the parent's death, and sends what was held back for too long.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import pickle
import select
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pyarrow as pa

from gateway.engine.base import (
    Event,
    Failed,
    Finished,
    HandedOverError,
    Handler,
    NotBriefError,
    Planned,
    Planning,
    Rows,
    Statement,
    Yielded,
)
from gateway.engine.channel import (
    BeTemplate,
    CancelJob,
    Channel,
    JobEvent,
    NotReady,
    Ready,
    RunJob,
    SpoolGiven,
    SpoolWanted,
    Start,
)
from gateway.engine.confinement import OUTDATED, confine
from gateway.engine.forks import die_with_parent, fork_for
from gateway.engine.heap import refuse_lazy_free
from gateway.engine.mailbox import Mailbox, OwnMailbox, SharedMailbox
from gateway.engine.weight import weight
from gateway.errors import (
    CanceledError,
    ConfigError,
    GatewayError,
    ResourceError,
    ServerError,
    UserError,
    disk_full,
    is_disk_full,
)

MAX_BATCH_BYTES = 8 * 1024 * 1024
MAX_ROW_BYTES = 512 * 1024 * 1024
_STACK_BYTES = 256 * 1024 * 1024  # address space only; recursion in native planners needs it
_HELD_MILLISECONDS = 500


class JobEmit:
    """`engine.base.Emit` of one job; `byte_limit` as in `Statement`."""

    def __init__(
        self, channel: Channel, run_id: int, start: Start, mailbox: Mailbox, byte_limit: int | None = None
    ) -> None:
        self._channel = channel
        self._run_id = run_id
        self._mailbox = mailbox
        self._spool_limit = start.spool_limit
        self._inline_left = start.inline_bytes
        self._types: list[pa.DataType] | None = None
        self._checked: pa.Schema | None = None
        self._spool: int | None = None
        self._written = 0
        self._bytes_left = byte_limit
        self.has_enough = False
        self._sending = threading.Lock()
        self._held: list[JobEvent] | None = None  # of a statement whose end is near: sent with what follows
        self._plans = 1  # how many of what it does at once is planning
        self.finished: Finished | None = None

    def __call__(self, event: Event | Planning) -> None:
        self._stop_if_cancelled()
        if self.finished is not None:
            raise ServerError("INTERNAL_ERROR", f"The event {type(event).__name__} came after Finished.")
        if isinstance(event, Finished):
            self.finished = event  # sent when the handler has returned: only then is the worker free
            return
        if isinstance(event, Planned):
            self._plans = 0
            self._types = [field.type.arrow() for field in event.schema.fields]
            self._checked = None
            if event.soon:
                with self._sending:
                    self._held = [JobEvent(self._run_id, event)]
                    _holding.add(self)
                return
        elif isinstance(event, Planning):
            before = self._plans > 0
            self._plans += 1 if event.begins else -1
            if before == (self._plans > 0):
                return
        elif isinstance(event, (Rows, Failed)):
            raise ServerError("INTERNAL_ERROR", f"A handler may not emit {type(event).__name__} itself.")
        self._send(JobEvent(self._run_id, event))

    def rows(self, batch: pa.RecordBatch) -> None:
        """Deliver `batch`: inside messages while they are few bytes, then through the spool file."""
        self._stop_if_cancelled()
        self._check_schema(batch.schema)
        if batch.num_rows == 0:
            return
        step, heavy = batch.num_rows, weight(batch)
        if heavy > MAX_BATCH_BYTES:
            step = max(1, batch.num_rows * MAX_BATCH_BYTES // heavy)
        for start in range(0, batch.num_rows, step):
            part, held = batch, heavy
            if step < batch.num_rows:
                part = batch.slice(start, step)
                held = weight(part)
            if self.has_enough:
                return
            if start:
                self._stop_if_cancelled()
            if part.num_rows == 1 and held > MAX_ROW_BYTES:
                text = f"A row of the result takes {held >> 20} MiB, and may take {MAX_ROW_BYTES >> 20} MiB at most."
                raise ResourceError("RESULT_TOO_LARGE", text)
            self._deliver(part.num_rows, part.serialize(), held)

    @property
    def cancelled(self) -> bool:
        """Whether the front asked to stop; safe from any thread, never waits."""
        return self._mailbox.cancelled

    def end(self, event: Event) -> None:
        """Send the last event. Raises OSError if the front is gone."""
        try:
            self._send(JobEvent(self._run_id, event))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            traceback.print_exception(error)
            failure = ServerError("INTERNAL_ERROR", "The end of the statement cannot be sent to the server.")
            self._send(JobEvent(self._run_id, Failed(failure)))

    def close(self) -> None:
        """Close the spool file's descriptor, if there is one."""
        if self._spool is not None:
            os.close(self._spool)
            self._spool = None

    def _stop_if_cancelled(self) -> None:
        if self.cancelled:
            raise CanceledError("OPERATION_CANCELED", "The statement was cancelled.")

    def _deliver(self, count: int, message: pa.Buffer, held: int) -> None:
        if self._bytes_left is not None:
            # The front cuts the one that is too much, and shows by it that there were more.
            self.has_enough = message.size > self._bytes_left
            self._bytes_left -= message.size
        if self._spool is None and message.size <= self._inline_left:
            self._inline_left -= message.size
            self._send(JobEvent(self._run_id, Rows(count, data=message.to_pybytes(), weight=held)), may_wait=True)
            return
        self._inline_left = 0
        if self._written + message.size > self._spool_limit:
            raise ResourceError(
                "RESULT_TOO_LARGE",
                f"The result is larger than the {self._spool_limit} bytes that one statement may spool.",
            )
        if self._spool is None:
            self._send(SpoolWanted(self._run_id))
            self._spool = self._mailbox.wait_for_spool()
            self._stop_if_cancelled()
        self._write(message)
        self._send(JobEvent(self._run_id, Rows(count, offset=self._written, length=message.size, weight=held)))
        self._written += message.size

    def _send(self, message: JobEvent | SpoolWanted, may_wait: bool = False) -> None:
        """Send `message` behind what is held back, or hold it back, too."""
        with self._sending:
            held = self._held
            if held is None:
                self._channel.send(message)
            elif may_wait and isinstance(message, JobEvent):
                held.append(message)
            else:
                self._channel.send_together((*held, message))
                self._hold_no_more()

    def send_held(self) -> None:
        """Send what is held back: its end is not so near."""
        with self._sending:
            if self._held is not None:
                self._channel.send_together(self._held)
                self._hold_no_more()

    def _hold_no_more(self) -> None:
        self._held = None
        _holding.discard(self)

    def _write(self, message: pa.Buffer) -> None:
        assert self._spool is not None
        view = memoryview(message)
        done = 0
        try:
            while done < len(view):
                done += os.pwrite(self._spool, view[done:], self._written + done)
        except OSError as error:
            if is_disk_full(error) or error.errno == errno.EFBIG:
                raise ResourceError(
                    "RESULT_TOO_LARGE", f"The result does not fit on the spool disk: {error.strerror}."
                ) from error
            text = f"The spool file cannot be written: {error.strerror}."
            raise ServerError("WRITE_FAILED", text, retryable=True) from error

    def _check_schema(self, schema: pa.Schema) -> None:
        if self._checked is not None and schema.equals(self._checked):
            return
        if self._types is None:
            raise ServerError("INTERNAL_ERROR", "Rows came before the statement's schema.")
        if len(schema) != len(self._types):
            raise ServerError(
                "INTERNAL_ERROR", f"The engine delivered {len(schema)} columns where {len(self._types)} were planned."
            )
        for field, wanted in zip(schema, self._types, strict=True):
            if not _same_layout(field.type, wanted):
                raise ServerError(
                    "INTERNAL_ERROR",
                    f"The engine delivered column {field.name} as {field.type} where {wanted} was planned.",
                )
        self._checked = schema


_holding: set[JobEmit] = set()  # those that hold messages back


def _same_layout(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a batch with `found` reads rightly as `wanted`: names and nullability of children do not matter."""
    if found.id != wanted.id:
        return False
    if pa.types.is_nested(wanted):
        return found.num_fields == wanted.num_fields and all(
            _same_layout(found.field(i).type, wanted.field(i).type) for i in range(wanted.num_fields)
        )
    return bool(found.equals(wanted))


def run_job(handler: Handler, channel: Channel, start: Start, run: RunJob, mailbox: Mailbox) -> None:
    """Run one job and send its events, ending in exactly one last one. Raises OSError if the front is gone."""
    limit = run.job.byte_limit if isinstance(run.job, Statement) else None
    emit = JobEmit(channel, run.run_id, start, mailbox, limit)
    last: Event
    try:
        handler.run(run.job, emit)
        last = emit.finished or Failed(ServerError("INTERNAL_ERROR", "The handler returned without Finished."))
    except HandedOverError as error:
        last = Failed(error.error, error.handover)
    except NotBriefError:
        last = Yielded()
    except BaseException as error:  # noqa: BLE001 - the border of the process: everything becomes a value, panics too
        last = Failed(_as_gateway_error(error))
    finally:
        emit.close()
    if isinstance(last, Failed) and isinstance(run.job, Statement):
        last.error.statement = run.job.text
    emit.end(last)


def _as_gateway_error(error: BaseException) -> GatewayError:
    if isinstance(error, GatewayError):
        return error
    if isinstance(error, RecursionError):
        return UserError("STATEMENT_TOO_COMPLEX", "The statement is nested too deeply.")
    if is_disk_full(error):
        where = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
        return disk_full(f"There is no space left on a disk that the statement writes to{where}.")
    if isinstance(error, OSError) and error.filename:  # gone, or something else, since it was looked at
        return ServerError("FAILED_READ_FILE", f"{error.filename} cannot be used: {error.strerror}.")
    traceback.print_exception(error)
    if isinstance(error, OSError) and error.errno is not None:  # of a file that was open already
        return ServerError("FAILED_READ_FILE", f"A file that the statement uses cannot be read: {error.strerror}.")
    if type(error).__name__ == "PanicException":  # pyo3's, no Exception and nowhere to import from
        return ServerError("INTERNAL_ERROR", "The engine gave up at this statement; see the server's log.")
    if isinstance(error, MemoryError):
        return ResourceError("RESOURCE_EXHAUSTED", "The statement needs more memory than there is.")
    return ServerError(
        "INTERNAL_ERROR", f"The statement met an unexpected {type(error).__name__}; see the server's log."
    )


def serve(channel: Channel, start: Start) -> None:
    """Make the handler, then run jobs until the front hangs up."""
    gc.disable()  # nothing that is imported is garbage
    if start.threads > 1:  # Spark's client needs pandas
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _WithoutPandas)]
    elif not refuse_lazy_free():
        sys.stderr.write("worker: memory that is given back counts until the system needs it\n")
    confinement = confine(start.folders) if start.folders is not None else None
    if confinement is None and start.folders is not None:
        sys.stderr.write("worker: the system does not keep it to the folders that it may read (Landlock)\n")
    try:
        handler = start.handler_factory()
        handler.warm_up()
    except Exception as error:  # noqa: BLE001 - told to the front, which decides
        # It may not read what has come in a folder's place.
        outdated = confinement is not None and not confinement.fits()
        if isinstance(error, OSError) and error.filename is not None:
            sys.stderr.write(f"worker: it cannot start: {error.filename}: {error.strerror}\n")
        elif not outdated and not isinstance(error, ConfigError):
            traceback.print_exception(error)
        channel.send(NotReady.told(error))
        return
    gc.enable()
    gc.collect()
    gc.freeze()  # what is imported stays: later collections need not look at it
    channel.send(Ready())
    if start.threads > 1:
        _serve_many(channel, start, handler)
        return
    while (message := channel.receive()) is not None:
        if isinstance(message, RunJob):
            if confinement is not None and not confinement.fits():
                os._exit(OUTDATED)  # one that starts now can read what has come in a folder's place, and gets the job
            run_job(handler, channel, start, message, OwnMailbox(channel, message.run_id))
        elif not isinstance(message, CancelJob):  # a cancel that came after the end is no news
            raise ServerError("INTERNAL_ERROR", f"An idle worker was sent {type(message).__name__}.")


def _serve_many(channel: Channel, start: Start, handler: Handler) -> None:
    """Run jobs side by side, at most `start.threads` at once (the front sends no more), until the front hangs up."""
    mailboxes: dict[int, SharedMailbox] = {}
    with ThreadPoolExecutor(start.threads, "job") as threads:

        def run(message: RunJob) -> None:
            try:
                run_job(handler, channel, start, message, mailboxes[message.run_id])
            except OSError:
                os._exit(0)  # the front is gone
            finally:
                mailboxes.pop(message.run_id).close()

        while (message := channel.receive()) is not None:
            if isinstance(message, RunJob):
                mailboxes[message.run_id] = SharedMailbox()
                threads.submit(run, message)
                continue
            mailbox = mailboxes.get(message.run_id)
            if isinstance(message, SpoolGiven):
                descriptor = channel.take_descriptor()
                if mailbox is None:
                    os.close(descriptor)
                else:
                    mailbox.give_spool(descriptor)
            elif mailbox is not None:  # else the job has ended meanwhile
                mailbox.cancel()
        os._exit(0)  # the front is gone: no job is worth waiting for


def _exit_on_hangup(descriptor: int) -> NoReturn:
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    while not poll.poll(_HELD_MILLISECONDS):
        for emit in list(_holding):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the front is gone, as is seen next
                emit.send_held()
    os._exit(0)


def _prefer_for_oom() -> None:
    """Under memory pressure the kernel shall take workers, never the front."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError as error:
        sys.stderr.write(f"worker: oom_score_adj cannot be set: {error}\n")


def _in_deep_thread(target: Callable[[], None]) -> None:
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=target, name="jobs", daemon=True)
    thread.start()
    threading.stack_size(0)
    thread.join()


class _WithoutPandas:
    """Keeps pandas out of the process: pyarrow imports it at the first value where it is installed (1 s, 60 MiB), unused."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas" or name.startswith("pandas."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> NoReturn:
    """Entry of the process: argv holds the socket's descriptor and the parent's process id."""
    descriptor, parent = int(sys.argv[-2]), int(sys.argv[-1])
    die_with_parent(parent)
    os.dup2(2, 1)  # whatever a library prints must not mix with the front's output
    sys.meta_path.insert(0, _WithoutPandas())
    channel = Channel(socket.socket(fileno=descriptor))
    gc.disable()  # nothing that is imported is garbage
    start = channel.receive()
    if isinstance(start, BeTemplate):
        channel, start = fork_for(channel), start.start
    if start is None:  # the front is gone
        os._exit(0)
    _work(channel, start)


def _work(channel: Channel, start: Start) -> NoReturn:
    """Run jobs, then end the process."""
    descriptor = channel.fileno()
    _prefer_for_oom()
    threading.Thread(target=_exit_on_hangup, args=(descriptor,), name="hangup", daemon=True).start()
    code = 1

    def jobs() -> None:
        nonlocal code
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the front is gone: nobody is left to be told
            serve(channel, start)
        code = 0

    _in_deep_thread(jobs)
    sys.stderr.flush()
    os._exit(code)  # no teardown: an open engine stream would abort the process
