"""Row tracking: a row keeps its number for as long as it lives, and tells which version has changed it last."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from gateway.delta.replay import replayed
from gateway.delta.table import open_snapshot
from gateway.errors import UnsupportedError
from tests.live.tables import alter
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, newest_info


@pytest.fixture(params=["true", "false"], ids=["vectors", "files"])
def tracked(session: Session, request: pytest.FixtureRequest) -> Session:
    """``t`` with four rows of which each has a number."""
    session.run(
        "CREATE TABLE t (id INT, s STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
        f"'delta.enableDeletionVectors' = '{request.param}')"
    )
    session.run("INSERT INTO t SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd') ORDER BY 1")
    return session


def _numbers(session: Session) -> dict[int, tuple[int, int]]:
    """Number and version of each row by its id, as the protocol has them read."""
    root = str(folder_of(session))
    snapshot = open_snapshot(root)
    names = [snapshot.properties[f"delta.rowTracking.materializedRow{x}ColumnName"] for x in ("Id", "CommitVersion")]
    state = replayed(root, snapshot.version, snapshot.within)
    by_path = {path: spec for (path, _), spec in state.files.items()}
    found: dict[int, tuple[int, int]] = {}
    for at, path in enumerate(snapshot.files.paths):
        spec, live = by_path[path], snapshot.files.deleted.get(at)
        for place, row in enumerate(pq.read_table(path).to_pylist()):
            if live is not None and place < len(live) and not live[place]:
                continue
            own, version = (row.get(name) for name in names)
            assert row["id"] not in found
            found[row["id"]] = (
                spec["baseRowId"] + place if own is None else own,
                spec["defaultRowCommitVersion"] if version is None else version,
            )
    mark = json.loads(state.domains["delta.rowTracking"]["configuration"])["rowIdHighWaterMark"]
    numbers = [number for number, _ in found.values()]
    assert len(set(numbers)) == len(numbers) and max(numbers, default=-1) <= mark
    told = session.rows("SELECT id, _metadata.row_id, _metadata.row_commit_version FROM t")
    assert sorted(told) == sorted((row, *numbers) for row, numbers in found.items())
    return found


def test_new_rows_are_counted(tracked: Session) -> None:
    assert _numbers(tracked) == {i: (i - 1, 1) for i in (1, 2, 3, 4)}
    tracked.run("INSERT INTO t VALUES (5, 'e')")
    assert _numbers(tracked)[5] == (4, 2)
    (add,) = [a["add"] for a in newest_commit(tracked) if "add" in a]
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (4, 2)
    (domain,) = [a["domainMetadata"] for a in newest_commit(tracked) if "domainMetadata" in a]
    assert json.loads(domain["configuration"]) == {"rowIdHighWaterMark": 4, "domainName": "delta.rowTracking"}


def test_rows_keep_their_numbers(tracked: Session) -> None:
    tracked.run("UPDATE t SET s = 'z' WHERE id = 2")
    expected = {1: (0, 1), 2: (1, 2), 3: (2, 1), 4: (3, 1)}
    assert _numbers(tracked) == expected
    assert newest_info(tracked)["tags"] == {"delta.rowTracking.preserved": "true"}
    tracked.run("DELETE FROM t WHERE id = 3")
    del expected[3]
    assert _numbers(tracked) == expected
    tracked.run(
        "MERGE INTO t USING (SELECT * FROM VALUES (1), (9) v(id)) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (q.id) WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE"
    )
    found = _numbers(tracked)
    assert {k: v for k, v in found.items() if k != 9} == {1: (0, 4), 2: (1, 2)} and found[9][1] == 4
    tracked.run("INSERT INTO t VALUES (10, 'n')")
    before = _numbers(tracked)
    tracked.run("OPTIMIZE t")
    assert any("remove" in a for a in newest_commit(tracked)) and _numbers(tracked) == before
    tracked.run("INSERT INTO t REPLACE WHERE id = 10 VALUES (10, 'r')")
    after = _numbers(tracked)
    assert {k: v for k, v in after.items() if k != 10} == {k: v for k, v in before.items() if k != 10}
    assert after[10][0] > before[10][0]
    removes = [a["remove"] for a in newest_commit(tracked) if "remove" in a]
    assert removes and all("baseRowId" in r for r in removes)


def test_numbers_are_never_given_again(tracked: Session) -> None:
    tracked.run("INSERT INTO t VALUES (5, 'e')")
    tracked.run("RESTORE TABLE t TO VERSION AS OF 1")
    assert _numbers(tracked) == {i: (i - 1, 1) for i in (1, 2, 3, 4)}
    tracked.run("INSERT INTO t VALUES (6, 'f')")
    assert _numbers(tracked)[6][0] == 5
    tracked.run("TRUNCATE TABLE t")
    for i in range(12):  # past a checkpoint
        tracked.run(f"INSERT INTO t VALUES ({i}, 'x')")
    assert sorted(number for number, _ in _numbers(tracked).values()) == list(range(6, 18))
    tracked.run("UPDATE t SET s = 'y'")
    assert sorted(_numbers(tracked).values()) == [(n, count_versions(tracked) - 1) for n in range(6, 18)]


def test_a_table_made_of_a_query(session: Session) -> None:
    session.run("CREATE TABLE t TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS SELECT 7 AS id")
    assert _numbers(session) == {7: (0, 0)}
    protocol = [a["protocol"] for a in newest_commit(session) if "protocol" in a]
    assert {"rowTracking", "domainMetadata"} <= set(protocol[0]["writerFeatures"])


def test_what_cannot_be_kept_is_refused(session: Session) -> None:
    session.run("CREATE TABLE t (id INT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    session.run("INSERT INTO t VALUES (1)")
    names = {f"delta.rowTracking.materializedRow{x}ColumnName": "none" for x in ("Id", "CommitVersion")}
    protocol: dict[str, Any] = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["rowTracking", "domainMetadata"],
    }
    alter(
        str(folder_of(session)),
        {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true", **names},
        protocol,
    )
    assert isinstance(refused(session, "UPDATE t SET id = 2"), UnsupportedError)


_LATER = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"])
def test_rows_of_a_table_that_is_there_are_numbered_later(session: Session, properties: str) -> None:
    session.run(f"CREATE TABLE t (id INT) {properties}")
    for part in ("(1), (2), (3)", "(4)"):
        session.run(f"INSERT INTO t VALUES {part}")
    session.run("DELETE FROM t WHERE id = 2")
    session.run(_LATER)
    told = [row[4] for row in session.rows("DESCRIBE HISTORY t")[:3]]
    assert told == ["SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL"]
    before = _numbers(session)
    assert sorted(before) == [1, 3, 4] and len({number for number, _ in before.values()}) == 3
    session.run("UPDATE t SET id = 30 WHERE id = 3")
    session.run("INSERT INTO t VALUES (5)")
    session.run("OPTIMIZE t")
    after = _numbers(session)
    assert {key: after[key] for key in (1, 4)} == {key: before[key] for key in (1, 4)}
    assert after[30][0] == before[3][0] and after[30][1] > before[3][1]
    assert after[5][0] not in {number for number, _ in before.values()}
    versions = len(session.rows("DESCRIBE HISTORY t"))
    session.run("CREATE TABLE empty (id INT)")
    session.run(_LATER.replace("TABLE t", "TABLE empty"))
    assert len(session.rows("DESCRIBE HISTORY empty")) == 3
    assert len(session.rows("DESCRIBE HISTORY t")) == versions


@pytest.mark.parametrize(
    "more", ["'delta.enableRowTracking' = 'false'", "'delta.enableRowTracking' = 'true', 'k' = 'v'"]
)
def test_row_tracking_is_turned_on_later_by_itself_or_not_at_all(session: Session, more: str) -> None:
    session.run("CREATE TABLE t (id INT)")
    assert isinstance(refused(session, f"ALTER TABLE t SET TBLPROPERTIES ({more})"), UnsupportedError)


def test_a_table_in_the_place_of_one_that_tracks_its_rows(tracked: Session) -> None:
    tracked.run("CREATE OR REPLACE TABLE t TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS SELECT 7 AS id")
    assert _numbers(tracked) == {7: (4, 2)}
    assert all("baseRowId" in a["remove"] for a in newest_commit(tracked) if "remove" in a)


def test_a_restored_table_numbers_its_rows_as_before_the_feature_was_dropped(tracked: Session) -> None:
    tracked.run("INSERT INTO t VALUES (5, 'e')")
    tracked.run("DELETE FROM t WHERE id = 3")
    before, version = _numbers(tracked), count_versions(tracked) - 1
    tracked.run("ALTER TABLE t DROP FEATURE rowTracking")
    tracked.run("DELETE FROM t WHERE id = 5")  # one file goes, the other stays without its numbers
    tracked.run("INSERT INTO t VALUES (6, 'f')")
    tracked.run(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert _numbers(tracked) == before
    again = [action["add"] for action in newest_commit(tracked) if "add" in action]
    assert all("baseRowId" in add for add in again)
    assert sorted(add["dataChange"] for add in again) == [False, True]
    tracked.run("INSERT INTO t VALUES (7, 'g')")
    found = _numbers(tracked)
    number, _ = found.pop(7)
    assert number >= 5 and found == before
    tracked.run("DELETE FROM t WHERE id = 1")
    tracked.run("UPDATE t SET s = 'u' WHERE id = 2")
    assert {id_: one for id_, (one, _) in _numbers(tracked).items()} == {2: 1, 4: 3, 5: 4, 7: number}


def test_a_restored_table_has_no_number_twice_after_its_feature_was_dropped_and_added(tracked: Session) -> None:
    tracked.run("INSERT INTO t VALUES (5, 'e'), (6, 'f')")
    before, version = _numbers(tracked), count_versions(tracked) - 1
    tracked.run("ALTER TABLE t DROP FEATURE rowTracking")
    tracked.run("DELETE FROM t WHERE id < 5")
    _counted_anew(tracked)
    assert {number for number, _ in _numbers(tracked).values()} == {0, 1}
    tracked.run(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert _numbers(tracked) == before
    tracked.run("INSERT INTO t VALUES (7, 'g')")
    assert _numbers(tracked)[7][0] >= 6


def test_a_restored_version_whose_rows_were_numbered_later_has_no_number_twice(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, s STRING)")
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    features = ["rowTracking", "domainMetadata", "appendOnly", "invariants"]
    alter(str(folder_of(session)), {}, {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features})
    session.run("INSERT INTO t VALUES (3, 'c'), (4, 'd')")  # a file with numbers beside one without
    version = count_versions(session) - 1
    session.run("ALTER TABLE t DROP FEATURE rowTracking")
    session.run("DELETE FROM t WHERE id > 2")
    _counted_anew(session)
    session.run(f"RESTORE TABLE t TO VERSION AS OF {version}")
    session.run("ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    assert set(_numbers(session)) == {1, 2, 3, 4}


def test_files_whose_rows_nobody_has_counted_are_not_numbered(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, s STRING)")
    session.run("INSERT INTO t VALUES (1, 'a')")
    commit = folder_of(session) / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    commit.write_text("".join(json.dumps(_without_stats(action)) + "\n" for action in actions))
    session.run("DELETE FROM t WHERE id = 1")
    session.run("ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    before = count_versions(session)
    error = refused(session, "RESTORE TABLE t TO VERSION AS OF 1")
    assert error.condition == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"
    assert count_versions(session) == before


def _counted_anew(session: Session) -> None:
    """Number the rows of a table that has lost the feature so long ago that nothing is left of it."""
    for number in range(10):
        session.run(f"ALTER TABLE t SET TBLPROPERTIES ('n' = '{number}')")
    session.run("ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")


def _without_stats(action: dict[str, Any]) -> dict[str, Any]:
    return {"add": {**action["add"], "stats": None}} if "add" in action else action


def test_a_table_like_one_that_keeps_them_counts_its_own(session: Session) -> None:
    session.run("CREATE TABLE kept (k INT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    session.run("INSERT INTO kept VALUES (1), (2)")
    session.run("CREATE TABLE alike LIKE kept")
    session.run("INSERT INTO alike VALUES (3), (4)")
    assert session.run("SELECT k, _metadata.row_id FROM alike ORDER BY k").rows == [(3, 0), (4, 1)]
    names = [
        {k: v for k, v in session.run(f"SHOW TBLPROPERTIES {table}").rows if k.startswith("delta.rowTracking.")}
        for table in ("kept", "alike")
    ]
    assert len(names[1]) == 2 and not set(names[0].values()) & set(names[1].values())
