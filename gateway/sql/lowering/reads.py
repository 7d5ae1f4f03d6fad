"""Which columns the parts of a bound query read: what must be computed at all, and what conditions look at."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Rel
from gateway.sql.typed.walk import expressions_of, inputs_of, nodes
from gateway.sqltypes import DataType


def needed_columns(rel: Rel) -> set[int]:
    """The ids of `rel`'s columns and of all columns that they are computed from."""
    needed = {c.id for c in rel.columns}
    while _mark_once(rel, needed) & needed:
        pass
    return needed


def _mark_once(rel: Rel, needed: set[int]) -> set[int]:
    """Marks from the top down; the columns of projections that nobody had asked for when they were met."""
    stack: list[Rel] = [rel]
    seen: set[int] = set()
    skipped: set[int] = set()
    while stack:
        r = stack.pop()
        if id(r) in seen:
            continue
        seen.add(id(r))
        if isinstance(r, b.Project):
            exprs: Sequence[Expr] = [e for c, e in zip(r.columns, r.exprs, strict=True) if c.id in needed]
            skipped.update(c.id for c in r.columns if c.id not in needed)
        else:
            exprs = expressions_of(r)
        for expr in exprs:
            if isinstance(expr, Col):
                needed.add(expr.id)
            else:
                _mark(expr, needed, stack)
        stack.extend(inputs_of(r))
        if isinstance(r, b.SetOp):
            for side in r.inputs:
                needed.update(c.id for c in side.columns)
        elif isinstance(r, b.Distinct):
            needed.update(c.id for c in r.columns)
        elif isinstance(r, b.CteRef):
            needed.update(c.id for c in r.cte.plan.columns)
            stack.append(r.cte.plan)
    return skipped


def column_types(rel: Rel) -> dict[int, DataType]:
    """The types of all columns of `rel` and of what is below it, by their ids."""
    rels: list[Rel] = [rel]
    seen: set[int] = set()
    types: dict[int, DataType] = {}
    for r in rels:  # grows on the way
        if id(r) in seen:
            continue
        seen.add(id(r))
        types.update((c.id, c.type) for c in r.columns)
        rels += [e.plan for expr in expressions_of(r) for e in nodes(expr) if isinstance(e, b.Subquery)]
        rels.extend(inputs_of(r))
        if isinstance(r, b.CteRef):
            rels.append(r.cte.plan)
    return types


_PICKING = (b.Filter, b.Join, b.Aggregate, b.Distinct)


def hands_on(rel: Rel) -> bool:
    """Whether `rel` gives all rows of what it reads, in any order or the first ones in none: nothing picks or groups them."""
    rels: list[Rel] = [rel]
    for r in rels:  # grows on the way
        if isinstance(r, _PICKING) or (isinstance(r, b.SetOp) and not (r.kind == "union" and r.all)):
            return False
        rels.extend(inputs_of(r))
        if isinstance(r, b.CteRef):
            rels.append(r.cte.plan)
    return not (any(isinstance(r, b.Limit) for r in rels) and any(isinstance(r, b.Sort) for r in rels))


def tested_columns(rel: Rel) -> set[int]:
    """The ids of the columns that filters and the conditions of joins read, and of those that such columns are made of."""
    rels: list[Rel] = [rel]
    seen: set[int] = set()
    found: set[int] = set()
    made: list[tuple[int, list[int]]] = []
    for r in rels:  # grows on the way
        if id(r) in seen:
            continue
        seen.add(id(r))
        tests = isinstance(r, (b.Filter, b.Join))
        for expr in expressions_of(r):
            for e in nodes(expr):
                if isinstance(e, Col) and tests:
                    found.add(e.id)
                elif isinstance(e, b.Subquery):
                    rels.append(e.plan)
        made += [(c.id, [e.id for e in nodes(expr) if isinstance(e, Col)]) for c, expr in _made_of(r)]
        rels.extend(inputs_of(r))
        if isinstance(r, b.CteRef):
            rels.append(r.cte.plan)
    before = -1
    while found and len(found) != before:
        before = len(found)
        for column, parts in made:
            if column in found:
                found.update(parts)
    return found


def asked_totals(rel: Rel) -> set[int]:
    """The aggregates without groups (by `id`) that stand below a filter or a join, which is one, too."""
    rels: list[tuple[Rel, bool]] = [(rel, False)]
    seen: set[tuple[int, bool]] = set()
    found: set[int] = set()
    for r, below in rels:  # grows on the way
        if (id(r), below) in seen:
            continue
        seen.add((id(r), below))
        if below and isinstance(r, b.Aggregate) and not r.keys and r.sets is None:
            found.add(id(r))
        rels += [(e.plan, below) for expr in expressions_of(r) for e in nodes(expr) if isinstance(e, b.Subquery)]
        inputs = (r.cte.plan,) if isinstance(r, b.CteRef) else inputs_of(r)
        rels += [(i, below or isinstance(r, (b.Filter, b.Join))) for i in inputs]
    return found


def _made_of(rel: Rel) -> list[tuple[Col, Expr]]:
    """Columns of the relation with the expressions that they are, where those are below a filter of theirs, too."""
    if isinstance(rel, b.Project):
        return list(zip(rel.columns, rel.exprs, strict=True))
    if isinstance(rel, b.Aggregate):
        return list(zip(rel.columns, rel.keys, strict=False))
    if isinstance(rel, b.SetOp):
        return [pair for side in rel.inputs for pair in zip(rel.columns, side.columns, strict=True)]
    return list(zip(rel.columns, rel.cte.plan.columns, strict=True)) if isinstance(rel, b.CteRef) else []


def _mark(expr: Expr, needed: set[int], stack: list[Rel]) -> None:
    for e in nodes(expr):
        if isinstance(e, Col):
            needed.add(e.id)
        elif isinstance(e, b.Subquery):
            stack.append(e.plan)
            needed.update(c.id for c in e.plan.columns)
