"""Large answers that are made at once: few, as each holds its rows in memory, and more of them would not be done sooner."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

AT_ONCE, OF_ONE = 8, 4
_WIDE = 1_000  # columns


class Turns:
    """Lets a few threads pass, of one caller fewer; who waits is woken when it is their turn, nobody else. Thread-safe."""

    def __init__(self, at_once: int = AT_ONCE, of_one: int = OF_ONE) -> None:
        self._at_once = at_once
        self._of_one = of_one
        self._busy: Counter[str] = Counter()
        self._waiting: list[tuple[str, threading.Event]] = []
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, caller: str) -> Iterator[None]:
        """Wait for a turn, and have it as long as the block lasts."""
        with self._lock:
            called = None if self._takes(caller) else threading.Event()
            if called is not None:
                self._waiting.append((caller, called))
        if called is not None:
            called.wait()
        try:
            yield
        finally:
            with self._lock:
                self._busy[caller] -= 1
                if not self._busy[caller]:
                    del self._busy[caller]
                self._call()

    def _takes(self, caller: str) -> bool:
        """Give a turn to a caller, if there is one."""
        free = self._busy[caller] < self._of_one and self._busy.total() < self._at_once
        if free:
            self._busy[caller] += 1
        return free

    def _call(self) -> None:
        """Wake those who have a turn now, the first that came first."""
        left = []
        for caller, called in self._waiting:
            if self._takes(caller):
                called.set()
            else:
                left.append((caller, called))
        self._waiting = left


class ShapeTurns:
    """Turns to write out results of many columns: each is an object of its own, and no other thread gets on meanwhile."""

    def __init__(self) -> None:
        self._turns = Turns(2, 1)

    def turn(self, caller: str, columns: int) -> AbstractContextManager[None]:
        """A turn for one of so many columns; few need none."""
        return self._turns.turn(caller) if columns > _WIDE else nullcontext()
