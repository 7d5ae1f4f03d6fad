"""How large a query is once its common table expressions are written out: what no engine plans in a minute is refused at once.

The engine puts the query of a WITH in each place that names it, so that 20 lines, each of which joins the one before with
itself, are a million joins; and it takes twice as long for each EXISTS or IN inside of another. The bounds lie where planning
takes more than the minute that a statement has for it, of EXISTS and IN where it takes some seconds: nobody writes so many.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import ResourceError
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Rel, Subquery
from gateway.sql.typed.walk import expressions_of, inputs_of, nodes

MOST_JOINS = 4_000
MOST_RELATIONS = 60_000
MOST_NESTED = 20


@dataclass(frozen=True, slots=True)
class Extent:
    """Relations and joins, and how deep conditions that ask other queries lie in each other."""

    relations: int
    joins: int
    nested: int


def check_extent(rel: Rel) -> None:
    """Raise ResourceError STATEMENT_TOO_COMPLEX for a query that could not be planned in time."""
    extent = extent_of(rel)
    for found, most, what in (
        (extent.joins, MOST_JOINS, "joins"),
        (extent.relations, MOST_RELATIONS, "relations"),
    ):
        if found > most:
            text = f"The statement has {_told(found)} {what} once its WITH is written out, and may have {most}."
            raise ResourceError("STATEMENT_TOO_COMPLEX", text)
    if extent.nested > MOST_NESTED:
        text = f"EXISTS and IN lie {extent.nested} deep in each other, and may do so {MOST_NESTED} deep."
        raise ResourceError("STATEMENT_TOO_COMPLEX", text)


def _told(count: int) -> str:
    return str(count) if count < 1_000_000 else "millions of"


def extent_of(rel: Rel) -> Extent:
    """The extent of a query; each relation is looked at once, however often it is written out."""
    known: dict[int, Extent] = {}
    stack: list[tuple[Rel, list[tuple[Rel, bool]] | None]] = [(rel, None)]
    while stack:
        at, below = stack.pop()
        if id(at) in known:
            continue
        if below is None:
            below = _below(at)
            stack.append((at, below))
            stack += [(each, None) for each, _ in below]
            continue
        parts = [(known[id(each)], nests) for each, nests in below]
        known[id(at)] = Extent(
            1 + sum(part.relations for part, _ in parts),
            isinstance(at, b.Join) + sum(part.joins for part, _ in parts),
            max((part.nested + nests for part, nests in parts), default=0),
        )
    return known[id(rel)]


def _below(rel: Rel) -> list[tuple[Rel, bool]]:
    """What a relation is made of, and whether it is a query that a condition asks."""
    found = [(each, False) for each in inputs_of(rel)]
    if isinstance(rel, b.CteRef):
        found.append((rel.cte.plan, False))
    for expr in expressions_of(rel):
        found += [(part.plan, part.kind != "scalar") for part in nodes(expr) if isinstance(part, Subquery)]
    return found
