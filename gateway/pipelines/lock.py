"""One run of a pipeline at a time: a lock file that the kernel lets go of when its holder dies.

The file says who holds it (JSON). What a dead holder has left, its JVM above all, is ended before the lock is taken over, so
that two runs never write one table.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gateway.errors import UserError, full_disk_told

_END_SECONDS = 20.0
# Kept by a lock file, so that a run that has filled the disk can still put its tables in order and be recorded.
_ROOM = 256 << 10


@dataclass
class Holder:
    """Who runs the pipeline. `started` in epoch seconds; of the JVM its pid and start time in clock ticks, 0 if none.

    `before` tells of tables that the run empties, as plain values: a holder that takes over has those of the dead one until it
    says otherwise.
    """

    run: str
    pipeline: str
    started: float
    pid: int = 0
    host: str = ""
    jvm: int = 0
    jvm_start: int = 0
    scratch: str = ""
    before: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pid = self.pid or os.getpid()
        self.host = self.host or socket.gethostname()


class RunLock:
    """A lock that is held. `left` is the holder that died without letting go of it, if there was one."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.left = _holder(descriptor)
        self._path, self._descriptor = path, descriptor
        self._length = len(_text(descriptor))

    def write(self, holder: Holder) -> None:
        """Say who holds the lock."""
        # Blanks at the end instead of a shorter file: one call, so that a crash leaves the old text or the new one.
        data = json.dumps(asdict(holder)).encode().ljust(self._length)
        with full_disk_told("Cannot write the lock of the run", self._path):
            # Room first, as blanks: of a text that is cut short nobody would know what its holder has left.
            size = os.fstat(self._descriptor).st_size
            while size < max(len(data), _ROOM):
                size += os.pwrite(self._descriptor, b" " * (max(len(data), _ROOM) - size), size)
            os.pwrite(self._descriptor, data, 0)
        self._length = len(data)

    def give_room(self) -> None:
        """Let go of the room that the file keeps on the disk for the end of a run."""
        os.ftruncate(self._descriptor, self._length)

    def release(self, *, keeps: bool = False) -> None:
        """Let go, and remove the file unless it `keeps` what it says of a holder that died."""
        if not keeps:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


@contextlib.contextmanager
def held(path: Path, holder: Holder) -> Iterator[RunLock]:
    """Hold the lock at `path`. Raises UserError PIPELINE_RUNNING if somebody else does."""
    lock = _acquire(path)
    keeps = lock.left is not None
    try:
        if lock.left is not None:
            end_jvm(lock.left)
            holder.before = [*holder.before, *(b for b in lock.left.before if b not in holder.before)]
        lock.write(holder)
        keeps = False
        yield lock
    finally:
        lock.release(keeps=keeps)


def reader(path: Path) -> Holder | None:
    """Who holds the lock now; None if it is free."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return _holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def end_jvm(left: Holder) -> None:
    """End the JVM that a dead run has left on this machine, and wait until it is gone. Raises UserError if it stays."""
    if left.host != socket.gethostname() or not left.jvm:
        return
    end = time.monotonic() + _END_SECONDS
    while process_start(left.jvm) == left.jvm_start:
        if time.monotonic() > end:
            raise UserError("PIPELINE_RUNNING", f"Spark of an earlier run (process {left.jvm}) does not end.")
        with contextlib.suppress(ProcessLookupError):
            os.kill(left.jvm, signal.SIGKILL)
        time.sleep(0.1)


def process_start(pid: int) -> int:
    """When a process of this machine started, in clock ticks since boot; -1 if there is none, or only its remains."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return -1
    fields = stat.rpartition(")")[2].split()
    return -1 if fields[0] in "ZX" else int(fields[19])


def _acquire(path: Path) -> RunLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise _running(path, holder) from None
        if _is_current(path, descriptor):
            return RunLock(path, descriptor)
        os.close(descriptor)  # its holder removed it between our open and our lock


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> Holder | None:
    try:
        values: dict[str, Any] = json.loads(_text(descriptor))
        return Holder(**values)
    except (ValueError, TypeError):
        return None  # empty, or cut short by a crash: nobody to name


def _text(descriptor: int) -> bytes:
    """What the file says, without the room behind it."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).rstrip()


def _running(path: Path, holder: Holder | None) -> UserError:
    who = "another process"
    if holder is not None:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(holder.started))
        who = f"run {holder.run} (process {holder.pid} on {holder.host}, since {when} UTC)"
    return UserError(
        "PIPELINE_RUNNING",
        f"The pipeline is being run by {who}. Wait for it, or end it (lock {path}).",
    )
