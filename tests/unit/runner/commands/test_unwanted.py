"""Statements that are cancelled while they commit: what is told to have ended is in no table afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.delta import commit, vacuum
from gateway.engine.base import Statement
from gateway.errors import CanceledError
from tests.live.tables import strays
from tests.unit.runner.session import Events, Session

ROWS = "SELECT id, id % 5 AS v FROM range(100)"


class Cancelled(Events):
    """An `Emit` of a statement that somebody cancels."""

    cancelled = False


def folder_of(session: Session) -> Path:
    return Path(session.run("DESCRIBE DETAIL t").rows[0][4].removeprefix("file:"))


def versions(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "_delta_log").glob("0*.json"))


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO t {ROWS}",
        f"INSERT OVERWRITE t {ROWS}",
        f"CREATE OR REPLACE TABLE t AS {ROWS}",
        f"CREATE TABLE u AS {ROWS}",
        "DELETE FROM t WHERE v = 1",
        "UPDATE t SET v = 9 WHERE v = 1",
        f"MERGE INTO t USING ({ROWS}) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "OPTIMIZE t ZORDER BY (v)",
        "RESTORE t TO VERSION AS OF 0",
        "ALTER TABLE t ADD COLUMN w INT",
    ],
)
def test_a_statement_that_is_cancelled_before_its_commit_stands_has_done_nothing(
    session: Session, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run("CREATE TABLE t (id BIGINT, v BIGINT)")
    session.run(f"INSERT INTO t {ROWS}")
    folder, rows = folder_of(session), session.rows("SELECT * FROM t ORDER BY id")
    before, emit, draft = versions(folder), Cancelled(), commit.compact_json

    def late(value: Any) -> str:
        emit.cancelled = True  # the commit is being written: nobody asks any more but for its end
        return draft(value)

    monkeypatch.setattr(commit, "compact_json", late)
    with pytest.raises(CanceledError):
        session.runner.run(Statement("s", statement, session.state), emit)
    monkeypatch.undo()
    assert emit.cancelled
    assert versions(folder) == before
    assert session.rows("SELECT * FROM t ORDER BY id") == rows
    assert [row[1] for row in session.rows("SHOW TABLES")] == ["t"]
    assert not strays(folder)


def test_the_end_of_a_vacuum_that_is_cancelled_is_told(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_nothing = "'delta.deletedFileRetentionDuration' = 'interval 0 hours'"
    session.run(f"CREATE TABLE t (id BIGINT, v BIGINT) TBLPROPERTIES ({keeps_nothing})")
    session.run(f"INSERT INTO t {ROWS}")
    session.run("INSERT OVERWRITE t VALUES (1, 2)")
    emit, gone = Cancelled(), vacuum._gone

    def late(name: str, folder: int) -> bool:
        emit.cancelled = True
        return gone(name, folder)

    monkeypatch.setattr(vacuum, "_gone", late)
    session.runner.run(Statement("s", "VACUUM t RETAIN 0 HOURS", session.state), emit)
    newest = folder_of(session) / "_delta_log" / versions(folder_of(session))[-1]
    told = json.loads(newest.read_text(encoding="utf-8").splitlines()[0])["commitInfo"]
    assert (told["operation"], told["operationParameters"]["status"]) == ("VACUUM END", "COMPLETED")
    assert session.rows("SELECT * FROM t") == [(1, 2)]
