"""Writing plain Delta tables: create, create as select, replace, append; each one atomic commit.

Only tables without special writer features: anything that asks the writer for more (generated, default and identity columns,
constraints, change feed, column mapping, deletion vectors, row tracking …) is refused by name. A statement that fails leaves
neither a version nor a file. Blind appends are tried again behind a concurrent commit; whatever else conflicts is
WRITE_CONFLICT, which a client may send again.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gateway import sqltypes as t
from gateway.delta import commit, log, partitions
from gateway.delta.commit import Action
from gateway.delta.containment import check_still_there
from gateway.delta.creation import (
    FEATURE_PROPERTIES,
    asked_features,
    is_mapped,
    mapped_schema,
    protocol_for,
    with_features,
)
from gateway.delta.datafiles import DataFileWriter
from gateway.delta.features import BY_NAME, Kept, check_writable, refused
from gateway.delta.replay import removal, replayed
from gateway.delta.schema import CHAR_VARCHAR, Column, UnreadableType, holds_char, parse_schema
from gateway.delta.table import MAPPING, Snapshot, forget, open_snapshot
from gateway.errors import ServerError, UnsupportedError, UserError, full_disk_told

ATTEMPTS = 30
STAGING = ".creating-"
# What Parquet's readers in Spark do not accept in names without column mapping.
_FORBIDDEN_IN_NAMES = frozenset(" ,;{}()\n\t=")
# The property of tables whose every change of a row is to be found in files of its own.
FEED = "delta.enableChangeDataFeed"
# Field metadata that asks something of a writer, whether or not the protocol names the feature, and who keeps it.
_WRITER_KEYS = {
    "delta.identity.": Kept.NEVER,
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
    "delta.columnMapping.mode": Kept.BY_WRITER,
    "delta.rowTracking": Kept.NEVER,
    "delta.feature.": Kept.NEVER,
}
# Properties of a new table that need nothing of its writers.
_PLAIN_PROPERTIES = frozenset(
    {
        "delta.appendOnly",
        "delta.checkpointInterval",
        "delta.dataSkippingNumIndexedCols",
        "delta.deletedFileRetentionDuration",
        "delta.logRetentionDuration",
    }
)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A commit that was made: its version, the rows, files and bytes that it added."""

    version: int
    rows: int
    files: int
    bytes: int


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Failures of the disk (full, read-only, no permission) as one error that names the table."""
    try:
        with full_disk_told("Cannot write the Delta table", path):
            yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ServerError("WRITE_FAILED", f"Cannot write the Delta table {path}: {reason}.") from error


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
    """Create the table in the folder `path` (real) with the rows of `batches` (columns of `schema` by position), in one commit.

    With `batches` every column is nullable, as in Spark. With `replace` an existing table gets the new schema and rows as
    its next version. Raises UserError TABLE_OR_VIEW_ALREADY_EXISTS without it, and UserError or UnsupportedError for a
    schema that Delta does not hold.
    """
    if batches is not None:
        schema = _nullable(schema)  # as CREATE TABLE AS SELECT does in Spark
    columns = _partition_columns(schema, partition_by)
    with storage_errors(path):
        return _create_table(path, schema, columns, dict(properties or {}), comment, batches, replace)


def _create_table(
    path: str,
    schema: t.StructType,
    columns: tuple[str, ...],
    settings: dict[str, str],
    comment: str | None,
    batches: Iterable[pa.RecordBatch] | None,
    replace: bool,
) -> WriteResult:
    settings, features = asked_features(settings)
    _check_new(schema, columns, settings, path, replace)
    old: Snapshot | None = None
    check_own(path)
    if log.has_log(path):
        if not replace:
            raise _exists(path)
        old = open_snapshot(path)
        _check_replaceable(old)
    elif os.path.isdir(path) and os.listdir(path):
        raise UserError("LOCATION_ALREADY_EXISTS", f"The folder {path} exists and is not a Delta table.")
    as_select = batches is not None
    # A new table is built beside its place: a process that is killed half-way leaves nothing that anybody sees.
    folder = path if old is not None else os.path.join(os.path.dirname(path), f"{STAGING}{uuid.uuid4().hex}")
    try:
        os.makedirs(f"{folder}/{log.LOG}", exist_ok=True)
        metadata = _metadata_action(schema, columns, settings, comment, old)
        shape = parse_schema(json.loads(metadata["metaData"]["schemaString"]), settings.get(MAPPING, "none"))
        with DataFileWriter(folder, shape, columns) as writer:
            for batch in batches or ():
                writer.write(batch)
            adds = writer.finish()
            info = _create_info(metadata, writer, as_select, replace, old)
            if old is None:
                version = 0
                asked = protocol_for(settings, holds(schema, t.TIMESTAMP_NTZ), features)
                head = [info, commit.protocol_action(asked), metadata]
                commit.publish(folder, 0, commit.stamped(folder, -1, settings, [*head, *adds]))
                _move_in(folder, path, replace)
            else:
                version = _publish_replace(path, schema, features, old, info, metadata, adds)
    finally:
        if old is None and os.path.isdir(folder):
            shutil.rmtree(folder)
    commit.checkpoint_if_due(path, version, settings)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)


def append(
    path: str, batches: Iterable[pa.RecordBatch], seen: Snapshot | None = None, kept: Kept = Kept.BY_WRITER
) -> WriteResult:
    """Add the rows of `batches` (all columns of the table by position) in one commit.

    `kept` says what the rows keep of what the table asked of them when it was `seen`: by now it may ask for more.
    """
    check_own(path)
    snapshot = open_snapshot(path)
    if seen is not None and shape_of(seen) != shape_of(snapshot):
        raise conflict(path)
    check_snapshot_writable(snapshot, kept=kept)
    with storage_errors(path), DataFileWriter(path, snapshot.columns, snapshot.partition_columns) as writer:
        for batch in batches:
            writer.write(batch)
        adds = writer.finish()
        metrics = _metrics(writer)
        parameters = {"mode": "Append", "partitionBy": "[]"}  # as of an INSERT by Spark, whatever the table's are
        actions = [commit.info_action("WRITE", parameters, metrics, True, snapshot.version), *adds]
        version = _publish_append(path, snapshot, actions)
    commit.checkpoint_if_due(path, version, snapshot.properties)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)


def check_creatable(
    path: str,
    schema: t.StructType,
    *,
    as_select: bool,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    replace: bool,
) -> None:
    """Raise what `create_table` would raise for what the table asks of its writers, before anything is planned."""
    if as_select:
        schema = _nullable(schema)
    _check_new(schema, _partition_columns(schema, partition_by), asked_features(properties)[0], path, replace)
    if replace and log.has_log(path):
        _check_replaceable(open_snapshot(path))


def _check_replaceable(old: Snapshot) -> None:
    """Raise what keeps a table from being replaced; its constraints go with all that it says of itself."""
    by_writer = any(BY_NAME[name].kept is Kept.BY_WRITER for name in old.protocol.features if name in BY_NAME)
    check_snapshot_writable(old, removes=True, kept=Kept.ALWAYS if by_writer else Kept.BY_STATEMENT)


def check_appendable(path: str) -> None:
    """Raise what `append` would raise for the table's features and properties, before anything is planned."""
    check_own(path)
    check_snapshot_writable(open_snapshot(path), kept=Kept.BY_STATEMENT)


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
            asked.append(f"NOT NULL inside of column {column.name}")
        if t.is_nested(column.type) and holds_char(column.type):
            asked.append(f"CHAR or VARCHAR inside of column {column.name}")
    if asked:
        raise refused(asked, snapshot.root, "written")
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
    metadata: Action, writer: DataFileWriter, as_select: bool, replace: bool, old: Snapshot | None
) -> Action:
    verb = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
    spec = metadata["metaData"]
    parameters = {
        "partitionBy": json.dumps(spec["partitionColumns"], separators=(",", ":"), ensure_ascii=False),
        "clusterBy": "[]",
        "description": spec.get("description"),
        "isManaged": "true",
        "properties": json.dumps(spec["configuration"], separators=(",", ":"), ensure_ascii=False),
    }
    metrics = _metrics(writer) if as_select else {}
    read = old.version if old is not None else None
    return commit.info_action(verb + (" AS SELECT" if as_select else ""), parameters, metrics, old is None, read)


def _move_in(folder: str, path: str, replace: bool) -> None:
    """The finished table to its place, in one step; fails if somebody else's is there by now."""
    forget(path)
    check_still_there(path)
    try:
        os.rename(folder, path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise (conflict(path) if replace else _exists(path)) from error
        raise


def _publish_replace(
    path: str,
    schema: t.StructType,
    features: frozenset[str],
    old: Snapshot,
    info: Action,
    metadata: Action,
    adds: list[Action],
) -> int:
    head: list[Action] = [info]
    protocol = with_features(old.protocol, holds(schema, t.TIMESTAMP_NTZ), features)
    if protocol != old.protocol:
        head.append(commit.protocol_action(protocol))
    version = old.version + 1
    try:
        commit.publish(path, version, [*head, metadata, *removes_of(old), *adds])
    except (FileExistsError, FileNotFoundError) as error:
        raise conflict(path) from error
    return version


def _publish_append(path: str, snapshot: Snapshot, actions: list[Action]) -> int:
    seen = snapshot
    for _ in range(ATTEMPTS):
        version = seen.version + 1
        try:
            commit.publish(path, version, commit.stamped(path, seen.version, seen.properties, actions))
            return version
        except FileExistsError:
            seen = open_snapshot(path)
        except FileNotFoundError as error:
            raise conflict(path) from error
        if shape_of(seen) != shape_of(snapshot):
            break
    raise conflict(path)


def shape_of(snapshot: Snapshot) -> Any:
    """All that files written for one version must agree with in another."""
    metadata = tuple(json.dumps(c.metadata, sort_keys=True, default=str) for c in snapshot.columns)
    return (
        snapshot.protocol,
        snapshot.table_id,
        snapshot.columns,
        metadata,
        snapshot.partition_columns,
        dict(snapshot.properties),
    )


def removes_of(snapshot: Snapshot, rows: Sequence[int] | None = None, *, changes_data: bool = True) -> list[Action]:
    """Actions that take files of a snapshot, by default all, out of the table."""
    now = commit.now_ms()
    files = snapshot.files if rows is None else snapshot.files.only(rows)
    if files.deleted:  # whose vectors must be named as in the log
        state = replayed(snapshot.root, snapshot.version, snapshot.within)
        by_path = {path: spec for (path, _), spec in state.files.items()}
        specs = (by_path[os.path.normpath(path)] for path in files.paths)
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


def _exists(path: str) -> UserError:
    text = f"Cannot create the table at {path} because it already exists."
    return UserError("TABLE_OR_VIEW_ALREADY_EXISTS", text)


def conflict(path: str) -> UserError:
    """WRITE_CONFLICT."""
    text = f"Another writer changed the Delta table {path} at the same time. Send the statement again."
    return UserError("WRITE_CONFLICT", text, retryable=True)


# ---- schema, protocol, metadata


def _partition_columns(schema: t.StructType, names: Sequence[str]) -> tuple[str, ...]:
    by_fold = {f.name.casefold(): f.name for f in schema.fields}
    out = []
    for name in names:
        if name.casefold() not in by_fold:
            text = f"The partition column {t.quote_if_needed(name)} is not in the table."
            raise UserError("COLUMN_NOT_DEFINED_IN_TABLE", text)
        out.append(by_fold[name.casefold()])
    if len(set(out)) != len(out):
        raise UserError("COLUMN_ALREADY_EXISTS", "A partition column is named twice.")
    if out and len(out) == len(schema.fields):
        raise UserError("ALL_PARTITION_COLUMNS_NOT_ALLOWED", "Cannot use all columns for partition columns.")
    return tuple(out)


def _check_new(
    schema: t.StructType, partition_by: Sequence[str], properties: Mapping[str, str], path: str, replace: bool
) -> None:
    """Raise what keeps a table from being made, or from being made anew: then without features that it has not."""
    _check_schema(schema, partition_by, mapped=is_mapped(properties))
    replaced = replace and log.has_log(path)
    _check_properties({k: v for k, v in properties.items() if replaced or v not in FEATURE_PROPERTIES.get(k, ())})


def _check_schema(schema: t.StructType, partition_by: Sequence[str], *, mapped: bool = False) -> None:
    if not schema.fields:
        raise UnsupportedError("UNSUPPORTED_FEATURE", "A Delta table without columns is not supported.")
    check_fields(schema.fields, mapped=mapped)
    for f in schema.fields:
        if f.name in partition_by and (t.is_nested(f.type) or f.type == t.BINARY):
            raise UserError("INVALID_PARTITION_COLUMN_DATA_TYPE", f"Cannot use {f.type.sql} for partition column.")


def check_fields(fields: Sequence[t.StructField], *, mapped: bool = False) -> None:
    """Raise UserError or UnsupportedError for names and types that no column of a table has."""
    seen: set[str] = set()
    for f in fields:
        if not f.name or not (mapped or _FORBIDDEN_IN_NAMES.isdisjoint(f.name)):
            text = f"The column name {f.name!r} holds one of the characters ' ,;{{}}()\\n\\t=', which Delta does not allow."
            raise UserError("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", text)
        if f.name.casefold() in seen:
            raise UserError("COLUMN_ALREADY_EXISTS", f"The column {t.quote_if_needed(f.name)} already exists.")
        seen.add(f.name.casefold())
        if nested_not_null(f.type):
            raise UnsupportedError("UNSUPPORTED_FEATURE", f"NOT NULL inside of column {f.name} is not supported.")
        if t.is_nested(f.type) and holds_char(f.type):
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE", f"CHAR or VARCHAR inside of column {f.name} is not supported."
            )
        _check_type(f.name, f.type, mapped)


def _check_type(name: str, data_type: t.DataType, mapped: bool) -> None:
    if data_type == t.VOID or t.is_interval(data_type) or isinstance(data_type, UnreadableType):
        text = f"A column of type {data_type.sql} ({t.quote_if_needed(name)}) cannot be stored in a Delta table."
        raise UnsupportedError("UNSUPPORTED_DATATYPE", text)
    if isinstance(data_type, t.StructType):
        if not data_type.fields:
            raise UnsupportedError("UNSUPPORTED_DATATYPE", f"Column {name}: a STRUCT without fields cannot be stored.")
        check_fields(data_type.fields, mapped=mapped)
        return
    for child in data_type.children():
        _check_type(name, child, mapped)


def _check_properties(properties: Mapping[str, str]) -> None:
    for key in properties:
        if key.lower().startswith("delta.") and key not in _PLAIN_PROPERTIES:
            raise UnsupportedError("UNSUPPORTED_FEATURE", f"The table property {key} is not supported.")


def checked_properties(properties: Mapping[str, str], *, values: bool = True) -> dict[str, str]:
    """Properties that a table may be given, those of Delta as it spells them. Raises UnsupportedError for others and, with
    `values`, for what Delta might not take or might take otherwise."""
    known = {key.lower(): key for key in _PLAIN_PROPERTIES}
    found = {known.get(key.lower(), key): value for key, value in properties.items()}
    _check_properties(found)
    for key, value in found.items():
        if values and key in _PLAIN_PROPERTIES and not _VALUES[key](value):
            raise UnsupportedError("UNSUPPORTED_FEATURE", f"The value {value!r} of the table property {key}.")
    return found


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0


def _is_interval(text: str) -> bool:
    count, _, unit = text.strip().lower().removeprefix("interval ").strip().partition(" ")
    return count.isascii() and count.isdecimal() and unit.strip().removesuffix("s") in _UNITS


_UNITS = frozenset({"second", "minute", "hour", "day", "week"})
# What a value of a property may look like.
_VALUES: Mapping[str, Callable[[str], bool]] = {
    "delta.appendOnly": lambda text: text in ("true", "false"),
    "delta.checkpointInterval": _is_count,
    "delta.dataSkippingNumIndexedCols": lambda text: text == "-1" or text == "0" or _is_count(text),
    "delta.deletedFileRetentionDuration": _is_interval,
    "delta.logRetentionDuration": _is_interval,
}


def _nullable(data_type: Any) -> Any:
    """The type with every field, element and value nullable."""
    match data_type:
        case t.StructType():
            fields = data_type.fields
            return t.struct(*(t.StructField(f.name, _nullable(f.type), True, f.comment) for f in fields))
        case t.ArrayType():
            return t.array(_nullable(data_type.element))
        case t.MapType():
            return t.map_of(_nullable(data_type.key), _nullable(data_type.value))
    return data_type


def nested_not_null(data_type: t.DataType) -> bool:
    """Whether a nested field, element or value is NOT NULL, which is not checked on writing."""
    match data_type:
        case t.StructType():
            return any(not f.nullable or nested_not_null(f.type) for f in data_type.fields)
        case t.ArrayType():
            return not data_type.contains_null or nested_not_null(data_type.element)
        case t.MapType():
            return not data_type.value_contains_null or any(nested_not_null(c) for c in data_type.children())
    return False


def holds(data_type: t.DataType, wanted: t.DataType) -> bool:
    """Whether a type is or holds another one."""
    return data_type == wanted or any(holds(c, wanted) for c in data_type.children())


def _metadata_action(
    schema: t.StructType,
    partition_by: Sequence[str],
    properties: dict[str, str],
    comment: str | None,
    old: Snapshot | None,
) -> Action:
    fields: dict[str, Any] = {"type": "struct", "fields": [field_json(f) for f in schema.fields]}
    if is_mapped(properties):
        mapped_schema(fields, properties)
    spec: dict[str, Any] = {
        "id": old.table_id if old is not None else str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(fields, ensure_ascii=False),
        "partitionColumns": list(partition_by),
        "configuration": dict(properties),
        "createdTime": commit.now_ms(),
    }
    if comment is not None:
        spec["description"] = comment
    return {"metaData": spec}


def field_json(f: t.StructField) -> Any:
    """A column as a table's schema has it."""
    metadata: dict[str, Any] = {"comment": f.comment} if f.comment else {}
    if isinstance(f.type, t.CharType):
        metadata[CHAR_VARCHAR] = f.type.simple
    return {"name": f.name, "type": _type_json(f.type), "nullable": f.nullable, "metadata": metadata}


def _type_json(data_type: t.DataType) -> Any:
    """Delta's JSON of a type: as Spark's, with CHAR and VARCHAR as string."""
    match data_type:
        case t.CharType():
            return "string"
        case t.StructType():
            return {"type": "struct", "fields": [field_json(f) for f in data_type.fields]}
        case t.ArrayType():
            return {
                "type": "array",
                "elementType": _type_json(data_type.element),
                "containsNull": data_type.contains_null,
            }
        case t.MapType():
            return {
                "type": "map",
                "keyType": _type_json(data_type.key),
                "valueType": _type_json(data_type.value),
                "valueContainsNull": data_type.value_contains_null,
            }
    return data_type.json()
