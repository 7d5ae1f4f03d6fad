"""What a job tells: lines of progress while it runs, tables and notes at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Say = Callable[[str], None]  # takes one line of progress


@dataclass(frozen=True, slots=True)
class Report:
    """The summary of a job.

    Attributes:
        tables: title to rows; the first is the summary proper.
        notes: sentences for people.
        differs: a comparison found a difference.
    """

    tables: Mapping[str, pa.Table]
    notes: Sequence[str] = field(default=())
    differs: bool = False


def rows_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of plain values as an Arrow table; a column of nothing but None is text."""
    columns = [pa.array([row[i] for row in rows]) for i in range(len(names))]
    return pa.table([c.cast(pa.string()) if pa.types.is_null(c.type) else c for c in columns], names=list(names))
