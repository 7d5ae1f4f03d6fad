"""Folders and files that are moved away and back while statements run: an answer is whole, or there is an error."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import again_and_again, answer, outcome
from tests.live.gateway import Server

SECONDS = 3.0
MISSING = ("DELTA_FILE_NOT_FOUND", "FAILED_READ_FILE", "TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND", "DELTA_LOG_CORRUPT")


@contextmanager
def moving(path: Path) -> Iterator[None]:
    """`path` is away for a moment, again and again."""
    away, random_ = path.with_name(f".away-{path.name}"), random.Random(5)

    def move() -> None:
        os.rename(path, away)
        time.sleep(random_.random() * 0.003)
        os.rename(away, path)
        time.sleep(random_.random() * 0.02)  # long enough for some statements on a busy machine

    with again_and_again(move):
        yield


@pytest.mark.parametrize("what", ["table", "file", "partition"])
def test_what_is_away_for_a_moment_is_never_an_empty_answer(server: Server, what: str) -> None:
    with Client(server.thrift_url).open() as client:
        answer(client, "CREATE SCHEMA IF NOT EXISTS races")
        answer(client, "DROP TABLE IF EXISTS races.t")
        answer(client, "CREATE TABLE races.t USING delta PARTITIONED BY (p) AS SELECT id, 1 AS p FROM range(10)")
        folder = server.warehouse / "races" / "t"
        path = {"table": folder, "partition": folder / "p=1", "file": next((folder / "p=1").iterdir())}[what]
        right = {
            "SELECT sum(id) AS n FROM races.t": 45,
            "SELECT max(id) AS n FROM races.t WHERE id < 5": 4,
            "SELECT count(*) AS n FROM races.t WHERE id >= 0": 10,
            "SELECT count(*) AS n FROM (SELECT id FROM races.t LIMIT 4)": 4,
            "SELECT count(*) AS n FROM races.t a JOIN races.t b ON a.id = b.id": 10,
        }
        answers, end = 0, time.monotonic() + SECONDS
        with moving(path):
            while time.monotonic() < end or (not answers and time.monotonic() < end + 30):
                for text, expected in right.items():
                    found = outcome(client, text)
                    if isinstance(found, RemoteError):
                        assert any(f"[{c}" in str(found) for c in MISSING), str(found)
                    else:
                        assert found == [{"n": expected}], text
                        answers += 1
        assert answers
        assert {text: outcome(client, text) for text in right} == {t: [{"n": n}] for t, n in right.items()}
        answer(client, "DROP SCHEMA races CASCADE")


@contextmanager
def cut_off(path: Path) -> Iterator[None]:
    """A file is empty for a moment, again and again, in its place and with its size and contents behind that."""
    good, random_ = path.read_bytes(), random.Random(5)
    with path.open("r+b") as file:

        def cut() -> None:
            file.truncate(0)
            time.sleep(random_.random() * 0.003)
            os.pwrite(file.fileno(), good, 0)
            time.sleep(random_.random() * 0.02)

        with again_and_again(cut):
            yield


@pytest.mark.parametrize("read", ["table", "folder"])
def test_a_file_that_is_cut_off_for_a_moment_is_never_an_empty_answer(server: Server, read: str) -> None:
    with Client(server.thrift_url).open() as client:
        answer(client, "CREATE TABLE cut AS SELECT id FROM range(3000)")
        folder = server.warehouse / "default" / "cut"
        name, (path,) = "cut", folder.glob("*.parquet")
        if read == "folder":
            other = server.warehouse.parent / "files" / "cut"
            other.mkdir()
            path = path.rename(other / path.name)
            name = f"parquet.`{other}`"
        answers, end = 0, time.monotonic() + SECONDS
        with cut_off(path):
            while time.monotonic() < end or (not answers and time.monotonic() < end + 30):
                found = outcome(client, f"SELECT sum(id) AS n FROM {name}")
                if isinstance(found, RemoteError):
                    assert any(f"[{c}" in str(found) for c in MISSING), str(found)
                else:
                    assert found == [{"n": 3000 * 2999 // 2}]
                    answers += 1
        assert answers
        answer(client, "DROP TABLE cut")
