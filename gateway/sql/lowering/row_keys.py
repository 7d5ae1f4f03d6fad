"""What tells rows apart or puts them in order: keys of GROUP BY, DISTINCT, set operations, windows and ORDER BY."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Agg, Expr, Project, Rel, SortKey, Window
from gateway.sql.typed.walk import all_relations

#: The call that is its operand, of which the engine does not know it.
HIDDEN = "_unmatched"

Key = Callable[[Expr], Expr]


def rekeyed(rel: Rel, key: Key, aggregate: Callable[[Agg], Agg]) -> None:
    """Changes the keys and aggregates of `rel`, and of all that is below it, in place."""
    for below in all_relations(rel):
        if isinstance(below, b.Aggregate):
            below.keys = tuple(map(key, below.keys))
            below.aggs = tuple(map(aggregate, below.aggs))
        elif isinstance(below, b.WindowRel):
            below.windows = tuple(_window(w, key) for w in below.windows)
        elif isinstance(below, b.Sort):
            below.keys = ordered_by(below.keys, key)
        elif isinstance(below, b.Distinct):
            below.input = projected(below.input, key)
        elif isinstance(below, b.SetOp) and not (below.kind == "union" and below.all):
            below.inputs = tuple(projected(side, key) for side in below.inputs)


def ordered_by(keys: Iterable[SortKey], key: Key) -> tuple[SortKey, ...]:
    """Keys of an order, each changed."""
    return tuple(SortKey(key(k.expr), k.descending, k.nulls_first) for k in keys)


def projected(rel: Rel, key: Key) -> Rel:
    """The relation with its columns as keys, under the same ids."""
    exprs = tuple(map(key, rel.columns))
    return rel if exprs == rel.columns else Project(rel.columns, rel, exprs)


def _window(w: Window, key: Key) -> Window:
    return replace(w, partition=tuple(map(key, w.partition)), order=ordered_by(w.order, key))
