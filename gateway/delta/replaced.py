"""Files that may have replaced others of the same name, size and time: what the engine keeps of one passes for the other.

Writers give files names that nobody has used before; programs that make tables for others need not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from threading import Lock

_UNIQUE = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MOST = 1 << 16


class Standing:
    """Which file stood under a name when it was first read in this process; of as many names as it may keep."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = Lock()
        self._first: dict[str, tuple[int, int]] = {}

    def lasts(self, seen: Mapping[str, tuple[int, int]]) -> bool:
        """Whether each of these files (its inode and time of change) is known to be the first under its name."""
        named = [path for path in seen if not _UNIQUE.search(path, path.rfind("/") + 1)]
        if not named:
            return True
        with self._lock:
            for path in named:
                if path not in self._first and len(self._first) < self._most:
                    self._first[path] = seen[path]
            return all(self._first.get(path) == seen[path] for path in named)


STANDING = Standing()
