"""Features that either engine has dropped: the other writes the table after that."""

from __future__ import annotations

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark


def test_each_engine_writes_what_the_other_has_taken_features_from(sql: Sql) -> None:
    for name in ("ours", "theirs"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
    times = "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"
    sql.embedded(f"CREATE TABLE ours (id INT, CONSTRAINT c CHECK (id > 0)) {times}")
    sql.embedded("INSERT INTO ours VALUES (1)")
    sql.embedded("ALTER TABLE ours DROP CONSTRAINT c")
    sql.embedded("ALTER TABLE ours DROP FEATURE checkConstraints")
    sql.embedded("ALTER TABLE ours DROP FEATURE inCommitTimestamp")
    sql.spark("INSERT INTO ours VALUES (-2)")
    assert sql.spark("SELECT * FROM ours ORDER BY id") == [(-2,), (1,)]
    assert sql.spark("SELECT * FROM ours VERSION AS OF 1") == [(1,)]
    sql.embedded("CREATE TABLE theirs (id INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    sql.embedded("INSERT INTO theirs VALUES (1), (2), (3)")
    sql.embedded("DELETE FROM theirs WHERE id = 2")
    sql.spark("ALTER TABLE theirs DROP FEATURE deletionVectors")
    sql.embedded("INSERT INTO theirs VALUES (4)")
    sql.embedded("UPDATE theirs SET id = 5 WHERE id = 1")
    assert (
        sql.spark("SELECT * FROM theirs ORDER BY id")
        == sql.embedded("SELECT * FROM theirs ORDER BY id")
        == [(3,), (4,), (5,)]
    )
