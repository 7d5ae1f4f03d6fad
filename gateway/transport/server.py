"""A listening HTTP server around an ASGI application: uvicorn with uvloop and httptools, in a thread of its own.

The socket is bound before anything is started, so that a port in use is a configuration error with the setting's name and
port 0 is known at once. Signals are the business of whoever starts the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from gateway.errors import ConfigError, ServerError
from gateway.observability import Throttle, gauge, log
from gateway.transport import strangers
from gateway.transport.asgi import ANSWER_BYTES, CALLER, GONE, LET_IN
from gateway.transport.door import Door
from gateway.transport.guests import Guests
from gateway.transport.strangers import Tongue
from gateway.transport.tls import HttpsDoor
from gateway.transport.unsent import Answer, Unsent

MAX_HEAD_BYTES = 128 * 1024
_MOST_HEADERS = 1024  # short ones take many times as much as objects
MAX_CONNECTIONS = 4096
HEAD_SECONDS = 60.0
KEEP_ALIVE_SECONDS = 180  # databricks-jdbc does not retry a poll on a connection that was dropped
_START_SECONDS = 30.0
_LAG_SECONDS = 1.0
_JOINED_BYTES = 64 * 1024
# Lines in so many seconds about what anybody can send.
_BAD_REQUESTS, _CUTS = Throttle(20, 10.0), Throttle(20, 10.0)
_BODY = (b"content-length", b"transfer-encoding")
_RESERVED_DESCRIPTORS = 128  # for processes, listeners, the log, files that are read


def connections_each(kinds: int) -> int:
    """How many connections each of so many kinds of ports may have, after the descriptors that this process may open.

    Half of them is for results on disk (`service.holdings`): beyond its share a port turns connections away by rule, where
    without a descriptor nobody could come any more.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(8, min(MAX_CONNECTIONS, (soft // 2 - _RESERVED_DESCRIPTORS) // kinds))


def bind(host: str, port: int, setting: str = "port") -> socket.socket:
    """A listening TCP socket; port 0 is any free one. Raises ConfigError naming `host` or `setting`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError, UnicodeError) as error:
        raise ConfigError("host", f"cannot listen on {host!r}: {error}") from error
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        named = "host" if error.errno == errno.EADDRNOTAVAIL else setting
        raise ConfigError(named, f"cannot listen on {host}:{port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def address_of(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    host = host.strip("[]")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_guests: WeakKeyDictionary[ServerState, Guests[BoundedProtocol]] = WeakKeyDictionary()
_unsent: Unsent[BoundedProtocol] = Unsent()


class _TooMuchError(Exception):
    """Makes the parser call a request bad."""


class HeadFirst:
    """What one answer is written to: its head waits for the first part of its body, so that both leave in one segment.

    uvloop would make a segment of each, and wake the client twice. Without a body in the same turn of the loop it goes alone.
    """

    __slots__ = ("_begun", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.WriteTransport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head, self._begun = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write the next part; a large one is not copied to be joined."""
        if not self._begun:
            self._head, self._begun = bytes(data), True
            self._loop.call_soon(self.flush)
            return
        if self._head and len(data) <= _JOINED_BYTES:
            data, self._head = self._head + data, b""
        self.flush()
        self._transport.write(data)

    def flush(self) -> None:
        """Write the head, if that has not been done."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        """Close the connection behind what was written."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is closed, or about to be."""
        return self._transport.is_closing()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits: on the bytes of a request's head, on the time that it takes to arrive, on answers
    that are not taken, and on how many connections there are. Of too many, those go first on which nobody was let in.

    A request that offers another protocol is answered without it, and its connection then closed: the parser reads no more
    from it. With a body, which the parser would leave unread, it is refused.
    """

    _head_bytes: int | None = None  # of the head that is being read, as far as its lines are whole; None within a body
    _still_bytes = 0  # that have come since a head or body last began, ended or went on with a byte of the body
    _moved = False  # one of that has happened
    _head_timer: asyncio.TimerHandle | None = None
    _unanswered: deque[RequestResponseCycle]  # requests before the last one
    _looked = False  # at the first byte, which tells a client of another port

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unanswered = deque()
        self._guests = _guests[self.server_state]
        if len(self.connections) > self._guests.limit:
            victim = self._guests.victim() or self
            victim.cut(f"more than {self._guests.limit} are open")
            if victim is self:
                return
        self._guests.came(self)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guests.left(self)
        _unsent.end(self)
        self._stop_timer()
        self._hang_up()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._head_bytes, self._moved = 0, True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._charge(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_bytes is None:
            return  # behind a body: whoever looked at the head, a proxy too, has not seen it
        if len(self.headers) >= _MOST_HEADERS:
            raise _TooMuchError("the head of the request has too many lines")
        self._charge(len(name) + len(value))
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._moved = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._head_bytes, self._moved = None, True
        self._stop_timer()
        upgrades = self.parser.should_upgrade()
        if upgrades and (self.parser.get_method() == b"CONNECT" or any(name in _BODY for name, _ in self.headers)):
            raise _TooMuchError("a body with an upgrade")
        if self.cycle is not None:
            self._unanswered.append(self.cycle)
        self._drop_answered()
        super().on_headers_complete()
        self.cycle.transport = HeadFirst(self.transport, self.loop)  # type: ignore[assignment]
        scope: dict[str, Any] = self.cycle.scope  # type: ignore[assignment]
        scope[LET_IN] = partial(self._guests.let_in, self)
        scope[GONE] = partial(getattr, self.cycle, "disconnected")
        if upgrades:
            self.cycle.keep_alive = False

    def data_received(self, data: bytes) -> None:
        if not self._looked:
            self._looked = True
            tongue = strangers.tongue_of(data)
            if tongue not in (Tongue.HTTP, Tongue.UNKNOWN):
                self._refuse(tongue)
                return
        self._moved = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        # The parser keeps half a line to itself, however long it is: of a head, or of what follows a body in chunks.
        self._still_bytes = 0 if self._moved else self._still_bytes + len(data)
        if self._still_bytes > MAX_HEAD_BYTES:
            self._refuse_head()
            return
        if self._head_bytes is not None or self.cycle is None or self.cycle.response_complete:
            self._expect_head()

    def on_response_complete(self) -> None:
        if not self.flow.write_paused:
            _unsent.end(self)
        self._drop_answered()
        self._guests.was_answered(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        sent = (c.scope for c in self._cycles() if ANSWER_BYTES in c.scope and not c.response_complete)
        scope: dict[str, Any] = dict(next(sent, {}))
        _unsent.begin(self, Answer(scope.get(CALLER, ""), scope.get(ANSWER_BYTES, 0), self.loop.time()))
        self.loop.call_soon(cut_unsent)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.cycle is None or self.cycle.response_complete:
            _unsent.end(self)

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        self._hang_up()

    def eof_received(self) -> None:
        """The peer sends no more: the transport closes itself behind this."""
        self._hang_up()

    def _refuse(self, tongue: Tongue) -> None:
        """Tell a client of another port where it is."""
        held = _CUTS.ask()
        if held is not None:
            log(
                "connection refused",
                "warning",
                door="http",
                reason=f"{tongue} on the port of HTTP",
                unlogged=held or None,
            )
        self.transport.write(strangers.answer(tongue, f"This port speaks HTTP, and the client speaks {tongue}."))
        self.transport.close()

    def _refuse_head(self) -> None:
        """Say that a head is too large, unless an answer is on its way already."""
        if self._head_bytes is None and self.cycle is not None and self.cycle.response_started:
            self.cut("too much came behind a body")
        else:
            self.send_400_response("The head of the request is too large.")

    def _hang_up(self) -> None:
        """Requests that are still being answered have nobody to write to; of those in a row the parser knows the last."""
        for cycle in self._cycles():
            cycle.disconnected = True

    def _drop_answered(self) -> None:
        """Of requests in a row, which may be thousands, the first is answered first."""
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()

    def _cycles(self) -> Iterator[RequestResponseCycle]:
        """Requests that were not all answered when the last one began, and the last one."""
        yield from self._unanswered
        if self.cycle is not None:
            yield self.cycle

    def _charge(self, size: int) -> None:
        """Count bytes of a head. What this raises within the parser is a bad request."""
        if self._head_bytes is not None:
            self._head_bytes += size
            if self._head_bytes > MAX_HEAD_BYTES:
                raise _TooMuchError("the head of the request is too large")

    def _expect_head(self) -> None:
        """A request has to be there by a certain time."""
        if self._head_timer is None:
            reason = f"no request came within {HEAD_SECONDS:g} seconds"
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.cut, reason)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def cut(self, reason: str) -> None:
        """End the connection at once."""
        peer = f"{self.client[0]}:{self.client[1]}" if self.client else None
        held = _CUTS.ask()
        if held is not None:
            log("connection cut", "warning", reason=reason, peer=peer, unlogged=held or None)
        self.transport.abort()

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: the request was answered or refused."""


def cut_unsent() -> None:
    """Cut the connections whose answers hold too much memory."""
    for each in _unsent.overdue(asyncio.get_running_loop().time()):
        each.cut("its answer was not taken")


class _Forward(logging.Handler):
    """Takes the lines of uvicorn's logger into ours."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return  # a request that was cut at the end of the drain: `stop` was asked to
        if record.levelno >= logging.ERROR:
            log("http server", "error", message=record.getMessage(), trace=_trace(record))
            return
        held = _BAD_REQUESTS.ask()
        if held is not None:
            log("http server", "warning", message=record.getMessage(), trace=_trace(record), unlogged=held or None)


def _trace(record: logging.LogRecord) -> str | None:
    return logging.Formatter().formatException(record.exc_info) if record.exc_info else None


def _forward_log() -> None:
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    if not any(isinstance(handler, _Forward) for handler in logger.handlers):
        logger.addHandler(_Forward())


class _Server(uvicorn.Server):
    """uvicorn's server with further doors in the same loop: open before it has started, closed when it shuts down."""

    doors: Sequence[Door] = ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for door in self.doors:
            if isinstance(door, HttpsDoor):
                door.factory = self._protocol
            await door.open()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        grace = float(self.config.timeout_graceful_shutdown or 1)
        for door in self.doors:
            await door.close()
        await asyncio.gather(super().shutdown(sockets), *(door.finish(grace) for door in self.doors))

    def _protocol(self) -> asyncio.Protocol:
        return BoundedProtocol(self.config, self.server_state, self.lifespan.state)


class HttpServer:
    """Serves an application from `start` until `stop`.

    Args:
        app: an ASGI application.
        host, port: where to listen.
        doors: further ones, which are opened and closed with it.
        connections: how many there may be at once, those of HTTPS among them.
    """

    def __init__(
        self,
        app: Any,
        host: str,
        port: int,
        *,
        keep_alive_seconds: int = KEEP_ALIVE_SECONDS,
        doors: Sequence[Door] = (),
        connections: int = MAX_CONNECTIONS,
    ) -> None:
        _forward_log()
        self._listener = bind(host, port)
        self.host = host.strip("[]")
        self.port: int = self._listener.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=BoundedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=keep_alive_seconds,
            )
        )
        self._server.doors = doors
        _guests[self._server.server_state] = Guests(connections)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def url(self) -> str:
        """Where clients find it, ``http://host:port``."""
        return f"http://{address_of(self.host, self.port)}"

    def start(self) -> None:
        """Returns when requests are answered."""
        self._thread.start()
        waited = 0.0
        while not self._server.started:
            self._thread.join(0.005)
            waited += 0.005
            if not self._thread.is_alive() or waited > _START_SECONDS:
                raise ServerError("INTERNAL_ERROR", f"The HTTP server did not start: {self._failure!r}")

    def stop(self, grace_seconds: float = 10.0) -> None:
        """Accept nothing new, let requests in flight finish for `grace_seconds`, then cut them. Harmless when repeated."""
        self._server.config.timeout_graceful_shutdown = max(1, int(grace_seconds))
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(grace_seconds + 2.0)
            if self._thread.is_alive():
                self._server.force_exit = True
                self._thread.join(2.0)
        self._listener.close()

    def _run(self) -> None:
        try:
            self._server.config.load()
            with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - a thread has nobody to raise to: `start` reports it
            self._failure = error
            log("http server ended", "error", error=repr(error))

    async def _serve(self) -> None:
        lag = asyncio.create_task(_measure_lag())
        try:
            await self._server.serve(sockets=[self._listener])
        finally:
            lag.cancel()
            with contextlib.suppress(asyncio.CancelledError):  # our own, of the line before
                await lag


async def _measure_lag() -> None:
    """How late the loop runs its timers: work that belongs in a thread shows up here."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_SECONDS
        await asyncio.sleep(_LAG_SECONDS)
        gauge("event_loop_lag_seconds", max(0.0, loop.time() - due))
        cut_unsent()
