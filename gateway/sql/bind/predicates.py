"""Predicates that are more than one operator: IS, IN, BETWEEN, LIKE with its quantifiers, RLIKE."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind import char_padding
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.columns import expanded, is_star
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.sites import called
from gateway.sql.bind.subqueries import in_query
from gateway.sql.functions.operators import as_boolean, both_sides, comparison, known_order
from gateway.sql.read.tree import IntervalLiteral, Positive, TypedLiteral, span_of
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import comparable_of
from gateway.sql.typed.nodes import Call, Col, Expr, Lit
from gateway.sqltypes import BOOLEAN, STRING, VOID, DataType, is_integral, is_orderable

Node = exp.Expr
#: What Spark's parser makes expressions of, with a value of their own if they are of constants.
_PARSED = (
    exp.Placeholder, exp.Literal, exp.Null, exp.Boolean, TypedLiteral, IntervalLiteral, exp.Cast, exp.TryCast, exp.Neg,
    Positive, exp.DPipe, exp.Case, exp.If, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Trim, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.Mod, exp.IntDiv, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.BitwiseAnd,
    exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip


def is_(binder: Expressions, node: exp.Is, scope: Scope) -> Expr:
    what, span = node.expression, span_of(node)
    if isinstance(what, exp.Var):
        return is_unknown(binder, node, scope, "is null", span)
    value = binder.bind(node.this, scope)
    if isinstance(what, exp.Null):
        return Call(BOOLEAN, False, "is null", (value,), span=span)
    return comparison("<=>", as_boolean(value, span), Lit(BOOLEAN, False, bool(what.this)), span)


def is_unknown(binder: Expressions, node: exp.Is, scope: Scope, fn: str, span: Span | None) -> Expr:
    """``IS [NOT] UNKNOWN``. Spark asks for a BOOLEAN only where nothing has to be resolved, and forgets to elsewhere."""
    value = binder.bind(node.this, scope)
    parts = list(node.this.walk())
    is_resolved = any(isinstance(p, (exp.Column, exp.Cast)) for p in parts)
    is_resolved = is_resolved or any(isinstance(p, exp.Func) and not isinstance(p, _PARSED) for p in parts)
    if not is_resolved and value.type not in (BOOLEAN, VOID):
        raise UserError(
            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            f'A condition must be of type "BOOLEAN", but it has the type "{value.type.sql}".',
            span=span,
        )
    return Call(BOOLEAN, False, fn, (value,), span=span)


def in_(binder: Expressions, node: exp.In, scope: Scope) -> Expr:
    span = span_of(node)
    query = node.args.get("query")
    if query is not None:
        return in_query(binder, node, query, scope, span)
    value = binder.bind(node.this, scope)
    value, items = char_padding.listed(binder, value, expanded(binder, node.expressions, scope), span)
    common = comparable_of([value.type, *(i.type for i in items)])
    if common is None:
        raise UserError(
            "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
            "Cannot resolve the IN list due to data type mismatch: input to `in` should all be the same type.",
            span=span,
        )
    if not is_orderable(common):
        raise UserError(
            "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            f'The `in` does not support ordering on type "{common.sql}".',
            span=span,
        )
    args = [coerced(value, common), *(_widened(i, common) for i in items)]
    return Call(BOOLEAN, any(a.nullable for a in args), "in", tuple(args), span=span)


def _widened(item: Expr, common: DataType) -> Expr:
    """An item of a list as the type of all; a whole number at once, as there may be thousands."""
    if isinstance(item, Lit) and item.value is not None and is_integral(item.type) and is_integral(common):
        return Lit(common, False, item.value, item.text)
    return coerced(item, common)


def between(binder: Expressions, node: exp.Between, scope: Scope) -> Expr:
    if is_star(node.this):
        raise unsupported("a star before BETWEEN", span_of(node))
    value = binder.bind(node.this, scope)
    low, high = binder.bind(node.args["low"], scope), binder.bind(node.args["high"], scope)
    span = span_of(node)
    known = known_order(">=", value, low), known_order("<=", value, high)
    if known[0] is known[1] is True or False in known:  # for rows with NULL, too
        raise unsupported("BETWEEN with bounds that no BIGINT reaches", span)
    args = (both_sides(">=", value, low, span), both_sides("<=", value, high, span))
    # a literal before BETWEEN is no literal to Spark, which names it first
    named = Col(value.type, value.nullable, 0, "") if isinstance(value, Lit) else value
    nullable = any(both_sides(s, named, bound, span).nullable for s, bound in ((">=", low), ("<=", high)))
    return Call(BOOLEAN, nullable, "between", args, span=span)


def like(binder: Expressions, node: Node, scope: Scope) -> Expr:
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    pattern = node.expression
    if isinstance(pattern, (exp.Any, exp.All)):
        return like_many(binder, name, node, pattern, scope)
    return _like(binder, name, node.this, pattern, None, node, scope)


def _like(
    binder: Expressions, name: str, value: Node, pattern: Node, escape: str | None, node: Node, scope: Scope
) -> Expr:
    args = [binder.bind(value, scope), binder.bind(pattern, scope)]
    if escape is not None:
        args.append(Lit(STRING, False, escape))
    return called(binder, name, tuple(args), (span_of(value), span_of(pattern)), span_of(node))


def like_many(binder: Expressions, name: str, node: Node, patterns: Node, scope: Scope, negated: bool = False) -> Expr:
    """LIKE ANY and LIKE ALL, `negated` where NOT stands before LIKE."""
    every = isinstance(patterns, exp.All)
    terms = [_like(binder, name, node.this, p, None, node, scope) for p in patterns.this.expressions]
    given = patterns.this.expressions
    constants = all(map(_is_constant, given)) and all(_parsed_type(binder, p, scope) == STRING for p in given)
    if negated:
        terms = [Call(BOOLEAN, t.nullable, "not", (t,)) for t in terms]
    word = "and" if every else "or"
    if not constants:  # to Spark's parser this is no LIKE ANY
        return reduce(lambda a, b: Call(BOOLEAN, a.nullable or b.nullable, word, (a, b), span=span_of(node)), terms)
    shown = ("notlike" if negated else "like") + ("all" if every else "any")
    if len(terms) == 1:
        terms.append(terms[0])
    return Call(BOOLEAN, True, word, tuple(terms), shown, span=span_of(node))


def _is_constant(pattern: Node) -> bool:
    """Whether Spark's parser takes a pattern for a constant: it knows no function yet."""
    return all(isinstance(part, _PARSED) for part in pattern.walk())


def _parsed_type(binder: Expressions, pattern: Node, scope: Scope) -> DataType:
    """The type of a constant to Spark's parser, which converts no operand."""
    first, *others = _merged(pattern)
    if not others:
        return binder.bind(pattern, scope).type if first is pattern else _parsed_type(binder, first, scope)
    types = [_parsed_type(binder, part, scope) for part in (first, *others)]
    if any(t != types[0] for t in types):
        shown = ", ".join(f'"{t.sql}"' for t in types)
        raise UserError(
            "COMPLEX_EXPRESSION_UNSUPPORTED_INPUT.MISMATCHED_TYPES",
            "Cannot process input data types for the expression of a pattern. All input types must be the same "
            f"except nullable, containsNull, valueContainsNull flags, but found the input types [{shown}].",
            span=span_of(pattern),
        )
    return types[0]


def _merged(pattern: Node) -> list[Node]:
    """What of a pattern must be of one type, its own: the pattern itself where that is no question."""
    if isinstance(pattern, exp.DPipe):
        return [pattern.this, pattern.expression]
    if isinstance(pattern, exp.Case):
        default = pattern.args.get("default")
        return [*(branch.args["true"] for branch in pattern.args["ifs"]), *([default] if default is not None else [])]
    return [pattern]


def escape(binder: Expressions, node: exp.Escape, scope: Scope) -> Expr:
    inner = node.this
    name = "ilike" if isinstance(inner, exp.ILike) else "like"
    if isinstance(inner.expression, (exp.Any, exp.All)):
        raise unsupported("LIKE ANY / ALL with ESCAPE", span_of(node))
    character = node.expression.this
    if len(character) != 1:
        raise UserError(
            "INVALID_ESC",
            f"`EscapeChar` should be a string literal of length one, but got '{character}'.",
            span=span_of(node),
        )
    return _like(binder, name, inner.this, inner.expression, character, node, scope)


def rlike(binder: Expressions, node: Node, scope: Scope) -> Expr:
    args = (binder.bind(node.this, scope), binder.bind(node.expression, scope))
    return called(binder, "rlike", args, (span_of(node.this), span_of(node.expression)), span_of(node))
