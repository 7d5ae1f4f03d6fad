"""A queue in which callers take turns, and so do the sessions of each; what one session sent stays in order.

It has no lock: whoever holds it has one.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import zip_longest
from typing import Generic, Protocol, TypeVar

FEW = 10  # one part in so many of a limit is there for each caller, whoever has taken the rest


class Queued(Protocol):
    """What waits, and for whom."""

    @property
    def owner(self) -> str: ...

    @property
    def session(self) -> str: ...


T = TypeVar("T", bound=Queued)


class _Turns(Generic[T]):
    """Places in order of arrival within a session; sessions take turns."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, deque[T]] = OrderedDict()
        self.length = 0

    def put(self, place: T, first: bool = False) -> None:
        places = self._sessions.setdefault(place.session, deque())
        (places.appendleft if first else places.append)(place)
        self.length += 1

    def take(self) -> T:
        session, places = next(iter(self._sessions.items()))
        place = places.popleft()
        self.length -= 1
        if places:
            self._sessions.move_to_end(session)
        else:
            del self._sessions[session]
        return place

    def places(self) -> list[T]:
        """All of them, as they would be taken."""
        return _in_turn([list(places) for places in self._sessions.values()])

    def has(self, place: T) -> bool:
        return place in self._sessions.get(place.session, ())

    def remove(self, place: T) -> None:
        places = self._sessions[place.session]
        places.remove(place)
        self.length -= 1
        if not places:
            del self._sessions[place.session]


class FairQueue(Generic[T]):
    """Places by their sessions' turns; callers, too, take turns."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, _Turns[T]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def of(self, owner: str) -> int:
        """How many places a caller has in it."""
        turns = self._owners.get(owner)
        return 0 if turns is None else turns.length

    def exceeds(self, place: T, limit: int) -> bool:
        """Whether a place in it is one more than the `limit`, and than its caller's share of that."""
        return len(self) > limit and self.of(place.owner) > limit // FEW

    def places(self) -> list[T]:
        """All of them, as they would be taken."""
        return _in_turn([turns.places() for turns in self._owners.values()])

    def put(self, place: T, first: bool = False) -> None:
        """It is the last of its session, or the `first`."""
        turns = self._owners.get(place.owner)
        if turns is None:
            turns = self._owners[place.owner] = _Turns[T]()
        turns.put(place, first)
        self._length += 1

    def take(self) -> T:
        owner, turns = next(iter(self._owners.items()))
        place = turns.take()
        self._length -= 1
        if turns.length:
            self._owners.move_to_end(owner)
        else:
            del self._owners[owner]
        return place

    def has(self, place: T) -> bool:
        turns = self._owners.get(place.owner)
        return turns is not None and turns.has(place)

    def discard(self, place: T) -> None:
        """Remove it if it is there."""
        if self.has(place):
            self.remove(place)

    def empty(self) -> list[T]:
        """All that waited, of whom none does any more."""
        places = self.places()
        self._owners.clear()
        self._length = 0
        return places

    def remove(self, place: T) -> None:
        turns = self._owners[place.owner]
        turns.remove(place)
        self._length -= 1
        if not turns.length:
            del self._owners[place.owner]


def _in_turn(lists: list[list[T]]) -> list[T]:
    """One of each list, then the next of each."""
    return [place for row in zip_longest(*lists) for place in row if place is not None]
