"""Arrays and structs by which rows are told apart: with one zero inside, as Spark takes its floats for keys.

The engine does so itself with floats that stand alone; those inside of others it compares by their bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Agg, Call, Expr, Project, Rel, SortKey, Subquery, Window
from gateway.sql.typed.walk import all_relations, rebuilt
from gateway.sqltypes import DataType, MapType, is_fractional, is_nested

#: Aggregates that keep distinct values without the word.
_SETS = frozenset({"collect_set", "approx_count_distinct"})


def with_one_zero(rel: Rel) -> Rel:
    """`rel` with its keys of GROUP BY, DISTINCT, set operations, windows, ORDER BY and IN so; changes it in place."""
    for below in all_relations(rel):
        if isinstance(below, b.Aggregate):
            below.keys = tuple(map(_key, below.keys))
            below.aggs = tuple(map(_aggregate, below.aggs))
        elif isinstance(below, b.WindowRel):
            below.windows = tuple(map(_window, below.windows))
        elif isinstance(below, b.Sort):
            below.keys = _sorted(below.keys)
        elif isinstance(below, b.Distinct):
            below.input = _projected(below.input)
        elif isinstance(below, b.SetOp) and not (below.kind == "union" and below.all):
            below.inputs = tuple(map(_projected, below.inputs))
        elif isinstance(below, b.Filter):
            below.condition = _in_filter(below.condition)
    return rel


def _key(e: Expr) -> Expr:
    return _with_one(e) if _has_zeros(e.type) else e


def _with_one(e: Expr) -> Expr:
    return Call(e.type, e.nullable, "_one_zero", (e,))


def _aggregate(agg: Agg) -> Agg:
    if not agg.distinct and agg.fn not in _SETS:
        return agg
    if len(agg.args) == 1:
        return replace(agg, args=(_key(agg.args[0]),))
    # the engine is asked for distinct structs of them
    return replace(agg, args=tuple(_with_one(a) if is_fractional(a.type) else _key(a) for a in agg.args))


def _sorted(keys: Iterable[SortKey]) -> tuple[SortKey, ...]:
    return tuple(SortKey(_key(k.expr), k.descending, k.nulls_first) for k in keys)


def _window(w: Window) -> Window:
    return replace(w, partition=tuple(map(_key, w.partition)), order=_sorted(w.order))


def _projected(rel: Rel) -> Rel:
    """The relation with its columns as keys, under the same ids."""
    if not any(_has_zeros(c.type) for c in rel.columns):
        return rel
    return Project(rel.columns, rel, tuple(map(_key, rel.columns)))


def _in_filter(e: Expr) -> Expr:
    if isinstance(e, Subquery) and e.kind == "in" and any(_has_zeros(c.type) for c in e.plan.columns):
        return replace(e, args=tuple(map(_key, e.args)), plan=_projected(e.plan))
    return rebuilt(e, _in_filter)


def _has_zeros(t: DataType) -> bool:
    """Whether it is nested and has floats inside."""
    return is_nested(t) and not isinstance(t, MapType) and any(is_fractional(c) or _has_zeros(c) for c in t.children())
