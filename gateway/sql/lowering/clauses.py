"""Clauses of one block: the select list, WHERE and HAVING, ORDER BY, LIMIT, DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.dealt_keys import kept_keys
from gateway.sql.lowering.doubling import is_too_large, weight
from gateway.sql.lowering.evaluation import certain, is_key, is_told
from gateway.sql.lowering.in_subqueries import check_in_subqueries, correlated
from gateway.sql.lowering.inputs import apart
from gateway.sql.lowering.planned_rows import is_local
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr
from gateway.sql.typed.walk import all_of, children, conjuncts_of, nodes, read_by
from gateway.sqltypes import BOOLEAN


def project(writer: BlockWriter, rel: b.Project) -> Block:
    block = writer.block(rel.input)
    if block.items is not None or block.distinct:
        block = writer.close(block)
    written = is_local(rel)  # but for the keys of a sort above, which have no name
    exprs = [writer.lowering.of_rows(written and bool(c.name), e) for c, e in zip(rel.columns, rel.exprs, strict=True)]
    block, exprs = apart(writer, block, exprs)
    if (block.limited and any(writer.lowering.raises(e) for e in exprs)) or (
        block.group is not None and any(correlated(e) for e in exprs)
    ):
        block = writer.close(block)
    made = list(zip(rel.columns, exprs, strict=True))
    if any(is_too_large(e, writer.weights) and writer.is_tested(c) for c, e in made if c.id in writer.needed):
        block = writer.close(block, barrier=True)
        writer.weights.update(dict.fromkeys(block.env, 1))
    writer.weights |= {c.id: weight(e, writer.weights) for c, e in made}
    writer.envs.append(block.env)
    block.items = []
    kept = block.where if block.group is None else []
    for column, expr in made:
        if column.id in writer.needed:
            writer.casts = 0
            block.items.append((column.id, writer.expr(writer.guarded(kept, column, expr))))
            writer.column_casts[column.id] = writer.casts
    writer.envs.pop()
    return block


def filtered(writer: BlockWriter, rel: b.Filter) -> Block:
    rel = _with_on(writer, rel)
    conditions = conjuncts_of(rel.condition) if is_local(rel) else writer.lowering.asked(conjuncts_of(rel.condition))
    for condition in conditions:
        check_in_subqueries(condition)
    source = rel.input
    while isinstance(source, b.Filter):
        source = source.input
    if isinstance(source, b.Join):  # of written rows Spark has computed their conditions before it simplifies them
        conditions = [_known(c) for c in conditions]
    joined, written = isinstance(source, b.Join) or bool(writer.envs), is_local(rel)
    conjuncts = [
        writer.lowering.join_condition(c) if joined else writer.lowering.of_rows(written, c) for c in conditions
    ]
    raising = [c for c in conjuncts if writer.lowering.raises(c)]
    with writer.fenced((*writer.fences, *map(read_by, raising))):
        block = writer.block(rel.input)
    if _is_passed(source, block, raising):
        first = conjuncts if any(map(is_told, conjuncts)) else raising
        block = _with(writer, block, [c for c in conjuncts if not any(c is r for r in first)])
        return _with(writer, writer.close(block, barrier=True), first)
    return _with(writer, block, conjuncts)


def _with_on(writer: BlockWriter, rel: b.Filter) -> b.Filter:
    """The filter with what may raise of the ON below it: Spark asks WHERE before that, and the engine both together."""
    below = rel.input
    if not isinstance(below, b.Join) or below.kind not in ("inner", "semi") or below.lateral or below.condition is None:
        return rel
    where, on = conjuncts_of(rel.condition), conjuncts_of(below.condition)
    known = {c.id for c in below.columns}
    moved = [c for c in on if not is_key(c) and read_by(c) <= known]
    raises = writer.lowering.raises
    asks = any(isinstance(n, b.Subquery) for c in (*where, *moved) for n in nodes(c))
    if asks or not any(raises(writer.lowering.join_condition(c)) for c in moved):
        return rel
    kept = [c for c in on if not any(c is m for m in moved)]
    return b.Filter(rel.columns, replace(below, condition=all_of(kept) if kept else None), all_of([*where, *moved]))


def _with(writer: BlockWriter, block: Block, conjuncts: Sequence[Expr]) -> Block:
    """The block under conditions as well."""
    if not conjuncts:
        return block
    grouped = block.items is None and block.group is not None and not block.limited and not block.order
    if grouped and all(_has_column(c) and not correlated(c) for c in conjuncts):
        writer.envs.append(block.env)
        block.having += [writer.expr(c) for c in writer.lowering.filters(conjuncts)]
        writer.envs.pop()
        return block
    if block.items is not None or block.limited or block.distinct or block.group is not None or block.order:
        block = writer.close(block)
    block.where += conjuncts
    return block


def _is_passed(source: b.Rel, block: Block, raising: Sequence[Expr]) -> bool:
    """Whether the engine would move one of the conditions below a filter, and ask it before that one."""
    if not raising or block.limited or isinstance(source, (b.Join, b.Generate)):  # these ask for `fences`
        return False
    if isinstance(source, b.Aggregate) and block.items is None:
        keys = {c.id for c in source.columns[: len(source.keys)]}
        return block.is_filtered and any(read_by(c) <= keys for c in raising)
    closed = block.items is not None or block.distinct or block.group is not None or bool(block.order)
    return block.filtered or (closed and block.is_filtered)


def _known(condition: Expr) -> Expr:
    """A condition, or what Spark knows it for without evaluating it."""
    told = certain(condition)
    return condition if told is None else b.lit(told, BOOLEAN)


def sort(writer: BlockWriter, rel: b.Sort) -> Block:
    block = writer.block(rel.input)
    if _is_at_most_one_row(rel.input):  # Spark asks for no key of it, not for one that raises
        return block
    if block.items is not None or block.limited or block.distinct or block.order:
        block = writer.close(block)
    block.order = list(writer.lowering.sort_keys(rel.keys))
    return block


def _is_at_most_one_row(rel: b.Rel) -> bool:
    while isinstance(rel, (b.Project, b.Filter, b.Sort)):
        rel = rel.input
    return isinstance(rel, b.OneRow) or (isinstance(rel, b.Aggregate) and not rel.keys and rel.sets is None)


def limit(writer: BlockWriter, rel: b.Limit) -> Block:
    block = writer.block(rel.input)
    if block.limited:
        block = writer.close(block)
    if block.order:
        block.order = kept_keys(rel.input, block.order)
    block.limit, block.offset = rel.limit, rel.offset
    return block


def distinct(writer: BlockWriter, rel: b.Distinct) -> Block:
    block = writer.block(rel.input)
    if block.limited or block.order or block.distinct or block.items is None:
        block = writer.close(block)
        block.items = [(c.id, block.env[c.id]) for c in rel.columns]
    block.distinct = True
    return writer.close(block)


def _has_column(expr: Expr) -> bool:
    """Whether `expr` reads a column; DataFusion takes no constant in HAVING."""
    return isinstance(expr, Col) or any(_has_column(c) for c in children(expr))
