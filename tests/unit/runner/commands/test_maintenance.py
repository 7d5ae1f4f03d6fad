"""OPTIMIZE: fewer files with the same rows, told as Delta tells it, and never beside a writer who was faster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from gateway.delta import commit, compaction, log
from gateway.errors import UnsupportedError, UserError
from tests.unit.runner.session import Session, refused


def _folder(session: Session) -> str:
    return session.runner.catalogs["main"].table_location("shop", "t")


def _actions(session: Session) -> list[dict[str, Any]]:
    folder = _folder(session)
    return log.actions(folder, log.commit_versions(folder)[-1])


def _of(actions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]


def _rows(session: Session) -> list[tuple[Any, ...]]:
    """The table's rows, which another reader of Delta tables must see as well."""
    rows = sorted(session.rows("SELECT * FROM t"), key=repr)
    found = DeltaTable(_folder(session)).to_pyarrow_table()
    assert sorted(zip(*(c.to_pylist() for c in found.columns), strict=True), key=repr) == rows
    return rows


@pytest.fixture
def parted(session: Session) -> Session:
    """``t`` with three partitions of two, two and one files."""
    session.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    for values in ("(1, 'a'), (2, 'b')", "(3, 'a'), (4, NULL)", "(5, 'b')"):
        session.run(f"INSERT INTO t VALUES {values}")
    return session


def test_small_files_are_put_together(parted: Session) -> None:
    before = _rows(parted)
    result = parted.run("OPTIMIZE t")
    assert [name for name, _, _ in result.columns] == ["path", "metrics"]
    ((path, metrics),) = result.rows
    assert path == f"file:{_folder(parted)}"
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["partitionsOptimized"]) == (2, 4, 2)
    assert (metrics["numBins"], metrics["totalConsideredFiles"], metrics["totalFilesSkipped"]) == (2, 5, 1)
    actions = _actions(parted)
    added, removed, (info,) = _of(actions, "add"), _of(actions, "remove"), _of(actions, "commitInfo")
    assert {a["dataChange"] for a in added + removed} == {False}
    assert metrics["filesAdded"]["totalSize"] == sum(a["size"] for a in added)
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    assert (info["isolationLevel"], info["isBlindAppend"]) == ("SnapshotIsolation", False)
    assert info["operationMetrics"]["numRemovedFiles"] == "4"
    assert int(info["operationMetrics"]["maxFileSize"]) == max(a["size"] for a in added)
    assert sorted(json.loads(a["stats"])["numRecords"] for a in added) == [2, 2]
    assert _rows(parted) == before


def test_where_there_is_nothing_to_do_there_is_no_commit(parted: Session) -> None:
    parted.run("OPTIMIZE t")
    versions = log.commit_versions(_folder(parted))
    ((_, metrics),) = parted.rows("OPTIMIZE t")
    assert metrics["filesAdded"] == {"min": None, "max": None, "avg": 0.0, "totalFiles": 0, "totalSize": 0}
    assert log.commit_versions(_folder(parted)) == versions


@pytest.mark.parametrize(
    ("condition", "considered", "removed"),
    [
        ("p = 'a'", 2, 2),
        ("P IN ('a', 'b') AND upper(p) <> 'A'", 2, 2),
        ("p IS NULL", 1, 0),
        ("p = 'nowhere'", 0, 0),
        ("true", 5, 4),
        ("p <> 'a'", 2, 2),
    ],
)
def test_a_condition_of_partitions(parted: Session, condition: str, considered: int, removed: int) -> None:
    before = _rows(parted)
    ((_, metrics),) = parted.rows(f"OPTIMIZE t WHERE {condition}")
    assert (metrics["totalConsideredFiles"], metrics["numFilesRemoved"]) == (considered, removed)
    assert _rows(parted) == before


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("OPTIMIZE t WHERE id = 1", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("OPTIMIZE t WHERE t.p = 'a'", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("OPTIMIZE t WHERE p IN (SELECT 'a')", "DELTA_FAILED_RECOGNIZE_PREDICATE"),
        ("OPTIMIZE t WHERE p = 1", "CAST_INVALID_INPUT"),
        ("OPTIMIZE nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
        ("OPTIMIZE TABLE t", "PARSE_SYNTAX_ERROR"),
        ("OPTIMIZE t extra", "PARSE_SYNTAX_ERROR"),
        ("OPTIMIZE samples.tpch.region", "PERMISSION_DENIED"),
        ("OPTIMIZE v", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
    ],
)
def test_what_is_wrong(parted: Session, statement: str, condition: str) -> None:
    parted.run("CREATE VIEW v AS SELECT 1 AS a")
    versions = log.commit_versions(_folder(parted))
    assert refused(parted, statement).condition == condition
    assert log.commit_versions(_folder(parted)) == versions


@pytest.mark.parametrize(
    "statement", ["OPTIMIZE t ZORDER BY (id)", "OPTIMIZE t FULL", "OPTIMIZE '/x'", "OPTIMIZE t WHERE rand() < 2"]
)
def test_what_is_not_done_is_refused_by_name(parted: Session, statement: str) -> None:
    assert isinstance(refused(parted, statement), UnsupportedError)


def test_files_that_are_large_enough_stay_and_groups_stay_below_the_limit(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run("CREATE TABLE t (id INT)")
    for i in range(6):
        session.run(f"INSERT INTO t VALUES ({i})")
    session.run("INSERT INTO t SELECT id FROM range(2000)")
    sizes = sorted(DeltaTable(_folder(session)).get_add_actions().column("size_bytes").to_pylist())
    monkeypatch.setattr(compaction, "FILE_BYTES", sizes[0] * 3 + 1)
    before = _rows(session)
    ((_, metrics),) = session.rows("OPTIMIZE t")
    assert (metrics["numBins"], metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (2, 2, 6)
    assert _rows(session) == before


@pytest.mark.parametrize(
    ("meanwhile", "condition"),
    [
        ("INSERT INTO t VALUES (9, 'a')", None),
        ("DELETE FROM t WHERE id = 1", "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"),
        ("OPTIMIZE t", "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"),
    ],
)
def test_another_writer_is_overtaken_where_that_is_right(
    parted: Session, monkeypatch: pytest.MonkeyPatch, meanwhile: str, condition: str | None
) -> None:
    publish = commit.publish
    asked: list[str] = []

    def late(root: str, version: int, actions: Any) -> None:
        if not asked:
            asked.append(meanwhile)
            parted.run(meanwhile)
        publish(root, version, actions)

    expected = len(_rows(parted)) + {"I": 1, "D": -1, "O": 0}[meanwhile[0]]
    monkeypatch.setattr(commit, "publish", late)
    if condition is None:
        parted.run("OPTIMIZE t")
    else:
        with pytest.raises(UserError) as caught:
            parted.run("OPTIMIZE t")
        assert (caught.value.condition, caught.value.retryable) == (condition, True)
    assert len(_rows(parted)) == expected
    folder = Path(_folder(parted))
    ever = [add for n in log.commit_versions(str(folder)) for add in _of(log.actions(str(folder), n), "add")]
    assert len(list(folder.glob("p=*/*.parquet"))) == len(ever)  # what has lost leaves no file
