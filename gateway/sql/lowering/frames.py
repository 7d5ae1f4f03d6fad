"""The order and the frame of a window as the engine takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gateway.instants import MICROS_PER_DAY
from gateway.sql.functions.lowerings import key_of_order
from gateway.sql.functions.windows import leads_past_nulls
from gateway.sql.typed.nodes import Bound, Call, Cast, EngineCast, Expr, Frame, Lit, SortKey, Window, udf
from gateway.sqltypes import (
    BIGINT,
    DATE,
    INT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    is_integral,
    is_nested,
)

_BEHIND = Frame("ROWS", Bound("offset", Lit(BIGINT, False, 1)), Bound("unbounded"))


def ranged(
    window: Window, keys: Sequence[SortKey], lower: Callable[[Expr], Expr], raises: Callable[[Expr], bool]
) -> tuple[tuple[SortKey, ...], Frame]:
    """ORDER BY items, of which `keys` are the lowered ones, and the frame; of days and microseconds for RANGE over times."""
    keys, frame = _range_keys(window, tuple(keys), lower, raises), window.frame
    if isinstance(window.fn, Call) and leads_past_nulls(window.fn):
        return keys, _BEHIND
    ends = (frame.start.kind, frame.end.kind)
    if frame.unit == "RANGE" and "current" in ends and any(is_nested(k.expr.type) for k in keys):
        # the engine (DataFusion 55) compares no lists in lists, and takes NULL inside of one for equal to all
        return (SortKey(key_of_order(keys), False, True),), frame
    if frame.unit != "RANGE" or len(keys) != 1 or (frame.start.offset is None and frame.end.offset is None):
        return keys, frame
    key = keys[0].expr
    if isinstance(key, Lit):  # by a constant itself the engine does not sort
        key = EngineCast(key.type, key.nullable, key)
    if key.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return (replace(keys[0], expr=key),), frame
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


def _in_units(bound: Bound, key: DataType) -> Bound:
    """A frame's bound whose offset is a positive number of days or microseconds, as the key is then."""
    if bound.offset is None:
        return bound
    value = bound.offset.value
    if key == DATE and bound.offset.type != INT:
        value //= MICROS_PER_DAY
    return Bound("offset", Lit(BIGINT, False, abs(value)), bound.preceding != (value < 0))
