"""Access tokens for an hour, as OAuth's client credentials give them: whoever shows a name and a long-lived token gets one.

They are signed, not kept: with a key that this process makes for itself, so they end with it. One of them opens what the
token behind it opens.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping

from gateway.auth.authenticators import TOKEN_USER, basic_credentials, scheme_of
from gateway.auth.base import AuthenticationError, Authenticator, Identity

LIFETIME_SECONDS = 3600
_PREFIX = "gwat_"
_MAC_BYTES = 32


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

    def issue(self, headers: Mapping[str, str]) -> str:
        """A token for whom these headers, with HTTP Basic, belong to. Raises AuthenticationError."""
        if scheme_of(headers) != "basic":
            raise AuthenticationError("other", "Client id and secret are required.")
        name = self._behind.authenticate(headers).name
        payload = int(self._clock() + LIFETIME_SECONDS).to_bytes(8, "big") + name.encode()
        return _PREFIX + base64.urlsafe_b64encode(self._mac(payload) + payload).decode().rstrip("=")

    def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """See `Authenticator`."""
        scheme, user, token = scheme_of(headers), None, ""
        if scheme == "bearer":
            token = headers["authorization"].partition(" ")[2].strip()
        elif scheme == "basic":
            user, token = basic_credentials(headers["authorization"]) or (None, "")
        if not token.startswith(_PREFIX):
            return self._behind.authenticate(headers)
        name = self._holder(token)
        if name is None or user not in (None, TOKEN_USER, name):
            raise AuthenticationError(scheme, "The token is not valid.")
        return Identity(name)

    def _holder(self, token: str) -> str | None:
        """Whom a token was issued to, if it was and still holds."""
        text = token[len(_PREFIX) :]
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        if base64.urlsafe_b64encode(data).decode().rstrip("=") != text:  # bits that mean nothing
            return None
        mac, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload)) or len(payload) < 8:
            return None
        return payload[8:].decode() if int.from_bytes(payload[:8], "big") > self._clock() else None

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, hashlib.sha256)
