"""Keys that are NULL where an outer join has found nothing, hidden from what the engine knows of them.

Of a column that is one constant below an outer join, by a filter, as it is written, as an aggregate of all rows or by the one
partition that is read, the engine thinks that it is one above, too, and leaves it out of sorts (DataFusion 55,
EquivalenceGroup::join): rows with NULL are then among the others.
Remove when it keeps constants of the side alone that an outer join keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from gateway.sql.lowering.row_keys import HIDDEN, Key, ordered_by, rekeyed
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Agg, Call, Col, Expr, Rel
from gateway.sql.typed.walk import all_relations, nodes
from gateway.sqltypes import VOID

#: Whether an expression is made of known columns.
Made = Callable[[Expr, set[int]], bool]


def with_unmatched_keys(rel: Rel) -> Rel:
    """`rel` with such keys so that no constant is seen in them; changes it in place."""
    relations = all_relations(rel)
    if any(isinstance(r, b.Join) and r.kind in _LOST for r in relations):
        lost = _closed(_lost_columns(relations), relations, _made_of_some)
        key = partial(_key, lost & _closed(_pinned_columns(relations), relations, _made_of_all))
        rekeyed(rel, key, lambda agg: _aggregate(agg, key))
    return rel


#: Which sides of a join may have no row.
_LOST = {"left": ("right",), "right": ("left",), "full": ("left", "right")}


def _lost_columns(relations: list[Rel]) -> set[int]:
    """The columns that outer joins may make NULL, by their ids."""
    return {
        c.id
        for r in relations
        if isinstance(r, b.Join)
        for side in _LOST.get(r.kind, ())
        for c in getattr(r, side).columns
    }


def _pinned_columns(relations: list[Rel]) -> set[int]:
    """The columns that a condition may leave one value, which are all that one reads; those of a single row, of partitions."""
    conditions = [r.condition for r in relations if isinstance(r, (b.Filter, b.Join)) and r.condition is not None]
    totals = ({c.id for c in r.columns} for r in relations if isinstance(r, b.Aggregate) and not r.keys)
    partitions = (
        {c.id for c, source in zip(r.columns, r.sources, strict=True) if source in r.table.partition_columns}
        for r in relations
        if isinstance(r, b.Scan)
    )
    return set().union(*map(_read, conditions), *totals, *partitions)


def _closed(known: set[int], relations: list[Rel], is_made: Made) -> set[int]:
    """Known columns, and what is made of them."""
    before = -1
    while len(known) != before:
        before = len(known)
        for r in relations:
            known.update(_handed_on(r, known, is_made))
    return known


def _handed_on(rel: Rel, known: set[int], is_made: Made) -> Iterable[int]:
    """The columns of a relation that are made of known ones."""
    if isinstance(rel, b.Project):
        return [c.id for c, e in zip(rel.columns, rel.exprs, strict=True) if is_made(e, known)]
    if isinstance(rel, b.Aggregate):
        return [c.id for c, e in zip(rel.columns, rel.keys, strict=False) if is_made(e, known)]
    if isinstance(rel, b.CteRef):
        return [c.id for c, below in zip(rel.columns, rel.cte.plan.columns, strict=True) if below.id in known]
    if isinstance(rel, b.SetOp):
        return [c.id for i, c in enumerate(rel.columns) if any(side.columns[i].id in known for side in rel.inputs)]
    return ()


def _made_of_some(e: Expr, known: set[int]) -> bool:
    return not known.isdisjoint(_read(e))


def _made_of_all(e: Expr, known: set[int]) -> bool:
    """Whether it is one value if each of the known columns is."""
    return _read(e) <= known


def _read(e: Expr) -> set[int]:
    return {part.id for part in nodes(e) if isinstance(part, Col)}


def _key(hidden: set[int], e: Expr) -> Expr:
    return Call(e.type, True, HIDDEN, (e,)) if e.type != VOID and _made_of_some(e, hidden) else e


def _aggregate(agg: Agg, key: Key) -> Agg:
    """DISTINCT is another GROUP BY to the engine."""
    if not agg.distinct and not agg.order:
        return agg
    return replace(agg, args=tuple(map(key, agg.args)) if agg.distinct else agg.args, order=ordered_by(agg.order, key))
