"""Which files of a snapshot can hold a row that a statement wants, from the statistics in the log.

Three-valued and vectorised: a file is left out only where a predicate is certainly not true for every row of it. What is
not known keeps the file: no statistics, another type, FLOAT and DOUBLE minima and maxima (they skip NaN), CHAR and VARCHAR
(padding). String maxima may be cut off and count as prefixes; timestamps may be cut to milliseconds, decimals to the digits of
a double.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway import sqltypes as t
from gateway.delta.listed import Files
from gateway.delta.log import PLANE
from gateway.delta.predicates import Comparison, NullTest, OneOf, Predicate, StartsWith
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot

Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
_MILLISECOND = 1000
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_MAX_IN_LIST = 1000
_OLD_END = "\ufffd"  # Delta before version 3 put it behind what it had cut off, also where what followed was greater
_DIGITS = 10**12  # those of a double, and some less


def prune(snapshot: Snapshot, predicates: Sequence[Predicate]) -> Mask:
    """One bool per file of `snapshot.files`: True keeps it."""
    files = snapshot.files
    keep = np.ones(len(files), dtype=bool)
    for predicate in predicates:
        column = snapshot.by_name.get(predicate.column)
        if column is None or column.children:
            continue
        if predicate.column in files.partitions:
            keep &= _partition_mask(files.partitions[predicate.column], column, predicate)
        else:
            keep &= _statistics_mask(snapshot, column, predicate)
    return keep


def _comparable(data_type: t.DataType) -> bool:
    return not (t.is_nested(data_type) or t.is_fractional(data_type) or isinstance(data_type, t.CharType))


def _known(mask: Any, unknown: bool) -> Mask:
    """A nullable boolean array as numpy, with `unknown` for NULL."""
    return np.asarray(pc.fill_null(mask, unknown).to_numpy(zero_copy_only=False), dtype=bool)


def _partition_mask(values: pa.Array, column: Column, predicate: Predicate) -> Mask:
    """Files of one partition column: every row has the same value, so the predicate itself can be evaluated."""
    if isinstance(predicate, NullTest):
        return _known(pc.is_valid(values) if predicate.negated else pc.is_null(values), True)
    everything = np.ones(len(values), dtype=bool)
    if not _comparable(column.type):
        return everything
    if isinstance(predicate, StartsWith):
        return _known(pc.starts_with(values, predicate.prefix), False) if column.type == t.STRING else everything
    if isinstance(predicate, OneOf):
        if any(v.type != values.type for v in predicate.values):
            return everything
        return _known(pc.is_in(values, pa.array([v.as_py() for v in predicate.values], values.type)), False)
    if predicate.value.type != values.type:
        return everything
    return _known(_COMPARE[predicate.op](values, predicate.value), False)


_COMPARE = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def _child(parent: pa.StructArray | None, name: str) -> pa.Array | None:
    if parent is None:
        return None
    index = parent.type.get_field_index(name)
    return None if index < 0 else pc.struct_field(parent, index)


@dataclass(frozen=True)
class _Statistics:
    """What the log says of one column in each file: `empty` where every value is NULL; `bounds` None where they don't count."""

    nulls: pa.Array | None
    empty: Mask | None
    bounds: _Bounds | None


def _statistics(snapshot: Snapshot, column: Column) -> _Statistics:
    """Read once for each version."""
    key = f"statistics of {column.name}"
    found = snapshot.notes.get(key)
    if found is None:
        found = snapshot.notes[key] = _read_statistics(snapshot.files, column)
    assert isinstance(found, _Statistics)
    return found


def _read_statistics(files: Files, column: Column) -> _Statistics:
    nulls = _child(files.null_count, column.physical)
    empty = None if nulls is None else _known(pc.equal(nulls, files.num_records), False)
    low, high = _child(files.minimum, column.physical), _child(files.maximum, column.physical)
    if low is None or high is None or not _comparable(column.type) or low.type != high.type:
        return _Statistics(nulls, empty, None)
    return _Statistics(nulls, empty, _Bounds(low, high, column.type) if low.type == column.type.arrow() else None)


def _statistics_mask(snapshot: Snapshot, column: Column, predicate: Predicate) -> Mask:
    files = snapshot.files
    known = _statistics(snapshot, column)
    everything = np.ones(len(files), dtype=bool)
    if isinstance(predicate, NullTest):
        if known.nulls is None or known.empty is None:
            return everything
        return ~known.empty if predicate.negated else _known(pc.greater(known.nulls, 0), True)
    keep = everything if known.empty is None else ~known.empty
    bounds = known.bounds
    if bounds is None:
        return keep
    match predicate:
        case Comparison(op=op, value=value) if value.is_valid and value.type == bounds.type:
            return keep & bounds.may(op, value)
        case OneOf(values=values) if 0 < len(values) <= _MAX_IN_LIST and all(v.type == bounds.type for v in values):
            return keep & bounds.may_be_one_of(values)
        case StartsWith(prefix=prefix) if column.type == t.STRING:
            return keep & bounds.may_start_with(prefix)
    return keep


class _Escaped(dict[int, int]):
    """The greatest character that each may stand for."""

    def __missing__(self, character: int) -> int:
        return character + PLANE if character & PLANE and character + PLANE <= sys.maxunicode else character


_ESCAPED = _Escaped()


class _Bounds:
    """Minimum and maximum per file, widened by what writers cut off.

    Numbers, dates and times are compared as 64-bit integers, where a missing bound is the least or greatest of these.
    """

    def __init__(self, low: pa.Array, high: pa.Array, data_type: t.DataType) -> None:
        self.type = low.type
        self.files = len(low)
        self.text = data_type in (t.STRING, t.BINARY)
        self.integers: tuple[Integers, Integers] | None = None
        self.values: list[tuple[Any, Any]] = []
        if (unit := _integer_type(low.type)) is not None:
            # A thousandth of a second is all that logs hold of a time.
            margin = _MILLISECOND if pa.types.is_timestamp(low.type) else 0
            self.integers = _integers(low.cast(unit), _LEAST, -margin), _integers(high.cast(unit), _GREATEST, margin)
        else:
            pairs = zip(low.to_pylist(), high.to_pylist(), strict=True)
            widen = _widened if pa.types.is_decimal(low.type) else _unescaped if pa.types.is_string(low.type) else None
            self.values = list(pairs) if widen is None else [widen(*pair) for pair in pairs]

    def may(self, op: str, value: Any) -> Mask:
        """Files in which some row may be true for `op` and `value`."""
        if self.integers is not None:
            return _may(op, *self.integers, value.cast(_integer_type(self.type)).as_py())
        if op == "=":
            return self.may_be_one_of((value,))
        wanted = value.as_py()
        match op:
            case "<":
                return self._where(lambda low, _: low is None or low < wanted)
            case "<=":
                return self._where(lambda low, _: low is None or low <= wanted)
            case ">":
                return self._where(lambda _, high: high is None or high > wanted or self._cut(high, wanted))
            case ">=":
                return self._where(lambda _, high: high is None or high >= wanted or self._cut(high, wanted))
        return np.ones(self.files, dtype=bool)

    def may_be_one_of(self, values: Sequence[Any]) -> Mask:
        """Files in which some row may equal one of `values`, of which there is at least one."""
        keep = np.zeros(self.files, dtype=bool)
        if self.integers is not None:
            for value in values:
                keep |= self.may("=", value)
            return keep
        wanted = sorted(value.as_py() for value in values)

        def near(low: Any, high: Any) -> bool:
            # The least value that is not below the minimum; if it is beyond the maximum, so are the others.
            at = 0 if low is None else bisect_left(wanted, low)
            return at < len(wanted) and (high is None or wanted[at] <= high or self._cut(high, wanted[at]))

        return self._where(near)

    def may_start_with(self, prefix: str) -> Mask:
        """Rows lie between minimum and maximum; those with the prefix between it and its successor."""

        def near(low: Any, high: Any) -> bool:
            below = low is None or low <= prefix or low.startswith(prefix)
            return below and (high is None or high >= prefix or self._cut(high, prefix))

        return self._where(near)

    def _where(self, test: Callable[[Any, Any], bool]) -> Mask:
        return np.fromiter((test(low, high) for low, high in self.values), dtype=bool, count=self.files)

    def _cut(self, high: Any, value: Any) -> bool:
        """Whether a maximum may stand for a longer text, beyond `value`: it is a beginning of it."""
        return self.text and bool(value.startswith(high.removesuffix(_OLD_END) if isinstance(high, str) else high))


def _widened(low: Decimal | None, high: Decimal | None) -> tuple[Decimal | None, Decimal | None]:
    """Bounds of decimals with what a double loses, as delta-rs makes one of each; of those without a scale it makes 64 bits."""
    return (
        None if low is None or low == _LEAST else low - abs(low) / _DIGITS,
        None if high is None or high == _GREATEST else high + abs(high) / _DIGITS,
    )


def _unescaped(low: str | None, high: str | None) -> tuple[str | None, str | None]:
    """Bounds of texts of which deltalake may have read characters as others, 0x10000 before them: see `log.is_misread`."""
    return low, high if high is None or high.isascii() else high.translate(_ESCAPED)


def _integer_type(arrow: pa.DataType) -> pa.DataType | None:
    """The integers that values of `arrow` are inside; None for types that are none."""
    if pa.types.is_integer(arrow):
        return arrow
    if pa.types.is_date32(arrow):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(arrow) else None


def _integers(values: pa.Array, missing: int, margin: int) -> Integers:
    found = np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64) + margin
    return np.where(values.is_valid().to_numpy(zero_copy_only=False), found, missing)


def _may(op: str, low: Integers, high: Integers, value: int) -> Mask:
    match op:
        case "=":
            return (low <= value) & (high >= value)
        case "<":
            return low < value
        case "<=":
            return low <= value
        case ">":
            return high > value
        case ">=":
            return high >= value
    return np.ones(len(low), dtype=bool)


def value_range(snapshot: Snapshot, name: str) -> tuple[Any, Any] | None:
    """Least and greatest value of an integral or decimal column over all files; None where some file does not tell.

    Decimals are widened by a millionth: writers put them into the log as JSON numbers.
    """
    key = f"range of {name}"
    if key not in snapshot.notes:
        snapshot.notes[key] = _value_range(snapshot, snapshot.by_name[name])
    found: Any = snapshot.notes[key]
    return found  # type: ignore[no-any-return]


def _value_range(snapshot: Snapshot, column: Column) -> tuple[Any, Any] | None:
    files = snapshot.files
    if not (pa.types.is_integer(column.type.arrow()) or pa.types.is_decimal(column.type.arrow())):
        return None
    if column.name in files.partitions:
        low = high = files.partitions[column.name]
    else:
        low, high = _child(files.minimum, column.physical), _child(files.maximum, column.physical)
        if low is None or high is None or low.type != column.type.arrow():
            return None
        nulls = _child(files.null_count, column.physical)
        empty = _known(pc.equal(nulls, files.num_records), False) if nulls is not None else np.zeros(len(files), bool)
        missing = ~(low.is_valid().to_numpy(False) & high.is_valid().to_numpy(False))
        if bool((missing & ~empty).any()):
            return None
    least, greatest = pc.min(low).as_py(), pc.max(high).as_py()
    if least is None or greatest is None:
        return None
    if pa.types.is_decimal(low.type) and (_LEAST in low.to_pylist() or _GREATEST in high.to_pylist()):
        return None  # see `_widened`
    if pa.types.is_decimal(column.type.arrow()):
        margin = max(abs(least), abs(greatest)) / 1_000_000
        return least - margin, greatest + margin
    return least, greatest
