"""Row tracking and domains whose numbers somebody has changed: no row's number is given twice, and the log stays readable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, outcome
from tests.live.gateway import Server

COUNT = [{"n": 10}]
MARKS: tuple[Any, ...] = ("x", None, [], {}, 1.5, True, -50, 3, 2**63 - 1, 2**70, 1e300)
FIRST: tuple[Any, ...] = ("5", None, 1.5, True, -5, 2**63 - 1, 2**63 - 5)
SHAPES: tuple[Any, ...] = (5, [], {}, {"domain": 5}, {"domain": "delta.rowTracking"})


@pytest.fixture
def table(client: Client, server: Server) -> Iterator[Path]:
    """A table that numbers its rows."""
    answer(client, "CREATE TABLE tracked (id BIGINT) TBLPROPERTIES (delta.enableRowTracking = true)")
    answer(client, "INSERT INTO tracked SELECT id FROM range(10)")
    folder = server.warehouse / "default" / "tracked"
    yield folder
    shutil.rmtree(folder)


def edit(table: Path, kind: str, change: Callable[[Any], Any], version: int = 1) -> None:
    log = table / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(kind in action for action in actions)
    changed = [{kind: change(action[kind])} if kind in action else action for action in actions]
    log.write_text("".join(json.dumps(action) + "\n" for action in changed))


def nothing_is_written(client: Client, table: Path, *texts: str) -> None:
    for text in texts:
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "DELTA_LOG_CORRUPT" in str(told), (text, told)
    assert not (table / "_delta_log" / f"{2:020d}.json").exists()


@pytest.mark.parametrize("mark", MARKS)
def test_a_last_number_that_is_none_is_told(client: Client, table: Path, mark: Any) -> None:
    configuration = json.dumps({"rowIdHighWaterMark": mark})
    edit(table, "domainMetadata", lambda domain: {**domain, "configuration": configuration})
    nothing_is_written(client, table, "INSERT INTO tracked VALUES (1)", "UPDATE tracked SET id = 7 WHERE id = 1")
    assert answer(client, "SELECT count(*) AS n FROM tracked") == COUNT


@pytest.mark.parametrize("first", FIRST)
def test_first_numbers_that_are_none_are_told(client: Client, table: Path, first: Any) -> None:
    edit(table, "add", lambda add: {**add, "baseRowId": first})
    nothing_is_written(client, table, "UPDATE tracked SET id = 7 WHERE id = 1", "DELETE FROM tracked WHERE id = 1")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_domains_that_are_none_are_told(client: Client, table: Path, shape: Any) -> None:
    edit(table, "domainMetadata", lambda _: shape)
    nothing_is_written(client, table, "INSERT INTO tracked VALUES (1)")


@pytest.mark.parametrize("columns", ['[["nope"]]', "[[5]]", '[["id", "x"]]', "5", "[5]", "null"])
def test_clusters_by_what_is_no_column_are_told(client: Client, server: Server, columns: str) -> None:
    answer(client, "CREATE TABLE clustered (id INT) CLUSTER BY (id)")
    folder = server.warehouse / "default" / "clustered"
    configuration = f'{{"clusteringColumns":{columns}}}'
    edit(folder, "domainMetadata", lambda domain: {**domain, "configuration": configuration}, 0)
    for text in ("OPTIMIZE clustered", "DESCRIBE DETAIL clustered", "SHOW CREATE TABLE clustered"):
        assert "DELTA_LOG_CORRUPT" in str(outcome(client, text)), text
    shutil.rmtree(folder)
