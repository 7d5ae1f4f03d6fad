"""VACUUM beside others: what they write, and the table that has come to the name, stay whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.delta import commit, vacuum
from gateway.delta.vacuum import remove
from gateway.errors import GatewayError
from gateway.runner.commands import maintenance
from tests.unit.runner.session import Session, refused

KEEPS_NOTHING = "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours'{})"
FEED = ", 'delta.enableChangeDataFeed' = 'true'"
VECTORS = ", 'delta.enableDeletionVectors' = 'true'"
DAYS = 9 * 86_400


def made(session: Session, more: str = "") -> None:
    """A table of which no file is kept that is no part of it any more."""
    session.run(f"CREATE TABLE t (id BIGINT) {KEEPS_NOTHING.format(more)}")
    session.run("INSERT INTO t VALUES (1), (2)")
    session.run("INSERT INTO t VALUES (3)")


def folder_of(session: Session, table: str) -> Path:
    return Path(session.run(f"DESCRIBE DETAIL {table}").rows[0][4].removeprefix("file:"))


WRITES = [
    ("INSERT INTO t VALUES (9)", ""),
    ("INSERT OVERWRITE t VALUES (9)", ""),
    ("UPDATE t SET id = 8 WHERE id = 1", ""),
    ("UPDATE t SET id = 8 WHERE id = 1", FEED),
    ("DELETE FROM t WHERE id = 1", VECTORS),
    ("MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 8", ""),
    ("OPTIMIZE t", ""),
]


def beside(session: Session, monkeypatch: pytest.MonkeyPatch, age: float) -> None:
    """Have VACUUM run when the next writer has written its files, which are old by then, and has told nobody of them."""
    publish, folder = commit.publish, folder_of(session, "t")

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(commit, "publish", publish)
        for path in [*folder.rglob("*.parquet"), *folder.glob("*.bin")]:
            os.utime(path, (time.time() - age,) * 2)
        session.run("VACUUM t")
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)


@pytest.mark.parametrize(("write", "more"), WRITES)
def test_files_of_a_writer_that_is_at_work_stay(
    session: Session, monkeypatch: pytest.MonkeyPatch, write: str, more: str
) -> None:
    made(session, more)
    beside(session, monkeypatch, 60)
    session.run(write)
    assert len(session.rows("SELECT id FROM t")) == {
        "INSERT INTO t VALUES (9)": 4,
        "INSERT OVERWRITE t VALUES (9)": 1,
    }.get(write, 2 if write.startswith("DELETE") else 3)


@pytest.mark.parametrize(("write", "more"), WRITES)
def test_files_that_are_removed_before_they_are_told_make_no_version(
    session: Session, monkeypatch: pytest.MonkeyPatch, write: str, more: str
) -> None:
    made(session, more)
    beside(session, monkeypatch, 2 * 86_400)
    with pytest.raises(GatewayError) as caught:
        session.run(write)
    assert (caught.value.condition, caught.value.retryable) == ("WRITE_CONFLICT", True)
    assert session.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]
    session.run(write)
    assert session.rows("SELECT id FROM t ORDER BY id") != []


def test_files_of_a_writer_that_is_gone_go(session: Session, tmp_path: Path) -> None:
    made(session)
    left = folder_of(session, "t") / "part-00000-left.parquet"
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 60,) * 2)
    writer = subprocess.Popen(  # it ends without a word
        [
            sys.executable,
            "-c",
            f"from gateway.delta import at_work; at_work.begin({str(left.parent)!r}); print(1); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None and writer.stdout.readline() == b"1\n"
    session.run("VACUUM t")
    assert left.exists()
    writer.kill()
    writer.wait()
    session.run("VACUUM t")
    assert not left.exists()


def test_files_that_are_told_before_they_are_removed_stay(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    made(session)
    publish = commit.publish

    def vacuum(*arguments: Any) -> None:
        """The files of an INSERT are there and in no version, when VACUUM looks; then they are in one."""

        def removed(*swept: Any) -> int:
            publish(*arguments)
            return remove(*swept)

        monkeypatch.setattr(commit, "publish", publish)
        monkeypatch.setattr(maintenance, "remove", removed)
        for path in folder_of(session, "t").glob("*.parquet"):
            os.utime(path, (time.time() - 2 * 86_400,) * 2)
        session.run("VACUUM t")

    monkeypatch.setattr(commit, "publish", vacuum)
    session.run("INSERT INTO t VALUES (9)")
    assert session.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,), (9,)]


def aged(folder: Path) -> None:
    """Have all that was taken out of a table, and all of its files, be old."""
    for path in folder.glob("*.parquet"):
        os.utime(path, (time.time() - DAYS,) * 2)
    for path in folder.glob("_delta_log/*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= DAYS * 1000
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_a_table_that_has_come_to_the_name_loses_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deep clone has files of the same names as its source, which may have taken them out since."""
    session.run("CREATE TABLE t AS SELECT 1 AS id")
    session.run("CREATE TABLE saved DEEP CLONE t")
    session.run("DELETE FROM t")
    aged(folder_of(session, "t"))
    aged(folder_of(session, "saved"))
    assert len(session.rows("VACUUM t DRY RUN")) == 1

    def late(*swept: Any) -> int:
        session.run("ALTER TABLE t RENAME TO damaged")
        session.run("ALTER TABLE saved RENAME TO t")
        return remove(*swept)

    monkeypatch.setattr(maintenance, "remove", late)
    with pytest.raises(GatewayError) as caught:
        session.run("VACUUM t")
    assert (caught.value.condition, caught.value.retryable) == ("WRITE_CONFLICT", True)
    assert session.rows("SELECT id FROM t") == [(1,)]
    assert len(session.rows("DESCRIBE HISTORY t")) == 1


def test_a_table_that_comes_to_the_name_while_files_go_loses_nothing(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS id")
    session.run("CREATE TABLE saved DEEP CLONE t")
    session.run("DELETE FROM t")
    aged(folder_of(session, "t"))
    aged(folder_of(session, "saved"))

    def with_alive(snapshot: Any, swept: Any, alive: Any) -> int:
        def exchanged() -> None:
            session.run("ALTER TABLE t RENAME TO damaged")
            session.run("ALTER TABLE saved RENAME TO t")

        return remove(snapshot, swept, exchanged)

    monkeypatch.setattr(maintenance, "remove", with_alive)
    with pytest.raises(GatewayError) as caught:
        session.run("VACUUM t")
    assert caught.value.condition == "WRITE_CONFLICT"
    assert session.rows("SELECT id FROM t") == [(1,)]
    assert not list(folder_of(session, "damaged").glob("*.parquet"))


def test_a_version_is_not_put_back_while_its_files_are_removed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(session)
    session.run("INSERT OVERWRITE t VALUES (4)")
    removed, told = vacuum._removed, []

    def beside_it(*arguments: Any) -> int:
        session.run("ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 7 days')")
        told.append(refused(session, "RESTORE TABLE t TO VERSION AS OF 2"))
        return removed(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(vacuum, "_removed", beside_it)
        session.run("VACUUM t")
    assert [(error.condition, error.retryable) for error in told] == [("WRITE_CONFLICT", True)]
    assert session.rows("SELECT id FROM t") == [(4,)]
    assert refused(session, "RESTORE TABLE t TO VERSION AS OF 2").condition == "DELTA_FILE_NOT_FOUND"
    session.run("INSERT INTO t VALUES (5)")
    session.run("RESTORE TABLE t TO VERSION AS OF 3")
    assert session.rows("SELECT id FROM t") == [(4,)]
