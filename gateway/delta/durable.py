"""Files on their way to the disk beside what else is done: those of one commit are waited for together, right before it.

A journal takes what is asked for at the same time in one go, so that it costs about as much as a single file.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

_AT_ONCE = 4
_MOST_OPEN = 64  # files that wait with their descriptors; for more the first ones are waited for


def sync_names(folder: int) -> None:
    """Bring the names in a folder that is held open to the disk: what was put there stands, also where that fails."""
    with contextlib.suppress(OSError):
        os.fsync(folder)


class Syncs:
    """Descriptors of files, each brought to the disk in a thread and closed then. For one thread."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._running: deque[Future[None]] = deque()

    def start(self, descriptor: int) -> None:
        """Bring a file to the disk; its descriptor is closed here. Raises the OSError of an earlier one."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AT_ONCE, "sync")
        self._running.append(self._pool.submit(_sync, descriptor))
        while len(self._running) > _MOST_OPEN:
            self._running.popleft().result()

    def wait(self) -> None:
        """Until all are there. Raises the OSError of the first that failed, once the others have ended."""
        running, self._running = self._running, deque()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        for each in running:
            each.result()


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
