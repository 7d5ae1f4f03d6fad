"""Counts of rows that are known before any is read: by a table's log, or by what a query is made of."""

from __future__ import annotations

from math import inf

from gateway.sql.lowering.planned_rows import is_local
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Lit, Project, Rel
from gateway.sql.typed.walk import all_relations


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


def without_passed_rows(rel: Rel, limited: bool = False) -> Rel:
    """`rel` with LIMIT 0 for an OFFSET behind all rows there can be: as Spark, nothing is computed then.

    With a limit beside it Spark learns that only once it has computed constants; written rows are computed all the same.
    """
    for at in all_relations(rel):
        if not isinstance(at, b.Limit) or not at.offset or (at.limit is not None) != limited:
            continue
        if not is_local(at) and _most_rows(at.input) <= at.offset:
            at.limit, at.offset = 0, 0
    return rel


def _most_rows(rel: Rel) -> float:
    """How many rows there are at most, as far as Spark knows it from the query alone."""
    match rel:
        case b.OneRow():
            return 1
        case b.Values():
            return len(rel.rows)
        case b.Range():
            return len(range(rel.start, rel.stop, rel.step))
        case b.Aggregate() if rel.sets is not None:
            return inf
        case b.Aggregate() if not rel.keys:
            return 1
        case b.Limit():
            rest = max(0, _most_rows(rel.input) - rel.offset)
            return rest if rel.limit is None else min(rest, rel.limit)
        case b.Join() if not rel.lateral:
            return _most_joined(rel.kind, _most_rows(rel.left), _most_rows(rel.right))
        case b.SetOp() if rel.kind == "union" or not rel.all:  # the others repeat rows
            counts = list(map(_most_rows, rel.inputs))
            return sum(counts) if rel.kind == "union" else min(counts) if rel.kind == "intersect" else counts[0]
        case b.CteRef():
            return _most_rows(rel.cte.plan)
        case b.Project() | b.Filter() | b.Sort() | b.Distinct() | b.Aggregate() | b.WindowRel():
            return _most_rows(rel.input)
        case _:
            return inf


def _most_joined(kind: str, left: float, right: float) -> float:
    if kind in ("semi", "anti"):
        return left
    pairs = 0 if 0 in (left, right) else left * right
    return max(pairs, {"left": left, "right": right, "full": left + right}.get(kind, 0))
