"""What QUALIFY may read beside GROUP BY: it stands above the groups, and computes none of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.errors import Span, UserError
from gateway.sql.bind.grouping import Grouping
from gateway.sql.bind.scope import unresolved
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Agg, Call, Col, Expr, Subquery, Window
from gateway.sql.typed.walk import children, nodes


def check_qualify(condition: Expr, items: Sequence[Expr], grouping: Grouping | None, span: Span | None) -> None:
    """Raises for an aggregate or a grouping() that is written in QUALIFY, and for a column that is not grouped.

    Args:
        condition: the bound clause, in which the names of `items`, those of the select list, stand for what they are.
        items: what the select list computes.
        grouping: that of the SELECT, if it has one.
        span: where the clause stands.
    """
    keys = {key(k) for k in grouping.keys} if grouping is not None else set()
    # a column is one object wherever it is named
    known = {id(part) for e in items for part in nodes(e) if not isinstance(part, Col)}
    found = list(_written(condition, known, keys))
    if grouping is not None:
        for part, _ in found:
            if isinstance(part, Col) and not part.outer:
                names = [k.name for k in grouping.keys if isinstance(k, Col)]
                raise unresolved((part.name,), names, span)
    for part, in_window in found:
        if isinstance(part, Agg) and not in_window:
            message = f'Aggregate functions are not supported in QUALIFY: "{part.shown or part.fn}".'
            raise UserError("QUALIFY_AGGREGATE_NOT_ALLOWED", message, span=part.span or span)
        if isinstance(part, Agg):
            message = "The query does not include a GROUP BY clause. Add GROUP BY or turn it into the window functions."
            raise UserError("MISSING_GROUP_BY", message, span=part.span or span)
        if isinstance(part, Call):
            message = "grouping()/grouping_id() can only be used with GroupingSets/Cube/Rollup."
            raise UserError("UNSUPPORTED_GROUPING_EXPRESSION", message, span=part.span or span)


def _written(e: Expr, known: set[int], keys: set[Any], in_window: bool = False) -> Iterator[tuple[Expr, bool]]:
    """Columns, aggregates and grouping() of the clause itself, and whether each stands in a window; keys are left out."""
    if id(e) in known or key(e) in keys or isinstance(e, Subquery):
        return
    if isinstance(e, Window):
        parts = children(e.fn) if isinstance(e.fn, Agg) else (e.fn,)
        for part in (*parts, *children(e)[1:]):
            yield from _written(part, known, keys, True)
        return
    if isinstance(e, (Col, Agg)) or (isinstance(e, Call) and e.fn in ("grouping", "grouping_id")):
        yield e, in_window
    if not (isinstance(e, Call) and e.fn in ("grouping", "grouping_id")):
        for part in children(e):
            yield from _written(part, known, keys, in_window)
