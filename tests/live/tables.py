"""Delta tables as a test changes them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from gateway.delta.rewrite import Change, Replaced, check_changeable, replace_files
from gateway.delta.table import open_snapshot
from gateway.delta.write import WriteResult


def overwrite(path: str, batches: Iterable[pa.RecordBatch]) -> WriteResult:
    """Replace all rows of a table by those of `batches` in one commit; schema and properties stay."""

    def metrics(done: Replaced) -> dict[str, int]:
        return {"numFiles": done.added_files, "numOutputRows": done.added_rows, "numOutputBytes": done.added_bytes}

    snapshot = open_snapshot(path)
    check_changeable(snapshot)
    change = Change("WRITE", {"mode": "Overwrite", "partitionBy": "[]"}, metrics)
    return replace_files(snapshot, range(len(snapshot.files)), batches, change, [()])
