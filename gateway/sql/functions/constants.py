"""Constant arguments: literals, also under casts that can be folded."""

from __future__ import annotations

from decimal import Decimal
from struct import pack, unpack
from typing import Any

from gateway.sql.functions.casts import fold_cast
from gateway.sql.typed.catalogue import Site
from gateway.sql.typed.nodes import Cast, Expr, Lit
from gateway.sqltypes import DOUBLE, FLOAT, INT, DataType


def folded(expr: Expr) -> Expr:
    """`expr`, or the literal that it is: casts of literals are folded where that is certain."""
    if isinstance(expr, Cast):
        arg = folded(expr.arg)
        if isinstance(arg, Lit):
            literal = fold_cast(arg, expr.type) or _number(arg, expr.type)
            if literal is not None:
                return literal
    return expr


def _number(literal: Lit, target: DataType) -> Lit | None:
    """Numbers between families, where the value is certain."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    if target in (FLOAT, DOUBLE):
        number = float(value)
        if target == FLOAT:
            number = unpack("f", pack("f", number))[0]
        return Lit(target, False, number)
    if target == INT and -(2**31) <= value < 2**31:
        return Lit(target, False, int(value))
    return None


def constant(site: Site, index: int) -> Any:
    """The constant value of an argument; NON_FOLDABLE_INPUT where it is none."""
    expr = folded(site.args[index])
    return expr.value if isinstance(expr, Lit) else site.constant(index)
