"""Changes of a table's metadata: one commit each, as Delta with Spark writes it, that keeps all else as it was logged."""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from gateway.delta import commit, log
from gateway.delta.containment import opened
from gateway.delta.creation import with_features, without_features
from gateway.delta.features import Kept
from gateway.delta.indexed import NAMES, check_named
from gateway.delta.logged import state_of
from gateway.delta.properties import FEED, check_feed_columns, check_may_feed
from gateway.delta.schema import parse_schema, struct_of
from gateway.delta.table import Snapshot, moved, of_this_table
from gateway.delta.write import ATTEMPTS, check_own, check_snapshot_writable, conflict, open_again, storage_errors
from gateway.errors import ServerError, UserError


@dataclass(frozen=True, slots=True)
class Alteration:
    """What is done to a metaData action, with its schema as JSON values under "schema"; and how the log calls it.

    `reads` says that it holds for the rows of the table as they are: nobody may have changed them meanwhile.
    """

    operation: str
    parameters: Mapping[str, Any]
    edit: Callable[[dict[str, Any]], None]
    reads: bool = False
    features: frozenset[str] = frozenset()  # that the table has then
    without: frozenset[str] = frozenset()  # those that it has no longer
    more: tuple[commit.Action, ...] = ()  # actions beside it
    unchanged: bool = False  # but for these
    isolation: str = commit.SERIALIZABLE
    at_once: bool = False  # behind no other writer's version


def check_alterable(snapshot: Snapshot) -> None:
    """Raise UnsupportedError for a table of which more would have to be kept than its metadata says, or a link."""
    check_own(snapshot.root)
    check_snapshot_writable(snapshot, kept=Kept.BY_STATEMENT)


def edited(snapshot: Snapshot, alteration: Alteration) -> dict[str, Any]:
    """The table's metaData action after the change. Raises the errors of the change itself."""
    action = copy.deepcopy(logged_metadata(snapshot))
    action["schema"] = json.loads(action["schemaString"])
    alteration.edit(action)
    names = [f["name"] for f in action["schema"]["fields"]]
    if snapshot.properties.get(FEED, "").lower() != "true":
        check_may_feed(names, action.get("configuration", {}))
    properties = action.get("configuration", {})
    check_feed_columns(names, properties)
    if NAMES in properties:
        check_named(struct_of(parse_schema(action["schema"])), action.get("partitionColumns", ()), properties)
    text = json.dumps(action.pop("schema"), separators=(",", ":"), ensure_ascii=False)
    return {**action, "schemaString": text}


def alter(snapshot: Snapshot, alteration: Alteration) -> int:
    """Commit a change; its version. Raises UserError DELTA_METADATA_CHANGED and kin where another writer was faster."""
    actions: list[commit.Action] = [] if alteration.unchanged else [{"metaData": edited(snapshot, alteration)}]
    protocol = with_features(snapshot.protocol, alteration.features)
    if alteration.without:
        protocol = without_features(protocol, alteration.without)
    if protocol != snapshot.protocol:
        actions.append(commit.protocol_action(protocol))
    actions += alteration.more
    seen = snapshot
    with storage_errors(snapshot.root):
        for _ in range(ATTEMPTS):
            info = commit.info_action(
                alteration.operation,
                alteration.parameters,
                {},
                not alteration.reads,
                seen.version,
                alteration.isolation,
            )
            try:
                made = commit.stamped(snapshot.root, seen.version, seen.properties, [info, *actions])
                commit.publish(snapshot.root, seen.version + 1, made, None, seen.marker)
                break
            except FileExistsError as error:
                if alteration.at_once:
                    raise conflict(snapshot.root) from error
                seen = open_again(snapshot.root)
            except FileNotFoundError as error:
                raise conflict(snapshot.root) from error
            _check_overtaken(snapshot, seen, alteration)
        else:
            raise conflict(snapshot.root)
    commit.checkpoint_if_due(snapshot.root, seen.version + 1, snapshot.properties)
    return seen.version + 1


def _check_overtaken(snapshot: Snapshot, newer: Snapshot, alteration: Alteration) -> None:
    if newer.protocol != snapshot.protocol:
        raise _lost("DELTA_PROTOCOL_CHANGED", snapshot, "The protocol of the table was changed")
    if newer.table_id != snapshot.table_id or logged_metadata(newer) != logged_metadata(snapshot):
        raise _lost("DELTA_METADATA_CHANGED", snapshot, "The metadata of the table was changed")
    if alteration.reads and set(newer.files.logged) - set(snapshot.files.logged):
        raise _lost("DELTA_CONCURRENT_APPEND.WITHOUT_HINT", snapshot, "Rows that should have been read were added")


def _lost(condition: str, snapshot: Snapshot, what: str) -> UserError:
    text = f"{what} by another writer of the Delta table {snapshot.root} at the same time. Send the statement again."
    return UserError(condition, text, retryable=True)


# ---- the action as it was logged


def logged_metadata(snapshot: Snapshot) -> dict[str, Any]:
    """The metaData action that holds for a snapshot, with every field that its writer has logged.

    Raises ServerError; also if another table has come to its name.
    """
    with of_this_table(snapshot):
        found = _from_log(snapshot)
    if not isinstance(found, dict) or not isinstance(found.get("schemaString"), str) or not _has_its_types(found):
        raise ServerError("DELTA_LOG_CORRUPT", f"The log of the Delta table {snapshot.root} holds no metadata.")
    if str(found.get("id")) != snapshot.table_id:
        raise moved(snapshot.root)
    return found


def _has_its_types(found: dict[str, Any]) -> bool:
    return isinstance(found.get("configuration", {}), dict) and isinstance(found.get("partitionColumns", []), list)


def _from_log(snapshot: Snapshot) -> Any:
    checkpoints = _checkpoints(snapshot)
    for version in range(snapshot.version, -1, -1):
        if version in checkpoints:
            return _from_checkpoint(snapshot, checkpoints[version])
        try:
            actions = log.actions(snapshot.root, version)
        except FileNotFoundError:  # it may be in a checkpoint of another kind
            return state_of(snapshot).metadata
        for action in actions:
            if "metaData" in action:
                return action["metaData"]
    return None


def _checkpoints(snapshot: Snapshot) -> dict[int, list[str]]:
    """The Parquet files of whole checkpoints, by version."""
    whole = log.whole_checkpoints(os.listdir(f"{snapshot.root}/{log.LOG}"))
    in_parquet = (item for item in whole.items() if all(name.endswith(".parquet") for name in item[1]))
    return {version: names for version, names in in_parquet if version <= snapshot.version}


def _from_checkpoint(snapshot: Snapshot, names: list[str]) -> Any:
    for name in names:
        path = f"{snapshot.root}/{log.LOG}/{name}"
        with os.fdopen(opened(path, snapshot.within), "rb") as file:
            parquet = pq.ParquetFile(io.BytesIO(file.read()))
        if "metaData" not in parquet.schema_arrow.names:  # of several files each may hold actions of its own kinds
            continue
        rows = parquet.read(columns=["metaData"]).column("metaData").drop_null()
        if len(rows):
            return _plain(rows[0].as_py(maps_as_pydicts="strict"))
    return None


def _plain(value: Any) -> Any:
    """A struct of a checkpoint as a commit has it: fields that are NULL are not there."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    return value
