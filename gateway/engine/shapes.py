"""What leaves the engine in the types and names that are wanted: texts as plain arrays, nested fields relabelled."""

from __future__ import annotations

from typing import Any

import datafusion
import pyarrow as pa

from gateway.errors import ServerError
from gateway.sqltypes import StructType

_PLAIN = {pa.string_view(): pa.string()}


def without_views(frame: Any, schema: pa.Schema) -> Any:
    """The DataFrame with its texts as plain arrays: the one place where what was read as views leaves the engine."""
    if _PLAIN.keys().isdisjoint(schema.types):
        return frame
    columns = [(datafusion.col(f'"{f.name}"'), _PLAIN.get(f.type), f.name) for f in schema]
    return frame.select(*[c if plain is None else c.cast(plain).alias(name) for c, plain, name in columns])


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
