"""Identity columns whose metadata somebody has changed: no number is given twice, and the error tells of the log."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer
from tests.live.gateway import Server

NO_NUMBERS: tuple[Any, ...] = (0, None, "x", 1.5, True, 2**63, -(2**63) - 1, [], {})


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.thrift_url).open() as one:
        answer(one, "CREATE TABLE numbered (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT)")
        answer(one, "INSERT INTO numbered (v) VALUES (1), (2)")
        yield one


def changed(log: Path, key: str, value: Any) -> None:
    """Give the identity column of each commit another value."""
    for path in log.glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
                schema["fields"][0]["metadata"][f"delta.identity.{key}"] = value
                action["metaData"]["schemaString"] = json.dumps(schema)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize(
    ("key", "value"),
    [*(("step", value) for value in NO_NUMBERS), *(("highWaterMark", value) for value in NO_NUMBERS[1:])],
)
def test_what_numbers_no_row_is_told(client: Client, server: Server, key: str, value: Any) -> None:
    folder = server.warehouse / "default"
    name = f"numbered_{key}_{NO_NUMBERS.index(value) if value is not True else 't'}".lower()
    shutil.copytree(folder / "numbered", folder / name)
    changed(folder / name / "_delta_log", key, value)
    with pytest.raises(RemoteError, match="DELTA_LOG_CORRUPT"):
        answer(client, f"INSERT INTO {name} (v) VALUES (3)")
    if key == "step":
        with pytest.raises(RemoteError, match="DELTA_LOG_CORRUPT"):
            answer(client, f"SHOW CREATE TABLE {name}")
    assert answer(client, f"SELECT id FROM {name} ORDER BY id") == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("mark", [2, 0, -4])
def test_a_last_number_that_is_none_of_the_steps_is_told(client: Client, server: Server, mark: int) -> None:
    """As Delta with Spark tells it: what comes behind it would be numbers that the column never has."""
    folder = server.warehouse / "default"
    name = f"stepped_{mark + 4}"
    shutil.copytree(folder / "numbered", folder / name)
    changed(folder / name / "_delta_log", "step", 2)
    changed(folder / name / "_delta_log", "highWaterMark", mark)
    for text in (f"INSERT INTO {name} (v) VALUES (3)", f"ALTER TABLE {name} ALTER COLUMN id SYNC IDENTITY"):
        with pytest.raises(RemoteError, match="DELTA_LOG_CORRUPT"):
            answer(client, text)
    assert answer(client, f"SELECT count(*) AS n FROM {name}") == [{"n": 2}]
