"""Large answers that are made at once: few, as each holds its rows in memory, and more of them would not be done sooner."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE, OF_ONE = 8, 4


class Turns:
    """Lets a few threads pass, of one caller fewer. Thread-safe."""

    def __init__(self, at_once: int = AT_ONCE, of_one: int = OF_ONE) -> None:
        self._at_once = at_once
        self._of_one = of_one
        self._busy: Counter[str] = Counter()
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, caller: str) -> Iterator[None]:
        """Wait for a turn, and have it as long as the block lasts."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy[caller] < self._of_one and self._busy.total() < self._at_once)
            self._busy[caller] += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy[caller] -= 1
                if not self._busy[caller]:
                    del self._busy[caller]
                self._changed.notify_all()
