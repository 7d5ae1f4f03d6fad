"""Who has signed in: random ids that browsers keep in a cookie, and whom each stands for.

The id is all that leaves the server, and the server keeps its hash alone. It ends after a while, when its holder signs out, and
with the token that it was given for.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gateway.auth.base import Authenticator, Identity

LIFETIME_SECONDS = 12 * 3600
_IDLE_SECONDS = 4 * 3600
_MOST, _MOST_OF_ONE = 10_000, 100  # the oldest go
_LONGEST = 128


@dataclass(slots=True)
class _SignIn:
    identity: Identity
    ends: float
    touched: float


class SignedIn:
    """The sign-ins of a server. Thread-safe.

    Args:
        authenticator: knows which tokens still open.
        clock: seconds that do not jump.
    """

    def __init__(self, authenticator: Authenticator, clock: Callable[[], float] = time.monotonic) -> None:
        self._authenticator = authenticator
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, _SignIn] = OrderedDict()

    def open(self, identity: Identity) -> str:
        """A new id for somebody whose token has been seen."""
        found = secrets.token_urlsafe(32)
        now = self._clock()
        with self._lock:
            self._known[_key(found)] = _SignIn(identity, now + LIFETIME_SECONDS, now)
            own = [key for key, one in self._known.items() if one.identity.name == identity.name]
            for key in own[:-_MOST_OF_ONE]:
                del self._known[key]
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return found

    def find(self, text: str) -> Identity | None:
        """Whom an id stands for, as long as it does."""
        if len(text) > _LONGEST:
            return None
        key, now = _key(text), self._clock()
        with self._lock:
            found = self._known.get(key)
            if found is None:
                return None
            identity = found.identity
            proofs = self._authenticator.proofs(identity.name)
            stands = any(hmac.compare_digest(proof, identity.proof) for proof in proofs)
            if not stands or now >= found.ends or now - found.touched > _IDLE_SECONDS:
                del self._known[key]
                return None
            found.touched = now
            return identity

    def close(self, text: str) -> None:
        """Let an id stand for nobody."""
        with self._lock:
            self._known.pop(_key(text), None)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
