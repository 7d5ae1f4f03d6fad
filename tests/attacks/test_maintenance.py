"""Logs that have VACUUM, RESTORE and changes of rows remove or repeat what they should not: the table is whole, others are."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import add_action, answer, contents, log_action, outcome
from tests.live.gateway import Server

COUNT = "SELECT count(*) AS n FROM tended"


@pytest.fixture
def table(client: Client, server: Server) -> Iterator[Path]:
    """A table of 100 rows, and one beside it that stays as it is."""
    answer(client, "CREATE TABLE tended AS SELECT id FROM range(100)")
    answer(client, "CREATE TABLE beside AS SELECT 5 AS id")
    folder = server.warehouse / "default"
    age(folder / "beside")
    before = contents(folder / "beside")
    yield folder / "tended"
    assert contents(folder / "beside") == before
    shutil.rmtree(folder / "tended")
    shutil.rmtree(folder / "beside")


def age(folder: Path) -> None:
    """Make all files old enough for VACUUM."""
    for path in folder.rglob("*"):
        os.utime(path, (1000, 1000), follow_symlinks=False)


def hostile(table: Path) -> list[str]:
    """Paths that no removal has, and such as do no harm."""
    victim = next((table.parent / "beside").glob("*.parquet"))
    return [
        str(victim),
        f"file://{victim}",
        f"../beside/{victim.name}",
        f"..%2Fbeside%2F{victim.name}",
        f"x/../../beside/{victim.name}",
        "_delta_log/00000000000000000000.json",
        "./_delta_log/00000000000000000000.json",
        "_delta_log%2F00000000000000000000.json",
        ".hidden",
        "_delta_log",
        "",
        ".",
        "..",
        "/",
        "a\0b",
        "%00",
        "x" * 5000,
        "s3://bucket/x",
    ]


@pytest.mark.parametrize("number", range(18))
@pytest.mark.parametrize("kind", ["remove", "cdc"])
def test_vacuum_removes_what_is_the_tables_own(client: Client, table: Path, kind: str, number: int) -> None:
    (table / ".hidden").write_text("x")
    spec: dict[str, Any] = {"path": hostile(table)[number], "size": 1, "dataChange": kind == "remove"}
    more: dict[str, Any] = {"deletionTimestamp": 1} if kind == "remove" else {"partitionValues": {}}
    spec |= more
    log_action(table, 1, commitInfo={"timestamp": 0, "operation": "WRITE"}, **{kind: spec})
    age(table)
    before = contents(table)
    for text in ("VACUUM tended LITE", "VACUUM tended", "VACUUM tended RETAIN 0 HOURS"):
        told = outcome(client, text)
        assert "INTERNAL_ERROR" not in str(told), text
        now = contents(table)
        assert all(now.get(name) == data for name, data in before.items() if name != "_delta_log/_last_vacuum_info")
    assert answer(client, COUNT) == [{"n": 100}]


@pytest.mark.parametrize(
    "field",
    [
        {"deletionTimestamp": "1"},
        {"deletionTimestamp": None},
        {"deletionTimestamp": 1.5},
        {"deletionTimestamp": True},
        {"deletionTimestamp": 10**30},
        {"size": "x"},
        {"size": -(2**70)},
        {"partitionValues": []},
        {"deletionVector": []},
        {"deletionVector": {"storageType": "u", "pathOrInlineDv": "ab"}},
        {"deletionVector": {"storageType": "u", "pathOrInlineDv": "!" * 40, "offset": "x"}},
        {"deletionVector": {"storageType": "p", "pathOrInlineDv": "../beside/x"}},
        {"deletionVector": {"storageType": "x", "pathOrInlineDv": ""}},
    ],
)
def test_removals_of_other_types_are_told(client: Client, table: Path, field: dict[str, Any]) -> None:
    spec = {"path": "gone.parquet", "deletionTimestamp": 1, "dataChange": True, **field}
    log_action(table, 1, commitInfo={"timestamp": 0, "operation": "WRITE"}, remove=spec)
    age(table)
    for text in (
        "VACUUM tended LITE",
        "VACUUM tended",
        "RESTORE TABLE tended TO VERSION AS OF 0",
        "DELETE FROM tended",
    ):
        told = outcome(client, text)
        assert "INTERNAL_ERROR" not in str(told), text
    assert isinstance(outcome(client, COUNT), RemoteError) or answer(client, COUNT)[0]["n"] in (0, 100)


@pytest.mark.parametrize("place", ["inner", "p=1/inner", "_change_data", "a/b/c"])
def test_a_table_inside_of_another_is_left_alone(client: Client, table: Path, place: str) -> None:
    """Its files are no part of the outer one, and removals that name them are not heeded."""
    inner = table / place
    shutil.copytree(table.parent / "beside", inner)
    (table / "stray.parquet").write_text("x")
    victim = next(inner.glob("*.parquet")).relative_to(table)
    gone = {"path": str(victim), "size": 1, "dataChange": True, "deletionTimestamp": 1}
    log_action(table, 1, commitInfo={"timestamp": 0, "operation": "WRITE"}, remove=gone)
    age(table)
    before = contents(inner)
    for text in ("VACUUM tended LITE", "VACUUM tended"):
        assert not isinstance(outcome(client, text), RemoteError), text
        assert contents(inner) == before
    assert not (table / "stray.parquet").exists()
    assert answer(client, COUNT) == [{"n": 100}]


@pytest.mark.parametrize("text", ["x", "", "1.5"])
def test_a_number_of_columns_that_is_none_is_told(client: Client, table: Path, text: str) -> None:
    log = table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.dataSkippingNumIndexedCols"] = text
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert "INTERNAL_ERROR" not in str(outcome(client, "OPTIMIZE tended ZORDER BY (id)"))
    assert "INTERNAL_ERROR" not in str(outcome(client, "OPTIMIZE tended"))


def test_a_file_without_a_name_is_told(client: Client, table: Path) -> None:
    log_action(table, 1, add=add_action("", 1))
    for text in (
        "INSERT OVERWRITE tended SELECT 1",
        "TRUNCATE TABLE tended",
        "VACUUM tended",
        "UPDATE tended SET id = 1",
    ):
        assert "INTERNAL_ERROR" not in str(outcome(client, text)), text


def test_who_keeps_a_folder_locked_holds_a_writer_up_once(client: Client, table: Path) -> None:
    """To lock a folder one need only read it."""
    answer(client, "CREATE TABLE parted (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    folder = table.parent / "parted"
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        started = time.monotonic()
        answer(client, "INSERT INTO parted SELECT id, id % 20 FROM range(40)")
        assert time.monotonic() - started < 8
    finally:
        os.close(descriptor)
    assert answer(client, "SELECT count(DISTINCT p) AS n FROM parted") == [{"n": 20}]
    answer(client, "DROP TABLE parted")
