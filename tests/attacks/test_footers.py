"""Footers of Parquet files that tell of pages and rows what cannot be: the file is named, and nothing is taken for it."""

from __future__ import annotations

import base64
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from gateway.protocol.client import Client, RemoteError
from tests.attacks import compact
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


def _read_by(reader: str, server: Server, table: Path, path: Path) -> str:
    """The relation that one of our readers reads the changed file `path` of the table by."""

    def known(actions: Actions) -> Actions:
        of_table: Any = with_vector(ROWS_1_AND_5)(actions) if reader == "our own" else actions
        return changed("add", size=path.stat().st_size, stats=f'{{"numRecords":{ROWS}}}')(of_table)

    edit(table, known)
    if reader != "of a folder":
        return "footers"
    folder = server.warehouse.parent / "files" / "footers"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder)
    return f"parquet.`{folder}`"


@pytest.mark.parametrize("reader", ["the engine's", "our own", "of a folder"])
@pytest.mark.parametrize("name", LIES)
def test_a_footer_that_cannot_be_true_is_told(
    client: Client, server: Server, table: Path, name: str, reader: str
) -> None:
    (path,) = table.glob("*.parquet")
    pq.write_table(pq.read_table(path), path, store_schema=False)
    _lying(path, LIES[name])

    relation = _read_by(reader, server, table, path)
    for text in (f"SELECT sum(id) AS n, max(s) FROM {relation}", f"SELECT id FROM {relation} WHERE id = 49"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError), told
        assert "[FAILED_READ_FILE]" in str(told) and path.name in str(told), told
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


# Ways to a value of the footer, and what it says instead: [element of the schema, field] or [group, column, fields …].
SCHEMA, GROUPS, CHUNKS, FACTS = 2, 4, 1, 3
CONTRADICTIONS: dict[str, tuple[compact.Path, int | bytes]] = {
    "a column of longs that the schema has as ints": ((SCHEMA, 1, 1), 1),
    "a column of texts that the schema has as ints": ((SCHEMA, 2, 1), 1),
    "a column that the schema has as required": ((SCHEMA, 1, 3), 0),
    "a column of no known type": ((SCHEMA, 1, 1), 2**31 - 1),
    "a column that is there in no known way": ((SCHEMA, 1, 3), -1),
    "a column of another name": ((SCHEMA, 1, 4), b"x"),
    "a name that is no text": ((SCHEMA, 1, 4), b"\xff"),
    "pages of another column": ((GROUPS, 0, CHUNKS, 0, FACTS, 3, 0), b"s"),
    "pages of another type": ((GROUPS, 0, CHUNKS, 0, FACTS, 1), 5),
    "the places of pages far behind the end": ((GROUPS, 0, CHUNKS, 0, 4), 2**62),
    "as many places of pages as memory": ((GROUPS, 0, CHUNKS, 0, 5), 2**31 - 1),
    "an index before the beginning": ((GROUPS, 0, CHUNKS, 1, 6), -(2**63)),
    "an index as large as memory": ((GROUPS, 0, CHUNKS, 1, 7), 2**31 - 1),
    "statistics of no bytes": ((GROUPS, 0, CHUNKS, 0, FACTS, 12, 5), b""),
}


@pytest.mark.parametrize("reader", ["the engine's", "our own", "of a folder"])
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_footer_that_contradicts_itself_is_told(
    client: Client, server: Server, table: Path, name: str, reader: str
) -> None:
    """Two parts of a footer that cannot both be true, or an index that lies nowhere."""
    (path,) = table.glob("*.parquet")
    pq.write_table(pq.read_table(path), path, store_schema=False, write_page_index=True)
    data, (where, new) = path.read_bytes(), CONTRADICTIONS[name]
    path.write_bytes(compact.with_footer(data, compact.changed(compact.STRUCT, compact.footer(data), where, new)))

    relation = _read_by(reader, server, table, path)
    for text in (f"SELECT sum(id) AS n, max(s) FROM {relation}", f"SELECT id FROM {relation} WHERE id = 49"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "[FAILED_READ_FILE]" in str(told) and path.name in str(told), told


@pytest.mark.parametrize("rows", [0, 1, ROWS - 7])
@pytest.mark.parametrize("reader", ["the engine's", "our own", "of a folder"])
def test_groups_of_fewer_rows_than_they_have_values_are_told(
    client: Client, server: Server, table: Path, reader: str, rows: int
) -> None:
    """Readers take the one number or the other: some would leave rows out, and number those behind them otherwise."""
    (path,) = table.glob("*.parquet")
    pq.write_table(pq.read_table(path), path, store_schema=False)
    data = path.read_bytes()
    told = compact.changed(compact.STRUCT, compact.footer(data), (GROUPS, 0, 3), rows)
    path.write_bytes(compact.with_footer(data, compact.changed(compact.STRUCT, told, (3,), rows)))
    relation = _read_by(reader, server, table, path)
    for text in (f"SELECT sum(id) AS n, max(s) FROM {relation}", f"SELECT id FROM {relation} WHERE id = 49"):
        found = outcome(client, text)
        assert isinstance(found, RemoteError) and "[FAILED_READ_FILE]" in str(found) and path.name in str(found), found


CHECKPOINTS: dict[str, tuple[compact.Path, int]] = {
    "a terabyte of pages": ((GROUPS, 0, CHUNKS, 3, FACTS, 7), 2**40),
    "pages behind the end": ((GROUPS, 0, CHUNKS, 3, FACTS, 9), 2**40),
    "a column of another type": ((GROUPS, 0, CHUNKS, 0, FACTS, 1), 2),
    "no rows": ((GROUPS, 0, 3), 0),
    "rows without end": ((3,), 2**62),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_that_lies_about_itself_is_told(client: Client, table: Path, name: str) -> None:
    DeltaTable(str(table)).create_checkpoint()
    (path,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    data, (where, new) = path.read_bytes(), CHECKPOINTS[name]
    path.write_bytes(compact.with_footer(data, compact.changed(compact.STRUCT, compact.footer(data), where, new)))
    for text in ("SELECT sum(id) AS n FROM footers", "INSERT INTO footers VALUES (1, 'x')", "DESCRIBE DETAIL footers"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "[DELTA_LOG_CORRUPT]" in str(told) and path.name in str(told), told


def test_a_file_of_too_many_groups_is_told_at_once(client: Client, table: Path) -> None:
    (path,) = table.glob("*.parquet")
    data = path.read_bytes()
    footer = compact.footer(data)
    of, (group,) = footer[GROUPS][1]
    footer[GROUPS] = (compact.LIST, (of, [group] * 40_000))
    footer[3] = (6, 40_000 * ROWS)
    path.write_bytes(compact.with_footer(data, footer))
    edit(table, changed("add", size=path.stat().st_size, stats=f'{{"numRecords":{40_000 * ROWS}}}'))
    told = outcome(client, "SELECT sum(id) AS n FROM footers")
    assert isinstance(told, RemoteError) and "[FAILED_READ_FILE]" in str(told) and "40000 row groups" in str(told)


# Fields of the head of a column's first page of data, which stands before it, and what they say instead.
HEADS: dict[str, tuple[compact.Path, int]] = {
    "a page of no known kind": ((1,), -5),
    "fewer bytes than none, unpacked": ((2,), -1),
    "fewer values than none": ((5, 1), -(2**31)),
    "more values than there are": ((5, 1), 2**31 - 1),
    "values of no known encoding": ((5, 2), 99),
}


@pytest.mark.parametrize("reader", ["the engine's", "our own"])
@pytest.mark.parametrize("name", HEADS)
def test_a_page_whose_head_cannot_be_true_is_told(client: Client, table: Path, name: str, reader: str) -> None:
    (path,) = table.glob("*.parquet")
    rows = pq.read_table(path)
    pq.write_table(rows, path, store_schema=False, use_dictionary=False, data_page_size=500, write_batch_size=50)
    data, (where, new) = path.read_bytes(), HEADS[name]
    begin = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    head, end = compact.read(data, begin)
    lie = compact.written(compact.STRUCT, compact.changed(compact.STRUCT, head, where, new))
    page = (lie + data[end : end + head[3][1]])[: end - begin + head[3][1]]  # as long as before: what follows stays
    path.write_bytes(
        data[:begin]
        + page.ljust(end - begin + head[3][1], b"\0")
        + data[begin + max(len(page), end - begin + head[3][1]) :]
    )
    edit(
        table,
        lambda actions: changed("add", size=path.stat().st_size, stats=f'{{"numRecords":{ROWS}}}')(
            with_vector(ROWS_1_AND_5)(actions) if reader == "our own" else actions
        ),
    )
    for text in ("SELECT sum(id) AS n FROM footers", "SELECT id FROM footers WHERE id = 49"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError) and "[FAILED_READ_FILE]" in str(told), told
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


_TRIED = """
import sys
import pyarrow as pa
from gateway.delta.footers import one_valued, opened_parquet

for path in sys.stdin.read().split():
    try:
        with opened_parquet(path, ()) as file:
            file.schema_arrow, one_valued(file.metadata)
            [column.physical_type for column in map(file.schema.column, range(len(file.schema)))]
    except (pa.ArrowException, OSError):
        pass
"""


@pytest.mark.parametrize("seed", range(3))
def test_no_lie_ends_a_process(tmp_path: Path, seed: int) -> None:
    """Any value of a footer says something else: an error, or rows, whatever Arrow's classes make of it."""
    values = pa.table({"a": [1, 2], "s": ["x", None], "d": [1.5, 2.5], "l": [[1], []], "t": [{"u": 1.5}, None]})
    pq.write_table(values, tmp_path / "whole", store_schema=False, row_group_size=1, write_page_index=True)
    data = (tmp_path / "whole").read_bytes()
    footer, rng = compact.footer(data), random.Random(seed)
    for number, (where, kind, value) in enumerate(compact.leaves(compact.STRUCT, footer)):
        bits = compact.INTEGERS.get(kind, 0)
        numbers = [n for n in (0, 1, 2, 3, 7, -1, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63)) if n >> bits in (0, -1)]
        lie = rng.choice(numbers) if bits else rng.choice([b"", b"\xff" * 8, b"x" * 100]) if kind == 8 else not value
        changed_ = compact.changed(compact.STRUCT, footer, where, lie)
        (tmp_path / str(number)).write_bytes(compact.with_footer(data, changed_))
    paths = "\n".join(str(path) for path in tmp_path.iterdir())
    ended = subprocess.run([sys.executable, "-c", _TRIED], input=paths, text=True, capture_output=True, timeout=120)
    assert ended.returncode == 0, ended.stderr[-2000:]


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


# Of the first page of the first column, in the index of its pages: place, bytes, first row; and what is said instead.
PAGES: dict[str, tuple[int, int]] = {
    "a page larger than the file": (2, 10**8),
    "a page of fewer bytes than none": (2, -5),
    "a page without bytes": (2, 0),
    "a page before the file": (1, -1),
    "a page far behind the file": (1, 2**62),
    "a page of another column": (1, 4),
    "a page that begins behind the file's rows": (3, 10**9),
    "a page that begins before the one before": (3, -(2**63)),
}


@pytest.mark.parametrize("name", PAGES)
def test_an_index_of_pages_that_cannot_be_is_told(client: Client, table: Path, name: str) -> None:
    """The engine takes the bytes of pages by it, and gives up in the midst of reading."""
    (path,) = table.glob("*.parquet")
    rows = pa.table({"id": [n % 50 for n in range(ROWS)], "s": [str(n) for n in range(ROWS)]})
    pages = {"write_page_index": True, "data_page_size": 100, "write_batch_size": 50, "use_dictionary": False}
    pq.write_table(rows, path, store_schema=False, **pages)
    data, (field, new) = path.read_bytes(), PAGES[name]
    footer = compact.footer(data)
    chunk = footer[GROUPS][1][1][0][CHUNKS][1][1][1]  # of the second column
    index = compact.read(data, chunk[4][1])[0]
    lie = compact.written(compact.STRUCT, compact.changed(compact.STRUCT, index, (1, 1, field), new))
    kept = data[: len(data) - 8 - int.from_bytes(data[-8:-4], "little")]
    chunk[4], chunk[5] = (chunk[4][0], len(kept)), (chunk[5][0], len(lie))
    path.write_bytes(compact.with_footer(kept + lie + data[len(kept) :], footer))
    edit(table, changed("add", size=path.stat().st_size, stats=f'{{"numRecords":{ROWS}}}'))

    right = [{"n": 1, "m": "49"}]
    for text in ("SELECT count(*) AS n, max(s) AS m FROM footers WHERE s = '49' AND id = 49",) * 2:
        told = outcome(client, text)
        assert told == right or ("[FAILED_READ_FILE]" in str(told) and path.name in str(told)), told


@pytest.mark.parametrize("reader", ["the engine's", "our own", "of a folder"])
@pytest.mark.parametrize("lie", [b"\x7f\0\4\0\0\0\3\0\0\0UTC", b"\2\0\4\0\0\0\3\0\0\0\xf1TC"], ids=["unit", "zone"])
def test_a_schema_of_arrow_that_cannot_be_is_told(
    client: Client, server: Server, table: Path, lie: bytes, reader: str
) -> None:
    (path,) = table.glob("*.parquet")
    rows = pq.read_table(path)
    pq.write_table(rows.append_column("t", pa.array([0] * len(rows), pa.timestamp("us", "UTC"))), path)
    hint = pq.read_metadata(path).metadata[b"ARROW:schema"]
    lying = base64.b64encode(base64.b64decode(hint).replace(b"\2\0\4\0\0\0\3\0\0\0UTC", lie))
    assert lying != hint  # unit and zone of the timestamps
    path.write_bytes(path.read_bytes().replace(hint, lying))

    relation = _read_by(reader, server, table, path)
    for text in (f"SELECT sum(id) AS n, max(s) FROM {relation}", f"SELECT count(*) FROM {relation} WHERE id = 49"):
        told = str(outcome(client, text))
        assert "INTERNAL_ERROR" not in told
        assert "[FAILED_READ_FILE]" not in told or path.name in told


@pytest.mark.parametrize("reader", ["the engine's", "of a folder"])
def test_bounds_in_a_footer_that_are_the_wrong_way_round_are_told(
    client: Client, server: Server, table: Path, reader: str
) -> None:
    (path,) = table.glob("*.parquet")
    pq.write_table(pq.read_table(path), path, store_schema=False)
    low, high = struct.pack("<q", 0), struct.pack("<q", 49)
    data = path.read_bytes()
    assert data.count(high) >= 2  # the greatest value, in the old fields of the statistics and in the new ones
    path.write_bytes(data.replace(low, struct.pack("<q", 50)))

    relation = _read_by(reader, server, table, path)
    told = str(outcome(client, f"SELECT count(*), sum(hash(id)) FROM {relation} WHERE id >= 0"))
    assert "INTERNAL_ERROR" not in told
    assert path.name in told
