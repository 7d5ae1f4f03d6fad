"""The folder that one worker process spills to: locked while the process lives, removed once it is gone.

A killed worker cannot clean up after itself. Its lock ends with it, so whoever comes next may remove what it left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile


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
