"""Bytes of VARIANTs in a data file that are none: told as that, at once, and never shown as something else."""

from __future__ import annotations

import itertools
import shutil
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import add_action, answer, log_action, outcome
from tests.live.gateway import Server

OBJECT = b"\x02\x01\x00\x00\x01\x00"  # of one field, the first name, with JSON's null
TWICE = b"\x02\x02\x00\x00\x00\x01\x02\x00\x04"  # of two fields of that name
ONES = (
    "SELECT CAST({0} AS STRING) FROM held",
    "SELECT to_json(struct({0} AS x)) FROM held",
    "SELECT variant_get({0}, '$') FROM held",
    "SELECT CAST({0} AS MAP<STRING, VARIANT>) FROM held",
)


def names(starts: Sequence[int], text: bytes) -> bytes:
    """Metadata with names that stand between `starts` in a text."""
    return b"\xc1" + struct.pack(f"<{len(starts) + 1}I", len(starts) - 1, *starts) + text


@pytest.fixture
def folder(server: Server) -> Iterator[Path]:
    """Where the table of a test lies."""
    found = server.warehouse / "default" / "held"
    yield found
    shutil.rmtree(found)


def made(client: Client, folder: Path, metadata: bytes, value: bytes) -> None:
    """A table with a VARIANT, in an array too."""
    answer(client, "CREATE TABLE held (v VARIANT, a ARRAY<VARIANT>)")
    shape = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
    one = {"value": value, "metadata": metadata}
    rows = pa.table({"v": pa.array([one], shape), "a": pa.array([[one]], pa.list_(shape))})
    pq.write_table(rows, folder / "x.parquet")
    log_action(folder, 1, add=add_action("x.parquet", (folder / "x.parquet").stat().st_size))


@pytest.mark.parametrize(
    "metadata",
    [
        names([0, 9], b"ab"),  # behind the end
        names([2, 0], b"ab"),  # backwards
        names([*itertools.chain(*[(0, 1 << 20)] * 50_000)], b"a" * (1 << 20)),  # 50 gigabytes of them
    ],
    ids=["behind", "backwards", "again"],
)
def test_names_of_fields_stand_one_behind_the_other(client: Client, folder: Path, metadata: bytes) -> None:
    made(client, folder, metadata, OBJECT)
    for question in ONES:
        for what in ("v", "a[0]"):
            start = time.monotonic()
            found = outcome(client, question.format(what))
            assert isinstance(found, RemoteError) and "[MALFORMED_VARIANT]" in str(found), found
            assert time.monotonic() - start < 5


def test_what_cannot_be_shown_in_an_error_is_an_error(client: Client, folder: Path) -> None:
    made(client, folder, names([0, 1], b"a"), TWICE)
    for what in ("v", "a[0]"):
        found = outcome(client, f"SELECT CAST({what} AS ARRAY<VARIANT>) FROM held")
        assert isinstance(found, RemoteError) and "[MALFORMED_VARIANT]" in str(found), found
