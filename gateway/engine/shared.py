"""One process that runs many jobs side by side: Spark's driver. Started at the first job, kept, replaced when it is lost.

Unlike `pool`, a kill costs all its jobs: it is the last resort, for a job that does not stop when asked. Jobs wait, and
callers take turns (`fair`), while the process starts and while `SharedLimits.threads` jobs run; what runs when it is lost fails
with a retryable error, what waits is served by the next process. Every job begins with `Waiting`, so that whoever counts slots
of another engine can give its slot to others, and goes on with `Progress` when a thread takes it.
"""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway import observability
from gateway.engine.base import (
    Event,
    Failed,
    Finished,
    Handler,
    Handover,
    Job,
    Planned,
    Planning,
    Progress,
    Statement,
    Waiting,
    Writing,
)
from gateway.engine.channel import CancelJob, JobEvent, NotReady, Ready, RunJob, SpoolWanted, Start
from gateway.engine.fair import FairQueue
from gateway.engine.process import WorkerProcess
from gateway.engine.runs import INLINE_BYTES, SPOOL_LIMIT, Sink, give_spool, shutting_down
from gateway.errors import CanceledError, GatewayError, ResourceError, ServerError


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """Bounds of a shared process. Sizes in bytes, times in seconds.

    Attributes:
        threads: jobs that run at once.
        queue: jobs that may wait; more are refused, but for callers who have few of them.
        grace: time between the request to stop a job and the end of the process.
        start: a process that is not ready after this long is given up.
    """

    threads: int = 8
    queue: int = 1000
    spool_limit: int = SPOOL_LIMIT
    inline_bytes: int = INLINE_BYTES
    grace: float = 3.0
    start: float = 600.0


class SharedRun:
    """A submitted job; `cancel` ends it early. All else is the pool's business."""

    __slots__ = ("cancelled_at", "job", "lock", "over", "pool", "run_id", "sink", "verdict", "writes")

    def __init__(self, pool: SharedPool, run_id: int, job: Job, sink: Sink) -> None:
        self.pool = pool
        self.run_id = run_id
        self.job = job
        self.sink = sink
        self.writes = False
        self.verdict: GatewayError | None = None
        self.cancelled_at: float | None = None
        self.over = False
        self.lock = threading.RLock()  # one event at a time; again by a sink that cancels what it is told of

    @property
    def owner(self) -> str:
        """Whose job it is."""
        return self.job.session.user

    @property
    def session(self) -> str:
        """Which session it is of."""
        return self.job.session.session_id

    def cancel(self, error: GatewayError | None = None) -> None:
        """Ask the job to stop; the sink then gets Failed with `error`. Idempotent."""
        self.pool.cancel(self, error or CanceledError("OPERATION_CANCELED", "The statement was cancelled."))


class SharedPool:
    """Runs jobs in one process of its own.

    Args:
        handler_factory: makes the handler inside the process; must be picklable.
        limits: see `SharedLimits`.
        name: the engine's name for people and in metrics.
        ends: what exit codes of the process mean, for people.
    """

    def __init__(
        self,
        handler_factory: Callable[[], Handler],
        limits: SharedLimits | None = None,
        name: str = "spark",
        ends: Mapping[int, str] | None = None,
    ) -> None:
        self._limits = limits or SharedLimits()
        self._start_message = Start(
            handler_factory, self._limits.spool_limit, self._limits.inline_bytes, max(2, self._limits.threads)
        )
        self._name = name
        self._title = name.capitalize()
        self._ends = {f"exit code {code}": text for code, text in (ends or {}).items()}
        self._ids = itertools.count(1)
        self._changed = threading.Condition()
        self._process: WorkerProcess | None = None
        self._ready = False
        self._wanted = False
        self._reason: str | None = None  # why the process was ended, or could not start
        self._waiting = FairQueue[SharedRun]()
        self._running: dict[int, SharedRun] = {}
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def ready(self) -> bool:
        """Whether its process serves."""
        return self._ready

    @property
    def free(self) -> bool:
        """Whether a statement would run at once."""
        with self._changed:
            return self._ready and not self._waiting and len(self._running) < self._limits.threads

    def start(self) -> None:
        """Start the process now instead of with the first job; returns at once."""
        with self._changed:
            self._want_process()

    def submit(self, job: Job, sink: Sink) -> SharedRun:
        """Run `job` when the process is ready and has a free thread; `sink` gets its events.

        Raises ServerError after `stop`, ResourceError if too many wait already.
        """
        run = SharedRun(self, next(self._ids), job, sink)
        starts = not self._ready
        what = f"{self._title} to start" if starts else f"a free thread of {self._title}"
        handover = Handover(self._name, job.route) if isinstance(job, Statement) else None
        self._tell(run, Waiting(f"Waiting for {what}", handover))  # before anybody else can tell it anything
        with self._changed:
            if self._stopped.is_set():
                raise shutting_down()
            self._waiting.put(run)
            if self._waiting.exceeds(run, self._limits.queue):
                self._waiting.remove(run)
                raise ResourceError(
                    "RESOURCE_EXHAUSTED",
                    f"{self._limits.queue} statements wait for {self._title} already: try again later.",
                    retryable=True,
                )
            self._want_process()
        self._dispatch()
        return run

    def cancel(self, run: SharedRun, error: GatewayError) -> None:
        """See `SharedRun.cancel`."""
        with self._changed:
            if run.over or run.verdict is not None:
                return
            run.verdict = error
            run.cancelled_at = time.monotonic()
            waiting = self._waiting.has(run)
            if waiting:
                self._waiting.remove(run)
            process = self._process
            self._changed.notify_all()
        if waiting:
            self._finish(run, Failed(error))
        elif process is not None:
            self._send(process, CancelJob(run.run_id))

    def stop(self) -> None:
        """Kill the process; jobs that have not ended fail. Idempotent."""
        with self._changed:
            self._stopped.set()
            waiting = self._waiting.empty()
            for run in self._running.values():
                run.verdict = run.verdict or shutting_down()
            if self._process is not None:
                self._process.kill()
            self._changed.notify_all()
        for run in waiting:
            self._finish(run, Failed(shutting_down()))
        for thread in self._threads:
            thread.join(10)

    def process_id(self) -> int | None:
        """The process' id while there is one."""
        with self._changed:
            return self._process.pid if self._process is not None else None

    def _want_process(self) -> None:
        """With the lock held: have a process, and the threads that look after it."""
        if self._process is None:
            self._wanted = True
        if not self._threads:
            for target, name in ((self._keep_process, "process"), (self._watch_clock, "watch")):
                thread = threading.Thread(target=target, name=f"{self._name}-{name}", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._changed.notify_all()

    def _dispatch(self) -> None:
        """Send what waits and may run."""
        while True:
            with self._changed:
                process = self._process
                if (
                    not self._ready
                    or process is None
                    or not self._waiting
                    or len(self._running) >= self._limits.threads
                ):
                    return
                run = self._waiting.take()
                self._running[run.run_id] = run
            self._tell(run, Progress(None, f"Running on {self._title}"))
            self._send_job(process, run)

    def _send_job(self, process: WorkerProcess, run: SharedRun) -> None:
        try:
            process.channel.send(RunJob(run.run_id, run.job))
        except OSError as error:  # its reader settles the job
            observability.log("engine lost before its job", "debug", pid=process.pid, error=str(error))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            observability.log("job cannot be sent", "error", statement_id=run.job.statement_id, error=repr(error))
            self._ended(run, Failed(ServerError("INTERNAL_ERROR", "The statement cannot be sent to its engine.")))
        if run.verdict is not None:  # cancelled before the job was there to be asked
            self._send(process, CancelJob(run.run_id))

    def _send(self, process: WorkerProcess, message: object) -> None:
        try:
            process.channel.send(message)
        except OSError as error:
            observability.log("engine lost before a message", "debug", pid=process.pid, error=str(error))

    def _ended(self, run: SharedRun, event: Finished | Failed) -> None:
        with self._changed:
            self._running.pop(run.run_id, None)
        self._dispatch()
        self._finish(run, event)

    def _tell(self, run: SharedRun, event: Event) -> None:
        """Give the sink an event, unless the job is over; a sink that fails ends its own job alone."""
        with run.lock:
            if run.over:
                return
            try:
                run.sink.event(event)
            except Exception as error:  # noqa: BLE001 - whatever it is, the jobs of others go on
                observability.log(
                    "engine's answer not taken", "error", statement_id=run.job.statement_id, error=repr(error)
                )
                known = isinstance(error, GatewayError)
                text = "The engine's answer could not be taken in."
                self.cancel(run, error if known else ServerError("INTERNAL_ERROR", text))  # type: ignore[arg-type]

    def _finish(self, run: SharedRun, event: Finished | Failed) -> None:
        if run.cancelled_at is not None and not run.over:
            observability.histogram("cancel_seconds", time.monotonic() - run.cancelled_at)
        with run.lock:
            self._tell(run, event if run.verdict is None else Failed(run.verdict))
            run.over = True

    def _keep_process(self) -> None:
        """Start a process whenever one is wanted, and read its events until it ends.

        One thread for all: the kernel ties the child's death signal to the thread that made it.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted or self._stopped.is_set())
                if self._stopped.is_set():
                    return
                self._wanted = False
                self._reason = None
            try:
                process = WorkerProcess.launched(self._start_message)
            except (OSError, pickle.PicklingError, AttributeError, TypeError) as error:
                self._on_death(None, repr(error))
                continue
            with self._changed:
                self._process = process
                if self._stopped.is_set():
                    process.kill()
                self._changed.notify_all()  # its start is watched from now on
            observability.log("engine starts", engine=self._name, pid=process.pid)
            self._read_events(process)

    def _read_events(self, process: WorkerProcess) -> None:
        try:
            while (message := process.channel.receive()) is not None:
                self._on_message(process, message)
        except OSError as error:
            if not self._stopped.is_set():
                observability.log("engine socket failed", "warning", pid=process.pid, error=str(error))
        except Exception as error:  # noqa: BLE001 - a bug in a sink or a broken message: the jobs must end all the same
            observability.log("engine events failed", "error", pid=process.pid, error=repr(error))
            self._reason = "its answer could not be taken in"
        self._on_death(process, process.reap())

    def _on_message(self, process: WorkerProcess, message: object) -> None:
        if isinstance(message, Ready):
            with self._changed:
                self._ready = True
            seconds = round(time.monotonic() - process.started, 3)
            observability.log("engine ready", engine=self._name, pid=process.pid, seconds=seconds)
            observability.gauge("engine_up", 1, engine=self._name)
            self._dispatch()
            return
        if isinstance(message, NotReady):
            self._reason = message.reason
            return
        if not isinstance(message, (JobEvent, SpoolWanted)):
            raise TypeError(f"unexpected message {type(message).__name__}")
        run = self._running.get(message.run_id)
        if run is None:
            raise TypeError("an event of a job that does not run here")
        if isinstance(message, SpoolWanted):
            give_spool(process.channel, run)
        elif isinstance(message.event, (Finished, Failed)):
            self._ended(run, message.event)
        else:
            if isinstance(message.event, Writing) or (isinstance(message.event, Planned) and message.event.writes):
                run.writes = True
            assert not isinstance(message.event, Planning)  # of the embedded engine
            self._tell(run, message.event)

    def _on_death(self, process: WorkerProcess | None, how: str) -> None:
        how = self._ends.get(how, how)
        with self._changed:
            started, self._ready, self._process = self._ready, False, None
            lost = list(self._running.values())
            self._running.clear()
            told = [] if started else self._waiting.empty()
            self._wanted = bool(self._waiting) and not self._stopped.is_set()
            reason = self._reason
        observability.gauge("engine_up", 0, engine=self._name)
        if not self._stopped.is_set():
            observability.counter("engine_restarts_total")
            pid = process.pid if process is not None else None
            observability.log("engine lost", "warning", engine=self._name, pid=pid, how=how, reason=reason)
        for run in lost:
            self._finish(run, Failed(self._lost(run, reason or how)))
        for run in told:
            self._finish(run, Failed(self._cannot_start(reason or how)))

    def _lost(self, run: SharedRun, how: str) -> ServerError:
        text = f"{self._title} was lost ({how}) while running this statement"
        if run.writes:
            text += "; its write may or may not have been committed: check before sending it again."
        else:
            text += "; send it again."
        return ServerError("WORKER_LOST", text, retryable=True)

    def _cannot_start(self, reason: str) -> ServerError:
        return ServerError("WORKER_LOST", f"{self._title} cannot be started: {reason}", retryable=True)

    def _watch_clock(self) -> None:
        with self._changed:
            while not self._stopped.is_set():
                self._end_overdue(time.monotonic())
                busy = any(r.verdict is not None for r in self._running.values())
                starts = self._process is not None and not self._ready
                self._changed.wait(0.25 if busy else 1.0 if starts else None)

    def _end_overdue(self, now: float) -> None:
        process = self._process
        if process is None:
            return
        if not self._ready and now - process.started > self._limits.start:
            self._reason = f"not ready after {self._limits.start:g} seconds"
            process.kill()
        for run in self._running.values():
            if run.cancelled_at is not None and now - run.cancelled_at > self._limits.grace:
                self._reason = "a cancelled statement did not stop"
                process.kill()
