"""All files of a table written anew with columns called as the table calls them: it needs no column mapping then."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from gateway.delta import commit
from gateway.delta.compaction import FILE_BYTES, check_compactable, files_by_partition, rows_of_files
from gateway.delta.creation import clustering_of
from gateway.delta.fields import check_schema
from gateway.delta.metadata import logged_metadata
from gateway.delta.properties import FEED
from gateway.delta.rewrite import RowWriter, check_still_live, publish_behind
from gateway.delta.schema import parse_schema
from gateway.delta.table import Snapshot
from gateway.delta.write import removes_of, storage_errors
from gateway.errors import UserError, unsupported

_KEYS = "delta.columnMapping."
_WHAT = "ALTER TABLE … DROP FEATURE columnMapping"


def check_unmappable(snapshot: Snapshot) -> None:
    """Raise UserError for names that files cannot have, UnsupportedError for what was not proved to survive."""
    check_compactable(snapshot)
    if clustering_of(snapshot):
        raise unsupported(f"{_WHAT} of a clustered table")
    if snapshot.protocol.has("rowTracking"):
        raise unsupported(f"{_WHAT} of a table with row tracking")
    if snapshot.properties.get(FEED, "").lower() == "true":
        raise unsupported(f"{_WHAT} of a table with a change data feed")
    try:
        check_schema(snapshot.schema, snapshot.partition_columns, mapped=False)
    except UserError as error:
        if error.condition != "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES":
            raise
        condition = "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
        text = (
            f"{error.message} Column mapping cannot be removed when there are invalid characters in the column names."
        )
        raise UserError(condition, text) from None


def unmap(snapshot: Snapshot, alive: Callable[[], None]) -> None:
    """Write the files anew, in one commit that changes no row. Raises what `rewrite.publish_behind` does."""
    metadata = _without_mapping(logged_metadata(snapshot))
    columns = parse_schema(json.loads(metadata["schemaString"]))
    properties = metadata["configuration"]
    after = dataclasses.replace(snapshot, columns=columns, properties=properties, mapping="none", notes={})
    files = range(len(snapshot.files))
    with storage_errors(snapshot.root), RowWriter(after, None, FILE_BYTES) as writer:
        for one in files_by_partition(snapshot, files):
            for batch in rows_of_files(snapshot, one):
                alive()
                writer.take([batch])
            writer.finish()
        adds = [{"add": {**action["add"], "dataChange": False}} for action in writer.finish()]
        metrics = {"numOutputBytes": writer.bytes}
        info = commit.info_action("REMOVE COLUMN MAPPING", {}, metrics, False, snapshot.version)
        removes = removes_of(snapshot, list(files), changes_data=False)
        actions = [info, {"metaData": metadata}, *removes, *adds]

        def check(newer: Snapshot) -> None:
            check_still_live(snapshot, newer, files)
            if len(newer.files) != len(files):  # what came meanwhile has the names that are gone
                text = (
                    f"Files were added to the Delta table {snapshot.root} at the same time. Send the statement again."
                )
                raise UserError("DELTA_CONCURRENT_APPEND.WITHOUT_HINT", text, retryable=True)

        version = publish_behind(snapshot, actions, check, writer.settle)
    commit.checkpoint_if_due(snapshot.root, version, properties)


def _without_mapping(metadata: dict[str, Any]) -> dict[str, Any]:
    schema = _plain(json.loads(metadata["schemaString"]))
    kept = {k: v for k, v in metadata.get("configuration", {}).items() if not k.startswith(_KEYS)}
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return {**metadata, "schemaString": text, "configuration": kept}


def _plain(value: Any) -> Any:
    """A type as JSON without what its fields say of files."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    metadata = {k: v for k, v in value.get("metadata", {}).items() if not k.startswith(_KEYS)}
    plain = {k: _plain(v) for k, v in value.items() if k != "metadata"}
    return {**plain, "metadata": metadata} if "metadata" in value else plain
