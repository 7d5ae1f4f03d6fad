"""Keys that are NULL where an outer join has found nothing, hidden from what the engine knows of them.

Of a column that is one constant below an outer join, by a filter or as it is written, the engine thinks that it is one above,
too, and leaves it out of sorts (DataFusion 55, EquivalenceGroup::join): rows with NULL are then among the others. Remove when
it keeps constants of the side alone that an outer join keeps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gateway.sql.lowering.row_keys import Key, ordered_by, rekeyed
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Agg, Call, Col, Expr, Rel
from gateway.sql.typed.walk import all_relations, has_columns, nodes
from gateway.sqltypes import VOID


def with_unmatched_keys(rel: Rel) -> Rel:
    """`rel` with such keys so that no constant is seen in them; changes it in place."""
    relations = all_relations(rel)
    if any(isinstance(r, b.Join) and r.kind in _LOST for r in relations) and any(map(_pins, relations)):
        key = partial(_key, _unmatched(relations))
        rekeyed(rel, key, lambda agg: _aggregate(agg, key))
    return rel


#: Which sides of a join may have no row.
_LOST = {"left": ("right",), "right": ("left",), "full": ("left", "right")}


def _pins(rel: Rel) -> bool:
    """Whether it may make a constant of a column."""
    if isinstance(rel, b.Project):
        return not all(map(has_columns, rel.exprs))
    return isinstance(rel, (b.Filter, b.Join)) and (isinstance(rel, b.Filter) or rel.condition is not None)


def _unmatched(relations: list[Rel]) -> set[int]:
    """The columns that outer joins may make NULL, and what is made of them, by their ids."""
    found = {
        c.id
        for r in relations
        if isinstance(r, b.Join)
        for side in _LOST.get(r.kind, ())
        for c in getattr(r, side).columns
    }
    before = -1
    while len(found) != before:
        before = len(found)
        for r in relations:
            found.update(_handed_on(r, found))
    return found


def _handed_on(rel: Rel, known: set[int]) -> list[int]:
    """The columns of a relation that are made of known ones."""
    if isinstance(rel, b.Project):
        return [c.id for c, e in zip(rel.columns, rel.exprs, strict=True) if _reads(e, known)]
    if isinstance(rel, b.CteRef):
        return [c.id for c, below in zip(rel.columns, rel.cte.plan.columns, strict=True) if below.id in known]
    if isinstance(rel, b.SetOp):
        return [c.id for i, c in enumerate(rel.columns) if any(side.columns[i].id in known for side in rel.inputs)]
    return []


def _reads(e: Expr, known: set[int]) -> bool:
    return any(isinstance(part, Col) and part.id in known for part in nodes(e))


def _key(unmatched: set[int], e: Expr) -> Expr:
    return Call(e.type, True, "_unmatched", (e,)) if e.type != VOID and _reads(e, unmatched) else e


def _aggregate(agg: Agg, key: Key) -> Agg:
    """DISTINCT is another GROUP BY to the engine."""
    if not agg.distinct and not agg.order:
        return agg
    return replace(agg, args=tuple(map(key, agg.args)) if agg.distinct else agg.args, order=ordered_by(agg.order, key))
