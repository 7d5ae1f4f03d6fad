"""Whether a Parquet file of a log says anything in one of its columns; found out once for each file."""

from __future__ import annotations

import os
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.delta.containment import Within
from gateway.delta.footers import opened_parquet

SIDECAR = "sidecar"
VECTOR = "add.deletionVector.storageType"
Identity = tuple[int, ...]


def identity_of(path: str) -> Identity:
    """What a file is told by, and its state: the time of the last change to it is one that nobody can set. Raises OSError."""
    found = os.stat(path)
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


def says(path: str, column: str, within: Within) -> bool:
    """Whether a row has a value in a column, or below it, however that is spelt. Raises OSError and ArrowException."""
    return _says(path, column, within, identity_of(path))


@lru_cache(maxsize=8192)
def _says(path: str, column: str, within: Within, _: Identity) -> bool:
    with opened_parquet(path, within) as parquet:
        wanted = [leaf for leaf in leaves(parquet) if f"{leaf}.".lower().startswith(f"{column}.".lower())]
        batches = parquet.iter_batches(columns=wanted, use_threads=False) if wanted else ()
        return any(_is_there(values) for batch in batches for values in batch.columns)


def _is_there(values: pa.Array) -> bool:
    if pa.types.is_struct(values.type):
        return any(map(_is_there, values.flatten()))
    return bool(values.null_count < len(values))


def leaves(parquet: pq.ParquetFile) -> list[str]:
    """The paths of the columns of a Parquet file."""
    return [parquet.schema.column(i).path for i in range(len(parquet.schema))]


__all__ = ["SIDECAR", "VECTOR", "Identity", "identity_of", "leaves", "says"]
