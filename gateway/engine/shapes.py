"""What leaves the engine in the types and names that are wanted: texts as plain arrays, nested fields relabelled."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gateway.errors import ServerError
from gateway.sqltypes import StructType

_PLAIN = {pa.string_view(): pa.string()}
_VIEW_BYTES = 16  # of which the first four are the length
_LONGEST = 2**31 - 1  # bytes of a plain array of texts


def without_views(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch with its texts as plain arrays, in parts where they are too long for those: here views leave the engine.

    A cast above the query would have the engine deal its rows to several partitions, whose order is then none (DataFusion 55).
    """
    views = [i for i, f in enumerate(batch.schema) if f.type in _PLAIN]
    if not views:
        yield batch
    elif max(_text_bytes(batch.column(i)) for i in views) <= _LONGEST:
        for i in views:
            field = batch.schema.field(i)
            plain = field.with_type(_PLAIN[field.type])
            batch = batch.set_column(i, plain, batch.column(i).cast(plain.type))
        yield batch
    elif batch.num_rows == 1:
        raise pa.ArrowCapacityError("offset overflow")
    else:
        half = batch.num_rows // 2
        yield from without_views(batch.slice(0, half))
        yield from without_views(batch.slice(half))


def _text_bytes(column: pa.Array) -> int:
    """How long the texts of views are; several may share their bytes. Arrow's cast would not notice that they are too long."""
    lengths = np.frombuffer(column.buffers()[1], np.int32)[:: _VIEW_BYTES // 4][
        column.offset : column.offset + len(column)
    ]
    known = (
        column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else True
    )  # that of NULL may be anything
    return int(lengths.sum(dtype=np.int64, where=known))


def check_schema(found: pa.Schema, wanted: StructType) -> None:
    """INTERNAL_ERROR unless the engine's types are exactly the expected ones; a mismatch is never a result."""
    types = [f.type.arrow() for f in wanted.fields]
    if len(found) != len(types) or not all(same_type(f.type, t) for f, t in zip(found, types, strict=True)):
        expected = ", ".join(str(t) for t in types)
        got = ", ".join(str(f.type) for f in found)
        raise ServerError(
            "INTERNAL_ERROR",
            f"The engine's result has the types ({got}) where ({expected}) were expected. The statement was not run.",
        )


def same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Equal but for names and nullability of nested fields; views, which none of those is, count as their plain type."""
    if pa.types.is_nested(wanted):
        return (
            found.id == wanted.id
            and found.num_fields == wanted.num_fields
            and all(same_type(found.field(i).type, wanted.field(i).type) for i in range(wanted.num_fields))
        )
    return bool(_PLAIN.get(found, found) == wanted)


def conformed(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The batch under the target's names and types (equal layout: nothing is copied)."""
    arrays = []
    for column, field in zip(batch.columns, target, strict=True):
        arrays.append(column if column.type == field.type else relabelled(column, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def relabelled(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The same buffers under `target`, which differs in names or nullability of nested fields only."""
    if array.type == target or not pa.types.is_nested(target):
        return array
    if array.offset:
        array = pa.concat_arrays([array])
        if array.offset:
            array = array.take(pa.array(range(len(array))))
    if pa.types.is_struct(target):
        children = [relabelled(array.field(i), target.field(i).type) for i in range(target.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_map(target):
        entries = array.keys, array.items
        keys = relabelled(entries[0], target.key_type)
        items = relabelled(entries[1], target.item_type)
        return pa.MapArray.from_arrays(
            array.offsets, keys, items, target, mask=array.is_null() if array.null_count else None
        )
    values = relabelled(array.values, target.value_type)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, values, target, mask=mask)
