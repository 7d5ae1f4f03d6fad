"""Files, of tables or without a log, that others of their names, sizes and times replace: nothing known of them holds."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.runner.session import Session

# Seconds until a file no longer counts as one that may be changing: before, our own reader reads it, which keeps nothing.
_SETTLED = 0.1


def _written(path: Path, columns: Mapping[str, Sequence[int]], in_place: bool) -> None:
    """A file with the time of the one before, in its place or over it, as `cp -p` and archives leave them."""
    made = path.with_name("_made")
    made.parent.mkdir(exist_ok=True)
    arrays = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), made, compression="none", use_dictionary=False, store_schema=False)
    before = path.stat() if path.exists() else None
    assert before is None or made.stat().st_size == before.st_size
    if in_place:
        path.write_bytes(made.read_bytes())
    else:
        os.replace(made, path)
    if before is not None:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    time.sleep(_SETTLED)


@pytest.mark.parametrize("in_place", [False, True])
def test_rows_are_left_out_by_what_the_new_file_says(session: Session, tmp_path: Path, in_place: bool) -> None:
    file = _file(session, tmp_path)
    for values, want in (([1, 2, 3, 4], 0), ([91, 92, 3, 4], 2), ([1, 2, 3, 4], 0), ([91, 92, 93, 94], 4)):
        _written(file, {"x": values}, in_place)
        assert [session.rows(f"SELECT count(*) FROM parquet.`{file}` WHERE x > 50") for _ in range(3)] == [
            [(want,)]
        ] * 3


@pytest.mark.parametrize("in_place", [False, True])
def test_columns_are_where_the_new_file_has_them(session: Session, tmp_path: Path, in_place: bool) -> None:
    file = _file(session, tmp_path)
    x, y = {"x": [1, 2, 3, 4]}, {"y": [101, 102, 103, 104]}
    for columns in (x | y, y | x):
        _written(file, columns, in_place)
        assert session.rows(f"SELECT sum(x), sum(y), min(x), max(y) FROM parquet.`{file}`") == [(10, 410, 1, 104)]


@pytest.mark.parametrize("in_place", [False, True])
def test_tables_that_are_copied_over_others_are_read(session: Session, tmp_path: Path, in_place: bool) -> None:
    """Their files have the same names, as those of tables that programs make for others."""
    table = _file(session, tmp_path).parent
    for first, names in ((1, "xy"), (91, "xy"), (1, "yx"), (91, "yx")):
        made = tmp_path / f"{first}{names}"
        _table(made, {name: range(first, first + 4) for name in names})
        if not in_place:
            shutil.rmtree(table)
        shutil.copytree(made, table, dirs_exist_ok=True)  # with the times that they were written at
        time.sleep(_SETTLED)
        large, place = 4 if first == 91 else 0, f"delta.`{table}`"
        for _ in range(2):
            assert session.rows(f"SELECT * FROM {place}") == [(first + i, first + i) for i in range(4)]
            assert session.rows(f"SELECT count(*), sum(x) FROM {place}") == [(4, 4 * first + 6)]
            assert session.rows(f"SELECT count(*) FROM {place} WHERE x > 50") == [(large,)]
            assert session.run(f"SELECT * FROM {place}").columns[0][0] == names[0]


def _table(folder: Path, columns: Mapping[str, Sequence[int]]) -> None:
    """A Delta table of one version and one file, as if it was written a day ago."""
    _written(folder / "a.parquet", columns, False)
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in columns]
    bounds = {kind: {n: take(v) for n, v in columns.items()} for kind, take in (("minValues", min), ("maxValues", max))}
    metadata = {
        "id": "0",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    file = {
        "path": "a.parquet",
        "partitionValues": {},
        "size": (folder / "a.parquet").stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 4, **bounds, "nullCount": dict.fromkeys(columns, 0)}).ljust(200),
    }
    actions = ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, {"add": file})
    log = folder / "_delta_log" / f"{0:020}.json"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for path in (log, folder / "a.parquet"):
        os.utime(path, (time.time() // 86_400 * 86_400 - 86_400,) * 2)


def _file(session: Session, folder: Path) -> Path:
    """A place for a file that statements may read."""
    made = Path(session.runner.environment(session.state).tables.paths.roots[-1]) / folder.name
    made.mkdir()
    return made / "a.parquet"
