"""Row tracking for a table that has rows: they are numbered, then kept count of, in the commits that Delta makes of it."""

from __future__ import annotations

import json
import uuid
from typing import Any

from gateway.delta import commit
from gateway.delta.creation import with_features
from gateway.delta.logged import specs_of
from gateway.delta.metadata import Alteration, alter
from gateway.delta.properties import ROW_ID, ROW_TRACKING, ROW_VERSION, SUSPENDED
from gateway.delta.row_ids import numbered
from gateway.delta.table import Snapshot
from gateway.delta.write import conflict, newest, storage_errors
from gateway.errors import unsupported

_FEATURE = "rowTracking"


def check_trackable(snapshot: Snapshot) -> None:
    """Raise UnsupportedError for a table whose rows are not to be numbered, or not known in number."""
    if snapshot.properties.get(SUSPENDED, "").lower() == "true":
        raise unsupported(f"setting {ROW_TRACKING} of a table with {SUSPENDED}")
    if snapshot.num_rows is None:
        raise unsupported(f"setting {ROW_TRACKING} of a table with files without statistics")


def track_rows(snapshot: Snapshot) -> int:
    """Number the rows of a table, and keep the numbers from then on; the version that says so.

    Raises UserError WRITE_CONFLICT where another writer is faster: what is done by then stays, and is right.
    """
    check_trackable(snapshot)
    root = snapshot.root
    protocol = with_features(snapshot.protocol, [_FEATURE])
    if protocol != snapshot.protocol:
        spec = {"readerFeatures": None, "writerFeatures": None, **commit.protocol_action(protocol)["protocol"]}
        told = {"newProtocol": commit.compact_json(spec)}
        alter(
            snapshot, Alteration("UPGRADE PROTOCOL", told, _unchanged, features=frozenset({_FEATURE}), unchanged=True)
        )
    seen = newest(snapshot)
    check_trackable(seen)
    bare = [{"add": {**spec, "dataChange": False}} for spec in specs_of(seen) if spec.get("baseRowId") is None]
    if bare:
        info = commit.info_action(
            "ROW TRACKING BACKFILL", {"batchId": "0"}, {}, False, seen.version, commit.SNAPSHOT_ISOLATION
        )
        actions = commit.stamped(root, seen.version, seen.properties, [info, *numbered(seen, bare)])
        with storage_errors(root):
            try:  # never behind another commit: it may have removed what would be added again
                commit.publish(root, seen.version + 1, actions, None, seen.marker)
            except (FileExistsError, FileNotFoundError) as error:
                raise conflict(root) from error
        seen = newest(snapshot)
    text = json.dumps({ROW_TRACKING: "true"}, separators=(",", ":"))
    return alter(seen, Alteration("SET TBLPROPERTIES", {"properties": text}, _tracked))


def _unchanged(action: dict[str, Any]) -> None:
    """The metadata stays."""


def _tracked(action: dict[str, Any]) -> None:
    names = {ROW_ID: f"_row-id-col-{uuid.uuid4()}", ROW_VERSION: f"_row-commit-version-col-{uuid.uuid4()}"}
    action["configuration"] = {**names, **action.get("configuration", {}), ROW_TRACKING: "true"}
