"""Databases that kept a reader waiting for nothing: for a while nobody of this process waits for them again."""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway.history.store import unreadable

_SHORT_SECONDS = 1.0  # who waited no longer than that has held up nobody
_TIMES = 3  # so many times as long as was waited
_LONGEST_SECONDS = 30.0


class Silence:
    """What was told of databases that did not answer, and until when it is told again. Of any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[str, tuple[float, str]] = {}

    def check(self, address: str) -> None:
        """Raises ServerError HISTORY_UNREADABLE for one that has not answered a while ago."""
        until, reason = self._told.get(address, (0.0, ""))
        if self._clock() < until:
            raise unreadable(reason)

    def note(self, address: str, waited: float, reason: str) -> None:
        """Somebody has waited so many seconds for nothing."""
        if waited > _SHORT_SECONDS:
            self._told[address] = self._clock() + min(_LONGEST_SECONDS, _TIMES * waited), reason

    def forget(self) -> None:
        """Ask all of them again."""
        self._told.clear()
