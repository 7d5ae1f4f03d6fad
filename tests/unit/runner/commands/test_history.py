"""DESCRIBE HISTORY, DESCRIBE DETAIL and SHOW PARTITIONS: what the log says, in Spark's columns."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from gateway.delta import log
from tests.unit.runner.session import Session, refused


@pytest.fixture
def table(session: Session) -> Session:
    """``t``, made, filled and changed."""
    session.run("CREATE TABLE t (id INT, p STRING, d DATE) PARTITIONED BY (p, d) COMMENT 'c' TBLPROPERTIES ('a' = 'b')")
    session.run("INSERT INTO t VALUES (1, 'x', DATE'2024-01-02'), (2, 'x', DATE'2024-01-02'), (3, NULL, NULL)")
    session.run("DELETE FROM t WHERE id = 1")
    return session


def test_history_is_told_newest_first(table: Session) -> None:
    result = table.run("DESCRIBE HISTORY t")
    names = [name for name, _, _ in result.columns]
    assert names[:6] == ["version", "timestamp", "userId", "userName", "operation", "operationParameters"]
    assert [kind for _, kind, _ in result.columns][12:] == ["map<string,string>", "string", "string"]
    by_name = [dict(zip(names, row, strict=True)) for row in result.rows]
    assert [(r["version"], r["operation"], r["readVersion"], r["isBlindAppend"]) for r in by_name] == [
        (2, "DELETE", 1, False),
        (1, "WRITE", 0, True),
        (0, "CREATE TABLE", None, True),
    ]
    assert dict(by_name[0]["operationParameters"]) == {"predicate": '["(id = 1)"]'}
    assert dict(by_name[0]["operationMetrics"])["numDeletedRows"] == "1"
    assert dict(by_name[1]["operationParameters"]) == {"mode": "Append", "partitionBy": "[]"}
    assert dict(by_name[2]["operationParameters"]) == {
        "partitionBy": '["p","d"]',
        "clusterBy": "[]",
        "description": "c",
        "isManaged": "true",
        "properties": '{"a":"b","delta.enableDeletionVectors":"true"}',
    }
    assert all(row["engineInfo"] == "delta-sql-gateway" for row in by_name)
    assert table.rows("DESC HISTORY main.shop.t LIMIT 1")[0][0] == 2


def test_history_of_commits_that_say_nothing_or_other_things(table: Session) -> None:
    folder = Path(table.runner.catalogs["main"].table_location("shop", "t"))
    info = {"timestamp": 1, "operation": "X", "operationParameters": {"n": 5, "o": {"k": [1]}}, "job": {"jobId": "7"}}
    for version, actions in ((3, []), (4, [{"commitInfo": info}])):
        lines = "".join(json.dumps(a) + "\n" for a in (*actions, {"txn": {"appId": "a", "version": version}}))
        Path(log.commit_path(str(folder), version)).write_text(lines)
    newest, silent, *_ = table.rows("DESCRIBE HISTORY t")
    assert newest[4] == "X"
    assert dict(newest[5]) == {"n": "5", "o": '{"k":[1]}'}
    assert newest[6]["jobId"] == "7"
    assert (silent[0], silent[4], silent[5], silent[12]) == (3, None, None, None)
    assert isinstance(silent[1], dt.datetime)


def test_detail(table: Session) -> None:
    result = table.run("DESCRIBE DETAIL t")
    (row,) = result.rows
    found = dict(zip((name for name, _, _ in result.columns), row, strict=True))
    assert (found["format"], found["name"], found["description"]) == ("delta", "main.shop.t", "c")
    assert (found["partitionColumns"], found["clusteringColumns"]) == (["p", "d"], [])
    assert (found["numFiles"], dict(found["properties"])) == (2, {"a": "b", "delta.enableDeletionVectors": "true"})
    assert (found["minReaderVersion"], found["minWriterVersion"]) == (3, 7)
    assert found["tableFeatures"] == ["appendOnly", "deletionVectors", "invariants"]
    sizes = [p.stat().st_size for p in Path(found["location"].removeprefix("file:")).rglob("*.parquet")]
    assert 0 < found["sizeInBytes"] == sum(sizes)  # what is deleted is marked
    assert found["createdAt"] <= found["lastModified"]


def test_partitions(table: Session) -> None:
    result = table.run("SHOW PARTITIONS t")
    assert result.columns == [("p", "string", True), ("d", "date", True)]
    assert sorted(result.rows, key=repr) == [("x", dt.date(2024, 1, 2)), (None, None)]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("DESCRIBE HISTORY nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DESCRIBE DETAIL v", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("SHOW PARTITIONS plain", "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE"),
        ("DESCRIBE HISTORY t LIMIT x", "PARSE_SYNTAX_ERROR"),
        ("DESCRIBE HISTORY t t", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_faults(table: Session, statement: str, condition: str) -> None:
    table.run("CREATE VIEW v AS SELECT 1 AS a")
    table.run("CREATE TABLE plain (a INT)")
    assert refused(table, statement).condition == condition
