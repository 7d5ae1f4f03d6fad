"""Footers of Parquet files that tell of pages and rows what cannot be: the file is named, and nothing is taken for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, outcome
from tests.attacks.test_bombs import edit
from tests.attacks.test_logs import ROWS_1_AND_5, Actions, changed, with_vector
from tests.live.gateway import Server

ROWS = 777
# What is said of the first column's values and pages, or of all rows.
LIES: dict[str, dict[str, int]] = {
    "a terabyte of pages": {"length": 2**40},
    "more bytes than anybody has": {"length": 2**62},
    "no bytes": {"length": 0},
    "fewer bytes than none": {"length": -5},
    "pages behind the end": {"data": 10**6},
    "a dictionary before the beginning": {"dictionary": -1},
    "a dictionary far before the beginning": {"dictionary": -(2**62)},
    "fewer values than rows": {"values": 5},
    "no rows": {"rows": 0},
    "rows without end": {"rows": 2**62},
}


def _number(value: int) -> bytes:
    """A number as Thrift's compact protocol has it."""
    left, found = ((value << 1) ^ (value >> 63)) & (2**64 - 1), bytearray()
    while left > 127:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found, left])


def _lying(path: Path, lie: dict[str, int]) -> None:
    """Have a file's footer say something else."""
    chunk = pq.read_metadata(path).row_group(0).column(0)
    column = {
        "values": chunk.num_values,
        "unpacked": chunk.total_uncompressed_size,
        "length": chunk.total_compressed_size,
        "data": chunk.data_page_offset,
        "dictionary": chunk.dictionary_page_offset,
    }
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8]
    for kept, told in (
        (_of_column(column), _of_column({**column, **lie})),
        (_of_file(ROWS), _of_file(lie.get("rows", ROWS))),
    ):
        assert footer.count(kept) == 1
        footer = footer.replace(kept, told)
    path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def _of_column(told: dict[str, int]) -> bytes:
    """Fields 5, 6, 7, 9 and 11 of a column's facts, each with its distance from the one before and its type."""
    heads = {"values": b"\x16", "unpacked": b"\x16", "length": b"\x16", "data": b"\x26", "dictionary": b"\x26"}
    return b"".join(head + _number(told[name]) for name, head in heads.items())


def _of_file(rows: int) -> bytes:
    """Field 3 of a footer, and the head of the list that follows it."""
    return b"\x16" + _number(rows) + b"\x19"


@pytest.fixture
def table(server: Server) -> Iterator[Path]:
    folder = server.warehouse / "default" / "footers"
    write_deltalake(str(folder), pa.table({"id": [n % 50 for n in range(ROWS)], "s": [str(n) for n in range(ROWS)]}))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("reader", ["the engine's", "our own", "of a folder"])
@pytest.mark.parametrize("name", LIES)
def test_a_footer_that_cannot_be_true_is_told(
    client: Client, server: Server, table: Path, name: str, reader: str
) -> None:
    (path,) = table.glob("*.parquet")
    pq.write_table(pq.read_table(path), path, store_schema=False)
    _lying(path, LIES[name])

    def known(actions: Actions) -> Actions:
        of_table: Any = with_vector(ROWS_1_AND_5)(actions) if reader == "our own" else actions
        return changed("add", size=path.stat().st_size, stats=f'{{"numRecords":{ROWS}}}')(of_table)

    edit(table, known)
    relation = "footers"
    if reader == "of a folder":
        folder = server.warehouse.parent / "files" / "footers"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(path, folder)
        relation = f"parquet.`{folder}`"
    for text in (f"SELECT sum(id) AS n, max(s) FROM {relation}", f"SELECT id FROM {relation} WHERE id = 49"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError), told
        assert "[FAILED_READ_FILE]" in str(told) and path.name in str(told), told
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


@pytest.mark.parametrize(("other", "condition"), [("id", "FAILED_READ_FILE"), ("ID", "UNSUPPORTED_FEATURE")])
@pytest.mark.parametrize("reader", ["the engine's", "our own"])
def test_a_column_that_a_file_has_twice_is_told(
    client: Client, table: Path, other: str, condition: str, reader: str
) -> None:
    (path,) = table.glob("*.parquet")
    rows = pq.read_table(path)
    pq.write_table(pa.Table.from_arrays([*rows.columns, rows["id"]], names=["id", "s", other]), path)

    def known(actions: Actions) -> Actions:
        of_table: Any = with_vector(ROWS_1_AND_5)(actions) if reader == "our own" else actions
        return changed("add", size=path.stat().st_size, stats=f'{{"numRecords":{ROWS}}}')(of_table)

    edit(table, known)
    for text in ("SELECT id FROM footers", "SELECT sum(id) AS n, max(s) FROM footers"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and f"[{condition}]" in str(told), told
