"""Rows of a spool are readable at any offset as they were written, and no file is left behind."""

import errno
import os
import random
import threading
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from gateway.errors import ServerError
from gateway.results import spool as spool_module
from gateway.results.spool import Rows, Spool

SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})


@dataclass(frozen=True)
class Part:
    count: int
    data: bytes | None = None
    offset: int = 0
    length: int = 0
    weight: int = 0


class Writer:
    """Appends batches as a worker does: in memory first, then through a descriptor of its own."""

    def __init__(self, spool: Spool, inline: int = 0) -> None:
        self.spool, self.inline, self.descriptor, self.offset = spool, inline, -1, 0

    def write(self, batch: pa.RecordBatch) -> None:
        data = batch.serialize().to_pybytes()
        if self.inline >= len(data):
            self.inline -= len(data)
            self.spool.append(Part(batch.num_rows, data))
            return
        if self.descriptor < 0:
            self.descriptor = self.spool.descriptor()
        os.pwrite(self.descriptor, data, self.offset)
        self.spool.append(Part(batch.num_rows, None, self.offset, len(data)))
        self.offset += len(data)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


def rows(start: int, count: int) -> pa.RecordBatch:
    ids = pa.array(range(start, start + count), pa.int64())
    return pa.record_batch([ids, ids.cast(pa.string())], schema=SCHEMA)


def ids(parts: list[Rows]) -> list[int]:
    return [i for part in parts for i in part.batch.column(0).to_pylist()]


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_random_reads_of_many_rows_equal_what_was_written(tmp_path: Path) -> None:
    random_source = random.Random(7)
    spool = Spool(SCHEMA, tmp_path)
    writer = Writer(spool, inline=100_000)
    total = 0
    while total < 120_000:
        count = random_source.choice([1, 3, 500, 8192])
        writer.write(rows(total, count))
        total += count
    spool.end()
    writer.close()
    assert spool.rows == total and spool.ended
    memory, disk = spool.bytes
    assert 0 < memory <= 100_000 and disk == writer.offset
    for _ in range(300):
        start = random_source.randrange(total + 10)
        limit = random_source.choice([1, 7, 1000, 30_000])
        found = spool.read(start, limit, 1 << 30)
        assert ids(found) == list(range(start, min(total, start + limit)))
        assert all(part.batch.schema.equals(SCHEMA) for part in found)
    position, walked = 0, []
    while parts := spool.read(position, 10_000, 64_000):
        walked += ids(parts)
        position = len(walked)
    assert walked == list(range(total))
    spool.close()


def test_a_page_keeps_within_its_bytes_but_never_is_empty(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    writer = Writer(spool)
    for start in range(0, 10_000, 1000):
        writer.write(rows(start, 1000))
    page = spool.read(500, 10_000, 50_000)
    size = sum(part.batch.nbytes for part in page)
    assert 10_000 < size <= 50_000
    # It begins within a message and ends with one, which is handed on as it is.
    assert [part.message is not None for part in page] == [False] + [True] * (len(page) - 1)
    assert ids(page) == list(range(500, 500 + len(ids(page))))
    assert ids(spool.read(17, 100, 1)) == [17]
    assert ids(spool.read(17, 100, 0)) == [17]
    writer.close()
    spool.close()


def test_no_rows_and_past_the_end_read_as_nothing(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    spool.end()
    assert spool.read(0, 10, 100) == [] and spool.wait_for(0, 0) and spool.schema == SCHEMA
    assert os.listdir(tmp_path) == []
    spool.close()


def test_the_row_limit_cuts_inside_a_batch(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path, row_limit=1500)
    writer = Writer(spool)
    for start in (0, 1000, 2000):
        writer.write(rows(start, 1000))
    spool.end()
    assert spool.rows == 1500
    assert ids(spool.read(0, 9999, 1 << 30)) == list(range(1500))
    assert ids(spool.read(1400, 9999, 1 << 30)) == list(range(1400, 1500))
    writer.close()
    spool.close()


def test_waiting_ends_with_a_row_the_end_or_close(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    assert not spool.wait_for(0, 0.01)
    seen: list[bool] = []

    def wait(row: int) -> threading.Thread:
        thread = threading.Thread(target=lambda: seen.append(spool.wait_for(row, 10)))
        thread.start()
        return thread

    waiter = wait(4)
    writer = Writer(spool)
    writer.write(rows(0, 5))
    waiter.join(10)
    assert seen == [True]
    assert not spool.wait_for(5, 0.01)
    waiter = wait(5)
    spool.end()
    waiter.join(10)
    other = Spool(SCHEMA, tmp_path)
    closer = threading.Thread(target=lambda: seen.append(other.wait_for(0, 10)))
    closer.start()
    other.close()
    closer.join(10)
    assert seen == [True, True, True]
    writer.close()
    spool.close()


@pytest.mark.parametrize("unnamed", [True, False])
def test_no_file_and_no_descriptor_is_left_behind(
    tmp_path: Path, unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:  # a file system that does not know unnamed files
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)
    before = open_descriptors()
    spool = Spool(SCHEMA, tmp_path)
    writer = Writer(spool)
    writer.write(rows(0, 10))
    assert os.listdir(tmp_path) == []
    assert ids(spool.read(3, 2, 999)) == [3, 4]
    assert open_descriptors() == before + 2
    writer.close()
    spool.close()
    spool.close()
    assert open_descriptors() == before
    assert spool.bytes == (0, 0)


def test_after_close_rows_are_dropped_and_reading_fails(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    spool.close()
    assert spool.append(Part(1, b"")) == 0 and spool.rows == 0
    for action in (lambda: spool.read(0, 1, 1), spool.descriptor):
        with pytest.raises(ServerError, match="closed"):
            action()


def test_rows_after_the_end_are_refused(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    spool.end()
    with pytest.raises(ServerError, match="after the end"):
        Writer(spool, 10_000).write(rows(0, 1))


def test_a_cut_file_is_an_error_not_fewer_rows(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    writer = Writer(spool)
    writer.write(rows(0, 10))
    os.ftruncate(writer.descriptor, 100)
    with pytest.raises(ServerError, match="shorter"):
        spool.read(0, 10, 1 << 20)
    writer.close()
    spool.close()


def test_small_pages_of_a_large_message_read_the_file_once(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    writer = Writer(spool)
    writer.write(rows(0, 8000))
    loads = 0
    load = spool._load

    def counted(part: spool_module.Part) -> pa.RecordBatch:
        nonlocal loads
        loads += 1
        return load(part)

    spool._load = counted  # type: ignore[method-assign]
    for start in range(0, 8000, 1000):
        assert len(ids(spool.read(start, 1000, 1 << 20))) == 1000
    assert loads == 1
    assert spool._last is None  # nothing is kept once the message is read
    writer.close()
    spool.close()


def test_pieces_hold_each_row_once_and_break_between_messages(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path, row_limit=9_500)
    writer = Writer(spool, inline=30_000)
    for start in range(0, 10_000, 1000):
        writer.write(rows(start, 1000))
    unfinished = spool.pieces(0, None, 50_000, 99)
    spool.end()
    for first in (0, 1, 999, 1000, 9_400):
        pieces = spool.pieces(first, None, 50_000, 99)
        assert [i for p in pieces for i in range(p.start_row, p.start_row + p.count)] == list(range(first, 9_500))
        assert all(p.size >= 50_000 for p in pieces[:-1])
        assert all((p.start_row + p.count) % 1000 == 0 for p in pieces[:-1])
    # What is not full comes with the end, or if there is nothing else.
    whole = spool.pieces(0, None, 50_000, 99)
    assert unfinished == whole[:-1] and whole[-1].size < 50_000
    assert spool.pieces(0, None, 50_000, 2) == whole[:2]
    assert spool.pieces(9_500, None, 50_000, 99) == spool.pieces(20_000, None, 50_000, 99) == []
    assert [(p.start_row, p.count) for p in spool.pieces(500, 2_500, 1 << 30, 99)] == [(500, 2_000)]
    writer.close()
    spool.close()


def test_while_rows_come_the_only_piece_need_not_be_full(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path)
    writer = Writer(spool)
    assert spool.pieces(0, None, 1 << 30, 9) == []
    writer.write(rows(0, 10))
    assert [(p.start_row, p.count) for p in spool.pieces(0, None, 1 << 30, 9)] == [(0, 10)]
    assert [(p.start_row, p.count) for p in spool.pieces(4, None, 1 << 30, 9)] == [(4, 6)]
    writer.close()
    spool.close()


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, tmp_path / "state" / "spool")
    writer = Writer(spool)
    writer.write(rows(0, 10))
    assert ids(spool.read(0, 10, 1 << 20)) == list(range(10))
    writer.close()
    spool.close()


def test_what_a_disk_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spool").write_text("no folder")
    with pytest.raises(ServerError) as refused:
        Spool(SCHEMA, tmp_path / "spool").descriptor()
    assert refused.value.condition == "WRITE_FAILED" and str(tmp_path) not in refused.value.message
    spool = Spool(SCHEMA, tmp_path)
    writer = Writer(spool)
    writer.write(rows(0, 10))

    def broken(*args: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", broken)
    with pytest.raises(ServerError) as refused:
        spool.read(0, 10, 1 << 20)
    assert refused.value.condition == "FAILED_READ_FILE" and "Input/output error" in refused.value.message
    writer.close()
    spool.close()
