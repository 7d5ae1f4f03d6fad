"""Files behind links over HTTP: whole, or the part that a Range header asks for (RFC 9110, section 14)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from gateway.transport.asgi import Answer, Header, RefusalError, Scope, let_in
from gateway.transport.lanes import Lane


class Download(Protocol):
    """What links lead to (`protocol.downloads.Downloads`)."""

    def owner(self, link: str) -> str:
        """Whose rows they are, "" for no link; never waits."""

    def answer(self, link: str, leads_on: bool) -> tuple[int, str, Sequence[bytes | memoryview]]:
        """HTTP status, media type or an error's text, and the file in parts; or 307 and where it is. Blocking."""


RESULTS = "/sql/1.0/results/"
_BYTES = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


async def file_answer(download: Download, lane: Lane, scope: Scope) -> tuple[int, bytes, tuple[Header, ...], Answer]:
    """Status, media type, headers and the file of a link: it is all that is needed, whoever comes with it.

    Raises RefusalError.
    """
    if scope["method"] not in ("GET", "HEAD"):
        raise RefusalError(405, "METHOD_NOT_ALLOWED", "Only GET is served here.", (b"allow", b"GET, HEAD"))
    link = scope["path"].removeprefix(RESULTS)
    owner = download.owner(link)  # what is made and sent behind links counts as theirs
    status, said, parts = await lane.run(owner, partial(download.answer, link, scope["method"] == "GET"))
    if status == 307:
        let_in(scope, owner)
        return 307, b"text/plain", ((b"location", said.encode()), (b"cache-control", b"no-store")), b""
    if status != 200:
        raise RefusalError(status, "PERMISSION_DENIED" if status == 403 else "RESOURCE_DOES_NOT_EXIST", said)
    let_in(scope, owner)
    headers: tuple[Header, ...] = (
        (b"accept-ranges", b"bytes"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),  # texts of a result are no page of this server
    )
    size = sum(map(len, parts))
    asked = next((value for name, value in scope["headers"] if name == b"range"), None)
    wanted = None if asked is None else _range(asked.decode("latin-1"), size)
    if wanted is None:
        return 200, said.encode(), headers, parts
    first, last = wanted
    if first > last:
        reach = (b"content-range", b"bytes */%d" % size)
        raise RefusalError(416, "RANGE_NOT_SATISFIABLE", f"The file has {size} bytes.", reach)
    headers += ((b"content-range", b"bytes %d-%d/%d" % (first, last, size)),)
    return 206, said.encode(), headers, memoryview(b"".join(parts))[first : last + 1].tobytes()


def _range(header: str, size: int) -> tuple[int, int] | None:
    """First and last byte of a Range header; None for what may be ignored: other units, more than one part, nonsense.

    The first is larger than the last if there are no such bytes.
    """
    found = _BYTES.fullmatch(header.strip())
    if found is None:
        return None
    first, last = found.groups()
    if not first:
        return (max(0, size - int(last)), size - 1) if last else None
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last), size - 1) if last else size - 1
