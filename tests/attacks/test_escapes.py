r"""Characters that a log's writer escapes: `\ud842\udfb7` is U+20BB7, which a reader may take for another one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import add_action, answer, outcome
from tests.live.gateway import Server

TEXTS = ("\U00020bb7", "\U0010fffd", "a\U00020bb7b", "\U0001f600\U00020bb7", "\U0001f600", "é")


@pytest.fixture
def folder(server: Server) -> Iterator[Path]:
    found = server.warehouse / "default" / "escapes"
    (found / "_delta_log").mkdir(parents=True)
    yield found
    shutil.rmtree(found)


def _write(folder: Path, texts: tuple[str, ...], *, inner: bool, outer: bool, by: str = "", name: str = "f") -> None:
    """A table of a file for each text, whose statistics and actions are escaped or not; partitioned `by` the text or not."""
    fields = [{"name": n, "type": of, "nullable": True, "metadata": {}} for n, of in (("id", "long"), ("s", "string"))]
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [by] if by else [],
        "configuration": {"delta.checkpointInterval": "1"},
    }
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    for at, text in enumerate(texts):
        path = folder / f"{name}{at}.parquet"
        rows: dict[str, Any] = {"id": [at], "s": [text]}
        pq.write_table(pa.table({n: values for n, values in rows.items() if n != by}), path)
        bounds = {n: values[0] for n, values in rows.items() if n != by}
        stats = {"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": dict.fromkeys(bounds, 0)}
        add = add_action(path.name, path.stat().st_size) | {"partitionValues": {by: text} if by else {}}
        actions.append({"add": add | {"stats": json.dumps(stats, ensure_ascii=inner)}})
    lines = (json.dumps(action, ensure_ascii=outer) for action in actions)
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("inner", [True, False], ids=["escaped statistics", "plain statistics"])
@pytest.mark.parametrize("outer", [True, False], ids=["escaped actions", "plain actions"])
def test_escaped_bounds_hide_no_rows(client: Client, folder: Path, inner: bool, outer: bool) -> None:
    _write(folder, TEXTS, inner=inner, outer=outer)
    for at, text in enumerate(TEXTS):
        for sought in (f"= '{text}'", f"IN ('{text}', 'z')", f"LIKE '{text}'", f"BETWEEN '{text}' AND '{text}'"):
            assert answer(client, f"SELECT id FROM escapes WHERE s {sought}") == [{"id": at}], text
        assert {"id": at} in answer(client, f"SELECT id FROM escapes WHERE s >= '{text}'")
        assert {"id": at} in answer(client, f"SELECT id FROM escapes WHERE s LIKE '{text}%'")
    for text in TEXTS:
        answer(client, f"DELETE FROM escapes WHERE s = '{text}'")
    assert answer(client, "SELECT count(*) AS n FROM escapes") == [{"n": 0}]


@pytest.mark.parametrize("outer", [True, False], ids=["escaped", "plain"])
def test_no_checkpoint_says_other_bounds(client: Client, folder: Path, outer: bool) -> None:
    """It would be written with what was read of them."""
    _write(folder, TEXTS, inner=outer, outer=outer)
    answer(client, "INSERT INTO escapes VALUES (9, 'x')")
    told = DeltaTable(folder).get_add_actions(flatten=True).column("max.s").to_pylist()
    checkpoints = list((folder / "_delta_log").glob("*.checkpoint.parquet"))
    assert not checkpoints if outer else (checkpoints and TEXTS[0] in told)
    assert answer(client, f"SELECT id FROM escapes WHERE s = '{TEXTS[0]}'") == [{"id": 0}]


@pytest.mark.parametrize("what", ["partition", "path"])
def test_escaped_names_and_partitions_are_not_taken_for_others(client: Client, folder: Path, what: str) -> None:
    by, name = ("s", "f") if what == "partition" else ("", TEXTS[0])
    _write(folder, TEXTS, inner=False, outer=True, by=by, name=name)
    for text in (
        "SELECT id, s FROM escapes",
        "DELETE FROM escapes WHERE id = 0",
        "INSERT INTO escapes VALUES (9, 'x')",
    ):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "[UNSUPPORTED_TABLE_FEATURE]" in str(told), told
        assert "escapes the character" in str(told)

    _write(folder, TEXTS, inner=False, outer=False, by=by, name=name)
    assert [row["s"] for row in answer(client, "SELECT s FROM escapes ORDER BY id")] == list(TEXTS)


def test_names_of_columns_in_statistics_are_not_escaped(client: Client, folder: Path) -> None:
    shutil.rmtree(folder / "_delta_log")
    answer(client, f"CREATE OR REPLACE TABLE escapes (`{TEXTS[0]}` INT)")
    answer(client, "INSERT INTO escapes VALUES (7)")
    actions = DeltaTable(folder).get_add_actions(flatten=True)
    assert pa.table(actions).column(f"max.{TEXTS[0]}").to_pylist() == [7]
