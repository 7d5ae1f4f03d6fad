"""Which types meet VARIANT in a cast, as Spark's analysis has it."""

from __future__ import annotations

from gateway.sqltypes import VOID, ArrayType, DataType, MapType, StructType, is_interval, is_string


def becomes_variant(source: DataType, is_object: bool = False) -> bool:
    """Whether a value can be cast to VARIANT, or is a part of one that to_variant_object takes."""
    if isinstance(source, ArrayType):
        return becomes_variant(source.element, is_object)
    if isinstance(source, MapType):
        return is_object and is_string(source.key) and becomes_variant(source.value, True)
    if isinstance(source, StructType):
        return is_object and all(becomes_variant(f.type, True) for f in source.fields)
    return source != VOID and not is_interval(source)


def comes_of_variant(target: DataType) -> bool:
    """Whether a VARIANT can be cast to a type."""
    if isinstance(target, ArrayType):
        return comes_of_variant(target.element)
    if isinstance(target, MapType):
        return is_string(target.key) and comes_of_variant(target.value)
    if isinstance(target, StructType):
        return all(comes_of_variant(f.type) for f in target.fields)
    return target != VOID and not is_interval(target)
