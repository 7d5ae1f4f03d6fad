"""The wire between the front and one worker process: length-prefixed pickles over a socket pair, descriptors beside them.

The front owns both ends' code and the worker runs nothing but ours, so pickle is safe here. Sending is safe from many
threads; receiving belongs to one.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import operator
import os
import pickle
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gateway import sqltypes
from gateway.engine.base import Event, Finished, Handler, Job, Planned, Planning, Rows, SessionState, Statement
from gateway.engine.confinement import Folders
from gateway.errors import GatewayError

_LENGTH = struct.Struct("<I")
_READ_BYTES = 64 * 1024  # below what the allocator maps and unmaps each time


@dataclass(frozen=True, slots=True)
class Start:
    """First message: how to make the handler, limits that every statement and the process have, jobs that may run at once."""

    handler_factory: Callable[[], Handler]
    spool_limit: int
    inline_bytes: int
    threads: int = 1
    folders: Folders | None = None  # all that it may read, None for no such limit


@dataclass(frozen=True, slots=True)
class BeTemplate:
    """First message to a process that runs no jobs, but is forked: each of what is forked begins with `start`."""

    start: Start


@dataclass(frozen=True, slots=True)
class Fork:
    """Fork a worker; its end of the way to the front comes with it."""


@dataclass(frozen=True, slots=True)
class Forked:
    """Answer to `Fork`; 0 and an errno where the system has no process for it."""

    pid: int
    failure: int = 0


@dataclass(frozen=True, slots=True)
class Reap:
    """Wait for a worker that has ended."""

    pid: int


@dataclass(frozen=True, slots=True)
class Reaped:
    """Answer to `Reap`: its exit code, as `subprocess` tells it."""

    code: int


@dataclass(frozen=True, slots=True)
class RunJob:
    """Run `job`; `run_id` marks its events and its cancel request."""

    run_id: int
    job: Job


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Ask the job to stop; ignored once it has ended."""

    run_id: int


@dataclass(frozen=True, slots=True)
class SpoolGiven:
    """Answer to `SpoolWanted`; the descriptor comes with it."""

    run_id: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The handler is warm."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """The handler could not be made; the process ends."""

    reason: str

    @classmethod
    def told(cls, error: Exception) -> NotReady:
        """Its reason as clients may read it: where a folder of the server's own lies is said in the log alone."""
        if isinstance(error, GatewayError):
            return cls(error.message)
        if isinstance(error, OSError) and error.strerror:
            return cls(f"what it needs of the system cannot be had: {error.strerror}")
        return cls(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event of the job `run_id`."""

    run_id: int
    event: Event | Planning


@dataclass(frozen=True, slots=True)
class SpoolWanted:
    """The result outgrew what travels inside messages: the worker waits for the spool file's descriptor."""

    run_id: int


def _pickle_by_constructor(cls: type[Any]) -> None:
    """Pickle instances as a call of their class: several times faster than what frozen dataclasses with slots do."""
    fields = dataclasses.fields(cls)
    assert all(f.init and not f.kw_only for f in fields), cls
    values = operator.attrgetter(*(f.name for f in fields))
    if len(fields) == 1:
        copyreg.pickle(cls, lambda value: (cls, (values(value),)))
    else:
        copyreg.pickle(cls, lambda value: (cls, values(value)))


for _class in (
    *(RunJob, Statement, SessionState, JobEvent, Planned, Rows, Finished),
    *(sqltypes.StructType, sqltypes.StructField, sqltypes.DataType, sqltypes.DecimalType),
):
    _pickle_by_constructor(_class)


def _framed(message: object) -> bytes:
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Channel:
    """One end of the socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = bytearray()
        self._descriptors: deque[int] = deque()
        self._send_lock = threading.Lock()

    def fileno(self) -> int:
        """The socket's descriptor, -1 once closed."""
        return self._socket.fileno()

    def send(self, message: object, descriptor: int | None = None) -> None:
        """Send all of `message`; blocks while the other end does not read. Raises OSError if it is gone."""
        data = _framed(message)
        with self._send_lock:
            if descriptor is not None:
                sent = socket.send_fds(self._socket, [data], [descriptor])
                data = data[sent:]
            if data:
                self._socket.sendall(data)

    def send_together(self, messages: Iterable[object]) -> None:
        """Send messages with one call, so that the other end wakes up once. Raises OSError."""
        data = b"".join(map(_framed, messages))
        with self._send_lock:
            self._socket.sendall(data)

    def try_send(self, message: object) -> None:
        """Send a small message unless that would wait: for hints whose loss is made good by other means."""
        data = _framed(message)
        if not self._send_lock.acquire(blocking=False):
            return
        try:
            # A unix stream socket takes a message of this size whole or not at all; full or gone, the hint is lost.
            with contextlib.suppress(OSError):
                self._socket.send(data, socket.MSG_DONTWAIT)
        finally:
            self._send_lock.release()

    def receive(self) -> Any:
        """The next message, None at the end of the stream. Raises OSError."""
        buffer = self._buffer
        while True:
            if len(buffer) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
                if len(buffer) >= end:
                    with memoryview(buffer) as view:
                        message = pickle.loads(view[_LENGTH.size : end])
                    del buffer[:end]
                    return message
            data, descriptors, _, _ = socket.recv_fds(self._socket, _READ_BYTES, 4)
            self._descriptors.extend(descriptors)
            if not data:
                return None
            buffer += data

    def has_message(self) -> bool:
        """Whether `receive` has something to look at (or the other end is gone); never waits."""
        if self._buffer:
            return True
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def take_descriptor(self) -> int:
        """The oldest descriptor that came with a message; the caller closes it."""
        return self._descriptors.popleft()

    def drop(self) -> None:
        """Close this process's copy of the socket, which is another's, too."""
        self._socket.close()

    def close(self) -> None:
        """Close the socket and the descriptors that nobody took; a thread that waits in `receive` wakes up."""
        with contextlib.suppress(OSError):  # the other end may be gone first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())
