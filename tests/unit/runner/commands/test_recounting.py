"""ANALYZE … COMPUTE DELTA STATISTICS: what the log tells of files is what it would tell had they been written now."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.delta import log
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, newest_info, rows_here_and_there

_COLUMNS = (
    "i INT, p STRING, s STRING, d DECIMAL(20,3), x DOUBLE, dt DATE, t TIMESTAMP, n TIMESTAMP_NTZ, b BOOLEAN, bi BINARY, "
    "c CHAR(3), v VARCHAR(5), st STRUCT<a: BIGINT, `b`: STRUCT<c: STRING>>, ar ARRAY<INT>, va VARIANT"
)
_ROWS = (
    "(1, 'x', repeat('long', 20), 1234567890123.456BD, double('nan'), DATE'0001-01-01', TIMESTAMP'2024-01-01 10:00:00.123456', "
    "TIMESTAMP_NTZ'2024-01-01 00:00:00', true, X'00', 'a', 'vw', named_struct('a', 9, 'b', named_struct('c', 'é')), array(1), "
    "parse_json('1')), "
    "(2, 'x', NULL, -0.001BD, 1.5D, DATE'9999-12-31', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
    "(3, 'y', '', NULL, NULL, NULL, TIMESTAMP'1969-12-31 23:59:59.999999', NULL, false, NULL, 'bcd', '', "
    "named_struct('a', NULL, 'b', NULL), array(), NULL)"
)
_ANALYZE = "ANALYZE TABLE t COMPUTE DELTA STATISTICS"


def _adds(session: Session) -> dict[str, dict[str, Any]]:
    """The newest ``add`` of each file."""
    folder = str(folder_of(session))
    found = {}
    for version in log.commit_versions(folder):
        found.update({a["add"]["path"]: a["add"] for a in log.actions(folder, version) if "add" in a})
    return found


def _tell(session: Session, said: str | None) -> None:
    """Have the log say something else of all files, or nothing."""
    for path in folder_of(session).glob("_delta_log/*.json"):
        actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "add" in action:
                action["add"]["stats"] = said
        path.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")


def _statistics(session: Session) -> dict[str, Any]:
    return {path: json.loads(add["stats"], parse_float=str) for path, add in _adds(session).items()}


@pytest.mark.parametrize(
    "properties",
    [
        "'delta.enableDeletionVectors' = 'false'",
        "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
        "'delta.columnMapping.mode' = 'name', 'delta.dataSkippingNumIndexedCols' = '11'",
        "'delta.columnMapping.mode' = 'id', 'delta.enableInCommitTimestamps' = 'true'",
    ],
)
def test_files_are_told_of_as_when_they_were_written(session: Session, properties: str) -> None:
    session.run(f"CREATE TABLE t ({_COLUMNS}) PARTITIONED BY (p) TBLPROPERTIES ({properties})")
    session.run(f"INSERT INTO t VALUES {_ROWS}")
    statistics, rows = _statistics(session), session.rows("SELECT * EXCEPT (x) FROM t ORDER BY i")
    assert session.run(_ANALYZE).rows == [] and count_versions(session) == 2  # nothing is told in another way
    _tell(session, None)
    session.run(_ANALYZE)
    assert _statistics(session) == statistics and len(statistics) == 2
    assert session.rows("SELECT * EXCEPT (x) FROM t ORDER BY i") == rows
    commit = newest_commit(session)
    assert {tuple(action) for action in commit} == {("commitInfo",), ("add",)}
    assert not any(action["add"]["dataChange"] for action in commit if "add" in action)
    info = newest_info(session)
    assert (info["operation"], info["operationParameters"]) == ("COMPUTE STATS", {"predicate": '["true"]'})
    assert info["isolationLevel"] == "SnapshotIsolation" and info["isBlindAppend"] is False
    session.run("UPDATE t SET s = 'new' WHERE i = 3")
    assert session.rows("SELECT s FROM t WHERE i > 2") == [("new",)]


def test_other_columns_are_told_of(session: Session) -> None:
    session.run("CREATE TABLE t (a INT, b STRING, c INT)")
    session.run("INSERT INTO t VALUES (1, 'x', 5), (2, NULL, 6)")
    session.run("ALTER TABLE t SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b')")
    session.run(_ANALYZE)
    (found,) = _statistics(session).values()
    del found["tightBounds"]
    assert found == {"numRecords": 2, "minValues": {"b": "x"}, "maxValues": {"b": "x"}, "nullCount": {"b": 1}}
    _tell(session, '{"numRecords":2,"minValues":{"b":"z"},"maxValues":{"b":"z"},"nullCount":{"b":0}}')
    assert session.rows("SELECT a FROM t WHERE b = 'x'") == []  # which is what such statistics do
    session.run(_ANALYZE)
    assert session.rows("SELECT a FROM t WHERE b = 'x'") == [(1,)]


def test_bounds_of_files_with_deleted_rows_are_not_tight(session: Session) -> None:
    session.run("CREATE TABLE t (i INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    session.run("INSERT INTO t SELECT CAST(id AS INT) FROM range(100)")
    session.run("DELETE FROM t WHERE i > 89")
    _tell(session, '{"numRecords":100}')
    session.run(_ANALYZE)
    (found,) = _statistics(session).values()
    assert found == {
        "numRecords": 100,
        "minValues": {"i": 0},
        "maxValues": {"i": 99},
        "nullCount": {"i": 0},
        "tightBounds": False,
    }
    assert len(rows_here_and_there(session)) == 90
    assert session.rows("SELECT count(*), max(i) FROM t") == [(90, 89)]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        (f"{_ANALYZE} NOSCAN", "UNSUPPORTED_FEATURE"),
        (f"{_ANALYZE} FOR COLUMNS i", "UNSUPPORTED_FEATURE"),
        ("ANALYZE TABLE t PARTITION (p = 'x') COMPUTE STATISTICS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("ANALYZE TABLE t PARTITION (p, i = 1 + 1) COMPUTE STATISTICS NOSCAN", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("ANALYZE TABLE t PARTITION p COMPUTE STATISTICS", "PARSE_SYNTAX_ERROR"),
        ("ANALYZE TABLE nope PARTITION (p = 'x') COMPUTE STATISTICS", "TABLE_OR_VIEW_NOT_FOUND"),
        ("ANALYZE TABLE nope COMPUTE DELTA STATISTICS", "TABLE_OR_VIEW_NOT_FOUND"),
        ("ANALYZE TABLE samples.tpch.region COMPUTE DELTA STATISTICS", "PERMISSION_DENIED"),
    ],
)
def test_what_is_not_told_is_refused(session: Session, statement: str, condition: str) -> None:
    session.run("CREATE TABLE t (i INT, p STRING) PARTITIONED BY (p)")
    error = refused(session, statement)
    assert error.condition == condition and error.span is not None
    assert count_versions(session) == 1


def test_a_file_that_is_gone_is_told_by_name(session: Session) -> None:
    session.run("CREATE TABLE t (i INT)")
    session.run("INSERT INTO t VALUES (1)")
    _tell(session, None)
    for path in folder_of(session).glob("*.parquet"):
        path.unlink()
    assert refused(session, _ANALYZE).condition == "DELTA_FILE_NOT_FOUND"
    assert count_versions(session) == 2
