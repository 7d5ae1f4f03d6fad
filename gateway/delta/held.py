"""Rows that a statement holds in memory and reads several times, as a table of its queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import datafusion
import pyarrow as pa

from gateway.delta.predicates import Predicate
from gateway.sqltypes import StructType


@dataclass(frozen=True, slots=True)
class HeldTable:
    """The `catalog.base.BoundTable` of rows in memory; columns by position, whatever their names."""

    name: str
    schema: StructType
    rows: pa.Table
    partition_columns: tuple[str, ...] = ()
    version: int | None = None
    comment: str | None = None
    location: str = ""

    @property
    def num_rows(self) -> int:
        return int(self.rows.num_rows)

    @property
    def properties(self) -> dict[str, str]:
        return {}

    def value_range(self, column: str) -> tuple[Any, Any] | None:
        """What is known of a column's values: nothing."""
        return None

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> HeldScan:
        """Some of the columns, of all rows."""
        return HeldScan(self.rows.select(list(columns) or self.rows.column_names[:1]))


@dataclass(frozen=True, slots=True)
class HeldScan:
    """See `engine.base.Source`; the facts are those of a `delta.scan.ScanPlan`."""

    rows: pa.Table
    reader: str = "memory"
    reason: str = "rows of the statement itself"
    files_kept: int = 0
    files_total: int = 0
    reads_floats: bool = False
    lasting: bool = True

    @property
    def bytes(self) -> int:
        return int(self.rows.nbytes)

    def register(self, ctx: Any, name: str) -> None:
        """Register the rows as the table `name`."""
        batches = self.rows.to_batches()
        if batches:
            ctx.register_record_batches(name, [batches])
            return
        # Not as a table of no rows: see `delta.scan.ScanPlan.register`.
        empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in self.rows.schema], schema=self.rows.schema)
        ctx.register_record_batches(name, [[empty]])
        nothing = ctx.table(name).filter(datafusion.lit(False))
        ctx.deregister_table(name)
        ctx.register_view(name, nothing)

    def verify(self) -> bool:
        """Memory stays as it is."""
        return True

    @property
    def numbered(self) -> bool:
        """See `engine.base.Source`."""
        return False

    def one_by_one(self) -> HeldScan:
        """Nothing to be opened."""
        return self

    def plain(self) -> HeldScan:
        """Its texts are no views."""
        return self

    def at_once(self) -> HeldScan:
        """All of it is there."""
        return self

    def apart(self) -> HeldScan:
        """No row of it is deleted."""
        return self

    def damaged(self) -> str | None:
        """No file, so none that is damaged."""
        return None
