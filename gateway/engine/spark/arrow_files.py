"""Rows that Spark's tasks write as Arrow record batches into Hadoop sequence files, and their way back.

`RDD.saveAsObjectFile` writes groups of ten batches as Java serialises a ``byte[][]``, one group a record, one file a
partition. Spark makes the batches as it does for `DataFrame.toArrow`, but no driver holds them.
Formats: org.apache.hadoop.io.SequenceFile (version 6), Java Object Serialization Specification, chapter 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from gateway.errors import ServerError

_MARKED, _MARK_BYTES = b"\xff\xff\xff\xff", 16  # in the place of a record's length, and what follows then
_STREAM, _ARRAY, _CLASS, _REFERENCE = b"\xac\xed\0\5", b"u", b"r", b"q"


def write(frame: Any, folder: Path, rows: int) -> int:
    """Run `frame`, whose columns are of fixed width, into files below `folder`, which must not exist; how many they are.

    Args:
        frame: a DataFrame of a classic session.
        folder: seen by all executors.
        rows: how many at most a batch has.
    """
    context = frame.sparkSession.sparkContext._jsc.sc()  # noqa: SLF001 (pyspark has no public names for all of this)
    before = context.getLocalProperties()
    ours = before.clone()
    # What Spark does for an action of a DataFrame, but not for an RDD: tasks read the session's settings from here.
    ours.putAll(frame._jdf.sparkSession().sessionState().conf().settings())  # noqa: SLF001
    context.setLocalProperties(ours)
    try:
        batches = frame._jdf.toArrowBatchRdd(rows, "UTC", False, False)  # noqa: SLF001
        batches.saveAsObjectFile(f"file:{folder}")
        return int(batches.getNumPartitions())
    finally:
        context.setLocalProperties(before)


def read(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of one file, one after the other."""
    with open(path, "rb") as file:
        _skip_head(file)
        while _at_record(file):
            for _ in range(_head_of_group(file)):
                _expect(file.read(1) == _ARRAY)
                _skip_class(file)
                yield pa.ipc.read_record_batch(pa.ipc.read_message(file.read(_int(file))), schema)


def _skip_head(file: BinaryIO) -> None:
    """Magic and version, two names of classes, flags of compression, count of metadata, the mark."""
    _expect(file.read(4) == b"SEQ\x06")
    for _ in range(2):
        file.read(file.read(1)[0])
    if file.read(2) != b"\0\0":
        raise ServerError("INTERNAL_ERROR", "Spark's files were compressed: leave its Hadoop output uncompressed.")
    _expect(_int(file) == 0)
    file.read(_MARK_BYTES)


def _at_record(file: BinaryIO) -> bool:
    """Go to the value of the next record: behind its lengths, its key, which is empty, and the length of its bytes."""
    while length := file.read(4):
        if length == _MARKED:
            file.read(_MARK_BYTES)
            continue
        _expect(_int(file) == 0)
        _int(file)
        return True
    return False


def _head_of_group(file: BinaryIO) -> int:
    """How many arrays follow in a serialised ``byte[][]``."""
    _expect(file.read(5) == _STREAM + _ARRAY)
    _skip_class(file)
    return _int(file)


def _skip_class(file: BinaryIO) -> None:
    """The description of an array's class, or a reference to one."""
    kind = file.read(1)
    if kind == _REFERENCE:
        file.read(4)
        return
    _expect(kind == _CLASS)
    # Name, serialVersionUID, flags, no fields, end of annotations, no superclass.
    file.read(int.from_bytes(file.read(2), "big") + 8 + 1 + 2 + 1 + 1)


def _int(file: BinaryIO) -> int:
    return int.from_bytes(file.read(4), "big", signed=True)


def _expect(found: bool) -> None:
    if not found:
        raise ServerError("INTERNAL_ERROR", "Spark wrote its result in another format than sequence files of arrays.")
