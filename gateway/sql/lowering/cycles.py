"""Equalities that the engine must not learn from: those of a value with an expression over it."""

from __future__ import annotations

from dataclasses import replace

from gateway.sql.typed.nodes import Expr, Lit, Op
from gateway.sql.typed.walk import children, has_columns, nodes
from gateway.sqltypes import BOOLEAN

_EQUAL = frozenset({"=", "<=", ">=", "IN", "NOT"})  # what may say that two values are equal


def without_cycle(e: Expr) -> Expr:
    """A lowered condition as one from which the engine does not learn that a value equals an expression over it.

    The order of a window over PARTITION BY x is lost to it where ``f(x) = x`` holds (DataFusion 55: "All partition by columns
    should have an ordering"); it makes such an equality of two comparisons itself. Remove when it plans them.
    """
    if not isinstance(e, Op):
        return e
    if e.symbol == "AND":
        return replace(e, args=tuple(map(without_cycle, e.args)))
    if e.symbol not in _EQUAL or not _is_cycle(e):
        return e
    return Op(BOOLEAN, e.nullable, ">", (e, Lit(BOOLEAN, False, False)))


def _is_cycle(e: Expr) -> bool:
    if not isinstance(e, Op):
        return False
    first, others = e.args[0], e.args[1:]
    return any(_is_within(first, o) or _is_within(o, first) for o in others) if others else _is_cycle(first)


def _is_within(inner: Expr, outer: Expr) -> bool:
    """Whether what reads columns is a proper part of another expression."""
    return has_columns(inner) and any(inner == part for child in children(outer) for part in nodes(child))
