"""Links to parts of a result: who holds one may read these rows of this operation until it expires, and nothing else.

A link is a text for URLs: identifier of the operation, first row, number of rows, time of expiry, and an HMAC over them, so
that a changed character makes it worthless. Clients download without their credentials (databricks-sql-connector), which is why
a link must be enough; it holds nothing that calls of the operation would take (handles have a secret that is not in it).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

_FIELDS = struct.Struct(">16sQQQ")
_KEY_BYTES = 32
_MAC_BYTES = 32
_TEXT_CHARACTERS = (_FIELDS.size + _MAC_BYTES) * 4 // 3  # a multiple of three bytes: no padding, no spare bits


@dataclass(frozen=True, slots=True)
class Link:
    """`rows` rows from `start_row` of the operation with the identifier `operation`; `expires_ms` in epoch milliseconds."""

    operation: bytes
    start_row: int
    rows: int
    expires_ms: int


class BadLinkError(Exception):
    """Not a link of this server, or one that is over; `expired` tells which."""

    def __init__(self, *, expired: bool) -> None:
        super().__init__("The link has expired." if expired else "The link is not valid.")
        self.expired = expired


class LinkSigner:
    """Signs links with a key that lives as long as the process, and reads them back.

    Args:
        seconds: how long a link is good for.
        now: epoch seconds.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.time) -> None:
        self._key = os.urandom(_KEY_BYTES)
        self._seconds = seconds
        self._now = now

    def sign(self, operation: bytes, start_row: int, rows: int) -> tuple[str, int]:
        """The text of a new link, and when it expires, in epoch milliseconds."""
        expires_ms = int((self._now() + self._seconds) * 1000)
        fields = _FIELDS.pack(operation, start_row, rows, expires_ms)
        return base64.urlsafe_b64encode(fields + self._mac(fields)).decode(), expires_ms

    def read(self, text: str) -> Link:
        """What a link says. Raises BadLinkError."""
        try:
            data = base64.urlsafe_b64decode(text.encode("ascii")) if len(text) == _TEXT_CHARACTERS else b""
        except (UnicodeEncodeError, binascii.Error) as error:
            raise BadLinkError(expired=False) from error
        fields, mac = data[: _FIELDS.size], data[_FIELDS.size :]
        # The decoder knows two spellings of some characters; a link has one.
        spelt = base64.urlsafe_b64encode(data).decode() == text
        if not hmac.compare_digest(mac, self._mac(fields)) or not spelt:
            raise BadLinkError(expired=False)
        link = Link(*_FIELDS.unpack(fields))
        if link.expires_ms <= self._now() * 1000:
            raise BadLinkError(expired=True)
        return link

    def _mac(self, fields: bytes) -> bytes:
        return hmac.digest(self._key, fields, "sha256")
