"""One call of a function with bound arguments, checked against its row of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.errors import Span, UnsupportedError, UserError
from gateway.sql.bind import char_padding
from gateway.sql.bind.binder import Expressions
from gateway.sql.functions import SPARK_ONLY
from gateway.sql.functions.lambdas import ROWS as LAMBDAS
from gateway.sql.typed.catalogue import Catalogue, Function, OpenLambda, Site, bind_call
from gateway.sql.typed.nodes import Agg, Call, Expr
from gateway.sql.typed.walk import children

HIGHER_ORDER = frozenset({row.name for row in LAMBDAS} | {"array_sort"})

_COMPARING = {"equal_null": char_padding.pair, "decode": char_padding.decoded}


def known(binder: Expressions, name: str, span: Span | None) -> Function:
    """The row of a function; raises UNRESOLVED_ROUTINE, which Spark tells before columns that do not exist."""
    row = None if name.startswith("_") else binder.catalogue.get(name.lower())  # those are not for statements
    if row is not None:
        return row
    if name.lower() in SPARK_ONLY:
        raise UnsupportedError("UNSUPPORTED_FUNCTION", f"The function `{name.lower()}` is not supported.", span=span)
    raise UserError(
        "UNRESOLVED_ROUTINE",
        f"Cannot resolve routine `{name}` on search path [`system`.`builtin`, `system`.`session`, "
        f"`{binder.context.catalog}`.`{binder.context.schema}`].",
        span=span,
    )


def called(
    binder: Expressions,
    name: str,
    args: tuple[Expr, ...],
    spans: tuple[Span | None, ...],
    span: Span | None,
    **more: Any,
) -> Expr:
    """The call of the function `name`; `more` is what a `Site` knows of the clauses around it."""
    row = known(binder, name, span)
    if row.name in _COMPARING:
        args = _COMPARING[row.name](binder, args, span)
    site = Site(name, args, binder.context, span, spans, **more)
    if more.get("distinct") and row.kind != "aggregate":
        raise unsupported_syntax(name.lower(), "DISTINCT", span)
    if row.kind == "window" and not site.windowed:
        raise UserError(
            "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE",
            f'Window function "{name.lower()}" requires an OVER clause.',
            span=span,
        )
    if any(isinstance(a, OpenLambda) for a in args) and row.name not in HIGHER_ORDER:
        raise UserError(
            "INVALID_LAMBDA_FUNCTION_CALL.NONHIGHER_ORDER_FUNCTION",
            f"Invalid lambda function call. A lambda function should only be used in a higher order function. "
            f"However, its class is {name.lower()}, which is not a higher order function.",
            span=span,
        )
    if not row.deterministic:
        binder.random = binder.context.clock.asked = True
    bound = bind_call(row, site)
    given = children(replace(bound, where=None)) if isinstance(bound, Agg) else ()
    if binder.random and not site.windowed and any(varies(a, binder.catalogue) for a in given):
        raise UserError(
            "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION",
            f'A non-deterministic expression should not appear in the arguments of the aggregate function "{name}".',
            span=span,
        )
    return bound


def varies(expr: Expr, catalogue: Catalogue) -> bool:
    """Whether `expr` calls a function that is not deterministic."""
    if isinstance(expr, Call):
        row = catalogue.get(expr.fn)
        if row is not None and not row.deterministic:
            return True
    return any(varies(c, catalogue) for c in children(expr))


def unsupported_syntax(name: str, syntax: str, span: Span | None) -> UserError:
    """A clause behind a function that does not take it."""
    message = f"The function `{name}` does not support {syntax}."
    return UserError("INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX", message, span=span)
