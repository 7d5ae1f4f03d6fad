"""Requests to a bucket by presigned links: each has an end, whatever is answered, and little of an answer is read."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from errno import ETIMEDOUT
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

_SILENCE = 10.0  # seconds
_WHOLE = 30.0  # seconds of one request, from connecting to the answer
_TRIES = 3  # while the bucket says that it is no fault of ours
_PAUSE = 0.2
_MOST_READ = 4096
_CODE = re.compile(rb"<Code>(\w{1,100})</Code>")  # of S3's errors


class RefusedError(Exception):
    """What a bucket says, or that it says nothing that can be read; without an address, which may be signed."""


def ask(link: str, method: str, headers: Mapping[str, str], parts: Sequence[bytes | memoryview] = ()) -> None:
    """Do one request, of which nothing but its success is wanted; redirects are not followed. Raises RefusedError."""
    size, begun = sum(map(len, parts)), time.monotonic()
    for left in reversed(range(_TRIES)):
        try:
            status, told = _asked(link, method, {**headers, "Content-Length": str(size)}, parts)
        except (OSError, HTTPException, ValueError) as error:
            raise RefusedError(f"{type(error).__name__}: {getattr(error, 'strerror', None) or 'no answer'}") from error
        if status // 100 == 2 or (status == 404 and method == "DELETE"):
            return
        if status < 500 or not left or time.monotonic() - begun > _SILENCE:
            break
        time.sleep(_PAUSE)
    code = _CODE.search(told)
    raise RefusedError(f"{method} is answered with {status}{f' {code[1].decode()}' if code else ''}")


def _asked(
    link: str, method: str, headers: Mapping[str, str], parts: Sequence[bytes | memoryview]
) -> tuple[int, bytes]:
    """Status and the first bytes of an answer."""
    there = urlsplit(link)
    connection, target = _connection(there)
    with closing(connection), _ended_in_time(connection) as is_cut:
        connection.request(method, target, iter(parts), headers)
        with closing(connection.getresponse()) as answer:
            told = answer.read(_MOST_READ) if answer.status // 100 != 2 else b""
        if is_cut.is_set():  # what came until then may look like an answer
            raise TimeoutError(ETIMEDOUT, "it takes too long")
    return answer.status, told


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that the system trusts, which take a while to read."""
    return ssl.create_default_context()


def _connection(there: SplitResult) -> tuple[HTTPConnection, str]:
    """A connection that is not yet open, through the environment's proxy if there is one, and what is asked for on it."""
    is_secure, host, target = there.scheme == "https", there.hostname or "", f"{there.path}?{there.query}"
    port = there.port or (443 if is_secure else 80)
    address = "" if proxy_bypass(host) else getproxies().get(there.scheme, "")
    proxy = urlsplit(address if "://" in address or not address else f"http://{address}")
    at = (proxy.hostname or host, (proxy.port or 80) if proxy.hostname else port)
    allowed = {}
    if proxy.hostname and proxy.username is not None:
        secret = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        allowed = {"Proxy-Authorization": f"Basic {b64encode(secret).decode()}"}
    if is_secure:
        line: HTTPConnection = HTTPSConnection(*at, timeout=_SILENCE, context=_trusted())
        if proxy.hostname:
            line.set_tunnel(host, port, allowed)
        return line, target
    return HTTPConnection(*at, timeout=_SILENCE), there.geturl() if proxy.hostname else target


@contextmanager
def _ended_in_time(connection: HTTPConnection) -> Iterator[threading.Event]:
    """Cut the line of a connection once it is over its time: who sends a byte now and then is never silent."""
    held: list[socket.socket] = []
    is_cut = threading.Event()

    def connected(*given: Any, **options: Any) -> socket.socket:
        line = socket.create_connection(*given, **options)
        held.append(line.dup())  # TLS takes the descriptor away from the other
        return line

    def cut() -> None:
        is_cut.set()
        for line in tuple(held):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    vars(connection)["_create_connection"] = connected
    timer = threading.Timer(_WHOLE, cut)
    timer.daemon = True
    timer.start()
    try:
        yield is_cut
    finally:
        timer.cancel()
        for line in held:
            line.close()


__all__ = ["RefusedError", "ask"]
