"""A log whose `_last_checkpoint` names a checkpoint that is not there is read from its list of files, as Delta reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gateway.delta import commit
from gateway.delta.table import forget, open_snapshot
from gateway.errors import ServerError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 to 6 of a row each, and a checkpoint of version 2."""
    root = tmp_path / "t"
    for value in range(7):
        write_deltalake(root, pa.table({"a": [value]}), mode="append")
        if value == 2:
            DeltaTable(root).create_checkpoint()
    return root


def hint(root: Path, **named: Any) -> None:
    (root / "_delta_log" / "_last_checkpoint").write_text(json.dumps({"size": 3, **named}))
    forget(str(root))


def checkpoint(root: Path) -> Path:
    (path,) = (root / "_delta_log").glob("*.checkpoint.parquet")
    return path


@pytest.mark.parametrize("named", [{"version": 4}, {"version": 4, "parts": 2}, {"version": 6}, {"version": 40}])
@pytest.mark.parametrize("kept", [True, False])
def test_a_lost_checkpoint_is_done_without(table: Path, named: dict[str, Any], kept: bool) -> None:
    if not kept:
        checkpoint(table).unlink()
    hint(table, **named)
    for version in (None, 6, 5, 4, 3, 1):
        snapshot = open_snapshot(str(table), version)
        expected = 6 if version is None else version
        assert (snapshot.version, len(snapshot.files)) == (expected, expected + 1)
        forget(str(table))


def test_what_only_the_lost_one_told_is_an_error(table: Path) -> None:
    checkpoint(table).unlink()
    for version in range(3):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    hint(table, version=2)
    with pytest.raises(ServerError) as caught:
        open_snapshot(str(table))
    assert caught.value.condition == "DELTA_LOG_CORRUPT"


def test_a_new_checkpoint_takes_the_place_of_a_lost_one(table: Path) -> None:
    hint(table, version=4)
    commit.checkpoint(str(table), 6)
    assert json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"] == 6
    assert len(DeltaTable(table).file_uris()) == 7
