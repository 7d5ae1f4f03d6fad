"""Pages of rows as their programs can read them."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from gateway.protocol import pages
from gateway.protocol.user_agents import reads_on
from gateway.results.spool import Rows
from gateway.service.api import Page, ResultMetadata, ResultOptions
from gateway.sqltypes import INT, StructField, struct


def page(lz4: bool = False, reads_on: bool = False) -> Page:
    """Five rows in two parts."""
    parts = [Rows(pa.RecordBatch.from_pydict({"n": pa.array(values, pa.int32())})) for values in ([1, 2, 3], [4, 5])]
    schema = struct(StructField("n", INT))
    return Page(
        0,
        parts,
        False,
        ResultMetadata(schema, ResultOptions(arrow=True, lz4=lz4, reads_on=reads_on), 0xA508, "Etc/UTC"),
    )


def no_link(*_: object) -> tuple[str, int]:
    raise AssertionError


@pytest.mark.parametrize(("on", "counts"), [(False, [3, 2]), (True, [5])])
def test_rows_come_in_one_batch_for_who_reads_on(on: bool, counts: list[int]) -> None:
    batches = pages.row_set(page(reads_on=on), no_link).arrowBatches
    assert [batch.rowCount for batch in batches] == counts
    schema = pa.schema([("n", pa.int32())]).serialize().to_pybytes()
    read = [pa.ipc.open_stream(io.BytesIO(schema + bytes(batch.batch))).read_all() for batch in batches]
    assert [n for table in read for n in table.column(0).to_pylist()] == [1, 2, 3, 4, 5]


def test_packed_rows_stay_apart() -> None:
    assert [batch.rowCount for batch in pages.row_set(page(lz4=True, reads_on=True), no_link).arrowBatches] == [3, 2]


def test_who_reads_on() -> None:
    assert reads_on("godatabrickssqlconnector/1.10.0")
    assert not reads_on("PyDatabricksSqlConnector/4.9.0") and not reads_on("")
