"""CAST and TRY_CAST with Spark's ANSI meaning for every pair of types, nested ones by recursion into their children."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import Converted, scalar_cast
from gateway.engine.functions.cast_text import printer, reader
from gateway.engine.functions.intervals import interval_cast
from gateway.errors import ServerError
from gateway.instants import UTC, Zone, date_text, known_zone, stamp_text
from gateway.sqltypes import STRING, VARIANT, VOID, ArrayType, CharType, DataType, MapType, StructType, is_nested

Caster = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Variants:
    """What is done to a VARIANT that is cast within another value, and to one that is printed there."""

    cast: Callable[[DataType, DataType], Caster]
    printed: Caster


@implementation("cast")
def cast(spec: UdfSpec) -> Kernel:
    """One argument to `spec.returns`; params: (zone, is_try), and `doubled` where the type does not tell it."""
    zone, is_try, *rest = spec.params
    return caster(spec.args[0], spec.returns, known_zone(zone), bool(is_try), doubled=rest[0] if rest else None)


def caster(
    source: DataType,
    target: DataType,
    zone: Zone = UTC,
    is_try: bool = False,
    variants: Variants | None = None,
    doubled: bool | None = None,
) -> Caster:
    """The kernel from `source` to `target`; a row that fails raises `RowError`, or is NULL with `is_try`.

    Decimals become INT, SMALLINT and TINYINT by way of a double where they are `doubled`; None is for those of columns.
    """
    source, target = _plain(source), _plain(target)
    if source == VOID:
        return lambda a: pa.nulls(len(a), target.arrow())
    if source.arrow() == target.arrow() and _means_the_same(source, target):
        return lambda a: a
    if variants is not None and VARIANT in (source, target):
        return variants.cast(source, target)
    if is_nested(source):

        def part(inner: DataType, wanted: DataType | None) -> Caster:
            if wanted is None and inner == VARIANT and variants is not None:
                return variants.printed
            return caster(inner, wanted or STRING, zone, is_try, variants, doubled)

        return _from_nested(source, target, part)
    convert = interval_cast(source, target) or scalar_cast(source, target, zone, doubled)
    if convert is None and source == STRING:
        convert = reader(target, zone)
    if convert is None and target == STRING:
        convert = printer(source, zone)
    if convert is None:
        raise ServerError("INTERNAL_ERROR", f"there is no cast from {source.sql} to {target.sql}")
    return _settled(convert, is_try)


@implementation("fields_by_name")
def fields_by_name(spec: UdfSpec) -> Kernel:
    """One argument as `spec.returns`: with the fields of its structs, at any depth, in the order of that type's."""
    return _reordered(spec.args[0], spec.returns)


def _reordered(source: DataType, target: DataType) -> Caster:
    if isinstance(source, StructType) and isinstance(target, StructType):
        return _reordered_struct(source, target)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        inner, arrow = _reordered(source.element, target.element), target.arrow()

        def of_list(array: pa.Array) -> pa.Array:
            offsets, values = list_parts(array)
            return rebuilt_list(array, offsets, inner(values), arrow)

        return of_list
    if isinstance(source, MapType) and isinstance(target, MapType):
        keys, items, whole = _reordered(source.key, target.key), _reordered(source.value, target.value), target.arrow()

        def of_map(array: pa.Array) -> pa.Array:
            offsets, entries = list_parts(array)
            key, value = struct_children(entries)
            return rebuilt_map(array, offsets, keys(key), items(value), whole)

        return of_map
    return lambda a: a


def _reordered_struct(source: StructType, target: StructType) -> Caster:
    places = {f.name: i for i, f in enumerate(source.fields)}
    chosen = [(places[f.name], _reordered(source.fields[places[f.name]].type, f.type)) for f in target.fields]

    def kernel(array: pa.Array) -> pa.Array:
        children = struct_children(array)
        mask = pc.is_null(array) if array.null_count else None
        members = [reorder(children[i]) for i, reorder in chosen]
        return pa.StructArray.from_arrays(members, fields=list(target.arrow()), mask=mask)

    return kernel


def _means_the_same(source: DataType, target: DataType) -> bool:
    """Whether equal storage needs no work: an interval is no number, and may have fields that the target lacks."""
    if source == target:
        return True
    if source.name != target.name or source.name.startswith("INTERVAL"):
        return False
    return all(map(_means_the_same, source.children(), target.children()))


def _plain(t: DataType) -> DataType:
    return STRING if isinstance(t, CharType) else t


def _settled(convert: Callable[[pa.Array], Converted], is_try: bool) -> Caster:
    def kernel(array: pa.Array) -> pa.Array:
        done = convert(array)
        if done.bad is None or not done.bad.any():
            return done.array
        if is_try:
            return pc.if_else(pa.array(done.bad), pa.scalar(None, done.array.type), done.array)
        assert done.error is not None
        error: RowError = done.error(shown(array[int(np.argmax(done.bad))]))
        raise error

    return kernel


def shown(value: pa.Scalar) -> Any:
    """A value for a message; dates and timestamps as text, because Python's end with the year 9999."""
    if pa.types.is_date32(value.type):
        return date_text(value.value)
    return stamp_text(value.value) if pa.types.is_timestamp(value.type) else value.as_py()


def list_parts(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Offsets from 0 (one more than rows) and the values of a list or map array; NULL rows are empty."""
    lengths = pc.fill_null(pc.list_value_length(_as_list(array)), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets), _as_list(array).flatten()


def _as_list(array: pa.Array) -> pa.Array:
    """A map as the list of its entries."""
    if not pa.types.is_map(array.type):
        return array
    fields = [pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]
    entries = pa.StructArray.from_arrays([array.keys, array.items], fields=fields)
    _, offsets = array.buffers()[:2]
    validity = pc.is_valid(array).buffers()[1] if array.null_count else None
    if validity is not None and array.offset:
        validity = pa.array(pc.is_valid(array).to_numpy(zero_copy_only=False)).buffers()[1]
    # `keys` and `items` are those of the whole array, however a slice of it is told: by its offset, or, as by the engine, by
    # starts that do not begin at 0.
    starts = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return pa.ListArray.from_buffers(
        pa.list_(entries.type), len(array), [validity, pa.py_buffer(np.ascontiguousarray(starts))], children=[entries]
    )


def rebuilt_list(array: pa.Array, offsets: pa.Array, values: pa.Array, type: pa.DataType) -> pa.Array:
    """A list array of `type` over `values` with the NULL rows of `array`."""
    mask = pc.is_null(array) if array.null_count else None
    return pa.ListArray.from_arrays(offsets, values, type=type, mask=mask)


def rebuilt_map(array: pa.Array, offsets: pa.Array, keys: pa.Array, items: pa.Array, type: pa.DataType) -> pa.Array:
    """A map array of `type` with the NULL rows of `array`."""
    mask = pc.is_null(array) if array.null_count else None
    return pa.MapArray.from_arrays(offsets, keys, items, type=type, mask=mask)


def struct_children(array: pa.Array) -> list[pa.Array]:
    """The fields of a struct array, NULL where the struct is."""
    return list(array.flatten())


def _joined(array: pa.Array, offsets: pa.Array, texts: pa.Array, opening: str, closing: str) -> pa.Array:
    lists = rebuilt_list(array, offsets, pc.fill_null(texts, "null"), pa.list_(pa.string()))
    return pc.binary_join_element_wise(opening, pc.binary_join(lists, ", "), closing, "")


# The kernel from a type within another to the one that it becomes there; to its text without one.
_Part = Callable[[DataType, DataType | None], Caster]


def _from_nested(source: DataType, target: DataType, part: _Part) -> Caster:
    if isinstance(source, ArrayType):
        return _from_array(source, target, part)
    if isinstance(source, MapType):
        return _from_map(source, target, part)
    assert isinstance(source, StructType)
    return _from_struct(source, target, part)


def _from_array(source: ArrayType, target: DataType, part: _Part) -> Caster:
    inner = part(source.element, target.element if isinstance(target, ArrayType) else None)

    def kernel(array: pa.Array) -> pa.Array:
        offsets, values = list_parts(array)
        if target == STRING:
            return _joined(array, offsets, inner(values), "[", "]")
        return rebuilt_list(array, offsets, inner(values), target.arrow())

    return kernel


def _from_map(source: MapType, target: DataType, part: _Part) -> Caster:
    to_map = isinstance(target, MapType)
    keys = part(source.key, target.key if isinstance(target, MapType) else None)
    items = part(source.value, target.value if isinstance(target, MapType) else None)

    def kernel(array: pa.Array) -> pa.Array:
        offsets, entries = list_parts(array)
        key, value = (f(a) for f, a in zip((keys, items), struct_children(entries), strict=True))
        if to_map:
            return rebuilt_map(array, offsets, key, value, target.arrow())
        pairs = pc.binary_join_element_wise(key, " -> ", pc.fill_null(value, "null"), "")
        return _joined(array, offsets, pairs, "{", "}")

    return kernel


def _from_struct(source: StructType, target: DataType, part: _Part) -> Caster:
    types = [f.type for f in target.fields] if isinstance(target, StructType) else [None] * len(source.fields)
    inner = [part(f.type, t) for f, t in zip(source.fields, types, strict=True)]

    def kernel(array: pa.Array) -> pa.Array:
        children = [f(a) for f, a in zip(inner, struct_children(array), strict=True)]
        mask = pc.is_null(array) if array.null_count else None
        if target == STRING:
            texts = [pc.fill_null(c, "null") for c in children]
            inside = pc.binary_join_element_wise(*texts, ", ") if texts else pa.array([""] * len(array))
            shown = pc.binary_join_element_wise("{", inside, "}", "")
            return shown if mask is None else pc.if_else(mask, pa.scalar(None, pa.string()), shown)
        return pa.StructArray.from_arrays(children, fields=list(target.arrow()), mask=mask)

    return kernel
