"""What all HTTP code here shares: names of ASGI types, requests that HTTP alone answers, answers that leave in one segment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]
Answer = bytes | Sequence[bytes | bytearray | memoryview]

# What a request's scope tells the server below: who was let in, whom to tell of it, and how long the answer is; what the server
# tells: whether the client has gone.
CALLER, LET_IN, ANSWER_BYTES = "gateway.caller", "gateway.let_in", "gateway.answer_bytes"
GONE = "gateway.gone"
# A part is copied on its way; pages and files behind links are smaller than what goes in pieces.
_LARGE_BYTES, _PIECE_BYTES = 16 << 20, 1 << 20
_DRAINED_SECONDS, _SILENT_SECONDS = 10.0, 1.0  # for what follows behind the limit of a body


@dataclass(frozen=True, slots=True)
class Parts:
    """An answer of `size` bytes that is made while it is sent, `at_once` of them; then, sent or not, `close` is called."""

    size: int
    at_once: int
    parts: AsyncIterator[bytes]
    close: Callable[[], None]


class RefusalError(Exception):
    """A request that is answered by HTTP alone."""

    def __init__(self, status: int, error_code: str, message: str, *headers: Header, close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.headers = headers
        self.close = close


class ClientGoneError(Exception):
    """The connection ended before the request did; there is nobody to answer."""


def let_in(scope: Scope, caller: str) -> bool:
    """It is known whose request it is; whether it is the first of theirs on its connection."""
    scope[CALLER] = caller
    return LET_IN not in scope or bool(scope[LET_IN](caller))


def address_of(scope: Scope) -> str:
    """Where the client is."""
    return str((scope.get("client") or ("",))[0])


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by their names, which are in lower case; of those that are there twice the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def agent_of(scope: Scope) -> str:
    """What the client calls itself."""
    return headers_of(scope).get("user-agent", "")


def is_gone(scope: Scope) -> bool:
    """Whether nobody is there any more to read the answer."""
    return GONE in scope and bool(scope[GONE]())


async def drain(receive: Receive, left: int) -> None:
    """Let a client end what it sends, within bounds: cut while it sends, it would see a broken connection and no answer."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAINED_SECONDS):
            while left > 0:
                message = await asyncio.wait_for(receive(), _SILENT_SECONDS)
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


async def stream(scope: Scope, send: Send, status: int, kind: bytes, body: Parts, headers: tuple[Header, ...]) -> None:
    """An answer part by part: each is sent once the client has taken those before, and made while there is a client."""
    head = [(b"content-type", kind), (b"content-length", str(body.size).encode()), *headers]
    try:
        await send({"type": "http.response.start", "status": status, "headers": head})
        async for part in body.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if is_gone(scope):
                raise ClientGoneError
    finally:
        body.close()
    await send({"type": "http.response.body", "body": b""})


async def respond(send: Send, status: int, kind: bytes, body: Answer, headers: tuple[Header, ...]) -> None:
    # Nothing is awaited between the head and the first part: the server writes both at once (`server.HeadFirst`).
    parts = (body,) if isinstance(body, bytes) else body
    size = str(sum(map(len, parts))).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", kind), (b"content-length", size), *headers],
        }
    )
    *before, last = (piece for part in parts for piece in _pieces(part))
    for part in before:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": last})


def _pieces(part: bytes | bytearray | memoryview) -> Iterator[bytes | bytearray | memoryview]:
    """A large part in pieces: each is copied when the one before it has gone."""
    if len(part) <= _LARGE_BYTES:
        yield part
    else:
        whole = memoryview(part)
        yield from (whole[at : at + _PIECE_BYTES] for at in range(0, len(part), _PIECE_BYTES))
