"""What aggregates, windows and lambdas need computed in a subquery below their clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.engine_text import WINDOW_NAMES, quoted
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr
from gateway.sql.typed.walk import nodes, rebuilt_engine
from gateway.sqltypes import BOOLEAN, DOUBLE


def apart(writer: BlockWriter, block: Block, exprs: Sequence[Expr]) -> tuple[Block, list[Expr]]:
    """Lambdas over a table or a subquery that the engine can't merge with the projection that they become.

    It makes one of two projections without counting a lambda's variables anew, but none of what is asked for twice.
    """
    if not any(map(_has_lambda, exprs)) or block.source.isidentifier():
        return block, list(exprs)
    if block.order:  # below: what it is ordered by would be dropped by another projection
        block = writer.close(block)
    writer.fresh -= 1
    mark = Col(DOUBLE, False, writer.fresh, "")
    items = [(i, t) for i, t in (block.items or block.env.items()) if i in writer.needed]
    block.items = [*items, (mark.id, "random()")]
    names = [(i, f"v{i}" if i > 0 else f"k{-i}") for i, _ in block.items]
    alias = writer.alias("s")
    text = writer.select(block, names)
    env = {i: f"{alias}.{quoted(n)}" for i, n in names}
    low, high = (b.op(s, BOOLEAN, mark, b.lit(v, DOUBLE)) for s, v in ((">=", 0.0), ("<", 2.0)))
    guard = b.op("AND", BOOLEAN, low, high)
    made = Block(f"({text}) AS {alias}", env, filtered=block.is_filtered)
    return made, [_guarded(e, guard) for e in exprs]


class Below:
    """Expressions that are computed in a subquery below a clause, as columns of it."""

    def __init__(self, writer: BlockWriter, block: Block) -> None:
        self._writer = writer
        self._source = block
        self._made: dict[str, Col] = {}

    def column(self, expr: Expr, always: bool = False) -> Expr:
        """A plain column for `expr`; itself if it is a column or literal (unless `always`)."""
        if isinstance(expr, Col | b.Lit) and not always:
            return expr
        writer = self._writer
        writer.envs.append(self._source.env)
        text = writer.expr(expr)
        writer.envs.pop()
        key = f"{text} {expr.type!r}"
        found = self._made.get(key)
        if found is None:
            writer.fresh -= 1
            found = Col(expr.type, expr.nullable, writer.fresh, text)
            self._made[key] = found
        return found

    def block(self, *, sorted_: bool = False) -> Block:
        """The source as it was, or a subquery over it with the computed columns; `sorted_`: all of its rows will be sorted."""
        source, writer = self._source, self._writer
        read = {i: t for i, t in source.env.items() if i in writer.needed}
        plain = writer.without_views(read) if sorted_ else read
        if not self._made and plain == read:
            return source
        items = list(plain.items())
        items += [(c.id, writer.without_view(c.name, c.type) if sorted_ else c.name) for c in self._made.values()]
        source.items = items
        names = [(i, f"v{i}" if i > 0 else f"k{-i}") for i, _ in items]
        text = self._writer.select(source, names)
        alias = self._writer.alias("s")
        env = {i: f"{alias}.{quoted(n)}" for i, n in names}
        return Block(f"({text}) AS {alias}", env, filtered=source.is_filtered)


def with_columns(writer: BlockWriter, block: Block, items: Mapping[int, str]) -> Block:
    """A subquery of the block's columns and these."""
    shown = block.env | dict(items)
    writer.needed.update(shown)
    block.items = list(shown.items())
    return writer.close(block)


def with_agg_inputs(expr: Expr, column: Callable[[Expr], Expr]) -> Expr:
    """`expr` with the inputs of its aggregates replaced by columns."""
    if isinstance(expr, b.AggFn):
        return replace(
            expr,
            args=tuple(column(a) for a in expr.args),
            where=column(expr.where) if expr.where is not None else None,
            order=tuple(b.SortKey(column(k.expr), k.descending, k.nulls_first) for k in expr.order),
        )
    return rebuilt_engine(expr, lambda e: with_agg_inputs(e, column))


def with_window_inputs(window: Expr, column: Callable[[Expr], Expr]) -> Expr:
    assert isinstance(window, b.Window)

    def inputs(expr: Expr) -> Expr:
        if isinstance(expr, b.Fn) and expr.name in WINDOW_NAMES:
            return replace(expr, args=tuple(column(a) for a in expr.args))
        if isinstance(expr, b.AggFn):
            return with_agg_inputs(expr, column)
        return rebuilt_engine(expr, inputs)

    return replace(
        window,
        fn=inputs(window.fn),
        partition=tuple(column(p) for p in window.partition),
        order=tuple(b.SortKey(column(k.expr), k.descending, k.nulls_first) for k in window.order),
    )


def _has_lambda(expr: Expr) -> bool:
    return any(isinstance(e, b.Lambda) for e in nodes(expr))


def _guarded(expr: Expr, guard: Expr) -> Expr:
    """`expr` with its functions that take lambdas under `guard`, which always holds."""
    if isinstance(expr, (b.Fn, b.Udf)) and any(isinstance(a, b.Lambda) for a in expr.args):
        return b.case(expr.type, (guard, expr))
    if isinstance(expr, b.AggFn):
        return with_agg_inputs(expr, lambda e: _guarded(e, guard))
    if isinstance(expr, b.Window):
        return with_window_inputs(expr, lambda e: _guarded(e, guard))
    return rebuilt_engine(expr, lambda e: _guarded(e, guard))
