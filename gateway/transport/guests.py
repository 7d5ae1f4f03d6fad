"""Who is on the other side of the connections of a port, and which of too many goes first.

A connection is a stranger's until somebody is let in on it. One caller has half of them at most: those beyond it count as
strangers' too, so that nobody keeps out the others.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")


class Guests(Generic[K]):
    """Connections by who was let in on them. For one event loop.

    Args:
        limit: how many there may be.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._strangers: OrderedDict[K, None] = OrderedDict()  # who has been one for longest comes first
        self._callers: dict[K, str] = {}
        self._counts: Counter[str] = Counter()

    def came(self, key: K) -> None:
        """A new connection."""
        self._strangers[key] = None

    def let_in(self, key: K, caller: str) -> bool:
        """It is known who calls on it; whether that is news."""
        if is_new := self._callers.get(key) != caller:
            self._forget(key)
            self._callers[key] = caller
            self._counts[caller] += 1
        if self._counts[caller] <= self.limit // 2:
            self._strangers.pop(key, None)
        return is_new

    def was_answered(self, key: K) -> None:
        """Of strangers it now goes last."""
        if key in self._strangers:
            self._strangers.move_to_end(key)

    def left(self, key: K) -> None:
        """It is gone."""
        self._strangers.pop(key, None)
        self._forget(key)

    def victim(self) -> K | None:
        """The one to be cut in favour of a new one, which is forgotten; None if all are let in."""
        victim = next(iter(self._strangers), None)
        if victim is not None:
            self.left(victim)
        return victim

    def _forget(self, key: K) -> None:
        caller = self._callers.pop(key, None)
        if caller is not None:
            self._counts[caller] -= 1
            if not self._counts[caller]:
                del self._counts[caller]
