"""Columns of Spark's results that no client could read."""

from __future__ import annotations

from gateway.delta.schema import Column, UnreadableType
from gateway.errors import UnsupportedError
from gateway.sqltypes import VOID, DataType, MapType, StructType


def check_readable(column: Column) -> None:
    """Raise UnsupportedError UNSUPPORTED_RESULT_TYPE for a type that has no form on the wire."""
    what = None
    if _is_unreadable(column.type):
        what = f"the type {column.type.sql}, which no client reads"
    elif _has_void_keys(column.type):
        what = f"a map of the type {column.type.sql}, which no client reads: cast it"
    elif _repeats(column.type):
        what = "a struct with two fields of one name, which no client reads"
    if what is not None:
        raise UnsupportedError("UNSUPPORTED_RESULT_TYPE", f"The column `{column.name}` has {what}.")


def _is_unreadable(type_: DataType) -> bool:
    return isinstance(type_, UnreadableType) or any(_is_unreadable(c) for c in type_.children())


def _has_void_keys(type_: DataType) -> bool:
    """Whether a map in a type has keys without a type, as ``map()`` has, for which Arrow has no form."""
    return (isinstance(type_, MapType) and type_.key == VOID) or any(_has_void_keys(c) for c in type_.children())


def _repeats(type_: DataType) -> bool:
    """Whether a struct in a type has two fields of one name: files and clients tell fields apart by it."""
    names = [f.name for f in type_.fields] if isinstance(type_, StructType) else []
    return len(set(names)) != len(names) or any(_repeats(c) for c in type_.children())


__all__ = ["check_readable"]
