"""DROP FEATURE of what readers must know: the table stops using it, then nobody needs to read the versions that did.

As Delta does it fast: what uses the feature is written anew, some empty versions have checkpoints of their own, and the version
that drops it protects those, so that readers which do not know the feature begin there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from gateway.delta import commit
from gateway.delta.cloning import uri_path
from gateway.delta.compaction import check_compactable, compact
from gateway.delta.containment import is_under, source
from gateway.delta.datafiles import VECTORS
from gateway.delta.file_columns import file_field
from gateway.delta.logged import specs_of, state_of
from gateway.delta.metadata import Alteration, alter, check_alterable, logged_metadata
from gateway.delta.properties import ROW_ID, ROW_TRACKING, ROW_VERSION, SUSPENDED, WIDENING
from gateway.delta.row_ids import DOMAIN, NUMBERS
from gateway.delta.table import Snapshot
from gateway.delta.unmapping import check_unmappable, unmap
from gateway.delta.vectors import file_of
from gateway.delta.widening import CHANGES
from gateway.delta.write import conflict, newest
from gateway.errors import ServerError, unsupported

Alive = Callable[[], None]
_PROTECTION, _PROTECTED = "checkpointProtection", "delta.requireCheckpointProtectionBeforeVersion"
_POLICY = "delta.checkpointPolicy"
_BARRIERS = 3
_ON = "true"


def drop(snapshot: Snapshot, feature: str, alive: Alive) -> int:
    """Drop one of `DROPPED` from a table that has it; the last version. What is done by then stays, should it raise."""
    DROPPED[feature](snapshot, feature, alive)
    return newest(snapshot).version


def check_droppable(snapshot: Snapshot, feature: str) -> None:
    """Raise what keeps the steps from being done, before the first."""
    check_alterable(snapshot)
    if feature in ("deletionVectors", "typeWidening"):
        check_compactable(snapshot)
    if feature == "columnMapping":
        check_unmappable(snapshot)


def _vectors(snapshot: Snapshot, feature: str, alive: Alive) -> None:
    _unset(snapshot, VECTORS)
    _rewritten(newest(snapshot), lambda one: list(one.files.deleted), alive)
    seen = newest(snapshot)
    moment = commit.now_ms()
    gone = [{"remove": {"path": p, "deletionTimestamp": moment, "dataChange": False}} for p in _vector_files(seen)]
    if gone:  # so that nobody who knows no vectors removes their files as long as earlier versions need them
        _commit(seen, "Deletion Vector Tombstones", more=tuple(gone))
    _fenced(newest(seen), feature, lambda one: not one.files.deleted)


def _vector_files(snapshot: Snapshot) -> list[str]:
    """The files of vectors in a table's folder that rows once had, as the log would spell them."""
    root, found = snapshot.root, set()
    for spec in state_of(snapshot).removed.values():
        vector = spec.get("deletionVector")
        place = None if vector is None else file_of(root, vector)
        if place is not None and is_under(os.path.normpath(place), root):
            found.add(uri_path(os.path.relpath(place, root)))
    return sorted(found)


def _policy(snapshot: Snapshot, feature: str, alive: Alive) -> None:
    if snapshot.properties.get(_POLICY, "").lower() == "v2":
        _set(snapshot, {_POLICY: "classic"})
    _fenced(newest(snapshot), feature, lambda _: True)


def _fence(snapshot: Snapshot, feature: str, alive: Alive) -> None:
    _fenced(snapshot, feature, lambda _: True)


def _widening(snapshot: Snapshot, feature: str, alive: Alive) -> None:
    _unset(snapshot, WIDENING)
    _rewritten(newest(snapshot), lambda one: list(_narrower(one)), alive)
    seen = newest(snapshot)
    told = [f for f in _fields(seen) if CHANGES in f["metadata"]]
    if told:
        _commit(seen, "DROP FEATURE", {"columns": commit.compact_json(told)}, edit=_without_changes)
    _fenced(newest(seen), feature, lambda one: not any(_narrower(one)))


def _narrower(snapshot: Snapshot) -> Iterator[int]:
    """The files that hold columns in other types than the table's."""
    wanted = {c.physical: file_field(c).type for c in snapshot.columns if CHANGES in c.metadata}
    for at, path in enumerate(snapshot.files.paths if wanted else ()):
        with source(path, snapshot.within) as opened:
            found: pa.Schema = pq.read_schema(opened)
        if any(name in found.names and found.field(name).type != wanted[name] for name in wanted):
            yield at


def _fields(snapshot: Snapshot) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(logged_metadata(snapshot)["schemaString"])["fields"]
    return fields


def _without_changes(action: dict[str, Any]) -> None:
    for f in action["schema"]["fields"]:
        f["metadata"].pop(CHANGES, None)


def _mapping(snapshot: Snapshot, feature: str, alive: Alive) -> None:
    if snapshot.mapping != "none":
        unmap(snapshot, alive)
    _fenced(newest(snapshot), feature, lambda one: one.mapping == "none")


def _tracking(snapshot: Snapshot, feature: str, alive: Alive) -> None:
    _set(snapshot, {ROW_TRACKING: "false", SUSPENDED: _ON})
    seen = newest(snapshot)
    bare = [{k: v for k, v in spec.items() if k not in NUMBERS} for spec in specs_of(seen)]
    if bare:
        adds = tuple({"add": {**spec, "dataChange": False}} for spec in bare)
        _commit(seen, "ROW TRACKING UNBACKFILL", {"batchId": "0"}, more=adds)
    seen = newest(seen)
    domain = state_of(seen).domains.get(DOMAIN)
    gone = () if domain is None else ({"domainMetadata": {**domain, "removed": True}},)

    def untracked(action: dict[str, Any]) -> None:
        keys = (ROW_ID, ROW_VERSION, ROW_TRACKING, SUSPENDED)
        action["configuration"] = {k: v for k, v in action.get("configuration", {}).items() if k not in keys}

    _dropped(seen, feature, untracked, more=gone)


def _domains(snapshot: Snapshot, feature: str, alive: Alive) -> None:
    held = state_of(snapshot).domains.values()
    if any(not spec.get("removed") for spec in held):
        raise unsupported("ALTER TABLE … DROP FEATURE domainMetadata of a table with domains")
    _dropped(snapshot, feature, lambda _: None)


DROPPED: dict[str, Callable[[Snapshot, str, Alive], None]] = {
    "deletionVectors": _vectors,
    "v2Checkpoint": _policy,
    "vacuumProtocolCheck": _fence,
    "typeWidening": _widening,
    "columnMapping": _mapping,
    "rowTracking": _tracking,
    "domainMetadata": _domains,
}
#: Those that only writers must know: nothing is asked of what earlier versions say.
OF_WRITERS = frozenset({"rowTracking", "domainMetadata"})


# ---- steps


def _rewritten(snapshot: Snapshot, which: Callable[[Snapshot], list[int]], alive: Alive) -> None:
    files = which(snapshot)
    if files:
        compact(snapshot, files, (), alive, purges=True)


def _fenced(snapshot: Snapshot, feature: str, is_free: Callable[[Snapshot], bool]) -> None:
    """Versions with checkpoints that hold nothing of the feature, then the one that drops it."""
    for _ in range(_BARRIERS):
        _commit(newest(snapshot), "Empty Commit")
        seen = newest(snapshot)
        _checkpoint(seen, feature)
    if not is_free(seen):
        raise conflict(seen.root)
    version = str(seen.version + 1)

    def protected(action: dict[str, Any]) -> None:
        action["configuration"] = {**action.get("configuration", {}), _PROTECTED: version}

    _dropped(seen, feature, protected, frozenset({_PROTECTION}))
    _checkpoint(newest(seen), feature)


def _dropped(
    snapshot: Snapshot,
    feature: str,
    edit: Callable[[dict[str, Any]], None],
    features: frozenset[str] = frozenset(),
    more: tuple[commit.Action, ...] = (),
) -> None:
    told = {"featureName": feature, "truncateHistory": False}
    alter(
        snapshot,
        Alteration(
            "DROP FEATURE", told, edit, features=features, without=frozenset({feature}), more=more, at_once=True
        ),
    )


def _commit(
    snapshot: Snapshot,
    operation: str,
    parameters: dict[str, Any] | None = None,
    edit: Callable[[dict[str, Any]], None] | None = None,
    more: tuple[commit.Action, ...] = (),
) -> None:
    change = edit if edit is not None else lambda _: None
    quiet = edit is None
    isolation = commit.SNAPSHOT_ISOLATION if quiet else commit.SERIALIZABLE
    alter(
        snapshot,
        Alteration(
            operation,
            parameters or {},
            change,
            reads=bool(more),
            more=more,
            unchanged=quiet,
            isolation=isolation,
            at_once=True,
        ),
    )


def _unset(snapshot: Snapshot, key: str) -> None:
    if key not in snapshot.properties:
        return

    def without(action: dict[str, Any]) -> None:
        action["configuration"] = {k: v for k, v in action.get("configuration", {}).items() if k != key}

    told = {"properties": commit.compact_json([key]), "ifExists": True}
    alter(snapshot, Alteration("UNSET TBLPROPERTIES", told, without))


def _set(snapshot: Snapshot, properties: dict[str, str]) -> None:
    def given(action: dict[str, Any]) -> None:
        action["configuration"] = {**action.get("configuration", {}), **properties}

    alter(snapshot, Alteration("SET TBLPROPERTIES", {"properties": commit.compact_json(properties)}, given))


def _checkpoint(snapshot: Snapshot, feature: str) -> None:
    try:
        commit.checkpoint(snapshot.root, snapshot.version)
    except (DeltaError, OSError) as error:
        text = f"Dropping {feature} failed due to a failure in checkpoint creation."
        raise ServerError("DELTA_FEATURE_DROP_CHECKPOINT_FAILED", text) from error
