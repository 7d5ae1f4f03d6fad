"""Thrift over HTTP, and the small pages beside it: one ASGI application without a framework.

Sockets, headers and the one hop from the event loop to a thread are here; everything below is blocking code. A request is
routed and authenticated before its body is read, and the body is cut at the limit while it streams in. Small answers are sent
whole, head and body in one write: in two they would cost clients 40 ms (Nagle's algorithm meets delayed ACKs).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from gateway.auth.authenticators import scheme_of
from gateway.auth.base import AuthenticationError, Authenticator
from gateway.auth.issued import IssuedTokens
from gateway.observability import METRICS_CONTENT_TYPE, counter
from gateway.transport import oidc
from gateway.transport.asgi import (
    ANSWER_BYTES,
    Answer,
    ClientGoneError,
    Header,
    Parts,
    Receive,
    RefusalError,
    Scope,
    Send,
    address_of,
    agent_of,
    drain,
    headers_of,
    is_gone,
    let_in,
    respond,
    stream,
)
from gateway.transport.bodies import SMALL_BODY, Bodies, Room
from gateway.transport.files import RESULTS, Download, file_answer
from gateway.transport.lanes import Lane
from gateway.transport.sign_ins import LOGIN, TOKEN_GRANTED, TOKEN_LOGIN, SignIns
from gateway.transport.volumes import FILES, VolumeDoor
from gateway.transport.web import HEADERS, Console, Reply, check_name, check_site

# Method, path, body, name of the caller, User-Agent, origin, query -> HTTP status and JSON, for paths below `_API`.
Rest = Callable[[str, str, bytes, str, str, str, str], tuple[int, bytes]]
# Headers, body, name of the caller -> HTTP status and JSON, or nothing, for POST to `_MCP`.
Mcp = Callable[[Sequence[Header], bytes, str], tuple[int, bytes]]
Serve = Callable[[Scope, Receive], Awaitable[Reply]]
R = TypeVar("R")

BODY_LIMIT = 32 * 1024 * 1024
THREADS = 512
FILES_AT_ONCE = 8  # behind links, each with its rows in memory while it is made
_FORM_SECONDS = 20.0
_PAUSE_SECONDS = 0.05
_THRIFT = b"application/x-thrift"
_JSON = b"application/json"
_API = "/api/2.0/"
_SINGLE = (b"authorization", b"host")
_MCP = "/api/2.0/mcp/sql"
_HOST = re.compile(r"[\w.-]+(:\d{1,5})?|\[[0-9a-fA-F:.]+\](:\d{1,5})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Probes:
    """What the pages beside Thrift show. `ready` gives None, or the reason why requests should go elsewhere."""

    ready: Callable[[], str | None]
    metrics: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Beside:
    """What is served beside Thrift, as far as it is there.

    Attributes:
        download: what links to results lead to.
        volumes: what links to files of volumes lead to.
        rest: method, path, body, name of the caller, User-Agent, origin, query -> status and JSON (`rest.routes.RestApi`).
        mcp: headers, body, name of the caller -> status and JSON (`mcp.server.McpServer`).
        console: the page, and what it calls.
        issuer: gives short-lived tokens to whom the authenticator knows, by OAuth.
    """

    download: Download | None = None
    volumes: VolumeDoor | None = None
    rest: Rest | None = None
    mcp: Mcp | None = None
    console: Console | None = None
    issuer: IssuedTokens | None = None


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of what clients may have in flight. Sizes in bytes, times in seconds.

    Attributes:
        threads: how many calls of either kind may be in flight; one caller has half of them at most.
        body: the largest body of a request.
        body_seconds: how long a body may take to arrive.
        room_seconds: how long a large one may wait until others have gone.
    """

    threads: int = THREADS
    body: int = BODY_LIMIT
    body_seconds: float = 120.0
    room_seconds: float = 60.0


def is_thrift_path(path: str) -> bool:
    """Whether Thrift is served on a path: repeated and trailing slashes do not count (databricks-jdbc doubles the first)."""
    match [part for part in path.split("/") if part]:
        case ["cliservice"] | ["sql", "1.0", "warehouses" | "endpoints", _] | ["sql", "protocolv1", "o", _, _]:
            return True
    return False


def _is_place(host: str) -> bool:
    """Whether links can begin with what a client calls the server."""
    try:
        return _HOST.fullmatch(host) is not None and urlsplit(f"//{host}").port != 0
    except ValueError:  # no address between brackets, or no port
        return False


def _check_head(scope: Scope) -> None:
    """Raise RefusalError for what a proxy before this server may have read in another way.

    Versions that are none of HTTP/1 (RFC 9112, 2.3), chunks in 1.0 and other codings (6.1), no Host in 1.1 (3.2), headers that
    say twice who calls, or whom.
    """
    version, names = scope["http_version"], {name for name, _ in scope["headers"]}
    if version not in ("1.0", "1.1"):
        raise RefusalError(505, "MALFORMED_REQUEST", f"HTTP/{version} is not spoken here.", close=True)
    if version == "1.0" and b"transfer-encoding" in names:
        raise RefusalError(400, "MALFORMED_REQUEST", "HTTP/1.0 has no Transfer-Encoding.", close=True)
    if version == "1.1" and b"host" not in names:
        raise RefusalError(400, "MALFORMED_REQUEST", "HTTP/1.1 asks for a Host header.", close=True)
    codings = [value.strip().lower() for name, value in scope["headers"] if name == b"transfer-encoding"]
    if any(value != b"chunked" for value in codings):
        raise RefusalError(501, "MALFORMED_REQUEST", "No Transfer-Encoding but chunked is known here.", close=True)
    for name in _SINGLE:
        if sum(found == name for found, _ in scope["headers"]) > 1:
            text = f"The header {name.decode()} is there twice."
            raise RefusalError(400, "MALFORMED_REQUEST", text, close=True)


def _behind(check: Callable[[], object], call: Callable[[], R]) -> Callable[[], R]:
    """A call that is made if `check` lets it, asked once more at the last moment: its body, and its turn, may take minutes."""

    def checked() -> R:
        check()
        return call()

    return checked


def _speaks_thrift(scope: Scope) -> bool:
    """Whether a client of Thrift has come to another path, by a slip."""
    return b"x-thrift" in dict(scope["headers"]).get(b"content-type", b"")


def _below(prefix: str) -> Callable[[str], bool]:
    return lambda path: path.startswith(prefix)


def _as_json(
    answer: Callable[[Scope, Receive], Awaitable[tuple[int, bytes]]], headers: tuple[Header, ...] = ()
) -> Serve:
    async def serve(scope: Scope, receive: Receive) -> Reply:
        status, body = await answer(scope, receive)
        return status, _JSON, headers, body

    return serve


class HttpApp:
    """The ASGI application.

    Args:
        handle: body, name of the caller, User-Agent, origin (``scheme://name``) -> answer, a large one in parts; blocking,
            never raises (`ThriftHandler.answer`).
        authenticator: who calls.
        undelivered: is told of an answer of `handle` that nobody will read, and the caller's name; blocking.
        probes: the other pages.
        beside: what else is served.
        public_url: scheme and name that links begin with, where it is not those of the request.
        may_wait: whether a call may be held up by a statement, from its body.
        sign_ins: is told who was let in, and who was not.
        limits: see `HttpLimits`.
    """

    def __init__(
        self,
        handle: Callable[[bytes, str, str, str], Answer],
        authenticator: Authenticator,
        probes: Probes,
        *,
        undelivered: Callable[[Answer, str], None] = lambda answer, identity: None,
        beside: Beside | None = None,
        public_url: str | None = None,
        may_wait: Callable[[bytes], bool] = lambda body: True,
        sign_ins: SignIns | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        limits = limits or HttpLimits()
        self._handle = handle
        self._undelivered = undelivered
        self._authenticator = authenticator
        self._probes = probes
        self._metrics = _Shared(probes.metrics)
        self._beside = beside or Beside()
        self._public_url = public_url
        self._limits = limits
        self._bodies = Bodies(limits.body)
        self._sign_ins = sign_ins if sign_ins is not None else SignIns()
        self._may_wait = may_wait
        self._waiting = Lane("statement", limits.threads, max(1, limits.threads // 2))
        self._quick = Lane("call", limits.threads, max(1, limits.threads // 2))
        self._files = Lane("file", FILES_AT_ONCE, FILES_AT_ONCE // 2)
        self._routes = tuple(self._served())

    def close(self) -> None:
        """Let calls in flight finish, start no more."""
        self._waiting.close()
        self._quick.close()
        self._files.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry; only scope type http is served."""
        if scope["type"] != "http":
            raise NotImplementedError(f"ASGI scope {scope['type']}")
        route = "other"
        try:
            _check_head(scope)
            route, serve = self._route(scope)
            status, kind, headers, body = await serve(scope, receive)
        except RefusalError as refusal:
            status, kind = refusal.status, _JSON
            body = json.dumps({"error_code": refusal.error_code, "message": refusal.message}).encode()
            headers = refusal.headers + (((b"connection", b"close"),) if refusal.close else ())
            if route == "console":
                headers += HEADERS
            # The Python, Go and C# clients show this header, none reads the body.
            if route == "thrift" or _speaks_thrift(scope):
                headers += ((b"x-thriftserver-error-message", refusal.message.encode("ascii", "replace")),)
        except ClientGoneError:
            return
        counter("http_requests_total", route=route, status=str(status))
        if isinstance(body, Parts):
            scope[ANSWER_BYTES] = body.at_once
            with contextlib.suppress(ClientGoneError):
                await stream(scope, send, status, kind, body, headers)
            return
        scope[ANSWER_BYTES] = len(body) if isinstance(body, bytes) else sum(map(len, body))
        await respond(send, status, kind, body, headers)

    def _served(self) -> Iterator[tuple[str, Callable[[str], bool], Serve]]:
        """What requests are counted as, their paths, and what answers them; the first that covers a path does."""
        beside = self._beside
        fresh = ((b"cache-control", b"no-store"),)
        yield "thrift", is_thrift_path, self._call
        if beside.download is not None:
            yield "results", _below(RESULTS), partial(self._file, beside.download)
        if beside.volumes is not None:
            yield "files", _below(FILES), partial(beside.volumes.answer, self._files)
        if beside.mcp is not None:
            yield "mcp", lambda path: path.rstrip("/") == _MCP, _as_json(partial(self._message, beside.mcp), fresh)
        if beside.rest is not None:
            yield "rest", _below(_API), _as_json(partial(self._answer, beside.rest), fresh)
        if beside.console is not None:
            yield "console", beside.console.covers, partial(self._page, beside.console)
        if beside.issuer is not None:
            yield "oidc", oidc.PATHS.__contains__, _as_json(partial(self._oidc, beside.issuer), fresh)

    def _route(self, scope: Scope) -> tuple[str, Serve]:
        """What a request is counted as, and what answers it. Raises RefusalError where nothing does."""
        path = scope["path"]
        for route, covers, serve in self._routes:
            if covers(path):
                return route, serve
        name = "/" + "/".join(part for part in path.split("/") if part)
        if name not in _PAGES:
            raise RefusalError(404, "ENDPOINT_NOT_FOUND", f"No API found for '{scope['method']} {path[:200]}'")
        return name[1:], partial(self._probe, _PAGES[name])

    async def _call(self, scope: Scope, receive: Receive) -> Reply:
        if scope["method"] != "POST":
            raise RefusalError(405, "METHOD_NOT_ALLOWED", "Thrift takes POST only.", (b"allow", b"POST"))
        headers, identity = self._identify(scope)
        async with AsyncExitStack() as rooms:
            body = await self._body(headers, receive, partial(self._enter, rooms, identity))
            lane = self._waiting if self._may_wait(body) else self._quick
            origin = self._origin(scope, headers)
            call = partial(self._handle, body, identity, headers.get("user-agent", ""), origin)
            answer = await self._run(lane, identity, call, scope, headers)
            if is_gone(scope):
                await self._quick.run(identity, partial(self._undelivered, answer, identity))
            return 200, _THRIFT, (), answer

    async def _answer(self, rest: Rest, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        """A call of the JSON API: status and body."""
        headers, identity = self._identify(scope)
        method, path = scope["method"], scope["path"]
        async with AsyncExitStack() as rooms:
            body = await self._body(headers, receive, partial(self._enter, rooms, identity))
            # A cancel, a close and a look at a status never wait for a statement, or for the store of the history.
            waits = path.rstrip("/").endswith("/statements" if method == "POST" else "/queries")
            lane = self._waiting if waits else self._quick
            origin = self._origin(scope, headers)
            agent, query = headers.get("user-agent", ""), scope.get("query_string", b"").decode("latin-1")
            call = partial(rest, method, path, body, identity, agent, origin, query)
            return await self._run(lane, identity, call, scope, headers)

    async def _message(self, mcp: Mcp, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        """A message of the Model Context Protocol: status and body."""
        if scope["method"] != "POST":  # there is no stream of events to be had, and no session to be ended
            raise RefusalError(405, "METHOD_NOT_ALLOWED", "Messages are sent by POST only.", (b"allow", b"POST"))
        headers, identity = self._identify(scope)
        async with AsyncExitStack() as rooms:
            body = await self._body(headers, receive, partial(self._enter, rooms, identity))
            call = partial(mcp, scope["headers"], body, identity)
            return await self._run(self._waiting, identity, call, scope, headers)

    async def _file(self, download: Download, scope: Scope, receive: Receive) -> Reply:
        return await file_answer(download, self._files, scope)

    async def _page(self, console: Console, scope: Scope, receive: Receive) -> Reply:
        status, kind, headers, body = await self._shown(console, scope, receive)
        return status, kind, headers + HEADERS, body

    async def _shown(self, console: Console, scope: Scope, receive: Receive) -> Reply:
        """A file of the page, or the answer to one of its calls."""
        headers = headers_of(scope)
        method, path = scope["method"], scope["path"]
        file = console.file(path, headers)
        if file is not None:
            if method not in ("GET", "HEAD"):
                raise RefusalError(405, "METHOD_NOT_ALLOWED", "Only GET is served here.", (b"allow", b"GET, HEAD"))
            return file
        check_site(method, headers, self._public_url, everybody=console.everybody)
        origin = self._origin(scope, headers)
        signs_in = console.is_sign_in(path)
        try:
            if signs_in and method == "POST":
                return console.sign_in(headers, origin, await self._form(receive))
            caller = console.caller(headers, origin)
        except AuthenticationError as error:
            if signs_in:
                self._failed_login(scope, error, LOGIN)
            raise RefusalError(401, "UNAUTHENTICATED", error.message) from error
        if let_in(scope, caller):
            self._sign_ins.let_in(caller, address_of(scope), agent_of(scope), "cookie", LOGIN)
        query = scope.get("query_string", b"").decode("latin-1")
        async with AsyncExitStack() as rooms:
            body = await self._body(headers, receive, partial(self._enter, rooms, caller))
            lane = self._waiting if console.waits(method, path) else self._quick
            call = partial(console.answer, method, path, query, body, caller, headers, origin)
            try:
                return await lane.run(caller, _behind(partial(console.caller, headers, origin), call))
            except AuthenticationError as error:
                raise RefusalError(401, "UNAUTHENTICATED", error.message) from error

    def _identify(self, scope: Scope) -> tuple[dict[str, str], str]:
        """The headers of a request, and the name of who calls. Raises RefusalError."""
        headers = headers_of(scope)
        if "origin" in headers:
            # Only browsers send it: a web page must not reach a server that trusts everyone on this machine.
            raise RefusalError(403, "PERMISSION_DENIED", "Nothing is served to web pages.", close=True)
        self._check_name(headers)
        try:
            identity = self._authenticator.authenticate(headers)
        except AuthenticationError as error:
            raise self._refused(scope, error) from error
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise RefusalError(
                415, "UNSUPPORTED_MEDIA_TYPE", f"Content-Encoding {encoding[:40]!r} is not accepted.", close=True
            )
        if let_in(scope, identity.name):
            self._sign_ins.let_in(identity.name, address_of(scope), agent_of(scope), scheme_of(headers) or "none")
        return headers, identity.name

    async def _run(
        self, lane: Lane, identity: str, call: Callable[[], R], scope: Scope, headers: Mapping[str, str]
    ) -> R:
        """What a call answers in a lane. Raises RefusalError where its token is not good any more."""
        try:
            return await lane.run(identity, _behind(partial(self._authenticator.authenticate, headers), call))
        except AuthenticationError as error:
            raise self._refused(scope, error) from error

    def _refused(self, scope: Scope, error: AuthenticationError) -> RefusalError:
        self._failed_login(scope, error)
        return RefusalError(
            401,
            "UNAUTHENTICATED",
            error.message,
            (b"www-authenticate", b'Bearer, Basic realm="gateway"'),
            (b"x-databricks-reason-phrase", error.message.encode("ascii", "replace")),
        )

    def _check_name(self, headers: Mapping[str, str]) -> None:
        if self._beside.console is not None and self._beside.console.everybody:
            check_name(headers, self._public_url)

    def _failed_login(self, scope: Scope, error: AuthenticationError, action: str = TOKEN_LOGIN) -> None:
        self._sign_ins.refused(error, address_of(scope), agent_of(scope), error.mechanism, action)

    async def _oidc(self, issuer: IssuedTokens, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        """Status and body of a page of OAuth."""
        headers = headers_of(scope)
        origin = self._origin(scope, headers)
        if scope["path"] in oidc.PAGES:
            if not origin:  # clients would take what begins with no name for another server's
                raise RefusalError(400, "MALFORMED_REQUEST", "The Host header names no host.", close=True)
            return 200, oidc.PAGES[scope["path"]](origin)
        if scope["method"] != "POST":
            raise RefusalError(405, "METHOD_NOT_ALLOWED", "Tokens are given for POST only.", (b"allow", b"POST"))
        form = await self._form(receive)
        try:
            name, answer = oidc.grant(issuer, headers, form, origin)
            self._sign_ins.let_in(name, address_of(scope), agent_of(scope), "oauth", TOKEN_GRANTED)
            return 200, answer
        except oidc.GrantError as error:
            if error.cause is not None:
                self._failed_login(scope, error.cause, TOKEN_GRANTED)
            return error.status, error.body

    async def _form(self, receive: Receive) -> bytes:
        """A small body of somebody who has not said yet who they are."""
        form = bytearray()
        try:
            async with asyncio.timeout(_FORM_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    form += message.get("body", b"")
                    if len(form) > oidc.FORM_LIMIT:
                        raise RefusalError(413, "REQUEST_TOO_LARGE", "The form is too large.", close=True)
                    if not message.get("more_body", False):
                        return bytes(form)
        except TimeoutError as error:
            raise RefusalError(408, "REQUEST_TIMEOUT", "The request took too long to arrive.", close=True) from error

    def _origin(self, scope: Scope, headers: Mapping[str, str]) -> str:
        """How this client reaches the server; "" where it does not say so."""
        host = headers.get("host", "")
        return self._public_url or (f"{scope['scheme']}://{host}" if _is_place(host) else "")

    async def _enter(self, rooms: AsyncExitStack, caller: str, size: int) -> Room:
        """Room for a body, for as long as `rooms` lasts."""
        try:
            return await rooms.enter_async_context(self._bodies.room(caller, size, self._limits.room_seconds))
        except TimeoutError as error:
            text = "Too many large requests are on their way; send it again."
            raise RefusalError(503, "TEMPORARILY_UNAVAILABLE", text, (b"retry-after", b"1"), close=True) from error

    async def _body(
        self, headers: Mapping[str, str], receive: Receive, enter: Callable[[int], Awaitable[Room]]
    ) -> bytes:
        """The body; a large one is read when `enter` has room for what is declared, else for the largest."""
        declared = headers.get("content-length")
        wanted = self._limits.body
        if declared is not None and declared.isascii() and declared.isdecimal():
            wanted = int(declared[:20])
            if wanted > self._limits.body:
                if "expect" not in headers:  # else its client sends none before it is told to
                    await drain(receive, 2 * self._limits.body)
                raise self._too_large()
        room = await enter(wanted) if declared is not None and wanted > SMALL_BODY else None
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > self._limits.body:
                        chunks.clear()
                        await drain(receive, 2 * self._limits.body)
                        raise self._too_large()
                    if size > SMALL_BODY and room is None:
                        room = await enter(wanted)
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        if room is not None:
                            self._bodies.shrink(room, size)
                        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        except TimeoutError as error:
            raise RefusalError(408, "REQUEST_TIMEOUT", "The request took too long to arrive.", close=True) from error

    def _too_large(self) -> RefusalError:
        return RefusalError(
            413, "REQUEST_TOO_LARGE", f"The request body exceeds the limit of {self._limits.body} bytes.", close=True
        )

    async def _probe(self, page: Page, scope: Scope, receive: Receive) -> Reply:
        if scope["method"] not in ("GET", "HEAD"):
            raise RefusalError(405, "METHOD_NOT_ALLOWED", "Only GET is served here.", (b"allow", b"GET, HEAD"))
        self._check_name(headers_of(scope))
        status, kind, body = await page(self)
        return status, kind, (), body

    async def healthz(self) -> tuple[int, bytes, bytes]:
        """The process answers: status, content type, body."""
        return 200, _JSON, b'{"status": "ok"}'

    async def readyz(self) -> tuple[int, bytes, bytes]:
        """Requests are welcome: 200, or 503 with the reason."""
        reason = self._probes.ready()
        if reason is None:
            return 200, _JSON, b'{"status": "ready"}'
        return 503, _JSON, json.dumps({"status": "not ready", "reason": reason}).encode()

    async def metrics(self) -> tuple[int, bytes, bytes]:
        """Prometheus' text format."""
        return 200, METRICS_CONTENT_TYPE.encode(), await self._metrics.text()


class _Shared:
    """A page that holds up the loop while it is made: it is made for all who wait for it, with a pause behind each time."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._next: asyncio.Task[bytes] | None = None
        self._made = -_PAUSE_SECONDS

    async def text(self) -> bytes:
        """The page as it is at some moment from now on."""
        if self._next is None:
            self._next = asyncio.create_task(self._soon())
        return await asyncio.shield(self._next)  # it is for others, too

    async def _soon(self) -> bytes:
        await asyncio.sleep(self._made + _PAUSE_SECONDS - time.monotonic())
        self._next, self._made = None, time.monotonic()
        return self._make()


Page = Callable[[HttpApp], Awaitable[tuple[int, bytes, bytes]]]
_PAGES: dict[str, Page] = {
    "/healthz": HttpApp.healthz,
    "/readyz": HttpApp.readyz,
    "/metrics": HttpApp.metrics,
}
