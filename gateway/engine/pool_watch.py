"""What a pool's clock sees to: processes that do not stop, plan too long, hold too much memory or idle too long are killed."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.engine.confinement import Folders
from gateway.engine.runs import INLINE_BYTES, SPOOL_LIMIT, PoolRun
from gateway.engine.seats import SPARES, Seat, Seats
from gateway.errors import ResourceError

_BUSY = 0.1  # of a processor: what idles uses next to nothing, and a busy machine gives little


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Bounds of a pool. Sizes in bytes, times in seconds.

    Attributes:
        inline_bytes: rows that travel inside messages, per statement; what follows is written to the spool file.
        memory_limit: resident memory at which a process is killed; one that keeps half of it after a job is replaced.
        grace: time between the request to stop and the kill.
        plan: time that a job may plan, before `Planned` and behind it; what needs longer is too complex.
        idle: a surplus process that had nothing to do for this long is ended.
        start: a process that is not warm after this long is given up.
        watch: period of the memory watch.
        settle: how long a process without a job may compute.
        folders: all that a process may read beside its own code, where the kernel can see to it; None for no such limit.
    """

    spool_limit: int = SPOOL_LIMIT
    inline_bytes: int = INLINE_BYTES
    memory_limit: int | None = None
    grace: float = 0.5
    plan: float = 60.0
    idle: float = 300.0
    start: float = 60.0
    watch: float = 0.25
    settle: float = 2.0
    folders: Folders | None = None


class PoolWatch:
    """Looks after the processes of a pool, with the pool's lock held."""

    def __init__(self, seats: Seats, limits: PoolLimits) -> None:
        self._seats = seats
        self._limits = limits
        self._kills: list[tuple[float, PoolRun]] = []

    def kill_later(self, run: PoolRun, asked: float) -> None:
        """Kill the process of a job that was asked to stop, once its grace is over."""
        self._kills.append((asked + self._limits.grace, run))

    def look(self, now: float) -> None:
        """Kill what has to be. Raises OSError."""
        self._kill_overdue(now)
        self._kill_unplanned(now)
        if self._limits.memory_limit is not None:
            self._kill_large(self._limits.memory_limit)
        self._end_busy(now)
        self._end_surplus(now)

    def pause(self, now: float) -> float:
        """Seconds until the watch has to look again."""
        busy = any(s.run is not None for s in self._seats.all)
        pause = min(1.0, self._limits.plan) if busy else 5.0
        if self._limits.memory_limit is not None:
            pause = self._limits.watch if busy else 1.0
        if any(not s.ready for s in self._seats.all):
            pause = min(pause, 1.0)
        return max(0.0, min([pause, *(when - now for when, _ in self._kills)]))

    def _kill_overdue(self, now: float) -> None:
        for when, run in list(self._kills):
            if run.over:
                self._kills.remove((when, run))
            elif when <= now:
                self._kills.remove((when, run))
                seat = self._seats.of(run)
                if seat is not None:
                    seat.reason = "did not stop when asked"
                    seat.process.kill()
        for seat in self._seats.all:
            if not seat.ready and now - seat.process.started > self._limits.start:
                seat.reason = f"not ready after {self._limits.start:g} seconds"
                seat.process.kill()

    def _kill_unplanned(self, now: float) -> None:
        for seat in self._seats.all:
            run = seat.run
            if run is None or run.planning is None or run.verdict is not None:
                continue
            if run.has_planned(now) < self._limits.plan:
                continue
            run.verdict = ResourceError(
                "STATEMENT_TOO_COMPLEX", f"The statement could not be planned within {self._limits.plan:g} seconds."
            )
            seat.reason = "planning took too long"
            seat.process.kill()

    def _kill_large(self, limit: int) -> None:
        for seat in self._seats.all:
            run = seat.run
            if run is not None and run.verdict is None and seat.process.resident_bytes() > limit:
                run.verdict = ResourceError(
                    "RESOURCE_EXHAUSTED", f"The statement used more than the {limit >> 20} MiB of memory that it may."
                )
                seat.reason = "memory limit"
                seat.process.kill()
        for seat in list(self._seats.idle):
            if seat.process.resident_bytes() > limit // 2:
                self._retire(seat, "kept too much memory")

    def _end_busy(self, now: float) -> None:
        """What has no job and computes goes on with one that has ended, in a loop of the engine that nothing ends.

        The process of one that was told to stop is not among these: it is ended at once.
        """
        for seat in list(self._seats.idle):
            since, when, before = seat.seen
            if since == seat.since and now - when < self._limits.settle:
                continue
            used = seat.process.cpu_seconds()
            if since == seat.since and used - before > _BUSY * (now - when):
                self._retire(seat, "goes on with a job that has ended")
            seat.seen = (seat.since, now, used)

    def _end_surplus(self, now: float) -> None:
        while len(self._seats.idle) > SPARES and now - self._seats.idle[0].since > self._limits.idle:
            self._retire(self._seats.idle[0], "idle")

    def _retire(self, seat: Seat, reason: str) -> None:
        self._seats.idle.remove(seat)
        seat.reason = reason
        seat.process.kill()
