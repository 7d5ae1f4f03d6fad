"""Who was let in and who was not: counted, told in the log, and kept for `system.access.audit`."""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable

from gateway.auth.base import AuthenticationError
from gateway.history.records import LONGEST_NAME, SignIn
from gateway.observability import Throttle, counter, log

# Databricks' names (docs: system.access.audit, service `accounts`).
TOKEN_LOGIN = "tokenLogin"
LOGIN = "login"  # of the console
TOKEN_GRANTED = "oidcTokenAuthorization"
_FAILURES_TOLD = (20, 10.0)  # failures that are logged and kept, in so many seconds
_AGAIN_SECONDS = 60.0  # a client that opens connection after connection has signed in once
_MOST_RECENT = 4096


class SignIns:
    """For all doors, from any thread.

    Args:
        keep: takes a record; quick.
        clock: seconds, without jumps.
    """

    def __init__(
        self, keep: Callable[[SignIn], None] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._keep = keep
        self._clock = clock
        self._failures = Throttle(*_FAILURES_TOLD)
        self._recent: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._lock = threading.Lock()

    def let_in(self, user: str, address: str, client: str, mechanism: str, action: str = TOKEN_LOGIN) -> None:
        """Somebody has shown who they are on a new connection."""
        user, client = user[:LONGEST_NAME], client[:LONGEST_NAME]  # they are remembered, and clients say what they like
        if self._keep is None or self._is_recent((user, address, client, mechanism, action)):
            return
        self._keep(SignIn(*_now(), user, address, client, action, mechanism, 200, None, 0))

    def refused(
        self, error: AuthenticationError, address: str, client: str, mechanism: str, action: str = TOKEN_LOGIN
    ) -> None:
        """Somebody has not."""
        counter("auth_failures_total", mech=mechanism)
        held = self._failures.ask()
        if held is None:
            return
        log("login failed", "warning", address=address, mech=mechanism, reason=error.message, unlogged=held)
        if self._keep is not None:
            self._keep(
                SignIn(*_now(), None, address, client[:LONGEST_NAME], action, mechanism, 401, error.message, held)
            )

    def _is_recent(self, key: tuple[str, ...]) -> bool:
        now = self._clock()
        with self._lock:
            before = self._recent.get(key)
            if before is not None and now - before < _AGAIN_SECONDS:
                return True
            self._recent[key] = now
            self._recent.move_to_end(key)
            if len(self._recent) > _MOST_RECENT:
                self._recent.popitem(last=False)
        return False


def _now() -> tuple[str, int]:
    """A name of its own for an event, and when it was (milliseconds of Unix time)."""
    return str(uuid.uuid4()), time.time_ns() // 1_000_000
