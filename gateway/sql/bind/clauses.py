"""Clauses behind a call: FILTER, WITHIN GROUP, IGNORE NULLS and RESPECT NULLS."""

from __future__ import annotations

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.calls import bound_call
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.sites import unsupported_syntax, varies
from gateway.sql.bind.sorting import sort_keys
from gateway.sql.read.tree import span_of
from gateway.sql.typed.nodes import Agg, Expr, SortKey, Window
from gateway.sql.typed.walk import nodes

Node = exp.Expr
_IGNORING_NULLS = frozenset(
    {
        "first",
        "first_value",
        "last",
        "last_value",
        "any_value",
        "nth_value",
        "lag",
        "lead",
        "collect_list",
        "array_agg",
        "collect_set",
    }
)
_WITHIN_GROUP = frozenset({"percentile_cont", "percentile_disc", "mode", "listagg", "string_agg"})


def filtered(binder: Expressions, node: exp.Filter, scope: Scope) -> Expr:
    return wrapped(binder, node, scope, windowed=False)


def wrapped(binder: Expressions, node: Node, scope: Scope, windowed: bool) -> Expr:
    """A call inside FILTER, IGNORE NULLS, WITHIN GROUP."""
    where: Node | None = None
    order: list[SortKey] = []
    ignore = respect = False
    inner = node
    while not isinstance(inner, exp.Anonymous):
        if isinstance(inner, exp.Filter):
            where = inner.expression.this
        elif isinstance(inner, exp.IgnoreNulls):
            ignore = True
        elif isinstance(inner, exp.WithinGroup):
            order = sort_keys(binder, inner.expression.expressions, scope)
        elif isinstance(inner, exp.RespectNulls):
            respect = True
        else:
            raise unsupported(f"{type(inner).__name__} around a call", span_of(inner))
        inner = inner.this
    lower, known = inner.name.lower(), binder.catalogue.get(inner.name.lower()) is not None
    if known and order and lower not in _WITHIN_GROUP:
        raise unsupported_syntax(lower, "WITHIN GROUP (ORDER BY ...)", span_of(node))
    if known and ignore and lower not in _IGNORING_NULLS:
        raise unsupported_syntax(lower, "IGNORE NULLS", span_of(node))
    if respect and lower in ("collect_list", "array_agg", "collect_set"):
        raise unsupported(f"{lower} with RESPECT NULLS", span_of(node))
    bound = bound_call(binder, inner, scope, where=where, order=order, ignore_nulls=ignore, windowed=windowed)
    if (ignore or respect) and isinstance(bound, Agg) and bound.fn in ("first", "last"):
        bound.shown = bound.fn  # the clause makes Spark forget the name first_value
    if where is not None and not isinstance(bound, Agg):
        raise unsupported_syntax(inner.name, "FILTER", span_of(node))
    if where is not None and isinstance(bound, Agg) and bound.where is not None:
        _check_filter(binder, bound.where, span_of(node))
    return bound


def _check_filter(binder: Expressions, condition: Expr, span: Span | None) -> None:
    """Refuse in FILTER what Spark refuses there."""
    kinds: dict[type[Expr], tuple[str, str]] = {
        Agg: ("CONTAINS_AGGREGATE", "without an aggregation"),
        Window: ("CONTAINS_WINDOW_FUNCTION", "without a window function"),
    }
    found = next((kinds[type(e)] for e in nodes(condition) if type(e) in kinds), None)
    if found is None and varies(condition, binder.catalogue):
        found = ("NON_DETERMINISTIC", "that is deterministic")
    if found is not None:
        message = f"The FILTER expression in an aggregate function is invalid. Expected a FILTER expression {found[1]}."
        raise UserError(f"INVALID_AGGREGATE_FILTER.{found[0]}", message, span=span)
