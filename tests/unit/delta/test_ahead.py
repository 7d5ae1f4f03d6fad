"""Who adds rows gets the newest version without its files, as long as commits are of files alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gateway.delta import log
from gateway.delta.listed import LateFiles
from gateway.delta.table import Snapshot, open_snapshot, open_to_add
from gateway.errors import GatewayError
from tests.conformance.session import Session, open_runner

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]})


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A table that was opened at its first version."""
    path = os.path.realpath(tmp_path / "t")
    write_deltalake(path, ROWS)
    open_snapshot(path)
    return path


def is_read(snapshot: Snapshot) -> bool:
    return "paths" in vars(snapshot.files)


def commit(root: str, version: int, *actions: Any) -> None:
    text = "".join(a if isinstance(a, str) else json.dumps(a) + "\n" for a in actions)
    Path(log.commit_path(root, version)).write_text(text, encoding="utf-8")


def test_files_are_read_once_they_are_asked_for(root: str) -> None:
    for version in range(1, 4):
        write_deltalake(root, ROWS, mode="append")
        found = open_to_add(root)
        assert found.version == version
        assert isinstance(found.files, LateFiles)
        assert not is_read(found)
    write_deltalake(root, ROWS, mode="append")
    assert len(found.files) == 4  # of its own version, not of the newest
    assert found.num_rows == 8
    newest = open_snapshot(root)
    assert newest.version == 4
    assert open_to_add(root) is newest


def test_rows_taken_out_and_files_put_together_say_nothing_of_the_table(root: str) -> None:
    table = DeltaTable(root)
    table.delete("id = 1")
    table.optimize.compact()
    found = open_to_add(root)
    assert found.version == table.version()
    assert not is_read(found)
    assert found.num_rows == 1


def test_what_says_more_of_the_table_is_read_as_a_whole(root: str) -> None:
    write_deltalake(root, pa.table({"id": [3], "more": [1.5]}), mode="append", schema_mode="merge")
    found = open_to_add(root)
    assert is_read(found)
    assert [c.name for c in found.columns] == ["id", "s", "more"]


@pytest.mark.parametrize(
    "actions",
    [
        ({"commitInfo": {}}, {"domainMetadata": {"domain": "d", "configuration": "", "removed": False}}),
        ({"commitInfo": {}}, {"of the future": {}}),
        (),
    ],
)
def test_other_actions_are_none_of_files(root: str, actions: tuple[Any, ...]) -> None:
    commit(root, 1, *actions)
    assert is_read(open_to_add(root))


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("no JSON", ("{",)),
        ("no objects", ("[]\n",)),
        ("a file that is added and removed", ({"add": {"path": "x"}}, {"remove": {"path": "x"}})),
    ],
)
def test_damaged_commits_are_told(root: str, name: str, actions: tuple[Any, ...]) -> None:
    commit(root, 1, *actions)
    with pytest.raises(GatewayError) as told:
        open_to_add(root)
    assert told.value.condition == "DELTA_LOG_CORRUPT", name


def test_a_table_that_was_made_anew(root: str) -> None:
    write_deltalake(root, ROWS, mode="append")
    assert open_to_add(root).version == 1
    shutil.rmtree(root)
    write_deltalake(root, pa.table({"other": [1]}))
    write_deltalake(root, pa.table({"other": [2]}), mode="append")
    found = open_to_add(root)
    assert [c.name for c in found.columns] == ["other"]
    shutil.rmtree(root)
    with pytest.raises(GatewayError, match="is not a Delta table"):
        open_to_add(root)


def test_files_of_another_table_in_the_place_are_none_of_it(root: str) -> None:
    write_deltalake(root, ROWS, mode="append")
    found = open_to_add(root)
    shutil.rmtree(root)
    for _ in range(2):
        write_deltalake(root, ROWS, mode="append")
    with pytest.raises(GatewayError) as told:
        len(found.files)
    assert told.value.condition == "DELTA_FILE_NOT_FOUND"


def test_links_are_no_commits(root: str, tmp_path: Path) -> None:
    """One that leads elsewhere is refused, as when all of the log is read."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "c.json").write_text(json.dumps({"commitInfo": {}}), encoding="utf-8")
    os.symlink(other / "c.json", log.commit_path(root, 1))
    with pytest.raises(GatewayError) as told:
        open_to_add(root)
    assert told.value.condition == "PATH_NOT_ALLOWED"


def test_a_table_that_is_far_behind_is_read(root: str) -> None:
    for version in range(1, 40):
        commit(root, version, {"commitInfo": {}})
    assert is_read(open_to_add(root))


def test_statements(tmp_path: Path) -> None:
    """What is inserted is made of the version that is there, and is there for the next statement."""
    session = Session(open_runner(tmp_path))
    session.execute("CREATE TABLE t (id BIGINT, name STRING)")
    for i in range(3):
        session.execute(f"INSERT INTO t VALUES ({i}, 'x')")
    session.execute("INSERT INTO t SELECT id + 10, name FROM t WHERE id < 2")
    session.execute("INSERT INTO t SELECT (SELECT max(id) + 100 FROM t), 'y'")
    session.execute("INSERT INTO t SELECT 7, _metadata.file_name FROM t WHERE id = 0")
    rows = session.execute("SELECT id FROM t ORDER BY id").rows()
    assert rows == [[0], [1], [2], [7], [10], [11], [111]]
    assert session.execute("SELECT count(*) FROM t WHERE name LIKE 'part-%'").rows() == [[1]]
