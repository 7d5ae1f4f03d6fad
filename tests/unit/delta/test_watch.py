"""Files that are cut off and filled again while somebody reads them: what was seen of them must be of one moment."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.delta import files, watch
from gateway.delta.containment import look
from gateway.delta.scan import plan_scan
from gateway.errors import ServerError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "a.parquet")
    return tmp_path


def _size(found: os.stat_result, size: int) -> os.stat_result:
    return os.stat_result([*found[:6], size, *found[7:10]], {"st_ctime_ns": found.st_ctime_ns})


def test_a_file_that_grows_behind_its_time_of_change_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, lstat = watch.Watch([str(folder / "a.parquet")], (str(folder),), contents=True), os.lstat
    assert seen.unchanged()
    monkeypatch.setattr(os, "lstat", lambda path: _size(lstat(path), 0))
    assert not seen.unchanged()


def test_a_file_that_was_empty_when_it_was_listed_is_not_described_by_what_is_opened_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "look", lambda path, within: _size(look(path, within), 0))
    with pytest.raises(ServerError, match=r"FAILED_READ_FILE.*instead of 0"):
        files.open_files(str(folder))


def test_a_file_that_was_whole_and_is_empty_is_no_table_of_no_rows(folder: Path) -> None:
    snapshot = files.open_files(str(folder))
    (folder / "a.parquet").write_bytes(b"")
    snapshot.files.sizes[0] = 0
    with pytest.raises(ServerError, match=r"FAILED_READ_FILE.*is empty"):
        plan_scan(snapshot, ["id"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of a table that nobody has touched for a while."""
    (tmp_path / "schema" / "t").mkdir(parents=True)
    time.sleep(2 * watch._TICK_NS / 1e9)  # what changed within a tick of the clock may have changed twice
    return tmp_path / "schema" / "t"


def test_what_is_made_beside_a_table_has_not_moved_it(place: Path) -> None:
    seen = watch.FolderWatch(str(place), (str(place.parents[1]),))
    (place.parent / "other").mkdir()
    assert seen.unchanged()
    (place.parent / "other").rmdir()
    assert seen.held()


@pytest.mark.parametrize("of", ["table", "schema"])
def test_a_folder_that_was_away_for_a_moment_has_moved(place: Path, of: str) -> None:
    seen = watch.FolderWatch(str(place), (str(place.parents[1]),))
    moved = place if of == "table" else place.parent
    moved.rename(moved.with_name("away"))
    moved.with_name("away").rename(moved)
    assert not seen.unchanged()


@pytest.mark.parametrize("by", ["nothing", "another"])
def test_a_folder_that_was_removed_has_moved(place: Path, by: str) -> None:
    seen = watch.FolderWatch(str(place), (str(place.parents[1]),))
    shutil.rmtree(place)
    if by == "another":
        place.mkdir()
    assert not seen.unchanged()


def test_a_folder_that_has_just_changed_may_have_moved(place: Path) -> None:
    (place / "a.parquet").touch()
    seen = watch.FolderWatch(str(place), (str(place.parents[1]),))
    (place.parent / "other").mkdir()
    assert not seen.unchanged()
