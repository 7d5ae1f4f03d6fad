"""No commit names a file that is not on the disk."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from gateway.delta.durable import Syncs
from gateway.errors import GatewayError
from tests.conformance.session import Session, open_runner


class Disk:
    """Remembers what was brought to the disk, and when commits were made; data files take a while, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.fails = False
        self._fsync, self._link = os.fsync, os.link
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "link", self.link)

    def fsync(self, descriptor: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        if name.endswith(".parquet"):
            threading.Event().wait(0.05)
            if self.fails:
                raise OSError(errno.EIO, "Input/output error")
        self._fsync(descriptor)
        self.done.append(name)

    def link(self, source: Any, target: Any, **where: Any) -> None:
        self.done.append(str(target))
        self._link(source, target, **where)

    def take(self) -> list[str]:
        done, self.done = self.done, []
        return done


STATEMENTS = (
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT OVERWRITE t VALUES (4, 'a'), (8, 'a'), (5, 'b')",
    "UPDATE t SET id = id + 1 WHERE id = 5",
    "DELETE FROM t WHERE id = 4",
    "MERGE INTO t USING (SELECT * FROM VALUES (6, 'b'), (7, 'd') AS v(id, p)) AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "CREATE OR REPLACE TABLE t PARTITIONED BY (p) AS SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(id, p)",
)


def test_files_are_on_the_disk_before_their_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(open_runner(tmp_path))
    session.execute("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    disk = Disk(monkeypatch)
    for version, sql in enumerate(STATEMENTS, 1):
        session.execute(sql)
        done = disk.take()
        commit = f"{version:020d}.json"
        files = [name for name in done if name.endswith((".parquet", ".bin"))]
        assert files, sql
        assert all(done.index(name) < done.index(commit) for name in files), (sql, done)


def test_what_does_not_get_to_the_disk_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(open_runner(tmp_path))
    session.execute("CREATE TABLE t (id INT)")
    session.execute("INSERT INTO t VALUES (1)")
    before = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    disk = Disk(monkeypatch)
    disk.fails = True
    for sql in ("INSERT INTO t VALUES (2)", "INSERT OVERWRITE t VALUES (3)"):
        with pytest.raises(GatewayError, match=r"(?i)input/output"):
            session.execute(sql)
        assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == before
    disk.fails = False
    assert session.execute("SELECT id FROM t").rows() == [[1]]


def test_all_are_waited_for_and_closed() -> None:
    syncs = Syncs()
    syncs.wait()
    descriptors = [os.open("/dev/null", os.O_WRONLY), os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY)]
    for descriptor in descriptors:
        syncs.start(descriptor)
    with pytest.raises(OSError, match="Invalid argument"):  # of a device
        syncs.wait()
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    syncs.wait()


def test_few_files_are_open_however_many_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each partition has one: descriptors are as many as a process may have."""
    fsync, most = os.fsync, 0

    def slow(descriptor: int) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))
        threading.Event().wait(0.001)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    syncs, before = Syncs(), len(os.listdir("/proc/self/fd"))
    for _ in range(500):
        syncs.start(os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY))
    syncs.wait()
    assert most - before < 80
    assert len(os.listdir("/proc/self/fd")) == before
