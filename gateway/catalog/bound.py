"""A Delta table under its name at one version: the `BoundTable` of folders and paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gateway.catalog.base import AsOf, TableName
from gateway.delta.changes import Changes
from gateway.delta.containment import Within
from gateway.delta.held import HeldScan
from gateway.delta.predicates import Predicate
from gateway.delta.pruning import value_range
from gateway.delta.scan import ScanPlan, plan_scan
from gateway.delta.schema import struct_of
from gateway.delta.table import Snapshot, open_snapshot, open_to_add
from gateway.sqltypes import StructType


@dataclass(frozen=True, slots=True)
class DeltaBoundTable:
    """A snapshot with the name that it was found under."""

    name: TableName
    snapshot: Snapshot
    external: bool = False  # its folder is none of the catalog's

    @property
    def schema(self) -> StructType:
        return self.snapshot.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.snapshot.partition_columns

    @property
    def version(self) -> int | None:
        return self.snapshot.version

    @property
    def num_rows(self) -> int | None:
        return self.snapshot.num_rows

    def value_range(self, column: str) -> tuple[Any, Any] | None:
        """Least and greatest value of an integral or decimal column by the log's statistics; None if a file has none."""
        return value_range(self.snapshot, column)

    @property
    def comment(self) -> str | None:
        return self.snapshot.comment

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.snapshot.properties)

    @property
    def location(self) -> str:
        """The table's folder."""
        return self.snapshot.root

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> ScanPlan:
        """See `delta.scan.plan_scan`."""
        return plan_scan(self.snapshot, columns, predicates, floats_compared=floats_compared)


def bind(
    name: TableName, root: str, as_of: AsOf | None, within: Within | None = None, *, to_add: bool = False
) -> DeltaBoundTable:
    """The Delta table in the folder `root` under `name`, newest or as of `as_of`; see `delta.table.open_snapshot`.

    `to_add` is that of a statement that adds rows: see `delta.table.open_to_add`.
    """
    if to_add:
        return DeltaBoundTable(name, open_to_add(root, within))
    moment = as_of or AsOf()
    return DeltaBoundTable(name, open_snapshot(root, moment.version, moment.timestamp_us, within))


@dataclass(frozen=True, slots=True)
class ReadTable(DeltaBoundTable):
    """A table that a statement reads in order to change it: what its scans leave files out by is kept in `read`."""

    read: list[tuple[Predicate, ...]] = field(default_factory=list)

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> ScanPlan:
        """See `delta.scan.plan_scan`."""
        self.read.append(tuple(predicates))
        return plan_scan(self.snapshot, columns, predicates, floats_compared=floats_compared)


class _Unversioned:
    """What tables have in common that are no version of a Delta table."""

    __slots__ = ()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return ()

    @property
    def version(self) -> int | None:
        return None

    @property
    def comment(self) -> str | None:
        return None

    @property
    def properties(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True, slots=True)
class ChangesTable(_Unversioned):
    """The changes of a Delta table between versions, as a table."""

    name: TableName
    changes: Changes

    @property
    def schema(self) -> StructType:
        return struct_of(self.changes.columns)

    @property
    def num_rows(self) -> int | None:
        return None

    @property
    def location(self) -> str:
        """The table's folder."""
        return self.changes.snapshot.root

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> ScanPlan:
        """Some columns of all changes: predicates leave out nothing."""
        return self.changes.scan(columns)


@dataclass(frozen=True, slots=True)
class TextTable(_Unversioned):
    """The rows of text files, as they have been read."""

    name: TableName
    schema: StructType
    rows: pa.Table
    location: str

    @property
    def num_rows(self) -> int | None:
        return int(self.rows.num_rows)

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> HeldScan:
        """Some columns of all rows."""
        return HeldScan(self.rows.select(list(columns) or self.rows.column_names[:1]), reason="rows of text files")


@dataclass(frozen=True, slots=True)
class PathTable(_Unversioned):
    """Plain Parquet files under a path; `by_us` has our own reader read them, which looks at what it has opened."""

    name: TableName
    snapshot: Snapshot
    by_us: bool = False

    @property
    def schema(self) -> StructType:
        return self.snapshot.schema

    @property
    def num_rows(self) -> int | None:
        return self.snapshot.num_rows

    @property
    def location(self) -> str:
        """The file or folder."""
        return self.snapshot.root

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> ScanPlan:
        """See `delta.scan.plan_scan`."""
        found = plan_scan(self.snapshot, columns, predicates, floats_compared=floats_compared)
        return found.one_by_one() if self.by_us else found
