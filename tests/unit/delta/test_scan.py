"""Reading tables through DataFusion: pruning, readers, and the hazards that would give wrong rows silently."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gateway.delta.predicates import Comparison
from gateway.delta.scan import DATASET, EMPTY, NATIVE, plan_scan
from gateway.delta.table import open_snapshot
from gateway.errors import ServerError


def context(*, statistics: bool = False) -> datafusion.SessionContext:
    """As the engine makes it when floats are read."""
    text = "true" if statistics else "false"
    return datafusion.SessionContext(datafusion.SessionConfig({"datafusion.execution.collect_statistics": text}))


def rows(root: Path | str, columns: list[str], where: str = "", predicates: Any = (), order: str = "1") -> list[dict[str, Any]]:
    plan = plan_scan(open_snapshot(str(root)), columns, predicates)
    ctx = context()
    plan.register(ctx, "t")
    found: list[dict[str, Any]] = ctx.sql(f"select * from t {where} order by {order}").to_arrow_table().to_pylist()
    return found


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    for start in (0, 10, 20):
        write_deltalake(tmp_path / "t", pa.table({"Id": range(start, start + 10), "s": [f"k{i}" for i in range(start, start + 10)]}), mode="append")
    return tmp_path / "t"


def test_reads_and_prunes(plain: Path) -> None:
    predicate = Comparison("Id", "=", pa.scalar(15, pa.int64()))
    plan = plan_scan(open_snapshot(str(plain)), ["s", "Id"], [predicate])
    assert (plan.reader, plan.files_kept, plan.files_total, plan.num_rows) == (NATIVE, 1, 3, 10)
    assert rows(plain, ["s", "Id"], 'where "Id" = 15', [predicate]) == [{"s": "k15", "Id": 15}]


def test_no_file_left_is_an_empty_table(plain: Path) -> None:
    predicate = Comparison("Id", ">", pa.scalar(99, pa.int64()))
    assert plan_scan(open_snapshot(str(plain)), ["Id"], [predicate]).reader == EMPTY
    assert rows(plain, ["Id"], "", [predicate]) == []


def test_new_version_is_seen_and_old_snapshot_stays(plain: Path) -> None:
    old = open_snapshot(str(plain))
    write_deltalake(plain, pa.table({"Id": [99], "s": ["z"]}), mode="append")
    assert (old.num_rows, open_snapshot(str(plain)).num_rows) == (30, 31)
    assert open_snapshot(str(plain)) is open_snapshot(str(plain))


def test_vanished_file_is_named(plain: Path) -> None:
    snapshot = open_snapshot(str(plain))
    os.unlink(snapshot.files.paths[0])
    with pytest.raises(ServerError, match=os.path.basename(snapshot.files.paths[0])) as caught:
        plan_scan(snapshot, ["Id"])
    assert caught.value.condition == "DELTA_FILE_NOT_FOUND"


def test_truncated_file_is_named(plain: Path) -> None:
    snapshot = open_snapshot(str(plain))
    with open(snapshot.files.paths[0], "r+b") as file:
        file.truncate(100)
    with pytest.raises(ServerError, match="its log says"):
        plan_scan(snapshot, ["Id"])


