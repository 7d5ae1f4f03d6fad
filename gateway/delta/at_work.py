"""Who writes files of a table that no version tells of yet: a shared lock on the table's folder, which ends with its process.

VACUUM asks before it removes such files. Other programs than this one lock nothing: of them holds what Delta says of short
retentions.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

_TRIES = 100  # of 10 ms: who asks holds the lock for a moment
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_held: dict[str, int] = {}


def begin(root: str) -> None:
    """Show, until `end`, that files are written below a table's folder. Where nothing can be locked nothing is shown."""
    if root in _held:
        return
    with contextlib.suppress(OSError):  # the writer itself will tell of a folder that is not there
        descriptor = os.open(root, _FOLDER)
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break
            else:
                _held[root] = descriptor
                return
        os.close(descriptor)


def end() -> None:
    """The statement of this process is over: what it has not told of by now it will not."""
    for descriptor in _held.values():
        os.close(descriptor)
    _held.clear()


def is_anybody(root: str) -> bool:
    """Whether somebody may be writing files below a table's folder."""
    try:
        descriptor = os.open(root, _FOLDER)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
    except OSError:  # somebody is, or nothing can be locked there
        return True
    return False
