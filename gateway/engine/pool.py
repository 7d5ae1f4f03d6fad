"""The worker processes of one engine: always some warm spares, one job each, killed when they do not stop.

Three kinds of threads: one per process reads its events and hands them to the job's sink; one starts processes, by a template
that they are forked from (the kernel ties a child's death signal to the thread that made it, so that thread lives as long as
the pool); one watches the clock: kills after a cancel's grace, memory over the limit, surplus processes that idle.

A process that dies takes only its own job with it. If that job had delivered no row and writes nothing, it is run once more
on another process, unseen by its owner.
"""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Callable

from gateway import observability
from gateway.engine.base import Event, Failed, Finished, Handler, Job, Planned, Planning, Rows, Yielded
from gateway.engine.channel import CancelJob, JobEvent, NotReady, Ready, RunJob, SpoolWanted, Start
from gateway.engine.confinement import OUTDATED
from gateway.engine.launch import Launched
from gateway.engine.pool_watch import PoolLimits, PoolWatch
from gateway.engine.process import WorkerProcess
from gateway.engine.runs import PoolRun, Sink, cannot_start, give_spool, lost, shutting_down
from gateway.engine.seats import PoolStats, Seat, Seats
from gateway.engine.template import LostError, Template, can_fork
from gateway.errors import GatewayError, ServerError

_START_PAUSES = (0.0, 0.1, 0.5, 2.0, 10.0)  # before the next start, by failed starts in a row
_SETTLE_SECONDS = 0.2
_OUTDATED = f"exit code {OUTDATED}"
_GIVE_UP_AFTER = 3  # failed starts in a row after which waiting jobs are told


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
        self._start_message = Start(
            handler_factory, self._limits.spool_limit, self._limits.inline_bytes, folders=self._limits.folders
        )
        self._name = name
        self._ids = itertools.count(1)
        self._changed = threading.Condition()
        self._seats = Seats(size + 1)
        self._watch = PoolWatch(self._seats, self._limits)
        self._failed_starts = 0
        self._start_error: ServerError | None = None
        self._stopping = False
        self._first: Launched | None = None
        self._template: Template | None = None
        self._threads: list[threading.Thread] = []

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
            self._changed.wait_for(lambda: self._start_error or self._stopping or self._seats.has_warm(), timeout)
            if self._start_error is not None:
                raise self._start_error
            if not self._seats.has_warm():
                raise ServerError("WORKER_LOST", "The engine process did not get ready in time.", retryable=True)

    @property
    def ready(self) -> bool:
        """Whether a process is warm, busy or not."""
        with self._changed:
            return self._seats.has_warm()

    def submit(self, job: Job, sink: Sink) -> PoolRun:
        """Run `job`, at once if a process is idle, else when one is; `sink` gets its events."""
        run = PoolRun(next(self._ids), job, sink, self.cancel)
        with self._changed:
            if self._stopping:
                raise shutting_down()
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
            waiting = run in self._seats.waiting
            if waiting:
                self._seats.waiting.remove(run)
            else:
                seat = self._seats.of(run)
                self._watch.kill_later(run, run.cancelled_at)
                self._changed.notify_all()
        if waiting:
            self._finish(run, Failed(error))
        elif seat is not None:
            seat.process.channel.try_send(CancelJob(run.run_id))

    def stop(self) -> None:
        """Kill all processes; jobs that have not ended fail. Idempotent."""
        with self._changed:
            self._stopping = True
            waiting = self._seats.none_waits()
            for seat in self._seats.all:
                if seat.run is not None and seat.run.verdict is None:
                    seat.run.verdict = shutting_down()
                seat.process.kill()
            template = self._template
            if template is not None and not template.answered:  # else what it forks just now would be left alone
                template.kill()
            self._changed.notify_all()
        for run in waiting:
            self._finish(run, Failed(shutting_down()))
        for thread in self._threads:
            thread.join(10)
        first, self._first = self._first, None
        if first is not None:  # stopped before the spawner took it over
            first.end()

    def stats(self) -> PoolStats:
        """Counts as of now."""
        with self._changed:
            return self._seats.stats()

    def process_ids(self) -> list[int]:
        """Process ids of the workers that are alive."""
        with self._changed:
            return [s.process.pid for s in self._seats.all]

    def _seat_for(self, run: PoolRun, first: bool = False) -> Seat | None:
        """See `Seats.take`; the caller sends the job."""
        seat = self._seats.take(run, first)
        self._want_processes()
        return seat

    def _want_processes(self) -> None:
        more = self._seats.missing()
        if more > 0 and not self._stopping:
            self._seats.to_start += more
            self._changed.notify_all()

    def _send_job(self, seat: Seat, run: PoolRun) -> None:
        # A process that dies meanwhile is noticed by its reader, which looks after the job.
        run.begins(time.monotonic())
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

    def _read_events(self, seat: Seat) -> None:
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

    def _on_message(self, seat: Seat, message: object) -> None:
        if isinstance(message, JobEvent):
            run = seat.run
            if run is None or run.run_id != message.run_id:
                raise TypeError("an event of a job that does not run here")
            if isinstance(message.event, Planning):
                (run.plans if message.event.begins else run.computes)(time.monotonic())
            else:
                self._on_event(seat, run, message.event)
        elif isinstance(message, SpoolWanted):
            if seat.run is not None:
                give_spool(seat.process.channel, seat.run)
        elif isinstance(message, Ready):
            self._on_ready(seat)
        elif isinstance(message, NotReady):
            seat.reason = message.reason
        else:
            raise TypeError(f"unexpected message {type(message).__name__}")

    def _on_ready(self, seat: Seat) -> None:
        with self._changed:
            seat.ready = True
            self._failed_starts = 0
            self._start_error = None
            following = self._seats.release(seat, self._stopping)
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

    def _on_event(self, seat: Seat, run: PoolRun, event: Event) -> None:
        if isinstance(event, (Finished, Failed, Yielded)):
            with self._changed:
                told_to_stop = run.verdict is not None
                following = self._seats.release(seat, self._stopping or told_to_stop)
                if told_to_stop:  # its engine may go on in threads that nothing ends: the next job would wait for them
                    seat.reason = "its job was told to stop"
                    seat.process.kill()
            if following is not None:
                self._send_job(seat, following)
            self._finish(run, event)
            return
        if isinstance(event, Rows):
            run.delivered = True
        elif isinstance(event, Planned):
            run.computes(time.monotonic())
            run.writes = event.writes
        run.sink.event(event)

    def _on_death(self, seat: Seat, how: str) -> None:
        """The process is gone: settle its job and see to a replacement."""
        failed_start = not seat.ready
        begun = how != _OUTDATED
        told: list[PoolRun] = []
        with self._changed:
            run = self._seats.leave(seat)
            if failed_start and not self._stopping:
                self._failed_starts += 1
                if self._failed_starts >= _GIVE_UP_AFTER or not self._seats.has_warm():
                    self._start_error = cannot_start(seat.reason or how)
                if self._failed_starts >= _GIVE_UP_AFTER and not self._seats.has_warm():
                    told = self._seats.none_waits()
            again = run is not None and not self._stopping and run.may_run_again(begun)
            self._want_processes()
            self._changed.notify_all()
        if not self._stopping:
            expected = run is None and not failed_start
            observability.log(
                "worker ended" if expected else "worker lost",
                "debug" if expected else "warning",
                pid=seat.process.pid,
                how=how,
                reason=seat.reason if begun else "another folder is in the place of one that it may read",
                statement_id=run.job.statement_id if run is not None else None,
                runs_again=again if run is not None else None,
            )
            observability.counter("engine_restarts_total", 0 if expected else 1)
        observability.gauge("engine_up", len(self._seats.all), engine=self._name)
        if run is not None and again:
            self._run_again(run, begun)
        elif run is not None:
            self._finish(run, Failed(lost(run, how)))
        for each in told:
            self._finish(each, Failed(cannot_start(seat.reason or how)))

    def _run_again(self, run: PoolRun, begun: bool) -> None:
        """Give a job whose process was lost to another one, once others that were lost with it have been noticed too."""
        if begun:
            time.sleep(_SETTLE_SECONDS)
        with self._changed:
            run.attempt += begun
            stopping = self._stopping
            seat = None if stopping else self._seat_for(run, first=True)
        if stopping:
            self._finish(run, Failed(shutting_down()))
        elif seat is not None:
            self._send_job(seat, run)

    def _spawn_processes(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._seats.to_start or self._stopping)
                pause = _START_PAUSES[min(self._failed_starts, len(_START_PAUSES) - 1)]
                if pause:
                    self._changed.wait_for(lambda: self._stopping, pause)
                if self._stopping:
                    break
            self._spawn()
        with self._changed:  # the kernel would kill the children with this thread: they go first
            self._seats.to_start = 0
            self._changed.wait_for(lambda: not self._seats.all, 10)
        if self._template is not None:
            self._template.close()

    def _new_process(self) -> WorkerProcess:
        """Raises OSError, or pickle's errors."""
        first, self._first = self._first, None
        if self._template is None and not can_fork():
            return WorkerProcess.launched(self._start_message, first)
        if self._template is not None:
            try:
                return WorkerProcess.forked(self._template)
            except LostError as error:
                observability.log("the process that workers are forked from is lost", "warning", error=str(error))
                self._template.close()
                if self._stopping:  # which ended it
                    raise
        self._template = Template(self._start_message, first, self._limits.start)
        return WorkerProcess.forked(self._template)

    def _spawn(self) -> None:
        try:
            process = self._new_process()
        except (OSError, pickle.PicklingError, AttributeError, TypeError) as error:
            if self._stopping:  # which took the template away
                return
            observability.log("worker cannot be started", "error", error=repr(error))
            with self._changed:
                self._failed_starts += 1
                self._start_error = cannot_start(NotReady.told(error).reason)
                hopeless = self._failed_starts >= _GIVE_UP_AFTER and not self._seats.has_warm()
                told = self._seats.none_waits() if hopeless else []
                self._changed.notify_all()
            for run in told:
                self._finish(run, Failed(cannot_start(NotReady.told(error).reason)))
            return  # still counted in `_to_start`: tried again after the pause
        seat = Seat(process)
        with self._changed:
            self._seats.to_start -= 1
            self._seats.all.add(seat)
            if self._stopping:
                process.kill()
        observability.gauge("engine_up", len(self._seats.all), engine=self._name)
        threading.Thread(target=self._read_events, args=(seat,), name=f"worker-{process.pid}", daemon=True).start()

    def _watch_clock(self) -> None:
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                try:
                    self._watch.look(now)
                except OSError as error:  # whatever /proc or kill say: the watch goes on
                    observability.log("worker watch failed", "error", error=repr(error))
                self._changed.wait(self._watch.pause(now))
