"""Two engines behind one `submit`: what the first hands over, or has no memory for, runs on the second.

The decision is made in the first engine's process (`planner`), which compiled the statement; it arrives here as the
`Handover` of a Failed. Only a shortage of memory is judged here, because the process that could tell may be dead; and whether
the second engine has time to confirm an error.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Protocol

from gateway import observability
from gateway.engine.base import Event, Failed, Finished, Handover, Job, Planned, Rows, Statement, Writing
from gateway.engine.pool import WorkerPool
from gateway.engine.runs import Sink
from gateway.engine.shared import SharedPool
from gateway.errors import CanceledError, GatewayError, ResourceError, UnsupportedError, UserError, is_disk_full

_MEMORY = "RESOURCE_EXHAUSTED"
_NO_SUCH_STATEMENT = "42"  # syntax, names, types: where an engine does not have what the other has


class _Run(Protocol):
    def cancel(self, error: GatewayError | None = None) -> None: ...


class RoutedPool:
    """`service.Pool` over a first engine that sees every job and a second one."""

    def __init__(self, first: WorkerPool, second: SharedPool) -> None:
        self._first = first
        self._second = second

    def submit(self, job: Job, sink: Sink) -> RoutedRun:
        """Run `job`; `sink` gets its events, whichever engine sends them."""
        run = RoutedRun(job, sink, self._second)
        run.begin(self._first.submit(job, run))
        return run

    def stop(self) -> None:
        """Stop both. Idempotent."""
        self._second.stop()
        self._first.stop()


class RoutedRun:
    """A job and the engine that has it; the `Sink` of both engines."""

    def __init__(self, job: Job, sink: Sink, second: SharedPool) -> None:
        self._job = job
        self._sink = sink
        self._second = second
        self._lock = threading.Lock()
        self._run: _Run | None = None
        self._verdict: GatewayError | None = None
        self._moved = False
        self._final = False  # rows went out, or it writes: never run again
        self._analysed = self._delivered = False  # by the first engine; by either
        self._short: GatewayError | None = None  # of memory: the first engine's error
        self._doubted: GatewayError | None = None  # the first engine's error, which the second shall confirm

    def begin(self, run: _Run) -> None:
        """The first engine has the job."""
        with self._lock:
            if self._run is None:  # else it has been handed over already
                self._run = run
            verdict = self._verdict
        if verdict is not None:
            run.cancel(verdict)

    def cancel(self, error: GatewayError | None = None) -> None:
        """End the job wherever it is, now or as soon as an engine has it. Idempotent."""
        with self._lock:
            verdict = self._verdict = self._verdict or error or _cancelled()
            run = self._run
        if run is not None:
            run.cancel(verdict)

    def event(self, event: Event) -> None:
        """Pass on an event, or give the job to the second engine."""
        if isinstance(event, Planned) and not self._moved:
            self._analysed = True
        self._delivered = self._delivered or isinstance(event, Rows)
        if isinstance(event, (Rows, Writing)) or (isinstance(event, Planned) and event.writes):
            self._final = True
        if isinstance(event, Failed):
            handover = self._handover(event)
            if handover is not None:
                self._hand_over(handover)
                return
            event = Failed(self._verdict or self._told(event.error))
        if isinstance(event, Finished) and self._doubted is not None:
            observability.log("error not confirmed", "info", condition=self._doubted.condition)
        self._sink.event(event)

    def spool_descriptor(self) -> int:
        """See `Sink`."""
        return self._sink.spool_descriptor()

    def _handover(self, failed: Failed) -> Handover | None:
        if self._moved or self._final or self._verdict is not None or not isinstance(self._job, Statement):
            return None
        if failed.handover is not None and failed.handover.confirms:
            if not self._second.free:
                return None
            self._doubted = failed.error
        if failed.handover is not None:
            return failed.handover
        error = failed.error
        # Spark would fill the same disk.
        short = isinstance(error, ResourceError) and error.condition == _MEMORY and not is_disk_full(error)
        if short and self._job.session.settings.get("gateway.engine", "auto") == "auto":
            self._short = error
            return Handover("spark", "the embedded engine has not enough memory for it")
        return None

    def _told(self, error: GatewayError) -> GatewayError:
        """Which error counts: one that the second engine does not find otherwise in the statement is the first's."""
        if self._short is not None and not self._delivered and self._refuses(error):
            return self._short
        doubted = self._doubted
        if doubted is None or self._final:
            return error
        return error if isinstance(error, UserError) and error.condition != doubted.condition else doubted

    def _refuses(self, error: GatewayError) -> bool:
        """Whether the second engine cannot run the statement at all, however much memory it has."""
        if isinstance(error, UnsupportedError):
            return True
        return self._analysed and isinstance(error, UserError) and error.sqlstate.startswith(_NO_SUCH_STATEMENT)

    def _hand_over(self, handover: Handover) -> None:
        assert isinstance(self._job, Statement)
        self._moved = True
        statement_id = self._job.statement_id
        observability.log("statement handed over", "debug", statement_id=statement_id, reason=handover.reason)
        try:
            run = self._second.submit(replace(self._job, route=handover.reason), self)
        except GatewayError as error:
            self._sink.event(Failed(self._told(error)))
            return
        with self._lock:
            self._run = run
            verdict = self._verdict
        if verdict is not None:
            run.cancel(verdict)


def _cancelled() -> CanceledError:
    return CanceledError("OPERATION_CANCELED", "The statement was cancelled.")
