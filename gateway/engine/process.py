"""One worker process as the front sees it: started, asked, measured, killed, reaped."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from gateway.engine.channel import Channel, Start

_ROOT = str(Path(__file__).resolve().parents[2])
# Not -m: the module would exist twice, as __main__ and under its name. Not the working directory (-P): it may hold anything.
_ENTRY = f"import sys; sys.path.append({_ROOT!r}); from gateway.engine.worker import main; main()"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Stacks of the engine's own threads (Rust reads it once): plans are run by recursion, 500 set operations overflow the usual
# 2 MiB. Address space only.
_ENGINE_STACK = {"RUST_MIN_STACK": str(128 * 1024 * 1024)}


class WorkerProcess:
    """A started process, leader of its own process group. The thread that makes it must outlive it (see `worker`)."""

    def __init__(self, start: Start) -> None:
        """Start the process. Raises OSError, or pickle's errors for a handler factory that cannot travel."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _ENTRY, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                env=os.environ | _ENGINE_STACK,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the front; a kill takes whatever the worker started
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.channel = Channel(ours)
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

    def _kill(self) -> None:
        if self._process.returncode is None:  # not waited for: the id is still ours
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
