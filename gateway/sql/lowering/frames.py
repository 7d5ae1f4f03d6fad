"""The order and the frame of a window as the engine takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gateway.errors import unsupported
from gateway.instants import MICROS_PER_DAY
from gateway.sql.typed.nodes import Bound, Call, Cast, EngineCast, Expr, Frame, Lit, Op, SortKey, Window, udf
from gateway.sqltypes import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    StructType,
    is_integral,
)


def ranged(
    window: Window, keys: Sequence[SortKey], lower: Callable[[Expr], Expr], raises: Callable[[Expr], bool]
) -> tuple[tuple[SortKey, ...], Frame]:
    """ORDER BY items, of which `keys` are the lowered ones, and the frame; of days and microseconds for RANGE over times."""
    keys, frame = _range_keys(window, tuple(keys), lower, raises), window.frame
    ends = (frame.start.kind, frame.end.kind)
    if frame.unit == "RANGE" and "current" in ends and any(_has_nulls(k.expr.type) for k in window.order):
        raise unsupported("a RANGE frame over an order by arrays or structs with NULLs inside")
    if frame.unit != "RANGE" or len(keys) != 1 or keys[0].expr.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return keys, frame
    if frame.start.offset is None and frame.end.offset is None:
        return keys, frame
    key = keys[0].expr
    number = EngineCast(BIGINT, key.nullable, EngineCast(INT, key.nullable, key) if key.type == DATE else key)
    start, end = (_in_units(x, key.type) for x in (frame.start, frame.end))
    return (replace(keys[0], expr=number),), Frame("RANGE", start, end)


def _range_keys(
    window: Window, keys: tuple[SortKey, ...], lower: Callable[[Expr], Expr], raises: Callable[[Expr], bool]
) -> tuple[SortKey, ...]:
    """The keys; that of a RANGE frame fails where a bound of its frame is out of its type.

    Spark compares rows with `key + offset`, and so fails there; the engine would take the end of the type instead.
    """
    offsets = [x for x in (window.frame.start, window.frame.end) if x.offset is not None]
    if window.frame.unit != "RANGE" or not offsets or not is_integral(keys[0].expr.type):
        return keys
    given, key = window.order[0], keys[0]
    bounds = []
    for x in offsets:
        assert x.offset is not None
        value = -x.offset.value if x.preceding else x.offset.value
        offset = Cast(given.expr.type, False, replace(x.offset, value=value))
        symbol = "-" if given.descending else "+"
        bounds.append(lower(Call(given.expr.type, given.expr.nullable, symbol, (given.expr, offset))))
    failing = [e for e in bounds if raises(e)]
    if not failing:
        return keys
    checked = udf("last", key.expr.type, *failing, key.expr, nullable=key.expr.nullable, raises=True)
    return (replace(key, expr=checked), *keys[1:])


def with_one_zero(e: Expr) -> Expr:
    """A float without -0.0, which the engine sorts before 0.0, and takes for another partition."""
    return Op(e.type, e.nullable, "+", (e, Lit(e.type, False, 0.0))) if e.type in (FLOAT, DOUBLE) else e


def _has_nulls(t: DataType) -> bool:
    """Whether values of a nested type may have NULL inside, which the engine takes for equal to all when it looks for peers."""
    if isinstance(t, StructType):
        return any(f.nullable or _has_nulls(f.type) for f in t.fields)
    return isinstance(t, ArrayType) and (t.contains_null or _has_nulls(t.element))


def _in_units(bound: Bound, key: DataType) -> Bound:
    """A frame's bound whose offset is a positive number of days or microseconds, as the key is then."""
    if bound.offset is None:
        return bound
    value = bound.offset.value
    if key == DATE and bound.offset.type != INT:
        value //= MICROS_PER_DAY
    return Bound("offset", Lit(BIGINT, False, abs(value)), bound.preceding != (value < 0))
