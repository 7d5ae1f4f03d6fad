"""A job that a pool works on: who takes its events, how it is stopped, and what is said when its process is gone."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from gateway.engine.base import Event, Job
from gateway.engine.channel import Channel, SpoolGiven
from gateway.errors import CanceledError, GatewayError, ServerError

# Of every pool, unless it is told otherwise.
SPOOL_LIMIT = 20 << 30
INLINE_BYTES = 256 << 10


class Sink(Protocol):
    """Receives a job's events, from one thread at a time; the last one is Finished, Failed or Yielded.

    After an unseen second run, Planned and Progress may come twice.
    """

    def event(self, event: Event) -> None: ...

    def spool_descriptor(self) -> int:
        """A descriptor of the file for rows, which the pool closes. Raises GatewayError if there can be none."""


class PoolRun:
    """A submitted job; `cancel` ends it early. All but `run_id`, `job`, `sink` is the pool's business."""

    __slots__ = (
        "attempt",
        "cancelled_at",
        "delivered",
        "job",
        "over",
        "planned",
        "planning",
        "run_id",
        "sink",
        "stop",
        "verdict",
        "writes",
    )

    def __init__(self, run_id: int, job: Job, sink: Sink, stop: Callable[[PoolRun, GatewayError], None]) -> None:
        self.run_id = run_id
        self.job = job
        self.sink = sink
        self.stop = stop
        self.attempt = 1
        self.planned = 0.0  # how long it has planned, up to when it last computed
        self.planning: float | None = None  # since when it plans
        self.delivered = False
        self.writes = False
        self.verdict: GatewayError | None = None  # why it was stopped; replaces whatever the worker says
        self.cancelled_at: float | None = None
        self.over = False

    def cancel(self, error: GatewayError | None = None) -> None:
        """Ask the job to stop and kill its process if it does not; the sink then gets Failed with `error`. Idempotent."""
        self.stop(self, error or CanceledError("OPERATION_CANCELED", "The statement was cancelled."))

    def begins(self, now: float) -> None:
        """It is given to a process, which begins with planning it."""
        self.planned, self.planning = 0.0, now

    def plans(self, now: float) -> None:
        """It plans from now on."""
        if self.planning is None:
            self.planning = now

    def computes(self, now: float) -> None:
        """It plans no longer."""
        if self.planning is not None:
            self.planned += now - self.planning
            self.planning = None

    def has_planned(self, now: float) -> float:
        """For how long it has planned."""
        return self.planned + (0.0 if self.planning is None else now - self.planning)

    def may_run_again(self, begun: bool) -> bool:
        """Whether nobody would notice another run, as its process was lost, which had `begun` it or not."""
        unseen = self.verdict is None and not self.delivered and not self.writes
        return unseen and (self.attempt == 1 or not begun)


class Run(Protocol):
    """What pools have in common in their jobs."""

    @property
    def run_id(self) -> int: ...

    @property
    def sink(self) -> Sink: ...

    def cancel(self, error: GatewayError | None = None) -> None: ...


def give_spool(channel: Channel, run: Run) -> None:
    """Send the file for a job's rows to its process; the job ends if there can be none. Raises OSError."""
    try:
        descriptor = run.sink.spool_descriptor()
    except GatewayError as error:
        run.cancel(error)
        return
    try:
        channel.send(SpoolGiven(run.run_id), descriptor)
    finally:
        os.close(descriptor)


def shutting_down() -> ServerError:
    """What jobs are told when the server ends."""
    return ServerError("WORKER_LOST", "The server is shutting down.", retryable=True)


def cannot_start(reason: str) -> ServerError:
    """What jobs are told when there is no process for them."""
    return ServerError("WORKER_LOST", f"The engine process cannot be started: {reason}", retryable=True)


def lost(run: PoolRun, how: str) -> ServerError:
    """What a job is told whose process is gone."""
    written = "its write may or may not have been committed: check before sending it again"
    if run.attempt > 1:
        what = written if run.writes else "the statement itself probably ends it"
        return ServerError(
            "WORKER_LOST", f"The engine process ended ({how}) twice while running this statement; {what}."
        )
    what = written if run.writes else "some rows had been delivered already: send it again"
    return ServerError(
        "WORKER_LOST", f"The engine process was lost ({how}) while running this statement; {what}.", retryable=True
    )
