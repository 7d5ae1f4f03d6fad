"""The run of a query whose answer was known before there was a text: nothing is planned."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class KnownExecution:
    """An `engine.base.Execution` of rows that are known."""

    rows: pa.RecordBatch
    spilled_bytes: int = 0

    def start(self) -> None:
        """There is nothing to plan."""

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows."""
        yield self.rows

    def close(self) -> None:
        """There is nothing to let go of."""
