"""Feeds of changes that no writer would write: each row tells which change it is of, once, or the log's damage is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, outcome
from tests.attacks.test_logs import Actions, vector_of
from tests.live.gateway import Server

QUESTIONS = (
    "SELECT * FROM table_changes('fed', 0)",
    "SELECT count(*) FROM table_changes('fed', 2)",
    "SELECT id FROM table_changes('fed', 2, 2) WHERE _change_type = 'insert'",
)
INSERTED, UPDATED, DELETED = 1, 2, 3


@pytest.fixture
def table(client: Client, server: Server) -> Iterator[Path]:
    """A table of two rows, of which one is changed and the other deleted."""
    kept = "delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true"
    answer(client, f"CREATE TABLE fed (id INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ({kept})")
    for text in ("INSERT INTO fed VALUES (1, 'a'), (2, 'a')", "UPDATE fed SET id = 5 WHERE id = 1", "DELETE FROM fed"):
        answer(client, text)
    assert answer(client, "SELECT count(*) AS n FROM table_changes('fed', 0)") == [{"n": 6}]
    folder = server.warehouse / "default" / "fed"
    yield folder
    shutil.rmtree(folder)


def edit(table: Path, version: int, change: Callable[[Actions], Actions]) -> None:
    log = table / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(action) + "\n" for action in change(actions)))


def refused(client: Client, condition: str = "DELTA_LOG_CORRUPT", questions: tuple[str, ...] = QUESTIONS) -> None:
    for text in questions:
        told = outcome(client, text)
        assert isinstance(told, RemoteError), text
        assert condition in str(told) and "fed" in str(told), told


def cdc_of(path: Path, table: Path) -> dict[str, Any]:
    return {"path": str(path.relative_to(table)), "partitionValues": {"p": "a"}, "size": path.stat().st_size}


def test_a_data_file_is_no_file_of_changes(client: Client, table: Path) -> None:
    """Its rows would have NULL for the change that they are of."""
    data = next((table / "p=a").glob("*.parquet"))
    edit(table, UPDATED, lambda actions: [*[a for a in actions if "cdc" not in a], {"cdc": cdc_of(data, table)}])
    refused(client)


@pytest.mark.parametrize("words", [["insert", None], ["insert", "INSERT"], ["", ""], [1, 2], [None, None]])
def test_a_row_of_no_known_change_is_told(client: Client, table: Path, words: list[Any]) -> None:
    path = table / "_change_data" / "odd.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "_change_type": words}), path)
    edit(table, UPDATED, lambda actions: [*[a for a in actions if "cdc" not in a], {"cdc": cdc_of(path, table)}])
    refused(client, "UNSUPPORTED_DATATYPE" if words == [1, 2] else "DELTA_LOG_CORRUPT")


@pytest.mark.parametrize(("version", "kind"), [(INSERTED, "add"), (UPDATED, "cdc"), (DELETED, "remove")])
def test_a_commit_tells_of_a_file_once(client: Client, table: Path, version: int, kind: str) -> None:
    edit(table, version, lambda actions: [*actions, *[a for a in actions if kind in a]])
    refused(client, questions=QUESTIONS[:1])


@pytest.mark.parametrize("row", [2, 60_000])
def test_a_vector_of_rows_that_the_file_lacks_is_told(client: Client, table: Path, row: int) -> None:
    vector = {"storageType": "i", "pathOrInlineDv": vector_of(row), "offset": 1, "sizeInBytes": 34, "cardinality": 1}
    edit(
        table,
        DELETED,
        lambda actions: [
            {"remove": {**a["remove"], "deletionVector": vector}} if "remove" in a else a for a in actions
        ],
    )
    told = outcome(client, QUESTIONS[0])
    assert isinstance(told, RemoteError)
    assert "DELTA_LOG_CORRUPT" in str(told) or "FAILED_READ_FILE" in str(told), told
