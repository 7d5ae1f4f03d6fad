"""Deletion vectors of rows that no file has, and in tables that have none: told before memory is taken or a file is opened."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gateway.delta.vectors import encoded, serialized
from gateway.protocol.client import Client, RemoteError
from tests.attacks import compact
from tests.attacks.attacker import add_action, answer, log_action, outcome
from tests.live.gateway import Server

QUESTIONS = ("SELECT count(*) AS n FROM hollow", "SELECT sum(id) AS n FROM hollow")
VECTORS, WIDENING = "delta.enableDeletionVectors = true", "delta.enableTypeWidening = true"
NONE = "delta.enableDeletionVectors = false"
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}
FAR = (100, 200, 2**20, 2**31 - 1, 2**32, 2**36, 2**40, 2**62)


@pytest.fixture
def folder(server: Server) -> Iterator[Path]:
    """Where the table of a test lies."""
    found = server.warehouse / "default" / "hollow"
    yield found
    shutil.rmtree(found)


def bitmaps(rows: Sequence[int]) -> dict[str, Any]:
    """A vector in the log itself, of rows that lie far from each other."""
    data = struct.pack("<IQ", 1681511377, len(rows))
    for row in rows:
        data += struct.pack("<IIIHHIH", row >> 32, 12346, 1, row >> 16 & 0xFFFF, 0, 16, row & 0xFFFF)
    return inline(data, len(rows))


def listed(rows: Sequence[int]) -> dict[str, Any]:
    """A vector whose one container lists rows as they are given."""
    data = struct.pack("<IQIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(rows) - 1, 16)
    return inline(data + b"".join(struct.pack("<H", row) for row in rows), len(rows))


def inline(data: bytes, cardinality: int) -> dict[str, Any]:
    text = encoded(data + bytes(-len(data) % 4))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": cardinality}


def made(client: Client, folder: Path, properties: str, vector: dict[str, Any]) -> None:
    """A table of 100 rows whose one file has a vector."""
    answer(client, "CREATE TABLE hollow (id BIGINT)" + (f" TBLPROPERTIES ({properties})" if properties else ""))
    answer(client, "INSERT INTO hollow SELECT id FROM range(100)")
    log = folder / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("add", {})["deletionVector"] = vector
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("row", FAR)
@pytest.mark.parametrize("properties", [VECTORS, f"{VECTORS}, {WIDENING}"], ids=["plain", "widened"])
def test_rows_that_no_file_has_are_told(client: Client, folder: Path, properties: str, row: int) -> None:
    """A mask of them would take all memory, and one table would keep the columns of all others from everybody."""
    made(client, folder, properties, bitmaps([row]))
    for text in (*QUESTIONS, "DELETE FROM hollow WHERE id = 5", "DESCRIBE hollow"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "DELTA_LOG_CORRUPT" in str(told) and "hollow" in str(told), told
    columns = "SELECT count(*) AS n FROM system.information_schema.columns WHERE table_name = 'nation'"
    assert answer(client, columns)[0]["n"] > 0


@pytest.mark.parametrize("vector", [listed([1, 1]), listed([5, 1]), bitmaps([1, 1])])
@pytest.mark.parametrize("properties", [VECTORS, f"{VECTORS}, {WIDENING}"], ids=["plain", "widened"])
def test_rows_in_no_order_are_told(client: Client, folder: Path, properties: str, vector: dict[str, Any]) -> None:
    """A row twice would make the count another than the mask's."""
    made(client, folder, properties, vector)
    for text in QUESTIONS:
        assert "DELTA_LOG_CORRUPT" in str(outcome(client, text))


@pytest.mark.parametrize("properties", [NONE, f"{NONE}, {WIDENING}"], ids=["plain", "widened"])
@pytest.mark.parametrize("kind", ["file", "path", "inline", "far"])
def test_a_table_without_vectors_has_none(
    client: Client, folder: Path, tmp_path: Path, properties: str, kind: str
) -> None:
    """What its log lists is not opened, wherever it lies: an error would quote its bytes."""
    elsewhere = tmp_path / "secret"
    elsewhere.write_text("secret")
    logged = {"file": f"file://{elsewhere}", "path": str(elsewhere)}
    outside = {"storageType": "p", "pathOrInlineDv": logged.get(kind), "offset": 1, "sizeInBytes": 34, "cardinality": 1}
    made(client, folder, properties, outside if kind in logged else bitmaps([7 if kind == "inline" else 2**62]))
    for text in (*QUESTIONS, "DELETE FROM hollow WHERE id < 10", "SELECT * FROM hollow VERSION AS OF 1"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "secret" not in str(told).replace(str(elsewhere), ""), told
        assert "DELTA_LOG_CORRUPT" in str(told) and "hollow" in str(told), told


def test_nor_behind_a_checkpoint(client: Client, folder: Path) -> None:
    made(client, folder, VECTORS, bitmaps([7]))
    assert answer(client, QUESTIONS[0]) == [{"n": 99}]
    DeltaTable(str(folder)).create_checkpoint()
    log = folder / "_delta_log"
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    rows = pq.read_table(checkpoint)
    protocol = [None if found is None else PLAIN for found in rows["protocol"].to_pylist()]
    rows = rows.set_column(
        rows.schema.get_field_index("protocol"), "protocol", pa.array(protocol, rows.schema.field("protocol").type)
    )
    pq.write_table(rows, checkpoint)
    for path in log.glob("*.json"):
        path.unlink()
    for text in QUESTIONS:
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "DELTA_LOG_CORRUPT" in str(told), told


@pytest.mark.parametrize("spelt", ["{}", "file:{}", "file://{}"])
def test_a_vector_is_found_by_an_absolute_path(client: Client, folder: Path, spelt: str) -> None:
    """The protocol says no more of it than that it is absolute."""
    file, data = folder / "v.bin", serialized(np.array([7, 8]))
    logged = {"storageType": "p", "pathOrInlineDv": spelt.format(file), "offset": 1, "sizeInBytes": len(data)}
    made(client, folder, VECTORS, {**logged, "cardinality": 2})
    file.write_bytes(b"\1" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
    assert answer(client, QUESTIONS[0]) == [{"n": 98}] and answer(client, QUESTIONS[1]) == [{"n": 4950 - 15}]
    answer(client, "DELETE FROM hollow WHERE id < 10")
    assert answer(client, QUESTIONS[0]) == [{"n": 90}]
    assert answer(client, "SELECT sum(id) AS n FROM hollow VERSION AS OF 1") == [{"n": 4950 - 15}]


@pytest.mark.parametrize("hint", ['{"vers', "junk", "[]", "null", '{"version":1,"size":3}}'])
def test_a_hint_that_is_cut_is_none(client: Client, folder: Path, hint: str) -> None:
    """The list of the log's files says the same; who reads of the hint what is JSON is told where it leads."""
    made(client, folder, VECTORS, bitmaps([7]))
    path = folder / "_delta_log" / "_last_checkpoint"
    path.write_text(hint)
    assert answer(client, QUESTIONS[0]) == [{"n": 99}]
    answer(client, "DELETE FROM hollow WHERE id < 10")
    assert answer(client, QUESTIONS[0]) == [{"n": 90}]
    path.write_text(
        '{"version":1,"size":3,"v2Checkpoint":{"path":"../x","sidecarFiles":[{"path":"../../x.parquet"}]}} x'
    )
    assert isinstance(outcome(client, "SELECT count(*) FROM hollow VERSION AS OF 1"), RemoteError)


@pytest.mark.parametrize(
    "numbers",
    [(0, 0, 0, 0), (3, 3, 3, 3), (1, 1, 2, 3), (3, 2, 1, 0), (0, 1, None, 3), (None, None, None, 1), (100, -5, 7, 0)],
    ids=str,
)
def test_groups_of_rows_are_counted_as_they_come(client: Client, folder: Path, numbers: tuple[int | None, ...]) -> None:
    """The engine counts the rows of large files by the numbers that their groups are given: they may say anything."""
    answer(client, "CREATE TABLE hollow (id BIGINT, s STRING)")
    rows = 100_000
    values = {"id": list(range(rows)), "s": [f"{n * 7919 % rows:060}" for n in range(rows)]}
    pq.write_table(pa.table(values), folder / "f.parquet", row_group_size=rows // 4, store_schema=False)
    data = (folder / "f.parquet").read_bytes()
    assert len(data) > 1 << 20  # else it is read by our own reader
    footer = compact.footer(data)
    for group, number in zip(footer[4][1][1], numbers, strict=True):
        group.pop(7, None)
        if number is not None:
            group[7] = (4, number)
    (folder / "f.parquet").write_bytes(compact.with_footer(data, footer))
    deleted = np.arange(0, rows, 3)
    vector = inline(serialized(deleted), len(deleted))
    add = add_action("f.parquet", (folder / "f.parquet").stat().st_size)
    log_action(folder, 1, add={**add, "deletionVector": vector, "stats": json.dumps({"numRecords": rows})})
    left = [n for n in range(rows) if n % 3]
    assert answer(client, QUESTIONS[1]) == [{"n": sum(left)}]
    asked = "SELECT id FROM hollow WHERE id > 70000 ORDER BY id LIMIT 2"
    assert answer(client, asked) == [{"id": 70_001}, {"id": 70_003}]
    answer(client, "DELETE FROM hollow WHERE id IN (70001, 7)")  # by the numbers of rows
    assert answer(client, QUESTIONS[1]) == [{"n": sum(left) - 70_008}]
