"""Calls as they are written: DISTINCT, stars, named arguments, and the functions with a syntax of their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from sqlglot import exp

from gateway.errors import Span, UnsupportedError, UserError
from gateway.sql.bind.arguments import positional
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.casts import CAST_FUNCTIONS, cast_to
from gateway.sql.bind.columns import expanded, has_except, is_star
from gateway.sql.bind.lambdas import open_lambda
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.sites import called, known
from gateway.sql.read.tree import span_of
from gateway.sql.typed.nodes import Call, Col, Expr, Lit, SortKey
from gateway.sqltypes import BIGINT, INT, STRING, TINYINT

Node = exp.Expr


def anonymous(binder: Expressions, node: exp.Anonymous, scope: Scope) -> Expr:
    return bound_call(binder, node, scope)


def bound_call(
    binder: Expressions,
    node: exp.Anonymous,
    scope: Scope,
    *,
    where: Node | None = None,
    order: Sequence[SortKey] = (),
    ignore_nulls: bool = False,
    windowed: bool = False,
) -> Expr:
    """A call with the clauses that stand behind it."""
    name, span = node.name, span_of(node)
    lower = name.lower()
    items = list(node.expressions)
    distinct = False
    if items and isinstance(items[0], exp.Distinct):
        distinct = True
        items = list(items[0].expressions)
    if any(map(is_star, items)):
        return _star_call(binder, lower, items, distinct, scope, span, where, windowed)
    if lower in CAST_FUNCTIONS and len(items) == 1 and not distinct:
        arg = binder.bind(items[0], scope)
        return cast_to(arg, CAST_FUNCTIONS[lower], False, span, implicit=True)
    if lower == "struct":
        return _struct(binder, items, distinct, scope, span)
    if lower in ("grouping", "grouping_id"):
        args = tuple(binder.bind(i, scope) for i in items)
        type_ = TINYINT if lower == "grouping" else BIGINT
        return Call(type_, False, lower, args, lower, (), span)
    if any(isinstance(i, exp.Kwarg) for i in items):
        items = positional(binder, name, items, span)
    outputs = scope.outputs if not windowed else None
    row = binder.catalogue.get(lower) if outputs is not None else None
    aggregated = row is not None and row.kind == "aggregate"
    if outputs is not None and aggregated:
        outputs.aggregates, outputs.depth = outputs.aggregates + 1, outputs.depth + 1
    try:
        args = tuple(_argument(binder, i, scope) for i in items)
        condition = binder.condition(where, scope, "FILTER") if where is not None else None
    except UserError as error:
        if error.condition.startswith("UNRESOLVED_COLUMN"):
            with suppress(UnsupportedError):  # Spark has it, and tells the column
                known(binder, name, span)
        raise
    finally:
        if outputs is not None and aggregated:
            outputs.depth -= 1
    return called(
        binder,
        name,
        args,
        tuple(span_of(i) for i in items),
        span,
        distinct=distinct,
        where=condition,
        order=tuple(order),
        ignore_nulls=ignore_nulls,
        windowed=windowed,
    )


def _argument(binder: Expressions, node: Node, scope: Scope) -> Expr:
    if isinstance(node, exp.Lambda):
        return open_lambda(binder, node, scope)
    if isinstance(node, exp.Var):
        return Lit(STRING, False, node.name, node.name)
    return binder.bind(node, scope)


def _star_call(
    binder: Expressions,
    name: str,
    items: list[Node],
    distinct: bool,
    scope: Scope,
    span: Span | None,
    where: Node | None,
    windowed: bool,
) -> Expr:
    condition = binder.condition(where, scope, "FILTER") if where is not None else None
    if scope.outputs is not None and not windowed:
        scope.outputs.aggregates += 1
    alone = name == "count" and len(items) == 1 and not has_except(items[0])
    if alone and not distinct and isinstance(items[0], exp.Star):
        one = Lit(INT, False, 1)
        return called(binder, "count", (one,), (span,), span, where=condition, star=True, windowed=windowed)
    args = expanded(binder, items, scope)
    if (
        alone
        and isinstance(items[0], exp.Column)
        and scope.qualified([p.name for p in items[0].parts[:-1]]) is not None
    ):
        raise UserError(
            "INVALID_USAGE_OF_STAR_WITH_TABLE_IDENTIFIER_IN_COUNT",
            "Invalid usage of '*' with a table name in count().",
            span=span,
        )
    if name == "struct":
        return _struct(binder, items, distinct, scope, span)
    return called(binder, name, tuple(args), (), span, distinct=distinct, where=condition, windowed=windowed)


def _struct(binder: Expressions, items: list[Node], distinct: bool, scope: Scope, span: Span | None) -> Expr:
    members = _members(binder, items, scope)
    return _renamed(called(binder, "named_struct", members, (), span, distinct=distinct), "struct")


def row_value(binder: Expressions, node: exp.Tuple, scope: Scope) -> Expr:
    return called(binder, "named_struct", _members(binder, node.expressions, scope), (), span_of(node))


def _members(binder: Expressions, items: Sequence[Node], scope: Scope) -> tuple[Expr, ...]:
    """Names and values of the fields of struct() or a row, with what stars stand for."""
    members: list[Expr] = []
    for index, item in enumerate(items):
        for value in expanded(binder, [item], scope):
            label = Lit(STRING, False, _own_name(value)) if is_star(item) else _label(item, index)
            members += [label, value]
    return tuple(members)


def extract(binder: Expressions, node: exp.Extract, scope: Scope) -> Expr:
    field = Lit(STRING, False, node.this.name, node.this.name)
    value = binder.bind(node.expression, scope)
    return called(binder, "extract", (field, value), (span_of(node.this), span_of(node.expression)), span_of(node))


def trim(binder: Expressions, node: exp.Trim, scope: Scope) -> Expr:
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim", None: "trim"}[node.args.get("position")]
    source = binder.bind(node.this, scope)
    pattern = node.expression
    args = (binder.bind(pattern, scope), source) if pattern is not None else (source,)
    return called(binder, name, args, (), span_of(node))


def _own_name(arg: Expr) -> str:
    """What a star names one of the columns that it stands for."""
    return arg.name if isinstance(arg, Col) else str(getattr(arg, "shown", ""))


def _label(item: Node, index: int) -> Lit:
    """The name of a field of struct(); `text` is set where it was given."""
    if isinstance(item, exp.Alias):
        return Lit(STRING, False, item.alias, item.alias)
    return Lit(STRING, False, _natural_name(item, index))


def _natural_name(item: Node, index: int) -> str:
    """The name of a field made from an expression without alias: the column's, a key's or field's, else by position."""
    if isinstance(item, exp.Column):
        return str(item.this.name)
    if isinstance(item, exp.Bracket) and item.expressions[0].is_string:
        return str(item.expressions[0].this)
    return str(item.expression.name) if isinstance(item, exp.Dot) else f"col{index + 1}"


def _renamed(call: Expr, shown: str) -> Expr:
    if isinstance(call, Call):
        call.shown = shown
    return call
