"""What a table's log tells of changes between versions: files of the feed, and data files whose rows came or went as a whole.

The rules are the protocol's: a commit with files of the feed is told by these alone, any other by what it adds and removes, of
which a file that stays with another deletion vector is told by the rows in which the two vectors differ. And as with Delta, a
MERGE that says of itself that it has changed no row is told by nothing.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.delta import log
from gateway.delta.containment import source
from gateway.delta.dataset import DataFile, read_file
from gateway.delta.feed import AFTER, BEFORE, CHANGE, COLUMNS, DELETE, INSERT, TIME, VERSION
from gateway.delta.partitions import typed_value
from gateway.delta.properties import FEED
from gateway.delta.replay import Fields, check_file, damage_told, key_of
from gateway.delta.scan import DATASET, EMPTY, ScanPlan, has_float, one_group, verify_files
from gateway.delta.schema import Column, parse_schema
from gateway.delta.table import Snapshot, disk_path, moved, of_this_table, open_snapshot
from gateway.delta.vectors import deleted_by, live_mask
from gateway.errors import ServerError, UserError, unsupported
from gateway.worker_jobs import marker_of

#: A version, or a moment in epoch microseconds.
Bound = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of some versions of a table, newest snapshot known; none if `first` is behind `last`."""

    snapshot: Snapshot
    first: int
    last: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """The table's columns by now, and what each row tells of its change."""
        return (*self.snapshot.columns, *COLUMNS)

    def scan(self, names: Sequence[str]) -> ScanPlan:
        """How some columns of all changes are read. Raises ServerError; also if another table has come to the name."""
        wanted = tuple(c for c in self.columns if c.name in names) if names else (COLUMNS[1],)
        by_name = {c.name: c for c in wanted}
        wanted = tuple(by_name[name] for name in names) if names else wanted
        for column in wanted:
            column.check_readable()
        with of_this_table(self.snapshot), damage_told(self.snapshot.root):
            files = list(self._files())
            if marker_of(log.commit_path(self.snapshot.root, self.snapshot.version)) != self.snapshot.marker:
                raise moved(self.snapshot.root)  # what was read may be of both
            verify_files(self.snapshot.root, files, self.snapshot.within)
            for file in files:
                if CHANGE not in file.constants:
                    _check_fed(file, self.snapshot)
        return ScanPlan(
            reader=DATASET if files else EMPTY,
            reason="changes of several versions" if files else "no version has changed a row",
            files_kept=len(files),
            files_total=len(files),
            bytes=sum(file.size for file in files),
            num_rows=None,
            reads_floats=any(has_float(c.type) for c in wanted),
            _columns=wanted,
            _groups=one_group(files),
            _root=self.snapshot.root,
            _within=self.snapshot.within,
            _pruning=False,
        )

    def _files(self) -> Iterator[DataFile]:
        one = self.snapshot
        if self.first > self.last:
            return
        versions = [n for n in log.commit_versions(one.root) if n <= self.last]
        times = dict(zip(versions, log.commit_times(one.root, versions, one.properties), strict=True))
        for version in range(self.first, self.last + 1):
            if version not in times:
                raise _corrupt(f"The log of the Delta table {one.root} lacks version {version}.")
            yield from _of_version(one, version, times[version])


def changes_between(snapshot: Snapshot, start: Bound, end: Bound | None) -> Changes:
    """The changes from a version or moment to another, or to the newest version.

    Raises the errors of Delta for bounds that are not there and for versions without a feed, UnsupportedError for versions with
    columns that are not those of the newest.
    """
    first = _version(snapshot, start, True)
    last = snapshot.version if end is None else min(_version(snapshot, end, False), snapshot.version)
    if first > snapshot.version:
        text = (
            f"Start version {first} for change data feed exceeds the latest table version {snapshot.version}. Provide a start "
            "version within the table's version range."
        )
        raise UserError("DELTA_CDC_START_VERSION_AFTER_LATEST", text)
    if first > last:
        between = end is not None and start[0] == end[0] == "timestamp" and start[1] <= end[1]
        if between:
            return Changes(snapshot, first, last)
        text = f"CDC range from start {first} to end {last} was invalid. End cannot be before start."
        raise UserError("DELTA_INVALID_CDC_RANGE", text)
    with of_this_table(snapshot), damage_told(snapshot.root):
        _check_told(snapshot, first, last)
    return Changes(snapshot, first, last)


def _version(snapshot: Snapshot, bound: Bound, starts: bool) -> int:
    kind, value = bound
    if kind == "version":
        return value
    versions = [n for n in log.commit_versions(snapshot.root) if n <= snapshot.version]
    times = log.moments_sought(snapshot.root, versions, snapshot.properties)
    moment = value // 1000
    if times and moment > times[-1]:
        text = f"The timestamp is after the latest version of the Delta table {snapshot.root}."
        raise UserError("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", text)
    behind = bisect_right(times, moment)
    if starts:
        return versions[behind - 1 if behind and times[behind - 1] == moment else behind]
    if not behind:
        text = f"The timestamp is before the earliest version of the Delta table {snapshot.root}."
        raise UserError("DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", text)
    return versions[behind - 1]


def _check_told(snapshot: Snapshot, first: int, last: int) -> None:
    """Raise unless each version keeps a feed, in columns that are the newest version's."""
    before = open_snapshot(snapshot.root, first, within=snapshot.within)
    _check_enabled(before.properties, first, last)
    _check_columns(before.columns, snapshot)
    for version in range(first + 1, last + 1):
        for action in log.actions(snapshot.root, version):
            found = action.get("metaData")
            if found is not None:
                _check_enabled(found.get("configuration") or {}, first, last)
                _check_columns(parse_schema(json.loads(found["schemaString"]), snapshot.mapping), snapshot)


def _check_enabled(properties: Mapping[str, str], first: int, last: int) -> None:
    if properties.get(FEED, "").lower() != "true":
        text = (
            f"Error getting change data for range [{first} , {last}] as change data was not recorded for version [{first}]. "
            f"If you've enabled change data feed on this table, use DESCRIBE HISTORY to see when it was first enabled."
        )
        raise UserError("DELTA_MISSING_CHANGE_DATA", text)


def _check_columns(columns: Sequence[Column], snapshot: Snapshot) -> None:
    now = snapshot.by_name
    if any(c.name not in now or (now[c.name].physical, now[c.name].type) != (c.physical, c.type) for c in columns):
        raise unsupported("table_changes of versions between which columns were changed")


def _of_version(snapshot: Snapshot, version: int, time_ms: int) -> Iterator[DataFile]:
    told: dict[str, pa.Scalar] = {
        VERSION: pa.scalar(version, pa.int64()),
        TIME: pa.scalar(time_ms * 1000, COLUMNS[2].type.arrow()),
    }
    actions = log.actions(snapshot.root, version)
    fed = _by_path(snapshot, "cdc", actions)
    if fed:
        for spec in fed.values():
            yield _file(snapshot, spec, told, None)
        return
    if _moves_rows_alone(actions):
        return
    adds, removes = (_by_path(snapshot, kind, actions) for kind in ("add", "remove"))
    for word, specs, others in ((INSERT, adds, removes), (DELETE, removes, adds)):
        for path, spec in specs.items():
            live = _differing(snapshot, spec, others.get(path))
            if path not in others or live is None or live.any():  # rows past a mask's end are live
                yield _file(snapshot, spec, {**told, CHANGE: pa.scalar(word)}, live)


_MERGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


def _moves_rows_alone(actions: Sequence[Fields]) -> bool:
    """Whether a commit is of a MERGE that counts no row as changed.

    Spark writes files anew of which rows were paired and then met no condition of a clause, and says that this changes data.
    """
    info = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    metrics = info.get("operationMetrics") if isinstance(info, dict) and info.get("operation") == "MERGE" else None
    return isinstance(metrics, dict) and all(str(metrics.get(name)) == "0" for name in _MERGED)


def _by_path(snapshot: Snapshot, kind: str, actions: Sequence[Fields]) -> dict[str, Fields]:
    """What one commit adds, removes or has for files of its changes, by its place on disk; each file once."""
    found: dict[str, Fields] = {}
    for spec in (a[kind] for a in actions if kind in a and (kind == "cdc" or a[kind].get("dataChange", True))):
        check_file(snapshot.root, spec)
        path, _ = key_of(snapshot.root, spec)
        if path in found:
            raise _corrupt(f"A commit of the Delta table {snapshot.root} lists the file {path} twice.")
        found[path] = spec
    return found


def _differing(snapshot: Snapshot, spec: Fields, other: Fields | None) -> npt.NDArray[np.bool_] | None:
    """The rows of a file that are live under its vector and, if there is another of the same file, not under that."""
    gone = _deleted(snapshot, spec)
    if other is None:
        return live_mask(gone) if len(gone) else None
    rows = np.setdiff1d(_deleted(snapshot, other), gone)
    path = disk_path(snapshot.root, spec["path"], snapshot.within)
    mask = np.zeros(_records(path, snapshot), dtype=bool)
    if len(rows) and int(rows[-1]) >= len(mask):
        raise _corrupt(f"A deletion vector of the Delta table {snapshot.root} is longer than its file {path}.")
    mask[rows] = True
    return mask


def _deleted(snapshot: Snapshot, spec: Fields) -> npt.NDArray[np.int64]:
    vector = spec.get("deletionVector")
    return np.zeros(0, np.int64) if vector is None else deleted_by(snapshot.root, vector, snapshot.within)


def _file(
    snapshot: Snapshot, spec: Fields, told: Mapping[str, pa.Scalar], live: npt.NDArray[np.bool_] | None
) -> DataFile:
    path = disk_path(snapshot.root, spec["path"], snapshot.within)
    values: Mapping[str, str | None] | None = spec.get("partitionValues")
    if values is None:
        raise unsupported("table_changes of a version that removes files without their partition values")
    constants = dict(told)
    for name in snapshot.partition_columns:
        column = snapshot.by_name[name]
        constants[name] = typed_value(values.get(column.physical), column.type, snapshot.zone)
    return DataFile(path, _size(spec, path), constants, live)


_KINDS = frozenset({INSERT, DELETE, BEFORE, AFTER})


def _check_fed(file: DataFile, snapshot: Snapshot) -> None:
    """Raise ServerError DELTA_LOG_CORRUPT for a file of the feed, say a data file, whose rows do not tell their kind."""
    kind = COLUMNS[0]
    schema = pa.schema([pa.field(kind.name, kind.type.arrow())])
    for batch in read_file(file, [kind], schema, snapshot.within):
        if not _KINDS.issuperset(pc.unique(batch.column(0)).to_pylist()):
            text = f"The log of the Delta table {snapshot.root} has {file.path} for a file of changes, whose rows do not all "
            raise _corrupt(f"{text}tell in {CHANGE} which change they are of.")


def _corrupt(text: str) -> ServerError:
    return ServerError("DELTA_LOG_CORRUPT", text)


def _size(spec: Fields, path: str) -> int:
    if spec.get("size") is not None:
        return int(spec["size"])
    try:
        return os.stat(path).st_size
    except OSError as error:
        raise ServerError("DELTA_FILE_NOT_FOUND", f"The file {path} is missing.") from error


def _records(path: str, snapshot: Snapshot) -> int:
    with source(path, snapshot.within) as opened:
        return int(pq.read_metadata(opened).num_rows)
