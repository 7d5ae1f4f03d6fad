"""One run of a pipeline at a time: a lock file that the kernel lets go of when its holder dies.

The file says who holds it (JSON). What a dead holder has left, its JVM above all, is ended before the lock is taken over, so
that two runs never write one table. It lies where others may write as well: it is reached through no link, and what it says is
heeded only under a seal, whose key is in the state folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import signal
import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gateway.delta.containment import held_folder, remove_file
from gateway.errors import UserError, full_disk_told

_END_SECONDS = 20.0
# Kept by a lock file, so that a run that has filled the disk can still put its tables in order and be recorded.
_ROOM = 256 << 10
_LONGEST = 16 << 20  # bytes of what a holder says
_LAST_SECOND = 253_402_300_799  # of the year 9999
_KEY, _KEY_BYTES = "lock.key", 32
_SEAL = "seal"
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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


def key_of(state: Path) -> bytes:
    """The key of the seals of this state folder's runs, made if there is none. Raises UserError for a damaged one."""
    folder = state / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    path, draft = folder / _KEY, folder / f".{_KEY}.{secrets.token_hex(8)}"
    if not path.exists():
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with full_disk_told("Cannot make the key of the runs", folder), open(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
            with contextlib.suppress(FileExistsError):  # another run was faster
                os.link(draft, path)
        finally:
            draft.unlink()
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise UserError("CATALOG_FILE_CORRUPT", f"The file {path} is damaged: remove it while no pipeline runs.")
    return key


class RunLock:
    """A lock that is held. `left` is the holder that died without letting go of it, if the `key` vouches for one."""

    def __init__(self, path: Path, descriptor: int, key: bytes) -> None:
        self.left = _holder(path, descriptor, key)
        self._path, self._descriptor, self._key = path, descriptor, key
        if self.left is None:
            os.ftruncate(descriptor, 0)  # whoever wrote that is none of ours
        self._length = len(_text(descriptor))

    def write(self, holder: Holder) -> None:
        """Say who holds the lock."""
        # Blanks at the end instead of a shorter file: one call, so that a crash leaves the old text or the new one.
        data = sealed(self._path, holder, self._key).ljust(self._length)
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
        try:
            if not keeps:
                remove_file(*_place(self._path))
        finally:
            os.close(self._descriptor)


@contextlib.contextmanager
def held(path: Path, holder: Holder, key: bytes) -> Iterator[RunLock]:
    """Hold the lock at `path`, sealed with a `key` (`key_of`).

    Raises UserError PIPELINE_RUNNING if somebody else does, PATH_NOT_ALLOWED for a link in its way or in its place.
    """
    lock = _acquire(path, key)
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
    """Who holds the lock now, as far as can be told; None if it is free. Raises as `held` does for links."""
    try:
        descriptor = _opened(path)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return _holder(path, descriptor)
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


def _acquire(path: Path, key: bytes) -> RunLock:
    while True:
        descriptor = _opened(path, os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _holder(path, descriptor)
            os.close(descriptor)
            raise _running(path, holder) from None
        if _is_current(path, descriptor):
            return RunLock(path, descriptor, key)
        os.close(descriptor)  # its holder removed it between our open and our lock


def _place(path: Path) -> tuple[str, str]:
    """The file, and the folder below which no link is followed: who may write there may not lead us elsewhere."""
    root = os.path.realpath(path.parent.parent)
    return os.path.join(root, path.parent.name, path.name), root


def _opened(path: Path, flags: int = 0) -> int:
    """A descriptor of a lock's file. Raises FileNotFoundError, UserError PATH_NOT_ALLOWED for what is no file of its own."""
    file, root = _place(path)
    if flags:
        os.makedirs(root, exist_ok=True)
    try:
        with held_folder(os.path.dirname(file), root, [] if flags else None) as folder:
            descriptor = os.open(path.name, _FLAGS | flags, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO, errno.ENOTDIR):
            raise _no_lock(path) from error
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise _no_lock(path)
    return descriptor


def _no_lock(path: Path) -> UserError:
    text = f"The lock {path} cannot be used: it is a link, or no file. Remove it."
    return UserError("PATH_NOT_ALLOWED", text)


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def sealed(path: Path, holder: Holder, key: bytes) -> bytes:
    """What the lock at `path` says of its holder; good there alone, since locks of other folders have the same names."""
    said = asdict(holder)
    return json.dumps({**said, _SEAL: _seal(path, said, key)}).encode()


def _seal(path: Path, said: dict[str, Any], key: bytes) -> str:
    text = json.dumps([_place(path)[0], said], sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _holder(path: Path, descriptor: int, key: bytes | None = None) -> Holder | None:
    """Who holds a lock by what its file says; with a `key` only if that is sealed with it."""
    try:
        values = json.loads(_text(descriptor))
        seal = values.pop(_SEAL, "")
        if key is not None and not hmac.compare_digest(str(seal).encode(), _seal(path, values, key).encode()):
            return None
        holder = Holder(**values)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None  # empty, or cut short by a crash: nobody to name
    return holder if _can_be_told(holder) else None


def _can_be_told(holder: Holder) -> bool:
    """Whether a holder's values are such as can be shown: a terminal obeys some characters."""
    texts = (holder.run, holder.pipeline, holder.host, holder.scratch)
    numbers = (holder.started, holder.pid, holder.jvm, holder.jvm_start)
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        return False
    return all(isinstance(n, int | float) for n in numbers) and 0 <= holder.started <= _LAST_SECOND


def _text(descriptor: int) -> bytes:
    """What the file says, without the room behind it."""
    return os.pread(descriptor, min(os.fstat(descriptor).st_size, _LONGEST), 0).rstrip()


def _running(path: Path, holder: Holder | None) -> UserError:
    who = "another process"
    if holder is not None:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(holder.started))
        who = f"run {holder.run} (process {holder.pid} on {holder.host}, since {when} UTC)"
    return UserError(
        "PIPELINE_RUNNING",
        f"The pipeline is being run by {who}. Wait for it, or end it (lock {path}).",
    )
