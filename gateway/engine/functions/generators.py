"""Generators: the rows that explode, posexplode and inline make of a collection."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, implementation
from gateway.engine.functions.casts import struct_children
from gateway.engine.functions.lists import Lists, built, ranges
from gateway.sqltypes import ArrayType, MapType, StructType


@implementation("generated_rows")
def generated_rows(spec: UdfSpec) -> Kernel:
    """explode, posexplode, inline of an array or map as ARRAY<STRUCT<…>>; params: (kind, outer).

    With `outer` a NULL or empty collection gives one row of NULLs. Structs are never NULL, their fields may be.
    """
    kind, outer = spec.params
    type_ = spec.returns.arrow()
    is_map = isinstance(spec.args[0], MapType)
    element = spec.args[0].element if isinstance(spec.args[0], ArrayType) else None

    def kernel(a: pa.Array) -> pa.Array:
        lists = Lists(a)
        spread = is_map or (kind == "inline" and isinstance(element, StructType))
        columns = struct_children(lists.values) if spread else [lists.values]
        if kind == "posexplode":
            columns = [pa.array(lists.places.astype(np.int32)), *columns]
        lengths = lists.lengths
        if outer:
            lengths = np.maximum(lengths, 1)
            index = ranges(lists.starts, lengths)
            missing = np.repeat(lists.lengths == 0, lengths)
            shifted = pa.array(np.where(missing, 0, index), mask=missing)
            columns = [c.take(shifted) for c in columns]
        structs = pa.StructArray.from_arrays(columns, fields=list(type_.value_type))
        return built(lengths, structs, np.zeros(len(a), dtype=np.bool_), type_)

    return kernel
