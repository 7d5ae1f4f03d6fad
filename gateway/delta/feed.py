"""The change data feed as we write it: beside a table's files those with the rows that a commit changes, as they were and are.

What is only added, or leaves with its whole file, readers take from data files; so do they with rows that a deletion vector
takes out. A commit that rewrites rows tells of all that it changes in files of their own: readers of it heed no others then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.delta.commit import Action
from gateway.delta.datafiles import DataFileWriter
from gateway.delta.dataset import DataFile, read_file
from gateway.delta.indexed import NUMBER
from gateway.delta.properties import FEED, FEED_COLUMNS
from gateway.delta.scan import verify_files
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.sqltypes import BIGINT, STRING, TIMESTAMP

FOLDER = "_change_data"
CHANGE, VERSION, TIME = FEED_COLUMNS
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
#: What became of a row on its way into a table: it stays as it is, it is new, it is another's new form.
COPIED, INSERTED, UPDATED = 0, 1, 2
_TOLD = {INSERTED: INSERT, UPDATED: AFTER}
COLUMNS = tuple(Column(n, n, None, t) for n, t in ((CHANGE, STRING), (VERSION, BIGINT), (TIME, TIMESTAMP)))

#: Row numbers by file.
Places = Mapping[int, npt.NDArray[np.int64]]


def keeps_feed(snapshot: Snapshot) -> bool:
    """Whether a table tells of each change of its rows."""
    return snapshot.properties.get(FEED, "").lower() == "true"


@dataclass(slots=True)
class Feed:
    """What one commit tells: the rows that are no more, by the word for it, and those that come, as they pass."""

    snapshot: Snapshot
    gone: Mapping[str, Places]
    _writer: DataFileWriter = field(init=False)

    def __post_init__(self) -> None:
        one = self.snapshot
        columns = (*one.columns, COLUMNS[0])
        plain = {NUMBER: "0"}  # nobody tells statistics of such files
        self._writer = DataFileWriter(one.root, columns, one.partition_columns, plain, folder=FOLDER, prefix="cdc")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._writer.__exit__(kind, error, trace)

    def passed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches whose column behind the table's says what became of each row; the new ones are told."""
        width = len(self.snapshot.columns)
        for batch in batches:
            kinds = batch.column(width)
            for kind, word in _TOLD.items():
                self._tell(batch.select(range(width)).filter(pc.equal(kinds, kind)), word)
            yield batch

    def finish(self) -> list[Action]:
        """Tell of the rows that are no more, and close the files; their ``cdc`` actions."""
        for word, places in self.gone.items():
            for file, rows in places.items():
                for batch in rows_at(self.snapshot, file, rows):
                    self._tell(batch, word)
        return [_cdc(action["add"]) for action in self._writer.finish()]

    def _tell(self, rows: pa.RecordBatch, word: str) -> None:
        if rows.num_rows:
            words = pa.array([word], pa.string()).take(pa.array(np.zeros(rows.num_rows, np.int64)))
            self._writer.write(rows.append_column(CHANGE, words))


def _cdc(add: Mapping[str, Any]) -> Action:
    kept = {name: add[name] for name in ("path", "partitionValues", "size")}
    return {"cdc": {**kept, "dataChange": False}}


def rows_at(
    snapshot: Snapshot, file: int, rows: npt.NDArray[np.int64], more: Sequence[Column] = ()
) -> Iterator[pa.RecordBatch]:
    """Some rows of a file of a table by their numbers, ascending; `more` columns behind the table's."""
    files = snapshot.files
    columns = (*snapshot.columns, *more)
    wanted = np.zeros(int(rows[-1]) + 1 if len(rows) else 0, dtype=bool)
    wanted[rows] = True
    constants = {name: values[file] for name, values in files.partitions.items()}
    read = DataFile(files.paths[file], int(files.sizes[file]), constants)
    verify_files(snapshot.root, [read], snapshot.within)
    schema = pa.schema([pa.field(c.name, c.type.arrow()) for c in columns])
    start = 0
    for batch in read_file(read, columns, schema, snapshot.within):
        part = wanted[start : start + batch.num_rows]
        start += batch.num_rows
        if part.any():
            yield batch.slice(0, len(part)).filter(pa.array(part))
        if start >= len(wanted):
            return
