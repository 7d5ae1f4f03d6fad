"""What one holder of a token may ask of the console by the hundred: answers stay small, and others are answered meanwhile."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from gateway.protocol.client import Client
from tests.attacks.attacker import outcome, resident_mib
from tests.attacks.test_rest import peak_mib
from tests.clients.test_console import Asked
from tests.live.gateway import Server, start_server
from tests.live.processes import eventually

NAMES = ("ann", "mallory")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens"
    tokens.write_text("".join(f"{token_line(name, f'{name}-token')}\n" for name in NAMES))
    running = start_server(folder, "--auth", "token", "--token-file", str(tokens), "--memory-limit", "1GiB")
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()


@pytest.fixture(scope="module")
def mallory(guarded: Server) -> Asked:
    return Asked(guarded, "mallory")


def at_once(asked: Asked, times: int, path: str) -> list[int]:
    """The statuses of a call that is made many times at once."""
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(asked.call("GET", path)[0])) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def growth_mib(server: Server, call: Callable[[], Any]) -> float:
    """How much more memory the front process has at most while a call lasts than before."""
    before = resident_mib(server.process.pid)
    return peak_mib(server, call) - before


def test_rows_end_early_where_they_are_large(guarded: Server, mallory: Asked) -> None:
    told = mallory.run("SELECT id, repeat('x', 200000) AS x FROM range(1000)")
    path = f"results/{told['statement_id']}/rows"
    assert growth_mib(guarded, lambda: at_once(mallory, 20, f"{path}?count=1000")) < 600
    seen: list[str] = []
    while rows := mallory.json("GET", f"{path}?count=1000&start={len(seen)}")["rows"]:
        assert sum(len(row[1]) for row in rows) < 6 << 20
        seen += [row[0] for row in rows]
    assert seen == [str(number) for number in range(1000)]
    large = mallory.run("SELECT repeat('x', 20000000) AS x FROM range(2)")["statement_id"]
    assert [len(mallory.json("GET", f"results/{large}/rows?count=2&start={n}")["rows"]) for n in (0, 1, 2)] == [1, 1, 0]


@pytest.mark.heavy
def test_files_are_made_one_after_the_other(guarded: Server, mallory: Asked) -> None:
    """A Parquet file is in memory as a whole."""
    columns = "id, sha2(CAST(id AS STRING), 256) AS x, sha2(CAST(-id AS STRING), 256) AS y"
    told = mallory.run(f"SELECT {columns} FROM range(1000000)")["statement_id"]
    statuses: list[int] = []
    assert growth_mib(guarded, lambda: statuses.extend(at_once(mallory, 8, f"results/{told}/parquet"))) < 1200
    assert statuses == [200] * 8  # four at once would be too much, and be cut
    assert mallory.call("DELETE", f"results/{told}", {})[0] == 200


@pytest.fixture(scope="module")
def long_history(guarded: Server, mallory: Asked) -> int:
    """As many statements of the largest kind as a holder may leave; they are told by the hundred."""
    with Client(guarded.thrift_url, token="mallory-token").open() as client:
        outcome(client, f"SELECT 1 AS `{'z' * 65_000}`")
    eventually(lambda: len(mallory.json("GET", f"statements?text={'z' * 900}")["statements"]) > 0, 20)
    with closing(sqlite3.connect(guarded.warehouse.parent / "state" / "history.db", isolation_level=None)) as database:
        names = [row[1] for row in database.execute("PRAGMA table_info(statements)") if row[1] != "id"]
        columns = ", ".join(f'"{name}"' for name in names)
        chosen = f"SELECT {columns} FROM statements WHERE length(text) > 60000"
        for _ in range(10):
            database.execute(f"INSERT INTO statements ({columns}) {chosen}")
    return 1024


def test_lists_of_large_statements_end_early(guarded: Server, mallory: Asked, long_history: int) -> None:
    assert growth_mib(guarded, lambda: at_once(mallory, 60, "statements?max_results=1000")) < 400
    seen, query = set(), ""
    while True:
        page = mallory.json("GET", f"statements?max_results=1000{query}")
        seen |= {one["id"] for one in page["statements"]}
        assert page["statements"]
        if not page["more"]:
            break
        last = page["statements"][-1]
        query = f"&before_ms={last['started_ms']}&before_id={last['id']}"
    assert len(seen) >= long_history


def test_a_long_text_is_not_sought(mallory: Asked, long_history: int) -> None:
    """Each of its characters would be compared with each of each statement's."""
    assert mallory.call("GET", "statements", {"text": "z" * 30_000 + "q"})[0] == 400
    assert mallory.json("GET", f"statements?text={'z' * 900}q")["statements"] == []
    assert mallory.json("GET", f"statements?max_results=5&text={'z' * 900}")["statements"]
