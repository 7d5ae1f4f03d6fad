"""Rows taken out of files that stay where they are: deletion vectors in the place of files written anew.

What a table that has them says of its files is repeated as it is in the log, with the new vector, and with bounds that are not
tight any more. A file without a row that is left goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.delta import commit
from gateway.delta.commit import Action
from gateway.delta.containment import remove_file
from gateway.delta.datafiles import takes_vectors
from gateway.delta.feed import Feed
from gateway.delta.logged import specs_of
from gateway.delta.replay import Fields, removal
from gateway.delta.rewrite import Change, Reads, Replaced, RowWriter, check_read, publish_behind, records
from gateway.delta.row_ids import checked_numbers, tracks_rows
from gateway.delta.table import Snapshot
from gateway.delta.vectors import write_vectors
from gateway.delta.write import WriteResult, storage_errors

Numbers = npt.NDArray[np.int64]
_TIGHT = re.compile(r'"tightBounds"\s*:\s*true\s*\}\s*\Z')  # where Delta puts it


def marks_rows(snapshot: Snapshot) -> bool:
    """Whether rows of a table are taken out by deletion vectors."""
    return snapshot.protocol.has("deletionVectors") and takes_vectors(snapshot.properties)


def mark_rows(
    snapshot: Snapshot,
    gone: Mapping[int, Numbers],
    batches: Iterable[pa.RecordBatch],
    change: Change,
    reads: Reads,
    feed: Feed | None = None,
) -> WriteResult:
    """Take rows, by the files and their numbers in them, out of a table and put those of `batches` in, in one commit.

    `feed` is told of both. Raises what `rewrite.replace_files` does.
    """
    root = snapshot.root
    specs = specs_of(snapshot) if gone else []
    made: str | None = None
    with storage_errors(root), RowWriter(change.shaped(snapshot), feed) as writer:
        writer.take(batches)
        adds = writer.finish(settles=False)
        told = writer.told()
        try:
            whole, partly = _split(snapshot, gone, specs)
            described: list[Fields] = []
            if partly:
                made, described = write_vectors(root, list(partly.values()))
            old = [specs[i] for i in gone]
            done = Replaced(
                len(whole), _size(specs, whole), writer.files, writer.bytes, writer.rows,
                len(partly),
                sum("deletionVector" in specs[i] for i in partly),
                sum("deletionVector" in spec for spec in old),
                len(told),
            )  # fmt: skip
            info = change.info(snapshot, done)
            moment = commit.now_ms()
            removes: list[Action] = [{"remove": removal(spec, moment, True)} for spec in old]
            marked: list[Action] = [
                {"add": _marked(specs[i], vector, snapshot, i)} for i, vector in zip(partly, described, strict=True)
            ]
            actions = [info, *change.also(), *removes, *marked, *adds, *told]
            version = publish_behind(snapshot, actions, lambda newer: check_read(snapshot, newer, reads), writer.settle)
        except BaseException:
            if made is not None:
                remove_file(made, root)
            raise
    commit.checkpoint_if_due(root, version, snapshot.properties)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)


def _split(
    snapshot: Snapshot, gone: Mapping[int, Numbers], specs: list[Fields]
) -> tuple[list[int], dict[int, Numbers]]:
    """The files that lose all of their rows, and of the others all row numbers that are gone by now."""
    whole: list[int] = []
    partly: dict[int, Numbers] = {}
    for file, rows in sorted(gone.items()):
        before = snapshot.files.deleted.get(file)
        old = np.zeros(0, np.int64) if before is None else np.flatnonzero(~before)
        numbers = np.union1d(old, rows)
        if len(numbers) == records(snapshot, file):
            whole.append(file)
        else:
            partly[file] = numbers
    return whole, partly


def _marked(spec: Fields, vector: Fields, snapshot: Snapshot, file: int) -> Fields:
    rows = records(snapshot, file)
    if tracks_rows(snapshot):
        checked_numbers(snapshot, spec, rows)
    stats = _loosened(spec.get("stats") or "{}", rows)
    return {**spec, "dataChange": True, "stats": stats, "deletionVector": vector}


def _loosened(text: str, rows: int) -> str:
    """Statistics of which bounds are no longer tight, as text where it can be: numbers must stay as they are spelt."""
    found = json.loads(text)
    counted = found.get("numRecords")
    if isinstance(counted, int) and counted == rows:  # others count as none, and files with vectors need one
        if "tightBounds" not in found:
            return f'{text.rstrip()[:-1]},"tightBounds":false}}'
        if found["tightBounds"] is False:
            return text
        loose, count = _TIGHT.subn('"tightBounds":false}', text)
        if count:
            return loose
    return commit.compact_json({"numRecords": rows, "tightBounds": False})


def _size(specs: list[Fields], files: list[int]) -> int:
    return sum(int(specs[i]["size"]) for i in files)


def with_touched(done: Replaced, files: int) -> Replaced:
    """The same, counting as removed all files that were touched, as Delta counts those of an UPDATE."""
    return replace(done, removed_files=files)
