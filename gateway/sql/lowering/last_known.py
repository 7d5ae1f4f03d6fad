"""`last(x) IGNORE NULLS` from the first row of a partition on: what a column had last.

For each row the engine goes through its whole frame (DataFusion 55): a million rows take it minutes. lag() past NULLs it
computes from row to row. Peers of a RANGE frame have what the last one of them has. Remove when the engine's own is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.inputs import with_columns
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import AggFn, Bound, Col, Expr, Frame, Window
from gateway.sql.typed.walk import nodes, rebuilt_engine
from gateway.sqltypes import BIGINT

_SO_FAR = Frame("ROWS", Bound("unbounded", preceding=True), Bound("current"))


def with_last_known(
    writer: BlockWriter, block: Block, windows: Sequence[tuple[Col, Expr]]
) -> tuple[Block, list[tuple[Col, Expr]]]:
    """The windows without such aggregates, and the rows of the block with the columns that they read then."""
    items: dict[int, str] = {}
    writer.envs.append(block.env)
    found = [(column, _without(writer, window, items)) for column, window in windows]
    writer.envs.pop()
    return with_columns(writer, block, items) if items else block, found


def _without(writer: BlockWriter, window: Expr, items: dict[int, str]) -> Expr:
    assert isinstance(window, Window)
    frame = window.frame
    if (frame.start.kind, frame.end.kind) != ("unbounded", "current") or not any(map(_is_last, nodes(window.fn))):
        return window

    def known(expr: Expr) -> Expr:
        if not _is_last(expr):
            return rebuilt_engine(expr, known)
        assert isinstance(expr, AggFn)
        value = expr.args[0]
        before = b.agg_fn("lag", expr.type, value, b.lit(1, BIGINT), ignore_nulls=True)
        here = b.fn("coalesce", expr.type, value, before)
        if frame.unit == "ROWS":
            return here
        writer.fresh -= 1
        column = Col(expr.type, True, writer.fresh, "")
        items[column.id] = writer.expr(replace(window, fn=here, frame=_SO_FAR))
        return replace(expr, args=(column,), ignore_nulls=False)

    return replace(window, fn=known(window.fn))


def _is_last(expr: Expr) -> bool:
    return isinstance(expr, AggFn) and expr.name == "last_value" and expr.ignore_nulls
