"""Relations of `system` whose rows are records of a history's file.

A scan reads what its columns are made of, and only rows that its filters may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gateway.catalog.information import Relation
from gateway.delta.held import HeldScan
from gateway.delta.predicates import Comparison, OneOf, Predicate
from gateway.errors import ResourceError
from gateway.history.records import Table
from gateway.history.search import MOST_VALUES, Condition, History, values_checked
from gateway.sqltypes import STRING, DataType, StructField, StructType, struct

_MOST_BYTES = 256 << 20  # of rows in memory
_EDGES: Mapping[str, tuple[str, ...]] = {"<": ("<=",), "<=": ("<=",), ">": (">=",), ">=": (">=",), "=": ("<=", ">=")}


def texts(*names: str) -> StructType:
    """Fields that are strings."""
    return struct(*(StructField(name, STRING) for name in names))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation: its type, the columns of the file that it is made of, and how; without them NULL."""

    type: DataType
    sources: tuple[str, ...] = ()
    made: Callable[..., Any] = _same


@dataclass(frozen=True, slots=True)
class Told:
    """How records are told: columns by name, and those whose filters are followed in the file.

    `texts` and `times` (of microseconds, in the file milliseconds) name the column of the file that says the same.
    """

    table: Table[Any]
    columns: Mapping[str, Column]
    texts: Mapping[str, str]
    times: Mapping[str, str]

    @property
    def schema(self) -> StructType:
        return struct(*(StructField(name, column.type) for name, column in self.columns.items()))

    def conditions(self, predicates: Sequence[Predicate]) -> Iterator[Condition]:
        """What a query's filters say of the file's rows: as much, or less."""
        for predicate in predicates:
            match predicate:
                case Comparison(column, "=", value) if column in self.texts:
                    yield Condition(self.texts[column], "=", value.as_py())
                case OneOf(column, values) if column in self.texts and len(values) <= MOST_VALUES:
                    yield Condition(self.texts[column], "IN", tuple(value.as_py() for value in values))
                case Comparison(column, op, value) if column in self.times and op in _EDGES:
                    milliseconds = value.cast(pa.int64()).as_py() // 1000  # rounds down, as the file's times do
                    for edge in _EDGES[op]:
                        yield Condition(self.times[column], edge, milliseconds)
                case _:
                    continue


@dataclass(frozen=True, slots=True)
class Seen:
    """A history as one user sees it."""

    history: History
    user: str


@dataclass(frozen=True, slots=True)
class RecordedRelation(Relation):
    """The relation of one user's records, or of all: the history's file is read by each scan."""

    told: Told | None = field(default=None, repr=False, compare=False)
    seen: Seen | None = None

    @property
    def schema(self) -> StructType:
        assert self.told is not None
        return self.told.schema

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> HeldScan:
        """The rows as of now. Raises ResourceError for more than memory should hold."""
        assert self.told is not None
        known = self.told.columns
        wanted = {name: known[name] for name in columns or [self.told.table.key]}
        batches = [] if self.seen is None else list(_bounded(_batches(self.seen, self.told, wanted, predicates)))
        schema = pa.schema([pa.field(name, column.type.arrow()) for name, column in wanted.items()])
        return HeldScan(pa.Table.from_batches(batches, schema), reason="rows of the history")


def _batches(
    seen: Seen, told: Told, wanted: Mapping[str, Column], predicates: Sequence[Predicate]
) -> Iterator[pa.RecordBatch]:
    sources = list(dict.fromkeys(s for column in wanted.values() for s in column.sources)) or ["id"]
    history = seen.history.of(told.table)
    for rows in history.rows(seen.user, sources, list(told.conditions(predicates))):
        with values_checked():
            values = dict(zip(sources, zip(*rows, strict=True), strict=True))
            arrays = [
                pa.array(
                    map(column.made, *(values[s] for s in column.sources)) if column.sources else [None] * len(rows),
                    column.type.arrow(),
                )
                for column in wanted.values()
            ]
        yield pa.record_batch(arrays, names=list(wanted))


def _bounded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > _MOST_BYTES:
            raise ResourceError(
                "RESOURCE_EXHAUSTED",
                f"More than {_MOST_BYTES >> 20} MiB of the history are asked for at once: ask for fewer columns, or for "
                "less time by a filter on start_time.",
            )
        yield batch
