"""Columns as data files hold them: under the names and with the field ids of a table's column mapping."""

from __future__ import annotations

import pyarrow as pa

from gateway import sqltypes as t
from gateway.delta.schema import Column
from gateway.variants import unwrapped

_ID = b"PARQUET:field_id"
_VARIANT = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")])


def file_field(column: Column) -> pa.Field:
    """A column's field in a file."""
    arrow = _file_type(column) if _is_mapped(column) or t.has_variant(column.type) else column.type.arrow()
    return pa.field(column.physical, arrow, nullable=column.nullable, metadata=_metadata(column))


def _metadata(column: Column) -> dict[bytes, bytes] | None:
    return None if column.field_id is None else {_ID: str(column.field_id).encode()}


def _is_mapped(column: Column) -> bool:
    return column.field_id is not None or column.renamed or any(map(_is_mapped, column.children))


def _file_type(column: Column) -> pa.DataType:
    if column.type == t.VARIANT:
        return _VARIANT
    children = [pa.field(c.physical, _file_type(c), metadata=_metadata(c)) for c in column.children]
    match column.type:
        case t.StructType():
            return pa.struct(children)
        case t.ArrayType():
            return pa.list_(pa.field("item", children[0].type))
        case t.MapType():
            return pa.map_(pa.field("key", children[0].type, nullable=False), pa.field("value", children[1].type))
    return column.type.arrow()


def relabelled(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Values of a nested type under other names: the same by position."""
    if values.type.equals(target):  # names of nested fields, too
        return values
    if target == _VARIANT:
        return _bytes(values)
    if pa.types.is_struct(target):
        children = [relabelled(child, f.type) for child, f in zip(values.flatten(), target, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=values.is_null())
    if pa.types.is_map(target):
        keys, items = relabelled(values.keys, target.key_type), relabelled(values.items, target.item_type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
        return _parts(values, target, entries)
    if pa.types.is_list(target):
        return _parts(values, target, relabelled(values.values, target.value_type))
    return values


def _bytes(values: pa.Array) -> pa.Array:
    """Texts of VARIANT as files hold them."""
    pairs = [None if text is None else unwrapped(text) for text in values.to_pylist()]
    children = [pa.array([b"" if pair is None else pair[at] for pair in pairs], pa.binary()) for at in (1, 0)]
    return pa.StructArray.from_arrays(children, fields=list(_VARIANT), mask=values.is_null())


def _parts(values: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """The same offsets and validity over another child, which is whole: it ignores the array's offset."""
    validity, offsets = values.buffers()[:2]
    return pa.Array.from_buffers(target, len(values), [validity, offsets], offset=values.offset, children=[child])
