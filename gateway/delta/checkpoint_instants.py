"""Least and greatest instants of files, as checkpoints hold them that Spark has written: INT96, of any year.

deltalake takes those for nanoseconds, of which 64 bits reach from 1677 to 2262: of an instant beyond (9999-12-31 stands for
"still so" in many tables) it makes another, in what it says of files and in the checkpoints that it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.delta.containment import Within, source
from gateway.delta.parsed_statistics import PARSED, instants_of, opened_checkpoint
from gateway.delta.replay import checkpoint_parts, damage_told
from gateway.worker_jobs import marker_of

_MOST_US = (2**63 - 1) // 1000
_SIDES = ("minValues", "maxValues")
_Both = tuple[pa.StructArray | None, pa.StructArray | None]


def misread_parts(root: str, version: int, within: Within) -> list[str]:
    """The files of the checkpoint that a version is read from in which instants are beyond nanoseconds."""
    with damage_told(root):
        parts = checkpoint_parts(root, version, within)
        return [path for path in parts if _is_misread(path, marker_of(path), within)]


@lru_cache(maxsize=4096)
def _is_misread(path: str, _: tuple[int, ...], within: Within) -> bool:
    with source(path, within) as file, opened_checkpoint(file) as parquet:
        held = _held(parquet)
        batches = parquet.iter_batches(columns=held) if held else ()
        return any(_is_beyond(values) for batch in batches for values in _instants(batch.columns))


def _held(parquet: pq.ParquetFile) -> list[str]:
    """The columns of a checkpoint with instants of statistics."""
    return sorted(name for name in instants_of(parquet) if name.startswith(f"add.{PARSED}."))


def _instants(values: Iterable[pa.Array]) -> Iterator[pa.Array]:
    for one in values:
        if pa.types.is_struct(one.type):
            yield from _instants(one.flatten())
        else:
            yield one


def _is_beyond(values: pa.Array) -> bool:
    least, greatest = pc.min_max(values.cast(pa.int64())).values()
    return least.is_valid and not -_MOST_US <= least.as_py() <= greatest.as_py() <= _MOST_US


def mended(parts: list[str], within: Within, logged: list[str], bounds: _Both) -> _Both:
    """Least and greatest values of files, their instants as the files of a checkpoint have them."""
    low, high = bounds
    for path in parts:
        with source(path, within) as file, opened_checkpoint(file) as parquet:
            adds = parquet.read(columns=["add.path", *_held(parquet)]).column("add").combine_chunks()
        at = pc.index_in(pa.array(logged, pa.string()), pc.struct_field(adds, "path"))
        low, high = (_replaced(of, adds, side, at) for of, side in zip((low, high), _SIDES, strict=True))
    return low, high


def _replaced(bounds: pa.StructArray | None, adds: pa.StructArray, side: str, at: pa.Array) -> pa.StructArray | None:
    """Bounds whose instants are those of the actions at some places, where there is one."""
    parsed = pc.struct_field(adds, PARSED)
    if bounds is None or parsed.type.get_field_index(side) < 0:
        return bounds
    told = pc.struct_field(parsed, side)

    def field_of(field: pa.Field, values: pa.Array) -> pa.Array:
        if told.type.get_field_index(field.name) < 0 or not pa.types.is_timestamp(field.type):
            return values
        known = pc.struct_field(told, field.name).cast(field.type)
        return pc.if_else(at.is_valid(), known.take(at), values)

    columns = [field_of(field, values) for field, values in zip(bounds.type, bounds.flatten(), strict=True)]
    return pa.StructArray.from_arrays(columns, fields=list(bounds.type))
