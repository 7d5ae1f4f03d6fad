"""The worker processes of one engine: always one warm spare, one job each, killed when they do not stop.

Three kinds of threads: one per process reads its events and hands them to the job's sink; one starts processes (the kernel
ties a child's death signal to the thread that made it, so that thread lives as long as the pool); one watches the clock:
kills after a cancel's grace, memory over the limit, surplus processes that idle.

A process that dies takes only its own job with it. If that job had delivered no row and writes nothing, it is run once more
on another process, unseen by its owner.
"""

from __future__ import annotations

import itertools
import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway import observability
from gateway.engine.base import Event, Failed, Finished, Handler, Job, Planned, Rows, Yielded
from gateway.engine.channel import CancelJob, JobEvent, NotReady, Ready, RunJob, SpoolGiven, SpoolWanted, Start
from gateway.engine.launch import Launched
from gateway.engine.process import WorkerProcess
from gateway.errors import CanceledError, GatewayError, ResourceError, ServerError

_START_PAUSES = (0.0, 0.1, 0.5, 2.0, 10.0)  # before the next start, by failed starts in a row
_SETTLE_SECONDS = 0.2
_GIVE_UP_AFTER = 3  # failed starts in a row after which waiting jobs are told


class Sink(Protocol):
    """Receives a job's events, from one thread at a time; the last one is Finished, Failed or Yielded.

    After an unseen second run, Planned and Progress may come twice.
    """

    def event(self, event: Event) -> None: ...

    def spool_descriptor(self) -> int:
        """A descriptor of the file for rows, which the pool closes. Raises GatewayError if there can be none."""


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Bounds of a pool. Sizes in bytes, times in seconds.

    Attributes:
        inline_bytes: rows that travel inside messages, per statement; what follows is written to the spool file.
        memory_limit: resident memory at which a process is killed; one that keeps half of it after a job is replaced.
        grace: time between the request to stop and the kill.
        plan: time until a job must have told its plan (`Planned`); what needs longer is too complex.
        idle: a surplus process that had nothing to do for this long is ended.
        start: a process that is not warm after this long is given up.
        watch: period of the memory watch.
    """

    spool_limit: int = 20 << 30
    inline_bytes: int = 256 << 10
    memory_limit: int | None = None
    grace: float = 0.5
    plan: float = 60.0
    idle: float = 300.0
    start: float = 60.0
    watch: float = 0.25


@dataclass(frozen=True, slots=True)
class PoolStats:
    """How many processes are in which state, and how many jobs wait for one."""

    idle: int
    busy: int
    starting: int
    waiting: int


class PoolRun:
    """A submitted job; `cancel` ends it early. All but `run_id`, `job`, `sink` is the pool's business."""

    __slots__ = (
        *(
            "attempt",
            "cancelled_at",
            "delivered",
            "job",
            "over",
            "planned",
            "pool",
            "run_id",
            "sent",
            "sink",
            "verdict",
        ),
        "writes",
    )

    def __init__(self, pool: WorkerPool, run_id: int, job: Job, sink: Sink) -> None:
        self.pool = pool
        self.run_id = run_id
        self.job = job
        self.sink = sink
        self.attempt = 1
        self.sent: float | None = None  # to its process
        self.planned = False
        self.delivered = False
        self.writes = False
        self.verdict: GatewayError | None = None  # why it was stopped; replaces whatever the worker says
        self.cancelled_at: float | None = None
        self.over = False

    def cancel(self, error: GatewayError | None = None) -> None:
        """Ask the job to stop and kill its process if it does not; the sink then gets Failed with `error`. Idempotent."""
        self.pool.cancel(self, error or CanceledError("OPERATION_CANCELED", "The statement was cancelled."))


class _Seat:
    """A process and the job that it runs; changed with the pool's lock held."""

    __slots__ = ("dead", "process", "ready", "reason", "run", "since")

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.ready = False
        self.dead = False
        self.reason: str | None = None  # why it could not start, or was ended
        self.since = 0.0  # idle since
        self.run: PoolRun | None = None


class WorkerPool:
    """Runs jobs on up to `size` + 1 worker processes: `size` for statements, one spare that metadata calls may use.

    Args:
        handler_factory: makes the handler inside each process; must be picklable.
        size: statements that run at once.
        limits: see `PoolLimits`.
        name: the engine's name in metrics.
    """

    def __init__(
        self,
        handler_factory: Callable[[], Handler],
        size: int,
        limits: PoolLimits | None = None,
        name: str = "datafusion",
    ) -> None:
        self._limits = limits or PoolLimits()
        self._start_message = Start(handler_factory, self._limits.spool_limit, self._limits.inline_bytes)
        self._maximum = size + 1
        self._name = name
        self._ids = itertools.count(1)
        self._changed = threading.Condition()
        self._seats: set[_Seat] = set()
        self._idle: list[_Seat] = []  # the most recently used last
        self._waiting: deque[PoolRun] = deque()
        self._to_start = 0  # asked of the spawner, not yet made
        self._failed_starts = 0
        self._start_error: ServerError | None = None
        self._kills: list[tuple[float, PoolRun]] = []
        self._stopping = False
        self._first: Launched | None = None
        self._threads: list[threading.Thread] = []

    # ------------------------------------------------------------------------------------------------------ verbs

    def start(self, first: Launched | None = None) -> None:
        """Begin to start the first process, or go on with `first`, which starts already; returns at once."""
        self._first = first
        for target, name in ((self._spawn_processes, "pool-spawner"), (self._watch_clock, "pool-watch")):
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        with self._changed:
            self._want_processes()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until a process is warm. Raises ServerError if it cannot start or `timeout` seconds have passed."""
        with self._changed:
            self._changed.wait_for(lambda: self._start_error or self._stopping or self._has_warm(), timeout)
            if self._start_error is not None:
                raise self._start_error
            if not self._has_warm():
                raise ServerError("WORKER_LOST", "The engine process did not get ready in time.", retryable=True)

    @property
    def ready(self) -> bool:
        """Whether a process is warm, busy or not."""
        with self._changed:
            return self._has_warm()

    def submit(self, job: Job, sink: Sink) -> PoolRun:
        """Run `job`, at once if a process is idle, else when one is; `sink` gets its events."""
        run = PoolRun(self, next(self._ids), job, sink)
        with self._changed:
            if self._stopping:
                raise _shutdown()
            seat = self._seat_for(run)
        if seat is not None:
            self._send_job(seat, run)
        return run

    def cancel(self, run: PoolRun, error: GatewayError) -> None:
        """See `PoolRun.cancel`."""
        seat = None
        with self._changed:
            if run.over or run.verdict is not None:
                return
            run.verdict = error
            run.cancelled_at = time.monotonic()
            waiting = run in self._waiting
            if waiting:
                self._waiting.remove(run)
            else:
                seat = self._seat_of(run)
                self._kills.append((run.cancelled_at + self._limits.grace, run))
                self._changed.notify_all()
        if waiting:
            self._finish(run, Failed(error))
        elif seat is not None:
            seat.process.channel.try_send(CancelJob(run.run_id))

    def stop(self) -> None:
        """Kill all processes; jobs that have not ended fail. Idempotent."""
        with self._changed:
            self._stopping = True
            waiting = list(self._waiting)
            self._waiting.clear()
            for seat in self._seats:
                if seat.run is not None and seat.run.verdict is None:
                    seat.run.verdict = _shutdown()
                seat.process.kill()
            self._changed.notify_all()
        for run in waiting:
            self._finish(run, Failed(_shutdown()))
        for thread in self._threads:
            thread.join(10)
        first, self._first = self._first, None
        if first is not None:  # stopped before the spawner took it over
            first.end()

    def stats(self) -> PoolStats:
        """Counts as of now."""
        with self._changed:
            warm = sum(s.ready for s in self._seats)
            return PoolStats(
                idle=len(self._idle),
                busy=warm - len(self._idle),
                starting=len(self._seats) - warm + self._to_start,
                waiting=len(self._waiting),
            )

    def process_ids(self) -> list[int]:
        """Process ids of the workers that are alive."""
        with self._changed:
            return [s.process.pid for s in self._seats]

    # --------------------------------------------------------------------------- dispatch; `_changed` is held by callers

    def _has_warm(self) -> bool:
        return any(s.ready for s in self._seats)

    def _seat_of(self, run: PoolRun) -> _Seat | None:
        return next((s for s in self._seats if s.run is run), None)

    def _seat_for(self, run: PoolRun, first: bool = False) -> _Seat | None:
        """An idle process, now taken for `run` (the caller sends the job); else None, and `run` waits."""
        # One that was killed from outside a moment ago is left to its reader.
        seat = next((s for s in reversed(self._idle) if s.process.alive), None)
        if seat is not None:
            self._idle.remove(seat)
            seat.run = run
        elif first:
            self._waiting.appendleft(run)
        else:
            self._waiting.append(run)
        self._want_processes()
        return seat

    def _release(self, seat: _Seat) -> PoolRun | None:
        """The process is free; returns the job that has waited longest, now its own (the caller sends it)."""
        seat.run = None
        seat.since = time.monotonic()
        if seat.dead or self._stopping:
            return None
        if self._waiting:
            seat.run = self._waiting.popleft()
        else:
            self._idle.append(seat)
        return seat.run

    def _want_processes(self) -> None:
        """Ask for a process for each job that waits and one spare, within the bound."""
        starting = self._to_start + sum(not s.ready for s in self._seats)
        wanted = len(self._waiting) + 1 - len(self._idle) - starting
        more = min(wanted, self._maximum - len(self._seats) - self._to_start)
        if more > 0 and not self._stopping:
            self._to_start += more
            self._changed.notify_all()

    # ------------------------------------------------------------------------------------------------ without the lock

    def _send_job(self, seat: _Seat, run: PoolRun) -> None:
        # A process that dies meanwhile is noticed by its reader, which looks after the job.
        run.sent = time.monotonic()
        try:
            seat.process.channel.send(RunJob(run.run_id, run.job))
        except OSError as error:
            observability.log("worker lost before its job", "debug", pid=seat.process.pid, error=str(error))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            observability.log("job cannot be sent", "error", statement_id=run.job.statement_id, error=repr(error))
            run.verdict = ServerError("INTERNAL_ERROR", "The statement cannot be sent to an engine process.")
            seat.process.kill()
        if run.verdict is not None:  # cancelled before the job was there to be asked
            seat.process.channel.try_send(CancelJob(run.run_id))

    def _finish(self, run: PoolRun, event: Finished | Failed | Yielded) -> None:
        with self._changed:
            if run.over:
                return
            run.over = True
        if run.cancelled_at is not None:
            observability.histogram("cancel_seconds", time.monotonic() - run.cancelled_at)
        run.sink.event(event if run.verdict is None else Failed(run.verdict))

    # -------------------------------------------------------------------------------------- one reader per process

    def _read_events(self, seat: _Seat) -> None:
        process = seat.process
        try:
            while (message := process.channel.receive()) is not None:
                self._on_message(seat, message)
        except OSError as error:
            if not self._stopping:
                observability.log("worker socket failed", "warning", pid=process.pid, error=str(error))
        except Exception as error:  # noqa: BLE001 - a bug in the sink or a broken message: the job must end all the same
            observability.log("worker events failed", "error", pid=process.pid, error=repr(error))
            with self._changed:
                if seat.run is not None and seat.run.verdict is None:
                    seat.run.verdict = ServerError("INTERNAL_ERROR", "The engine's answer could not be taken in.")
        self._on_death(seat, process.reap())

    def _on_message(self, seat: _Seat, message: object) -> None:
        if isinstance(message, JobEvent):
            run = seat.run
            if run is None or run.run_id != message.run_id:
                raise TypeError("an event of a job that does not run here")
            self._on_event(seat, run, message.event)
        elif isinstance(message, SpoolWanted):
            if seat.run is not None:
                self._give_spool(seat, seat.run)
        elif isinstance(message, Ready):
            self._on_ready(seat)
        elif isinstance(message, NotReady):
            seat.reason = message.reason
        else:
            raise TypeError(f"unexpected message {type(message).__name__}")

    def _on_ready(self, seat: _Seat) -> None:
        with self._changed:
            seat.ready = True
            self._failed_starts = 0
            self._start_error = None
            following = self._release(seat)
            self._want_processes()
            self._changed.notify_all()
        observability.log(
            "worker ready",
            "debug",
            pid=seat.process.pid,
            seconds=round(time.monotonic() - seat.process.started, 3),
        )
        if following is not None:
            self._send_job(seat, following)

    def _on_event(self, seat: _Seat, run: PoolRun, event: Event) -> None:
        if isinstance(event, (Finished, Failed, Yielded)):
            with self._changed:
                following = self._release(seat)
            if following is not None:
                self._send_job(seat, following)
            self._finish(run, event)
            return
        if isinstance(event, Rows):
            run.delivered = True
        elif isinstance(event, Planned):
            run.planned = True
            run.writes = event.writes
        run.sink.event(event)

    def _give_spool(self, seat: _Seat, run: PoolRun) -> None:
        try:
            descriptor = run.sink.spool_descriptor()
        except GatewayError as error:
            run.cancel(error)
            return
        try:
            seat.process.channel.send(SpoolGiven(run.run_id), descriptor)
        finally:
            os.close(descriptor)

    def _on_death(self, seat: _Seat, how: str) -> None:
        """The process is gone: settle its job and see to a replacement."""
        failed_start = not seat.ready
        told: list[PoolRun] = []
        with self._changed:
            seat.dead, seat.ready = True, False
            self._seats.discard(seat)
            if seat in self._idle:
                self._idle.remove(seat)
            run, seat.run = seat.run, None
            if failed_start and not self._stopping:
                self._failed_starts += 1
                if self._failed_starts >= _GIVE_UP_AFTER or not self._has_warm():
                    self._start_error = _cannot_start(seat.reason or how)
                if self._failed_starts >= _GIVE_UP_AFTER and not self._has_warm():
                    told = list(self._waiting)
                    self._waiting.clear()
            again = run is not None and not self._stopping and _may_run_again(run)
            self._want_processes()
            self._changed.notify_all()
        if not self._stopping:
            expected = run is None and not failed_start
            observability.log(
                "worker ended" if expected else "worker lost",
                "debug" if expected else "warning",
                pid=seat.process.pid,
                how=how,
                reason=seat.reason,
                statement_id=run.job.statement_id if run is not None else None,
                runs_again=again if run is not None else None,
            )
            observability.counter("engine_restarts_total", 0 if expected else 1)
        observability.gauge("engine_up", len(self._seats), engine=self._name)
        if run is not None and again:
            self._run_again(run)
        elif run is not None:
            self._finish(run, Failed(_lost(run, how)))
        for each in told:
            self._finish(each, Failed(_cannot_start(seat.reason or how)))

    def _run_again(self, run: PoolRun) -> None:
        """Give a job whose process was lost to another one, once others that were lost with it have been noticed too."""
        time.sleep(_SETTLE_SECONDS)
        with self._changed:
            run.attempt += 1
            stopping = self._stopping
            seat = None if stopping else self._seat_for(run, first=True)
        if stopping:
            self._finish(run, Failed(_shutdown()))
        elif seat is not None:
            self._send_job(seat, run)

    # ------------------------------------------------------------------------------------------ the spawner's thread

    def _spawn_processes(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._to_start or self._stopping)
                pause = _START_PAUSES[min(self._failed_starts, len(_START_PAUSES) - 1)]
                if pause:
                    self._changed.wait_for(lambda: self._stopping, pause)
                if self._stopping:
                    break
            self._spawn()
        with self._changed:  # the kernel would kill the children with this thread: they go first
            self._to_start = 0
            self._changed.wait_for(lambda: not self._seats, 10)

    def _spawn(self) -> None:
        try:
            first, self._first = self._first, None
            process = WorkerProcess(self._start_message, first)
        except (OSError, pickle.PicklingError, AttributeError, TypeError) as error:
            observability.log("worker cannot be started", "error", error=repr(error))
            with self._changed:
                self._failed_starts += 1
                self._start_error = _cannot_start(repr(error))
                told = [] if self._has_warm() or self._failed_starts < _GIVE_UP_AFTER else list(self._waiting)
                if told:
                    self._waiting.clear()
                self._changed.notify_all()
            for run in told:
                self._finish(run, Failed(_cannot_start(repr(error))))
            return  # still counted in `_to_start`: tried again after the pause
        seat = _Seat(process)
        with self._changed:
            self._to_start -= 1
            self._seats.add(seat)
            if self._stopping:
                process.kill()
        observability.gauge("engine_up", len(self._seats), engine=self._name)
        threading.Thread(target=self._read_events, args=(seat,), name=f"worker-{process.pid}", daemon=True).start()

    # --------------------------------------------------------------------------------------------- the watch's thread

    def _watch_clock(self) -> None:
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                try:
                    self._kill_overdue(now)
                    self._kill_unplanned(now - self._limits.plan)
                    if self._limits.memory_limit is not None:
                        self._kill_large(self._limits.memory_limit)
                    self._end_surplus(now)
                except OSError as error:  # whatever /proc or kill say: the watch goes on
                    observability.log("worker watch failed", "error", error=repr(error))
                self._changed.wait(self._pause(now))

    def _pause(self, now: float) -> float:
        """Seconds until the watch has to look again."""
        busy = any(s.run is not None for s in self._seats)
        pause = min(1.0, self._limits.plan) if busy else 5.0
        if self._limits.memory_limit is not None:
            pause = self._limits.watch if busy else 1.0
        if any(not s.ready for s in self._seats):
            pause = min(pause, 1.0)
        return max(0.0, min([pause, *(when - now for when, _ in self._kills)]))

    def _kill_overdue(self, now: float) -> None:
        for when, run in list(self._kills):
            if run.over:
                self._kills.remove((when, run))
            elif when <= now:
                self._kills.remove((when, run))
                seat = self._seat_of(run)
                if seat is not None:
                    seat.reason = "did not stop when asked"
                    seat.process.kill()
        for seat in self._seats:
            if not seat.ready and now - seat.process.started > self._limits.start:
                seat.reason = f"not ready after {self._limits.start:g} seconds"
                seat.process.kill()

    def _kill_unplanned(self, since: float) -> None:
        for seat in self._seats:
            run = seat.run
            if run is None or run.planned or run.verdict is not None or run.sent is None or run.sent > since:
                continue
            run.verdict = ResourceError(
                "STATEMENT_TOO_COMPLEX", f"The statement could not be planned within {self._limits.plan:g} seconds."
            )
            seat.reason = "planning took too long"
            seat.process.kill()

    def _kill_large(self, limit: int) -> None:
        for seat in self._seats:
            run = seat.run
            if run is not None and run.verdict is None and seat.process.resident_bytes() > limit:
                run.verdict = ResourceError(
                    "RESOURCE_EXHAUSTED", f"The statement used more than the {limit >> 20} MiB of memory that it may."
                )
                seat.reason = "memory limit"
                seat.process.kill()
        for seat in list(self._idle):
            if seat.process.resident_bytes() > limit // 2:
                self._retire(seat, "kept too much memory")

    def _end_surplus(self, now: float) -> None:
        while len(self._idle) > 1 and now - self._idle[0].since > self._limits.idle:
            self._retire(self._idle[0], "idle")

    def _retire(self, seat: _Seat, reason: str) -> None:
        self._idle.remove(seat)
        seat.reason = reason
        seat.process.kill()


def _may_run_again(run: PoolRun) -> bool:
    return run.verdict is None and not run.delivered and not run.writes and run.attempt == 1


def _shutdown() -> ServerError:
    return ServerError("WORKER_LOST", "The server is shutting down.", retryable=True)


def _cannot_start(reason: str) -> ServerError:
    return ServerError("WORKER_LOST", f"The engine process cannot be started: {reason}", retryable=True)


def _lost(run: PoolRun, how: str) -> ServerError:
    if run.attempt > 1:
        return ServerError(
            "WORKER_LOST",
            f"The engine process ended ({how}) twice while running this statement; the statement itself probably ends it.",
        )
    what = (
        "its write may or may not have been committed: check before sending it again"
        if run.writes
        else "some rows had been delivered already: send it again"
    )
    return ServerError(
        "WORKER_LOST", f"The engine process was lost ({how}) while running this statement; {what}.", retryable=True
    )
