"""Sequence files of serialised arrays, as Spark 4.2 writes them with `RDD.saveAsObjectFile`, put together by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gateway.engine.spark import arrow_files
from gateway.errors import ServerError

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.timestamp("us", "UTC"))])
MARK = bytes(range(16))


def batch(first: int, count: int) -> pa.RecordBatch:
    values = pa.array([None if i % 5 == 0 else i for i in range(first, first + count)], pa.int64())
    return pa.record_batch([values, values.cast(SCHEMA.field(1).type)], schema=SCHEMA)


def text(name: str) -> bytes:
    return bytes([len(name)]) + name.encode()


def head(*, magic: bytes = b"SEQ\x06", flags: bytes = b"\0\0") -> bytes:
    names = text("org.apache.hadoop.io.NullWritable") + text("org.apache.hadoop.io.BytesWritable")
    return magic + names + flags + bytes(4) + MARK


def group(*batches: pa.RecordBatch) -> bytes:
    """A ``byte[][]``: the class of its arrays is told once and referred to afterwards."""
    found = b"\xac\xed\x00\x05ur\x00\x03[[BK\xfd\x19\x15gg\xdb7\x02\x00\x00xp" + len(batches).to_bytes(4, "big")
    for number, each in enumerate(batches):
        kind = b"r\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp" if number == 0 else b"q\x00\x7e\x00\x02"
        data = each.serialize().to_pybytes()
        found += b"u" + kind + len(data).to_bytes(4, "big") + data
    return found


def record(value: bytes) -> bytes:
    return (len(value) + 4).to_bytes(4, "big") + bytes(4) + len(value).to_bytes(4, "big") + value


def read(path: Path, data: bytes) -> list[pa.RecordBatch]:
    path.write_bytes(data)
    return list(arrow_files.read(path, SCHEMA))


def test_batches_of_several_groups_in_order(tmp_path: Path) -> None:
    batches = [batch(0, 7), batch(7, 1), batch(8, 0), batch(8, 3000)]
    mark = b"\xff\xff\xff\xff" + MARK
    data = head() + record(group(*batches[:3])) + mark + record(group(batches[3])) + mark
    assert read(tmp_path / "part-00000", data) == batches


def test_a_partition_without_rows(tmp_path: Path) -> None:
    assert read(tmp_path / "part-00000", head()) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "another format"),
        (head(magic=b"SEQ\x05"), "another format"),
        (head(flags=b"\x01\x00"), "were compressed"),
        (head() + record(b"\xac\xed\x00\x05t\x00\x01a"), "another format"),
    ],
)
def test_other_files_are_told_as_such(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ServerError, match=message):
        read(tmp_path / "part-00000", data)
