"""Partition values of TIMESTAMP columns without a zone: by the clock of the session, as Spark reads them."""

from __future__ import annotations

import pytest

from gateway.delta.table import open_snapshot, witness
from gateway.instants import known_zone
from tests.live.processes import eventually
from tests.live.zoneless import TEXTS, ZONES, make
from tests.unit.runner.session import Session
from tests.unit.runner.written import folder_of, newest_commit

_SHOWN = "SELECT i, date_format(at, 'yyyy-MM-dd HH:mm:ss.S'), unix_seconds(at) FROM z ORDER BY i"
# What Spark 4.2 with Delta 4.4 answers: see tests/spark/test_partition_values.py.
_SECONDS = {
    "UTC": [None, 1704067200, 1710037800, 1730597400, 1704085200],
    "America/New_York": [None, 1704085200, 1710055800, 1730611800, 1704085200],
    "Asia/Kolkata": [None, 1704047400, 1710018000, 1730577600, 1704085200],
    "+02:00": [None, 1704060000, 1710030600, 1730590200, 1704085200],
}


@pytest.fixture(params=[False, True], ids=["commits", "checkpoint"])
def zoned(session: Session, request: pytest.FixtureRequest) -> Session:
    """The table ``z``."""
    make(session.run, lambda: folder_of(session, "z"), checkpoint=request.param)
    if request.param:
        assert list((folder_of(session, "z") / "_delta_log").glob("*.checkpoint*.parquet"))
        session.run("DELETE FROM z WHERE i = 5")
    return session


@pytest.mark.parametrize("zone", ZONES)
def test_each_session_has_its_own_instants(zoned: Session, zone: str) -> None:
    zoned.run(f"SET TIME ZONE '{zone}'")
    assert [row[2] for row in zoned.rows(_SHOWN)] == _SECONDS[zone]
    for i, seconds in enumerate(_SECONDS[zone][1:3], 1):
        same = [(k,) for k, other in enumerate(_SECONDS[zone]) if other == seconds]
        fraction = " + INTERVAL '0.5' SECOND" if i == 2 else ""
        wanted = f"timestamp_seconds({seconds}){fraction}"
        assert zoned.rows(f"SELECT i FROM z WHERE at = {wanted} ORDER BY i") == same
        assert (0,) not in zoned.rows(f"SELECT i FROM z WHERE at <> {wanted}")
    assert zoned.rows("SELECT count(DISTINCT at), unix_seconds(min(at)) FROM z") == [
        (len(set(_SECONDS[zone])) - 1, min(s for s in _SECONDS[zone] if s is not None))
    ]


def test_the_zone_is_that_of_the_statement(zoned: Session) -> None:
    for zone in (*ZONES, *ZONES):
        zoned.run(f"SET TIME ZONE '{zone}'")
        assert [row[2] for row in zoned.rows(_SHOWN)] == _SECONDS[zone]


_MOMENT = "TIMESTAMP'2024-01-01 00:00:00'"


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        (f"DELETE FROM z WHERE at = {_MOMENT}", [0, 2, 3]),
        (f"UPDATE z SET i = i + 10 WHERE at = {_MOMENT}", [0, 2, 3, 11, 14]),
        (f"MERGE INTO z USING (SELECT {_MOMENT} AS at) s ON z.at = s.at WHEN MATCHED THEN DELETE", [0, 2, 3]),
        (f"INSERT INTO z REPLACE WHERE at = {_MOMENT} VALUES (9, {_MOMENT})", [0, 2, 3, 9]),
    ],
)
def test_changes_by_the_sessions_clock(zoned: Session, statement: str, left: list[int]) -> None:
    zoned.run("SET TIME ZONE 'America/New_York'")
    zoned.run(statement)
    assert zoned.rows("SELECT i FROM z ORDER BY i") == [(i,) for i in left]
    zoned.run("SET TIME ZONE 'UTC'")
    assert zoned.rows("SELECT i FROM z ORDER BY i") == [(i,) for i in left]


def test_partitions_that_are_overwritten(zoned: Session) -> None:
    zoned.run("SET TIME ZONE 'America/New_York'")
    zoned.run("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    zoned.run("INSERT OVERWRITE z VALUES (7, TIMESTAMP'2024-01-01 00:00:00')")
    assert zoned.rows("SELECT i FROM z ORDER BY i") == [(0,), (2,), (3,), (7,)]


def test_what_is_written_names_its_zone(zoned: Session) -> None:
    zoned.run("SET TIME ZONE 'America/New_York'")
    before = zoned.rows(_SHOWN)
    zoned.run("INSERT INTO z SELECT i + 10, at FROM z WHERE i = 1")
    zoned.run("OPTIMIZE z")
    adds = [a["add"]["partitionValues"]["at"] for a in newest_commit(zoned, "z") if "add" in a]
    assert adds == ["2024-01-01T05:00:00.000000Z"]
    assert zoned.rows(_SHOWN)[: len(before)] == before


def test_the_feed_and_older_versions(zoned: Session) -> None:
    zoned.run("SET TIME ZONE 'Asia/Kolkata'")
    told = "SELECT i, unix_seconds(at) FROM table_changes('z', 1, 1) ORDER BY i"
    assert [row[1] for row in zoned.rows(told)] == _SECONDS["Asia/Kolkata"]
    assert [row[2] for row in zoned.rows(_SHOWN.replace("z ORDER", "z VERSION AS OF 1 ORDER"))] == _SECONDS[
        "Asia/Kolkata"
    ]
    place = folder_of(zoned, "z")
    assert [row[2] for row in zoned.rows(_SHOWN.replace("FROM z", f"FROM delta.`{place}`"))] == _SECONDS["Asia/Kolkata"]


def test_what_is_removed_is_told_as_it_was(zoned: Session) -> None:
    zoned.run("SET TIME ZONE 'America/New_York'")
    zoned.run("TRUNCATE TABLE z")
    told = {a["remove"]["partitionValues"]["at"] for a in newest_commit(zoned, "z") if "remove" in a}
    assert told == {None, *TEXTS.values()}


def test_a_zone_that_moves_nothing_leaves_the_files_what_they_were(zoned: Session) -> None:
    folder = str(folder_of(zoned, "z"))
    eventually(lambda: witness(open_snapshot(folder)) is not None, 10)  # what has just changed may change again unseen
    snapshot = open_snapshot(folder)
    assert snapshot.in_zone(known_zone("Etc/UTC")).files is snapshot.files
    there = snapshot.in_zone(known_zone("Asia/Kolkata"))
    assert there.files.partitions["at"] != snapshot.files.partitions["at"]
    assert witness(there) == witness(snapshot) is not None


def test_a_query_stays_compiled_for_its_zone(zoned: Session) -> None:
    for zone in (*ZONES, *ZONES):
        zoned.run(f"SET TIME ZONE '{zone}'")
        for _ in range(2):
            assert [row[2] for row in zoned.rows(_SHOWN)] == _SECONDS[zone]


def test_the_feed_of_versions_whose_values_are_gone(zoned: Session) -> None:
    zoned.run("SET TIME ZONE 'America/New_York'")
    zoned.run("INSERT OVERWRITE z SELECT i, at FROM z")
    texts = [a["add"]["partitionValues"]["at"] for a in newest_commit(zoned, "z") if "add" in a]
    assert texts and all(text is None or text.endswith("Z") for text in texts)
    told = "SELECT i, unix_seconds(at) FROM table_changes('z', 1, 1) ORDER BY i"
    assert [row[1] for row in zoned.rows(told)] == _SECONDS["America/New_York"]
