"""What the server keeps for its callers: in memory texts and parameters that wait, first rows of results, sessions; on disk
the rows that follow.

All of it together is bounded, and one caller has half at most: who keeps more loses what was looked at longest ago, or is
refused; nobody else notices.
"""

from __future__ import annotations

import dataclasses
import resource
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SESSION, OPERATION, COLUMN = 8 << 10, 16 << 10, 2 << 10  # bytes of one, without what it holds
_SOME = 64
_PLAIN = frozenset((bool, int, float, type(None)))
_names: dict[type[Any], tuple[str, ...]] = {}  # of the fields of classes


def weight(value: Any) -> int:
    """About how many bytes of memory plain values take: texts, containers, dataclasses of such."""
    kind = type(value)
    if kind in _PLAIN:
        return _SOME
    if isinstance(value, (str, bytes)):
        return sys.getsizeof(value)
    if isinstance(value, Mapping):
        return _SOME + sum(weight(k) + weight(v) for k, v in value.items())
    if isinstance(value, (tuple, list, frozenset)):
        return _SOME + sum(map(weight, value))
    names = _names.get(kind)
    if names is None:
        names = _names[kind] = tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
    return _SOME + sum(weight(getattr(value, name)) for name in names)


class Holdings:
    """Bytes by caller. Thread-safe.

    Args:
        limit: bytes of all callers together.
        free: how many bytes more there is room for; where that is less, the limit is nine tenths of what there can be.
    """

    def __init__(self, limit: int, free: Callable[[], int] | None = None) -> None:
        self.limit = limit
        self._free = free
        self._held: Counter[str] = Counter()
        self._total = 0
        self._lock = threading.Lock()
        # Results beyond a few rows take a descriptor each: of these, too, half are left for others.
        self.file = limit // max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)

    @property
    def room(self) -> int:
        """Bytes of all callers that there is room for now."""
        return self.limit if self._free is None else min(self.limit, (self._total + self._free()) // 10 * 9)

    @property
    def share(self) -> int:
        """Bytes that one caller may keep."""
        return self.room // 2

    def fits(self, caller: str, size: int) -> bool:
        """Whether a caller may keep `size` bytes more."""
        room = self.room
        return self._held[caller] + size <= room // 2 and self._total + size <= room

    def add(self, caller: str, size: int) -> None:
        """A caller keeps `size` bytes more, or, below zero, less."""
        with self._lock:
            self._total += size
            self._held[caller] += size
            if not self._held[caller]:
                del self._held[caller]


def free_in(folder: Path) -> int:
    """Bytes that are free on a folder's disk; as many as there can be if that is not known."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return sys.maxsize
