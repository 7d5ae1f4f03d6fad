"""GROUP BY with its sets, and the aggregates over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.constants import UNFOLDED
from gateway.sql.lowering.fewer_keys import with_fewer_keys
from gateway.sql.lowering.inputs import Below, apart, with_agg_inputs
from gateway.sql.lowering.planned_rows import is_local
from gateway.sql.lowering.shared_sums import lowered_aggregates
from gateway.sql.lowering.totals import beside_distinct
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import is_steady
from gateway.sql.typed.walk import has_columns, nodes, read_by
from gateway.sqltypes import BIGINT, INT, VOID, DataType

_UNASKED = b.lit(0, INT)


def _is_unasked(writer: BlockWriter, rel: b.Aggregate, column: b.Col, key: b.Expr) -> bool:
    """Whether a key is a constant that nobody reads: Spark groups by the others then, and never computes it."""
    if rel.sets is not None or column.id in writer.needed or isinstance(key, b.Lit) or has_columns(key):
        return False
    unfolded = any(isinstance(part, b.Call) and part.fn in UNFOLDED for part in nodes(key))
    return not unfolded and is_steady(key, writer.lowering.catalogue)


def aggregate(writer: BlockWriter, rel: b.Aggregate) -> Block:
    written = is_local(rel.input)  # keys are computed below, with the rows
    fewer = None if written else with_fewer_keys(rel, writer.lowering)
    if fewer is not None:
        writer.needed.update(i for e in fewer.exprs for i in read_by(e) if e not in rel.columns)
        return writer.block(fewer)
    block = writer.opened(rel.input)
    keys = [
        _UNASKED
        if _is_unasked(writer, rel, c, e)
        else writer.guarded(block.where, c, writer.lowering.of_rows(written, e))
        for c, e in zip(rel.columns, rel.keys, strict=False)
    ]
    columns = rel.columns[len(keys) :]
    asked = [(c, a) for c, a in zip(columns, rel.aggs, strict=False) if c.id in writer.needed]
    lowered = lowered_aggregates([a for _, a in asked], writer.lowering)
    aggs = [(c, a) for (c, _), a in zip(asked, lowered, strict=True)]
    block, found = apart(writer, block, [*keys, *beside_distinct([a for _, a in aggs])])
    keys, aggs = found[: len(keys)], [(c, a) for (c, _), a in zip(aggs, found[len(keys) :], strict=True)]
    # Literals as keys would be ordinals, grouping() wants columns, and DataFusion tells expressions apart by names that
    # leave casts out: whatever is not a plain column is computed below.
    below = Below(writer, block)
    known = _known_keys(rel, keys)
    keys = [
        k if at in known else below.column(k, always=rel.sets is not None or isinstance(k, b.Lit))
        for at, k in enumerate(keys)
    ]
    alike = _alike_constants([a for _, a in aggs])

    def input_of(expr: b.Expr) -> b.Expr:
        return below.column(expr, always=isinstance(expr, b.Lit) and repr(expr.value) in alike)

    aggs = [(c, with_agg_inputs(a, input_of)) for c, a in aggs]
    block = below.block()
    writer.envs.append(block.env)
    texts = [writer.cast_text(writer.expr(k), k.type) if at in known else writer.expr(k) for at, k in enumerate(keys)]
    env: dict[int, str] = {c.id: t for c, t in zip(rel.columns, texts, strict=False)}
    for column, agg in aggs:
        env[column.id] = writer.expr(agg)
    writer.envs.pop()
    if rel.sets is not None:
        env[rel.columns[-1].id] = _grouping_id(texts, {i for s in rel.sets for i in s}, writer.cast_text)
        sets = ", ".join("(" + ", ".join(texts[i] for i in s) + ")" for s in rel.sets)
        block.group = f" GROUP BY GROUPING SETS ({sets})"
        # Hides from the optimizer that a key may be constant below: it is NULL in the rows of other sets.
        used = {i for s in rel.sets for i in s}
        for i, (column, text) in enumerate(zip(rel.columns, texts, strict=False)):
            shown = f"CASE WHEN grouping({text}) = 0 THEN {text} END"
            env[column.id] = shown if i in used else writer.expr(b.null(column.type))
        if not all(rel.sets):
            block.having.append("bool_or(true)")
    elif texts:
        block.group = " GROUP BY " + ", ".join(dict.fromkeys(t for at, t in enumerate(texts) if at not in known))
    else:
        block.group = ""
        block.aggregates = tuple(env[c.id] for c, a in aggs if not isinstance(a, b.Lit))
    block.rows_env, block.env = block.env, env
    # The engine (DataFusion 55) moves conditions without columns below an aggregate, also one that has a row without rows.
    return writer.close(block, barrier=True) if block.group == "" and writer.is_asked(rel) else block


def _known_keys(rel: b.Aggregate, keys: Sequence[b.Expr]) -> set[int]:
    """Places of keys that are constants beside others: they tell no groups apart."""
    constants = {at for at, key in enumerate(keys) if isinstance(key, b.Lit) and key.type != VOID}
    return constants if rel.sets is None and len(constants) < len(keys) else set()


def _alike_constants(aggs: Sequence[b.Expr]) -> set[str]:
    """Constants under aggregates that come with several types: names of the engine's aggregates leave types out."""
    types: dict[str, set[DataType]] = {}
    for agg in aggs:
        for part in nodes(agg):
            for arg in part.args if isinstance(part, b.AggFn) else ():
                if isinstance(arg, b.Lit):
                    types.setdefault(repr(arg.value), set()).add(arg.type)
    return {value for value, found in types.items() if len(found) > 1}


def _grouping_id(texts: list[str], used: set[int], cast: Callable[[str, DataType], str]) -> str:
    """Spark's grouping_id: one bit per key, the first key highest, 1 where the key is not in the set (or in none)."""
    bits = [
        f"{cast(f'grouping({t})' if i in used else '1', BIGINT)} * {1 << (len(texts) - 1 - i)}"
        for i, t in enumerate(texts)
    ]
    return "(" + (" + ".join(bits) or "CAST(0 AS BIGINT)") + ")"
