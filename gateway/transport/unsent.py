"""Answers that clients have asked for and do not take: how much memory they may hold.

An answer stays in memory until its last byte has gone. While a caller's answers hold more than a share, those that have been
on their way for long are cut, the oldest first; far beyond it, however new they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Generic, TypeVar

SHARE = 128 * 1024 * 1024  # of one caller; all have twice as much
LONG_SECONDS = 10.0  # the largest page on a line of 7 Mbit/s

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Answer:
    """Whose it is, how large, and since when it is sent."""

    caller: str
    size: int
    began: float


class Unsent(Generic[K]):
    """Answers by the connections that they are sent on. For one event loop."""

    def __init__(self, share: int = SHARE) -> None:
        self._share = share
        self._answers: dict[K, Answer] = {}
        self._held: Counter[str] = Counter()

    def begin(self, key: K, answer: Answer) -> None:
        """An answer is on its way that does not go at once. Does nothing for one that is known."""
        if key not in self._answers:
            self._answers[key] = answer
            self._held[answer.caller] += answer.size

    def end(self, key: K) -> None:
        """It has gone, or nobody is there any more."""
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._held[answer.caller] -= answer.size
            if not self._held[answer.caller]:
                del self._held[answer.caller]

    def overdue(self, now: float) -> list[K]:
        """The connections to cut, which are forgotten."""
        found: list[K] = []
        total, most = self._held.total(), max(self._held.values(), default=0)
        if most <= self._share and total <= 2 * self._share:
            return found
        for key, answer in list(self._answers.items()):  # the oldest first
            # Others pay only where nobody has too much alone.
            held, limit = (self._held[answer.caller], self._share) if most > self._share else (total, 2 * self._share)
            if held > (limit if now - answer.began > LONG_SECONDS else 2 * limit):
                found.append(key)
                total -= answer.size
                self.end(key)
        return found
