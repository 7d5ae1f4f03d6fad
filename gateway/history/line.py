"""The line to a database: opened, and cut where its server does not answer in time or says more than was asked for."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Any

from gateway.config.values import DatabaseUrl
from gateway.history.store import PassingError

if TYPE_CHECKING:
    from psycopg import Connection

ANSWER_BYTES = 4 << 20  # of what is answered beside rows, with notices
_LOOK_SECONDS = 0.02
_RECEIVED = struct.Struct("=128xQ")  # tcpi_bytes_received of Linux's tcp_info


def connected(url: DatabaseUrl, seconds: float, *, connect: int, lock: float) -> Connection[Any]:
    """A new connection whose statements end after so many seconds, or after `lock` where they wait for others'.

    Each address of the name is tried for `connect` seconds. Raises psycopg.Error, and PassingError for an address that the
    driver does not take and a server that does not speak UTF-8.
    """
    import psycopg

    try:
        connection = psycopg.connect(
            url.text,
            autocommit=True,
            connect_timeout=connect,
            application_name="delta-sql-gateway",
            client_encoding="UTF8",  # whatever the address and the environment say
            keepalives_idle=10,
            tcp_user_timeout=int(seconds * 1000),
        )
    except psycopg.ProgrammingError:  # its message would repeat the address
        raise PassingError("the address of the database is not one that its driver takes") from None
    try:
        if connection.info.parameter_status("client_encoding") != "UTF8":
            raise PassingError("the database does not speak UTF-8")
        limits = ", ".join(
            f"set_config('{name}', '{int(limit * 1000)}', false)"
            for name, limit in (("statement_timeout", seconds), ("lock_timeout", lock))
        )
        with within(connection, seconds):
            connection.execute(f"SELECT {limits}")
    except BaseException:
        close(connection)
        raise
    return connection


def close(connection: Connection[Any]) -> None:
    """Let go of a connection, which may be broken."""
    import psycopg

    with suppress(psycopg.Error, OSError):
        connection.close()


@contextmanager
def within(connection: Connection[Any], seconds: float, most: int = ANSWER_BYTES) -> Iterator[None]:
    """Watches over the block; see `Watch.within`."""
    with watched(connection) as watch, watch.within(seconds, most):
        yield


@contextmanager
def watched(connection: Connection[Any]) -> Iterator[Watch]:
    """Watches over what the block asks, step by step."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        watch = Watch(line)
        watch.start()
        try:
            yield watch
        finally:
            watch.done.set()
            watch.join()


class Watch(threading.Thread):
    """Cuts a line to a server: the driver would wait for ever, and take in all that comes."""

    def __init__(self, line: socket.socket) -> None:
        super().__init__(name="history line", daemon=True)
        self.done = threading.Event()
        self._line = line
        self._end = inf
        self._most = 0
        self._told_too_much = False

    @contextmanager
    def within(self, seconds: float, most: int = ANSWER_BYTES) -> Iterator[None]:
        """Cuts it if the block takes longer than `seconds`, or is answered with more than `most` bytes.

        Raises PassingError for too many bytes, which are counted on TCP only, and what the block raises.
        """
        import psycopg

        self._most = most + _received(self._line)
        self._end = time.monotonic() + seconds
        try:
            yield
        except psycopg.Error:
            if self._told_too_much:
                raise PassingError("its database answers with more than was asked for") from None
            raise
        finally:
            self._end = inf

    def run(self) -> None:
        """Until `done`, or the line is cut."""
        while not self.done.wait(max(0.0, min(_LOOK_SECONDS, self._end - time.monotonic()))):
            if self._end == inf:
                continue
            self._told_too_much = _received(self._line) > self._most
            if self._told_too_much or time.monotonic() >= self._end:
                with suppress(OSError):  # the server may have closed it
                    self._line.shutdown(socket.SHUT_RDWR)
                return


def _received(line: socket.socket) -> int:
    """Bytes that have come over a line since it was opened, 0 where the system does not count them."""
    try:
        found = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
    except OSError:  # a socket of this machine
        return 0
    return int(_RECEIVED.unpack(found)[0]) if len(found) == _RECEIVED.size else 0
