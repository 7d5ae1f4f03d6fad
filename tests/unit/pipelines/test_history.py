"""What is kept of runs, and what commits say of rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from gateway import sqltypes as t
from gateway.delta import write
from gateway.delta.restore import restore
from gateway.delta.table import open_snapshot
from gateway.errors import ServerError
from gateway.pipelines.definitions import STREAMING_TABLE, TEMPORARY_VIEW, Dataset, Definitions, Flow
from gateway.pipelines.expectations import Expectation, Outcome
from gateway.pipelines.history import CRASHED, History, Run, TableRun, new_run_id
from gateway.pipelines.warehouse import Warehouse, version, written
from gateway.sqltypes import quoted_text
from tests.live.tables import overwrite

T0 = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SCHEMA = t.struct(t.StructField("x", t.BIGINT))


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["x"])


def test_runs_are_found_again_newest_first(tmp_path: Path) -> None:
    past = History(Warehouse(tmp_path))
    assert past.runs("shop", 5) == []
    outcome = Outcome(Expectation("positive", "x > 0", "fail"), 10, 3, 2)
    table = TableRun("shop.t", "streaming table", "COMPLETED", T0, T0, 5, 4, None, 1, None, [outcome])
    past.add(Run("r1", "shop", T0, T0, "COMPLETED", None, ["shop.t"], [table]))
    past.add(Run("r2", "shop", T0 + timedelta(hours=1), None, CRASHED, "gone"))
    past.add(Run("r3", "other", T0 + timedelta(hours=2), T0, "FAILED", "bad"))
    assert [(r["run_id"], r["state"], r["ended"]) for r in past.runs("shop", 5)] == [
        ("r2", "CRASHED", None),
        ("r1", "COMPLETED", T0),
    ]
    assert past.runs("shop", 1)[0]["message"] == "gone"
    assert past.runs("shop", 5)[1]["full_refresh"] == ["shop.t"]
    (row,) = past.of_run("tables", "r1")
    assert (row["table_name"], row["rows_in"], row["rows_out"], row["version_before"], row["version_after"]) == (
        "shop.t",
        5,
        4,
        None,
        1,
    )
    (row,) = past.of_run("expectations", "r1")
    assert (row["name"], row["failing_rows"], row["checked_rows"], row["failing_rows_added"]) == ("positive", 3, 10, 2)
    assert past.of_run("tables", "r2") == []


def test_the_graph_of_a_run_is_kept(tmp_path: Path) -> None:
    past = History(Warehouse(tmp_path))
    flows = {
        "a": Flow("a", "a", (), ("json /in",)),
        "b": Flow("b", "b", ("a", "v"), ("spark_catalog.other.t",)),
        "more": Flow("more", "b", ("a",)),
    }
    datasets = {
        id_: Dataset(id_, kind, "shop" if kind != TEMPORARY_VIEW else "", name)
        for id_, kind, name in (("b", STREAMING_TABLE, "B"), ("a", STREAMING_TABLE, "A"), ("v", TEMPORARY_VIEW, "v"))
    }
    graph = Definitions(datasets, flows).lineage()
    assert graph == [
        ("shop.a", STREAMING_TABLE, ["json /in"]),
        ("v", TEMPORARY_VIEW, []),
        ("shop.b", STREAMING_TABLE, ["shop.a", "v", "other.t"]),
    ]
    past.add(Run("r1", "shop", T0, T0, "COMPLETED", graph=graph))
    assert [(row["name"], row["reads"]) for row in past.of_run("graph", "r1")] == [(n, reads) for n, _, reads in graph]


def test_history_is_plain_delta(tmp_path: Path) -> None:
    History(Warehouse(tmp_path)).add(Run("r1", "shop", T0, T0, "COMPLETED"))
    for name in ("runs", "tables", "graph", "expectations"):
        protocol = open_snapshot(str(tmp_path / "pipelines" / name)).protocol
        assert (protocol.reader, protocol.writer) == (1, 2)


def test_run_ids_differ() -> None:
    assert len({new_run_id() for _ in range(100)}) == 100


def test_rows_between_versions(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    assert version(folder) is None
    write.create_table(str(folder), SCHEMA, batches=[batch(1, 2)])
    write.append(str(folder), [batch(3)])
    write.append(str(folder), [batch(4, 5, 6)])
    assert version(folder) == 2
    assert written(folder, None, 2).rows == 6
    assert (written(folder, 0, 2).rows, written(folder, 0, 2).removed) == (4, False)
    assert written(folder, 2, 2).rows == 0
    overwrite(str(folder), [batch(7)])
    assert (written(folder, 2, 3).rows, written(folder, 2, 3).removed) == (1, True)


def test_restore_is_a_new_version_with_the_old_rows(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    write.create_table(folder, SCHEMA, batches=[batch(1, 2)])
    overwrite(folder, [batch()])
    assert open_snapshot(folder).num_rows == 0
    restore(folder, 0)
    snapshot = open_snapshot(folder)
    assert (snapshot.version, snapshot.num_rows) == (2, 2)
    with pytest.raises(ServerError, match="to version 9"):
        restore(folder, 9)
    assert open_snapshot(folder).version == 2


def test_folders_of_tables(tmp_path: Path) -> None:
    (tmp_path / "Mart").mkdir()
    warehouse = Warehouse(tmp_path)
    assert warehouse.folder("shop", "Silver") == tmp_path / "shop" / "silver"
    assert warehouse.folder("mart", "gold") == tmp_path / "Mart" / "gold"
    assert warehouse.folder("default", "t") == tmp_path / "default" / "t"


def test_literals() -> None:
    assert quoted_text(r"it's \d") == r"'it\'s \\d'"
