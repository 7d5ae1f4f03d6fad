"""Access tokens for an hour, as OAuth's client credentials give them: whoever shows a name and a long-lived token gets one.

They are JSON web tokens, since databricks-jdbc reads in them how long they hold; signed, not kept: with a key that this process
makes for itself, so they end with it. One of them opens what the token behind it opens, for as long as that one does.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Collection, Mapping

from gateway.auth.authenticators import TOKEN_USER, basic_credentials, scheme_of
from gateway.auth.base import AuthenticationError, Authenticator, Identity

LIFETIME_SECONDS = 3600


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


# The only header that is taken: what a token says of its algorithm decides nothing.
_HEADER = _encoded(b'{"alg":"HS256","typ":"JWT"}') + "."


class IssuedTokens:
    """An authenticator in front of another one, of which it asks whatever it has not issued itself.

    Args:
        behind: knows the long-lived tokens.
        clock: seconds since the epoch.
    """

    def __init__(self, behind: Authenticator, clock: Callable[[], float] = time.time) -> None:
        self._behind = behind
        self._clock = clock
        self._key = secrets.token_bytes(32)

    def issue(self, headers: Mapping[str, str], issuer: str) -> str:
        """A token for whom these headers, with HTTP Basic, belong to. Raises AuthenticationError.

        `issuer` is the server as the client calls it: the Python connector would exchange the token of another one.
        """
        if scheme_of(headers) != "basic":
            raise AuthenticationError("other", "Client id and secret are required.")
        identity, now = self._behind.authenticate(headers), int(self._clock())
        claims = {"iss": issuer, "sub": identity.name, "iat": now, "exp": now + LIFETIME_SECONDS, "scope": "all-apis"}
        claims["jti"] = self._signature(identity.proof.hex())  # the token behind it, without which it ends
        text = _HEADER + _encoded(json.dumps(claims).encode())
        return f"{text}.{self._signature(text)}"

    def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """See `Authenticator`."""
        scheme, user, token = scheme_of(headers), None, ""
        if scheme == "bearer":
            token = headers["authorization"].partition(" ")[2].strip()
        elif scheme == "basic":
            user, token = basic_credentials(headers["authorization"]) or (None, "")
        if not token.startswith(_HEADER):
            return self._behind.authenticate(headers)
        found = self._holder(token)
        if found is None or user not in (None, TOKEN_USER, found.name):
            raise AuthenticationError(scheme, "The token is not valid.")
        return found

    def proofs(self, name: str) -> Collection[bytes]:
        """See `Authenticator`."""
        return self._behind.proofs(name)

    def _holder(self, token: str) -> Identity | None:
        """Whom a token was issued to, if it was and still holds."""
        text, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            return None
        payload = text.removeprefix(_HEADER)  # ours, so it is what `issue` has written
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        if claims["exp"] <= self._clock():
            return None
        name = str(claims["sub"])
        behind = [p for p in self.proofs(name) if hmac.compare_digest(self._signature(p.hex()), claims["jti"])]
        return Identity(name, behind[0], claims["exp"]) if behind else None

    def _signature(self, text: str) -> str:
        return _encoded(hmac.digest(self._key, text.encode(), hashlib.sha256))
