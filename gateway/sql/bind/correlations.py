"""Where a subquery may refer to columns of the query around it: what Spark's analysis refuses of it, by its conditions."""

from __future__ import annotations

from collections.abc import Container, Iterable

from gateway.errors import Span, UserError, unsupported
from gateway.sql.typed.nodes import (
    Aggregate,
    Col,
    CteRef,
    Expr,
    Filter,
    Generate,
    Join,
    OneRow,
    Project,
    Rel,
    Subquery,
    WindowRel,
    With,
)
from gateway.sql.typed.walk import children, conjuncts_of, expressions_of, has_columns, inputs_of, nodes

_CATEGORY = "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY"
#: The sides of a join that may read columns of the enclosing query: those that are never filled with NULL.
_OPEN_SIDES = {
    "inner": (True, True),
    "cross": (True, True),
    "left": (True, False),
    "semi": (True, False),
    "anti": (True, False),
    "right": (False, True),
    "full": (False, False),
}


def check_correlation(plan: Rel, outer: Container[int], span: Span | None) -> None:
    """Raises for a reference to columns `outer` where no relation of a subquery may have one."""
    stack: list[tuple[Rel, bool]] = [(plan, True)]
    seen: set[tuple[int, bool]] = set()  # a common table expression is reached by each of its names
    while stack:
        rel, is_open = stack.pop()
        if (id(rel), is_open) in seen:
            continue
        seen.add((id(rel), is_open))
        if _reads(expressions_of(rel), outer):
            if not is_open:
                if isinstance(rel, Filter) and not all(map(has_columns, conjuncts_of(rel.condition))):
                    # which Spark's optimizer may find to be false, and the rest of the filter needless
                    raise unsupported("a constant beside a column of the outer query at this place", span)
                raise UserError(
                    f"{_CATEGORY}.ACCESSING_OUTER_QUERY_COLUMN_IS_NOT_ALLOWED",
                    "Unsupported subquery expression: a column of the outer query is not allowed at this place.",
                    span=span,
                )
            if not _may_read(rel):
                if isinstance(rel, WindowRel) and not _is_window_of(rel, outer):
                    raise unsupported("a column of the outer query in a window", span)
                raise misplaced(span)
        stack += _below(rel, is_open)


def misplaced(span: Span | None) -> UserError:
    """The error of a column of the outer query in SELECT, GROUP BY or ORDER BY over groups, in a window or a generator."""
    message = (
        "Unsupported subquery expression: columns of the outer query are not supported outside of WHERE and HAVING."
    )
    return UserError(f"{_CATEGORY}.CORRELATED_REFERENCE", message, span=span)


def mixed(span: Span | None) -> UserError:
    """The error of an aggregate over columns of both queries."""
    message = "Unsupported subquery expression: an aggregate function reads columns of the outer query and of its own."
    return UserError(f"{_CATEGORY}.AGGREGATE_FUNCTION_MIXED_OUTER_LOCAL_REFERENCES", message, span=span)


def lost_in_sets(span: Span | None) -> UserError:
    """The error of a SELECT without FROM in HAVING that reads a key of grouping sets, which Spark has made other columns of."""
    message = "Unsupported subquery expression: a correlated outer name reference was not found in the enclosing query."
    return UserError(f"{_CATEGORY}.CORRELATED_COLUMN_NOT_FOUND", message, span=span)


def check_existence(expr: Expr, span: Span | None) -> None:
    """Raises for IN or EXISTS in what a sort or a generator computes."""
    if any(isinstance(part, Subquery) and part.kind != "scalar" for part in nodes(expr)):
        message = (
            "Unsupported subquery expression: IN and EXISTS are taken in filters, joins, groups, windows and SELECT."
        )
        raise UserError(f"{_CATEGORY}.UNSUPPORTED_IN_EXISTS_SUBQUERY", message, span=span)


def _reads(exprs: Iterable[Expr], outer: Container[int]) -> bool:
    return any(isinstance(part, Col) and part.outer and part.id in outer for e in exprs for part in nodes(e))


def _may_read(rel: Rel) -> bool:
    if isinstance(rel, Generate):
        return isinstance(rel.input, OneRow)
    return isinstance(rel, (Filter, Project)) or (isinstance(rel, Join) and not rel.lateral)


def _is_window_of(rel: WindowRel, outer: Container[int]) -> bool:
    """Whether an operand or a key of a window is such a column as it is; all others Spark computes before, where one may be."""
    parts = (p for w in rel.windows for p in (*children(w.fn), *w.partition, *(k.expr for k in w.order)))
    return any(isinstance(p, Col) and p.id in outer for p in parts)


def _below(rel: Rel, is_open: bool) -> list[tuple[Rel, bool]]:
    if isinstance(rel, Join):
        sides = (True, False) if rel.lateral else _OPEN_SIDES[rel.kind]
        below = [(rel.left, is_open and sides[0])]
        # what a LATERAL subquery reads is the relations before it
        return below if rel.lateral else [*below, (rel.right, is_open and sides[1])]
    if isinstance(rel, CteRef):
        return [(rel.cte.plan, is_open)] if rel.cte.outer else []
    if isinstance(rel, With):
        return [(inner, is_open) for inner in (*(cte.plan for cte in rel.ctes), rel.input)]
    copied = isinstance(rel, Aggregate) and rel.sets is not None  # grouping sets are made of copies of the rows
    return [(inner, is_open and not copied) for inner in inputs_of(rel)]
