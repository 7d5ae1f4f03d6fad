"""Which statements may run beside the slots: what is not short is put back before anything has been done."""

from __future__ import annotations

import pytest

from gateway.engine.base import NotBriefError, Statement
from tests.unit.runner.session import Events, Session

SHORT = [
    "SELECT 1",
    "SELECT sum(id) FROM range(1000000)",
    "SELECT count(*) FROM samples.tpch.nation",
    "WITH a AS (SELECT * FROM samples.tpch.nation) SELECT * FROM a x JOIN a y USING (n_nationkey)",
    "SHOW TABLES IN samples.tpch",
    "DESCRIBE TABLE samples.tpch.nation",
    "EXPLAIN SELECT * FROM range(100000000)",
    "USE shop",
    "SET TIME ZONE 'Asia/Tokyo'",
    "CREATE TABLE made (id INT)",
    "INSERT INTO TABLE t VALUES (1), (2)",
    "CREATE OR REPLACE VIEW v AS SELECT * FROM t",
    "CREATE OR REPLACE TEMPORARY VIEW w AS SELECT id FROM range(100000000)",
    "DROP TABLE IF EXISTS made",
]
LONG = [
    "SELECT sum(id) FROM range(1000001)",
    "SELECT sum(a.id) FROM range(-600000, 0) a, range(600000, 0, -1) b",
    "INSERT INTO t SELECT id FROM range(3)",
    "INSERT INTO t TABLE t",
    "INSERT INTO t WITH a AS (SELECT 1) SELECT * FROM a",
    "CREATE TABLE made AS SELECT 1 AS a",
    "CREATE TABLE made AS TABLE t",
    "DELETE FROM t WHERE id = 1",
    "UPDATE t SET id = 1",
    "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "SELECT " + ", ".join(f"{i}" for i in range(2001)),
    " UNION ALL ".join(["SELECT 1 FROM samples.tpch.region"] * 9),
]


@pytest.fixture
def brief(session: Session) -> Session:
    session.run("CREATE TABLE t (id INT)")
    session.run("INSERT INTO t VALUES (1)")
    return session


def events_of(session: Session, text: str) -> Events:
    events = Events()
    session.runner.run(Statement("s", text, session.state, brief=True), events)
    return events


@pytest.mark.parametrize("text", SHORT)
def test_short_ones_run(brief: Session, text: str) -> None:
    assert events_of(brief, text).events


@pytest.mark.parametrize("text", LONG)
def test_others_are_put_back_and_have_done_nothing(brief: Session, text: str) -> None:
    events = Events()
    with pytest.raises(NotBriefError):
        brief.runner.run(Statement("s", text, brief.state, brief=True), events)
    assert not events.events and not events.batches
    assert brief.run("SELECT * FROM t").rows == [(1,)]
    assert brief.run("SHOW TABLES").rows == [("shop", "t", False)]
