"""Answers as bytes."""

from __future__ import annotations

from typing import Any

from gateway.protocol import codec
from gateway.protocol.writer import Extras


def encode_reply(method: str, seqid: int, answer: Any, extras: Extras | None = None) -> bytes:
    """The bytes of an answer, joined; with unknown fields that were read."""
    parts = codec._message(codec._REPLY, codec._REPLIES[method], method, seqid, codec.Envelope(answer), extras)
    return b"".join(parts)
