"""Room for the bodies of requests: how many bytes of them may be here at once, over all connections.

Whoever wants more waits in order, with the connection unread, so that the bytes stay with the sender. One caller has half
of the room at most, and that half holds the largest body: what one caller sends slowly keeps out nobody else.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SMALL_BODY = 64 * 1024  # needs no room: as much is read of each connection before anybody asks for it
_LARGEST_BODIES = 8  # that there is room for


@dataclass(eq=False, slots=True)
class Room:
    """What one request has been given; `shrink` gives back what it does not need."""

    caller: str
    size: int
    given: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Bodies:
    """Gives room to requests; all calls come from one event loop.

    Args:
        largest: bytes of the largest body that is legal.
    """

    def __init__(self, largest: int) -> None:
        self._limit = largest * _LARGEST_BODIES
        self._share = self._limit // 2
        self._held: Counter[str] = Counter()
        self._waiting: deque[Room] = deque()

    @asynccontextmanager
    async def room(self, caller: str, size: int, wait_seconds: float) -> AsyncIterator[Room]:
        """Room for `size` bytes of a caller as long as the block lasts. Raises TimeoutError if there is none in time."""
        room = Room(caller, size)
        self._waiting.append(room)
        self._give()
        try:
            async with asyncio.timeout(wait_seconds):
                await room.given
            yield room
        finally:
            if room in self._waiting:
                self._waiting.remove(room)
            else:
                self.shrink(room, 0)
            self._give()

    def shrink(self, room: Room, size: int) -> None:
        """Give back all but `size` bytes."""
        self._held[room.caller] -= room.size - size
        room.size = size
        if not self._held[room.caller]:
            del self._held[room.caller]
        self._give()

    def _give(self) -> None:
        left = self._limit - self._held.total()
        for room in list(self._waiting):
            if room.given.done() or room.size + self._held[room.caller] > self._share:
                continue  # it has gone, or waits for its own caller: others may pass
            if room.size > left:
                return
            self._waiting.remove(room)
            self._held[room.caller] += room.size
            left -= room.size
            room.given.set_result(None)
