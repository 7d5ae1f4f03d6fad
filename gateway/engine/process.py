"""One worker process as the front sees it: started, asked, measured, killed, reaped."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

from gateway.engine.channel import Channel, Start
from gateway.engine.launch import Launched

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class WorkerProcess:
    """A started process, leader of its own process group. The thread that makes it must outlive it (see `worker`)."""

    def __init__(self, start: Start, launched: Launched | None = None) -> None:
        """Start the process, or go on with one that starts already.

        Raises OSError, or pickle's errors for a handler factory that cannot travel.
        """
        launched = launched or Launched()
        self._process = launched.process
        self.channel = Channel(launched.socket)
        self.started = time.monotonic()
        self._lock = threading.Lock()
        try:
            self.channel.send(start)
        except BaseException:
            self.reap()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs, as of now."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # reaped
            return False

    def kill(self) -> None:
        """Kill the process group, unless the process has been reaped already."""
        with self._lock:
            self._kill()

    def reap(self) -> str:
        """Kill, wait, close the channel; how it ended, for people: "exit code 1", "SIGSEGV"."""
        with self._lock:
            self._kill()
            code = self._process.wait()
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

    def _kill(self) -> None:
        if self._process.returncode is None:  # not waited for: the id is still ours
            with contextlib.suppress(ProcessLookupError):  # ended by itself, not yet waited for
                os.killpg(self._process.pid, signal.SIGKILL)
