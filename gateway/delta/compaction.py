"""OPTIMIZE: many small files of a partition into few, in one commit that changes no row.

Which files go together is Delta's way: of each partition those below the largest size, small ones first, as many into one file
as fit; all of it where rows are put in an order; of a clustered table all that is not in one order yet. What another writer has
added meanwhile stays beside; what it has taken away is a conflict.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gateway.delta import commit, row_ids
from gateway.delta.commit import Action
from gateway.delta.creation import clustering_of
from gateway.delta.datafiles import target_bytes
from gateway.delta.dataset import POSITION, DataFile, Places, read_file
from gateway.delta.features import Kept
from gateway.delta.feed import CHANGE, COPIED
from gateway.delta.file_columns import file_field
from gateway.delta.footers import opened_parquet, unreadable_file
from gateway.delta.indexed import number_of
from gateway.delta.logged import specs_of
from gateway.delta.ordering import MOST_BYTES, check_ordered, ordered
from gateway.delta.partitions import value_text
from gateway.delta.replay import Fields
from gateway.delta.rewrite import RowWriter, check_still_live, publish_behind, trail
from gateway.delta.scan import missing_file, verify_files
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.delta.write import check_own, check_snapshot_writable, removes_of, storage_errors
from gateway.errors import unsupported
from gateway.sqltypes import BIGINT

#: Bytes below which a file is put together with others, and of those together: Delta's.
FILE_BYTES = 1 << 30
# A file with more deleted rows is written anew although it is large.
_DELETED = 0.05
# Of rows that are written together, where that many come from small files.
_SMALL_BYTES = 1 << 20
# How files tell of the order that they are in.
_CUBE, _CUBE_BY = "ZCUBE_ID", "ZCUBE_ZORDER_BY"
_PURGE: commit.Parameters = {"applyPurge": True}


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
    cubes: Cubes | None = None


@dataclass(frozen=True, slots=True)
class Cubes:
    """Of a clustered table: bytes of the files that are in an order, of the others, and how many orders there are."""

    inside: list[int]
    outside: list[int]
    count: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns, by their paths, in whose order rows are put: those that a table is clustered by, or ones for once.

    `full` is OPTIMIZE FULL: files that are in the order of other columns, too.
    """

    paths: tuple[tuple[str, ...], ...]
    clusters: bool = False
    full: bool = False

    @property
    def names(self) -> str:
        """The columns as the log tells them."""
        return _list([".".join(path) for path in self.paths])


def layout_of(snapshot: Snapshot) -> Layout | None:
    """The order that a table is kept in; None for one that is not clustered."""
    found = clustering_of(snapshot)
    return Layout(tuple(tuple(path) for path in found), True) if found else None


def compact(
    snapshot: Snapshot,
    candidates: Sequence[int],
    predicate: Sequence[str],
    alive: Callable[[], None],
    layout: Layout | None = None,
    purges: bool = False,
) -> Compacted:
    """Put the small ones of some files of a snapshot together; `alive` raises once nobody wants that any more.

    With `layout` rows are put in order; who `purges` has all of the files written anew. Raises what `rewrite.publish_behind`
    does.
    """
    check_compactable(snapshot, layout)
    cubes, bins = None, _bins(snapshot, candidates, layout, purges)
    if layout is not None and layout.clusters:
        cubes, bins = _unclustered(snapshot, layout)
    removed = [i for one in bins for i in one]
    partitions = len({_partition(snapshot, one[0]) for one in bins})
    vectors = [~snapshot.files.deleted[i] for i in removed if i in snapshot.files.deleted]
    gone = int(sum(np.count_nonzero(mask) for mask in vectors))
    sizes = snapshot.files.sizes[np.asarray(removed, dtype=np.int64)].tolist()
    if not bins:
        return Compacted(None, [], [], len(candidates), 0, 0, cubes=cubes)
    root = snapshot.root
    with (
        storage_errors(root),
        RowWriter(snapshot, None, FILE_BYTES) as writer,
    ):
        cube = _cube(layout)
        for one in bins:
            for batch in _in_order(snapshot, _joined(rows_of_files(snapshot, one), alive), layout, alive):
                alive()
                writer.take([batch])
            writer.finish(settles=False)
        adds = [_without_change(action, cube) for action in writer.finish(settles=False)]
        added = sorted(action["add"]["size"] for action in adds)
        parameters = {**_PURGE, "predicate": _list(predicate)} if purges else _parameters(predicate, layout)
        metrics = _metrics(added, sizes, len(vectors))
        word = "REORG" if purges else "OPTIMIZE"
        info = commit.info_action(word, parameters, metrics, False, snapshot.version, commit.SNAPSHOT_ISOLATION)
        info = {"commitInfo": {**info["commitInfo"], **row_ids.told("OPTIMIZE", snapshot)}}
        actions = [info, *removes_of(snapshot, removed, changes_data=False), *adds]
        version = publish_behind(
            snapshot, actions, lambda newer: check_still_live(snapshot, newer, removed), writer.settle
        )
    commit.checkpoint_if_due(root, version, snapshot.properties)
    return Compacted(version, added, sizes, len(candidates), len(bins), partitions, len(vectors), gone, cubes)


def _parameters(predicate: Sequence[str], layout: Layout | None) -> commit.Parameters:
    parameters = {"predicate": _list(predicate), "zOrderBy": "[]", "clusterBy": "[]"}
    if layout is None:
        return {**parameters, "auto": False}
    if layout.clusters:
        return {**parameters, "clusterBy": layout.names, "auto": False, "isFull": layout.full}
    return {**parameters, "zOrderBy": layout.names, "auto": False}


def _in_order(
    snapshot: Snapshot, batches: Iterator[pa.RecordBatch], layout: Layout | None, alive: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    if layout is None:
        yield from batches
        return
    held = []
    for batch in batches:
        alive()
        held.append(batch)
    if held:
        yield from ordered(pa.Table.from_batches(held), snapshot.columns, layout.paths)


def check_compactable(snapshot: Snapshot, layout: Layout | None = None) -> None:
    """Raise what keeps a table's files from being written anew, in an order if there is one."""
    check_own(snapshot.root)
    check_snapshot_writable(snapshot, kept=Kept.BY_STATEMENT)  # the rows are those that were checked before
    for path in layout.paths if layout is not None else ():
        check_ordered(snapshot.columns, path)


def indexed_columns(snapshot: Snapshot) -> int:
    """How many columns have statistics, as OPTIMIZE tells: those of structs count once."""
    count = number_of(snapshot.properties)
    return min(count, len(snapshot.columns))


def outdated(snapshot: Snapshot, candidates: Sequence[int], alive: Callable[[], None]) -> list[int]:
    """Those of some files that hold rows which are deleted, or columns that the table has no more.

    Raises ServerError for a file that is missing or damaged, and what `alive` raises.
    """
    known = pa.struct([file_field(column) for column in (*snapshot.columns, *row_ids.hidden_columns(snapshot))])
    return [i for i in candidates if i in snapshot.files.deleted or _holds_more(snapshot, i, known, alive)]


def _holds_more(snapshot: Snapshot, file: int, known: pa.DataType, alive: Callable[[], None]) -> bool:
    alive()
    path = snapshot.files.paths[file]
    try:
        with opened_parquet(path, snapshot.within) as opened:
            return _has_more(pa.struct(list(opened.schema_arrow)), known)
    except FileNotFoundError as error:
        raise missing_file(snapshot.root, path) from error
    except (pa.ArrowException, OSError) as error:
        raise unreadable_file(path, error) from error


def _has_more(found: pa.DataType, known: pa.DataType) -> bool:
    """Whether structs at any depth have fields that the others lack."""
    if pa.types.is_struct(found) and pa.types.is_struct(known):
        at = {f.name: known.get_field_index(f.name) for f in found}
        return any(at[f.name] < 0 or _has_more(f.type, known.field(at[f.name]).type) for f in found)
    if pa.types.is_map(found) and pa.types.is_map(known):
        return _has_more(found.key_type, known.key_type) or _has_more(found.item_type, known.item_type)
    if pa.types.is_list(found) and pa.types.is_list(known):
        return _has_more(found.value_type, known.value_type)
    return False


def _partition(snapshot: Snapshot, file: int) -> tuple[str | None, ...]:
    """The values of a file's partition, as the log has them."""
    values = snapshot.files.partitions
    return tuple(value_text(values[n][file], snapshot.by_name[n].type) for n in snapshot.partition_columns)


def _unclustered(snapshot: Snapshot, layout: Layout) -> tuple[Cubes, list[list[int]]]:
    """What is in the table's order and what is not; and the files that are put in one, if there is more than one order."""
    sizes = snapshot.files.sizes.tolist()
    tags = [spec.get("tags") or {} for spec in specs_of(snapshot)]
    ids = [of.get(_CUBE) if of.get(_CUBE_BY) == layout.names else None for of in tags]
    inside = [i for i, one in enumerate(ids) if one is not None]
    outside = [i for i, one in enumerate(ids) if one is None]
    cubes = {one for one in ids if one is not None}
    found = Cubes([sizes[i] for i in inside], [sizes[i] for i in outside], len(cubes))
    if layout.full:  # Delta counts those of other columns as being in an order, then
        any_id = [of.get(_CUBE) for of in tags]
        parts = [
            [size for size, one in zip(sizes, any_id, strict=True) if (one is None) == out] for out in (False, True)
        ]
        found = Cubes(parts[0], parts[1], len({one for one in any_id if one is not None}))
    if not outside and len(cubes) < 2:
        return found, []
    files = sorted((*inside, *outside))
    _check_size(snapshot, files)
    return found, [files]


def _check_size(snapshot: Snapshot, files: Sequence[int]) -> None:
    if int(snapshot.files.sizes[np.asarray(files, dtype=np.int64)].sum()) > MOST_BYTES:
        raise unsupported(f"putting rows of more than {MOST_BYTES >> 20} MiB in order")


def _bins(snapshot: Snapshot, candidates: Sequence[int], layout: Layout | None, purges: bool) -> list[list[int]]:
    """Files that become one."""
    if layout is not None:
        together = files_by_partition(snapshot, candidates)
        for files in together if not layout.clusters else ():
            _check_size(snapshot, files)
        return together
    sizes, target = snapshot.files.sizes, target_bytes(snapshot.properties) or FILE_BYTES
    by_partition: dict[tuple[str | None, ...], list[int]] = {}
    for file in candidates:
        if purges or sizes[file] < target or _mostly_deleted(snapshot, file):
            by_partition.setdefault(_partition(snapshot, file), []).append(file)
    found: list[list[int]] = []
    for files in by_partition.values():
        whole = 0
        one: list[int] = []
        for file in sorted(files, key=lambda i: int(sizes[i])):
            if one and whole + sizes[file] > target:
                found.append(one)
                one, whole = [], 0
            one.append(file)
            whole += int(sizes[file])
        found.append(one)
    return [one for one in found if purges or len(one) > 1]


def files_by_partition(snapshot: Snapshot, files: Iterable[int]) -> list[list[int]]:
    """Some files of a snapshot, those of one partition together."""
    together: dict[tuple[str | None, ...], list[int]] = {}
    for file in files:
        together.setdefault(_partition(snapshot, file), []).append(file)
    return list(together.values())


def _mostly_deleted(snapshot: Snapshot, file: int) -> bool:
    mask = snapshot.files.deleted.get(file)
    if mask is None:
        return False
    rows = snapshot.files.num_records[file].as_py()
    return rows is None or np.count_nonzero(~mask) > _DELETED * rows


def rows_of_files(snapshot: Snapshot, one: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """The rows of some files that are left, with the columns of `rewrite.trail` behind them."""
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
    places = Places(columns)
    for number, file in zip(one, read, strict=True):
        for batch in read_file(file, columns, schema, snapshot.within, places):
            if not more:
                yield batch.select(range(width))
                continue
            rows = batch.select(range(width))
            known = [np.full(batch.num_rows, value, dtype=np.int64) for value in (COPIED, number)]
            for values in [*map(pa.array, known), batch.column(width)][:more]:
                rows = rows.append_column(CHANGE, values)
            yield rows


def _joined(batches: Iterator[pa.RecordBatch], alive: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """The same rows without the smallest of batches, each of which costs the writer as much as a large one."""
    held, size = list[pa.RecordBatch](), 0
    for batch in batches:
        alive()
        large = batch.nbytes >= _SMALL_BYTES
        if not large:
            held.append(batch)
            size += batch.nbytes
        if held and (large or size >= _SMALL_BYTES):
            yield pa.concat_batches(held)
            held, size = [], 0
        if large:
            yield batch
    if held:
        yield pa.concat_batches(held)


def _without_change(action: Action, cube: Fields) -> Action:
    return {"add": {**action["add"], "dataChange": False, **cube}}


def _cube(layout: Layout | None) -> Fields:
    """What files of a clustered table say of their order."""
    if layout is None or not layout.clusters:
        return {}
    return {"tags": {_CUBE: str(uuid.uuid4()), _CUBE_BY: layout.names}, "clusteringProvider": "liquid"}


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
