"""Maps: building with checked keys, taking apart, joining."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import Bools, nulls
from gateway.engine.functions.casts import shown, struct_children
from gateway.engine.functions.distinct import scalar
from gateway.engine.functions.lists import (
    Lists,
    any_by_row,
    as_type,
    built,
    codes,
    codes_together,
    concatenated,
    first_marks,
)
from gateway.instants import Ints

_DEDUP = "spark.sql.mapKeyDedupPolicy"


def duplicate_key(key: Any) -> RowError:
    """DUPLICATED_MAP_KEY."""
    return RowError(
        "DUPLICATED_MAP_KEY",
        f"Duplicate map key {key} was found, please check the input data. If you want to remove the duplicated keys, "
        f'you can set "{_DEDUP}" to "LAST_WIN" so that the key inserted at last takes precedence.',
    )


def checked_map(lengths: Ints, keys: pa.Array, items: pa.Array, void: Bools, type: pa.DataType) -> pa.Array:
    """A map array; NULL_MAP_KEY and DUPLICATED_MAP_KEY as in Spark."""
    if keys.null_count:
        raise RowError("NULL_MAP_KEY", "Cannot use null as map key.")
    if pa.types.is_floating(keys.type):  # one zero
        keys = pc.add(keys, pa.scalar(0.0, keys.type))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    again = ~first_marks(rows, codes(keys))
    if again.any():
        raise duplicate_key(shown(keys[int(np.argmax(again))]))
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = pa.array(void) if void.any() else None
    return pa.MapArray.from_arrays(
        pa.array(offsets), as_type(keys, type.key_type), as_type(items, type.item_type), type=type, mask=mask
    )


@implementation("map_from_lists")
def map_from_lists(spec: UdfSpec) -> Kernel:
    """map_from_arrays(keys, values)."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        keys, items = Lists(a), Lists(b)
        void = keys.void | items.void
        if ((keys.lengths != items.lengths) & ~void).any():
            raise RowError(
                "_LEGACY_ERROR_TEMP_2128", "The key array and value array of MapData must have the same length."
            )
        lengths = np.where(void, 0, keys.lengths)
        left = keys.values.filter(pa.array(~void[keys.rows]))
        right = items.values.filter(pa.array(~void[items.rows]))
        return checked_map(lengths, left, right, void, spec.returns.arrow())

    return kernel


@implementation("void_map")
def void_map(spec: UdfSpec) -> Kernel:
    """A map without entries for each row of the argument."""
    whole = spec.returns.arrow()

    def kernel(rows: pa.Array) -> pa.Array:
        offsets = pa.array(np.zeros(len(rows) + 1, dtype=np.int32))
        return pa.MapArray.from_arrays(offsets, pa.nulls(0, whole.key_type), pa.nulls(0, whole.item_type), type=whole)

    return kernel


@implementation("map_from_entry_list")
def map_from_entry_list(spec: UdfSpec) -> Kernel:
    """map_from_entries(array of structs of two): NULL if an entry is."""

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        void = lists.void | any_by_row(lists.rows, nulls(lists.values), len(a))
        lengths = np.where(void, 0, lists.lengths)
        entries = lists.values.filter(pa.array(~void[lists.rows]))
        keys, items = struct_children(entries)
        return checked_map(lengths, keys, items, void, spec.returns.arrow())

    return kernel


def _map_part(which: int) -> Callable[[UdfSpec], Kernel]:
    def factory(spec: UdfSpec) -> Kernel:
        def kernel(a: pa.Array) -> pa.Array:
            lists = Lists(a)
            part = struct_children(lists.values)[which]
            return built(lists.lengths, part, lists.void, spec.returns.arrow())

        return kernel

    return factory


implementation("map_key_list")(_map_part(0))
implementation("map_value_list")(_map_part(1))


@implementation("map_entry_list")
def map_entry_list(spec: UdfSpec) -> Kernel:
    """map_entries: ARRAY<STRUCT<key, value>>."""
    type_ = spec.returns.arrow()

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        entries = pa.StructArray.from_arrays(struct_children(lists.values), fields=list(type_.value_type))
        return built(lists.lengths, entries, lists.void, type_)

    return kernel


@implementation("maps_zipped")
def maps_zipped(spec: UdfSpec) -> Kernel:
    """The keys of two maps with the values of both, NULL for those of one alone: ARRAY<STRUCT<key, x, y>>, for map_zip_with.

    The first map's keys come first, then those of the second alone.
    """
    type_ = spec.returns.arrow()

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        lists = (Lists(a), Lists(b))
        void = lists[0].void | lists[1].void
        (keys, items), (others, other_items) = (struct_children(x.values) for x in lists)
        rows = np.concatenate([x.rows for x in lists])
        numbers = np.concatenate(codes_together(keys, others))
        _, pair = np.unique(np.stack([rows, numbers]), axis=1, return_inverse=True)
        first, second = np.split(pair.reshape(-1), [len(keys)])
        order = np.argsort(rows, kind="stable")
        order = order[first_marks(rows[order], numbers[order]) & ~void[rows[order]]]
        wanted = pair.reshape(-1)[order]
        fields = [pa.concat_arrays([keys, as_type(others, keys.type)]).take(pa.array(order))]
        for values, own in ((items, first), (other_items, second)):
            at = np.full(len(rows), -1, dtype=np.int64)
            at[own] = np.arange(len(own))
            found = at[wanted]
            fields.append(values.take(pa.array(np.maximum(found, 0), mask=found < 0)))
        entries = pa.StructArray.from_arrays(fields, fields=list(type_.value_type))
        return built(np.bincount(rows[order], minlength=len(a)), entries, void, type_)

    return kernel


_PLAIN_DELIMITERS = frozenset("\\^$.|?*+()[]{}")


@scalar("text_to_map")
def text_to_map(text: str, between: str, inside: str) -> list[tuple[str, str | None]]:
    """str_to_map; delimiters are regular expressions in Spark, only plain text is taken here."""
    if set(between + inside) & _PLAIN_DELIMITERS:
        raise RowError("UNSUPPORTED_FEATURE", "str_to_map with a regular expression as delimiter is not supported.")
    pairs: dict[str, str | None] = {}
    for piece in text.split(between) if between else list(text) or [""]:
        key, found, rest = piece.partition(inside) if inside else (piece[:1], piece[1:], piece[1:])
        if key in pairs:
            raise duplicate_key(key)
        pairs[key] = rest if found else None
    return list(pairs.items())


@implementation("maps_joined")
def maps_joined(spec: UdfSpec) -> Kernel:
    """map_concat: duplicate keys raise."""
    type_ = spec.returns.arrow()
    entry = pa.struct([pa.field("key", type_.key_type), pa.field("value", type_.item_type)])

    def entries(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        structs = pa.StructArray.from_arrays(struct_children(lists.values), fields=list(entry))
        return built(lists.lengths, structs, lists.void, pa.list_(entry))

    def kernel(*maps: pa.Array) -> pa.Array:
        lists = Lists(concatenated([entries(m) for m in maps], pa.list_(entry)))
        keys, items = struct_children(lists.values)
        return checked_map(lists.lengths, keys, items, lists.void, type_)

    return kernel
