"""Subqueries in the conditions of a block: where the engine takes IN, and whether they read the block."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Expr
from gateway.sql.typed.walk import children


def check_in_subqueries(condition: Expr) -> None:
    """Refuse IN (subquery) where DataFusion loses the difference between NULL and false.

    In a filter it is safe as a conjunct (also negated), and below AND / OR as long as nothing negates it.
    """
    if isinstance(condition, b.Call) and condition.fn == "not" and isinstance(condition.args[0], b.Subquery):
        condition = condition.args[0]
    if isinstance(condition, b.Subquery):
        for arg in condition.args:
            _check_values(arg)
        return
    if isinstance(condition, b.Call) and condition.fn in ("and", "or"):
        for arg in condition.args:
            if not isinstance(arg, b.Subquery):
                _check_under(arg)
    else:
        _check_values(condition)


def _check_under(condition: Expr) -> None:
    """Below AND / OR of a filter."""
    if isinstance(condition, b.Call) and condition.fn in ("and", "or"):
        for arg in condition.args:
            _check_under(arg)
    elif not isinstance(condition, b.Subquery):
        _check_values(condition)


def _check_values(expr: Expr) -> None:
    """Where NULL and false differ."""
    if isinstance(expr, b.Subquery) and expr.kind == "in" and expr.nullable:
        raise unsupported("IN (subquery) with NULLs below another operator", expr.span)
    for child in children(expr):
        _check_values(child)


def correlated(expr: Expr) -> bool:
    """Whether a subquery in `expr` refers to columns here; over GROUP BY their text may hold aggregates."""
    return (isinstance(expr, b.Subquery) and bool(expr.outer)) or any(correlated(c) for c in children(expr))
