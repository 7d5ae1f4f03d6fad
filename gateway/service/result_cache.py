"""Answers of queries that are kept while what they read does not change: the same statement is then answered at once.

An answer is kept by all that its statement could see of its session (`Statement.key`), and by the `Witness`es that its worker
took: a table's newest commit, the file of a view; none where nothing was read. They are looked at each time, so that a write by
anybody ends it, as it ends the snapshot that a worker keeps. What depends on the clock or on chance, and what has rows in a
file, is not kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from gateway import observability
from gateway.engine.base import Finished, Planned, Rows
from gateway.results.spool import Part
from gateway.service.holdings import weight

_OVERHEAD = 2048  # bytes, about, of an answer beside its rows


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole result: its shape, its rows as messages, its last event."""

    planned: Planned
    parts: tuple[Part, ...]
    finished: Finished

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        rows = sum(len(part.data or b"") for part in self.parts)
        return rows + _OVERHEAD + weight(self.planned) + 256 * len(self.planned.schema.fields)

    def events(self) -> tuple[Planned | Rows | Finished, ...]:
        """What a worker would tell."""
        rows = (Rows(part.count, part.data, weight=part.weight) for part in self.parts)
        return (self.planned, *rows, self.finished)


class ResultCache:
    """At most `limit` bytes of answers and of what they are kept by; those that were not asked for longest go first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}  # of the answers, with what they are kept by

    def find(self, key: Hashable) -> Answer | None:
        """The answer, if all that it was made of is as it was."""
        with self._lock:
            answer = self._answers.get(key)
        if answer is None:
            return None
        if not all(witness.holds() for witness in answer.planned.witnesses or ()):
            with self._lock:
                self._forget(key, answer)
            return None
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
        observability.counter("cache_hits_total", cache="results")
        return answer

    def keep(self, key: Hashable, answer: Answer) -> None:
        """Keep an answer, unless it is too large for that or nothing shows whether it still holds."""
        if answer.planned.witnesses is None:
            return  # before its key is weighed, which may be long
        size = answer.size + weight(key)
        if size > self._limit // 16:
            return
        with self._lock:
            if key in self._answers:
                self._forget(key, self._answers[key])
            self._answers[key], self._sizes[key] = answer, size
            self._size += size
            while self._size > self._limit:
                oldest = next(iter(self._answers))
                self._forget(oldest, self._answers[oldest])

    def _forget(self, key: Hashable, answer: Answer) -> None:
        """With the lock held."""
        if self._answers.get(key) is answer:
            del self._answers[key]
            self._size -= self._sizes.pop(key)
