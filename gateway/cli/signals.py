"""What signals ask for, told to the main thread.

A handler comes between any two steps of that thread, also while it holds the lock of what it waits for: an event that the
handler set would then be waited for without an end. A `SimpleQueue` may be put into at any moment. And a signal that comes
just before the thread begins to wait does not interrupt it: its handler runs at the next look.
"""

from __future__ import annotations

from enum import Enum
from queue import Empty, SimpleQueue

_LOOK_SECONDS = 0.2


class Wish(Enum):
    """What a signal asks for."""

    STOP = "stop"
    REREAD = "reread"


class Wishes:
    """Those of signals, in order; put by handlers, taken by the main thread."""

    def __init__(self) -> None:
        self._wishes: SimpleQueue[Wish] = SimpleQueue()
        self._stops = False

    def stop(self) -> bool:
        """Ask to stop; whether somebody has before."""
        before, self._stops = self._stops, True
        self._wishes.put(Wish.STOP)
        return before

    def reread(self) -> None:
        """Ask for files to be read again."""
        self._wishes.put(Wish.REREAD)

    def next(self) -> Wish:
        """The next one, waited for."""
        while True:
            try:
                return self._wishes.get(timeout=_LOOK_SECONDS)
            except Empty:  # handlers have run by now
                continue
