"""What the front sends to a running job: the request to stop, and the spool file's descriptor."""

from __future__ import annotations

import os
import threading
from typing import Protocol

from gateway.engine.channel import CancelJob, Channel, SpoolGiven
from gateway.errors import ServerError


class Mailbox(Protocol):
    """One job's messages."""

    @property
    def cancelled(self) -> bool:
        """Whether the front asked to stop; safe from any thread, never waits."""

    def wait_for_spool(self) -> int | None:
        """The spool file's descriptor, which the caller closes; None once the job is cancelled."""


class OwnMailbox:
    """The mailbox of a process that runs one job at a time: looks at the socket when asked."""

    def __init__(self, channel: Channel, run_id: int) -> None:
        self._channel = channel
        self._run_id = run_id
        self._cancelled = False
        self._spool: int | None = None
        self._look = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """See `Mailbox`."""
        if not self._cancelled:
            with self._look:
                if not self._cancelled and self._channel.has_message():
                    self._read_one()
        return self._cancelled

    def wait_for_spool(self) -> int | None:
        """See `Mailbox`."""
        with self._look:
            while self._spool is None and not self._cancelled:
                self._read_one()
        return self._spool

    def _read_one(self) -> None:
        message = self._channel.receive()
        if message is None:
            os._exit(0)  # the front is gone
        if isinstance(message, CancelJob):
            self._cancelled |= message.run_id == self._run_id
        elif isinstance(message, SpoolGiven):
            self._spool = self._channel.take_descriptor()
        else:
            raise ServerError("INTERNAL_ERROR", f"A busy worker was sent {type(message).__name__}.")


class SharedMailbox:
    """The mailbox of one job among several of a process: filled by the thread that reads the socket."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._cancelled = False
        self._spool: int | None = None
        self._closed = False

    @property
    def cancelled(self) -> bool:
        """See `Mailbox`."""
        return self._cancelled

    def wait_for_spool(self) -> int | None:
        """See `Mailbox`."""
        with self._changed:
            self._changed.wait_for(lambda: self._spool is not None or self._cancelled)
            found, self._spool = self._spool, None
            return found

    def cancel(self) -> None:
        """The front asked to stop."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()

    def give_spool(self, descriptor: int) -> None:
        """The front sent the spool file's descriptor."""
        with self._changed:
            if self._closed:
                os.close(descriptor)
                return
            self._spool = descriptor
            self._changed.notify_all()

    def close(self) -> None:
        """The job has ended: close what nobody took."""
        with self._changed:
            self._closed = True
            if self._spool is not None:
                os.close(self._spool)
                self._spool = None
