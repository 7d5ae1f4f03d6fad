"""How large columns become once the engine puts what they are made of in their place.

The engine moves a filter down through projections, and writes out the expression of each column that it reads
(DataFusion 55, push_down_filter). Where each of nested queries reads the columns below it twice, that doubles with each of
them: two dozen would never be planned. Remove when it leaves a filter where it is rather than compute something twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Rel
from gateway.sql.typed.walk import nodes

_MOST = 64  # parts of a column that are written somewhere else


def weight(expr: Expr, weights: Mapping[int, int]) -> int:
    """The parts of a lowered expression with those of the columns that it reads."""
    return sum(weights.get(n.id, 1) if isinstance(n, Col) else 1 for n in nodes(expr))


def is_too_large(expr: Expr, weights: Mapping[int, int]) -> bool:
    """Whether the columns that an expression reads weigh too much for a filter to pass: it may be long itself."""
    return weight(expr, weights) - len(nodes(expr)) > _MOST


def handed_on(rel: Rel, weights: Mapping[int, int]) -> dict[int, int]:
    """The weights of columns of a relation that are those of others below it."""
    if isinstance(rel, b.CteRef):
        return {c.id: weights.get(p.id, 1) for c, p in zip(rel.columns, rel.cte.plan.columns, strict=True)}
    if isinstance(rel, b.SetOp):
        sides = zip(*(side.columns for side in rel.inputs), strict=True)
        return {c.id: max(weights.get(s.id, 1) for s in side) for c, side in zip(rel.columns, sides, strict=True)}
    if isinstance(rel, b.Aggregate):
        return {c.id: weight(k, weights) for c, k in zip(rel.columns, rel.keys, strict=False)}
    return {}
