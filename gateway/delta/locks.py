"""Locks on open folders: they end when the descriptor is closed, or with its process."""

from __future__ import annotations

import fcntl
import time

SHARED, ALONE = fcntl.LOCK_SH, fcntl.LOCK_EX


def locked(descriptor: int, kind: int, seconds: float) -> bool | None:
    """Take a lock, SHARED or ALONE; False where others do not let go of it in time, None where nothing can be locked."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)  # flock itself waits without an end
        except OSError:  # NFS locks no folders
            return None
        else:
            return True
