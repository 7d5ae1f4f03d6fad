"""Schemas that Parquet files hold for Spark, which takes them for the files' own, with what they have it evaluate."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from gateway.delta.containment import Within, opened
from gateway.delta.expressions import existing_of
from gateway.delta.footers import opened_parquet
from gateway.errors import ServerError

_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_MAGIC, _LARGEST, _TAIL = b"PAR1", 256 << 20, struct.Struct("<I4s")
# Without any of them a schema has neither defaults nor classes, however it is spelt.
_SIGNS = (b"EXISTS_DEFAULT", b"udt", b"\\u")


def told_expressions(path: str, within: Within) -> set[str]:
    """The expressions that Spark would evaluate to read the files at or below a real path.

    Raises UNSUPPORTED_DATATYPE for a type that names a class, FAILED_READ_FILE for a schema that cannot be read.
    """
    return {text for file in _files(path) for text in _told(file, within)}


def _files(path: str) -> Iterator[str]:
    """The files at or below a path, links followed, each folder once."""
    todo, seen = [path], set()
    while todo:
        at = todo.pop()
        if not os.path.isdir(at):
            yield at
        elif (real := os.path.realpath(at)) not in seen:
            seen.add(real)
            todo += (os.path.join(at, name) for name in os.listdir(at))


def _told(path: str, within: Within) -> Iterator[str]:
    with os.fdopen(opened(path, within), "rb") as file:
        footer = _footer(file)
    if _KEY not in footer or not any(sign in footer for sign in _SIGNS):
        return
    try:
        if footer.count(_KEY) > 1:
            raise ValueError("which of them holds, readers decide")
        with opened_parquet(path, within) as parquet:
            told = (parquet.metadata.metadata or {}).get(_KEY)
        yield from existing_of(told.decode() if told is not None else None)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise ServerError("FAILED_READ_FILE", f"The schema for Spark in {path} cannot be read.") from error


def _footer(file: BinaryIO) -> bytes:
    """The footer of a Parquet file, nothing of another one. Raises OSError, FAILED_READ_FILE for one of gigabytes."""
    size = file.seek(0, os.SEEK_END)
    if size < len(_MAGIC) + _TAIL.size:
        return b""
    file.seek(size - _TAIL.size)
    length, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != _MAGIC or length > size - _TAIL.size:
        return b""  # which Spark says
    if length > _LARGEST:
        raise ServerError("FAILED_READ_FILE", "A Parquet file has a footer of more than 256 MiB.")
    file.seek(size - _TAIL.size - length)
    return file.read(length)


__all__ = ["told_expressions"]
