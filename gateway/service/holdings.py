"""What the server keeps for its callers: in memory texts and parameters that wait, first rows of results, sessions; on disk
the rows that follow.

All of it together is bounded, and one caller has half at most: who keeps more loses what was looked at longest ago, or is
refused; nobody else notices.
"""

from __future__ import annotations

import dataclasses
import resource
import sys
import threading
from collections import Counter
from collections.abc import Mapping
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
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.share = limit // 2
        self._held: Counter[str] = Counter()
        self._total = 0
        self._lock = threading.Lock()
        # Results beyond a few rows take a descriptor each: of these, too, half are left for others.
        self.file = limit // max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)

    def fits(self, caller: str, size: int) -> bool:
        """Whether a caller may keep `size` bytes more."""
        return self._held[caller] + size <= self.share and self._total + size <= self.limit

    def add(self, caller: str, size: int) -> None:
        """A caller keeps `size` bytes more, or, below zero, less."""
        with self._lock:
            self._total += size
            self._held[caller] += size
            if not self._held[caller]:
                del self._held[caller]
