"""What is told of an operation while it runs: lines that clients fetch beside its rows (beeline shows them)."""

from __future__ import annotations

import threading

MOST_LINES = 1000
_LINE, _TEXT = 2000, 20_000  # characters, of a line and of what is said at once


class OperationLog:
    """Lines, oldest first, and how far they have been fetched. Thread-safe."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._next = 0
        self._last = ""
        self._lock = threading.Lock()

    def add(self, text: str, level: str = "INFO") -> None:
        """Another line, as Hive writes them; what was said last is not said again, and beyond `MOST_LINES` nothing is."""
        text = text[:_TEXT]
        with self._lock:
            if text and text != self._last and len(self._lines) < MOST_LINES:
                self._last = text
                lines = [text] if text.isprintable() else text.splitlines()
                self._lines += [f"{level:<5} : {line[:_LINE]}" for line in lines[: MOST_LINES - len(self._lines)]]

    def read(self, most: int, *, first: bool = False) -> list[str]:
        """The lines behind those that were read, or from the `first` on."""
        with self._lock:
            start = 0 if first else self._next
            lines = self._lines[start : start + most]
            self._next = start + len(lines)
            return lines
