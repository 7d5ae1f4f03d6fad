"""A listening socket beside that of plain HTTP, in the same event loop: accepts, looks at the first byte, hands over.

Who has not said a byte costs a socket and a small task; who says the wrong one is answered (`strangers`) and let go. What
happens to the others is the business of the classes that follow from `Door`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, cast

from gateway.observability import Throttle, counter, log
from gateway.transport import strangers
from gateway.transport.guests import Guests
from gateway.transport.strangers import Tongue

FIRST_BYTE_SECONDS = 30.0
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 64 * 1024 * 1024
_REFUSALS = Throttle(20, 10.0)  # lines in so many seconds about what anybody can send
Factory = Callable[[], asyncio.Protocol]
Address = tuple[Any, ...] | None
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 180_000))


class Door:
    """One listener from `open` until `close`.

    Args:
        listener: bound and non-blocking.
        name: of the door, for the log and the metrics.
        limit: connections that may be here at once.
    """

    def __init__(self, listener: socket.socket, name: str, limit: int) -> None:
        self.name = name
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._limit = limit
        self.guests: Guests[Any] = Guests(limit)  # tasks of `_tasks`, and what classes that follow put there
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Accept from now on."""
        self._accepting = asyncio.create_task(self._accept())

    async def close(self) -> None:
        """Accept no more, and let go of those who have not been let in yet."""
        if self._accepting is not None:
            self._accepting.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*filter(None, (self._accepting, *self._tasks)), return_exceptions=True)
        self._listener.close()

    async def finish(self, seconds: float) -> None:
        """Let calls in flight end within `seconds`, then cut what is left."""

    @property
    def connections(self) -> int:
        """How many connections are here."""
        return len(self._tasks)

    async def admit(self, connection: socket.socket, first: bytes) -> None:
        """Take over a connection that begins with `first`, which is still to be read. Closes it if it raises OSError."""
        raise NotImplementedError

    def remark(self, reason: str, peer: Address = None) -> None:
        """A line about a connection that was not served, or is no longer."""
        counter("connections_refused_total", door=self.name)
        held = _REFUSALS.ask()
        if held is not None:
            address = f"{peer[0]}:{peer[1]}" if peer else None
            log("connection refused", "warning", door=self.name, reason=reason, peer=address, unlogged=held or None)

    async def refuse(self, connection: socket.socket, tongue: Tongue, text: str) -> None:
        """Say `text` in the client's tongue, and close when it has been read."""
        self.remark(text, _peer(connection))
        await part(connection, strangers.answer(tongue, text))

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:  # no descriptor is left, or the peer is gone already
                self.remark(f"cannot accept: {error.strerror}")
                await asyncio.sleep(0.1)
                continue
            connection.setblocking(False)
            if self.connections >= self._limit:
                victim = self.guests.victim()
                self.remark(f"more than {self._limit} are open", _peer(connection) if victim is None else None)
                if victim is None:
                    connection.close()
                    continue
                self.cut(victim)
            task = asyncio.create_task(self._look(connection))
            self._tasks.add(task)
            self.guests.came(task)
            task.add_done_callback(self._done)

    def cut(self, guest: Any) -> None:
        """End one of `guests`."""
        guest.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.guests.left(task)

    async def _look(self, connection: socket.socket) -> None:
        try:
            keep_alive(connection)
            async with asyncio.timeout(FIRST_BYTE_SECONDS):
                first = await _peek(connection)
            if not first:
                connection.close()
                return
            await self.admit(connection, first)
        except TimeoutError:
            self.remark(f"nothing came within {FIRST_BYTE_SECONDS:g} seconds", _peer(connection))
            connection.close()
        except OSError as error:
            self.remark(_reason(error), _peer(connection))
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


def keep_alive(connection: socket.socket) -> None:
    """Answers leave at once, and a peer that has vanished is noticed within minutes."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def part(connection: socket.socket, last_words: bytes) -> None:
    """Send `last_words` and close, but read for a moment: closed over unread bytes, a socket takes back what it has sent."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, TimeoutError):  # nobody is there to hear
        async with asyncio.timeout(_LINGER_SECONDS):
            await loop.sock_sendall(connection, last_words)
            connection.shutdown(socket.SHUT_WR)
            left = _LINGER_BYTES
            while left > 0 and (data := await loop.sock_recv(connection, 65536)):
                left -= len(data)
    connection.close()


async def _peek(connection: socket.socket) -> bytes:
    """The first byte, which stays where it is; none if the peer has closed."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(connection, wake)
    try:
        await readable
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


def _reason(error: OSError) -> str:
    """What went wrong, in the words of the library."""
    return str(getattr(error, "reason", None) or error.strerror or type(error).__name__)


def _peer(connection: socket.socket) -> Address:
    try:
        return cast(Address, connection.getpeername())
    except OSError:
        return None
