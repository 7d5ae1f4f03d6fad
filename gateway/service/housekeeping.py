"""The thread that keeps house: what is over its time is ended, what nobody touches let go of, and figures are taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gateway import observability

_SECONDS = 5.0


class Housekeeper:
    """Calls `sweep` and `measure` every few seconds, and `sweep` when somebody's time is over.

    Args:
        sweep: answers with the seconds until it has to be called again.
        measure: takes figures.
        clock: what deadlines are told by.
    """

    def __init__(self, sweep: Callable[[], float], measure: Callable[[], None], clock: Callable[[], float]) -> None:
        self._sweep = sweep
        self._measure = measure
        self._clock = clock
        self._wake = threading.Condition()
        self._next_look = 0.0
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._keep_house, name="housekeeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Idempotent."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(10)

    def expect(self, deadline: float) -> None:
        """There is one more deadline: look then, not later."""
        if deadline < self._next_look:
            with self._wake:
                self._wake.notify_all()

    def _keep_house(self) -> None:
        last_full_look = 0.0
        while not self._stopping:
            nearest = 1.0
            try:
                nearest = self._sweep()
            except Exception as error:  # noqa: BLE001 - timeouts of others must be enforced all the same
                observability.log("housekeeping failed", "error", error=repr(error))
            if time.monotonic() - last_full_look >= _SECONDS:
                last_full_look = time.monotonic()
                self._measure()
            with self._wake:
                pause = min(_SECONDS, nearest)
                self._next_look = self._clock() + pause
                if not self._stopping:
                    self._wake.wait(pause)
