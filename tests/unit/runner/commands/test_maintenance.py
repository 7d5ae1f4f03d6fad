"""OPTIMIZE, VACUUM, RESTORE: the rows stay or are those of then, told as Delta tells it, never beside a faster writer."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable

from gateway.delta import commit, compaction, log
from gateway.errors import UnsupportedError, UserError
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, newest_info, rows_elsewhere


def _of(actions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]


def _rows(session: Session) -> list[tuple[Any, ...]]:
    """The table's rows, which another reader of Delta tables must see as well."""
    rows = sorted(session.rows("SELECT * FROM t"), key=repr)
    assert rows_elsewhere(session) == rows
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
    assert path == f"file:{folder_of(parted)}"
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["partitionsOptimized"]) == (2, 4, 2)
    assert (metrics["numBins"], metrics["totalConsideredFiles"], metrics["totalFilesSkipped"]) == (2, 5, 1)
    actions = newest_commit(parted)
    added, removed, (info,) = _of(actions, "add"), _of(actions, "remove"), _of(actions, "commitInfo")
    assert {a["dataChange"] for a in added + removed} == {False}
    assert metrics["filesAdded"]["totalSize"] == sum(a["size"] for a in added)
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    assert (info["isolationLevel"], info["isBlindAppend"]) == ("SnapshotIsolation", False)
    assert info["operationMetrics"]["numRemovedFiles"] == "4"
    assert int(info["operationMetrics"]["maxFileSize"]) == max(a["size"] for a in added)
    assert sorted(json.loads(a["stats"])["numRecords"] for a in added) == [2, 2]
    assert _rows(parted) == before


@pytest.mark.parametrize("small", [1, 64, 1 << 20])
def test_small_and_large_files_are_put_together_whole(
    session: Session, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(compaction, "_SMALL_BYTES", small)
    session.run("CREATE TABLE t (id INT, s STRING)")
    for first in range(0, 400, 50):
        session.run(
            f"INSERT INTO t SELECT id, repeat('x', {first}) FROM range({first}, {first + (1 if first % 100 else 50)})"
        )
    session.run("ALTER TABLE t ADD COLUMN n INT")
    session.run("INSERT INTO t VALUES (900, NULL, 1), (901, 'y', 2)")
    before = _rows(session)
    session.run("OPTIMIZE t")
    assert _rows(session) == before


def test_where_there_is_nothing_to_do_there_is_no_commit(parted: Session) -> None:
    parted.run("OPTIMIZE t")
    versions = count_versions(parted)
    ((_, metrics),) = parted.rows("OPTIMIZE t")
    assert metrics["filesAdded"] == {"min": None, "max": None, "avg": 0.0, "totalFiles": 0, "totalSize": 0}
    assert count_versions(parted) == versions


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
        ("OPTIMIZE t WHERE p IN (SELECT p FROM t)", "DELTA_FAILED_RECOGNIZE_PREDICATE"),
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
    versions = count_versions(parted)
    assert refused(parted, statement).condition == condition
    assert count_versions(parted) == versions


@pytest.mark.parametrize("statement", ["OPTIMIZE '/x'", "OPTIMIZE t WHERE rand() < 2"])
def test_what_is_not_done_is_refused_by_name(parted: Session, statement: str) -> None:
    assert isinstance(refused(parted, statement), UnsupportedError)


def test_files_that_are_large_enough_stay_and_groups_stay_below_the_limit(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run("CREATE TABLE t (id INT)")
    for i in range(6):
        session.run(f"INSERT INTO t VALUES ({i})")
    session.run("INSERT INTO t SELECT id FROM range(2000)")
    sizes = sorted(DeltaTable(str(folder_of(session))).get_add_actions().column("size_bytes").to_pylist())
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

    def late(*arguments: Any) -> None:
        if not asked:
            asked.append(meanwhile)
            parted.run(meanwhile)
        publish(*arguments)

    expected = len(_rows(parted)) + {"I": 1, "D": -1, "O": 0}[meanwhile[0]]
    monkeypatch.setattr(commit, "publish", late)
    if condition is None:
        parted.run("OPTIMIZE t")
    else:
        with pytest.raises(UserError) as caught:
            parted.run("OPTIMIZE t")
        assert (caught.value.condition, caught.value.retryable) == (condition, True)
    assert len(_rows(parted)) == expected
    folder = Path(folder_of(parted))
    ever = [add for n in log.commit_versions(str(folder)) for add in _of(log.actions(str(folder), n), "add")]
    assert len(list(folder.glob("p=*/*.parquet"))) == len(ever)  # what has lost leaves no file


# ---- VACUUM


@pytest.fixture
def littered(session: Session) -> Session:
    """``t``, which keeps nothing that is removed, with files that are no part of it."""
    session.run(
        "CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c d')")
    session.run("INSERT INTO t VALUES (4, 'a'), (5, 'b')")
    session.run("DELETE FROM t WHERE p = 'b'")
    folder = folder_of(session)
    for name in ("stray.parquet", "p=a/stray", "sub/dir/f", "_change_data/x", "_hidden/q", ".hidden/r", "_top", ".top"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "p=empty").mkdir()
    _age(folder)
    return session


def _age(folder: Path, seconds: float = 3600.0) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and "_delta_log" not in str(path):
            moment = time.time() - seconds
            os.utime(path, (moment, moment))


def _litter(session: Session) -> set[str]:
    """What lies in the table's folder and is no file of the table; folders end in a slash."""
    folder = folder_of(session)
    live = {unquote(path.rsplit("shop/t/", 1)[1]) for path in DeltaTable(str(folder)).file_uris()}
    names = {f"{p.relative_to(folder)}{'/' if p.is_dir() and not p.is_symlink() else ''}" for p in folder.rglob("*")}
    kept = {name for name in names if name not in live and not name.startswith("_delta_log")}
    return {name for name in kept if not (name.endswith("/") and any(x.startswith(name) for x in live))}


def test_what_is_no_part_of_the_table_goes(littered: Session) -> None:
    before = _rows(littered)
    there = _litter(littered)
    told = {str(path) for (path,) in littered.rows("VACUUM t DRY RUN")}
    assert _litter(littered) == there
    gone = {name for name in there if name.startswith("p=b/") and name != "p=b/"}
    gone |= {"stray.parquet", "p=a/stray", "sub/dir/f", "_change_data/x", "p=empty/"}
    assert told == {f"file:{folder_of(littered)}/{name.rstrip('/')}" for name in gone}
    result = littered.run("VACUUM t")
    assert (result.columns, result.rows) == ([("path", "string", True)], [(f"file:{folder_of(littered)}",)])
    assert _litter(littered) == there - gone
    assert _rows(littered) == before
    (end, start) = littered.rows("DESCRIBE HISTORY t LIMIT 2")
    assert (start[4], end[4]) == ("VACUUM START", "VACUUM END")
    assert dict(start[5]) == {"retentionCheckEnabled": "true", "defaultRetentionMillis": "0"}
    assert dict(start[12])["numFilesToDelete"] == str(len(gone))
    assert dict(end[5]) == {"status": "COMPLETED"}
    assert dict(end[12]) == {"numDeletedFiles": str(len(gone)), "numVacuumedDirectories": "8"}
    assert (start[10], start[11]) == ("SnapshotIsolation", True)
    littered.run("VACUUM t")  # folders that are empty by now
    assert _litter(littered) == {".hidden/", ".hidden/r", ".top", "_hidden/", "_hidden/q", "_top"}


def test_lite_looks_at_what_commits_have_removed(littered: Session) -> None:
    before, there = _rows(littered), _litter(littered)
    time.sleep(0.01)
    littered.run("VACUUM t LITE")
    assert _litter(littered) == {name for name in there if name == "p=b/" or not name.startswith("p=b/")}
    assert _rows(littered) == before
    noted = json.loads((Path(folder_of(littered)) / "_delta_log/_last_vacuum_info").read_text())
    assert noted == {"latestCommitVersionOutsideOfRetentionWindow": 3}
    DeltaTable(folder_of(littered)).create_checkpoint()
    (Path(folder_of(littered)) / "_delta_log" / f"{0:020}.json").unlink()
    assert littered.rows("VACUUM t LITE DRY RUN") == []


def test_lite_needs_commits_that_are_there(littered: Session) -> None:
    DeltaTable(folder_of(littered)).create_checkpoint()
    (Path(folder_of(littered)) / "_delta_log" / f"{0:020}.json").unlink()
    assert refused(littered, "VACUUM t LITE").condition == "DELTA_CANNOT_VACUUM_LITE"


def test_what_is_young_or_was_removed_lately_stays(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    session.run("INSERT INTO t VALUES (1)")
    session.run("UPDATE t SET id = 2")
    folder = folder_of(session)
    _age(folder, 30 * 86400.0)
    for name, days in (("old.parquet", 8), ("young.parquet", 6)):
        (folder / name).write_text("x")
        os.utime(folder / name, (time.time() - days * 86400,) * 2)
    assert session.rows("VACUUM t RETAIN 500 HOURS DRY RUN") == [(f"file:{folder}/old.parquet",)]
    session.run("VACUUM t")
    assert not (folder / "old.parquet").exists()
    assert len(list(folder.glob("*.parquet"))) == 3
    assert session.rows("SELECT * FROM t VERSION AS OF 1") == [(1,)]


def test_links_are_neither_followed_nor_removed(littered: Session, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "kept").write_text("x")
    _age(tmp_path)
    folder = Path(folder_of(littered))
    (folder / "p=link").symlink_to(tmp_path / "theirs")
    (folder / "p=a" / "file").symlink_to(tmp_path / "theirs" / "kept")
    littered.run("VACUUM t")
    assert (tmp_path / "theirs" / "kept").exists()
    assert (folder / "p=link").is_symlink() and (folder / "p=a" / "file").is_symlink()


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("VACUUM t RETAIN 0 HOURS", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        ("VACUUM t RETAIN 0.4 HOURS DRY RUN", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        ("VACUUM t DRY RUN DRY RUN", "DUPLICATE_CLAUSES"),
        ("VACUUM t RETAIN HOURS", "PARSE_SYNTAX_ERROR"),
        ("VACUUM nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
        ("RESTORE TABLE t TO VERSION AS OF 9", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ("RESTORE t VERSION AS OF 3", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ("RESTORE t TO TIMESTAMP AS OF '2000-01-01'", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
        ("RESTORE t TO TIMESTAMP AS OF '2100-01-01'", "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
        ("RESTORE t TO TIMESTAMP AS OF 'soon'", "DELTA_TIMESTAMP_INVALID"),
        ("RESTORE t TO TIMESTAMP AS OF date_sub(current_date(), 9999)", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
        ("RESTORE t TO TIMESTAMP AS OF now() + INTERVAL 1 DAY", "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
        ("RESTORE t TO TIMESTAMP AS OF 1 / 0", "DIVIDE_BY_ZERO"),
        ("RESTORE t TO TIMESTAMP AS OF rand()", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.NON_DETERMINISTIC"),
        ("RESTORE t TO TIMESTAMP AS OF NULL", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"),
        ("RESTORE t TO TIMESTAMP AS OF p", "_LEGACY_ERROR_TEMP_0056"),
        ("RESTORE t TO TIMESTAMP AS OF now() now", "PARSE_SYNTAX_ERROR"),
        ("RESTORE t", "PARSE_SYNTAX_ERROR"),
        ("RESTORE nowhere TO VERSION AS OF 1", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_what_is_wrong_removes_and_restores_nothing(parted: Session, statement: str, condition: str) -> None:
    versions = count_versions(parted)
    assert refused(parted, statement).condition == condition
    assert count_versions(parted) == versions


# ---- RESTORE


def test_an_earlier_version_becomes_the_next(parted: Session) -> None:
    first, now = parted.rows("SELECT * FROM t VERSION AS OF 1"), _rows(parted)
    parted.run("OPTIMIZE t")
    result = parted.run("RESTORE TABLE t TO VERSION AS OF 1")
    assert [name for name, _, _ in result.columns] == [
        *("table_size_after_restore", "num_of_files_after_restore", "num_removed_files"),
        *("num_restored_files", "removed_files_size", "restored_files_size"),
    ]
    ((size, files, removed, restored, _, restored_bytes),) = result.rows
    assert (files, removed, restored, size) == (2, 3, 2, restored_bytes)
    assert _rows(parted) == sorted(first, key=repr)
    actions = newest_commit(parted)
    (info,) = _of(actions, "commitInfo")
    assert (info["operation"], info["operationParameters"]) == ("RESTORE", {"version": 1, "timestamp": None})
    assert {a["dataChange"] for a in _of(actions, "add") + _of(actions, "remove")} == {True}
    assert all("numRecords" in a["stats"] for a in _of(actions, "add"))
    parted.run("RESTORE t TO VERSION AS OF 3")
    assert _rows(parted) == now
    assert parted.rows("RESTORE t TO VERSION AS OF 3")[0][2:] == (0, 0, 0, 0)


def test_columns_properties_and_rows_behind_a_checkpoint_come_back(session: Session) -> None:
    session.run("CREATE TABLE t (id INT) TBLPROPERTIES ('k' = 'v')")
    session.run("INSERT INTO t VALUES (1)")
    session.run("CREATE OR REPLACE TABLE t (name STRING, at TIMESTAMP_NTZ)")
    for i in range(12):
        session.run(f"INSERT INTO t VALUES ('{i}', NULL)")
    session.run("RESTORE t TO VERSION AS OF 1")
    assert (session.rows("SELECT * FROM t"), dict(session.rows("SHOW TBLPROPERTIES t"))["k"]) == ([(1,)], "v")
    session.run("RESTORE t TO VERSION AS OF 12")
    assert sorted(session.rows("SELECT name FROM t")) == sorted((str(i),) for i in range(10))
    assert DeltaTable(str(folder_of(session))).protocol().min_writer_version == 7


def test_a_time_means_the_version_of_then(parted: Session) -> None:
    for version in range(4):
        moment = time.time() - 3600 * (5 - version)
        os.utime(log.commit_path(str(folder_of(parted)), version), (moment, moment))
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 3600 * 3.5))
    expected = sorted(parted.rows("SELECT * FROM t VERSION AS OF 1"), key=repr)
    parted.run("SET TIME ZONE 'UTC'")
    parted.run(f"RESTORE t TO TIMESTAMP AS OF '{text}'")
    assert _rows(parted) == expected
    assert _of(newest_commit(parted), "commitInfo")[0]["operationParameters"] == {
        "version": None,
        "timestamp": f"{text}.0",
    }


@pytest.mark.parametrize(
    "moment",
    [
        "current_timestamp() - INTERVAL '3:30' HOUR TO MINUTE",
        "now() - make_dt_interval(0, 3, 30)",
        "(SELECT max(col1) FROM VALUES (now() - INTERVAL 210 MINUTES))",
    ],
)
def test_a_time_may_be_computed(parted: Session, moment: str) -> None:
    for version in range(4):
        then = time.time() - 3600 * (5 - version)
        os.utime(log.commit_path(str(folder_of(parted)), version), (then, then))
    expected = sorted(parted.rows("SELECT * FROM t VERSION AS OF 1"), key=repr)
    assert sorted(parted.rows(f"SELECT * FROM t TIMESTAMP AS OF {moment}"), key=repr) == expected
    parted.run(f"RESTORE t TO TIMESTAMP AS OF {moment}")
    assert _rows(parted) == expected


def test_a_version_is_not_restored_without_its_files_nor_once_they_may_be_gone(parted: Session) -> None:
    folder = Path(folder_of(parted))
    parted.run("OPTIMIZE t")
    (gone,) = [a["path"] for a in _of(log.actions(str(folder), 3), "add")]
    (folder / gone).unlink()
    assert refused(parted, "RESTORE t TO VERSION AS OF 3").condition == "DELTA_FILE_NOT_FOUND"
    moment = time.time() - 86400 * 8
    for version in (0, 1):
        os.utime(log.commit_path(str(folder), version), (moment, moment))
    condition = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
    assert refused(parted, "RESTORE t TO VERSION AS OF 1").condition == condition


@pytest.mark.parametrize(
    "statement", ["VACUUM '/x'", "VACUUM t USING INVENTORY (SELECT 1)", "RESTORE '/x' TO VERSION AS OF 1"]
)
def test_other_forms_are_refused_by_name(parted: Session, statement: str) -> None:
    assert isinstance(refused(parted, statement), UnsupportedError)


def test_a_table_is_restored_as_it_was_clustered(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, v STRING) CLUSTER BY (id)")
    session.run("INSERT INTO t VALUES (1, 'a')")
    session.run("ALTER TABLE t CLUSTER BY (v)")
    for version, columns in ((1, ["id"]), (2, ["v"])):
        session.run(f"RESTORE TABLE t TO VERSION AS OF {version}")
        result = session.run("DESCRIBE DETAIL t")
        at = [name for name, _, _ in result.columns].index("clusteringColumns")
        assert result.rows[0][at] == columns
    session.run("OPTIMIZE t")
    assert session.rows("SELECT * FROM t") == [(1, "a")]


def test_a_table_is_restored_to_before_it_was_clustered(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, v STRING)")
    session.run("INSERT INTO t VALUES (1, 'a')")
    session.run("CREATE OR REPLACE TABLE t CLUSTER BY (id) AS SELECT 2 AS id, 'b' AS v")
    session.run("RESTORE TABLE t TO VERSION AS OF 1")
    result = session.run("DESCRIBE DETAIL t")
    at = [name for name, _, _ in result.columns].index("clusteringColumns")
    assert result.rows[0][at] == []
    assert session.rows("SELECT * FROM t") == [(1, "a")]


def test_files_with_what_is_gone_are_written_anew(session: Session) -> None:
    session.run(
        "CREATE TABLE t (id INT, v STRING, s STRUCT<a: INT, gone: INT>, gone INT) TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    session.run("INSERT INTO t VALUES (1, 'a', NULL, 1), (2, 'b', named_struct('a', 5, 'gone', 6), 2)")
    session.run("INSERT INTO t VALUES (3, 'c', NULL, 3)")
    session.run("DELETE FROM t WHERE id = 1")
    ((_, told),) = session.rows("REORG TABLE t APPLY (PURGE)")
    assert (told["numFilesRemoved"], told["numFilesAdded"], told["totalConsideredFiles"]) == (1, 1, 2)
    assert told["deletionVectorStats"] == {"numDeletionVectorsRemoved": 1, "numDeletionVectorRowsRemoved": 1}
    info = newest_info(session)
    assert (info["operation"], info["operationParameters"]) == ("REORG", {"predicate": "[]", "applyPurge": True})
    session.run("INSERT INTO t VALUES (4, 'd', NULL, 4)")
    for dropped in ("gone", "s.gone"):
        session.run(f"ALTER TABLE t DROP COLUMN {dropped}")
        ((_, told),) = session.rows("REORG TABLE t APPLY (PURGE)")
        assert (told["numFilesRemoved"], told["numFilesAdded"]) == ((3, 1) if dropped == "gone" else (1, 1))
    before = count_versions(session)
    ((_, told),) = session.rows("REORG TABLE t APPLY (PURGE)")
    assert (told["numFilesRemoved"], count_versions(session)) == (0, before)
    assert session.rows("SELECT * FROM t ORDER BY id") == [(2, "b", {"a": 5}), (3, "c", None), (4, "d", None)]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("REORG TABLE t WHERE id = 1 APPLY (PURGE)", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", "UNSUPPORTED_FEATURE"),
        ("REORG TABLE t", "PARSE_SYNTAX_ERROR"),
        ("REORG t APPLY (PURGE)", "PARSE_SYNTAX_ERROR"),
        ("REORG TABLE c APPLY (PURGE)", "UNSUPPORTED_FEATURE"),
    ],
)
def test_reorganisations_that_are_refused(session: Session, statement: str, condition: str) -> None:
    session.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    session.run("CREATE TABLE c (id INT) CLUSTER BY (id)")
    session.run("REORG TABLE t WHERE p = 'a' APPLY (PURGE)")
    assert refused(session, statement).condition == condition


@pytest.mark.parametrize(("lost", "condition"), [(True, "DELTA_FILE_NOT_FOUND"), (False, "FAILED_READ_FILE")])
def test_a_file_that_cannot_be_looked_at_is_told(session: Session, lost: bool, condition: str) -> None:
    session.run("CREATE TABLE t (id INT)")
    session.run("INSERT INTO t VALUES (1)")
    (file,) = Path(folder_of(session)).glob("*.parquet")
    if lost:
        file.unlink()
    else:
        file.write_bytes(b"x" * file.stat().st_size)
    error = refused(session, "REORG TABLE t APPLY (PURGE)")
    assert error.condition == condition
    assert file.name in str(error)


def test_all_of_a_clustered_table_is_put_in_its_order(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, c VARCHAR(5), d CHAR(3)) CLUSTER BY (c)")
    session.run("INSERT INTO t VALUES (1, 'x', 'y'), (2, 'a', 'z')")
    session.run("OPTIMIZE t")
    session.run("ALTER TABLE t CLUSTER BY (d)")
    ((_, told),) = session.rows("OPTIMIZE t FULL")
    assert told["clusteringStats"]["inputZCubeFiles"]["numFiles"] == told["clusteringStats"]["inputNumZCubes"] == 1
    assert (told["numFilesAdded"], told["numFilesRemoved"]) == (1, 1)
    assert newest_info(session)["operationParameters"]["isFull"] is True
    assert newest_info(session)["operationParameters"]["clusterBy"] == '["d"]'
    before = count_versions(session)
    ((_, told),) = session.rows("OPTIMIZE t FULL")
    assert (told["numFilesAdded"], count_versions(session)) == (0, before)
    assert session.rows("SELECT * FROM t ORDER BY id") == [(1, "x", "y  "), (2, "a", "z  ")]
    for text, condition in (
        ("OPTIMIZE t FULL ZORDER BY (id)", "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        ("OPTIMIZE t FULL WHERE id = 1", "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    ):
        assert refused(session, text).condition == condition
    session.run("ALTER TABLE t CLUSTER BY NONE")
    error = refused(session, "OPTIMIZE t FULL")
    assert (error.condition, error.sqlstate) == ("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED", "42601")
