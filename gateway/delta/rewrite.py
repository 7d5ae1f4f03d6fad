"""Changing rows of Delta tables by rewriting the files that hold them: what is read, what is replaced, who was faster.

Conflicts as Delta's, at its isolation level Serializable: a commit of another writer is overtaken if it neither changed the
table's shape nor took away nor added a file that this change has read, or would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from gateway.delta import commit, row_ids
from gateway.delta.commit import Action
from gateway.delta.containment import source
from gateway.delta.datafiles import FILE_BYTES, DataFileWriter
from gateway.delta.dataset import POSITION
from gateway.delta.features import Kept
from gateway.delta.feed import CHANGE, Feed, keeps_feed
from gateway.delta.footers import unreadable_file
from gateway.delta.partitions import value_text
from gateway.delta.predicates import Predicate
from gateway.delta.pruning import Mask, prune
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.delta.write import (
    ATTEMPTS,
    WriteResult,
    check_own,
    check_snapshot_writable,
    conflict,
    open_again,
    removes_of,
    shape_of,
    storage_errors,
)
from gateway.errors import ServerError, UserError
from gateway.sqltypes import BIGINT

#: What each scan of a change has left files out by; no predicates: it has read them all.
Reads = Sequence[Sequence[Predicate]]
Live = npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a change has done to files, for its metrics."""

    removed_files: int
    removed_bytes: int
    added_files: int
    added_bytes: int
    added_rows: int
    vectors_added: int = 0
    vectors_updated: int = 0
    vectors_removed: int = 0
    change_files: int = 0

    def metrics(self) -> dict[str, int]:
        """What Delta says of new rows in the place of others."""
        return {
            "numFiles": self.added_files,
            "numOutputRows": self.added_rows,
            "numOutputBytes": self.added_bytes,
            "numRemovedFiles": self.removed_files,
            "numRemovedBytes": self.removed_bytes,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit says of itself: `metrics` are told what became of the files; `also` gives other actions of it.

    `columns` are those that the table has by it, where they are not the ones that it had.
    """

    operation: str
    parameters: commit.Parameters
    metrics: Callable[[Replaced], dict[str, int]]
    also: Callable[[], Sequence[Action]] = tuple
    columns: tuple[Column, ...] = ()

    def shaped(self, snapshot: Snapshot) -> Snapshot:
        """The table with the columns that new rows have."""
        return replace(snapshot, columns=self.columns, notes={}) if self.columns else snapshot

    def info(self, snapshot: Snapshot, done: Replaced) -> Action:
        """The commit's action."""
        info = commit.info_action(self.operation, self.parameters, self.metrics(done), False, snapshot.version)
        return {"commitInfo": {**info["commitInfo"], **row_ids.told(self.operation, snapshot)}}


def check_changeable(snapshot: Snapshot) -> None:
    """Raise what keeps rows of a table from being changed: features that are not written here, appendOnly, links."""
    check_own(snapshot.root)
    check_snapshot_writable(snapshot, removes=True, kept=Kept.BY_STATEMENT)


def replace_files(
    snapshot: Snapshot,
    removed: Sequence[int],
    batches: Iterable[pa.RecordBatch],
    change: Change,
    reads: Reads,
    feed: Feed | None = None,
) -> WriteResult:
    """Put the rows of `batches` in the place of some files of `snapshot`, in one commit, and tell `feed` of them.

    Raises UserError DELTA_CONCURRENT_…, DELTA_METADATA_CHANGED, DELTA_PROTOCOL_CHANGED where another writer was faster.
    """
    root = snapshot.root
    with storage_errors(root), RowWriter(change.shaped(snapshot), feed) as writer:
        writer.take(batches)
        adds = writer.finish(settles=False)
        size = int(snapshot.files.sizes[np.asarray(removed, dtype=np.int64)].sum())
        told = writer.told()
        done = Replaced(len(removed), size, writer.files, writer.bytes, writer.rows, change_files=len(told))
        actions = [change.info(snapshot, done), *change.also(), *removes_of(snapshot, removed), *adds, *told]
        version = publish_behind(snapshot, actions, lambda newer: check_read(snapshot, newer, reads), writer.settle)
    commit.checkpoint_if_due(root, version, snapshot.properties)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)


def replace_partitions(
    snapshot: Snapshot, batches: Iterable[pa.RecordBatch], change: Change, reads: Reads
) -> WriteResult:
    """Put the rows of `batches` in the place of all files of the partitions that they are of, in one commit; none for no rows.

    Raises what `replace_files` does; what other writers do to other partitions is no conflict.
    """
    root = snapshot.root
    with storage_errors(root), RowWriter(change.shaped(snapshot), None) as writer:
        writer.take(batches)
        adds = writer.finish(settles=False)
        if not adds and not change.also():
            return WriteResult(snapshot.version, 0, 0, 0)
        filled = {tuple(action["add"]["partitionValues"].values()) for action in adds}
        removed = _of_partitions(snapshot, filled)
        size = int(snapshot.files.sizes[np.asarray(removed, dtype=np.int64)].sum())
        done = Replaced(len(removed), size, writer.files, writer.bytes, writer.rows)
        actions = [change.info(snapshot, done), *change.also(), *removes_of(snapshot, removed), *adds]

        def check(newer: Snapshot) -> None:
            check_read(snapshot, newer, reads)
            _check_partitions(snapshot, newer, filled, removed)

        version = publish_behind(snapshot, actions, check, writer.settle)
    commit.checkpoint_if_due(root, version, snapshot.properties)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)


Partitions = set[tuple[str | None, ...]]


def _of_partitions(snapshot: Snapshot, wanted: Partitions) -> list[int]:
    """The files of some partitions, by the texts of their values."""
    texts = [
        [value_text(value, snapshot.by_name[name].type) for value in snapshot.files.partitions[name]]
        for name in snapshot.partition_columns
    ]
    return [i for i, values in enumerate(zip(*texts, strict=True)) if values in wanted]


def _check_partitions(snapshot: Snapshot, newer: Snapshot, wanted: Partitions, removed: Sequence[int]) -> None:
    """Raise if another writer has removed or changed files of some partitions, or added some."""
    check_still_live(snapshot, newer, removed)
    there = {snapshot.files.logged[i] for i in removed}
    if any(newer.files.logged[i] not in there for i in _of_partitions(newer, wanted)):
        raise _lost("DELTA_CONCURRENT_APPEND.WITHOUT_HINT", snapshot, "Rows that should have been read were added")


class RowWriter(DataFileWriter):
    """Writes the rows that a change puts into a table, and tells the table's feed of them and of those that go.

    Behind the table's columns rows have those of `trail`.
    """

    def __init__(self, snapshot: Snapshot, feed: Feed | None, file_bytes: int = FILE_BYTES) -> None:
        hidden = row_ids.hidden_columns(snapshot)
        super().__init__(
            snapshot.root,
            snapshot.columns,
            snapshot.partition_columns,
            snapshot.properties,
            file_bytes=file_bytes,
            hidden=hidden,
        )
        self._feed = feed
        self._width = len(snapshot.columns)
        self._tracker = row_ids.Tracker(snapshot, hidden) if hidden else None

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        if self._feed is not None:
            self._feed.__exit__(kind, error, trace)

    def take(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write all of some rows."""
        for batch in batches if self._feed is None else self._feed.passed(batches):
            rows = batch.select(range(self._width))
            if self._tracker is not None:
                trail = [np.asarray(batch.column(self._width + i), dtype=np.int64) for i in range(3)]
                for column, values in zip(self._tracker.columns, self._tracker.of(*trail), strict=True):
                    rows = rows.append_column(column.name, values)
            self.write(rows)

    def told(self) -> list[Action]:
        """The files of the feed, as actions."""
        return [] if self._feed is None else self._feed.finish()


def trail(snapshot: Snapshot) -> int:
    """How many columns rows have behind the table's on their way into it.

    What became of each where it is told or tracked; and, where it is tracked, the number of its file and its own in that.
    """
    return 3 if row_ids.tracks_rows(snapshot) else 1 if keeps_feed(snapshot) else 0


def with_trail(batches: Iterator[pa.RecordBatch], snapshot: Snapshot, kind: int) -> Iterator[pa.RecordBatch]:
    """New rows of a table, as they go into it."""
    width = trail(snapshot)
    for batch in batches:
        for value in (kind, -1, -1)[:width]:
            batch = batch.append_column(CHANGE, pa.array(np.full(batch.num_rows, value, dtype=np.int64)))
        yield batch


def publish_behind(
    snapshot: Snapshot,
    actions: list[Action],
    check: Callable[[Snapshot], None],
    settle: Callable[[], None] | None = None,
) -> int:
    """Make `actions` the next version, behind those of other writers whose versions `check` does not raise for.

    `settle` as for `commit.publish`.
    """
    seen = snapshot
    for _ in range(ATTEMPTS):
        try:
            made = commit.stamped(snapshot.root, seen.version, seen.properties, row_ids.numbered(seen, actions))
            commit.publish(snapshot.root, seen.version + 1, made, settle, seen.marker)
            return seen.version + 1
        except FileExistsError:
            seen = open_again(snapshot.root).in_zone(snapshot.zone)
        except FileNotFoundError as error:
            raise conflict(snapshot.root) from error
        _check_shape(snapshot, seen)
        check(seen)
    raise conflict(snapshot.root)


def _check_shape(snapshot: Snapshot, newer: Snapshot) -> None:
    if newer.protocol != snapshot.protocol:
        raise _lost("DELTA_PROTOCOL_CHANGED", snapshot, "The protocol of the table was changed")
    if shape_of(newer) != shape_of(snapshot):
        raise _lost("DELTA_METADATA_CHANGED", snapshot, "The metadata of the table was changed")


def check_still_live(snapshot: Snapshot, newer: Snapshot, rows: Sequence[int]) -> None:
    """Raise DELTA_CONCURRENT_DELETE_READ if one of some files of a snapshot is no file of a newer one, or has lost rows."""
    now = {path: i for i, path in enumerate(newer.files.logged)}
    was, gone = snapshot.files, newer.files.deleted
    if any(_changed(was.deleted.get(i), now.get(was.logged[i]), gone) for i in rows):
        raise _lost("DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT", snapshot, "Files that were read were removed")


def _changed(was: Live, now: int | None, deleted: Mapping[int, npt.NDArray[np.bool_]]) -> bool:
    """Whether a file is there no more, or with other rows."""
    if now is None:
        return True
    by_now = deleted.get(now)
    if was is None or by_now is None:
        return was is not by_now
    return not np.array_equal(was, by_now)


def check_read(snapshot: Snapshot, newer: Snapshot, reads: Reads) -> None:
    """Raise if another writer has removed or changed files that a change has read, or added some that it would have."""
    check_still_live(snapshot, newer, np.flatnonzero(_read(snapshot, reads)).tolist())
    there, would_read = set(snapshot.files.logged), _read(newer, reads)
    if any(wanted and path not in there for path, wanted in zip(newer.files.logged, would_read, strict=True)):
        raise _lost("DELTA_CONCURRENT_APPEND.WITHOUT_HINT", snapshot, "Rows that should have been read were added")


def _read(snapshot: Snapshot, reads: Reads) -> Mask:
    mask = np.zeros(len(snapshot.files), dtype=bool)
    for predicates in reads:
        mask |= prune(snapshot, predicates)
    return mask


def _lost(condition: str, snapshot: Snapshot, what: str) -> UserError:
    text = f"{what} by another writer of the Delta table {snapshot.root} at the same time. Send the statement again."
    return UserError(condition, text, retryable=True)


# ---- tables as a change reads them


@dataclass(frozen=True, slots=True)
class Marked:
    """A snapshot with two more columns, by their names: the number of each row's file, and the row's number in it."""

    snapshot: Snapshot
    file: str
    position: str


def marked(snapshot: Snapshot) -> Marked:
    """The snapshot with columns that tell where each row is. They cost nothing unless they are read."""
    taken = {c.name.lower() for c in snapshot.columns}
    file, position = _free("file", taken), _free("position", taken)
    numbers = pa.array(range(len(snapshot.files)), pa.int64())
    more = (Column(file, file, None, BIGINT, nullable=False), Column(position, POSITION, None, BIGINT, nullable=False))
    files = replace(snapshot.files, partitions={**snapshot.files.partitions, file: numbers})
    widened = replace(
        snapshot,
        columns=(*snapshot.columns, *more),
        partition_columns=(*snapshot.partition_columns, file),
        files=files,
        notes={},
    )
    return Marked(widened, file, position)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name


def only_files(snapshot: Snapshot, rows: Sequence[int]) -> Snapshot:
    """The snapshot with some of its files."""
    return replace(snapshot, files=snapshot.files.only(rows), notes={})


def only_rows(snapshot: Snapshot, taken: Mapping[int, npt.NDArray[np.int64]]) -> Snapshot:
    """The snapshot with some of its rows, by their files and numbers in them."""
    return _with_live(snapshot, {file: _alone(rows, records(snapshot, file)) for file, rows in taken.items()})


def without_rows(snapshot: Snapshot, gone: Mapping[int, npt.NDArray[np.int64]]) -> Snapshot:
    """The snapshot with some of its files, by the rows that each of them lacks; files that lack all of theirs are left out."""
    masks: dict[int, npt.NDArray[np.bool_]] = {}
    for file, rows in gone.items():
        before = snapshot.files.deleted.get(file)
        mask = np.ones(records(snapshot, file), dtype=bool)
        if before is not None:
            mask[: len(before)] = before[: len(mask)]
        mask[rows] = False
        if mask.any():
            masks[file] = mask
    return _with_live(snapshot, masks)


def records(snapshot: Snapshot, file: int) -> int:
    """Rows of a file that loses some, deleted ones counted.

    Raises ServerError DELTA_LOG_CORRUPT where the log counts others: by a count too low, rows that stay would go with the file.
    """
    path, known = snapshot.files.paths[file], snapshot.files.num_records[file].as_py()
    try:
        with source(path, snapshot.within) as opened:
            rows = int(pq.read_metadata(opened).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise unreadable_file(path, error) from error
    if known not in (None, rows):
        text = (
            f"The log of the Delta table {snapshot.root} counts {known} rows in the file {path}, which has {rows}. "
            "ANALYZE TABLE … COMPUTE DELTA STATISTICS counts them anew."
        )
        raise ServerError("DELTA_LOG_CORRUPT", text)
    return rows


def partly_left(snapshot: Snapshot, gone: Mapping[int, int]) -> list[int]:
    """Which files keep rows, of those that lose so many. Raises as `records`."""
    for file in gone:
        records(snapshot, file)
    return [file for file, count in gone.items() if snapshot.files.live_rows[file] != count]


def _alone(rows: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(count, dtype=bool)
    mask[rows] = True
    return mask


def _with_live(snapshot: Snapshot, masks: Mapping[int, npt.NDArray[np.bool_]]) -> Snapshot:
    """The snapshot with some of its files, each with its live rows."""
    kept = sorted(masks)
    files = replace(snapshot.files.only(kept), deleted={new: masks[old] for new, old in enumerate(kept)})
    return replace(snapshot, files=files, notes={})
