"""The states of an operation: which may follow which, and when each was reached."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.service.api import State

_PAUSE_SECONDS = 10.0  # a client that takes longer does other things in between
_STOPS = frozenset({State.CANCELED, State.CLOSED, State.ERROR, State.TIMEDOUT})

TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.INITIALIZED: _STOPS | {State.PENDING, State.RUNNING},
    State.PENDING: _STOPS | {State.RUNNING},
    State.RUNNING: _STOPS | {State.FINISHED, State.PENDING},  # back: it waits for another engine, or for a slot
    State.FINISHED: frozenset({State.CLOSED}),
    State.CANCELED: frozenset({State.CLOSED}),
    State.ERROR: frozenset({State.CLOSED}),
    State.TIMEDOUT: frozenset({State.CLOSED}),
    State.CLOSED: frozenset(),
}


@dataclass(slots=True)
class Times:
    """Readings of the service's clock in seconds (None: not yet), and the start in epoch milliseconds."""

    accepted: float
    admitted: float | None = None
    planned: float | None = None
    first_row: float | None = None
    ended: float | None = None
    fetched: float | None = None  # the last time
    fetching: float = 0.0  # seconds from the end to the last fetch, without long pauses
    started_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    @property
    def completed_ms(self) -> int | None:
        """The end by the service's clock: a wall clock that is set back would put it before the start."""
        return None if self.ended is None else self.started_ms + round((self.ended - self.accepted) * 1000)

    def fetch(self, now: float) -> None:
        """Rows were given to the client."""
        if self.ended is not None:
            gap = now - max(self.ended, self.fetched or 0.0)
            self.fetching += gap if gap < _PAUSE_SECONDS else 0.0
        self.fetched = now
