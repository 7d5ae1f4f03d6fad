"""The folder that one worker process spills to: locked while the process lives, removed once it is gone.

A killed worker cannot clean up after itself. Its lock ends with it, so whoever comes next may remove what it left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


def claim(base: str) -> str:
    """A new folder below `base` for this process, locked until it ends."""
    os.makedirs(base, exist_ok=True)
    while True:
        folder = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base)
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # swept before it was locked
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.isdir(folder):
                return folder  # the descriptor stays open: the lock is the sign of life


@contextlib.contextmanager
def claimed(base: Path) -> Iterator[Path]:
    """A folder of its own below `base` for a while; what processes that were killed left there goes first."""
    sweep(str(base))
    folder = claim(str(base))
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(base: str) -> None:
    """Remove the folders below `base` whose process is gone."""
    with contextlib.suppress(FileNotFoundError):  # no worker has spilled yet
        for name in os.listdir(base):
            folder = os.path.join(base, name)
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            except (FileNotFoundError, NotADirectoryError):
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)  # another sweeper may be at it
            except BlockingIOError:
                continue
            finally:
                os.close(descriptor)
