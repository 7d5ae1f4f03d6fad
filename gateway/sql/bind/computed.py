"""Constants whose values have to be known while names are bound, and that only the engine knows how to compute."""

from __future__ import annotations

from typing import Protocol

from gateway.errors import Span, UserError
from gateway.sql.typed.nodes import Cast, Col, Expr, Ids, OneRow, Project, Rel
from gateway.sqltypes import BIGINT


class Computing(Protocol):
    """What computes a constant that is not known while names are bound."""

    def computed(self, rel: Rel, ids: Ids) -> int | None:
        """The one value of a query of one row. Raises what it raises, UnsupportedError where nothing can be computed."""


def whole_number(expr: Expr, tables: Computing, ids: Ids, span: Span | None) -> int | None:
    """The BIGINT that a constant expression is cast to. Raises what computing it raises, at `span`."""
    column = Col(BIGINT, True, ids.take(), "value")
    wide = expr if expr.type == BIGINT else Cast(BIGINT, True, expr)
    try:
        return tables.computed(Project((column,), OneRow(()), (wide,)), ids)
    except UserError as error:
        raise error.at(span) from None
