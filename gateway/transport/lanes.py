"""Threads for calls in two lanes: calls that may wait for a statement, and those that never do.

However many statements one caller waits for, others' calls find a thread, and a status, a cancel or a close always does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gateway.transport.threads import Threads

R = TypeVar("R")


@dataclass(slots=True)
class _Share:
    """What one caller has in a lane: a turn per thread, and how many of its calls are here."""

    turns: asyncio.Semaphore
    calls: int = 0


class Lane:
    """A pool of threads of which one caller holds at most a share; more of its calls wait for their turn."""

    def __init__(self, name: str, threads: int, share: int) -> None:
        self._threads = Threads(name, threads)
        self._share = share
        self._callers: dict[str, _Share] = {}

    async def run(self, caller: str, call: Callable[[], R]) -> R:
        """The answer of a blocking `call`, in a thread; raises what it raises."""
        share = self._callers.get(caller)
        if share is None:
            share = self._callers[caller] = _Share(asyncio.Semaphore(self._share))
        share.calls += 1
        try:
            async with share.turns:
                return await asyncio.wrap_future(self._threads.submit(call))
        finally:
            share.calls -= 1
            if not share.calls:
                del self._callers[caller]

    def close(self) -> None:
        """Let calls in flight finish, start no more."""
        self._threads.close()
