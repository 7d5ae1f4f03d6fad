"""Constraints of tables: no row gets in that breaks one, whatever writes it, and nothing else is kept from getting in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from gateway.delta import commit, log
from gateway.errors import UnsupportedError
from tests.live.tables import alter
from tests.unit.runner.session import Session, refused


def _folder(session: Session) -> str:
    return session.runner.catalogs["main"].table_location("shop", "t")


def _altered(session: Session, properties: dict[str, str], **protocol: Any) -> None:
    """Another commit, as Spark writes it: properties, and what the protocol asks of writers."""
    alter(_folder(session), properties, {"minReaderVersion": 1, "minWriterVersion": 3} | protocol)


@pytest.fixture
def constrained(session: Session) -> Session:
    """``t`` with two rows and three constraints."""
    session.run("CREATE TABLE t (id INT, s STRING, n STRUCT<a: INT>) TBLPROPERTIES ('k' = 'v')")
    texts = {"pos": "id > 0", "ast": "n . a > 1 OR upper ( s ) = 'X'", "few": "id % 100 < 50"}
    _altered(session, {f"delta.constraints.{name}": text for name, text in texts.items()})
    session.run("INSERT INTO t VALUES (1, 'x', NULL), (2, 'y', named_struct('a', 5))")
    return session


@pytest.mark.parametrize(
    ("statement", "name", "values"),
    [
        ("INSERT INTO t VALUES (7, 'x', NULL), (0, 'x', NULL)", "pos", ["id : 0"]),
        ("INSERT INTO t VALUES (NULL, 'x', NULL)", "few", ["id : null"]),
        ("INSERT INTO t (id, s) SELECT id - 3, 'x' FROM range(10)", "pos", ["id : -3"]),
        ("INSERT INTO t VALUES (1, NULL, named_struct('a', 0))", "ast", ["n.a : 0", "s : null"]),
        ("INSERT OVERWRITE t VALUES (60, 'x', NULL)", "few", ["id : 60"]),
        ("INSERT INTO t REPLACE WHERE id < 0 VALUES (-1, 'x', NULL)", "pos", ["id : -1"]),
        ("UPDATE t SET id = -id WHERE id = 2", "pos", ["id : -2"]),
        ("UPDATE t SET s = 'nope'", "ast", ["n.a : null", "s : nope"]),
        ("MERGE INTO t USING (SELECT 1 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = 'z'", "ast", ["s : z"]),
        ("MERGE INTO t USING (SELECT 70 AS id) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.id, 'x')",
         "few", ["id : 70"]),
    ],
)  # fmt: skip
def test_no_row_gets_in_that_breaks_one(constrained: Session, statement: str, name: str, values: list[str]) -> None:
    folder = Path(_folder(constrained))
    before = log.commit_versions(str(folder)), sorted(folder.iterdir())
    error = refused(constrained, statement)
    assert (error.condition, error.sqlstate) == ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001")
    assert error.message.startswith(f"CHECK constraint {name} (")
    assert all(f"\n - {value}" in error.message for value in values)
    assert (log.commit_versions(str(folder)), sorted(folder.iterdir())) == before


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO t VALUES (3, 'X', NULL)", [(1, "x"), (2, "y"), (3, "X")]),
        ("UPDATE t SET id = id + 10", [(11, "x"), (12, "y")]),
        ("DELETE FROM t WHERE id = 1", [(2, "y")]),
        ("INSERT OVERWRITE t VALUES (9, 'x', NULL)", [(9, "x")]),
        ("INSERT INTO t REPLACE WHERE id = 1 VALUES (1, 'X', NULL)", [(1, "X"), (2, "y")]),
        ("MERGE INTO t USING (SELECT 2 AS id) q ON t.id = q.id WHEN MATCHED THEN DELETE", [(1, "x")]),
        ("OPTIMIZE t", [(1, "x"), (2, "y")]),
        ("RESTORE t TO VERSION AS OF 1", []),
        ("TRUNCATE TABLE t", []),
    ],
)
def test_what_keeps_them_gets_in(constrained: Session, statement: str, rows: list[tuple[Any, ...]]) -> None:
    constrained.run(statement)
    assert sorted(constrained.rows("SELECT id, s FROM t")) == rows
    assert DeltaTable(_folder(constrained)).scan().read_all().num_rows == len(rows)


@pytest.mark.parametrize("text", ["no_such(id)", "nowhere > 1", "id", "id >", "histogram_numeric(id, 3) IS NULL"])
def test_a_constraint_that_is_not_understood_keeps_all_rows_out(session: Session, text: str) -> None:
    session.run("CREATE TABLE t (id INT)")
    _altered(session, {"delta.constraints.odd": text})
    error = refused(session, "INSERT INTO t VALUES (1)")
    assert isinstance(error, UnsupportedError)


def test_invariants_of_columns(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    folder = _folder(session)
    (metadata,) = [a["metaData"] for a in log.actions(folder, 0) if "metaData" in a]
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"]["delta.invariants"] = json.dumps({"expression": {"expression": "id < 10"}})
    changed = {**metadata, "schemaString": json.dumps(schema)}
    commit.publish(folder, 1, [commit.info_action("X", {}, {}, False), {"metaData": changed}])
    session.run("INSERT INTO t VALUES (9)")
    error = refused(session, "INSERT INTO t VALUES (10)")
    assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" and "EXPRESSION(id < 10)" in error.message


def test_parameters_of_lambdas_are_no_values_of_a_row(session: Session) -> None:
    session.run("CREATE TABLE t (a ARRAY<INT>)")
    _altered(session, {"delta.constraints.sum": "aggregate(a, 0, (s, x) -> s + x) > 2"})
    session.run("INSERT INTO t VALUES (array(1, 2))")
    error = refused(session, "INSERT INTO t VALUES (array(1, 1))")
    assert error.message.endswith("violated by row with values:\n - a : [1, 1]")


def test_a_constraint_that_comes_while_rows_are_computed(constrained: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = commit.publish
    asked: list[str] = []

    def late(*arguments: Any) -> None:
        if not asked:
            asked.append("now")
            _altered(constrained, {"delta.constraints.new": "id = 5"})
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)
    error = refused(constrained, "INSERT INTO t VALUES (3, 'x', NULL)")
    assert error.condition == "WRITE_CONFLICT"


def test_commits_with_timestamps_in_them(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    features = {"minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp", "appendOnly", "invariants"]}
    folder = _folder(session)
    (metadata,) = [a["metaData"] for a in log.actions(folder, 0) if "metaData" in a]
    properties = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "1"}
    info = commit.info_action("X", {}, {}, False)["commitInfo"]
    far = commit.now_ms() + 3_600_000
    spec = {"minReaderVersion": 1, **features}
    actions = [
        {"commitInfo": {"inCommitTimestamp": far, **info}},
        {"protocol": spec},
        {"metaData": {**metadata, "configuration": properties}},
    ]
    commit.publish(folder, 1, actions)
    statements = (
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET id = 3 WHERE id = 1",
        "OPTIMIZE t",
        "VACUUM t",
    )
    for statement in statements:
        session.run(statement)
    moments = []
    for version in log.commit_versions(folder)[1:]:
        first = log.actions(folder, version)[0]
        moments.append(first["commitInfo"]["inCommitTimestamp"])
    assert moments == [far + i for i in range(7)]
    assert sorted(session.rows("SELECT * FROM t")) == [(2,), (3,)]
    session.run("RESTORE t TO VERSION AS OF 2")
    assert log.actions(folder, 8)[0]["commitInfo"]["inCommitTimestamp"] == far + 7
    assert session.rows("SELECT * FROM t") == [(1,)]
