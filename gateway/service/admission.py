"""Who may run now: slots for statements, first come first served within a session, in turn between the sessions of a caller,
and in turn between callers.

More statements than slots wait; that is no error until the queue is full, and then not for a caller who has few in it.
Metadata calls may take slots of their own beside those of statements, so that a client can always connect; for those of
statements both take turns. A statement that would wait may begin in the lane, in turn as well: if it turns out not to be short,
it is put back to where it was.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from gateway import observability
from gateway.engine.fair import FairQueue
from gateway.errors import ResourceError

_LOOKED_AFTER = 0.5  # seconds: many may ask for their places, again and again


class Place:
    """A request for a slot; `start` is called when it is given one: once, and once more after it was put back.

    `brief` says that the slot which it has is one of the lane's.
    """

    __slots__ = ("brief", "held", "owner", "queue", "session", "small", "start", "waiting")

    def __init__(self, session: str, start: Callable[[], None], small: bool, owner: str = "") -> None:
        self.brief = False
        self.owner = owner
        self.session = session
        self.start = start
        self.small = small
        self.waiting = False
        self.held = False
        self.queue: Admission | None = None  # that it was entered into

    def position(self) -> tuple[int, int] | None:
        """Which one it is of those that wait, and how many these are; None unless it waits."""
        return None if self.queue is None else self.queue.position(self)


class Admission:
    """Gives `slots` slots to statements, `reserved` more that only small work (metadata calls) may use, and `lane` more that
    statements may begin in while all others have been taken for `patience` seconds: short ones among themselves are sooner
    done one after the other.

    `start` of a place is called without a lock, by the thread that asks or by the one that released the slot.
    """

    def __init__(
        self,
        slots: int,
        queue_limit: int,
        reserved: int = 1,
        lane: int = 0,
        patience: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots = slots
        self._lane = lane
        self.patience = patience
        self._clock = clock
        self._last_begun = float("-inf")  # when a slot for statements was last given
        self._total = slots + reserved
        self._queue_limit = queue_limit
        self._lock = threading.Lock()
        self._statements = FairQueue[Place]()
        self._small = FairQueue[Place]()
        self._untried = FairQueue[Place]()  # those of `_statements` that have not been in the lane
        self._running_statements = 0
        self._running_small = 0
        self._running_brief = 0
        self._passed_by = False  # a metadata call was given a slot that a statement waited for
        self._positions: dict[int, int] = {}
        self._positions_at = float("-inf")
        self._here = threading.local()

    def enter(self, session: str, start: Callable[[], None], small: bool = False) -> Place:
        """Ask for a slot. Raises ResourceError when the queue is full."""
        place = Place(session, start, small)
        self.enter_place(place)
        return place

    def enter_place(self, place: Place) -> None:
        """As `enter`, for a place that its owner made (and may have to know before `start` is called)."""
        with self._lock:
            place.queue = self
            queue = self._small if place.small else self._statements
            queue.put(place)
            if self._lane and not place.small:
                self._untried.put(place)
            place.waiting = True
            started = self._give_slots()
            full = place.waiting and queue.exceeds(place, self._queue_limit)
            if full:
                self._leave(place)
            started += self._give_lane()  # which is no way around a queue that is full: from there one may be put back
        self._start(started)
        if full:
            observability.counter("queue_rejected_total")
            raise ResourceError(
                "RESOURCE_EXHAUSTED",
                f"All slots are taken and {self._queue_limit} statements wait already: try again later.",
                retryable=True,
            )

    def release(self, place: Place) -> None:
        """Give back a slot (or the wish for one); does nothing the second time. Others may start."""
        with self._lock:
            if place.waiting:
                self._leave(place)
            elif place.held:
                self._give_back(place)
            else:
                return
            started = self._admit()
        self._start(started)

    def put_back(self, place: Place) -> None:
        """What began in the lane is not short: it waits for a slot, as the first of its session."""
        with self._lock:
            if not place.held:
                return
            self._give_back(place)
            self._statements.put(place, first=True)
            place.waiting = True
            started = self._admit()
        self._start(started)

    def look(self) -> float:
        """Open the lane if it is time; seconds until it is time to look again (or inf)."""
        with self._lock:
            started = self._give_lane()
            waits = bool(self._untried) and self._running_brief < self._lane
        self._start(started)
        return self.patience if waits else float("inf")

    def position(self, place: Place) -> tuple[int, int] | None:
        """Which one a place is of the statements that wait, as of half a second ago, and how many these are."""
        with self._lock:
            if not place.waiting or place.small:
                return None
            now, key = self._clock(), id(place)
            if now - self._positions_at > _LOOKED_AFTER or key not in self._positions:
                self._positions = {id(each): at for at, each in enumerate(self._statements.places(), 1)}
                self._positions_at = now
            return self._positions[key], max(self._positions[key], len(self._statements))

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return len(self._statements) + len(self._small)

    @property
    def running(self) -> int:
        """Slots that are taken."""
        return self._running_statements + self._running_small + self._running_brief

    def _leave(self, place: Place) -> None:
        """With the lock held: it waits no longer."""
        (self._small if place.small else self._statements).remove(place)
        self._untried.discard(place)
        place.waiting = False

    def _give_back(self, place: Place) -> None:
        """With the lock held: its slot is free."""
        place.held = False
        if place.small:
            self._running_small -= 1
        elif place.brief:
            self._running_brief -= 1
        else:
            self._running_statements -= 1
        place.brief = False

    def _admit(self) -> list[Place]:
        """With the lock held: give slots while there are some."""
        return self._give_slots() + self._give_lane()

    def _give_slots(self) -> list[Place]:
        started = []
        while True:
            statement = self._has_slot()
            # In turns: many metadata calls in a row would keep all statements out.
            if self._has_small_slot() and not (statement and self._passed_by):
                started.append(self._small.take())
                self._running_small += 1
                self._passed_by = statement
            elif statement:
                started.append(place := self._statements.take())
                self._untried.discard(place)
                self._running_statements += 1
                self._last_begun = self._clock()
                self._passed_by = False
            else:
                return _begun(started)

    def _give_lane(self) -> list[Place]:
        started: list[Place] = []
        if not self._untried or self._clock() - self._last_begun < self.patience:
            return started
        while self._untried and self._running_brief < self._lane:
            started.append(place := self._untried.take())
            self._statements.remove(place)
            place.brief = True
            self._running_brief += 1
        return _begun(started)

    def _has_small_slot(self) -> bool:
        """With the lock held: whether a metadata call waits, and a slot is free."""
        return bool(self._small) and self._running_statements + self._running_small < self._total

    def _has_slot(self) -> bool:
        """With the lock held: whether a statement waits, and one of the slots for statements is free."""
        taken = self._running_statements
        return bool(self._statements) and taken < self._slots and taken + self._running_small < self._total

    def _start(self, places: list[Place]) -> None:
        observability.gauge("queue_depth", self.waiting)
        # A start may fail at once and so release, which starts the next: in a loop, not in ever deeper calls.
        pending: deque[Place] | None = getattr(self._here, "pending", None)
        if pending is not None:
            pending.extend(places)
            return
        self._here.pending = pending = deque(places)
        try:
            while pending:
                pending.popleft().start()
        finally:
            self._here.pending = None


def _begun(places: list[Place]) -> list[Place]:
    for place in places:
        place.waiting = False
        place.held = True
    return places
