"""Processes that a test has started: waiting for what they do, what lives below them, what they cost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def eventually(condition: Callable[[], object], seconds: float) -> float:
    """Wait for `condition`; how long it took, in seconds."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            raise AssertionError(f"did not happen within {seconds} seconds")
        time.sleep(0.05)
    return time.monotonic() - start


def descendants(pid: int) -> dict[int, str]:
    """Processes below `pid` that are alive: process id to command line."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has just ended
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: dict[int, str] = {}
    todo = [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            try:
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            todo.append(child)
    return found


def parent_of(pid: int) -> int:
    """Who has started a process; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
