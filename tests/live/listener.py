"""A sink for the events of a job that tests look at."""

from __future__ import annotations

import os
import threading

from gateway.engine.base import Event, Failed, Finished
from gateway.errors import GatewayError, ResourceError

_WAIT = 30.0


class Listener:
    """Keeps events and demands that they come one at a time, none after the last; `spool` is the descriptor for rows."""

    def __init__(self, spool: int | None = None) -> None:
        self.events: list[Event] = []
        self.ended = threading.Event()
        self.spool = spool
        self.running = threading.Event()
        self.inside = threading.Lock()
        self.mistakes: list[str] = []

    def event(self, event: Event) -> None:
        if not self.inside.acquire(blocking=False):
            self.mistakes.append(f"{event} at the same time as another")
            return
        if self.ended.is_set():
            self.mistakes.append(f"{event} after the end")
        self.events.append(event)
        self.running.set()
        if isinstance(event, (Finished, Failed)):
            self.ended.set()
        self.inside.release()

    def spool_descriptor(self) -> int:
        if self.spool is None:
            raise ResourceError("RESULT_TOO_LARGE", "No spool here.")
        return os.dup(self.spool)

    def last(self) -> Event:
        assert self.ended.wait(_WAIT), self.events
        assert not self.mistakes
        return self.events[-1]

    def error(self) -> GatewayError:
        last = self.last()
        assert isinstance(last, Failed), last
        return last.error

    def of(self, kind: type) -> list[Event]:
        return [e for e in self.events if isinstance(e, kind)]
