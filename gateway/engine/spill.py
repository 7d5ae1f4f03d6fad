"""The folder that one worker process spills to: locked while the process lives, removed once it is gone.

A killed worker cannot clean up after itself. Its lock ends with it, so whoever comes next may remove what it left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Of file systems, NFS above all, that do not lock folders: nothing is swept there.
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


def claim(base: str, prefix: str = "") -> str:
    """A new folder below `base` for this process, locked until it ends; its name starts with `prefix`."""
    return _claim(base, prefix)[0]


@contextlib.contextmanager
def claimed(base: Path, prefix: str = "") -> Iterator[Path]:
    """A folder of its own below `base` for a while; what processes that were killed left there goes first.

    With a `prefix`, which its name starts with, `base` may hold other things too.
    """
    sweep(str(base), prefix)
    folder, descriptor = _claim(str(base), prefix)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def keep(folder: str) -> None:
    """Make a folder of this process once more, and lock it, if somebody has removed it."""
    while not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        _locked(folder)


def _claim(base: str, prefix: str) -> tuple[str, int]:
    os.makedirs(base, exist_ok=True)
    while True:
        folder = tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=base)
        descriptor = _locked(folder)
        if descriptor is not None:
            return folder, descriptor


def _locked(folder: str) -> int | None:
    """Its descriptor, which stays open: the lock is the sign of life. None if it was swept before it was locked."""
    with contextlib.suppress(FileNotFoundError, BlockingIOError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        if os.path.isdir(folder):
            return descriptor
    return None


def sweep(base: str, prefix: str = "") -> None:
    """Remove the folders below `base` whose process is gone, of those whose names start with `prefix`."""
    with contextlib.suppress(FileNotFoundError):  # no worker has spilled yet
        for name in os.listdir(base):
            if not name.startswith(prefix):
                continue
            folder = os.path.join(base, name)
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)  # another sweeper may be at it
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            finally:
                os.close(descriptor)
