"""What is looked at in checkpoints before they are believed, and which files are checkpoints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from gateway.delta.checkpoint_facts import SIDECAR, VECTOR, says
from gateway.delta.log import is_checkpoint
from gateway.delta.table import forget, open_snapshot
from gateway.delta.write import append, create_table
from gateway.errors import GatewayError, ServerError
from gateway.sqltypes import BIGINT, StructField, struct

_VECTOR = pa.struct([("storageType", pa.string()), ("pathOrInlineDv", pa.string())])
_ADD = pa.struct([("path", pa.string()), ("deletionVector", _VECTOR)])
_SIDECAR = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64())])


def rows(add: object, sidecar: object, spelt: str = "sidecar") -> pa.Table:
    return pa.table({"add": pa.array([None, add], _ADD), spelt: pa.array([None, sidecar], _SIDECAR)})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (rows({"path": "a"}, None), set()),
        (rows({"path": "a", "deletionVector": {"storageType": "i"}}, None), {VECTOR}),
        (rows({"path": "a"}, {"path": "b"}), {SIDECAR}),
        (rows({"path": "a"}, {"sizeInBytes": 1}), {SIDECAR}),
        (rows({"path": "a"}, {"path": "b"}, "Sidecar"), {SIDECAR}),
        (pa.table({"add": pa.array([{"path": "a"}])}), set()),
    ],
)
def test_a_column_says_something_where_a_row_has_a_value(written: pa.Table, said: set[str], tmp_path: Path) -> None:
    path = str(tmp_path / "c.parquet")
    pq.write_table(written, path)
    assert {column for column in (SIDECAR, VECTOR) if says(path, column, (str(tmp_path),))} == said


def test_another_file_under_the_name_is_looked_at_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "c.parquet")
    pq.write_table(rows({"path": "a"}, None), path)
    assert not says(path, SIDECAR, (str(tmp_path),))
    pq.write_table(rows({"path": "a"}, {"path": "b"}), path)
    assert says(path, SIDECAR, (str(tmp_path),))


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("00000000000000000010.checkpoint.parquet", True),
        ("00000000000000000010.checkpoint.0000000001.0000000002.parquet", True),
        ("00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", True),
        ("00000000000000000010.checkpoint.parquet#1", False),  # as it is while it is written
        ("00000000000000000010.checkpoint", False),
        ("00000000000000000010.json", False),
        ("0000000010.checkpoint.parquet", False),
    ],
)
def test_names_of_checkpoints(name: str, is_one: bool) -> None:
    assert is_checkpoint(name) is is_one


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], ["id"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    create_table(str(path), struct(StructField("id", BIGINT)), batches=[batch(1)])
    for value in range(2, 5):
        append(str(path), [batch(value)])
    forget(str(path))
    return path


def test_a_checkpoint_that_is_being_written_is_none_yet(table: Path) -> None:
    (table / "_delta_log" / f"{3:020}.checkpoint.parquet#1").write_bytes(b"PAR1")
    assert open_snapshot(str(table)).num_rows == 4


def test_a_checkpoint_that_is_being_written_hides_no_commit(table: Path) -> None:
    log = table / "_delta_log"
    commit = log / f"{3:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    vector = {"storageType": "u", "pathOrInlineDv": "0" * 20, "offset": 1, "sizeInBytes": 34, "cardinality": 1}
    for action in actions:
        action.get("add", {})["deletionVector"] = vector
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (log / f"{3:020}.checkpoint.parquet#1").write_bytes(b"PAR1")
    with pytest.raises(ServerError, match="lists a deletion vector"):
        open_snapshot(str(table))


def test_a_checkpoint_that_is_not_read_keeps_nobody_out(tmp_path: Path) -> None:
    """One before another that is whole is for time travel alone: it may lead out of the folder."""
    root = os.path.realpath(tmp_path / "t")
    for version in range(9):
        write_deltalake(root, pa.table({"id": [version]}), mode="append")
        if version in (3, 6):
            DeltaTable(root).create_checkpoint()
    log = Path(root, "_delta_log")
    old, newer = (log / f"{version:020d}.checkpoint.parquet" for version in (3, 6))
    outside = tmp_path / "outside.parquet"
    pq.write_table(pq.read_table(old), outside)
    sidecar = pa.array([{"path": str(outside), "sizeInBytes": 1}] * pq.read_metadata(old).num_rows, _SIDECAR)
    without = pq.read_table(old).select([name for name in pq.read_schema(old).names if name != "sidecar"])
    pq.write_table(without.append_column("sidecar", sidecar), old)
    assert open_snapshot(root).num_rows == 9
    for version in (3, 5):
        with pytest.raises(GatewayError) as told:
            open_snapshot(root, version)
        assert told.value.condition == "PATH_NOT_ALLOWED", told.value
    assert open_snapshot(root, 6).num_rows == 7
    newer.write_bytes(b"")
    forget(root)
    with pytest.raises(GatewayError) as told:
        open_snapshot(root)
    assert told.value.condition == "PATH_NOT_ALLOWED"
