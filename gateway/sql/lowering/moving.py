"""Aggregates of floats over frames that move: by a function of ours, which computes each frame anew.

The engine takes what has left a frame out of its sum again: of 3, 1E20, 3, -1 the sum of the last two is 0 to it, and NaN
once there was an infinity (DataFusion 55, retract_batch). Ours (`engine.functions.moving`) is told each row's place in its
partition, and the end and the size of its frame, which the engine counts; so it goes by the same order, also of rows that are
peers. A call of ours costs as much as thousands of rows: partitions come together by a number of theirs, that of their first
rows, some hundred times in all. Remove when the engine computes frames of floats anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.inputs import with_agg_inputs, with_columns, with_window_inputs
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import AggFn, Bound, Col, EngineCast, Expr, Frame, Window
from gateway.sql.typed.walk import nodes, rebuilt_engine
from gateway.sqltypes import BIGINT, DOUBLE, DataType, is_integral

_NAMES = frozenset((
    "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr", "regr_avgx",
    "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope", "regr_r2",
))  # fmt: skip
_START, _CURRENT = Bound("unbounded", preceding=True), Bound("current")
_WHOLE = Frame("ROWS", _START, Bound("unbounded"))
_COUNT = AggFn(BIGINT, False, "count", ())
_CALLS = 256  # at most, of a window with partitions


@dataclass(slots=True)
class _Moved:
    """An aggregate, the column that stands in its place, and the window that it was in."""

    column: Col
    fn: Expr
    window: Window


class Moving:
    """Takes aggregates out of windows, and computes them in subqueries of their own."""

    def __init__(self, writer: BlockWriter) -> None:
        self._writer = writer
        self._moved: list[_Moved] = []

    def taken(self, window: Expr) -> Expr:
        """A lowered window, with columns in the place of such aggregates."""
        assert isinstance(window, Window)
        if window.frame.start.kind == "unbounded" or not any(map(_moves, nodes(window.fn))):
            return window
        return replace(window, fn=self._without(window.fn, window))

    def inputs(self, column: Callable[[Expr], Expr]) -> None:
        """What the aggregates and their windows read becomes columns."""
        for moved in self._moved:
            moved.fn = with_agg_inputs(moved.fn, column)
            found = with_window_inputs(moved.window, column)
            assert isinstance(found, Window)
            moved.window = found

    def block(self, block: Block) -> Block:
        """The rows of a block with the aggregates' columns."""
        if not self._moved:
            return block
        writer = self._writer
        number = self._fresh(BIGINT)
        if any(m.window.partition for m in self._moved):
            block = with_columns(writer, block, {number.id: "CAST(row_number() OVER () AS BIGINT)"})
        counts: dict[str, tuple[Col, ...]] = {}
        together: dict[str, tuple[Col, ...]] = {}
        items: dict[int, str] = {}
        writer.envs.append(block.env)
        texts = [writer.expr(replace(m.window, fn=_COUNT)) for m in self._moved]
        for moved, text in zip(self._moved, texts, strict=True):
            if text not in counts:
                frame = moved.window.frame
                frames = (Frame("ROWS", _START, _CURRENT), replace(frame, start=_START), frame)
                counts[text] = tuple(self._fresh(BIGINT) for _ in frames)
                windows = (replace(moved.window, fn=_COUNT, frame=f) for f in frames)
                items |= {c.id: writer.expr(w) for c, w in zip(counts[text], windows, strict=True)}
                together[text] = ()
                if moved.window.partition:
                    first = writer.expr(replace(moved.window, fn=b.fn("first_value", BIGINT, number), frame=frames[0]))
                    known, group = self._fresh(BIGINT), self._fresh(BIGINT)
                    items |= {known.id: first, group.id: f"({first}) % {_CALLS}"}
                    counts[text], together[text] = (*counts[text], known), (group,)
        writer.envs.pop()
        block = with_columns(writer, block, items)
        columns: dict[str, int] = {}
        writer.envs.append(block.env)
        for moved, text in zip(self._moved, texts, strict=True):
            assert isinstance(moved.fn, AggFn)
            call = b.udf("moving", DOUBLE, *moved.fn.args, *counts[text], params=(moved.fn.name,))
            over = writer.expr(replace(moved.window, fn=call, partition=together[text], order=(), frame=_WHOLE))
            moved.column.id = columns.setdefault(over, moved.column.id)
        writer.envs.pop()
        return with_columns(writer, block, {i: over for over, i in columns.items()})

    def _without(self, expr: Expr, window: Window) -> Expr:
        if not _moves(expr):
            return rebuilt_engine(expr, lambda e: self._without(e, window))
        assert isinstance(expr, AggFn)
        args = expr.args
        if expr.where is not None:  # NULL is left out, of one argument as of two
            args = (b.case(DOUBLE, (expr.where, args[0])), *args[1:])
        column = self._fresh(DOUBLE)
        self._moved.append(_Moved(column, replace(expr, args=args, where=None), replace(window, fn=column)))
        return column

    def _fresh(self, type_: DataType) -> Col:
        self._writer.fresh -= 1
        return Col(type_, True, self._writer.fresh, "")


def _moves(expr: Expr) -> bool:
    """Whether it is an aggregate that computes with floats, but not with whole numbers that are floats exactly."""
    if not isinstance(expr, AggFn) or expr.name not in _NAMES or expr.type != DOUBLE:
        return False
    value = expr.args[0]
    whole = isinstance(value, EngineCast) and is_integral(value.arg.type) and value.arg.type != BIGINT
    return not (whole and expr.name in ("sum", "avg"))
