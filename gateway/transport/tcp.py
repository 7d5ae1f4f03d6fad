"""Thrift over TCP as HiveServer2 speaks it: with SASL PLAIN or without SASL, which the first byte tells; with TLS or without.

One connection is one caller; its calls are answered one after the other. All that a peer may leave undone has an end: the
negotiation, a message that has begun, an answer that is not read, a connection on which nothing comes. With the connection end
its sessions, and what they run: nobody else could reach them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from gateway.auth.base import Authenticator, Identity
from gateway.observability import log
from gateway.protocol.codec import Fault, encode_exception
from gateway.protocol.reader import Budget, MalformedError
from gateway.transport import strangers
from gateway.transport.bodies import SMALL_BODY, Bodies
from gateway.transport.door import Door
from gateway.transport.frames import Bare, Framed, Messages
from gateway.transport.lanes import Lane
from gateway.transport.sasl import Negotiation, NegotiationError
from gateway.transport.sign_ins import SignIns
from gateway.transport.strangers import Tongue
from gateway.transport.tls import Certificate, secure

_AHEAD = 1 << 16  # bytes that may come while a call is being answered
_PAUSED_ABOVE = 1 << 20  # bytes of an answer that wait for the peer
_CLIENT = "thrift"  # clients of this door do not say what they are

NO_TOKEN = "This server asks for a token: connect with SASL PLAIN (PyHive: auth='LDAP'; JDBC: without auth=noSasl)."


class Calls(Protocol):
    """What answers calls: `ThriftHandler`."""

    def answer(
        self, body: bytes, identity: str, user_agent: str, origin: str = "", sessions: set[Any] | None = None
    ) -> Any:
        """The answer to a call, a large one in parts; `sessions` learns which ones were opened and closed."""

    def hang_up(self, identity: str, sessions: set[Any]) -> None:
        """Close the sessions that a connection has left open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpLimits:
    """Bounds of a connection; times in seconds."""

    budget: Budget = field(default_factory=Budget)
    connections: int = 4096
    login: float = 30.0
    message: float = 120.0
    answer: float = 600.0
    room: float = 60.0
    idle: float
    threads: int = 512


class TcpDoor(Door):
    """The TCP port.

    Args:
        listener: see `Door`.
        calls: who answers.
        authenticator: who may call, with SASL PLAIN.
        trusting: whether connections without SASL are served: they bring no credentials.
        may_wait: whether a call may be held up by a statement, from its body.
        certificate: then every connection has to begin with TLS.
        sign_ins: is told who was let in, and who was not.
    """

    def __init__(
        self,
        listener: socket.socket,
        calls: Calls,
        authenticator: Authenticator,
        *,
        trusting: bool,
        may_wait: Callable[[bytes], bool],
        certificate: Certificate | None = None,
        sign_ins: SignIns | None = None,
        limits: TcpLimits,
    ) -> None:
        self.sign_ins = sign_ins if sign_ins is not None else SignIns()
        self.limits = limits
        super().__init__(listener, "tcp", self.limits.connections)
        self.calls = calls
        self.authenticator = authenticator
        self.trusting = trusting
        self.bodies = Bodies(self.limits.budget.size)
        self._served: set[_Connection] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self.closing = False
        self._partings: set[asyncio.Task[None]] = set()
        self._certificate = certificate
        self._may_wait = may_wait
        share = max(1, self.limits.threads // 2)
        self._waiting = Lane("tcp statement", self.limits.threads, share)
        self._quick = Lane("tcp call", self.limits.threads, share)

    @property
    def connections(self) -> int:
        """See `Door`."""
        return super().connections + len(self._served)

    async def admit(self, connection: socket.socket, first: bytes) -> None:
        """See `Door`."""
        tongue = strangers.tongue_of(first)
        if self._certificate is None and tongue is Tongue.TLS:
            await self.refuse(
                connection, tongue, "This port speaks Thrift without TLS, and the connection came with it."
            )
        elif tongue in (Tongue.HTTP, Tongue.UNKNOWN):
            await self.refuse(connection, tongue, "This port speaks Thrift over TCP, not HTTP.")
        elif self._certificate is not None and tongue is not Tongue.TLS:
            text = "This port speaks Thrift with TLS, and the connection came without (JDBC: ;ssl=true)."
            await self.refuse(connection, tongue, text)
        elif self._certificate is not None:
            await secure(connection, self._certificate, self._serve)
        else:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(self._serve, connection)

    def came(self, connection: _Connection) -> None:
        """A connection is served from now on."""
        self._served.add(connection)
        self.guests.came(connection)
        self._empty.clear()

    def left(self, connection: _Connection) -> None:
        """It is no longer."""
        self._served.discard(connection)
        self.guests.left(connection)
        if not self._served:
            self._empty.set()

    def cut(self, guest: Any) -> None:
        """See `Door`."""
        if isinstance(guest, _Connection):
            guest.cut("too many are open")
        else:
            super().cut(guest)

    async def finish(self, seconds: float) -> None:
        """See `Door`."""
        self.closing = True
        for connection in list(self._served):
            connection.close_when_answered()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        for connection in list(self._served):
            connection.cut("the server ends")
        self._waiting.close()
        self._quick.close()

    async def call(self, caller: str, body: bytes, sessions: set[Any]) -> bytes | Sequence[Any]:
        """The answer to a call."""
        lane = self._waiting if self._may_wait(body) else self._quick
        return await lane.run(caller, partial(self.calls.answer, body, caller, "thrift", sessions=sessions))

    def hang_up(self, caller: str, sessions: set[Any]) -> None:
        """Close the sessions of a connection that is gone; at the server's end all are closed anyway."""
        if sessions and not self.closing:
            task = asyncio.create_task(self._quick.run(caller, partial(self.calls.hang_up, caller, sessions)))
            self._partings.add(task)
            task.add_done_callback(self._partings.discard)

    def _serve(self) -> asyncio.Protocol:
        return _Connection(self)


class _Connection(asyncio.Protocol):
    """One connection, from its first byte inside TLS on."""

    def __init__(self, door: TcpDoor) -> None:
        self._door = door
        self._limits = door.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._negotiation: Negotiation | None = None
        self._messages: Messages | None = None
        self._caller = Identity("anonymous")
        self._sessions: set[Any] = set()
        self._call: asyncio.Task[None] | None = None
        self._room: asyncio.Task[None] | None = None  # waits for room for a large message, then holds it
        self._room_over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timed = ""  # what the timer waits for
        self._writable: asyncio.Future[None] | None = None
        self._last = False  # nothing more is read: an answer that ends the connection is on its way
        self._gone = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.set_write_buffer_limits(_PAUSED_ABOVE)
        self._door.came(self)
        self._expect("the login", self._limits.login)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._room_over.set()
        self._stop_timer()
        self._wake()
        if self._call is None:
            self._leave()
        else:  # what is being waited for ends with its session
            self._door.hang_up(self._caller.name, self._sessions)

    def data_received(self, data: bytes) -> None:
        if self._last:
            return
        self._buffer += data
        if self._call is None:
            self._go_on()
        elif len(self._buffer) > _AHEAD:
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """The peer sends no more: the transport closes itself behind this."""

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        self._wake()

    def _go_on(self) -> None:
        """Take what is in the buffer as far as it goes, up to one call."""
        try:
            if self._messages is None and not self._introduce():
                return
            assert self._messages is not None
            body = self._messages.take(self._buffer)
        except NegotiationError as error:
            self._refuse_login(error)
        except MalformedError as error:
            self._say_last(encode_exception("", 0, Fault.PROTOCOL_ERROR, f"Malformed request: {error}"), str(error))
        else:
            if body is not None:
                self._stop_timer()
                self._call = self._loop.create_task(self._answer(body))
            elif self._buffer:
                self._expect("a message", self._limits.message)
                if len(self._buffer) > SMALL_BODY and self._room is None:
                    self._transport.pause_reading()
                    self._room_over.clear()
                    self._room = self._loop.create_task(self._have_room(self._messages.most(self._buffer)))
            else:
                self._expect("a call", self._limits.idle)

    async def _have_room(self, size: int) -> None:
        """Read a large message once there is room for it, which is given back when it is answered."""
        try:
            async with self._door.bodies.room(self._caller.name, size, self._limits.room):
                if not self._gone:
                    self._transport.resume_reading()
                await self._room_over.wait()
        except TimeoutError:
            self.cut("too many large messages are on their way")
        finally:
            self._room = None

    def _introduce(self) -> bool:
        """Whether it is known who calls and how messages come."""
        if not self._buffer:
            return False
        if self._negotiation is None:
            tongue = strangers.tongue_of(self._buffer)
            if tongue is Tongue.THRIFT:
                if not self._door.trusting:
                    self._say_last(strangers.answer(tongue, NO_TOKEN), "no credentials")
                    return False
                self._messages = Bare(self._limits.budget)
                self._door.guests.let_in(self, self._caller.name)
                self._door.sign_ins.let_in(self._caller.name, self._address, _CLIENT, "none")
                return True
            if tongue is not Tongue.SASL:
                self._say_last(strangers.answer(tongue, "This port speaks Thrift over TCP."), tongue)
                return False
            self._negotiation = Negotiation(self._door.authenticator)
        reply = self._negotiation.feed(self._buffer)
        if reply:
            self._transport.write(reply)
        if self._negotiation.identity is None:
            return False
        self._caller = self._negotiation.identity
        self._messages = Framed(self._limits.budget)
        self._door.guests.let_in(self, self._caller.name)
        self._door.sign_ins.let_in(self._caller.name, self._address, _CLIENT, "sasl")
        return True

    @property
    def _address(self) -> str:
        return str((self._transport.get_extra_info("peername") or ("",))[0])

    def _refuse_login(self, error: NegotiationError) -> None:
        if error.cause is not None:
            self._door.sign_ins.refused(error.cause, self._address, _CLIENT, "sasl")
        self._say_last(error.answer, str(error))

    async def _answer(self, body: bytes) -> None:
        try:
            known = self._caller.proof in self._door.authenticator.proofs(self._caller.name)
            if not known or self._caller.ends <= time.time():
                self.cut("its token is no longer valid")
                return
            answer = await self._door.call(self._caller.name, body, self._sessions)
            parts = (answer,) if isinstance(answer, bytes) else answer
            assert self._messages is not None
            await self._write((self._messages.head(sum(map(len, parts))), *parts))
        except ConnectionError:
            pass  # nobody is there to read it
        except Exception as error:  # noqa: BLE001 - a fault of ours must not leave the peer waiting
            log("call failed unexpectedly", "error", door=self._door.name, error=repr(error))
            self._transport.abort()
        finally:
            self._call = None
            self._room_over.set()
        if self._gone:
            self._leave()
        elif self._door.closing:
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.resume_reading()
            self._go_on()

    async def _write(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        """Raises ConnectionError for a peer that is gone or does not read."""
        small = [part for part in parts if part]
        if sum(map(len, small)) < _PAUSED_ABOVE:
            small = [b"".join(small)]
        for part in small:
            if self._gone:
                raise ConnectionResetError
            self._transport.write(part)
            if self._writable is not None:
                self._expect("an answer to be read", self._limits.answer)
                await self._writable
                self._stop_timer()

    def _say_last(self, words: bytes, reason: str) -> None:
        """Send `words` and read no more than it takes for the peer to get them."""
        self._door.remark(reason, self._transport.get_extra_info("peername"))
        self._last = True
        self._buffer.clear()
        self._transport.write(words)
        if self._transport.can_write_eof():
            self._transport.write_eof()
            self._expect("the peer to close", 2.0)
        else:
            self._transport.close()

    def close_when_answered(self) -> None:
        """Take no further call."""
        if self._call is None:
            self._transport.close()

    def cut(self, reason: str) -> None:
        """End it at once."""
        self._door.remark(reason, self._transport.get_extra_info("peername"))
        self._transport.abort()

    def _leave(self) -> None:
        self._door.left(self)
        self._buffer.clear()
        self._door.hang_up(self._caller.name, self._sessions)

    def _expect(self, what: str, seconds: float) -> None:
        """Cut the connection unless `what` is there in time; time that runs for it already goes on."""
        if self._timer is not None and self._timed == what:
            return
        self._stop_timer()
        self._timed = what
        self._timer = self._loop.call_later(seconds, self._late, what, seconds)

    def _late(self, what: str, seconds: float) -> None:
        if self._last:
            self._transport.abort()
        else:
            self.cut(f"waited {seconds:g} seconds for {what}")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
