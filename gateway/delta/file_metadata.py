"""What `_metadata` tells of a table's rows: the file of each, its place there, its number and version if it is tracked."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

import pyarrow as pa

from gateway import sqltypes as t
from gateway.delta.dataset import POSITION
from gateway.delta.features import refused
from gateway.delta.logged import specs_of
from gateway.delta.properties import ROW_TRACKING
from gateway.delta.replay import Fields
from gateway.delta.row_ids import hidden_columns, tracks_rows
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.errors import ServerError

#: Fields of it by their names, as Spark has them.
OF_FILES = {
    "file_path": t.STRING,
    "file_name": t.STRING,
    "file_size": t.BIGINT,
    "file_block_start": t.BIGINT,
    "file_block_length": t.BIGINT,
    "file_modification_time": t.TIMESTAMP,
}
ROW_INDEX, ROW_ID, BASE, DEFAULT, VERSION = (
    *("row_index", "row_id", "base_row_id", "default_row_commit_version", "row_commit_version"),
)
_BLOCK = 4 << 20  # files up to it are read by one task of Spark, larger ones by as many as it has cores
_LAST_MS = 253_402_300_800_000  # the year 10000
_PATH = "/_-!.~'()*:@&=+$,;"  # what Java leaves as it is in the path of a URI


@dataclass(frozen=True, slots=True)
class Described:
    """A snapshot with more columns, which tell of files and rows; `columns` are their names by what they tell.

    `row_id` and `row_commit_version` are those that files hold, NULL where a row has none of its own. `blocks` says
    whether Spark reads each file as one block.
    """

    snapshot: Snapshot
    columns: dict[str, str]
    tracked: bool
    blocks: bool


def described(snapshot: Snapshot) -> Described:
    """The snapshot with columns for `_metadata`: all but those of files cost nothing unless they are read."""
    taken = {c.name.lower() for c in snapshot.columns}
    specs = specs_of(snapshot)
    tracked = tracks_rows(snapshot)
    facts: dict[str, pa.Array] = _facts(snapshot, specs)
    more: list[Column] = []
    names: dict[str, str] = {}

    def named(field: str, physical: str | None, data_type: t.DataType, nullable: bool = False) -> None:
        names[field] = _free(f"_metadata {field}", taken)
        more.append(Column(names[field], physical or names[field], None, data_type, nullable))

    for field, data_type in OF_FILES.items():
        named(field, None, data_type)
    if snapshot.protocol.has("deletionVectors") or tracked:
        named(ROW_INDEX, POSITION, t.BIGINT)
    if tracked:
        for field, column in zip((ROW_ID, VERSION), hidden_columns(snapshot), strict=True):
            if column.physical.lower() in taken:
                raise refused([ROW_TRACKING], snapshot.root, "read")
            named(field, column.physical, t.BIGINT, nullable=True)
        for field, key in ((BASE, "baseRowId"), (DEFAULT, "defaultRowCommitVersion")):
            facts[field] = pa.array([_number(snapshot, spec, key) for spec in specs], pa.int64())
            named(field, None, t.BIGINT)
    constants = {names[field]: values for field, values in facts.items()}
    files = replace(snapshot.files, partitions={**snapshot.files.partitions, **constants})
    widened = replace(
        snapshot,
        columns=(*snapshot.columns, *more),
        partition_columns=(*snapshot.partition_columns, *constants),
        files=files,
        notes={},
    )
    return Described(widened, names, tracked, all(size <= _BLOCK for size in files.sizes.tolist()))


def _facts(snapshot: Snapshot, specs: Sequence[Fields]) -> dict[str, pa.Array]:
    """What is told of each file."""
    paths = [_uri_path(path) for path in snapshot.files.paths]
    sizes = pa.array(snapshot.files.sizes.tolist(), pa.int64())
    changed = [_number(snapshot, spec, "modificationTime", _LAST_MS) * 1000 for spec in specs]
    return {
        "file_path": pa.array([f"file:{path}" for path in paths], pa.string()),
        "file_name": pa.array([path.rsplit("/", 1)[-1] for path in paths], pa.string()),
        "file_size": sizes,
        "file_block_start": pa.array([0] * len(paths), pa.int64()),
        "file_block_length": sizes,
        "file_modification_time": pa.array(changed, t.TIMESTAMP.arrow()),
    }


def _number(snapshot: Snapshot, spec: Fields, key: str, most: int = 2**62) -> int:
    found = spec.get(key)
    if type(found) is not int or not 0 <= found < most:
        text = f"The log of the Delta table {snapshot.root} has no {key} for its file {spec['path']}."
        raise ServerError("DELTA_LOG_CORRUPT", text)
    return found


def _uri_path(path: str) -> str:
    """A path as `java.net.URI` spells it: of what is not ASCII only control characters and spaces are encoded."""
    return "".join(c if ord(c) > 127 and unicodedata.category(c)[0] not in "CZ" else quote(c, safe=_PATH) for c in path)


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name = f"_{name}"
    return name
