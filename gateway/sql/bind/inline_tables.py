"""What may stand in VALUES: expressions that Spark computes while it plans."""

from __future__ import annotations

from gateway.errors import Span, UserError, unsupported
from gateway.sql.typed.catalogue import Catalogue, is_generator, is_steady
from gateway.sql.typed.nodes import Agg, Call, Expr, Lambda, Lit, Subquery, Window
from gateway.sql.typed.walk import nodes

# fmt: off
# What Spark puts other expressions in the place of only when it optimizes: VALUES are computed before.
_REPLACED_LATE = frozenset((
    "between", "nullif", "zeroifnull", "regexp_substr", "elt", "array_compact", "array_sort", "arrays_zip", "map_concat",
    "try_parse_url", "try_url_decode", "assert_true", "raise_error",
))
# fmt: on


def check_cell(cell: Expr, catalogue: Catalogue, span: Span | None) -> None:
    """UserError for an expression that Spark does not compute in VALUES."""
    parts = nodes(cell)
    subqueries = [p.kind for p in parts if isinstance(p, Subquery)]
    if subqueries and "scalar" not in subqueries:
        raise unsupported("a subquery in VALUES", span)
    if subqueries:
        raise UserError(
            "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.SCALAR_SUBQUERY_IN_VALUES",
            "Unsupported subquery expression: Scalar subqueries in the VALUES clause.",
            span=span,
        )
    late = any(isinstance(p, Call) and (p.fn in _REPLACED_LATE or _has_charset(p)) for p in parts)
    later = any(isinstance(p, (Agg, Window, Lambda)) for p in parts)
    if late or later or is_generator(cell, catalogue) or not is_steady(cell, catalogue):
        raise UserError(
            "INVALID_INLINE_TABLE.CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE",
            "Cannot evaluate the expression in an inline table definition.",
            span=span,
        )


def _has_charset(call: Call) -> bool:
    """Whether bytes are read as text, or the other way round, in a character set."""
    if call.fn not in ("decode", "to_binary", "try_to_binary") or len(call.args) != 2:
        return False
    form = call.args[1]
    return call.fn == "decode" or (isinstance(form, Lit) and str(form.value).lower() in ("utf-8", "utf8"))
