"""collect_set by groups, grouped by its values too: each pair of a group and a value is there once, and lists are of these.

The engine (DataFusion 55) keeps a table of values for each group, and of a hundred thousand groups one takes it by the row, in
sixty times the time. What else a group has is put together in two steps, where that gives the same; else all stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.sql.typed import nodes as b
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Agg, Col, Expr, Ids, Rel
from gateway.sql.typed.walk import all_relations
from gateway.sqltypes import BIGINT, VOID

_SET = "collect_set"
_ANEW = frozenset({"min", "max"})  # of the least or largest of parts it is that of all


def with_sets_apart(rel: Rel, ids: Ids | None) -> Rel:
    """`rel` with such groups in two steps; changes it in place."""
    relations = all_relations(rel)
    for at in relations:
        if isinstance(at, b.Aggregate) and at.keys and at.sets is None:
            value = _value(at.aggs)
            if value is not None:
                ids = ids or Ids(1 + max(c.id for r in relations for c in r.columns))
                _split(at, value, ids)
    return rel


def _value(aggs: Sequence[Agg]) -> Expr | None:
    """What all of the sets are of; None if there are none or several, or something else that needs the rows."""
    sets = [a.args[0] for a in aggs if a.fn == _SET]
    if not sets or sets[0].type == VOID:
        return None
    of = key(sets[0])
    for agg in aggs:
        counted = agg.fn == "count" and (not agg.distinct or [key(a) for a in agg.args] == [of])
        if agg.where is not None or agg.order or not (counted or agg.fn in _ANEW or agg.fn == _SET):
            return None
    return sets[0] if all(key(s) == of for s in sets) else None


def _split(at: b.Aggregate, value: Expr, ids: Ids) -> None:
    keys = tuple(Col(k.type, k.nullable, ids.take(), f"key{i}") for i, k in enumerate(at.keys))
    set_of = Col(value.type, value.nullable, ids.take(), "value")
    parts: list[tuple[Col, Agg]] = []
    above: list[Agg] = []
    for agg in at.aggs:
        if agg.fn == _SET:
            above.append(replace(agg, fn="collect_list", args=(set_of,), distinct=False))
        elif agg.distinct and agg.fn == "count":
            above.append(replace(agg, args=(set_of,), distinct=False))
        else:
            part = Col(agg.type, agg.nullable, ids.take(), f"part{len(parts)}")
            parts.append((part, agg))
            total = Agg(BIGINT, False, "sum", (part,)) if agg.fn == "count" else replace(agg, args=(part,))
            above.append(total)
    columns = (*keys, set_of, *(c for c, _ in parts))
    at.input = b.Aggregate(columns, at.input, (*at.keys, value), tuple(a for _, a in parts))
    at.keys, at.aggs = keys, tuple(above)
