"""Timing, CPU time of process trees, and the printed table."""

from __future__ import annotations

import contextlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of several rounds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def quantile(self, q: float) -> float:
        """The q-quantile, nearest rank."""
        ranked = sorted(self.seconds)
        return ranked[min(len(ranked) - 1, int(q * len(ranked)))]

    def __str__(self) -> str:
        return f"{show(self.median)} ({show(min(self.seconds))}..{show(max(self.seconds))})"


def show(seconds: float) -> str:
    """A duration with three significant digits."""
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def rounds(
    action: Callable[[], object], count: int, warm: int = 1, patience: float = 20.0, server: int | None = None
) -> Sample:
    """Run `action` `warm` times unmeasured, then `count` times, or fewer (but three) once `patience` seconds are over.

    `server` is the process that does the work: what it still starts in the background is waited for before the first time.
    """
    for _ in range(warm):
        action()
    if server is not None:
        settle(server)
    return prepared(repeat(action), count, patience)


def prepared(actions: Iterable[Callable[[], object]], count: int, patience: float = 20.0) -> Sample:
    """Run the first `count` of `actions`, or fewer (but three) once `patience` seconds are over; making one is not measured."""
    times: list[float] = []
    end = time.perf_counter() + patience
    for action in actions:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
        if len(times) >= count or (len(times) >= 3 and time.perf_counter() >= end):
            break
    return Sample(tuple(times))


def _processes() -> dict[int, tuple[int, float]]:
    """Process id to parent and CPU seconds."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(entry)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK)
    return found


def tree(pid: int) -> list[int]:
    """`pid` and all its descendants."""
    processes = _processes()
    result = [pid]
    for one in result:
        result.extend(child for child, (parent, _) in processes.items() if parent == one)
    return result


def cpu_seconds(pid: int) -> float:
    """CPU time of `pid` and its descendants so far."""
    processes = _processes()
    return sum(processes[p][1] for p in tree(pid) if p in processes)


def settle(pid: int, patience: float = 20.0) -> None:
    """Wait until `pid` and its descendants have done nothing for half a second: what a server starts with is over."""
    end = time.perf_counter() + patience
    last, since = -1.0, time.perf_counter()
    while time.perf_counter() < min(end, since + 0.5):
        time.sleep(0.1)
        now = cpu_seconds(pid)
        if now - last > 0.02:
            last, since = now, time.perf_counter()


def resident_bytes(pid: int) -> int:
    """Resident memory of one process."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held_bytes(pid: int) -> int:
    """Memory of `pid` and its descendants, of what they share each its part."""
    total = 0
    for one in tree(pid):
        with contextlib.suppress(OSError), open(f"/proc/{one}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    return total


class Peak:
    """The most that a server and its descendants hold while the block runs: `bytes`, looked at all the time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bytes = 0

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.bytes = max(self.bytes, held_bytes(self._pid))


@dataclass
class Row:
    """A line of the report: `ok` is None where there is nothing to compare with."""

    work: str
    figures: dict[str, str] = field(default_factory=dict)
    asked: str = ""
    ok: bool | None = None


def print_rows(rows: Sequence[Row]) -> None:
    """The rows as an aligned table; columns in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    head = ["work", *names, "asked", ""]
    verdict = {True: "met", False: "MISSED", None: ""}
    lines = [[r.work, *(r.figures.get(n, "") for n in names), r.asked, verdict[r.ok]] for r in rows]
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    for line in [head, ["-" * w for w in widths], *lines]:
        print("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
