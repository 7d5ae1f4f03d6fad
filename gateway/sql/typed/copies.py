"""A bound relation once more, under other column ids, so that both may stand in one statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from gateway.errors import ResourceError
from gateway.sql.typed.nodes import Col, CteRef, Expr, Ids, Project, Rel, SortKey, Subquery, With
from gateway.sql.typed.walk import expressions_of, inputs_of, nodes

_MOST_COPIES = 10_000


def copied(rel: Rel, ids: Ids) -> tuple[Rel, Mapping[int, int]]:
    """`rel` with a new id for each column that it makes, and the new ids by the old ones; columns of others keep theirs.

    Raises ResourceError STATEMENT_TOO_COMPLEX: a copy may hold what is copied again.
    """
    known = {i: ids.take() for i in sorted(_made(rel))}
    ids.copies += len(known)
    if ids.copies > _MOST_COPIES:
        text = f"The subqueries lie so deep in each other that {_MOST_COPIES} columns are computed more than once."
        raise ResourceError("STATEMENT_TOO_COMPLEX", text)
    found: Rel = _copy(rel, known)
    return found, known


def with_inlined(rel: Rel, ids: Ids) -> Rel:
    """`rel` with the common table expressions that refer to an enclosing query in the place of their names; changes it in
    place."""
    top = _inlined(rel, ids)
    stack, seen = [top], set()
    while stack:
        below = stack.pop()
        if id(below) in seen:
            continue
        seen.add(id(below))
        for name in ("input", "left", "right", "inputs"):
            inner = getattr(below, name, None)
            if isinstance(inner, Rel):
                setattr(below, name, _inlined(inner, ids))
            elif inner is not None:
                setattr(below, name, tuple(_inlined(side, ids) for side in inner))
        for part in (n for e in expressions_of(below) for n in nodes(e) if isinstance(n, Subquery)):
            part.plan = _inlined(part.plan, ids)
            stack.append(part.plan)
        if isinstance(below, CteRef):
            below.cte.plan = _inlined(below.cte.plan, ids)
            stack.append(below.cte.plan)
        stack += inputs_of(below)
    return top


def _inlined(rel: Rel, ids: Ids) -> Rel:
    while isinstance(rel, With) or (isinstance(rel, CteRef) and rel.cte.outer):
        if isinstance(rel, With):
            rel = rel.input
        else:
            plan, _ = copied(rel.cte.plan, ids)
            rel = Project(rel.columns, plan, plan.columns)
    return rel


def _made(rel: Rel) -> set[int]:
    """The ids of all columns that `rel` and what is below it make, those of subqueries included."""
    found: set[int] = set()
    stack = [rel]
    while stack:
        below = stack.pop()
        found.update(c.id for c in below.columns)
        stack += inputs_of(below)
        stack += [n.plan for e in expressions_of(below) for n in nodes(e) if isinstance(n, Subquery)]
    return found


def _copy(value: Any, known: Mapping[int, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_copy(v, known) for v in value)
    if isinstance(value, Col):
        return replace(value, id=known.get(value.id, value.id))
    if isinstance(value, (Rel, Expr, SortKey)):
        return replace(value, **{f.name: _copy(getattr(value, f.name), known) for f in fields(value) if f.init})
    return value
