"""One worker process as the front sees it: started, asked, measured, killed, reaped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from typing import Protocol

from gateway.engine.channel import Channel, Start
from gateway.engine.launch import Launched
from gateway.engine.template import Template

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class Child(Protocol):
    """A process, leader of its own process group; its number is its own until it is waited for."""

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool:
        """Whether it still runs, as of now."""

    def kill(self) -> None:
        """Kill its group, unless it has been waited for."""

    def wait(self) -> int:
        """Its exit code once it has ended, as `subprocess` tells it."""


class _OwnChild:
    """A process that this one has started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs, as of now."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # reaped
            return False

    def kill(self) -> None:
        """Kill its group, unless it has been waited for."""
        if self._process.returncode is None:  # not waited for: the id is still ours
            with contextlib.suppress(ProcessLookupError):  # ended by itself, not yet waited for
                os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code once it has ended."""
        return self._process.wait()


class WorkerProcess:
    """A worker and the way to it."""

    def __init__(self, child: Child, channel: Channel) -> None:
        self._child = child
        self.channel = channel
        self.started = time.monotonic()
        self._lock = threading.Lock()

    @classmethod
    def launched(cls, start: Start, launched: Launched | None = None) -> WorkerProcess:
        """One of a new interpreter, or go on with one that starts already.

        The thread that makes it must outlive it (see `worker`).

        Raises OSError, or pickle's errors for a handler factory that cannot travel.
        """
        launched = launched or Launched()
        process = cls(_OwnChild(launched.process), Channel(launched.socket))
        try:
            process.channel.send(start)
        except BaseException:
            process.reap()
            raise
        return process

    @classmethod
    def forked(cls, template: Template) -> WorkerProcess:
        """One that is forked. Raises OSError."""
        return cls(*template.fork())

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs, as of now."""
        return self._child.alive

    def kill(self) -> None:
        """Kill the process group, unless the process has been reaped already."""
        with self._lock:
            self._child.kill()

    def reap(self) -> str:
        """Kill, wait, close the channel; how it ended, for people: "exit code 1", "SIGSEGV"."""
        with self._lock:
            self._child.kill()
            code = self._child.wait()
        self.channel.close()
        if code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def resident_bytes(self) -> int:
        """Resident memory, 0 if the process is gone."""
        try:
            with open(f"/proc/{self.pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * _PAGE_BYTES
        except (OSError, IndexError):
            return 0

    def cpu_seconds(self) -> float:
        """Time on processors so far, 0 if the process is gone."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / _TICKS
        except (OSError, IndexError):
            return 0.0
