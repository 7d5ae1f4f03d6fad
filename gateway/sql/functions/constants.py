"""Constant arguments: literals, also under casts that can be folded."""

from __future__ import annotations

from typing import Any

from gateway.sql.bound import Cast, Expr, Lit
from gateway.sql.catalogue import Site
from gateway.sql.functions.casts import fold_cast


def folded(expr: Expr) -> Expr:
    """`expr`, or the literal that it is: casts of literals are folded where that is certain."""
    if isinstance(expr, Cast):
        arg = folded(expr.arg)
        if isinstance(arg, Lit):
            literal = fold_cast(arg, expr.type)
            if literal is not None:
                return literal
    return expr


def constant(site: Site, index: int) -> Any:
    """The constant value of an argument; NON_FOLDABLE_INPUT where it is none."""
    expr = folded(site.args[index])
    return expr.value if isinstance(expr, Lit) else site.constant(index)
