"""Folders that are exchanged for links, and back, within milliseconds, beside statements that write: nothing goes elsewhere."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.delta.containment import held_folder, opened, remove_file
from gateway.errors import UserError
from gateway.protocol.client import Client
from tests.attacks.attacker import again_and_again, answer, contents, outcome
from tests.live.gateway import Server, start_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="exchanges two names at once")
SECONDS = 5.0
_HERE, _EXCHANGE = -100, 2
MADE = (
    "CREATE TABLE t USING DELTA PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
    "'delta.checkpointInterval' = '3') AS SELECT id, id AS v, CAST(id % 4 AS STRING) AS p FROM range(400)"
)
WRITES = (
    "INSERT INTO t VALUES (1L, 1L, '1')",
    "INSERT INTO t SELECT id, id, CAST(id % 4 AS STRING) FROM range(100)",
    "DELETE FROM t WHERE id = 5",
    "UPDATE t SET v = v + 1 WHERE id = 7",
    "OPTIMIZE t",
    "VACUUM t",
    "COMMENT ON TABLE t IS 'x'",
    "TRUNCATE TABLE t",
    "RESTORE TABLE t TO VERSION AS OF 0",
    "INSERT OVERWRITE t SELECT id, id, CAST(id % 4 AS STRING) FROM range(400)",
    "CREATE TABLE n (id INT)",
    "ALTER TABLE n RENAME TO m",
    "DROP TABLE IF EXISTS n",
    "DROP TABLE IF EXISTS m",
    "CREATE VIEW w AS SELECT 1 AS x",
    "DROP VIEW IF EXISTS w",
)


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """Exchange two names again and again; in the end they are as they were."""
    libc, rng = ctypes.CDLL(None, use_errno=True), random.Random(7)

    def exchange() -> bool:
        return bool(libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)

    def there_and_back() -> None:
        away = exchange()
        time.sleep(rng.random() * 0.003)
        if away:
            exchange()
        time.sleep(rng.random() * 0.003)

    with again_and_again(there_and_back):
        yield


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("exchanges"), "--slots", "2")
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("place", ["", "t", "t/p=1", "t/_delta_log"])
def test_no_statement_writes_elsewhere(own: Server, tmp_path: Path, place: str) -> None:
    with Client(own.thrift_url).open() as client:
        schema = own.warehouse / "default"
        answer(client, "DROP TABLE IF EXISTS t")
        answer(client, MADE)
        outside = tmp_path / "outside"
        shutil.copytree(schema, outside)
        for path in (outside / "old.parquet", outside / "t" / "old.parquet"):  # for VACUUM
            path.write_text("x")
            os.utime(path, (1000, 1000))
        before = contents(outside)
        os.symlink(outside / place, tmp_path / "link")
        rng = random.Random(place)
        end = time.monotonic() + SECONDS
        with exchanging(schema / place, tmp_path / "link"):
            while time.monotonic() < end:
                outcome(client, rng.choice(WRITES), timeout_seconds=60)
                assert contents(outside) == before


@pytest.mark.parametrize("what", ["folder", "file"])
def test_no_file_elsewhere_is_loaded(own: Server, tmp_path: Path, what: str) -> None:
    """Files of the same size, schema and name lie in the warehouse and outside of it."""
    inside, outside = own.warehouse / "files" / "in", tmp_path / "out"
    for folder, value in ((inside, 1), (outside, 99)):
        folder.mkdir(parents=True)
        pq.write_table(
            pa.table({"a": pa.array([value] * 1000, pa.int32())}), folder / "x.parquet", use_dictionary=False
        )
    place, target = (inside, outside) if what == "folder" else (inside / "x.parquet", outside / "x.parquet")
    link = inside.with_name("link") if what == "folder" else inside / "_link"
    os.symlink(target, link)
    with Client(own.thrift_url).open() as client:
        answer(client, "CREATE TABLE loaded (a INT)")
        end = time.monotonic() + SECONDS
        with exchanging(place, link):
            while time.monotonic() < end:
                outcome(
                    client, f"COPY INTO loaded FROM '{inside}' FILEFORMAT = PARQUET COPY_OPTIONS ('force' = 'true')"
                )
        outcome(client, f"COPY INTO loaded FROM '{inside}' FILEFORMAT = PARQUET")
        assert answer(client, "SELECT DISTINCT a FROM loaded") == [{"a": 1}]
        answer(client, "DROP TABLE loaded")
    shutil.rmtree(inside.parent)


def test_a_file_is_opened_through_no_link_to_elsewhere(tmp_path: Path) -> None:
    """Of the last step the flags of `open` see to it; of those above what was opened tells."""
    (tmp_path / "x").mkdir()
    (tmp_path / "y" / "a" / "b").mkdir(parents=True)
    (tmp_path / "y" / "a" / "b" / "file").write_text("x")
    os.symlink(tmp_path / "y" / "a", tmp_path / "x" / "a")
    path = str(tmp_path / "x" / "a" / "b" / "file")
    with pytest.raises(UserError, match="PATH_NOT_ALLOWED"):
        opened(path, (str(tmp_path / "x"),))
    os.close(opened(path, (str(tmp_path / "x"), str(tmp_path / "y"))))


@pytest.mark.parametrize("depth", range(4))
def test_a_folder_is_reached_through_no_link(tmp_path: Path, depth: int) -> None:
    names = ["a", "b", "c", "d"]
    (tmp_path / "x" / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tmp_path / "y" / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tmp_path / "y" / "a" / "b" / "c" / "d" / "file").write_text("x")
    linked = Path(*names[: depth + 1])
    shutil.rmtree(tmp_path / "x" / linked)
    os.symlink(tmp_path / "y" / linked, tmp_path / "x" / linked)
    root, folder = str(tmp_path / "x"), str(tmp_path / "x" / "a" / "b" / "c" / "d")
    before = contents(tmp_path / "y")
    made: list[str] = []
    for told in (None, made):
        with pytest.raises(UserError, match="PATH_NOT_ALLOWED"), held_folder(folder, root, told):
            pytest.fail("it is a link")
    with pytest.raises(UserError, match="PATH_NOT_ALLOWED"):
        remove_file(f"{folder}/file", root)
    assert made == []
    assert contents(tmp_path / "y") == before


def test_a_folder_above_the_root_is_not_made(tmp_path: Path) -> None:
    made: list[str] = []
    with pytest.raises(FileNotFoundError), held_folder(str(tmp_path / "gone" / "p=1"), str(tmp_path / "gone"), made):
        pytest.fail("it is gone")
    assert not (tmp_path / "gone").exists()
    with held_folder(str(tmp_path / "p=1" / "q=2"), str(tmp_path), made) as held:
        assert os.listdir(held) == []
    assert made == [str(tmp_path / "p=1"), str(tmp_path / "p=1" / "q=2")]
