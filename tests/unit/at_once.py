"""How many threads are in a block at once, of all callers and of each."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class AtOnce:
    """Counts them; `most` by caller, and for all together. Each stays so long that others would come to it meanwhile."""

    def __init__(self, seconds: float) -> None:
        self.most: Counter[str] = Counter()
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._seconds = seconds

    @contextmanager
    def counted(self, caller: str = "") -> Iterator[None]:
        """A block that one thread is in."""
        with self._lock:
            self._busy[caller] += 1
            self.most[caller] = max(self.most[caller], self._busy[caller])
            self.most["all"] = max(self.most["all"], self._busy.total())
        time.sleep(self._seconds)
        yield
        with self._lock:
            self._busy[caller] -= 1
