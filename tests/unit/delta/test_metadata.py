"""Changes of metadata meet other writers: what does not touch them is overtaken, what does is told by Delta's names."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gateway.delta.metadata import Alteration, alter
from gateway.delta.table import open_snapshot
from gateway.delta.write import append, create_table
from gateway.errors import UserError
from gateway.sqltypes import INT, StructField, struct


def _comment(text: str, reads: bool = False) -> Alteration:
    return Alteration("SET TBLPROPERTIES", {}, lambda action: action.update(description=text), reads)


@pytest.fixture
def root(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    create_table(path, struct(StructField("a", INT)))
    return path


def test_rows_that_were_added_meanwhile_do_not_matter(root: str) -> None:
    before = open_snapshot(root)
    append(root, [])
    assert alter(before, _comment("one")) == 2
    assert open_snapshot(root).comment == "one"


def test_unless_the_change_has_read_them(root: str) -> None:
    import pyarrow as pa

    before = open_snapshot(root)
    append(root, [pa.record_batch([pa.array([1], pa.int32())], ["a"])])
    with pytest.raises(UserError) as raised:
        alter(before, _comment("one", reads=True))
    assert raised.value.condition == "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"


def test_another_change_of_metadata_does(root: str) -> None:
    before = open_snapshot(root)
    alter(before, _comment("other"))
    with pytest.raises(UserError) as raised:
        alter(before, _comment("one"))
    assert raised.value.condition == "DELTA_METADATA_CHANGED"
    assert raised.value.retryable
    assert open_snapshot(root).comment == "other"


def test_a_checkpoint_of_parts_that_hold_different_actions(root: str) -> None:
    append(root, [])
    DeltaTable(root).create_checkpoint()
    log = Path(root, "_delta_log")
    whole = log / "00000000000000000001.checkpoint.parquet"
    actions = pq.read_table(whole)
    for part, names in ((1, ["txn"]), (2, actions.column_names)):
        pq.write_table(actions.select(names), log / f"{1:020}.checkpoint.{part:010}.{2:010}.parquet")
    for gone in (whole, log / "_last_checkpoint", *log.glob("*.json")):
        gone.unlink(missing_ok=True)
    assert alter(open_snapshot(root), _comment("one")) == 2
    assert open_snapshot(root).comment == "one"


@pytest.mark.parametrize("left", [1, 2])
def test_a_checkpoint_that_lacks_a_part_is_none(root: str, left: int) -> None:
    """Its metadata may be in the part that is not there, or be read before the commits that count."""
    append(root, [])
    DeltaTable(root).create_checkpoint()
    log = Path(root, "_delta_log")
    whole = log / "00000000000000000001.checkpoint.parquet"
    actions = pq.read_table(whole)
    names = {1: ["txn"], 2: actions.column_names}[left]
    pq.write_table(actions.select(names), log / f"{1:020}.checkpoint.{left:010}.{2:010}.parquet")
    for gone in (whole, log / "_last_checkpoint"):
        gone.unlink()
    assert alter(open_snapshot(root), _comment("one")) == 2
    assert open_snapshot(root).comment == "one"
