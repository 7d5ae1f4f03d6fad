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


_WITHOUT = "'delta.enableDeletionVectors' = 'false'"
_DROPPED = {
    "deletionVectors": "'delta.enableDeletionVectors' = 'true'",
    "typeWidening": f"{_WITHOUT}, 'delta.enableTypeWidening' = 'true'",
    "v2Checkpoint": f"{_WITHOUT}, 'delta.checkpointPolicy' = 'v2'",
    "rowTracking": f"{_WITHOUT}, 'delta.enableRowTracking' = 'true'",
    "columnMapping": f"{_WITHOUT}, 'delta.columnMapping.mode' = 'name'",
}


@pytest.mark.parametrize("feature", list(_DROPPED))
def test_spark_writes_what_readers_no_longer_have_to_know(sql: Sql, feature: str) -> None:
    sql.auto("DROP TABLE IF EXISTS less")
    sql.embedded(f"CREATE TABLE less (id INT, s STRING) TBLPROPERTIES ({_DROPPED[feature]})")
    sql.embedded("INSERT INTO less VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql.embedded("DELETE FROM less WHERE id = 1")
    if feature == "typeWidening":
        sql.embedded("ALTER TABLE less ALTER COLUMN id TYPE BIGINT")
    sql.embedded(f"ALTER TABLE less DROP FEATURE {feature}")
    told = dict(sql.spark("SHOW TBLPROPERTIES less"))
    assert f"delta.feature.{feature}" not in told and told["delta.minReaderVersion"] == "1"
    sql.spark("INSERT INTO less VALUES (4, 'd')")
    sql.spark("DELETE FROM less WHERE id = 2")
    for read in (sql.spark, sql.embedded):
        assert read("SELECT * FROM less ORDER BY id") == [(3, "c"), (4, "d")]
        assert read("SELECT id FROM less VERSION AS OF 1 ORDER BY id") == [(1,), (2,), (3,)]
