"""Column mapping that a log tells wrongly: no id is given twice, and no reader goes by what others do not go by."""

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

MOST = "delta.columnMapping.maxColumnId"
ADDING = (
    "ALTER TABLE mapped ADD COLUMN c INT",
    "ALTER TABLE mapped ADD COLUMN s.z INT",
    "INSERT WITH SCHEMA EVOLUTION INTO mapped BY NAME SELECT 1 AS a, 2 AS c",
    "MERGE WITH SCHEMA EVOLUTION INTO mapped t USING (SELECT 1 AS a, 2 AS c) q ON t.a = q.a WHEN NOT MATCHED THEN INSERT *",
)


@pytest.fixture(params=["name", "id"])
def table(client: Client, server: Server, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The first commit of a table whose columns have the ids 1 to 5."""
    mode = f"TBLPROPERTIES ('delta.columnMapping.mode' = '{request.param}')"
    answer(client, f"CREATE TABLE mapped (a INT, b INT, s STRUCT<x: INT, y: INT>) {mode}")
    folder = server.warehouse / "default" / "mapped"
    yield folder / "_delta_log" / f"{0:020d}.json"
    shutil.rmtree(folder)


def edit(commit: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions of a commit."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        change(action)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


def with_last(text: str | None) -> Callable[[dict[str, Any]], None]:
    """The last id that a table says it has given."""

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            told = action["metaData"]["configuration"]
            told.pop(MOST)
            told.update({} if text is None else {MOST: text})

    return change


def ids(spec: Any) -> list[int]:
    """All ids of a schema."""
    if isinstance(spec, dict):
        return [spec[k] if k == "delta.columnMapping.id" else i for k, v in spec.items() for i in (ids(v) or [0])]
    return [i for one in spec for i in ids(one)] if isinstance(spec, list) else []


@pytest.mark.parametrize("text", ADDING)
@pytest.mark.parametrize("last", ["1", "0", "4", None])
def test_a_last_id_that_is_behind_is_not_believed(client: Client, table: Path, last: str | None, text: str) -> None:
    """A column with the id of another one would be read as that one, or the table by nobody any more."""
    edit(table, with_last(last))
    answer(client, text)
    newest = max(table.parent.glob("*.json"))
    (metadata,) = [a["metaData"] for a in map(json.loads, newest.read_text().splitlines()) if "metaData" in a]
    assert sorted(filter(None, ids(json.loads(metadata["schemaString"])))) == [1, 2, 3, 4, 5, 6]
    assert metadata["configuration"][MOST] == "6"
    assert len(answer(client, "SELECT * FROM mapped")) == text.startswith(("INSERT", "MERGE"))


@pytest.mark.parametrize("last", ["x", "-5", "", "1.0", "\u0665", str(2**31), "9" * 5000])
def test_a_last_id_that_is_none_is_told(client: Client, table: Path, last: str) -> None:
    edit(table, with_last(last))
    for text in ADDING:
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "DELTA_LOG_CORRUPT" in str(told), told
    assert answer(client, "SELECT * FROM mapped") == []


@pytest.mark.parametrize("versions", [(1, 2), (1, 4), (3, 7)])
def test_mapped_columns_of_which_the_protocol_knows_nothing_are_told(
    client: Client, table: Path, versions: tuple[int, int]
) -> None:
    """Spark goes by the names that the schema tells, others by the columns' own."""
    features: dict[str, Any] = {"readerFeatures": [], "writerFeatures": []} if versions[0] == 3 else {}

    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": versions[0], "minWriterVersion": versions[1], **features}

    edit(table, change)
    for text in ("SELECT a FROM mapped", "INSERT INTO mapped (a) VALUES (1)", "CREATE TABLE copied DEEP CLONE mapped"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "DELTA_LOG_CORRUPT" in str(told), (text, told)


def test_a_mapping_of_nothing_needs_no_protocol(client: Client, server: Server) -> None:
    """As writers leave it that take any property: every reader finds the columns by their own names."""
    answer(client, "CREATE TABLE named AS SELECT 7 AS a")
    folder = server.warehouse / "default" / "named"

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"

    edit(folder / "_delta_log" / f"{0:020d}.json", change)
    assert answer(client, "SELECT a FROM named") == [{"a": 7}]
    shutil.rmtree(folder)
