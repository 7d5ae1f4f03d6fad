"""A log whose first commits are gone is an error, never a smaller table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gateway.delta.table import forget, open_snapshot
from gateway.delta.write import append, create_table
from gateway.errors import ServerError
from gateway.sqltypes import BIGINT, StructField, struct


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], ["id"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    create_table(str(path), struct(StructField("id", BIGINT)), batches=[batch(1)])
    for value in range(2, 14):
        append(str(path), [batch(value)])
    forget(str(path))
    return path


def test_later_commits_alone_are_refused(table: Path) -> None:
    log = table / "_delta_log"
    for file in log.iterdir():
        if "checkpoint" in file.name:
            file.unlink()
    (log / f"{0:020}.json").unlink()
    forget(str(table))
    with pytest.raises(ServerError, match="lacks its first commits") as caught:
        open_snapshot(str(table))
    assert caught.value.condition == "DELTA_LOG_CORRUPT"


def test_a_checkpoint_stands_for_them(table: Path) -> None:
    log = table / "_delta_log"
    assert any("checkpoint" in f.name for f in log.iterdir())
    for version in range(5):
        (log / f"{version:020}.json").unlink()
    forget(str(table))
    assert open_snapshot(str(table)).num_rows == 13
