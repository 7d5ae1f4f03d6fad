"""ALTER TABLE … DROP FEATURE: a table asks its writers for less, or stays as it is."""

from __future__ import annotations

import pytest

from gateway.delta import log
from gateway.delta.logged import specs_of
from gateway.delta.table import open_snapshot
from tests.live.tables import alter
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, newest_info, rows_elsewhere


def _versions(session: Session) -> tuple[str, str]:
    told = dict(session.rows("SHOW TBLPROPERTIES t"))
    return told["delta.minReaderVersion"], told["delta.minWriterVersion"]


@pytest.mark.rewrites
def test_checks_and_times_are_dropped(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, CONSTRAINT c CHECK (id > 0))")
    session.run("INSERT INTO t VALUES (1)")
    error = refused(session, "ALTER TABLE t DROP FEATURE checkConstraints")
    assert (error.condition, error.sqlstate) == ("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", "0AKDE")
    session.run("ALTER TABLE t DROP CONSTRAINT c")
    assert _versions(session) == ("1", "3")
    session.run("ALTER TABLE t DROP FEATURE CHECKCONSTRAINTS")
    assert _versions(session) == ("1", "2")
    assert newest_info(session)["operation"] == "DROP FEATURE"
    assert newest_info(session)["operationParameters"] == {"featureName": "checkConstraints", "truncateHistory": False}
    assert (
        refused(session, "ALTER TABLE t DROP FEATURE checkConstraints").condition
        == "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
    )
    session.run("DROP TABLE t")
    session.run("CREATE TABLE t (id INT) TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true', 'k' = 'v')")
    session.run("INSERT INTO t VALUES (0)")
    session.run("ALTER TABLE t DROP FEATURE inCommitTimestamp")
    assert count_versions(session) == 4
    assert _versions(session) == ("1", "2")
    assert dict(session.rows("SHOW TBLPROPERTIES t"))["delta.enableInCommitTimestamps"] == "false"
    session.run("INSERT INTO t VALUES (2)")
    assert rows_elsewhere(session) == [(0,), (2,)]
    assert len(session.rows("DESCRIBE HISTORY t")) == 5
    assert session.rows("SELECT * FROM t VERSION AS OF 1") == [(0,)]


@pytest.mark.rewrites
@pytest.mark.parametrize(
    ("feature", "condition"),
    [
        ("nope", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("appendOnly", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("columnMapping", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("clustering", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("icebergCompatV2", "UNSUPPORTED_FEATURE"),
        ("deletionVectors", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("checkConstraints TRUNCATE HISTORY", "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"),
        ("inCommitTimestamp", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
    ],
)
def test_what_cannot_be_dropped_stays(session: Session, feature: str, condition: str) -> None:
    session.run("CREATE TABLE t (id INT CHECK (id > 0))")
    assert refused(session, f"ALTER TABLE t DROP FEATURE {feature}").condition == condition
    assert count_versions(session) == 1


def test_a_table_whose_checkpoints_are_protected_is_written(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["checkpointProtection"]}
    alter(str(folder_of(session)), {"delta.requireCheckpointProtectionBeforeVersion": "1"}, features)
    session.run("INSERT INTO t VALUES (1)")
    session.run("UPDATE t SET id = 2")
    assert session.rows("SELECT * FROM t") == [(2,)]


def test_a_feed_is_not_turned_on_where_a_column_is_called_as_its_own(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, _Change_Type STRING)")
    error = refused(session, "ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    assert (error.condition, error.sqlstate) == ("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", "42711")
    assert count_versions(session) == 1


def _feature_sets(session: Session) -> set[str]:
    told = dict(session.rows("SHOW TBLPROPERTIES t"))
    return {key.removeprefix("delta.feature.") for key in told if key.startswith("delta.feature.")}


def _operations(session: Session) -> list[str]:
    return [row[4] for row in reversed(session.rows("DESCRIBE HISTORY t"))]


_FENCED = ["Empty Commit", "Empty Commit", "Empty Commit", "DROP FEATURE"]


def test_deletion_vectors_go_with_the_rows_that_they_hide(session: Session) -> None:
    session.run(
        "CREATE TABLE t (id INT, p INT) PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    session.run("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    session.run("DELETE FROM t WHERE id = 1")
    session.run("ALTER TABLE t DROP FEATURE deletionVectors")
    assert _operations(session)[3:] == ["UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones", *_FENCED]
    assert _feature_sets(session) == {"appendOnly", "invariants", "checkpointProtection"}
    told = dict(session.rows("SHOW TBLPROPERTIES t"))
    assert told["delta.requireCheckpointProtectionBeforeVersion"] == "9"
    assert "delta.enableDeletionVectors" not in told
    place = folder_of(session) / "_delta_log"
    assert {int(file.name[:20]) for file in place.glob("*.checkpoint.parquet")} == {6, 7, 8, 9}
    (gone,) = [a["remove"] for a in log.actions(str(folder_of(session)), 5) if "remove" in a]
    assert (folder_of(session) / gone["path"]).exists()
    assert rows_elsewhere(session) == [(2, 1), (3, 2)]
    assert sorted(session.rows("SELECT id FROM t VERSION AS OF 1")) == [(1,), (2,), (3,)]
    assert sorted(session.rows("SELECT id FROM t VERSION AS OF 2")) == [(2,), (3,)]
    session.run("DELETE FROM t WHERE id = 2")
    session.run("VACUUM t")
    assert sorted(session.rows("SELECT id FROM t VERSION AS OF 2")) == [(2,), (3,)]
    assert rows_elsewhere(session) == [(3, 2)]


def test_types_that_were_widened_are_written_anew(session: Session) -> None:
    session.run("CREATE TABLE t (a INT, b STRING) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    session.run("INSERT INTO t VALUES (1, 'x')")
    session.run("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    session.run("INSERT INTO t VALUES (5000000000, 'y')")
    session.run("ALTER TABLE t DROP FEATURE typeWidening")
    assert _operations(session)[4:] == ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE", *_FENCED]
    assert "typeWidening" not in _feature_sets(session)
    assert len([a for a in log.actions(str(folder_of(session)), 5) if "remove" in a]) == 1
    schema = [a["metaData"]["schemaString"] for a in log.actions(str(folder_of(session)), 10) if "metaData" in a]
    assert "typeChanges" not in schema[0]
    assert rows_elsewhere(session) == [(1, "x"), (5000000000, "y")]


@pytest.mark.rewrites
def test_kinds_of_checkpoints_and_of_checks_are_dropped(session: Session) -> None:
    session.run(
        "CREATE TABLE t (a INT) TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
        "'delta.feature.vacuumProtocolCheck' = 'supported')"
    )
    session.run("INSERT INTO t VALUES (1)")
    session.run("ALTER TABLE t DROP FEATURE v2Checkpoint")
    assert _operations(session)[2:] == ["SET TBLPROPERTIES", *_FENCED]
    session.run("ALTER TABLE t DROP FEATURE vacuumProtocolCheck")
    assert _operations(session)[7:] == _FENCED
    assert _feature_sets(session) == {"appendOnly", "invariants", "checkpointProtection"}
    assert dict(session.rows("SHOW TBLPROPERTIES t"))["delta.requireCheckpointProtectionBeforeVersion"] == "10"
    assert rows_elsewhere(session) == [(1,)]


@pytest.mark.rewrites
def test_rows_are_no_longer_numbered(session: Session) -> None:
    session.run("CREATE TABLE t (a INT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    session.run("INSERT INTO t VALUES (1), (2)")
    error = refused(session, "ALTER TABLE t DROP FEATURE domainMetadata")
    assert (error.condition, error.sqlstate) == ("DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "55000")
    session.run("ALTER TABLE t DROP FEATURE rowTracking")
    assert _operations(session)[2:] == ["SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL", "DROP FEATURE"]
    told = dict(session.rows("SHOW TBLPROPERTIES t"))
    assert not any("owTracking" in key for key in told)
    assert refused(session, "SELECT _metadata.row_id FROM t").condition == "FIELD_NOT_FOUND"
    assert not any("baseRowId" in spec for spec in specs_of(open_snapshot(str(folder_of(session)))))
    session.run("ALTER TABLE t DROP FEATURE domainMetadata")
    assert _versions(session) == ("1", "2")
    session.run("UPDATE t SET a = 3 WHERE a = 1")
    assert rows_elsewhere(session) == [(2,), (3,)]


def test_a_table_restored_to_where_its_rows_were_no_longer_numbered(session: Session) -> None:
    """As with Delta: the property is there again, new files have no numbers, and no domain says how far they go."""
    session.run("CREATE TABLE t (a INT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    session.run("INSERT INTO t VALUES (1), (2)")
    session.run("ALTER TABLE t DROP FEATURE rowTracking")
    session.run("INSERT INTO t VALUES (3)")
    for version in (2, 3):
        session.run(f"RESTORE TABLE t TO VERSION AS OF {version}")
        told = dict(session.rows("SHOW TBLPROPERTIES t"))
        assert (told["delta.enableRowTracking"], told["delta.rowTrackingSuspended"]) == ("false", "true")
        session.run("INSERT INTO t VALUES (4)")
        session.run("DELETE FROM t WHERE a = 1")
        session.run("UPDATE t SET a = 5 WHERE a = 2")
        actions = newest_commit(session)
        assert not any("domainMetadata" in action for action in actions)
        assert [action["add"].get("baseRowId") for action in actions if "add" in action] == [None]
        assert rows_elsewhere(session) == [(4,), (5,)]
    session.run("ALTER TABLE t DROP FEATURE rowTracking")
    assert "delta.rowTrackingSuspended" not in dict(session.rows("SHOW TBLPROPERTIES t"))


_NAMED = "'delta.columnMapping.mode' = 'name'"


@pytest.mark.rewrites
@pytest.mark.parametrize("more", ["", ", 'delta.enableDeletionVectors' = 'true'"])
def test_files_get_the_names_of_columns_again(session: Session, more: str) -> None:
    session.run(
        "CREATE TABLE t (a INT, b STRING COMMENT 'c', s STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>, gone INT, p STRING, "
        f"CONSTRAINT k CHECK (a > 0)) PARTITIONED BY (p) TBLPROPERTIES ({_NAMED}{more})"
    )
    value = "named_struct('x', 1, 'y', array(named_struct('z', 5)))"
    session.run(f"INSERT INTO t SELECT 1, 'x', {value}, 7, 'p1' UNION ALL SELECT 2, 'y', NULL, 8, NULL")
    session.run("INSERT INTO t VALUES (3, 'z', NULL, 9, 'p1')")
    session.run("DELETE FROM t WHERE a = 3")
    session.run("ALTER TABLE t DROP COLUMN gone")
    session.run("ALTER TABLE t RENAME COLUMN b TO `b b`")
    error = refused(session, "ALTER TABLE t DROP FEATURE columnMapping")
    assert error.condition == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
    session.run("ALTER TABLE t RENAME COLUMN `b b` TO c")
    before = count_versions(session)
    session.run("ALTER TABLE t DROP FEATURE columnMapping")
    operations = [row[4] for row in session.rows("DESCRIBE HISTORY t")][: count_versions(session) - before]
    assert operations == ["DROP FEATURE", *["Empty Commit"] * 3, "REMOVE COLUMN MAPPING"]
    rows = [(1, "x", {"x": 1, "y": [{"z": 5}]}, "p1"), (2, "y", None, None)]
    assert session.rows("SELECT * FROM t ORDER BY a") == rows
    told = dict(session.rows("SHOW TBLPROPERTIES t"))
    assert not any("columnMapping" in key for key in told)
    assert told["delta.minReaderVersion"] == ("3" if more else "1")
    if not more:
        assert rows_elsewhere(session) == rows
    session.run("INSERT INTO t VALUES (4, 'w', NULL, 'p2')")
    assert session.rows("SELECT a FROM t WHERE c >= 'x' AND p IS NOT NULL ORDER BY a") == [(1,)]
    assert session.rows("SELECT * FROM t VERSION AS OF 1 ORDER BY a")[1] == (2, "y", None, 8, None)
    assert refused(session, "INSERT INTO t VALUES (0, 'w', NULL, 'p2')").sqlstate == "23001"
    assert refused(session, "ALTER TABLE t RENAME COLUMN c TO d").condition == "DELTA_UNSUPPORTED_RENAME_COLUMN"


@pytest.mark.parametrize(
    ("clauses", "properties"),
    [
        ("CLUSTER BY (id)", _NAMED),
        ("", f"{_NAMED}, 'delta.enableRowTracking' = 'true'"),
        ("", f"{_NAMED}, 'delta.enableChangeDataFeed' = 'true'"),
    ],
)
def test_names_of_files_stay_where_more_hangs_on_them(session: Session, clauses: str, properties: str) -> None:
    session.run(f"CREATE TABLE t (id INT) {clauses} TBLPROPERTIES ({properties})")
    assert refused(session, "ALTER TABLE t DROP FEATURE columnMapping").condition == "UNSUPPORTED_FEATURE"
    assert count_versions(session) == 1
