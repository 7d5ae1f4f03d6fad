"""Delta tables as a test changes them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from gateway.delta import commit, log
from gateway.delta.replay import replayed
from gateway.delta.rewrite import Change, Replaced, check_changeable, replace_files
from gateway.delta.table import open_snapshot
from gateway.delta.vectors import file_of
from gateway.delta.write import WriteResult


def overwrite(path: str, batches: Iterable[pa.RecordBatch]) -> WriteResult:
    """Replace all rows of a table by those of `batches` in one commit; schema and properties stay."""

    def metrics(done: Replaced) -> dict[str, int]:
        return {"numFiles": done.added_files, "numOutputRows": done.added_rows, "numOutputBytes": done.added_bytes}

    snapshot = open_snapshot(path)
    check_changeable(snapshot)
    change = Change("WRITE", {"mode": "Overwrite", "partitionBy": "[]"}, metrics)
    return replace_files(snapshot, range(len(snapshot.files)), batches, change, [()])


#: What the protocol of a table with deletion vectors asks.
VECTORS: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["appendOnly", "deletionVectors", "invariants"],
}


def alter(folder: str, properties: dict[str, str], protocol: dict[str, Any]) -> None:
    """Another version of a table whose first commit made it: with more properties, and another protocol."""
    (metadata,) = [a["metaData"] for a in log.actions(folder, 0) if "metaData" in a]
    changed = {**metadata, "configuration": {**metadata["configuration"], **properties}}
    info = commit.info_action("SET TBLPROPERTIES", {}, {}, False)
    version = log.commit_versions(folder)[-1] + 1
    commit.publish(folder, version, [info, {"protocol": protocol}, {"metaData": changed}])


def strays(root: Path) -> set[str]:
    """Files in a table's folder that its newest version does not need."""
    state = replayed(str(root), log.commit_versions(str(root))[-1], (str(root),))
    kept = {os.path.normpath(root / unquote(spec["path"])) for spec in state.files.values()}
    vectors = [spec["deletionVector"] for spec in state.files.values() if spec.get("deletionVector")]
    kept |= {str(file_of(str(root), vector)) for vector in vectors}
    found = {str(p) for p in root.rglob("*") if p.is_file() and not p.is_relative_to(root / log.LOG)}
    return found - kept
