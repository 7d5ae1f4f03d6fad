"""COMPUTE DELTA STATISTICS: what a log says of a table's files, found anew in them, in one commit that changes no row."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gateway import sqltypes as t
from gateway.delta import commit
from gateway.delta.datafiles import takes_vectors
from gateway.delta.dataset import DataFile, read_file
from gateway.delta.features import Kept, check_unshredded
from gateway.delta.file_statistics import BOUNDED, Told, spelled, statistics_text
from gateway.delta.indexed import indexed
from gateway.delta.logged import specs_of
from gateway.delta.scan import verify_files
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.delta.write import check_own, check_snapshot_writable, conflict, storage_errors

_PARAMETERS: commit.Parameters = {"predicate": '["true"]'}


@dataclass(slots=True)
class _Leaf:
    """A column that has statistics, as the way to it, and what its values were so far."""

    way: Sequence[Column]
    place: tuple[int, ...]
    missing: int = 0
    low: Any = None
    high: Any = None

    def take(self, batch: pa.RecordBatch) -> None:
        """Count in the rows of a batch."""
        values = batch.column(self.place[0])
        if len(self.place) > 1:
            values = pc.struct_field(values, list(self.place[1:]))
        self.missing += values.null_count
        kind = self.way[-1].type
        if kind.name not in BOUNDED or values.null_count == len(values):
            return
        if kind in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):  # years outside of Python's range
            values = values.view(pa.int32() if kind == t.DATE else pa.int64())
        bounds = pc.min_max(values)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def told(self) -> Told:
        """What is told of it."""
        names = tuple(column.physical for column in self.way)
        return names, self.missing, None if self.low is None else spelled(self.low, self.high, self.way[-1].type)


def recount(snapshot: Snapshot, alive: Callable[[], None]) -> int | None:
    """Tell anew what all files of a table hold; the version that does, None where nothing was told in another way.

    `alive` raises once nobody wants that any more. Raises UserError WRITE_CONFLICT where another writer is faster;
    UnsupportedError and ServerError for what cannot be read.
    """
    check_own(snapshot.root)
    check_snapshot_writable(snapshot, kept=Kept.BY_STATEMENT)
    ways = indexed(snapshot.columns, snapshot.partition_columns, snapshot.properties)
    columns = list({way[0].name: way[0] for way in ways}.values())
    for column in columns:
        column.check_readable()
    if any(t.has_variant(column.type) for column in columns):
        check_unshredded(snapshot.protocol, snapshot.root)
    adds = []
    for at, spec in enumerate(specs_of(snapshot)):
        text = _found(snapshot, at, columns, ways, alive)
        if not _says(spec.get("stats"), text):
            adds.append({"add": {**spec, "dataChange": False, "stats": text}})
    if not adds:
        return None
    info = commit.info_action("COMPUTE STATS", _PARAMETERS, {}, False, snapshot.version, commit.SNAPSHOT_ISOLATION)
    actions = commit.stamped(snapshot.root, snapshot.version, snapshot.properties, [info, *adds])
    with storage_errors(snapshot.root):
        try:  # never behind another commit: it may have removed what would be added again
            commit.publish(snapshot.root, snapshot.version + 1, actions, None, snapshot.marker)
        except (FileExistsError, FileNotFoundError) as error:
            raise conflict(snapshot.root) from error
    commit.checkpoint_if_due(snapshot.root, snapshot.version + 1, snapshot.properties)
    return snapshot.version + 1


def _says(before: Any, text: str) -> bool:
    """Whether a log already tells that of a file; what it has there may be no JSON, or none that can be read."""
    try:
        return bool(json.loads(before or "null", parse_float=str) == json.loads(text, parse_float=str))
    except (TypeError, ValueError, RecursionError):
        return False


def _found(
    snapshot: Snapshot,
    file: int,
    columns: Sequence[Column],
    ways: Sequence[Sequence[Column]],
    alive: Callable[[], None],
) -> str:
    """The text for one file. Rows that are deleted count: bounds that include theirs are not tight."""
    names = [column.name for column in columns]
    leaves = [_Leaf(way, (names.index(way[0].name), *_places(way))) for way in ways]
    rows = 0
    for batch in _batches(snapshot, file, columns):
        alive()
        rows += batch.num_rows
        for leaf in leaves:
            leaf.take(batch)
    deleted = file in snapshot.files.deleted
    tight = not deleted if deleted or takes_vectors(snapshot.properties) else None
    return statistics_text(rows, (leaf.told() for leaf in leaves), tight)


def _places(way: Sequence[Column]) -> Iterator[int]:
    """Where each field stands in the one around it."""
    for outer, inner in itertools.pairwise(way):
        yield [child.name for child in outer.children].index(inner.name)


def _batches(snapshot: Snapshot, file: int, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    files = snapshot.files
    read = DataFile(files.paths[file], int(files.sizes[file]), {})
    verify_files(snapshot.root, [read], snapshot.within)
    schema = pa.schema([pa.field(column.name, column.type.arrow()) for column in columns])
    return read_file(read, columns, schema, snapshot.within)
