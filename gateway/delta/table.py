"""Delta tables as immutable snapshots: one object per (path, version) with schema, files and statistics.

`open_snapshot` costs two `stat` calls when nothing has changed: the newest commit file is still the same file and the next
version's does not exist. Else a private deltalake object is brought up to date and what it says is copied into a new
`Snapshot`; nobody ever sees a table that changes under a running statement. Who only adds rows gets one whose files are read
once somebody asks for them (`open_to_add`).
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from gateway import sqltypes as t
from gateway.delta import log
from gateway.delta.ahead import last_of_files
from gateway.delta.checkpoint_instants import mended, misread_parts
from gateway.delta.containment import Within, is_under, is_within, local_path, not_allowed, real_path
from gateway.delta.features import Protocol, check_readable, coordinated, refused
from gateway.delta.listed import Files, LateFiles
from gateway.delta.live_rows import live_masks
from gateway.delta.log_paths import check_log
from gateway.delta.opening import opened, unread_by_it
from gateway.delta.partitions import typed_values
from gateway.delta.schema import MAPPING, Column, parse_schema, struct_of
from gateway.delta.watch import FolderWatch, Watch
from gateway.delta.zoneless import zoneless
from gateway.errors import GatewayError, ServerError, UnsupportedError, UserError
from gateway.instants import UTC, Zone
from gateway.worker_jobs import Witness, marker_of

_MOST_ROWS = 1 << 48  # of a file: sums of them stay whole numbers of 64 bits
_ATTEMPTS = 5  # to open a table beside which others come and go
NO_VERSION = -1  # of files without a log
_CACHED_TABLES, _CACHED_VERSIONS = 512, 64


# Columns of data files by their paths, and which file it was; None: this very one.
Contents = dict[str, tuple[tuple[int, int] | None, dict[str, Any]]]


@dataclass(frozen=True)
class Snapshot:
    """One version of a Delta table; immutable. `root` is the absolute folder, `mapping` is none, name or id."""

    root: str
    version: int
    protocol: Protocol
    columns: tuple[Column, ...]
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    comment: str | None
    mapping: str
    files: Files
    table_id: str = ""
    created_ms: int | None = None
    within: Within = ()  # where its files may lie, links followed
    # Facts about this version, filled in by readers.
    notes: dict[str, object] = field(default_factory=dict, compare=False)
    contents: Contents = field(default_factory=dict, compare=False)  # filled in by readers
    marker: tuple[int, ...] | None = field(default=None, compare=False)  # of its commit: see `commit.publish`
    zone: Zone = UTC  # by whose clock partition values without a zone are read

    @cached_property
    def schema(self) -> t.StructType:
        """Logical columns in table order, partition columns included."""
        return struct_of(self.columns)

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {c.name: c for c in self.columns}

    @cached_property
    def num_rows(self) -> int | None:
        """Exact live row count if every file has one in the log, else None."""
        rows = self.files.live_rows
        return None if (rows < 0).any() else int(rows.sum())

    def in_zone(self, zone: Zone) -> Snapshot:
        """A snapshot as it was opened, as a session of a time zone reads it: see `delta.zoneless`."""
        if zone == self.zone or not any(self.by_name[name].type == t.TIMESTAMP for name in self.partition_columns):
            return self
        assert self.zone == UTC, "instants are moved once"
        files = self.files
        if isinstance(files, LateFiles):
            return replace(self, files=LateFiles.by(lambda: files.in_zone(zone)), notes={}, zone=zone)
        moved = files.in_zone(zone)
        return replace(self, files=moved, notes=self.notes if moved is files else {}, zone=zone)


@dataclass
class _Entry:
    """What is kept of one table: a private deltalake object and the newest snapshot made from it."""

    lock: Lock = field(default_factory=Lock)
    table: DeltaTable | None = None
    snapshot: Snapshot | None = None
    marker: tuple[int, ...] = ()
    within: Within = ()
    ahead: Snapshot | None = None  # a later version without its files


class SnapshotCache:
    """Newest snapshots by path and older ones by (path, version); safe from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tables: OrderedDict[str, _Entry] = OrderedDict()
        self._versions: OrderedDict[tuple[str, int], tuple[tuple[int, ...], Snapshot]] = OrderedDict()
        self.hits = 0  # snapshots that were there; a figure, so it needs no lock

    def latest(self, root: str, within: Within | None = None) -> Snapshot:
        """The newest version of the table in the folder `root`; `within` as for `open_snapshot`."""
        entry = self._entry(root)
        if within is not None and entry.within != within:
            with entry.lock:
                entry.within, entry.snapshot, entry.marker = within, None, ()
        snapshot = entry.snapshot
        if snapshot is not None and self._is_current(entry, snapshot):
            self.hits += 1
            return snapshot
        with entry.lock:
            snapshot = entry.snapshot
            if snapshot is not None and self._is_current(entry, snapshot):
                return snapshot
            return self._refresh(root, entry)

    def to_add(self, root: str, within: Within | None = None) -> Snapshot:
        """The newest version for who adds rows; its files are read when they are asked for."""
        entry = self._entry(root)
        if within is None or entry.within == within:
            with entry.lock:
                found = self._ahead(root, entry)
            if found is not None:
                return found
        return self.latest(root, within)

    def at_version(self, root: str, version: int, within: Within | None = None) -> Snapshot:
        """Exactly `version`; raises UserError if it does not exist (any more)."""
        newest = self.latest(root, within)
        if version == newest.version:
            return newest
        with of_this_table(newest):
            return self._earlier(root, version, newest)

    def _earlier(self, root: str, version: int, newest: Snapshot) -> Snapshot:
        versions = log.commit_versions(root)
        if not 0 <= version <= newest.version:
            raise _no_version(root, version, versions[0] if versions else newest.version, newest.version)
        marker = marker_at(root, version)
        with self._lock:
            known = self._versions.get((root, version))
        if known is not None and known[0] == marker and known[1].within == newest.within:
            return known[1]
        for _ in range(_ATTEMPTS + 1):  # see `_refresh`
            watch = _watch(root, newest.within)
            try:
                snapshot = _snapshot(root, _open(root, version, newest.within), newest.within)
            except ServerError as error:
                if not watch.unchanged():
                    continue
                if version not in versions or versions[0] > 0:
                    first = versions[0] if versions else newest.version
                    raise _no_version(root, version, first, newest.version) from error
                raise
            if watch.unchanged():
                break
        else:
            raise moved(root)
        if not watch.held() or marker != marker_at(root, version):
            return snapshot  # not kept: see `_refresh`
        with self._lock:
            self._versions[root, version] = (marker, snapshot)
            while len(self._versions) > _CACHED_VERSIONS:
                self._versions.popitem(last=False)
        return snapshot

    def witness(self, snapshot: Snapshot) -> Witness | None:
        """See `witness`."""
        with self._lock:
            entry = self._tables.get(snapshot.root)
        known = None if entry is None else entry.snapshot
        # The very one, or as it is read in a time zone.
        if entry is None or known is None or not entry.marker or known.version != snapshot.version:
            return None
        if not known.marker == snapshot.marker == entry.marker:
            return None
        path, following = (log.commit_path(snapshot.root, snapshot.version + i) for i in (0, 1))
        return Witness(path, entry.marker, following)

    def forget(self, root: str) -> None:
        """Drop what is kept of a table whose folder is gone."""
        with self._lock:
            self._tables.pop(root, None)
            for key in [k for k in self._versions if k[0] == root]:
                del self._versions[key]

    def _entry(self, root: str) -> _Entry:
        with self._lock:
            entry = self._tables.get(root)
            if entry is None:
                entry = self._tables[root] = _Entry()
                while len(self._tables) > _CACHED_TABLES:
                    self._tables.popitem(last=False)
            else:
                self._tables.move_to_end(root)
            return entry

    @staticmethod
    def _is_current(entry: _Entry, snapshot: Snapshot) -> bool:
        if os.path.exists(log.commit_path(snapshot.root, snapshot.version + 1)):
            return False
        return bool(entry.marker) and entry.marker == marker_at(snapshot.root, snapshot.version)

    def _ahead(self, root: str, entry: _Entry) -> Snapshot | None:
        """The newest version, if what is known of an earlier one holds for it but for the files."""
        known, entry.ahead = entry.ahead, None
        if entry.snapshot is None or not entry.marker or entry.snapshot.protocol.has("rowTracking"):
            return None
        snapshot = entry.snapshot if known is None or known.version < entry.snapshot.version else known
        last = last_of_files(root, snapshot.version)
        marker = () if last is None else marker_at(root, last)
        # That of the known one is looked at behind the newest one's, which then is of the same table.
        if last is None or snapshot.marker != marker_at(root, snapshot.version):
            return None
        if last > snapshot.version:
            # Not what is known of its files: they are others.
            within = entry.within or (root,)
            files = LateFiles.by(partial(_late_files, root, last, within, snapshot.table_id))
            snapshot = replace(snapshot, version=last, files=files, notes={}, contents={}, marker=marker)
        if snapshot is not entry.snapshot:
            entry.ahead = snapshot
        return snapshot

    @staticmethod
    def _refresh(root: str, entry: _Entry) -> Snapshot:
        old = entry.snapshot
        table = entry.table
        entry.table = entry.snapshot = entry.ahead = None
        within = entry.within or (root,)
        watch = _watch(root, within)
        try:
            known = entry.marker and old is not None and entry.marker == marker_at(root, old.version)
            if table is not None and old is not None and known and not old.files.mended:
                check_log(root, within)
                _update(root, table)
            else:
                table = _open(root, None, within)
            snapshot = _snapshot(root, table, within)
            for attempt in range(_ATTEMPTS + 1):
                if watch.unchanged():
                    break
                if attempt == _ATTEMPTS:
                    raise moved(root)
                # Another table may have been in its place for a moment: what was read may be of both.
                watch = _watch(root, within)
                table = _open(root, None, within)
                snapshot = _snapshot(root, table, within)
        except (GatewayError, *_STUMBLES) as error:
            entry.marker = ()
            if isinstance(error, (ServerError, *_STUMBLES)) and not watch.unchanged():
                raise moved(root) from error  # what is damaged may be half of one table and half of another
            raise
        if old is not None and old.table_id == snapshot.table_id:
            # Data files never change: what is known of one holds in every version.
            snapshot.contents.update((p, old.contents[p]) for p in snapshot.files.paths if p in old.contents)
        entry.table, entry.snapshot, entry.marker = table, snapshot, snapshot.marker or ()
        if not watch.held() or coordinated(snapshot.protocol):
            entry.marker = ()  # to be read again: it may be that of another table, or not tell of commits beside the log
        return snapshot


def _late_files(root: str, version: int, within: Within, table_id: str) -> Files:
    """The files of a version that was seen before. Raises ServerError if another table is in the place by now."""
    found = open_snapshot(root, version, within=within)
    if found.table_id != table_id:
        raise moved(root)
    return found.files


def _watch(root: str, within: Within) -> Watch:
    """On the folders above a table that a catalog has found."""
    return FolderWatch(root, within) if within != (root,) else Watch((), within)


def moved(root: str) -> ServerError:
    """The error for a table that was moved while it was opened."""
    text = f"The folder of the Delta table {root} was moved or removed while it was opened. Send the statement again."
    return ServerError("DELTA_FILE_NOT_FOUND", text, retryable=True)


_CACHE = SnapshotCache()


def open_snapshot(
    path: str, version: int | None = None, timestamp_us: int | None = None, within: Within | None = None
) -> Snapshot:
    """The table in the folder `path` at its newest version, at `version`, or as it was at `timestamp_us`.

    Its files, and the ends of links among them, must lie `within` real folders: None for those that it was last opened with,
    else its own.

    Raises UserError (PATH_NOT_FOUND, PATH_NOT_ALLOWED, DELTA_VERSION_NOT_FOUND, DELTA_TIMESTAMP_…),
    UnsupportedError (UNSUPPORTED_TABLE_FEATURE) or ServerError (DELTA_LOG_CORRUPT).
    """
    with _damage_named(path):
        if timestamp_us is not None:
            version = log.version_at(path, timestamp_us, _CACHE.latest(path, within).properties)
        return _CACHE.latest(path, within) if version is None else _CACHE.at_version(path, version, within)


def open_to_add(path: str, within: Within | None = None) -> Snapshot:
    """The table in the folder `path` at its newest version, for who adds rows: `open_snapshot`, but for when files are read."""
    with _damage_named(path):
        return _CACHE.to_add(path, within)


# What readers of logs stumble over: values of other types than the protocol's, names that are no numbers; and files that
# cannot be opened, by anybody or by us, however often that is tried.
_LASTING = (errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ENOTDIR)
_NO_FILE = "File not found: "  # in errors of deltalake
# What the system may say to deltalake, which tells it as text.
_UNREAD = (errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE)
_STUMBLES = (DeltaError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError)


@contextmanager
def _damage_named(root: str) -> Iterator[None]:
    """What a damaged log makes its readers raise, panics of deltalake among it, as DELTA_LOG_CORRUPT of the table."""
    try:
        yield
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"  # pyo3's, no Exception and nowhere to import from
        if isinstance(error, OSError) and error.errno in _LASTING:
            text = f"{error.filename or root} of the Delta table {root} cannot be used: {error.strerror}."
            raise ServerError("FAILED_READ_FILE", text) from error
        if isinstance(error, FileNotFoundError) and not os.path.islink(error.filename or root):
            raise moved(root) from error  # it was there when it was listed
        if isinstance(error, GatewayError) or not (panic or isinstance(error, _STUMBLES)):
            raise
        raise _open_error(root, error) from error


def witness(snapshot: Snapshot) -> Witness | None:
    """What shows whether a snapshot still is its table's newest version; None if it is not known to be."""
    return _CACHE.witness(snapshot)


def cache_hits() -> int:
    """How often this process has found a snapshot in its cache."""
    return _CACHE.hits


def forget(path: str) -> None:
    """Drop what is cached of a table that was removed."""
    _CACHE.forget(path)


def marker_at(root: str, version: int) -> tuple[int, ...]:
    """Identity of a version's commit file, so that a table removed and made anew is noticed; empty without the file."""
    return marker_of(log.commit_path(root, version))


@contextmanager
def of_this_table(snapshot: Snapshot) -> Iterator[None]:
    """What readers of its log miss or find damaged; it is that the table was moved if no commit or another's is there."""
    try:
        yield
    except (ServerError, UserError, FileNotFoundError) as error:
        if snapshot.marker is not None and snapshot.marker != marker_at(snapshot.root, snapshot.version):
            raise moved(snapshot.root) from error
        raise


def _no_version(root: str, version: int, first: int, last: int) -> UserError:
    text = f"Cannot travel to version {version} of the Delta table {root}. Available versions: [{first}, {last}]."
    return UserError("DELTA_VERSION_NOT_FOUND", text)


def _open(root: str, version: int | None, within: Within) -> DeltaTable:
    if "%" in root:
        # deltalake decodes the path and would open another folder.
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"A Delta table in a folder with % in its name ({root}) is not supported."
        )
    if not log.has_log(root):
        raise UserError("PATH_NOT_FOUND", f"{root} is not a Delta table.")
    check_log(root, within, version)
    log.check_sizes(root, version)
    if log.is_beheaded(root):
        raise ServerError(
            "DELTA_LOG_CORRUPT",
            f"The log of the Delta table {root} lacks its first commits and has no checkpoint in their place.",
        )
    try:
        table = opened(root, version)
    except (DeltaError, TableNotFoundError, OSError, ValueError) as error:
        raise _open_error(root, error) from error
    log.check_commits(root, table.version())
    return table


def _update(root: str, table: DeltaTable) -> None:
    known = table.version()
    log.check_sizes(root, known=known)
    try:
        table.update_incremental()
    except (DeltaError, TableNotFoundError, OSError, ValueError) as error:
        raise _open_error(root, error) from error
    log.check_commits(root, table.version(), known + 1)


def _open_error(root: str, error: BaseException) -> GatewayError:
    """Why a table could not be opened: it is gone, or its protocol asks for something, else a damaged log."""
    was_away = isinstance(error, FileNotFoundError) and error.filename == f"{root}/{log.LOG}"
    if was_away or not log.has_log(root):  # another one may be in its place by now
        return moved(root)
    protocol = log.protocol_in_commits(root)
    if protocol is not None:
        try:
            check_readable(protocol, root)
        except UnsupportedError as refusal:
            return refusal
    text = str(error).split("\n", 1)[0][:500]
    vector = text.partition(_NO_FILE)[2]
    if vector.endswith(".bin"):  # which VACUUM takes, and which it reads with the log
        return ServerError("DELTA_FILE_NOT_FOUND", f"The deletion vector {vector} of {root} is missing.")
    unread = unread_by_it(str(error), protocol)
    if unread is not None:
        text = f"The Delta table {root} cannot be read: it has {unread} ({text})."
        return UnsupportedError("UNSUPPORTED_TABLE_FEATURE", text)
    unread_for = next((os.strerror(code) for code in _UNREAD if f"(os error {code})" in str(error)), None)
    if unread_for is not None:
        text = f"A file of the log of the Delta table {root} cannot be used: {unread_for}."
        return ServerError("FAILED_READ_FILE", text)
    return ServerError("DELTA_LOG_CORRUPT", f"The log of the Delta table {root} cannot be read: {text}")


def _snapshot(root: str, table: DeltaTable, within: Within) -> Snapshot:
    spec = table.protocol()
    protocol = Protocol(
        spec.min_reader_version,
        spec.min_writer_version,
        frozenset(spec.reader_features or ()),
        frozenset(spec.writer_features or ()),
    )
    check_readable(protocol, root)
    elsewhere = coordinated(protocol)
    if elsewhere and log.is_staged_beyond(root, table.version()):
        raise refused(elsewhere, root, "read")
    metadata = table.metadata()
    created = metadata.created_time
    properties = dict(metadata.configuration)
    mapping = mapping_of(protocol, properties, root)
    schema = json.loads(table.schema().to_json())
    columns = parse_schema(schema, mapping)
    if mapping != _mode(properties):
        _check_unmapped(root, properties, schema)
    try:
        files = _files(root, table, protocol, columns, tuple(metadata.partition_columns), within)
    except (DeltaError, OSError, ValueError) as error:
        raise _open_error(root, error) from error
    return Snapshot(
        root=root,
        version=table.version(),
        protocol=protocol,
        columns=columns,
        partition_columns=tuple(metadata.partition_columns),
        properties=properties,
        comment=metadata.description,
        mapping=mapping,
        files=files,
        table_id=str(metadata.id),
        created_ms=created if created is not None and abs(created) <= log.LAST_MS else None,
        within=within,
        marker=marker_at(root, table.version()),
    )


def mapping_of(protocol: Protocol, properties: Mapping[str, str], root: str) -> str:
    """The column mapping mode of a table. Raises UnsupportedError."""
    mapping = _mode(properties) if protocol.has("columnMapping") else "none"
    if mapping not in ("none", "name", "id"):
        raise UnsupportedError(
            "UNSUPPORTED_TABLE_FEATURE", f"Column mapping mode {mapping!r} of {root} is not supported."
        )
    return mapping


def _mode(properties: Mapping[str, str]) -> str:
    return properties.get(MAPPING, "none").lower()


def _check_unmapped(root: str, properties: Mapping[str, str], schema: Any) -> None:
    """Raise ServerError for a column mapping that a table has without the protocol for it: Spark goes by it, others do not."""
    if _mode(properties) == "id" or any(c.renamed for c in parse_schema(schema, "name")):
        text = f"The Delta table {root} has columns by other names in files, which its protocol does not have."
        raise ServerError("DELTA_LOG_CORRUPT", text)


def _files(
    root: str,
    table: DeltaTable,
    protocol: Protocol,
    columns: tuple[Column, ...],
    partition_columns: tuple[str, ...],
    within: Within,
) -> Files:
    actions = pa.table(table.get_add_actions(flatten=False)).combine_chunks()

    def column(name: str) -> pa.Array | None:
        index = actions.schema.get_field_index(name)
        if index < 0:
            return None
        chunked = actions.column(index)
        return chunked.chunk(0) if chunked.num_chunks else pa.array([], chunked.type)

    logged = column("path")
    assert logged is not None
    spelt: list[str] = logged.to_pylist()
    paths = [disk_path(root, p, within) for p in spelt]
    _check_once(root, table.version(), spelt, paths)
    sizes = column("size_bytes")
    records = column("num_records")
    if records is not None and (pc.max(records).as_py() or 0) > _MOST_ROWS:
        raise ServerError(
            "DELTA_LOG_CORRUPT", f"The log of the Delta table {root} counts more rows than a file can hold."
        )
    instants = {c.name: c.physical for c in columns if c.type == t.TIMESTAMP and c.name in partition_columns}
    bounds = column("min"), column("max")
    has_instants = any(c.type == t.TIMESTAMP for c in columns)
    misread = misread_parts(root, table.version(), within) if has_instants else []
    minimum, maximum = mended(misread, within, spelt, bounds)
    return Files(
        paths=paths,
        logged=spelt,
        sizes=np.zeros(0, np.int64) if sizes is None else sizes.to_numpy(zero_copy_only=False).astype(np.int64),
        num_records=pa.nulls(len(paths), pa.int64()) if records is None else records,
        null_count=column("null_count"),
        minimum=minimum,
        maximum=maximum,
        partitions=typed_values(column("partition"), columns, partition_columns, len(paths)),
        deleted=live_masks(root, table, protocol, paths, records, within),
        mended=bool(misread),
        zoneless=zoneless(root, table.version(), within, instants, paths),
    )


def _check_once(root: str, version: int, spelt: Sequence[str], paths: Sequence[str]) -> None:
    """Raise ServerError DELTA_LOG_CORRUPT if a file is listed twice, or also removed, in another spelling.

    What is spelt in two ways some readers take for one file, and some for two.
    """
    if len(set(paths)) < len(paths):  # with other deletion vectors, or spelt in two ways
        twice = next(path for path, count in Counter(paths).items() if count > 1)
        raise ServerError("DELTA_LOG_CORRUPT", f"The log of the Delta table {root} lists the file {twice} twice.")
    removed = log.removed_paths(root, version).difference(spelt)
    gone = {os.path.normpath(path) for path in (local_path(root, logged) for logged in removed) if path is not None}
    for path in gone.intersection(paths):
        text = f"The log of the Delta table {root} lists the file {path}, and removes it in another spelling."
        raise ServerError("DELTA_LOG_CORRUPT", text)


def disk_path(root: str, logged: str, within: Within) -> str:
    """Where a logged path lies: in the table's folder, or by an absolute path, as of a shallow clone, `within` others."""
    if log.PLAIN.fullmatch(logged):
        return f"{root}/{logged}"
    path = local_path(root, logged)
    if path is not None and "\0" in path:
        raise ServerError("DELTA_LOG_CORRUPT", f"The log of the Delta table {root} lists a file with NUL in its name.")
    if path is not None and is_under(os.path.normpath(path), root):
        return os.path.normpath(path)  # as other readers take it
    text = f"The Delta table {root} lists a file outside of its folder ({logged})"
    if path is None or not is_within(real_path(path), within):
        raise not_allowed(f"{text}, which")
    if path != os.path.normpath(path):
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"{text}; that is not supported.")
    return path
