"""SASL as Thrift frames it, the server's side of PLAIN: bytes in, bytes and a caller out; nothing here knows a socket.

A message is one byte of status, a length of four bytes, and a payload. A client sends START with the mechanism's name, then
OK (Python) or COMPLETE (Java) with ``authorization NUL user NUL password``; the answer is COMPLETE, or BAD with a text, which
clients show. After it come frames: a length of four bytes and a Thrift message.
"""

from __future__ import annotations

import base64
import re
from enum import IntEnum
from struct import Struct

from gateway.auth.base import AuthenticationError, Authenticator, Identity

PAYLOAD_LIMIT = 16 * 1024  # a password may be a token
_HEAD = Struct(">BI")
_MECHANISM = re.compile(rb"[A-Z0-9_-]{1,20}")  # RFC 4422, 3.1
_TICKETS = "use PLAIN with a user and a password or token (PyHive: auth='LDAP' or 'NONE'; JDBC: no ;principal=)."


class Status(IntEnum):
    """The first byte of a message."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


class NegotiationError(Exception):
    """The negotiation has failed: `answer` is to be sent, and the connection closed."""

    def __init__(self, status: Status, text: str, cause: AuthenticationError | None = None) -> None:
        super().__init__(text)
        self.answer = message(status, text.encode())
        self.cause = cause


def message(status: Status, payload: bytes) -> bytes:
    """The bytes of a message."""
    return _HEAD.pack(status, len(payload)) + payload


class Negotiation:
    """One negotiation, from the client's first byte on.

    Attributes:
        identity: the caller, once it is known.
    """

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._started = False
        self.identity: Identity | None = None

    def feed(self, buffer: bytearray) -> bytes:
        """Take whole messages off the front of `buffer`; what to send. Raises NegotiationError."""
        while self.identity is None and len(buffer) >= _HEAD.size:
            status, size = _HEAD.unpack_from(buffer)
            if size > PAYLOAD_LIMIT:
                raise NegotiationError(Status.ERROR, f"A SASL message is longer than {PAYLOAD_LIMIT} bytes.")
            if len(buffer) < _HEAD.size + size:
                break
            payload = bytes(buffer[_HEAD.size : _HEAD.size + size])
            del buffer[: _HEAD.size + size]
            if not self._started:
                self._start(status, payload)
            else:
                self.identity = self._login(status, payload)
                return message(Status.COMPLETE, b"")
        return b""

    def _start(self, status: int, payload: bytes) -> None:
        if status != Status.START:
            raise NegotiationError(Status.ERROR, f"SASL begins with START, not with status {status}.")
        if payload != b"PLAIN":
            # Clients of other protocols send credentials behind the name: what is no name is not repeated, nor logged.
            named = f" {payload.decode()!r}" if _MECHANISM.fullmatch(payload) else ", which has no mechanism's name,"
            raise NegotiationError(Status.BAD, f"The SASL mechanism{named} is not supported: {_TICKETS}")
        self._started = True

    def _login(self, status: int, payload: bytes) -> Identity:
        if status not in (Status.OK, Status.COMPLETE):
            raise NegotiationError(Status.ERROR, f"The credentials came with status {status}.")
        try:
            acting_for, user, password = payload.decode().split("\0")
        except ValueError:
            raise NegotiationError(Status.BAD, "The credentials of SASL PLAIN are malformed.") from None
        if acting_for not in ("", user):
            raise NegotiationError(
                Status.BAD, "Nobody acts for another user here (SASL PLAIN's authorization identity)."
            )
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        try:
            return self._authenticator.authenticate({"authorization": f"Basic {basic}"})
        except AuthenticationError as error:
            raise NegotiationError(Status.BAD, error.message, error) from error
