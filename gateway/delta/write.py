"""Writing plain Delta tables: create, create as select, replace, append; each one atomic commit.

Only tables without special writer features: anything that asks the writer for more (generated, default and identity columns,
constraints, change feed, column mapping, deletion vectors, row tracking …) is refused by name. A statement that fails leaves
neither a version nor a file. Blind appends are tried again behind a concurrent commit; whatever else conflicts is
WRITE_CONFLICT, which a client may send again.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gateway import sqltypes as t
from gateway.delta import commit, log, partitions
from gateway.delta.commit import Action
from gateway.delta.containment import Within, check_still_there, held_folder, is_under, remove_tree
from gateway.delta.creation import (
    Definition,
    clustering_action,
    clustering_of,
    is_mapped,
    metadata_action,
    protocol_of,
    with_features,
)
from gateway.delta.datafiles import DataFileWriter
from gateway.delta.features import Kept, check_writable, refused
from gateway.delta.fields import check_clustering, check_schema, nested_not_null, partition_columns
from gateway.delta.indexed import check_named
from gateway.delta.logged import specs_of
from gateway.delta.properties import FEED, ROW_TRACKING, SUSPENDED, WIDENING, asked, check_feed_columns
from gateway.delta.replay import removal
from gateway.delta.row_ids import numbered, with_numbers
from gateway.delta.schema import MAPPING, Column, UnreadableType, holds_char, nullable, parse_schema
from gateway.delta.table import Snapshot, forget, open_snapshot, open_to_add
from gateway.errors import UserError, storage_told

ATTEMPTS = 30
STAGING = ".creating-"
# Field metadata that asks something of a writer, whether or not the protocol names the feature, and who keeps it.
_WRITER_KEYS = {
    "delta.identity.": Kept.BY_STATEMENT,
    "delta.generationExpression": Kept.BY_STATEMENT,
    "delta.invariants": Kept.BY_STATEMENT,
    "CURRENT_DEFAULT": Kept.BY_STATEMENT,
    "EXISTS_DEFAULT": Kept.NEVER,
    "__COLLATIONS": Kept.NEVER,
}
# The same of properties, the longest that begins one.
_WRITER_PROPERTIES = {
    "delta.constraints.": Kept.BY_STATEMENT,
    "delta.enable": Kept.NEVER,
    FEED: Kept.BY_STATEMENT,
    "delta.enableDeletionVectors": Kept.BY_WRITER,
    log.IN_COMMIT: Kept.BY_WRITER,
    "delta.enableExpiredLogCleanup": Kept.ALWAYS,
    WIDENING: Kept.BY_WRITER,
    "delta.columnMapping.mode": Kept.BY_WRITER,
    ROW_TRACKING: Kept.BY_WRITER,
    "delta.rowTracking.": Kept.BY_WRITER,
    SUSPENDED: Kept.BY_WRITER,
    "delta.feature.": Kept.NEVER,
}


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A commit that was made: its version, the rows, files and bytes that it added."""

    version: int
    rows: int
    files: int
    bytes: int


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Failures of the disk (full, read-only, no permission) as one error that names the table, unless that was dropped."""
    with storage_told("Cannot write the Delta table", path):
        try:
            yield
        except FileNotFoundError as error:
            if log.has_log(path) or not os.path.isdir(os.path.dirname(os.path.dirname(path))):
                raise
            raise conflict(path) from error


def create_table(
    path: str,
    schema: t.StructType,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    batches: Iterable[pa.RecordBatch] | None = None,
    replace: bool = False,
) -> WriteResult:
    """`make_table` of columns that ask for nothing, in a folder that is made if it is not there."""
    with storage_errors(path), suppress(FileExistsError):
        os.makedirs(os.path.dirname(path))
    return make_table(path, Definition(schema, tuple(partition_by), (), properties or {}, comment), batches, replace)


def make_table(
    path: str,
    definition: Definition,
    batches: Iterable[pa.RecordBatch] | None = None,
    replace: bool = False,
    seen: Snapshot | None = None,
    claim: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> WriteResult:
    """Create the table in the folder `path` (real) with the rows of `batches` (columns by position), in one commit.

    With `batches` every column is nullable, as in Spark. With `replace` an existing table gets the new schema and rows as
    its next version; if its own rows are read for that, it must still be as it was `seen` before. A new one comes to
    its place within a `claim` on its name. Raises UserError
    TABLE_OR_VIEW_ALREADY_EXISTS without it, and UserError or UnsupportedError for a schema that Delta does not hold.
    """
    definition = _settled(definition, batches is not None)
    with storage_errors(path):
        return _make_table(path, definition, batches, replace, seen, claim)


def _settled(definition: Definition, as_select: bool) -> Definition:
    """The definition with columns as CREATE TABLE AS SELECT makes them in Spark, and partition columns as they are spelt."""
    schema = nullable(definition.schema) if as_select else definition.schema
    return dataclasses.replace(
        definition, schema=schema, partition_by=partition_columns(schema, definition.partition_by)
    )


def _make_table(
    path: str,
    definition: Definition,
    batches: Iterable[pa.RecordBatch] | None,
    replace: bool,
    seen: Snapshot | None,
    claim: Callable[[], AbstractContextManager[None]],
) -> WriteResult:
    check_own(path)
    old: Snapshot | None = None
    if log.has_log(path):
        if not replace:
            raise exists(path)
        old = open_snapshot(path)
        if seen is not None and seen.marker != old.marker:  # its rows were read before another writer changed them
            raise conflict(path)
        _check_replaceable(old, definition)
    elif definition.of_old or seen is not None:  # another writer has dropped it
        raise conflict(path)
    elif os.path.isdir(path) and os.listdir(path):
        raise UserError("LOCATION_ALREADY_EXISTS", f"The folder {path} exists and is not a Delta table.")
    _check_new(definition)
    features = definition.features(None if old is None else old.protocol)
    metadata = metadata_action(definition, old)
    properties = metadata["metaData"]["configuration"]
    schema = json.loads(metadata["metaData"]["schemaString"])
    shape = parse_schema(schema, properties.get(MAPPING, "none").lower())
    with (
        nullcontext(path) if old is not None else beside(path, replace, claim) as folder,
        DataFileWriter(folder, shape, definition.partition_by, properties) as writer,
    ):
        for batch in batches or ():
            writer.write(batch)
        adds = writer.finish(settles=False)
        info = _create_info(metadata, definition, writer, batches is not None, replace, old)
        if definition.cluster_by or (old is not None and old.protocol.has("clustering")):
            adds = [clustering_action(schema, definition.cluster_by, is_mapped(properties)), *adds]
        if old is not None:
            version = _publish_replace(path, features, old, info, metadata, adds, writer.settle)
        else:
            version = 0
            protocol = protocol_of(features)
            made = [info, commit.protocol_action(protocol), metadata, *adds]
            made = with_numbers(made, -1, 0) if protocol.has("rowTracking") else made
            commit.publish(folder, 0, commit.stamped(folder, -1, properties, made), writer.settle)
    commit.checkpoint_if_due(path, version, properties)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)


def append(
    path: str,
    batches: Iterable[pa.RecordBatch],
    seen: Snapshot | None = None,
    kept: Kept = Kept.BY_WRITER,
    also: Callable[[], Sequence[Action]] = tuple,
    reads: Callable[[Snapshot], None] | None = None,
    columns: tuple[Column, ...] = (),
) -> WriteResult:
    """Add the rows of `batches` (all columns of the table by position) in one commit.

    `kept` says what the rows keep of what the table asked of them when it was `seen`: by now it may ask for more. `also`
    gives other actions of the commit, once the rows are written. Rows that are made of the table's own have `reads`, which
    raises for a newer version that they would not be made of. `columns` are those that the table may be given in the commit.
    """
    check_own(path)
    snapshot = open_again(path, to_add=True)
    if seen is not None and shape_of(seen) != shape_of(snapshot):
        raise conflict(path)
    if reads is not None:
        reads(snapshot)
    check_snapshot_writable(snapshot, kept=kept)
    partition_by, properties = snapshot.partition_columns, snapshot.properties
    with storage_errors(path), DataFileWriter(path, columns or snapshot.columns, partition_by, properties) as writer:
        for batch in batches:
            writer.write(batch)
        adds = writer.finish(settles=False)
        metrics = _metrics(writer)
        parameters = {"mode": "Append", "partitionBy": "[]"}  # as of an INSERT by Spark, whatever the table's are
        if columns:
            parameters["canMergeSchema"] = "true"
        info = commit.info_action("WRITE", parameters, metrics, reads is None, snapshot.version)
        version = _publish_append(path, snapshot, [info, *also(), *adds], reads, writer.settle)
    commit.checkpoint_if_due(path, version, snapshot.properties)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)


def replaced(path: str) -> Snapshot | None:
    """The table that `make_table` would replace, as it is now."""
    return open_snapshot(path) if log.has_log(path) else None


def check_creatable(path: str, definition: Definition, *, as_select: bool, replace: bool) -> None:
    """Raise what `make_table` would raise for what the table asks of its writers, before anything is planned."""
    definition = _settled(definition, as_select)
    _check_new(definition)
    old = replaced(path) if replace else None
    if old is not None:
        _check_replaceable(old, definition)
    definition.features(None if old is None else old.protocol)


def _check_new(definition: Definition) -> None:
    """Raise what keeps a table from being made."""
    properties = asked(definition.properties).properties
    check_schema(definition.schema, definition.partition_by, mapped=is_mapped(properties))
    check_named(definition.schema, definition.partition_by, properties)
    check_clustering(definition.schema, definition.cluster_by, properties)
    check_feed_columns((f.name for f in definition.schema.fields), properties)


def _check_replaceable(old: Snapshot, definition: Definition) -> None:
    """Raise what keeps a table from being replaced; its constraints go with all that it says of itself."""
    check_snapshot_writable(old, removes=True, kept=Kept.BY_STATEMENT)
    if definition.partition_by and old.protocol.has("clustering") and clustering_of(old):
        text = "Replacing a clustered Delta table with a partitioned table is not allowed."
        raise UserError("DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE", text)


def check_appendable(path: str) -> None:
    """Raise what `append` would raise for the table's features and properties, before anything is planned."""
    check_own(path)
    check_snapshot_writable(open_to_add(path), kept=Kept.BY_STATEMENT)


def check_snapshot_writable(snapshot: Snapshot, *, removes: bool = False, kept: Kept = Kept.ALWAYS) -> None:
    """Raise UnsupportedError naming what the table asks of its writers beyond what `kept` says is kept.

    With `removes` the write also takes rows out: append-only tables refuse that (UserError).
    """
    check_writable(snapshot.protocol, snapshot.root, kept)
    asked = sorted(
        key
        for key, value in snapshot.properties.items()
        if _keeper(key, _WRITER_PROPERTIES) > kept and value.lower() not in ("false", "none")
    )
    for column in snapshot.columns:
        asked.extend(_writer_keys(column, kept))
        if nested_not_null(column.type):
            asked.append(f"NOT NULL inside of arrays or maps of column {column.name}")
        if t.is_nested(column.type) and holds_char(column.type):
            asked.append(f"CHAR or VARCHAR inside of column {column.name}")
    if all(snapshot.properties.get(key, "").lower() == "true" for key in (ROW_TRACKING, SUSPENDED)):
        asked.append(SUSPENDED)  # one forbids what the other asks for
    if asked:
        raise refused(asked, snapshot.root, "written")
    check_feed_columns((column.name for column in snapshot.columns), snapshot.properties)
    if removes and snapshot.properties.get("delta.appendOnly", "").lower() == "true":
        text = f"The Delta table {snapshot.root} is append-only (delta.appendOnly)."
        raise UserError("DELTA_CANNOT_MODIFY_APPEND_ONLY", text)


def _keeper(key: str, table: Mapping[str, Kept]) -> Kept:
    """Who keeps what a key asks for, by the longest of a table's that begins it."""
    return table[max((k for k in table if key.startswith(k)), key=len)] if key.startswith(tuple(table)) else Kept.ALWAYS


def _writer_keys(column: Column, kept: Kept) -> list[str]:
    keys = [f"{key} of column {column.name}" for key in column.metadata if _keeper(key, _WRITER_KEYS) > kept]
    if isinstance(column.type, UnreadableType):
        keys.append(f"{column.type.name} column {column.name}")
    for child in column.children:
        # what is asked of a nested field is kept by nobody
        keys.extend(_writer_keys(child, min(kept, Kept.BY_WRITER)))
    return keys


def check_own(path: str) -> None:
    """Raise PATH_NOT_ALLOWED if there is a link in the place of a table's folder, which was resolved before, or of its log."""
    check_still_there(path)
    if os.path.islink(f"{path}/{log.LOG}"):
        raise commit.linked_log(path)


# ---- commits


def _create_info(
    metadata: Action,
    definition: Definition,
    writer: DataFileWriter,
    as_select: bool,
    replace: bool,
    old: Snapshot | None,
) -> Action:
    verb = "CREATE TABLE"
    if replace:
        verb = "REPLACE TABLE" if definition.of_old else "CREATE OR REPLACE TABLE"
    spec = metadata["metaData"]
    parameters = {
        "partitionBy": commit.compact_json(spec["partitionColumns"]),
        "clusterBy": commit.compact_json([".".join(path) for path in definition.cluster_by]),
        "description": spec.get("description"),
        "isManaged": "false" if definition.external else "true",
        "properties": commit.compact_json(spec["configuration"]),
    }
    metrics = _metrics(writer) if as_select else {}
    if as_select and old is not None:
        metrics |= {"numRemovedFiles": len(old.files), "numRemovedBytes": int(old.files.sizes.sum())}
    read = old.version if old is not None else None
    return commit.info_action(verb + (" AS SELECT" if as_select else ""), parameters, metrics, old is None, read)


@contextmanager
def beside(path: str, replace: bool, claim: Callable[[], AbstractContextManager[None]] = nullcontext) -> Iterator[str]:
    """A folder beside a new table's place, in which it is built: a process that is killed half-way leaves nothing that anybody
    sees. Finished, it comes to its place in one step, within a `claim` on it; that fails if somebody else's is there by now."""
    parent, name = os.path.split(path)
    draft = f"{STAGING}{uuid.uuid4().hex}"
    with held_folder(parent, parent) as held:  # not made: a schema may have been dropped
        os.mkdir(draft, dir_fd=held)
        try:
            os.mkdir(f"{draft}/{log.LOG}", dir_fd=held)
            yield os.path.join(parent, draft)
            forget(path)
            check_still_there(path)
            try:
                with claim():
                    os.rename(draft, name, src_dir_fd=held, dst_dir_fd=held)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise (conflict(path) if replace else exists(path)) from error
                raise
        except BaseException:
            remove_tree(draft, held)
            raise


def _publish_replace(
    path: str,
    features: frozenset[str],
    old: Snapshot,
    info: Action,
    metadata: Action,
    adds: list[Action],
    settle: Callable[[], None],
) -> int:
    head: list[Action] = [info]
    protocol = with_features(old.protocol, features)
    if protocol != old.protocol:
        head.append(commit.protocol_action(protocol))
    version = old.version + 1
    actions = numbered(old, [*head, metadata, *removes_of(old), *adds], protocol)
    made = commit.stamped(path, old.version, metadata["metaData"]["configuration"], actions)
    try:
        commit.publish(path, version, made, settle, old.marker)
    except (FileExistsError, FileNotFoundError) as error:
        raise conflict(path) from error
    return version


def _publish_append(
    path: str,
    snapshot: Snapshot,
    actions: list[Action],
    reads: Callable[[Snapshot], None] | None,
    settle: Callable[[], None],
) -> int:
    seen = snapshot
    for _ in range(ATTEMPTS):
        version = seen.version + 1
        try:
            made = numbered(seen, actions)
            made = commit.stamped(path, seen.version, seen.properties, made)
            commit.publish(path, version, made, settle, seen.marker)
            return version
        except FileExistsError:
            seen = open_again(path, to_add=True).in_zone(snapshot.zone)
        except FileNotFoundError as error:
            raise conflict(path) from error
        if shape_of(seen) != shape_of(snapshot):
            break
        if reads is not None:
            reads(seen)
    raise conflict(path)


def shape_of(snapshot: Snapshot) -> Any:
    """All that files written for one version must agree with in another, and the comment, which new metadata would undo."""
    metadata = tuple(json.dumps(c.metadata, sort_keys=True, default=str) for c in snapshot.columns)
    return (
        snapshot.protocol,
        snapshot.table_id,
        snapshot.columns,
        metadata,
        snapshot.partition_columns,
        dict(snapshot.properties),
        snapshot.comment,
    )


def removes_of(snapshot: Snapshot, rows: Sequence[int] | None = None, *, changes_data: bool = True) -> list[Action]:
    """Actions that take files of a snapshot, by default all, out of the table."""
    now = commit.now_ms()
    files = snapshot.files if rows is None else snapshot.files.only(rows)
    elsewhere = not all(is_under(path, snapshot.root) for path in files.paths)
    # Vectors, numbers, values without a zone and paths to other tables must be as in the log.
    if files.deleted or files.zoneless or elsewhere or snapshot.protocol.has("rowTracking"):
        specs = specs_of(snapshot, files.paths)
        return [{"remove": removal(spec, now, changes_data)} for spec in specs]
    texts: dict[str, list[str | None]] = {
        snapshot.by_name[name].physical: [partitions.value_text(v, snapshot.by_name[name].type) for v in values]
        for name, values in files.partitions.items()
    }
    return [
        {
            "remove": {
                "path": path,
                "deletionTimestamp": now,
                "dataChange": changes_data,
                "extendedFileMetadata": True,
                "partitionValues": {name: values[i] for name, values in texts.items()},
                "size": int(files.sizes[i]),
            }
        }
        for i, path in enumerate(files.logged)
    ]


def _metrics(writer: DataFileWriter) -> dict[str, int]:
    return {"numFiles": writer.files, "numOutputRows": writer.rows, "numOutputBytes": writer.bytes}


def newest(snapshot: Snapshot) -> Snapshot:
    """The table as it is by now, for the next of several commits. Raises UserError WRITE_CONFLICT if it is another one."""
    found = open_again(snapshot.root, snapshot.within).in_zone(snapshot.zone)
    if found.table_id != snapshot.table_id:
        raise conflict(snapshot.root)
    return found


def open_again(path: str, within: Within | None = None, *, to_add: bool = False) -> Snapshot:
    """A table that was there, as it is by now. Raises UserError WRITE_CONFLICT if it is there no longer."""
    try:
        return open_to_add(path, within) if to_add else open_snapshot(path, within=within)
    except UserError as error:
        if error.condition != "PATH_NOT_FOUND":
            raise
        raise conflict(path) from error


def exists(path: str) -> UserError:
    """TABLE_OR_VIEW_ALREADY_EXISTS."""
    text = f"Cannot create the table at {path} because it already exists."
    return UserError("TABLE_OR_VIEW_ALREADY_EXISTS", text)


def conflict(path: str) -> UserError:
    """WRITE_CONFLICT."""
    text = f"Another writer changed the Delta table {path} at the same time. Send the statement again."
    return UserError("WRITE_CONFLICT", text, retryable=True)
