"""ALTER TABLE … DROP FEATURE: a table asks its writers for less, or stays as it is."""

from __future__ import annotations

import pytest

from tests.live.tables import alter
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_info, rows_elsewhere


def _versions(session: Session) -> tuple[str, str]:
    told = dict(session.rows("SHOW TBLPROPERTIES t"))
    return told["delta.minReaderVersion"], told["delta.minWriterVersion"]


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


@pytest.mark.parametrize(
    ("feature", "condition"),
    [
        ("nope", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("appendOnly", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("deletionVectors", "UNSUPPORTED_FEATURE"),
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
