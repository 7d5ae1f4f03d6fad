"""How far a statement is, as one line of a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from gateway.observability import printable

_BAR = 20
_FETCH_SECONDS = 0.2  # between two lines, the first one too


class Progress:
    """One line on a terminal that shows how far the statement is."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._start = time.monotonic()
        self._width = 0

    def __call__(self, status: Any) -> None:
        """Show a TGetOperationStatusResp."""
        if not self.shown:
            return
        answer = getattr(status, "progressUpdateResponse", None)
        fraction = getattr(answer, "progressedPercentage", None)
        share = f" {fraction:.0%} {bar(fraction)}" if fraction else ""
        stage = printable(getattr(answer, "footerSummary", None) or "")
        self._write(f"running {time.monotonic() - self._start:.0f} s{share}{' ' + stage if stage else ''}")

    def fetching(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches; meanwhile the line tells how many rows have come."""
        rows, told = 0, time.monotonic()
        try:
            for batch in batches:
                rows += batch.num_rows
                if self.shown and time.monotonic() - told >= _FETCH_SECONDS:
                    told = time.monotonic()
                    self._write(f"fetching {told - self._start:.0f} s {rows:,} rows")
                yield batch
        finally:
            self.end()

    def _write(self, text: str) -> None:
        text = text[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        """Wipe the line."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


def bar(share: float) -> str:
    """A bar that is filled by a share of its length, from 0 to 1."""
    filled = round(max(0.0, min(1.0, share)) * _BAR)
    return "█" * filled + "░" * (_BAR - filled)
