"""Tables that are exchanged for links to others, and back, beside statements that read: no row of those others is seen."""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.engine import confinement
from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import again_and_again, answer, cpu_seconds, outcome, until, workers
from tests.live.gateway import Server, start_server

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="exchanges two names at once"),
    pytest.mark.skipif(not confinement.version(), reason="promised where the kernel confines processes"),
]
SECONDS = 2.0
_HERE, _EXCHANGE = -100, 2
OURS, THEIRS = 1, 9
# Plain files, partitions, rows that are taken out by deletion vectors, names in files that only our own reader finds.
MADE = {
    "plain": "USING DELTA AS SELECT id, {v} * 1000 + id % 10 AS v, '0' AS p FROM range(400)",
    "many": "USING DELTA PARTITIONED BY (p) AS SELECT id, {v} * 1000 + id % 10 AS v, CAST(id % 48 AS STRING) AS p "
    "FROM range(960)",
    "gaps": "USING DELTA TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') "
    "AS SELECT id, {v} * 1000 + id % 10 AS v, '0' AS p FROM range(400)",
    "mapped": "USING DELTA TBLPROPERTIES ('delta.columnMapping.mode' = 'id') "
    "AS SELECT id, {v} * 1000 + id % 10 AS v, '0' AS p FROM range(400)",
}
READS = (
    "SELECT DISTINCT v FROM {t}",
    "SELECT max(v) AS v FROM {t}",
    "SELECT v FROM {t} WHERE id = 3",
    "SELECT DISTINCT v FROM {t} WHERE p = '0' AND id > 390",
    "SELECT DISTINCT v FROM {t} VERSION AS OF 0",
    "SELECT a.v FROM {t} a JOIN {t} b ON a.id = b.id LIMIT 5",
)
WRITES = (
    "INSERT INTO m SELECT v FROM {t} LIMIT 10",
    "MERGE INTO m USING {t} s ON m.v = s.v + 1 WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v)",
    "CREATE OR REPLACE TABLE n AS SELECT v FROM {t}",
    "CREATE OR REPLACE TABLE n SHALLOW CLONE {t}",
    "CREATE OR REPLACE TABLE n DEEP CLONE {t}",
    "DELETE FROM {t} WHERE id = 5",
    "UPDATE {t} SET id = id + 1000 WHERE id = 7",
    "OPTIMIZE {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 0",
    "VACUUM {t}",
)


@contextmanager
def swapped(one: Path, other: Path) -> Iterator[None]:
    """Two names are exchanged for a moment, again and again; in the end they are as they were."""
    libc, rng = ctypes.CDLL(None), random.Random(7)

    def exchange() -> bool:
        return bool(libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)

    def there_and_back() -> None:
        if exchange():
            time.sleep(rng.random() * 0.002)
            while not exchange():
                time.sleep(0)  # somebody holds one of them
        time.sleep(rng.random() ** 3 * 0.06)  # often many times in a statement, now and then not for a whole one

    with again_and_again(there_and_back):
        yield


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("swaps"), "--slots", "2")
    yield server
    assert server.stop() == 0


def _seen(found: list[dict[str, Any]] | RemoteError) -> set[int]:
    return set() if isinstance(found, RemoteError) else {row["v"] // 1000 for row in found if "v" in row}


def _twins(client: Client, schema: Path, name: str, other: Path) -> None:
    """A table, and another beside the warehouse whose files have the same names: either's log goes with both."""
    for value in (OURS, THEIRS):
        answer(client, f"DROP TABLE IF EXISTS {name}")
        answer(client, f"CREATE TABLE {name} {MADE[name].format(v=value)}")
        if name == "gaps":
            answer(client, f"DELETE FROM {name} WHERE id % 7 = 1")
        if value == OURS:
            shutil.copytree(schema / name, other.with_name("kept"))
    shutil.copytree(schema, other)
    shutil.rmtree(schema / name)
    other.with_name("kept").rename(schema / name)
    ours, theirs = (sorted((folder / name).rglob("*.parquet")) for folder in (schema, other))
    for one, its_twin in zip(ours, theirs, strict=True):
        shutil.copy(one, one.with_name(its_twin.name))
        shutil.copy(its_twin, its_twin.with_name(one.name))
    for one in (schema / name).glob("deletion_vector*"):
        shutil.copy(one, other / name)


@pytest.mark.parametrize("seconds", [SECONDS, pytest.param(20.0, marks=pytest.mark.heavy)])
@pytest.mark.parametrize(("place", "name"), [*itertools.product(("", "table", "log"), MADE), ("partition", "many")])
def test_no_row_elsewhere_is_seen(own: Server, tmp_path: Path, place: str, name: str, seconds: float) -> None:
    below = {"": "", "table": name, "log": f"{name}/_delta_log", "partition": f"{name}/p=0"}[place]
    with Client(own.thrift_url).open() as client:
        schema, other = own.warehouse / "default", tmp_path / "elsewhere"
        _twins(client, schema, name, other)
        answer(client, "CREATE OR REPLACE TABLE m (v BIGINT)")
        answer(client, "DROP TABLE IF EXISTS n")
        os.symlink(other / below, tmp_path / "link")
        rng, answers, end = random.Random(name + place), 0, time.monotonic() + seconds
        with swapped(schema / below, tmp_path / "link"):
            while time.monotonic() < end or (not answers and time.monotonic() < end + 30):
                text = rng.choice(WRITES if rng.random() < 0.3 else READS).format(t=name)
                found = outcome(client, text, timeout_seconds=60)
                answers += not isinstance(found, RemoteError)
                if text.startswith("SELECT"):
                    assert _seen(found) <= {OURS}, text
        for table in (name, "m", "n"):
            assert _seen(outcome(client, f"SELECT DISTINCT v FROM {table}")) <= {OURS}, table
        assert answers
        for table in (name, "m", "n"):
            outcome(client, f"DROP TABLE IF EXISTS {table}")


def _computed(server: Server) -> float:
    """Seconds of all cores."""
    return sum(cpu_seconds(pid) or 0.0 for pid in workers(server))


@pytest.mark.parametrize("place", ["", "table", "partition"])
def test_a_folder_that_is_exchanged_before_its_turn_comes(own: Server, tmp_path: Path, place: str) -> None:
    """Of this join the table's files are opened long after they were looked at."""
    below = {"": "", "table": "many", "partition": "many/p=40"}[place]
    late = (
        "SELECT DISTINCT v FROM (SELECT count(*) AS n FROM range(40000) a CROSS JOIN range(9000) b "
        "WHERE (a.id * b.id + a.id) % 7 = 1) s JOIN many ON many.id > s.n % 2 - 2"
    )
    with Client(own.thrift_url).open() as client:
        schema, other = own.warehouse / "default", tmp_path / "elsewhere"
        _twins(client, schema, "many", other)
        os.symlink(other / below, tmp_path / "link")
        kept = tmp_path / "kept"
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(outcome(client, late)))
        computed = _computed(own)
        thread.start()
        until(lambda: _computed(own) > computed + 0.4, "the engine computes, which is long after the look")
        (schema / below).rename(kept)
        (tmp_path / "link").rename(schema / below)
        thread.join()
        os.unlink(schema / below)
        kept.rename(schema / below)
        # The engine reads some files ahead: on a busy machine all of them, so that the answer is whole.
        assert _seen(found[0]) <= {OURS}, found
        assert _seen(outcome(client, "SELECT DISTINCT v FROM many")) == {OURS}
        answer(client, "DROP TABLE many")


def test_a_warehouse_that_is_another_one_by_now(own: Server, tmp_path: Path) -> None:
    """As after a mount: of the processes that wait for statements none can open its files, and no statement is lost."""
    with Client(own.thrift_url).open() as client:
        answer(client, "CREATE TABLE moved AS SELECT 1 AS v")
        for value in range(3):
            until(lambda: len(workers(own)) >= 3, "processes wait")
            shutil.copytree(own.warehouse, tmp_path / "other")
            own.warehouse.rename(tmp_path / f"before-{value}")
            (tmp_path / "other").rename(own.warehouse)
            assert answer(client, f"SELECT v, {value} AS value FROM moved") == [{"v": 1, "value": value}]
        answer(client, "DROP TABLE moved")
