"""A Parquet file without a log that another of its name, size and time has replaced: none of what was known of it holds."""

from __future__ import annotations

import os
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


def _file(session: Session, folder: Path) -> Path:
    """A place for a file that statements may read."""
    made = Path(session.runner.environment(session.state).tables.paths.roots[-1]) / folder.name
    made.mkdir()
    return made / "a.parquet"
