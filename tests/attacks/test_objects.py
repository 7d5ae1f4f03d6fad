"""Whoever writes into the warehouse writes object files too: what is not as the gateway writes them is told by name."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, contents, outcome
from tests.live.gateway import Server

VIEW = {
    "format_version": 1,
    "name": "bad",
    "query": "SELECT 1 AS a",
    "schema": {"type": "struct", "fields": [{"name": "a", "type": "integer", "nullable": False, "metadata": {}}]},
    "query_columns": ["a"],
    "catalog": "main",
    "schema_name": "objects",
}
TABLE = {
    "format_version": 1,
    "name": "bad",
    "location": "bad",
    "format": "csv",
    "schema": VIEW["schema"],
    "partition_columns": [],
    "definition": "(a INT) USING csv",
}
FUNCTION = {"format_version": 1, "name": "bad", "text": "() RETURN 1", "catalog": "main", "schema_name": "objects"}


@pytest.fixture
def schema(client: Client, server: Server) -> Iterator[Path]:
    """The folder of the schema `objects`, with the view `good`."""
    answer(client, "CREATE SCHEMA objects")
    answer(client, "CREATE VIEW objects.good AS SELECT 7 AS a")
    yield server.warehouse / "objects"
    shutil.rmtree(server.warehouse / "objects")


def put(schema: Path, kind: str, text: str) -> Path:
    path = schema / "_objects" / f"bad.{kind}.json"
    path.write_text(text)
    return path


def without(record: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in record.items() if k != key}


DAMAGED: dict[str, tuple[str, str, str]] = {
    "cut": ("view", json.dumps(VIEW)[:-20], "no JSON"),
    "empty": ("view", "", "no JSON"),
    "a terabyte": ("view", json.dumps(VIEW), "larger than 64 MiB"),
    "deep": ("view", "[" * 100_000, "no JSON"),
    "a list": ("view", "[]", "no JSON object"),
    "not text": ("view", "\udcff", "no JSON"),
    "half a character": ("view", json.dumps(VIEW | {"comment": "\ud800"}), "no JSON"),
    "half a character of a query": ("view", json.dumps(VIEW | {"query": "SELECT '\udc00'"}), "no JSON"),
    "of another version": ("view", json.dumps(VIEW | {"format_version": 2}), "another version"),
    "an unknown key": ("view", json.dumps(VIEW | {"script": "x"}), "unknown key 'script'"),
    "no query": ("view", json.dumps(without(VIEW, "query")), "no query"),
    "a query of numbers": ("view", json.dumps(VIEW | {"query": 5}), "query is not"),
    "NUL": ("view", json.dumps(VIEW | {"query": "SELECT '\0'"}), "query is not"),
    "no list": ("view", json.dumps(VIEW | {"query_columns": "a"}), "query_columns is not"),
    "no flag": ("view", json.dumps(VIEW | {"needs_spark": 1}), "needs_spark is not"),
    "no map": ("view", json.dumps(VIEW | {"settings": {"a": 1}}), "settings is not"),
    "no schema": ("view", json.dumps(VIEW | {"schema": {"type": "struct"}}), "schema cannot be read"),
    "a schema of text": ("view", json.dumps(VIEW | {"schema": "x"}), "schema cannot be read"),
    "another name": ("view", json.dumps(VIEW | {"name": "good"}), "the name 'good'"),
    "a name of folders": ("view", json.dumps(VIEW | {"name": "../bad"}), "the name '../bad'"),
    "a table elsewhere": ("table", json.dumps(TABLE | {"location": "/etc"}), "is not its name"),
    "a table up": ("table", json.dumps(TABLE | {"location": "../../x"}), "is not its name"),
    "a table of another": ("table", json.dumps(TABLE | {"location": "good"}), "is not its name"),
    "a table here": ("table", json.dumps(TABLE | {"location": "."}), "is not its name"),
    "a function of lists": ("function", json.dumps(FUNCTION | {"text": []}), "text is not"),
}
USES = {"view": "SELECT * FROM objects.bad", "table": "SELECT * FROM objects.bad", "function": "SELECT objects.bad()"}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_object_is_told_by_name_left_out_and_can_be_dropped(
    client: Client, server: Server, schema: Path, case: str
) -> None:
    kind, text, why = DAMAGED[case]
    path = schema / "_objects" / f"bad.{kind}.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    if case == "a terabyte":
        os.truncate(path, 1 << 40)
    if kind == "table":
        (schema / "bad").mkdir()
    found = outcome(client, USES[kind])
    assert isinstance(found, RemoteError)
    assert "[CATALOG_FILE_CORRUPT]" in str(found)
    assert path.name in str(found)
    assert why in str(found)
    assert [r["tableName"] for r in answer(client, "SHOW TABLES IN objects")] == ["good"]
    assert "bad" not in str(outcome(client, "SHOW USER FUNCTIONS IN objects"))
    missing = outcome(client, "SELECT * FROM objects.goood")
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in str(missing)
    assert "`good`" in str(missing)
    assert path.name in server.log.read_text()
    answer(client, f"DROP {kind} objects.bad")
    assert not path.exists()
    assert not (schema / "bad").exists()
    assert outcome(client, "SELECT * FROM objects.good") == [{"a": 7}]


def test_dropping_a_table_removes_its_own_folder_whatever_its_object_says(
    client: Client, schema: Path, tmp_path: Path
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    answer(client, "CREATE TABLE objects.kept AS SELECT 1 AS id")
    before = contents(tmp_path)
    for location in (str(tmp_path / "kept"), "kept", "../objects/kept", "_objects", ".."):
        put(schema, "table", json.dumps(TABLE | {"location": location}))
        os.symlink(tmp_path / "kept", schema / "bad")
        answer(client, "DROP TABLE objects.bad")
        (schema / "bad").unlink(missing_ok=True)
    assert contents(tmp_path) == before
    assert outcome(client, "SELECT * FROM objects.kept") == [{"id": 1}]
    assert outcome(client, "SELECT * FROM objects.good") == [{"a": 7}]


@pytest.mark.parametrize("instead", ["link", "pipe"])
def test_an_object_is_a_file_of_the_schema(client: Client, schema: Path, tmp_path: Path, instead: str) -> None:
    (tmp_path / "view.json").write_text(json.dumps(VIEW))
    path = schema / "_objects" / "bad.view.json"
    if instead == "link":
        os.symlink(tmp_path / "view.json", path)
    else:
        os.mkfifo(path)
    assert "[CATALOG_FILE_CORRUPT]" in str(outcome(client, "SELECT * FROM objects.bad"))
    answer(client, "DROP VIEW objects.bad")
    assert (tmp_path / "view.json").exists()


def test_the_folder_of_objects_is_no_link(client: Client, schema: Path, tmp_path: Path) -> None:
    answer(client, "CREATE TABLE objects.beside AS SELECT 1 AS a")
    os.rename(schema / "_objects", tmp_path / "objects")
    os.symlink(tmp_path / "objects", schema / "_objects")
    before = contents(tmp_path)
    for text in (
        "SELECT * FROM objects.good",
        "CREATE VIEW objects.other AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW objects.good AS SELECT 1 AS a",
        "DROP VIEW objects.good",
    ):
        assert "[CATALOG_FILE_CORRUPT]" in str(outcome(client, text))
    assert [r["tableName"] for r in answer(client, "SHOW TABLES IN objects")] == ["beside"]
    listed = "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = 'objects'"
    assert answer(client, listed) == [{"t": "beside"}]
    assert contents(tmp_path) == before


def test_comments_of_schemas_that_are_damaged_are_told(client: Client, server: Server, schema: Path) -> None:
    facts = server.warehouse / ".gateway.json"
    before = facts.read_text() if facts.exists() else None
    for text in (
        "{",
        "[]",
        '{"schemas": []}',
        '{"schemas": {"objects": 5}}',
        '{"schemas": {"objects": {"comment": []}}}',
    ):
        facts.write_text(text)
        assert "[CATALOG_FILE_CORRUPT]" in str(outcome(client, "DESCRIBE SCHEMA objects"))
    facts.unlink()
    os.mkfifo(facts)
    assert "[CATALOG_FILE_CORRUPT]" in str(outcome(client, "DESCRIBE SCHEMA objects"))
    facts.unlink()
    if before is not None:
        facts.write_text(before)


def test_comments_of_schemas_that_no_text_holds_are_told(client: Client, server: Server, schema: Path) -> None:
    path = server.warehouse / ".gateway.json"
    path.write_text("{}")
    try:
        os.truncate(path, 1 << 40)
        told = str(outcome(client, "DESCRIBE SCHEMA objects"))
    finally:
        path.unlink()
    assert "[CATALOG_FILE_CORRUPT]" in told and "larger than 64 MiB" in told


def test_a_folder_in_the_place_of_an_object_goes_with_what_it_belongs_to(client: Client, schema: Path) -> None:
    """Neither is a statement that makes one told anything else than that it is there."""
    answer(client, "CREATE TABLE objects.t (id INT)")
    for kind in ("statistics", "keys", "view"):
        (schema / "_objects" / f"t.{kind}.json" / "deep" / "er").mkdir(parents=True)
    told = str(outcome(client, "ANALYZE TABLE objects.t COMPUTE STATISTICS"))
    assert "[CATALOG_FILE_CORRUPT]" in told and "t.statistics.json" in told
    answer(client, "DROP TABLE objects.t")
    assert "[CATALOG_FILE_CORRUPT]" in str(outcome(client, "CREATE OR REPLACE VIEW objects.t AS SELECT 1 AS a"))
    answer(client, "DROP VIEW objects.t")
    assert sorted(path.name for path in (schema / "_objects").iterdir()) == ["good.view.json"]
    answer(client, "CREATE TABLE objects.t (id INT)")
    answer(client, "ANALYZE TABLE objects.t COMPUTE STATISTICS")
    answer(client, "DROP TABLE objects.t")


def test_a_location_elsewhere_tells_nothing_of_what_is_there(client: Client, server: Server, schema: Path) -> None:
    """Neither that there is a table: by its name one would ask for files of the whole machine."""
    outside = server.warehouse.parent / "elsewhere" / "t"
    (outside / "_delta_log").mkdir(parents=True)
    (outside / "_delta_log" / f"{0:020d}.json").write_text("{}")
    allowed = server.warehouse.parent / "files"
    for location in (outside, f"{allowed}/../elsewhere/t", outside.parent / "none", schema.parent / "default"):
        put(schema, "location", json.dumps({"format_version": 1, "name": "bad", "location": str(location)}))
        assert [r["tableName"] for r in answer(client, "SHOW TABLES IN objects")] == ["good"], location
        assert "DELTA" not in str(outcome(client, "SELECT * FROM objects.bad")), location
    shutil.rmtree(outside.parent)
