"""Subqueries as values: EXISTS, IN and scalars."""

from __future__ import annotations

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.columns import is_star
from gateway.sql.bind.scope import Scope
from gateway.sql.read.tree import span_of
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import least_common_type
from gateway.sql.typed.nodes import Expr, Subquery
from gateway.sql.typed.walk import outer_in_order
from gateway.sqltypes import BOOLEAN, DataType, is_orderable

Node = exp.Expr


def in_query(binder: Expressions, node: exp.In, query: Node, scope: Scope, span: Span | None) -> Expr:
    """``values IN (query)``; its two sides meet in their least common types."""
    values = [binder.bind(v, scope) for v in _left(node.this)]
    plan, inner = binder.subquery(query, scope)
    if len(plan.columns) != len(values):
        raise UserError(
            "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH",
            f"The number of columns in the left hand side of an IN subquery ({len(values)}) does not match the "
            f"number of columns in the output of the subquery ({len(plan.columns)}).",
            span=span,
        )
    casts: list[DataType] = []
    for value, column in zip(values, plan.columns, strict=True):
        common = least_common_type(value.type, column.type)
        if common is None and _same_shape(value.type, column.type):
            raise unsupported("IN over structs whose fields have other names", span)
        if common is None:
            raise UserError(
                "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH",
                f'The data type of "{value.type.sql}" does not match the subquery\'s "{column.type.sql}".',
                span=span,
            )
        if not is_orderable(common):
            raise UserError(
                "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
                f'The `insubquery` does not support ordering on type "{common.sql}".',
                span=span,
            )
        casts.append(common)
    plan = binder.queries.retyped(plan, casts)
    args = tuple(coerced(v, t) for v, t in zip(values, casts, strict=True))
    nullable = any(a.nullable for a in args) or any(c.nullable for c in plan.columns)
    return Subquery(BOOLEAN, nullable, "in", plan, args, outer_in_order(plan, inner.outer_refs), span)


def _left(node: Node) -> list[Node]:
    """The values before IN: those of a row, as which Spark's parser takes ``struct(…)`` too."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "struct" and node.expressions:
        items = [item.this if isinstance(item, exp.Alias) else item for item in node.expressions]
        if not any(isinstance(item, exp.Distinct) or is_star(item) for item in items):
            return items
    return [node]


def _same_shape(one: DataType, other: DataType) -> bool:
    """Whether the types differ in names of fields alone."""
    inside, others = list(one.children()), list(other.children())
    if one.name != other.name or len(inside) != len(others):
        return False
    return all(map(_same_shape, inside, others)) if inside else one == other


def exists(binder: Expressions, node: exp.Exists, scope: Scope) -> Expr:
    plan, inner = binder.subquery(node.this, scope)
    return Subquery(BOOLEAN, False, "exists", plan, (), outer_in_order(plan, inner.outer_refs), span_of(node))


def scalar(binder: Expressions, node: exp.Subquery, scope: Scope) -> Expr:
    plan, inner = binder.subquery(node.this, scope)
    if len(plan.columns) != 1:
        raise UserError(
            "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN",
            f"Scalar subquery must return only one column, but got {len(plan.columns)}.",
            span=span_of(node),
        )
    return Subquery(
        plan.columns[0].type, True, "scalar", plan, (), outer_in_order(plan, inner.outer_refs), span_of(node)
    )
