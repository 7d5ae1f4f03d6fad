"""OPTIMIZE that puts rows in an order: no row changes, what is near in several columns lies near, told as Delta tells it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway import sqltypes as t
from gateway.delta.ordering import ordered
from gateway.delta.schema import Column
from gateway.errors import UnsupportedError
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import folder_of, newest_commit, newest_info, rows_elsewhere


def _metrics(session: Session, statement: str) -> dict[str, Any]:
    ((_, metrics),) = session.rows(statement)
    found: dict[str, Any] = metrics
    return found


def test_neighbours_in_both_columns_lie_near() -> None:
    columns = [Column(n, n, None, t.INT) for n in ("a", "b")]
    a, b = (x.ravel() for x in np.meshgrid(np.arange(64), np.arange(64)))
    shuffled = np.random.default_rng(1).permutation(len(a))
    rows = pa.table({"a": pa.array(a[shuffled], pa.int32()), "b": pa.array(b[shuffled], pa.int32())})
    found = pa.Table.from_batches(ordered(rows, columns, [("a",), ("b",)]))
    assert sorted(found.to_pylist(), key=str) == sorted(rows.to_pylist(), key=str)
    parts = [found.slice(at, 256) for at in range(0, 4096, 256)]
    spans = [len(set(part.column(name).to_pylist())) for part in parts for name in ("a", "b")]
    assert max(spans) <= 18  # a sixteenth of the rows, a quarter of the values of either column


def test_null_comes_first_and_types_with_an_order_have_one() -> None:
    values: dict[str, tuple[t.DataType, list[Any]]] = {
        "s": (t.STRING, ["b", None, "a"]),
        "d": (t.DOUBLE, [float("nan"), None, -1.0]),
        "f": (t.BOOLEAN, [True, None, False]),
        "n": (t.decimal(5, 2), [None, None, None]),
    }
    columns = [Column(n, n, None, kind) for n, (kind, _) in values.items()]
    rows = pa.table({n: pa.array(v, kind.arrow()) for n, (kind, v) in values.items()})
    for names in (["s"], ["d"], ["f"], ["s", "d"], ["n", "f", "s"]):
        found = pa.Table.from_batches(ordered(rows, columns, [(n,) for n in names]))
        assert found.column("s").to_pylist() == [None, "a", "b"], names


@pytest.fixture
def parted(session: Session) -> Session:
    """``t`` with two partitions of two files each."""
    session.run("CREATE TABLE t (id INT, s STRING, p INT) PARTITIONED BY (p)")
    for start in (0, 50):
        session.run(
            f"INSERT INTO t SELECT CAST(id AS INT), CAST(id % 7 AS STRING), id % 2 FROM range({start}, {start + 50})"
        )
    return session


def test_rows_are_put_in_order_within_partitions(parted: Session) -> None:
    before = sorted(parted.rows("SELECT * FROM t"))
    metrics = _metrics(parted, "OPTIMIZE t ZORDER BY (id, S)")
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["numBins"]) == (2, 4, 2)
    merged = {"num": 4, "size": metrics["filesRemoved"]["totalSize"]}
    assert metrics["zOrderStats"] == {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": merged,
        "inputNumCubes": 0,
        "mergedFiles": merged,
        "numOutputCubes": 2,
        "mergedNumCubes": None,
    }
    assert newest_info(parted)["operationParameters"]["zOrderBy"] == '["id","S"]'
    assert not any(a["add"]["dataChange"] for a in newest_commit(parted) if "add" in a)
    assert sorted(rows_elsewhere(parted)) == before
    metrics = _metrics(parted, "OPTIMIZE t WHERE p = 1 ZORDER BY s")
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["partitionsOptimized"]) == (1, 1, 1)
    rows = [row["s"] for row in _lying(parted)]
    assert rows == sorted(rows)


def _lying(session: Session) -> list[dict[str, Any]]:
    """The rows of the one file that the newest commit has added, as they lie there."""
    (add,) = [a["add"] for a in newest_commit(session) if "add" in a]
    found: list[dict[str, Any]] = pq.read_table(folder_of(session) / add["path"]).to_pylist()
    return found


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("OPTIMIZE t ZORDER BY (p)", "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        ("OPTIMIZE t ZORDER BY (nope)", "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        ("OPTIMIZE t ZORDER BY ()", "PARSE_SYNTAX_ERROR"),
        ("OPTIMIZE c ZORDER BY (id)", "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        ("OPTIMIZE c WHERE id = 1", "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    ],
)
def test_orders_that_are_none(parted: Session, statement: str, condition: str) -> None:
    parted.run("CREATE TABLE c (id INT) CLUSTER BY (id)")
    assert refused(parted, statement).condition == condition


def test_nested_values_have_no_order(session: Session) -> None:
    session.run("CREATE TABLE t (a ARRAY<INT>, s STRUCT<x: INT>)")
    session.run("INSERT INTO t VALUES (array(1), named_struct('x', 1))")
    assert isinstance(refused(session, "OPTIMIZE t ZORDER BY (a)"), UnsupportedError)
    assert _metrics(session, "OPTIMIZE t ZORDER BY (s.x)")["numFilesAdded"] == 1


def test_a_clustered_table_is_put_in_its_order(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, s STRING) CLUSTER BY (id, s)")
    for start in (0, 50):
        session.run(f"INSERT INTO t SELECT CAST(id AS INT), CAST(id % 7 AS STRING) FROM range({start}, {start + 50})")
    metrics = _metrics(session, "OPTIMIZE t")
    removed = {"numFiles": 2, "size": metrics["filesRemoved"]["totalSize"]}
    nothing = {"numFiles": 0, "size": 0}
    assert metrics["zOrderStats"] is None and metrics["clusteringStats"] == {
        "inputZCubeFiles": nothing,
        "inputOtherFiles": removed,
        "inputNumZCubes": 0,
        "mergedFiles": removed,
        "numOutputZCubes": 1,
    }
    assert newest_info(session)["operationParameters"] == {
        "predicate": "[]",
        "zOrderBy": "[]",
        "clusterBy": '["id","s"]',
        "auto": False,
        "isFull": False,
    }
    (add,) = [a["add"] for a in newest_commit(session) if "add" in a]
    assert add["clusteringProvider"] == "liquid" and json.loads(add["tags"]["ZCUBE_ZORDER_BY"]) == ["id", "s"]
    assert _metrics(session, "OPTIMIZE t")["numFilesRemoved"] == 0
    session.run("INSERT INTO t VALUES (7, 'x')")
    metrics = _metrics(session, "OPTIMIZE t")
    assert (metrics["clusteringStats"]["inputNumZCubes"], metrics["numFilesRemoved"]) == (1, 2)
    assert session.rows("SELECT count(*), count(DISTINCT id) FROM t") == [(101, 100)]
