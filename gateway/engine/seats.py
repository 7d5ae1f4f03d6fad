"""The processes of a pool, those that idle, and the jobs that wait for one: plain state, changed with the pool's lock held."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from gateway.engine.process import WorkerProcess
from gateway.engine.runs import PoolRun

#: Warm processes beside those that work, within the bound: two statements at once find one each, and a short one behind them.
SPARES = 3


@dataclass(frozen=True, slots=True)
class PoolStats:
    """How many processes are in which state, and how many jobs wait for one."""

    idle: int
    busy: int
    starting: int
    waiting: int


class Seat:
    """A process and the job that it runs."""

    __slots__ = ("dead", "process", "ready", "reason", "run", "seen", "since")

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.ready = False
        self.dead = False
        self.reason: str | None = None  # why it could not start, or was ended
        self.since = 0.0  # idle since
        self.seen = (0.0, 0.0, 0.0)  # `since`, when it was looked at, the time on processors by then
        self.run: PoolRun | None = None


class Seats:
    """All processes of a pool, at most `maximum`.

    Attributes:
        all: those that live, ready or not.
        idle: the most recently used last.
        waiting: jobs without a process.
        to_start: processes that the spawner was asked for and has not made yet.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.all: set[Seat] = set()
        self.idle: list[Seat] = []
        self.waiting: deque[PoolRun] = deque()
        self.to_start = 0

    def has_warm(self) -> bool:
        """Whether a process is ready, busy or not."""
        return any(s.ready for s in self.all)

    def of(self, run: PoolRun) -> Seat | None:
        """The process that runs a job."""
        return next((s for s in self.all if s.run is run), None)

    def take(self, run: PoolRun, first: bool = False) -> Seat | None:
        """An idle process, now taken for `run`; else None, and `run` waits, before all others or behind them."""
        # One that was killed from outside a moment ago is left to its reader.
        seat = next((s for s in reversed(self.idle) if s.process.alive), None)
        if seat is not None:
            self.idle.remove(seat)
            seat.run = run
        elif first:
            self.waiting.appendleft(run)
        else:
            self.waiting.append(run)
        return seat

    def release(self, seat: Seat, stopping: bool) -> PoolRun | None:
        """The process is free; returns the job that has waited longest, now its own."""
        seat.run = None
        seat.since = time.monotonic()
        if seat.dead or stopping:
            return None
        if self.waiting:
            seat.run = self.waiting.popleft()
        else:
            self.idle.append(seat)
        return seat.run

    def leave(self, seat: Seat) -> PoolRun | None:
        """The process is gone; returns the job that it had."""
        seat.dead, seat.ready = True, False
        self.all.discard(seat)
        if seat in self.idle:
            self.idle.remove(seat)
        run, seat.run = seat.run, None
        return run

    def missing(self) -> int:
        """How many processes are missing for each job that waits and the spares, within the bound."""
        starting = self.to_start + sum(not s.ready for s in self.all)
        spares = SPARES if self.has_warm() else 1  # the first one makes what the others find
        wanted = len(self.waiting) + spares - len(self.idle) - starting
        return min(wanted, self.maximum - len(self.all) - self.to_start)

    def none_waits(self) -> list[PoolRun]:
        """Those that waited, of whom none does any more."""
        waiting = list(self.waiting)
        self.waiting.clear()
        return waiting

    def stats(self) -> PoolStats:
        """Counts as of now."""
        warm = sum(s.ready for s in self.all)
        return PoolStats(
            idle=len(self.idle),
            busy=warm - len(self.idle),
            starting=len(self.all) - warm + self.to_start,
            waiting=len(self.waiting),
        )
