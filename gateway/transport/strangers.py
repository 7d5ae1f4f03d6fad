"""Who speaks another protocol than its port: told by the first byte, and answered in words that its own library shows.

A Thrift client gets an exception, a SASL client a status with a text, everybody else a small HTTP answer. TLS clients get that
too: their libraries then say that the peer does not speak TLS, which is what is wrong.
"""

from __future__ import annotations

import json
from enum import StrEnum

from gateway.protocol.codec import Fault, encode_exception
from gateway.transport.sasl import Status, message


class Tongue(StrEnum):
    """Protocols that a first byte tells."""

    TLS = "TLS"
    HTTP = "HTTP"
    THRIFT = "Thrift without SASL"
    SASL = "Thrift with SASL"
    UNKNOWN = "an unknown protocol"


_TONGUES = {0x16: Tongue.TLS, 0x80: Tongue.THRIFT, Status.START: Tongue.SASL}
_METHOD_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def tongue_of(data: bytes | bytearray) -> Tongue:
    """What a client speaks that begins with `data`."""
    if data[:1] and data[0] in _METHOD_LETTERS:
        return Tongue.HTTP
    return _TONGUES.get(data[0], Tongue.UNKNOWN) if data else Tongue.UNKNOWN


def answer(tongue: Tongue, text: str) -> bytes:
    """What is sent before the connection is closed."""
    if tongue is Tongue.THRIFT:
        return encode_exception("", 0, Fault.PROTOCOL_ERROR, text)
    if tongue is Tongue.SASL:
        return message(Status.ERROR, text.encode())
    body = json.dumps({"error_code": "WRONG_PROTOCOL", "message": text}).encode()
    head = (
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        f"x-thriftserver-error-message: {text}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii", "replace") + body
