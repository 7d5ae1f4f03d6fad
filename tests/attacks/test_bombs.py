"""Files of a warehouse that are far larger, deeper or more damaged than they look: told, and nobody else waits."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, outcome
from tests.attacks.test_logs import Actions, changed
from tests.live.gateway import Server

ROWS = 100
TOLD = ("FAILED_READ_FILE", "DELTA_LOG_CORRUPT", "DELTA_FILE_NOT_FOUND", "UNSUPPORTED_DATATYPE", "RESOURCE_EXHAUSTED")
SUMS = "SELECT count(*) AS n, sum(id) AS ids, max(length(s)) AS s FROM {}"


@pytest.fixture
def table(server: Server) -> Iterator[Path]:
    """A table of one file and one commit."""
    folder = server.warehouse / "default" / "bombs"
    made(folder)
    yield folder
    shutil.rmtree(folder)


def made(folder: Path, rows: int = ROWS, **options: Any) -> Path:
    values = {"id": list(range(rows)), "s": [str(i) for i in range(rows)], "p": ["a"] * rows}
    write_deltalake(str(folder), pa.table(values), **options)
    return folder


def edit(folder: Path, change: Callable[[Actions], Actions], version: int = 0) -> None:
    log = folder / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(a) + "\n" for a in change(actions)))


def told(client: Client, text: str) -> Any:
    """Rows, or an error that says what is damaged."""
    found = outcome(client, text, timeout_seconds=60)
    assert not isinstance(found, RemoteError) or any(word in str(found) for word in TOLD), found
    return found


WHOLE = [{"n": ROWS, "ids": ROWS * (ROWS - 1) // 2, "s": 2}]


@pytest.mark.parametrize("seed", range(25))
def test_damaged_footers(client: Client, table: Path, seed: int) -> None:
    rng = random.Random(seed)
    (path,) = table.glob("*.parquet")
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    for _ in range(rng.choice((1, 2, 5, 20))):
        data[-1 - rng.randrange(8 if rng.random() < 0.2 else footer + 8)] = rng.randrange(256)
    path.write_bytes(data)
    for text in (SUMS.format("bombs"), "SELECT * FROM bombs WHERE id = 5", f"SELECT count(*) FROM parquet.`{path}`"):
        told(client, text)
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


@pytest.mark.parametrize("seed", range(6))
def test_damaged_checkpoints(client: Client, table: Path, seed: int) -> None:
    DeltaTable(str(table)).create_checkpoint()
    rng = random.Random(seed)
    (path,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 5, 50))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    found = told(client, SUMS.format("bombs"))
    assert isinstance(found, RemoteError) or found == WHOLE


POINTERS = {
    "huge": b'{"version":0,"size":1,"x":"' + b"y" * 30_000_000 + b'"}',
    "no text": b"\xff\xfe",
    "far": b'{"version":99999999999999999999,"size":1}',
    "negative": b'{"version":-1,"size":-1}',
    "deep": b"[" * 100_000,
    "many parts": b'{"version":0,"size":1,"parts":2147483647}',
    "a list": b"[]",
    "empty": b"",
    "elsewhere": b'{"version":0,"size":1,"v2Checkpoint":{"path":"../../../../etc/passwd"}}',
}


@pytest.mark.parametrize("name", POINTERS)
@pytest.mark.parametrize("file", ["_last_checkpoint", f"{0:020d}.crc"])
def test_damaged_hints_are_passed_over_or_told(client: Client, table: Path, name: str, file: str) -> None:
    (table / "_delta_log" / file).write_bytes(POINTERS[name])
    found = told(client, SUMS.format("bombs"))
    assert found == WHOLE or isinstance(found, RemoteError)


LINES = {
    "long": '{"commitInfo":{"x":"' + "y" * 30_000_000 + '"}}',
    "long path": '{"add":{"path":"' + "z" * 30_000_000 + '"}}',
    "deep": '{"commitInfo":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
    "deep list": "[" * 1_000_000,
}


@pytest.mark.parametrize("name", LINES)
def test_lines_of_a_log(client: Client, table: Path, name: str) -> None:
    log = table / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text() + LINES[name] + "\n")
    found = told(client, SUMS.format("bombs"))
    assert found == WHOLE or isinstance(found, RemoteError)
    if isinstance(found, RemoteError):
        assert len(str(found)) < 5000


STATISTICS = (
    '{"numRecords":-5}', '{"numRecords":1e400}', '{"numRecords":9223372036854775808}', '{"numRecords":"x"}', "[]", "null", "x",
    '{"numRecords":100,"minValues":{"id":1e308},"maxValues":{"id":-1e308}}', '{"numRecords":null}', '{"minValues":5}',
    '{"numRecords":100,"minValues":{"id":"x","s":5},"maxValues":{"id":[1],"s":{}}}', '{"a":' * 5000 + "1" + "}" * 5000,
    '{"numRecords":100,"nullCount":{"id":-1,"s":1e30}}', '{"numRecords":100,"minValues":{"id":99999999999999999999999}}',
)  # fmt: skip


@pytest.mark.parametrize("statistics", STATISTICS)
def test_absurd_statistics(client: Client, table: Path, statistics: str) -> None:
    edit(table, changed("add", stats=statistics))
    for text, rows in ((SUMS.format("bombs"), WHOLE), ("SELECT id FROM bombs WHERE id = 7", [{"id": 7}])):
        found = told(client, text)
        assert isinstance(found, RemoteError) or found == rows


@pytest.mark.parametrize(
    "statistics",
    [
        '{"numRecords":1.5}', '{"numRecords":"1.5"}', '{"numRecords":99.99,"nullCount":{"id":0}}', '{"numRecords":15e-1}',
        '{"numRecords":100,"nullCount":{"s":0,"id":0.5}}', '{"numRecords":100,"nullCount":{"x":{"y":0},"id":"1.5"}}',
        '{"nullCount":{"id":1.5e0},"numRecords" : 100}', '{"numRecord\\u0073":1.5}',
        '{"numRecords":100,"nullCount":{"}":0,"id":1.5}}', '{"numRecords":100,"nullCount":{"\\"},\\"":0,"id":1.5}}',
        '{"numRecords":100,"nullCount":{"{":0,"}":0,"}":0,"id":1.5}}', '{"numRecords":100,"nullCoun\\u0074":{"id":1.5}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("later", [False, True])
def test_counts_of_rows_that_are_no_whole_numbers_are_told(
    client: Client, table: Path, statistics: str, later: bool
) -> None:
    """In the first commit, or in one that comes when the table is known already."""
    if later:
        assert told(client, SUMS.format("bombs")) == WHOLE
        made(table, mode="append")
    edit(table, changed("add", stats=statistics), int(later))
    for text in ("SELECT count(*) AS n FROM bombs", "SELECT id FROM bombs WHERE id IS NULL", "DELETE FROM bombs"):
        assert "in fractions" in str(told(client, text))


@pytest.mark.parametrize("name", ["numRecords", "nullCount"])
def test_counts_behind_escaped_quotes_are_told(client: Client, table: Path, name: str) -> None:
    """JSON takes a quote that is written as its number for one."""
    value = "1.5" if name == "numRecords" else '{"id":1.5}'
    edit(table, changed("add", stats=f'{{"{name}":{value}}}'))
    log = table / "_delta_log" / f"{0:020d}.json"
    text = log.read_text()
    assert f'\\"{name}\\"' in text
    log.write_text(text.replace(f'\\"{name}\\"', f"\\u0022{name[:-1]}\\u00{ord(name[-1]):x}\\u0022"))
    assert "in fractions" in str(told(client, "SELECT count(*) AS n FROM bombs"))


@pytest.mark.parametrize(
    "statistics", ['{"numRecords":100.0}', '{"numRecords":1e2}', '{"numRecords":100,"tightBounds":5}']
)
def test_whole_numbers_in_other_spellings_are_whole(client: Client, table: Path, statistics: str) -> None:
    edit(table, changed("add", stats=statistics))
    assert told(client, SUMS.format("bombs")) == WHOLE


@pytest.mark.parametrize("damage", ["garbage", "gone"])
def test_time_travel_through_a_damaged_log(client: Client, table: Path, damage: str) -> None:
    for _ in range(3):
        made(table, mode="append")
    commit = table / "_delta_log" / f"{2:020d}.json"
    commit.write_bytes(b"garbage") if damage == "garbage" else commit.unlink()
    for version in (0, 1, 2, 3, 99):
        found = outcome(client, f"SELECT count(*) AS n FROM bombs VERSION AS OF {version}")
        assert found == [{"n": ROWS * (version + 1)}] or isinstance(found, RemoteError)
        assert version < 2 or isinstance(found, RemoteError)
        assert "INTERNAL" not in str(found)


# Read by the engine, and, where only partition columns are asked for, by our own reader.
@pytest.mark.parametrize("text", ["SELECT max(p || s) AS p FROM parted", "SELECT max(length(p)) AS p FROM parted"])
def test_a_partition_value_that_is_too_long_for_its_rows(client: Client, server: Server, text: str) -> None:
    folder = made(server.warehouse / "default" / "parted", 20_000, partition_by=["p"])
    edit(folder, changed("add", partitionValues={"p": "v" * 200_000}))
    assert "RESOURCE_EXHAUSTED" in str(told(client, text))
    shutil.rmtree(folder)
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


BOMBS: dict[str, Callable[[], pa.Table]] = {
    "dictionary": lambda: pa.table(
        {"s": pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 1_000_000]))}
    ),
    "zeros": lambda: pa.table({"s": ["\0" * 50_000_000] * 3}),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", BOMBS)
def test_files_that_unpack_to_far_more(client: Client, server: Server, name: str) -> None:
    folder = server.warehouse / "default" / "packed"
    write_deltalake(str(folder), pa.table({"s": ["x"]}))
    (path,) = folder.glob("*.parquet")
    pq.write_table(BOMBS[name](), path, compression="zstd", use_dictionary=name == "dictionary")
    edit(folder, changed("add", size=path.stat().st_size, stats="{}"))
    assert path.stat().st_size < 1_000_000
    for text in ("SELECT max(length(s)) FROM packed", "SELECT max(upper(s)) AS x FROM packed"):
        told(client, text)
    shutil.rmtree(folder)
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]
