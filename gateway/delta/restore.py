"""A table as it was at an earlier version, as its next version."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gateway.delta import at_work, commit, log
from gateway.delta.creation import CLUSTERING, with_last_id
from gateway.delta.features import Kept, refused
from gateway.delta.identity import with_last_numbers
from gateway.delta.logged import agreed_state, missing_of
from gateway.delta.replay import Fields, removal
from gateway.delta.retention import deleted_files_ms
from gateway.delta.row_ids import DOMAIN, numbered_again
from gateway.delta.table import Snapshot, forget, of_this_table, open_snapshot
from gateway.delta.write import check_own, check_snapshot_writable, conflict, storage_errors
from gateway.errors import ServerError, UserError


def restore(path: str, version: int) -> None:
    """Give the table in `path` the rows and columns of `version`; nothing is changed if it raises.

    Raises ServerError WRITE_FAILED and UserError PATH_NOT_ALLOWED.
    """
    check_own(path)
    try:
        DeltaTable(path).restore(version)
    except (DeltaError, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0][:300]
        raise ServerError(
            "WRITE_FAILED", f"Cannot restore the Delta table {path} to version {version}: {reason}"
        ) from error
    forget(path)


@dataclass(frozen=True, slots=True)
class Restored:
    """What RESTORE did, in the order of its columns."""

    size: int
    files: int
    removed: int
    restored: int
    removed_bytes: int
    restored_bytes: int


def check_restorable(snapshot: Snapshot) -> None:
    """Raise what keeps a table from getting other files and columns."""
    check_own(snapshot.root)
    _check_restorable(snapshot)


def _check_restorable(snapshot: Snapshot) -> None:
    check_snapshot_writable(snapshot, removes=True, kept=Kept.BY_STATEMENT)


def restore_files(snapshot: Snapshot, version: int, parameters: commit.Parameters) -> tuple[int, Restored]:
    """Make the files, columns and properties of an earlier version those of the next one; the version and what was done.

    Raises UserError DELTA_CANNOT_RESTORE_TABLE_VERSION, DELTA_UNSUPPORTED_TIME_TRAVEL_…, DELTA_FILE_NOT_FOUND,
    DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS and WRITE_CONFLICT, UnsupportedError for a version with features that are not written
    here.
    """
    root = snapshot.root
    if version >= snapshot.version:
        raise no_version(snapshot, version)
    with of_this_table(snapshot):
        earlier = open_snapshot(root, version)
        _check_retained(snapshot, version)
    _check_restorable(earlier)
    now, then = (agreed_state(s) for s in (snapshot, earlier))
    domains = _domains(root, now.domains, then.domains)
    added = [spec for key, spec in then.files.items() if key not in now.files]
    removed = [spec for key, spec in now.files.items() if key not in then.files]
    _check_there(root, version, added)
    done = Restored(
        _size(list(then.files.values())), len(then.files), len(removed), len(added), _size(removed), _size(added)
    )
    metrics = {
        "numRestoredFiles": done.restored,
        "removedFilesSize": done.removed_bytes,
        "numRemovedFiles": done.removed,
        "restoredFilesSize": done.restored_bytes,
        "numOfFilesAfterRestore": done.files,
        "tableSizeAfterRestore": done.size,
    }
    moment = commit.now_ms()
    at = commit.moment_behind(root, snapshot.version, snapshot.properties)
    metadata = _with_times(with_last_id(then.metadata, snapshot.properties), snapshot, at)
    protocol = snapshot.protocol.merged(earlier.protocol)
    actions: list[commit.Action] = [
        commit.info_action("RESTORE", parameters, metrics, False, snapshot.version),
        commit.protocol_action(protocol),
        {"metaData": with_last_numbers(metadata, snapshot.columns)},
        *domains,
        *({"add": {**spec, "dataChange": True}} for spec in added),
        *({"remove": removal(spec, moment, True)} for spec in removed),
    ]
    made = snapshot.version + 1
    with storage_errors(root):
        try:
            numbers = numbered_again(snapshot, now, then, actions, protocol)
            properties = metadata.get("configuration", {})
            stamped = commit.stamped(root, snapshot.version, properties, numbers, at)
            commit.publish(root, made, stamped, partial(_check_kept, root, version, added), snapshot.marker)
        except (FileExistsError, FileNotFoundError) as error:
            raise conflict(root) from error
    commit.checkpoint_if_due(root, made, earlier.properties)
    return made, done


def _with_times(metadata: Fields, snapshot: Snapshot, at: int) -> Fields:
    """The metadata of an earlier version, but for since when commits tell their times: from the next on, or as by now."""
    configuration = metadata.get("configuration", {})
    if configuration.get(log.IN_COMMIT, "").lower() != "true":
        return metadata
    kept = {key: value for key, value in configuration.items() if not key.startswith(log.IN_COMMIT_SINCE)}
    since = {key: value for key, value in snapshot.properties.items() if key.startswith(log.IN_COMMIT_SINCE)}
    if snapshot.properties.get(log.IN_COMMIT, "").lower() != "true":
        since = {log.IN_COMMIT_FROM: str(snapshot.version + 1), f"{log.IN_COMMIT_SINCE}Timestamp": str(at)}
    return {**metadata, "configuration": {**kept, **since}}


def _domains(root: str, now: Mapping[str, Fields], then: Mapping[str, Fields]) -> list[commit.Action]:
    """How the table is clustered at an earlier version; the number of its last row stays.

    Raises UnsupportedError for a version with other domains than the newest.
    """
    changed = [name for name in {*now, *then} - {DOMAIN, CLUSTERING} if now.get(name) != then.get(name)]
    if changed:
        raise refused(changed, root, "restored")
    old, new = (
        None if of.get("removed") else of for of in (one.get(CLUSTERING, {"removed": True}) for one in (then, now))
    )
    if old is not None:
        return [{"domainMetadata": old}]
    return [] if new is None else [{"domainMetadata": {**new, "removed": True}}]


def no_version(snapshot: Snapshot, version: int) -> UserError:
    """DELTA_CANNOT_RESTORE_TABLE_VERSION."""
    versions = log.commit_versions(snapshot.root) or [snapshot.version]
    text = f"Cannot restore table to version {version}. Available versions: [{versions[0]}, {snapshot.version}]."
    return UserError("DELTA_CANNOT_RESTORE_TABLE_VERSION", text)


def _check_retained(snapshot: Snapshot, version: int) -> None:
    """Raise for a version whose files VACUUM may have removed, as Delta does whether or not it has."""
    versions = log.commit_versions(snapshot.root)
    by_version = dict(zip(versions, log.commit_times(snapshot.root, versions, snapshot.properties), strict=True))
    retention = deleted_files_ms(snapshot)
    if version in by_version and by_version[version] < commit.now_ms() - retention:
        hours = retention // 3_600_000
        text = f"Cannot time travel beyond delta.deletedFileRetentionDuration ({hours} HOURS) set on the table."
        condition = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
        raise UserError(condition, text)


def _check_there(root: str, version: int, added: Sequence[Fields]) -> None:
    missing = missing_of(root, added)
    if missing is not None:
        text = f"Not all files from version {version} are available in file system, such as {missing}."
        raise UserError("DELTA_FILE_NOT_FOUND", text)


def _check_kept(root: str, version: int, added: Sequence[Fields]) -> None:
    """Raise if files are gone, or if a VACUUM may be about to remove them: one that begins later sees what was put back."""
    if added and at_work.is_removing(os.path.join(root, log.LOG)):
        text = f"A VACUUM removes files of old versions of the Delta table {root}. Send the statement again once it is over."
        raise UserError("WRITE_CONFLICT", text, retryable=True)
    _check_there(root, version, added)


def _size(specs: Sequence[Fields]) -> int:
    return sum(int(spec["size"]) for spec in specs)
