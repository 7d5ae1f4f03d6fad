"""OPTIMIZE: many small files of a partition into few, in one commit that changes no row.

Which files go together is Delta's way: of each partition those below the largest size, small ones first, as many into one file
as fit. What another writer has added meanwhile stays beside; what it has taken away is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gateway.delta import commit, row_ids
from gateway.delta.commit import Action
from gateway.delta.creation import clustering_of
from gateway.delta.dataset import POSITION, DataFile, read_file
from gateway.delta.features import Kept
from gateway.delta.feed import CHANGE, COPIED
from gateway.delta.partitions import value_text
from gateway.delta.rewrite import RowWriter, check_still_live, publish_behind, trail
from gateway.delta.scan import verify_files
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.delta.write import check_own, check_snapshot_writable, removes_of, storage_errors
from gateway.errors import unsupported
from gateway.sqltypes import BIGINT, VOID

#: Bytes below which a file is put together with others, and of those together: Delta's.
FILE_BYTES = 1 << 30
# A file with more deleted rows is written anew although it is large.
_DELETED = 0.05
_INDEXED = "delta.dataSkippingNumIndexedCols"


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of the files: bytes of each that was added and removed, how many were looked at, and in how many groups."""

    version: int | None
    added: list[int]
    removed: list[int]
    considered: int
    bins: int
    partitions: int
    vectors: int = 0
    deleted_rows: int = 0


def compact(
    snapshot: Snapshot, candidates: Sequence[int], predicate: Sequence[str], alive: Callable[[], None]
) -> Compacted:
    """Put the small ones of some files of a snapshot together; `alive` raises once nobody wants that any more.

    Raises what `rewrite.publish_behind` does.
    """
    check_compactable(snapshot)
    bins = _bins(snapshot, candidates)
    removed = [i for one in bins for i in one]
    partitions = len({_partition(snapshot, one[0]) for one in bins})
    vectors = [~snapshot.files.deleted[i] for i in removed if i in snapshot.files.deleted]
    gone = int(sum(np.count_nonzero(mask) for mask in vectors))
    sizes = snapshot.files.sizes[np.asarray(removed, dtype=np.int64)].tolist()
    if not bins:
        return Compacted(None, [], [], len(candidates), 0, 0)
    root = snapshot.root
    with (
        storage_errors(root),
        RowWriter(snapshot, None, FILE_BYTES) as writer,
    ):
        for one in bins:
            for batch in _rows(snapshot, one):
                alive()
                writer.take([batch])
            writer.finish()
        adds = [_without_change(action) for action in writer.finish()]
        added = sorted(action["add"]["size"] for action in adds)
        parameters: commit.Parameters = {
            "predicate": _list(predicate),
            "zOrderBy": "[]",
            "clusterBy": "[]",
            "auto": False,
        }
        metrics = _metrics(added, sizes, len(vectors))
        info = commit.info_action("OPTIMIZE", parameters, metrics, False, snapshot.version, commit.SNAPSHOT_ISOLATION)
        info = {"commitInfo": {**info["commitInfo"], **row_ids.told("OPTIMIZE", snapshot)}}
        actions = [info, *removes_of(snapshot, removed, changes_data=False), *adds]
        version = publish_behind(snapshot, actions, lambda newer: check_still_live(snapshot, newer, removed))
    commit.checkpoint_if_due(root, version, snapshot.properties)
    return Compacted(version, added, sizes, len(candidates), len(bins), partitions, len(vectors), gone)


def check_compactable(snapshot: Snapshot) -> None:
    """Raise what keeps a table's files from being written anew."""
    check_own(snapshot.root)
    check_snapshot_writable(snapshot, kept=Kept.BY_STATEMENT)  # the rows are those that were checked before
    if any(column.type == VOID for column in snapshot.columns):
        raise unsupported("OPTIMIZE of a table with a VOID column")
    if clustering_of(snapshot):
        raise unsupported("OPTIMIZE of a clustered table")


def indexed_columns(snapshot: Snapshot) -> int:
    """How many columns have statistics."""
    text = snapshot.properties.get(_INDEXED, "32")
    return min(int(text), len(snapshot.columns))


def _partition(snapshot: Snapshot, file: int) -> tuple[str | None, ...]:
    """The values of a file's partition, as the log has them."""
    values = snapshot.files.partitions
    return tuple(value_text(values[n][file], snapshot.by_name[n].type) for n in snapshot.partition_columns)


def _bins(snapshot: Snapshot, candidates: Sequence[int]) -> list[list[int]]:
    """Files that become one."""
    sizes = snapshot.files.sizes
    by_partition: dict[tuple[str | None, ...], list[int]] = {}
    for file in candidates:
        if sizes[file] < FILE_BYTES or _mostly_deleted(snapshot, file):
            by_partition.setdefault(_partition(snapshot, file), []).append(file)
    found: list[list[int]] = []
    for files in by_partition.values():
        whole = 0
        one: list[int] = []
        for file in sorted(files, key=lambda i: int(sizes[i])):
            if one and whole + sizes[file] > FILE_BYTES:
                found.append(one)
                one, whole = [], 0
            one.append(file)
            whole += int(sizes[file])
        found.append(one)
    return [one for one in found if len(one) > 1]


def _mostly_deleted(snapshot: Snapshot, file: int) -> bool:
    mask = snapshot.files.deleted.get(file)
    if mask is None:
        return False
    rows = snapshot.files.num_records[file].as_py()
    return rows is None or np.count_nonzero(~mask) > _DELETED * rows


def _rows(snapshot: Snapshot, one: Sequence[int]) -> Iterator[pa.RecordBatch]:
    files = snapshot.files
    columns = (*snapshot.columns, Column(POSITION, POSITION, None, BIGINT, nullable=False))
    schema = pa.schema([pa.field(c.name, c.type.arrow()) for c in columns])
    width, more = len(snapshot.columns), trail(snapshot)
    read = [
        DataFile(
            files.paths[i],
            int(files.sizes[i]),
            {name: values[i] for name, values in files.partitions.items()},
            files.deleted.get(i),
        )
        for i in one
    ]
    verify_files(snapshot.root, read, snapshot.within)
    for number, file in zip(one, read, strict=True):
        for batch in read_file(file, columns, schema, snapshot.within):
            rows = batch.select(range(width))
            known = [np.full(batch.num_rows, value, dtype=np.int64) for value in (COPIED, number)]
            for values in [*map(pa.array, known), batch.column(width)][:more]:
                rows = rows.append_column(CHANGE, values)
            yield rows


def _without_change(action: Action) -> Action:
    return {"add": {**action["add"], "dataChange": False}}


def _metrics(added: Sequence[int], removed: Sequence[int], vectors: int) -> dict[str, int]:
    metrics = {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(removed),
        "numDeletionVectorsRemoved": vectors,
        "numAddedFiles": len(added),
        "numAddedBytes": sum(added),
    }
    if not added:  # all rows were deleted
        return metrics
    return metrics | {
        "minFileSize": added[0],
        "p25FileSize": added[len(added) // 4],
        "p50FileSize": added[len(added) // 2],
        "p75FileSize": added[len(added) * 3 // 4],
        "maxFileSize": added[-1],
    }


def _list(texts: Sequence[str]) -> str:
    return commit.compact_json(list(texts))
