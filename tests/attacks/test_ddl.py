"""Names that several users make, drop and rename at the same time: nothing that was told is lost, nothing is left over."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import again_and_again, answer, outcome
from tests.live.gateway import Server, start_server

STATEMENTS = (
    "CREATE TABLE IF NOT EXISTS {t} (id BIGINT, v BIGINT)",
    "CREATE TABLE {t} AS SELECT id, {n} AS v FROM range({n})",
    "CREATE OR REPLACE TABLE {t} AS SELECT id, {n} AS v FROM range({n})",
    "CREATE TABLE {t} SHALLOW CLONE {u}",
    "CREATE TABLE IF NOT EXISTS {t} DEEP CLONE {u}",
    "CREATE OR REPLACE VIEW {t} AS SELECT {n} AS id, {n} AS v",
    "ALTER TABLE {t} RENAME TO {u}",
    "ALTER TABLE {t} SET TBLPROPERTIES ('a' = '{n}')",
    "INSERT OVERWRITE {t} SELECT id, {n} FROM range({n})",
    "OPTIMIZE {t}",
    "VACUUM {t}",
    "TRUNCATE TABLE {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 0",
    "DROP TABLE IF EXISTS {t}",
    "DROP VIEW IF EXISTS {t}",
    "DROP SCHEMA IF EXISTS second CASCADE",
    "CREATE SCHEMA IF NOT EXISTS second",
    "SHOW TABLES IN second",
    "SHOW TABLE EXTENDED LIKE '*'",
    "DESCRIBE DETAIL {t}",
    "DESCRIBE HISTORY {t}",
    "SELECT count(*) AS n, min(v) AS least, max(v) AS most FROM {t}",
)
NAMES = ("a", "b", "second.a", "second.b")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("ddl"), "--slots", "2")
    yield server
    assert server.stop() == 0


def _one_user(server: Server, seed: int, until: float) -> list[str]:
    """What was wrong of what a user was told."""
    rng, wrong = random.Random(seed), []
    with Client(server.thrift_url).open() as client:
        while time.monotonic() < until:
            t, u = rng.sample(NAMES, 2)
            text = rng.choice(STATEMENTS).format(t=t, u=u, n=rng.randrange(1, 50))
            found = outcome(client, text, timeout_seconds=60)
            if isinstance(found, RemoteError):
                odd = any(w in str(found) for w in ("INTERNAL_ERROR", "WORKER_LOST", "LOG_CORRUPT", "Traceback"))
                wrong += [f"{text}: {found}"] if odd else []
            elif found and "least" in found[0]:
                row = found[0]
                whole = row["least"] == row["most"] and row["n"] in (0, 1, row["most"])
                wrong += [] if whole else [f"{text}: {row}"]
    return wrong


@pytest.mark.parametrize("seconds", [2.0, pytest.param(30.0, marks=pytest.mark.heavy)])
def test_names_that_several_users_make_and_drop(own: Server, seconds: float) -> None:
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(5) as users:
        told = list(users.map(lambda seed: _one_user(own, seed, until), range(5)))
    assert [each for of_one in told for each in of_one] == []
    with Client(own.thrift_url).open() as client:
        outcome(client, "DROP SCHEMA second CASCADE")
        for row in answer(client, "SHOW TABLES"):
            name = row["tableName"]
            assert len(answer(client, f"SELECT count(*) AS n FROM {name}")) == 1
            dropped = [outcome(client, f"DROP {kind} {name}") for kind in ("TABLE", "VIEW")]
            assert [] in dropped, dropped
        assert answer(client, "SHOW TABLES") == []
        for name in ("a", "b"):
            answer(client, f"CREATE TABLE {name} AS SELECT 1 AS id")
            assert answer(client, f"SELECT * FROM {name}") == [{"id": 1}]
            answer(client, f"DROP TABLE {name}")
    assert _left(own.warehouse) == []
    assert "Traceback" not in own.log.read_text()


def _left(warehouse: Path) -> list[Path]:
    """Files that nobody would find any more."""
    return [path for path in warehouse.rglob("*") if path.is_file() and any(p[:1] == "." for p in path.parts)]


@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_a_schema_that_is_dropped_without_cascade_takes_nothing_with_it(own: Server, kind: str) -> None:
    """Whoever is told that a table was made finds it: a schema that has one by then stays."""
    with Client(own.thrift_url).open() as maker, Client(own.thrift_url).open() as dropper:
        made, end, waits = 0, time.monotonic() + 2.0, random.Random(7)

        def drop() -> None:
            time.sleep(waits.uniform(0, 0.2))  # else nobody is ever done with a table in between
            outcome(dropper, "DROP SCHEMA IF EXISTS shared")

        with again_and_again(drop):
            while time.monotonic() < end or (not made and time.monotonic() < end + 30):
                outcome(maker, "CREATE SCHEMA IF NOT EXISTS shared")
                found = outcome(maker, f"CREATE {kind} shared.t AS SELECT 1 AS id")
                if not isinstance(found, RemoteError):
                    made += 1
                    assert answer(maker, "SELECT * FROM shared.t") == [{"id": 1}]
                    answer(maker, f"DROP {kind} shared.t")
        assert made
        assert outcome(maker, "DROP SCHEMA IF EXISTS shared") == []


@pytest.mark.parametrize("turns", [4, pytest.param(40, marks=pytest.mark.heavy)])
def test_keys_that_several_users_add_at_the_same_time_are_all_kept(own: Server, turns: int) -> None:
    columns = ("a", "b", "c")
    with ExitStack() as opened:
        clients = [opened.enter_context(Client(own.thrift_url).open()) for _ in columns]
        answer(clients[0], "CREATE TABLE parents (p INT NOT NULL PRIMARY KEY)")
        for _ in range(turns):
            answer(clients[0], "CREATE OR REPLACE TABLE children (a INT, b INT, c INT)")
            added = [f"ALTER TABLE children ADD FOREIGN KEY ({name}) REFERENCES parents" for name in columns]
            with ThreadPoolExecutor(len(columns)) as users:
                assert list(users.map(outcome, clients, added)) == [[]] * len(columns)
            told = answer(clients[0], "DESCRIBE EXTENDED children")
            assert sum("FOREIGN KEY" in str(row["data_type"]) for row in told) == len(columns)
        for name in ("children", "parents"):
            answer(clients[0], f"DROP TABLE {name}")
