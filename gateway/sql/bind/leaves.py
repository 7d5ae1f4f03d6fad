"""Leaves of an expression: literals and the values of parameters."""

from __future__ import annotations

from sqlglot import exp

from gateway.errors import Span, UserError
from gateway.sql.bind import literals
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.parameters import Given
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.sites import called
from gateway.sql.read.tree import span_of
from gateway.sql.typed.nodes import Expr, Lit
from gateway.sqltypes import BOOLEAN, STRING, VOID

Node = exp.Expr


def literal(binder: Expressions, node: exp.Literal, scope: Scope) -> Expr:
    if node.args["is_string"]:
        return Lit(STRING, False, node.this)
    return literals.number(node.this, span_of(node))


def null(binder: Expressions, node: Node, scope: Scope) -> Expr:
    return Lit(VOID, True, None)


def boolean(binder: Expressions, node: Node, scope: Scope) -> Expr:
    return Lit(BOOLEAN, False, bool(node.this))


def typed_literal(binder: Expressions, node: Node, scope: Scope) -> Expr:
    return literals.typed(node.this, node.args["kind"], binder.context, span_of(node))


def interval(binder: Expressions, node: Node, scope: Scope) -> Expr:
    return literals.interval_parts(node.args["parts"], node.args.get("to"), span_of(node))


def placeholder(binder: Expressions, node: Node, scope: Scope) -> Expr:
    span = span_of(node)
    key: int | str = node.this.lower() if node.this else (span.start if span else -1)
    given = binder.parameters.get(key)
    if given is None:
        name = node.this or "?"
        raise UserError(
            "UNBOUND_SQL_PARAMETER",
            f"Found the unbound parameter: {name}. Please, fix `args` and provide a mapping of the parameter to "
            "either a SQL literal or collection constructor functions.",
            span=span,
        )
    return _given(binder, given, span)


def _given(binder: Expressions, given: Given, span: Span | None) -> Expr:
    if isinstance(given, Lit):
        return given
    items = tuple(_given(binder, item, span) for item in given.items)
    return called(binder, given.function, items, (span,) * len(items), span)
