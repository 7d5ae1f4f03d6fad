"""Shallow clones whose source is gone or something else by now: nothing elsewhere is read, nothing of the source is removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, contents, outcome
from tests.live.gateway import Server

KEPT_NO_FILE = "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"
TOLD = ("PATH_NOT_ALLOWED", "DELTA_FILE_NOT_FOUND", "FAILED_READ_FILE")
READS = ("SELECT sum(id) AS n FROM {}", "SELECT id FROM {} WHERE id = 4", "CREATE TABLE clones.copied DEEP CLONE {}")
WRITES = ("DELETE FROM {} WHERE id = 4", "UPDATE {} SET id = 7 WHERE id = 4")


@pytest.fixture
def source(client: Client, server: Server) -> Iterator[Path]:
    """A table in a schema of its own, of which there are a clone and a clone of the clone."""
    for schema in ("sources", "clones"):
        answer(client, f"CREATE SCHEMA {schema}")
    answer(client, f"CREATE TABLE sources.t {KEPT_NO_FILE} AS SELECT id FROM range(10)")
    answer(client, "CREATE TABLE clones.one SHALLOW CLONE sources.t")
    answer(client, "CREATE TABLE clones.two SHALLOW CLONE clones.one")
    yield server.warehouse / "sources" / "t"
    for schema in ("sources", "clones"):
        outcome(client, f"DROP SCHEMA {schema} CASCADE")
        (server.warehouse / schema).unlink(missing_ok=True)  # it may be a link


def test_what_is_done_to_a_clone_is_not_done_to_its_source(client: Client, source: Path) -> None:
    before = contents(source)
    for clone in ("clones.two", "clones.one"):
        for text in (
            "UPDATE {} SET id = 70 WHERE id = 7",
            "DELETE FROM {} WHERE id < 3",
            "OPTIMIZE {}",
            "VACUUM {} RETAIN 0 HOURS",
            "VACUUM {} LITE RETAIN 0 HOURS",
            "INSERT OVERWRITE {} SELECT 5L",
            "TRUNCATE TABLE {}",
            "VACUUM {} RETAIN 0 HOURS",
            "DROP TABLE {}",
        ):
            answer(client, text.format(clone))
    assert contents(source) == before
    answer(client, "DROP SCHEMA clones CASCADE")
    assert contents(source) == before


def _put_elsewhere(folder: Path, elsewhere: Path) -> None:
    shutil.move(folder, elsewhere)
    os.symlink(elsewhere, folder)


def _schema_elsewhere(folder: Path, elsewhere: Path) -> None:
    _put_elsewhere(folder.parent, elsewhere)


def _files_elsewhere(folder: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    for path in folder.glob("*.parquet"):
        _put_elsewhere(path, elsewhere / path.name)


def _pipes(folder: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    for path in folder.glob("*.parquet"):
        path.unlink()
        os.mkfifo(path)


def _cut(folder: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    for path in folder.glob("*.parquet"):
        path.write_bytes(b"")


def _gone(folder: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    shutil.rmtree(folder)


CHANGES: dict[str, Callable[[Path, Path], None]] = {
    "the table is a link": _put_elsewhere,
    "the schema is a link": _schema_elsewhere,
    "the files are links": _files_elsewhere,
    "the files are pipes": _pipes,
    "the files are cut off": _cut,
    "the table is gone": _gone,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_is_something_else_by_now(client: Client, source: Path, tmp_path: Path, change: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    CHANGES[change](source, elsewhere)
    before = contents(elsewhere)
    for clone in ("clones.one", "clones.two"):
        for text in (*READS, *WRITES):
            if "copied" in text and change == "the files are cut off":
                continue  # a file is copied as it is, and read when somebody reads it
            told = outcome(client, text.format(clone), timeout_seconds=30)
            assert isinstance(told, RemoteError) and any(f"[{c}]" in str(told) for c in TOLD), told
        outcome(client, f"VACUUM {clone} RETAIN 0 HOURS")
        outcome(client, f"TRUNCATE TABLE {clone}")
    answer(client, "DROP SCHEMA clones CASCADE")
    assert contents(elsewhere) == before
