"""Tables whose rows are taken out by deletion vectors: the same rows as without, few bytes written, told as Delta tells it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable

from gateway.delta import commit, log
from gateway.delta.table import forget
from gateway.delta.vectors import encoded, file_of, serialized
from gateway.errors import UserError
from tests.live.tables import VECTORS, alter
from tests.unit.runner.session import Session, refused


def folder_of(session: Session) -> Path:
    return Path(session.runner.catalogs["main"].table_location("shop", "t"))


def with_vectors(session: Session) -> None:
    """Let the new table ``t`` have deletion vectors."""
    alter(str(folder_of(session)), {"delta.enableDeletionVectors": "true"}, VECTORS)


def _last(session: Session, kind: str) -> list[dict[str, Any]]:
    folder = str(folder_of(session))
    return [a[kind] for a in log.actions(folder, log.commit_versions(folder)[-1]) if kind in a]


@pytest.fixture
def marked(session: Session) -> Session:
    """``t`` with 100 rows in two partitions, one file each."""
    session.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    with_vectors(session)
    session.run("INSERT INTO t SELECT CAST(id AS INT), CASE WHEN id < 50 THEN 'a' ELSE 'b' END FROM range(100)")
    return session


def _ids(session: Session) -> list[int]:
    ids = sorted(row[0] for row in session.rows("SELECT id FROM t"))
    assert session.rows("SELECT count(*), sum(id), min(id), max(id) FROM t") == [
        (len(ids), sum(ids) if ids else None, min(ids, default=None), max(ids, default=None))
    ]
    return ids


def test_rows_leave_files_that_stay(marked: Session) -> None:
    assert marked.rows("DELETE FROM t WHERE id % 10 = 3 AND id < 80") == [(8,)]
    expected = [i for i in range(100) if not (i % 10 == 3 and i < 80)]
    assert _ids(marked) == expected
    adds, removes, (info,) = _last(marked, "add"), _last(marked, "remove"), _last(marked, "commitInfo")
    assert sorted(a["path"] for a in adds) == sorted(r["path"] for r in removes)
    assert all("deletionVector" not in r for r in removes)
    assert sorted(a["deletionVector"]["cardinality"] for a in adds) == [3, 5]
    stats = [json.loads(a["stats"]) for a in adds]
    assert all(s["numRecords"] == 50 and s["tightBounds"] is False and "minValues" in s for s in stats)
    metrics = info["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("8", "0")
    assert [metrics[f"numDeletionVectors{k}"] for k in ("Added", "Updated", "Removed")] == ["2", "0", "0"]
    assert marked.rows("DELETE FROM t WHERE id = 5") == [(1,)]
    assert _ids(marked) == [i for i in expected if i != 5]
    (remove,) = _last(marked, "remove")
    assert remove["deletionVector"]["cardinality"] == 5
    metrics = _last(marked, "commitInfo")[0]["operationMetrics"]
    assert [metrics[f"numDeletionVectors{k}"] for k in ("Added", "Updated", "Removed")] == ["1", "1", "1"]
    assert marked.rows("SELECT count(*) FROM t VERSION AS OF 2") == [(100,)]


def test_a_file_without_a_row_goes(marked: Session) -> None:
    marked.run("DELETE FROM t WHERE id = 51")
    assert marked.rows("DELETE FROM t WHERE id >= 50") == [(49,)]
    assert _last(marked, "add") == []
    assert _last(marked, "remove")[0]["deletionVector"]["cardinality"] == 1
    assert _ids(marked) == list(range(50))


def test_update_moves_rows(marked: Session) -> None:
    assert marked.rows("UPDATE t SET id = -id WHERE id IN (7, 8, 60)") == [(3,)]
    assert _ids(marked) == sorted({*range(100)} - {7, 8, 60} | {-7, -8, -60})
    adds = _last(marked, "add")
    assert sorted(a["deletionVector"]["cardinality"] for a in adds if "deletionVector" in a) == [1, 2]
    assert sum(json.loads(a["stats"])["numRecords"] for a in adds if "deletionVector" not in a) == 3
    metrics = _last(marked, "commitInfo")[0]["operationMetrics"]
    assert (metrics["numUpdatedRows"], metrics["numCopiedRows"], metrics["numAddedFiles"]) == ("3", "0", "2")


def test_merge_touches_only_rows_that_change(marked: Session) -> None:
    counts = marked.rows(
        "MERGE INTO t USING (SELECT * FROM VALUES (10, 'x'), (60, 'y'), (200, 'b') v(id, q)) q ON t.id = q.id "
        "WHEN MATCHED AND q.id = 10 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 1000 "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (q.id, q.q) WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE"
    )
    assert counts == [(4, 1, 2, 1)]
    assert _ids(marked) == sorted({*range(100)} - {10, 60, 1} | {1000, 200})
    metrics = _last(marked, "commitInfo")[0]["operationMetrics"]
    assert (metrics["numTargetRowsCopied"], metrics["numOutputRows"]) == ("0", "2")
    assert (metrics["numTargetDeletionVectorsAdded"], metrics["numTargetFilesRemoved"]) == ("2", "0")


def test_merge_that_only_adds_rows(marked: Session) -> None:
    counts = marked.rows(
        "MERGE INTO t USING (SELECT 500 AS id) q ON t.id = q.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (q.id, 'c')"
    )
    assert counts == [(1, 0, 0, 1)] and _ids(marked) == [*range(100), 500]
    assert _last(marked, "remove") == []


def test_other_statements_on_such_tables(marked: Session) -> None:
    marked.run("DELETE FROM t WHERE id < 10")
    marked.run("INSERT INTO t VALUES (1, 'a')")
    ((_, metrics),) = marked.rows("OPTIMIZE t")
    assert metrics["deletionVectorStats"] == {"numDeletionVectorsRemoved": 1, "numDeletionVectorRowsRemoved": 10}
    assert any("deletionVector" in r for r in _last(marked, "remove"))
    assert _ids(marked) == [1, *range(10, 100)]
    marked.run("INSERT INTO t REPLACE WHERE id < 20 VALUES (2, 'b')")
    assert _ids(marked) == [2, *range(20, 100)]
    marked.run("RESTORE t TO VERSION AS OF 3")
    assert _ids(marked) == list(range(10, 100))
    vector = file_of(str(folder_of(marked)), _last(marked, "add")[0]["deletionVector"])
    assert vector is not None and Path(vector).exists()
    marked.run("VACUUM t")
    assert Path(vector).exists() and _ids(marked) == list(range(10, 100))
    marked.run("INSERT OVERWRITE t VALUES (5, 'a')")
    nothing_kept = {"delta.enableDeletionVectors": "true", "delta.deletedFileRetentionDuration": "interval 0 hours"}
    alter(str(folder_of(marked)), nothing_kept, VECTORS)
    time.sleep(0.01)
    marked.run("VACUUM t")
    assert _ids(marked) == [5] and not list(folder_of(marked).glob("*.bin"))
    marked.run("TRUNCATE TABLE t")
    assert _ids(marked) == []


@pytest.mark.parametrize("meanwhile", ["DELETE FROM t WHERE id = 8", "UPDATE t SET id = 8 WHERE id = 8", "OPTIMIZE t"])
@pytest.mark.parametrize("statement", ["DELETE FROM t WHERE id = 7", "UPDATE t SET id = -7 WHERE id = 7", "OPTIMIZE t"])
def test_two_writers_of_one_file(
    marked: Session, monkeypatch: pytest.MonkeyPatch, statement: str, meanwhile: str
) -> None:
    marked.run("DELETE FROM t WHERE id = 3")
    marked.run("INSERT INTO t VALUES (1000, 'a')")
    publish = commit.publish
    asked: list[str] = []

    def late(*arguments: Any) -> None:
        if not asked:
            asked.append(meanwhile)
            marked.run(meanwhile)
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)
    error = refused(marked, statement)
    assert error.condition == "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"
    assert 7 in _ids(marked)
    named = {Path(str(file_of(".", a["add"]["deletionVector"]))).name for n in log.commit_versions(str(folder_of(marked)))
             for a in log.actions(str(folder_of(marked)), n) if "deletionVector" in a.get("add", {})}  # fmt: skip
    assert {path.name for path in folder_of(marked).glob("*.bin")} == named


def test_vectors_are_spelt_as_the_protocol_says() -> None:
    """Its own example, and what Spark has written for the rows 3, 10, 13 and 23."""
    name = bytes.fromhex("d2c639aa8816431aaaf6d3fe2512ff61")
    assert encoded(name) == "^-aqEH.-t@S}K{vb[*k^"
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    assert file_of("/t", vector) == "/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    expected = "d1d33964 0100000000000000 00000000 3a300000 01000000 0000 0300 10000000 03000a000d001700"
    assert serialized(np.array([3, 10, 13, 23])).hex() == expected.replace(" ", "")


@pytest.mark.parametrize("count", [1, 4096, 4097, 65536, 200_000])
def test_many_rows(session: Session, count: int) -> None:
    session.run("CREATE TABLE t (id BIGINT)")
    with_vectors(session)
    session.run("INSERT INTO t SELECT id FROM range(300000)")
    assert session.rows(f"DELETE FROM t WHERE id * 7 % 300000 < {count}") == [(count,)]
    assert session.rows(f"SELECT count(*), count_if(id * 7 % 300000 < {count}) FROM t") == [(300_000 - count, 0)]


def test_new_tables_have_vectors_where_nobody_says_otherwise(session: Session) -> None:
    key = "spark.databricks.delta.properties.defaults.enableDeletionVectors"

    def has_them(statement: str) -> bool:
        session.run(statement)
        return ("delta.enableDeletionVectors", "true") in session.rows("SHOW TBLPROPERTIES n")

    assert has_them("CREATE TABLE n (id INT)")
    assert not has_them("CREATE OR REPLACE TABLE n (id INT) TBLPROPERTIES ('DELTA.enableDeletionVectors' = 'false')")
    assert has_them("CREATE OR REPLACE TABLE n AS SELECT id FROM range(10)")
    session.run("DELETE FROM n WHERE id = 3")
    assert session.rows("SELECT count(*), sum(id) FROM n") == [(9, 42)]
    session.run(f"SET {key} = FALSE")
    session.run("DROP TABLE n")
    assert not has_them("CREATE TABLE n (id INT)")
    session.run(f"RESET {key}")
    assert has_them("CREATE OR REPLACE TABLE n (id INT)")
    with pytest.raises(UserError) as caught:
        session.run(f"SET {key} = maybe")
    assert caught.value.condition == "INVALID_CONF_VALUE.REQUIREMENT"


def test_a_part_of_a_checkpoint_hides_no_deleted_rows(session: Session) -> None:
    """A writer that was killed has left one of two: the commits before it still count, with their vectors."""
    session.run("CREATE TABLE t (id BIGINT)")
    session.run("INSERT INTO t SELECT id FROM range(10)")
    session.run("DELETE FROM t WHERE id = 3")
    root = folder_of(session)
    DeltaTable(str(root)).create_checkpoint()
    (whole,) = (root / "_delta_log").glob("*.checkpoint.parquet")
    whole.rename(whole.with_name(whole.name.replace("parquet", "0000000001.0000000002.parquet")))
    (root / "_delta_log" / "_last_checkpoint").unlink()
    forget(str(root))
    assert session.rows("SELECT count(*), sum(id) FROM t") == [(9, 42)]
    assert session.rows("SELECT count(*) FROM t VERSION AS OF 1") == [(10,)]


@pytest.mark.parametrize("remembered", [False, True])
def test_a_version_whose_vectors_are_gone_is_not_put_back(session: Session, remembered: bool) -> None:
    """VACUUM takes them with the files of old versions; a process may still know which rows they were."""
    session.run(
        "CREATE TABLE t TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours') AS SELECT id FROM range(9)"
    )
    session.run("DELETE FROM t WHERE id = 1")
    session.run("DELETE FROM t WHERE id = 2")
    for _ in range(6 * remembered):
        session.run("SELECT id FROM t VERSION AS OF 1")
    session.run("VACUUM t")
    session.run("ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 7 days')")
    if not remembered:
        forget(str(folder_of(session)))
        assert refused(session, "SELECT id FROM t VERSION AS OF 1").condition == "DELTA_FILE_NOT_FOUND"
    for statement in (
        "RESTORE TABLE t TO VERSION AS OF 1",
        "CREATE TABLE copied SHALLOW CLONE t VERSION AS OF 1",
        "CREATE TABLE copied DEEP CLONE t VERSION AS OF 1",
    ):
        error = refused(session, statement)
        assert error.condition == "DELTA_FILE_NOT_FOUND"
        assert ".bin" in error.message
    assert session.rows("SELECT count(*) FROM t") == [(7,)]
    session.run("INSERT INTO t VALUES (5)")
