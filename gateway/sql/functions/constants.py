"""Constant arguments: literals, also under casts that can be folded."""

from __future__ import annotations

from decimal import Decimal
from struct import pack, unpack
from typing import Any

from gateway.sql.functions.casts import fold_cast
from gateway.sql.functions.fold import fold
from gateway.sql.typed.catalogue import Context, Site
from gateway.sql.typed.nodes import Cast, Expr, Lit
from gateway.sqltypes import DOUBLE, FLOAT, INT, STRING, DataType


def folded(expr: Expr, context: Context | None = None) -> Expr:
    """`expr`, or the literal that it is, where that is certain; `context` is needed for more than casts of literals."""
    if isinstance(expr, Cast):
        arg = folded(expr.arg, context)
        if isinstance(arg, Lit):
            literal = fold_cast(arg, expr.type, context) or _number(arg, expr.type) or _text(arg, expr.type)
            if literal is not None:
                return literal
    known = fold(expr, context) if context is not None else None
    return expr if known is None else known


def _text(literal: Lit, target: DataType) -> Lit | None:
    """Truths and bytes as text, where that is certain."""
    if target == STRING and isinstance(literal.value, bool):
        return Lit(target, False, str(literal.value).lower())
    if target == STRING and isinstance(literal.value, bytes) and literal.value.isascii():
        return Lit(target, False, literal.value.decode())
    return None


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


def constant(site: Site, index: int, arg: Expr | None = None) -> Any:
    """The constant value of an argument, or of what it has become; NON_FOLDABLE_INPUT where Spark folds it to none."""
    expr = folded(site.args[index] if arg is None else arg, site.context)
    if isinstance(expr, Lit):
        return expr.value
    raise site.not_constant(index, f"of parameter {index + 1}")
