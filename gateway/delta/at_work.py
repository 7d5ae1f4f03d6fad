"""Who writes files of a table that no version tells of yet: a shared lock on the table's folder, which ends with its process.

VACUUM asks before it removes such files. While it removes those of old versions it holds one on the log's folder: RESTORE asks
before it puts them back. Other programs than this one lock nothing: of them holds what Delta says of short retentions.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from gateway.delta.locks import ALONE, SHARED, locked

_PATIENCE = 1.0  # seconds: who asks holds the lock for a moment
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_held: dict[str, int] = {}
_refused: set[str] = set()


def begin(root: str) -> None:
    """Show, until `end`, that files are written below a table's folder. Where nothing can be locked nothing is shown.

    It is waited for once: who keeps the folder locked is somebody there for `is_anybody`, too.
    """
    if root in _held:
        return
    try:
        descriptor = os.open(root, _FOLDER)
    except OSError:  # the writer itself will tell of a folder that is not there
        return
    if locked(descriptor, SHARED, 0 if root in _refused else _PATIENCE):
        _held[root] = descriptor
    else:
        _refused.add(root)
        os.close(descriptor)


def end() -> None:
    """The statement of this process is over: what it has not told of by now it will not."""
    for descriptor in _held.values():
        os.close(descriptor)
    _held.clear()
    _refused.clear()


def is_anybody(root: str) -> bool:
    """Whether somebody may be writing files below a table's folder: also where nothing can be locked."""
    return _is_locked(root) is not False


@contextlib.contextmanager
def removing(log: str) -> Iterator[None]:
    """Show, for the block, that files of old versions are removed, to who asks for the folder of their table's log."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # who goes on will tell of a folder that is not there
            descriptor = os.open(log, _FOLDER)
            stack.callback(os.close, descriptor)
            locked(descriptor, SHARED, _PATIENCE)
        yield


def is_removing(log: str) -> bool:
    """Whether somebody removes files of old versions; False where nothing can be locked."""
    return _is_locked(log) is True


def _is_locked(folder: str) -> bool | None:
    """Whether others hold a folder; None where nothing can be locked, or nothing is there."""
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError:  # who looks for files there will tell
        return None
    try:
        taken = locked(descriptor, ALONE, 0)
        return None if taken is None else not taken
    finally:
        os.close(descriptor)
