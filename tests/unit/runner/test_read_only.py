"""A statement of which only reading was asked does nothing else: it is refused before anything happens."""

from __future__ import annotations

import pytest

from gateway.errors import UserError
from gateway.worker_jobs import Statement
from tests.unit.runner.session import Events, Session


@pytest.fixture
def kept(session: Session) -> Session:
    session.run("CREATE TABLE shop.kept AS SELECT id FROM range(3)")
    return session


@pytest.mark.parametrize("brief", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO shop.kept VALUES (9)",
        "WITH a AS (SELECT 9 AS id) INSERT INTO shop.kept SELECT * FROM a",
        "FROM range(9) INSERT INTO shop.kept SELECT id",
        "DELETE FROM shop.kept",
        "DROP TABLE shop.kept",
        "CREATE TABLE shop.more AS SELECT 1 AS x",
        "CREATE TEMPORARY VIEW more AS SELECT 1 AS x",
        "TRUNCATE TABLE shop.kept",
        "OPTIMIZE shop.kept",
        "SET gateway.engine = spark",
        "EXPLAIN DELETE FROM shop.kept",
        "BEGIN INSERT INTO shop.kept VALUES (9); END",
    ],
)
def test_what_does_more_is_refused_before_anything_happens(kept: Session, text: str, brief: bool) -> None:
    events = Events()
    with pytest.raises(UserError) as caught:
        kept.runner.run(Statement("s", text, kept.state, brief=brief, read_only=True), events)
    assert caught.value.condition == "NOT_READ_ONLY"
    assert not events.events
    assert kept.rows("SELECT count(*), sum(id) FROM shop.kept") == [(3, 3)]
    assert kept.rows("DESCRIBE HISTORY shop.kept")[0][0] == 0
    assert [row[1] for row in kept.rows("SHOW TABLES IN shop LIKE 'more'")] == []


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT count(*) FROM shop.kept", 1),
        ("WITH a AS (TABLE shop.kept) FROM a SELECT id", 3),
        ("SHOW TABLES IN shop LIKE 'kept'", 1),
        ("DESCRIBE shop.kept", 1),
        ("DESCRIBE HISTORY shop.kept", 1),
        ("EXPLAIN SELECT * FROM shop.kept", 1),
    ],
)
def test_what_reads_runs(kept: Session, text: str, rows: int) -> None:
    events = Events()
    kept.runner.run(Statement("s", text, kept.state, read_only=True), events)
    assert sum(batch.num_rows for batch in events.batches) == rows
