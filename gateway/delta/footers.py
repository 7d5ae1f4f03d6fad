"""The footer of a Parquet file, read once and looked at: what it says of its pages must be possible in a file of this size.

The engine believes a footer: it takes as much memory as a column is said to have bytes, and finds no rows where there are said
to be none.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.delta.containment import Within, source
from gateway.delta.parquet_facts import Facts, check_bounds, check_facts, check_indexes, impossible
from gateway.errors import ServerError

_SMALL_BYTES = 1 << 20  # below which reading ahead, which other threads do, takes longer than reading
_ARROW = b"ARROW:schema"
_MOST_GROUPS = 32_767  # as many as they have numbers


class LookedAt(pq.ParquetFile):  # type: ignore[misc]
    """A Parquet file whose footer can be true, and what was seen in it."""

    facts = Facts(in_order=True, misread={})


@contextmanager
def opened_parquet(
    path: str, within: Within, size: int | None = None, indexes_of: Collection[str] | None = None, **options: Any
) -> Iterator[LookedAt]:
    """A Parquet file that was opened as `containment.source` does; its bounds and the indexes of some columns' pages, too.

    Raises ArrowInvalid for a footer that cannot be true, and for a file that has not the `size` that it was seen with.
    """
    with source(path, within) as opened, _file(opened, options) as file:
        if size not in (None, opened.size()):
            raise pa.ArrowInvalid(f"{opened.size()} bytes instead of {size}: it is being written")
        _check_footer(file, opened, opened.size())
        if indexes_of is not None:
            check_indexes(opened, opened.size(), indexes_of)
            check_bounds(opened, opened.size(), file.schema)
        yield file


def _file(opened: pa.NativeFile, options: dict[str, Any]) -> LookedAt:
    try:
        return LookedAt(opened, pre_buffer=opened.size() > _SMALL_BYTES, **options)
    except UnicodeDecodeError as error:
        raise impossible("a column whose name is no text") from error


def _check_footer(file: LookedAt, opened: pa.NativeFile, size: int) -> None:
    """Raise ArrowInvalid unless all pages lie in a file of `size` bytes, and as many rows as are told of may be in them."""
    if file.metadata.num_row_groups > _MOST_GROUPS:
        raise impossible(f"{file.metadata.num_row_groups} row groups")
    facts = check_facts(opened, size)
    file.facts = facts._replace(misread={**_contradicted(file), **facts.misread})
    _check_names(file.metadata)


def _check_names(metadata: pq.FileMetaData) -> None:
    """Raise for a column that is there twice: which one a name means nobody can say."""
    if not metadata.num_row_groups:
        return
    group = metadata.row_group(0)
    paths = {group.column(i).path_in_schema for i in range(group.num_columns)}
    if len(paths) == group.num_columns:
        return
    names = Counter(metadata.schema.to_arrow_schema().names)  # `a.b` and the field b of `a` have one path
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise impossible(f"the column {twice} more than once")


def arrow_schema(metadata: pq.FileMetaData) -> pa.Schema | None:
    """The schema that a writer of Arrow keeps beside a file's own; None where there is none. Raises for what is no schema."""
    held = (metadata.metadata or {}).get(_ARROW)
    return None if held is None else pa.ipc.read_schema(pa.BufferReader(b64decode(held)))


def _contradicted(file: LookedAt) -> dict[str, str]:
    """Columns of which a file's schema of Arrow says what its own denies: the engine believes the former."""
    try:
        told = arrow_schema(file.metadata)
    except (ValueError, OSError, pa.ArrowException):  # which the engine says itself
        return {}
    held = file.schema_arrow
    if told is None or len(told) != len(held) or held.equals(told):
        return {}
    leaves = (file.schema.column(i) for i in range(len(file.schema)))
    in_64 = any(c.physical_type == "INT64" and "timeUnit=nanoseconds" in str(c.logical_type) for c in leaves)
    pairs = zip(held, told, strict=True)
    return {own.name: "another schema of Arrow" for own, of in pairs if not _agree(own.type, of.type, in_64)}


def _agree(own: pa.DataType, told: pa.DataType, in_64: bool) -> bool:
    """Whether values are the same by both types, or the engine passes over the other. `in_64`: nanoseconds are in 64 bits."""
    if isinstance(told, pa.DictionaryType):
        return _agree(own.value_type if isinstance(own, pa.DictionaryType) else own, told.value_type, in_64)
    if own.num_fields and own.num_fields == told.num_fields:
        return all(_agree(own.field(i).type, told.field(i).type, in_64) for i in range(own.num_fields))
    if pa.types.is_decimal(own) and pa.types.is_decimal(told):
        return (own.precision, own.scale) == (told.precision, told.scale)
    if pa.types.is_timestamp(own) and pa.types.is_timestamp(told):
        return not in_64 or (own.unit, own.tz) != ("ns", None) or told.unit == "ns"
    return True


def one_valued(metadata: pq.FileMetaData) -> set[str]:
    """Float columns of which statistics tell one value: the engine would give that for NaN, which they do not count."""
    found: dict[str, set[float]] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for at in range(row_group.num_columns):
            leaf = row_group.column(at)
            if leaf.physical_type in ("FLOAT", "DOUBLE"):
                told = leaf.statistics
                values = {told.min, told.max} if told is not None and told.has_min_max else {math.nan, math.inf}
                found.setdefault(leaf.path_in_schema, set()).update(values)
    return {path for path, values in found.items() if len(values) < 2}


def unreadable_file(path: str, error: Exception) -> ServerError:
    """The error for a data file that is damaged, or that is no longer there."""
    if isinstance(error, FileNotFoundError):
        return ServerError("DELTA_FILE_NOT_FOUND", f"The file {path} is missing.", retryable=True)
    return ServerError("FAILED_READ_FILE", f"Error while reading file {path}: {what_of(error)}")


def what_of(error: Exception) -> str:
    """What an error says beside the file, in the words of the system or of who has read it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).split("\n", 1)[0][:300]
