"""Counts of rows that a table's log knows: no file is read for them."""

from __future__ import annotations

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Lit, Project, Rel


def counted(rel: Rel) -> Rel:
    """Bare ``count(*)`` over a whole table whose row count is known from its log, as that constant."""
    if isinstance(rel, Project) and isinstance(rel.input, b.Aggregate):
        aggregate = rel.input
        if (
            not aggregate.keys
            and aggregate.sets is None
            and isinstance(aggregate.input, b.Scan)
            and aggregate.input.table.num_rows is not None
            and all(_counts_rows(a) for a in aggregate.aggs)
        ):
            count = aggregate.input.table.num_rows
            exprs = tuple(b.Lit(c.type, False, count) for c in aggregate.columns)
            rel.input = Project(aggregate.columns, b.OneRow(()), exprs)
    return rel


def _counts_rows(agg: b.Agg) -> bool:
    return (
        agg.fn == "count"
        and not agg.distinct
        and agg.where is None
        and len(agg.args) == 1
        and isinstance(agg.args[0], Lit)
        and agg.args[0].value is not None
    )
