"""Operators, CASE and CAST."""

from __future__ import annotations

from sqlglot import exp

from gateway.errors import Span, UserError
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.casts import cast_to
from gateway.sql.bind.char_padding import compared
from gateway.sql.bind.predicates import is_unknown, like_many
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.sites import called
from gateway.sql.functions.operators import COMPARISONS, bind_binary, bind_connective, bind_unary
from gateway.sql.read.tree import Positive, UnsignedRightShift, span_of
from gateway.sql.typed.catalogue import null_of
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import least_common_of, plain
from gateway.sql.typed.nodes import Call, Case, Expr, Lit
from gateway.sqltypes import BOOLEAN, STRING, VOID

Node = exp.Expr
BINARY: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
BITWISE: dict[type, str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    UnsignedRightShift: ">>>",
}


def binary(binder: Expressions, node: Node, scope: Scope) -> Expr:
    left, right = binder.bind(node.this, scope), binder.bind(node.expression, scope)
    symbol, span = BINARY[type(node)], span_of(node)
    if symbol in COMPARISONS:
        return _comparison(binder, symbol, left, right, span)
    return bind_binary(symbol, left, right, span, binder.context.precision_loss)


def _comparison(binder: Expressions, symbol: str, left: Expr, right: Expr, span: Span | None) -> Expr:
    """A comparison that is written as an operator: Spark puts NULL in the place of what has no type beside a STRING."""
    if {plain(left.type), plain(right.type)} == {STRING, VOID}:
        left, right = null_of(left), null_of(right)
    return compared(binder, symbol, left, right, span)


def not_equal(binder: Expressions, node: Node, scope: Scope) -> Expr:
    equal = _comparison(binder, "=", binder.bind(node.this, scope), binder.bind(node.expression, scope), span_of(node))
    return Call(BOOLEAN, equal.nullable, "not", (equal,), span=span_of(node))


def bitwise(binder: Expressions, node: Node, scope: Scope) -> Expr:
    args = (binder.bind(node.this, scope), binder.bind(node.expression, scope))
    return called(binder, BITWISE[type(node)], args, (span_of(node.this), span_of(node.expression)), span_of(node))


def concat(binder: Expressions, node: Node, scope: Scope) -> Expr:
    args = (binder.bind(node.this, scope), binder.bind(node.expression, scope))
    return called(binder, "concat", args, (span_of(node.this), span_of(node.expression)), span_of(node))


def connective(binder: Expressions, node: Node, scope: Scope) -> Expr:
    word = "and" if isinstance(node, exp.And) else "or"
    args = [binder.bind(node.this, scope), binder.bind(node.expression, scope)]
    return bind_connective(word, args, [span_of(node.this), span_of(node.expression)])


def unary(binder: Expressions, node: Node, scope: Scope) -> Expr:
    inner = node.this
    many = isinstance(inner, (exp.Like, exp.ILike)) and isinstance(inner.expression, (exp.Any, exp.All))
    if isinstance(node, exp.Not) and many and _starts_with(node, inner):
        name = "ilike" if isinstance(inner, exp.ILike) else "like"
        return like_many(binder, name, inner, inner.expression, scope, True)
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Var) and _starts_with(node, inner):
        return is_unknown(binder, inner, scope, "is not null", span_of(node))
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and _starts_with(node, inner):
        return Call(BOOLEAN, False, "is not null", (binder.bind(inner.this, scope),), span=span_of(node))
    symbols: dict[type, str] = {exp.Neg: "-", Positive: "+", exp.BitwiseNot: "~", exp.Not: "not"}
    symbol = symbols[type(node)]
    return bind_unary(symbol, binder.bind(node.this, scope), span_of(node))


def case(binder: Expressions, node: exp.Case, scope: Scope) -> Expr:
    span = span_of(node)
    operand = binder.bind(node.this, scope) if node.args.get("this") is not None else None
    conditions, values = [], []
    for branch in node.args["ifs"]:
        if operand is None:
            conditions.append(binder.condition(branch.this, scope, "CASE"))
        else:
            conditions.append(_comparison(binder, "=", operand, binder.bind(branch.this, scope), span_of(branch)))
        values.append(binder.bind(branch.args["true"], scope))
    default = node.args.get("default")
    otherwise = binder.bind(default, scope) if default is not None else None
    everything = [*values, *([otherwise] if otherwise is not None else [])]
    common = least_common_of(v.type for v in everything)
    if common is None:
        types = " or ".join(f'"{v.type.sql}"' for v in everything)
        raise UserError(
            "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
            "Cannot resolve CASE due to data type mismatch: input to `casewhen` should all be the same type, but "
            f"it has {types}.",
            span=span,
        )
    values = [coerced(v, common) for v in values]
    otherwise = coerced(otherwise, common) if otherwise is not None else None
    nullable = otherwise is None or otherwise.nullable or any(v.nullable for v in values)
    for index, condition in enumerate(conditions):
        if isinstance(condition, Lit) and condition.value is True:  # nothing behind it counts
            nullable = any(v.nullable for v in values[: index + 1])
            break
    return Case(common, nullable, tuple(zip(conditions, values, strict=True)), otherwise)


def cast(binder: Expressions, node: exp.Cast, scope: Scope) -> Expr:
    return cast_to(binder.bind(node.this, scope), node.args["to"], isinstance(node, exp.TryCast), span_of(node))


def _starts_with(node: Node, inner: Node) -> bool:
    """Whether NOT stands inside (``x NOT LIKE …``), not in front of the whole predicate."""
    outside, inside = span_of(node), span_of(inner)
    return outside is not None and inside is not None and outside.start == inside.start
