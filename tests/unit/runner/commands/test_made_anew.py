"""A table that is dropped and made anew while rows for it are made takes none of them: its name alone is the same."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.delta import changes, commit, log, logged
from gateway.delta.replay import replayed
from gateway.errors import GatewayError
from tests.unit.runner.session import Session

MADE = ("CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (1), (2)", "INSERT INTO t VALUES (3)")
WRITES = (
    "INSERT INTO t VALUES (9)",
    "INSERT INTO t SELECT id + 10 FROM t",
    "INSERT OVERWRITE t VALUES (9)",
    "DELETE FROM t WHERE id = 1",
    "UPDATE t SET id = 8 WHERE id = 1",
    "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "OPTIMIZE t",
    "RESTORE TABLE t TO VERSION AS OF 0",
    "ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')",
    "ALTER TABLE t ADD COLUMN more INT",
    "COMMENT ON TABLE t IS 'old'",
    "CREATE OR REPLACE TABLE t AS SELECT 9 AS id",
)


@pytest.mark.parametrize("versions", [1, 3, 5])
@pytest.mark.parametrize("write", WRITES)
def test_another_table_of_the_name_is_left_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch, write: str, versions: int
) -> None:
    for statement in MADE:
        session.run(statement)
    publish = commit.publish

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(commit, "publish", publish)
        session.run("DROP TABLE t")
        session.run("CREATE TABLE t (s STRING)")
        for number in range(1, versions):
            session.run(f"INSERT INTO t VALUES ('{number}')")
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)
    with pytest.raises(GatewayError) as caught:
        session.run(write)
    assert caught.value.retryable, caught.value
    assert session.rows("SELECT * FROM t ORDER BY s") == [(str(number),) for number in range(1, versions)]
    assert len(session.rows("DESCRIBE HISTORY t")) == versions
    session.run("INSERT INTO t VALUES ('new')")
    assert session.rows("SELECT count(*) FROM t") == [(versions,)]


STEPS = (
    ("delta.enableDeletionVectors", "SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"),
    ("delta.enableRowTracking", "DROP FEATURE rowTracking"),
    ("delta.enableDeletionVectors", "DROP FEATURE deletionVectors"),
    ("delta.enableTypeWidening", "DROP FEATURE typeWidening"),
    ("delta.enableInCommitTimestamps", "DROP FEATURE inCommitTimestamp"),
)


@pytest.mark.parametrize("step", [1, 2, 4])
@pytest.mark.parametrize(("key", "change"), STEPS)
def test_the_next_of_several_commits_is_not_for_another_table(
    session: Session, monkeypatch: pytest.MonkeyPatch, key: str, change: str, step: int
) -> None:
    session.run(f"CREATE TABLE t (id BIGINT) TBLPROPERTIES ('{key}' = 'true')")
    session.run("INSERT INTO t VALUES (1), (2)")
    publish, made = commit.publish, 0

    def counted(*arguments: Any) -> None:
        nonlocal made
        publish(*arguments)
        made += 1
        if made == step:
            monkeypatch.setattr(commit, "publish", publish)
            session.run("DROP TABLE t")
            session.run("CREATE TABLE t (s STRING)")

    monkeypatch.setattr(commit, "publish", counted)
    try:
        session.run(f"ALTER TABLE t {change}")
    except GatewayError as error:
        assert error.retryable, error
    assert len(session.rows("DESCRIBE HISTORY t")) == (1 if made == step else made + 2)


@pytest.mark.parametrize(
    "write", ["OPTIMIZE t", "ALTER TABLE t ADD COLUMN more INT", "CREATE TABLE c SHALLOW CLONE t", "VACUUM t"]
)
def test_what_a_log_says_is_not_taken_from_another_table(
    session: Session, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """A table that has been in the place for a moment has the versions that are asked for, and another schema and files."""
    for name in ("t", "other"):
        session.run(f"CREATE TABLE {name} ({name} BIGINT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
        session.run(f"INSERT INTO {name} VALUES (1)")
        session.run(f"INSERT INTO {name} VALUES (2)")
    root = session.run("DESCRIBE DETAIL t").rows[0][4].removeprefix("file:")
    actions = log.actions

    def elsewhere(path: str) -> str:
        return path.replace(root, f"{root.rpartition('/')[0]}/other")

    monkeypatch.setattr(log, "actions", lambda path, version: actions(elsewhere(path), version))
    monkeypatch.setattr(logged, "replayed", lambda path, version, within: replayed(elsewhere(path), version, within))
    with pytest.raises(GatewayError) as caught:
        session.run(write)
    assert caught.value.retryable, caught.value
    monkeypatch.undo()
    assert session.rows("SELECT t FROM t ORDER BY t") == [(1,), (2,)]


def test_changes_are_those_of_one_table(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("t", "other"):
        session.run(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
        session.run(f"INSERT INTO {name} VALUES ({len(name)}1)")
        session.run(f"INSERT INTO {name} VALUES ({len(name)}2)")
    of_version, seen = changes._of_version, []

    def late(snapshot: Any, version: int, time_ms: int) -> Any:
        seen.append(version)
        if len(seen) == 2:
            session.run("ALTER TABLE t RENAME TO was_t")
            session.run("ALTER TABLE other RENAME TO t")
        return of_version(snapshot, version, time_ms)

    monkeypatch.setattr(changes, "_of_version", late)
    with pytest.raises(GatewayError) as caught:
        session.run("SELECT id FROM table_changes('t', 1)")
    assert caught.value.retryable, caught.value
    assert session.rows("SELECT id FROM table_changes('t', 1) ORDER BY id") == [(51,), (52,)]
