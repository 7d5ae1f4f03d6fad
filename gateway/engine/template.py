"""The process that workers are forked from: it has imported what they need, and runs nothing.

So a worker is there in a fraction of the time that imports take, and has what is imported in common with all others. No thread
of ours or of an engine runs in it when it forks; those of allocators are prepared for that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import threading
from typing import Any

from gateway.engine.channel import BeTemplate, Channel, Fork, Forked, Reap, Reaped, Start
from gateway.engine.launch import Launched


def can_fork() -> bool:
    """Whether the system tells of a process that is not our child if it lives: old kernels and some containers do not."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class LostError(OSError):
    """The template has ended, and all that it has forked."""


class Template:
    """One such process. Safe from many threads; the one that makes it must outlive it (see `worker`) and all that is forked."""

    def __init__(self, start: Start, launched: Launched | None = None, patience: float = 60.0) -> None:
        """Start it, or go on with one that starts already; whatever takes it longer than `patience` seconds is a failure.

        Raises OSError, or pickle's errors for a handler factory that cannot travel.
        """
        launched = launched or Launched()
        launched.socket.settimeout(patience)
        self._process = launched.process
        self._channel = Channel(launched.socket)
        self._asking = threading.Lock()
        self.answered = False  # whether it has got ready: whatever it is asked takes a moment then
        try:
            self._channel.send(BeTemplate(start))
        except BaseException:
            self.close()
            raise

    def fork(self) -> tuple[ForkedProcess, Channel]:
        """A new worker that makes its handler, and the way to it. Raises LostError; OSError where just this one cannot be."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                forked: Forked = self._ask(Fork(), theirs.fileno())
            if forked.failure:
                raise OSError(forked.failure, os.strerror(forked.failure))
            return ForkedProcess(forked.pid, self), Channel(ours)
        except BaseException:
            ours.close()
            raise

    def reap(self, pid: int) -> int:
        """The exit code of a worker that has ended, as `subprocess` tells it; its number may be another's from here on."""
        try:
            reaped: Reaped = self._ask(Reap(pid))
        except LostError:
            return -signal.SIGKILL
        return reaped.code

    def kill(self) -> None:
        """Kill it, and so all workers; whoever asks it something is told."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def close(self) -> None:
        """Kill and reap it."""
        self.kill()
        self._process.wait()
        self._channel.close()

    def _ask(self, message: object, descriptor: int | None = None) -> Any:
        with self._asking:
            try:
                self._channel.send(message, descriptor)
                answer = self._channel.receive()
            except OSError as error:
                self.kill()  # one that is late would answer the next question by this one's answer
                raise LostError(
                    error.errno, f"The process that workers are forked from does not answer: {error}"
                ) from error
        if answer is None:
            raise LostError(errno.ECHILD, "The process that workers are forked from has ended.")
        self.answered = True
        return answer


class ForkedProcess:
    """A worker that the template has for its child: its number is its own until it is waited for."""

    def __init__(self, pid: int, template: Template) -> None:
        self.pid = pid
        self._template = template
        self._descriptor = os.pidfd_open(pid)
        self._code: int | None = None

    @property
    def alive(self) -> bool:
        """Whether it still runs, as of now."""
        return self._code is None and not self._ended(0)

    def kill(self) -> None:
        """Kill its group, unless it has been waited for."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code once it has ended, as `subprocess` tells it."""
        if self._code is None:
            self._ended(None)
            self._code = self._template.reap(self.pid)
            os.close(self._descriptor)
        return self._code

    def _ended(self, timeout: float | None) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(timeout))
