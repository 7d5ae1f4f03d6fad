"""Arrays and structs by which rows are told apart: with one zero inside, as Spark takes its floats for keys.

The engine does so itself with keys that are floats, but in joins that sort their sides: there -0.0 comes before 0.0, is taken
for the same, and what is behind it finds no pair. Those inside of others, and of means, it compares by their bits.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.sql.lowering.row_keys import projected, rekeyed
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Agg, Call, Expr, Rel, Subquery
from gateway.sql.typed.walk import all_relations, rebuilt
from gateway.sqltypes import DataType, MapType, is_fractional, is_nested

#: Aggregates that keep distinct values without the word.
_SETS = frozenset({"collect_set", "approx_count_distinct"})
#: Those of which the engine itself counts both zeros as one, or that Spark asks for all values although there is the word.
_AS_THEY_ARE = frozenset({"count", "sum", "min", "max", "first", "last", "any_value"})


def with_one_zero(rel: Rel) -> Rel:
    """`rel` with its keys of GROUP BY, DISTINCT, set operations, windows, ORDER BY and IN so; changes it in place."""
    rekeyed(rel, _key, _aggregate)
    for below in all_relations(rel):
        if isinstance(below, b.Filter):
            below.condition = _in_filter(below.condition)
        elif isinstance(below, b.SetOp) and below.kind != "union":
            # With ALL rows are numbered by their bits; without it they are joined.
            below.inputs = tuple(projected(side, _plain_key) for side in below.inputs)
    return rel


def _in_place(plan: Rel) -> Rel:
    """What IN asks, as keys; in its own projection: below two the engine finds no columns of the query around it."""
    if isinstance(plan, b.Project):
        return b.Project(plan.columns, plan.input, tuple(map(_any_key, plan.exprs)))
    return projected(plan, _any_key)


def _any_key(e: Expr) -> Expr:
    return _plain_key(_key(e))


def _plain_key(e: Expr) -> Expr:
    return _with_one(e) if is_fractional(e.type) else e


def _key(e: Expr) -> Expr:
    return _with_one(e) if _has_zeros(e.type) else e


def _with_one(e: Expr) -> Expr:
    return Call(e.type, e.nullable, "_one_zero", (e,))


def _aggregate(agg: Agg) -> Agg:
    if not agg.distinct and agg.fn not in _SETS:
        return agg
    if len(agg.args) == 1:
        value = agg.args[0]
        alone = agg.distinct and is_fractional(value.type) and agg.fn not in _AS_THEY_ARE
        return replace(agg, args=(_with_one(value) if alone else _key(value),))
    # the engine is asked for distinct structs of them
    return replace(agg, args=tuple(map(_any_key, agg.args)))


def _in_filter(e: Expr) -> Expr:
    if isinstance(e, Subquery) and e.kind == "in":
        return replace(e, args=tuple(map(_any_key, e.args)), plan=_in_place(e.plan))
    return rebuilt(e, _in_filter)


def _has_zeros(t: DataType) -> bool:
    """Whether it is nested and has floats inside."""
    return is_nested(t) and not isinstance(t, MapType) and any(is_fractional(c) or _has_zeros(c) for c in t.children())
