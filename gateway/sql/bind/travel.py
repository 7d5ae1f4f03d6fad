"""Time travel: the version or the moment that a relation is read at, or a table restored to.

Source: Spark's TimeTravelSpec: what a moment may be made of, and that it is cast without ANSI.
"""

from __future__ import annotations

from typing import Any, Protocol

from sqlglot import exp

from gateway.errors import Span, UserError
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.computed import Computing, whole_number
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.sites import called
from gateway.sql.functions.fold import fold
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import Catalogue, Context, is_generator, is_steady
from gateway.sql.typed.coerce import can_cast
from gateway.sql.typed.nodes import Agg, Cast, Expr, Ids, Window
from gateway.sql.typed.walk import contains, nodes
from gateway.sqltypes import TIMESTAMP, is_integral

_CONDITION = "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"
_MICROS = 1_000_000


class Travelling(Protocol):
    """What of a binder moments need."""

    @property
    def catalogue(self) -> Catalogue: ...
    @property
    def context(self) -> Context: ...
    @property
    def tables(self) -> Computing: ...
    @property
    def ids(self) -> Ids: ...
    @property
    def expressions(self) -> Expressions: ...


def version_of(version: exp.Expr, binder: Travelling) -> tuple[str, Any]:
    """("version", int) or ("timestamp", microseconds) of ``VERSION | TIMESTAMP AS OF …``, which is a constant."""
    if version.this == "VERSION":
        text = version.expression.name
        try:
            return ("version", int(text))
        except ValueError:
            told = f"{text!r} is not a version."
            raise UserError("INVALID_TIME_TRAVEL_SPEC", told, span=span_of(version)) from None
    return ("timestamp", moment_of(version.expression, binder, span_of(version)))


def moment_of(tree: exp.Expr, binder: Travelling, span: Span | None) -> int:
    """The microseconds of a constant expression. Raises UserError as Spark does, and what the expression raises."""
    expr = _bound(tree, binder)
    if not can_cast(expr.type, TIMESTAMP) or any(is_generator(part, binder.catalogue) for part in nodes(expr)):
        raise _invalid("INPUT", 'Cannot be cast to the "TIMESTAMP" type.', span)
    if contains(expr, Agg) or contains(expr, Window):
        raise _invalid("UNEVALUABLE", "Must be evaluable.", span)
    if not is_steady(expr, binder.catalogue):
        raise _invalid("NON_DETERMINISTIC", "Must be deterministic.", span)
    micros = _value(expr, binder, span)
    if micros is None:
        raise _invalid("INPUT", 'Cannot be cast to the "TIMESTAMP" type.', span)
    return micros


def _bound(tree: exp.Expr, binder: Travelling) -> Expr:
    try:
        return binder.expressions.bind(tree, Scope())
    except UserError as error:
        if not error.condition.startswith("UNRESOLVED_COLUMN") or tree.find(exp.Query) is not None:
            raise
        text = "Invalid time travel spec: timestamp expression cannot refer to any columns."
        raise UserError("_LEGACY_ERROR_TEMP_0056", text, span=error.span) from None


def _value(expr: Expr, binder: Travelling, span: Span | None) -> int | None:
    known = fold(expr, binder.context)
    if known is not None and is_integral(known.type):
        return None if known.value is None else known.value * _MICROS
    if known is not None:
        known = known if known.type == TIMESTAMP else fold(Cast(TIMESTAMP, True, known), binder.context)
    if known is not None:
        value: int | None = known.value
        return value
    moment = expr if expr.type == TIMESTAMP else Cast(TIMESTAMP, True, expr, is_try=True)
    micros = called(binder.expressions, "unix_micros", (moment,), (), span)
    return whole_number(micros, binder.tables, binder.ids, span)


def _invalid(kind: str, text: str, span: Span | None) -> UserError:
    return UserError(f"{_CONDITION}.{kind}", f"The time travel timestamp expression is invalid. {text}", span=span)
