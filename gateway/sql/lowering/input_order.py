"""Rows that a query below has ordered, for what takes them as they come.

Spark hands rows on in the order of the last ORDER BY: `first(x)` of a sorted view is its first row's, and its rows stay in
order behind WHERE and LATERAL VIEW. The engine keeps no order below a filter, a generator, a query of FROM or an aggregate:
behind the former rows are ordered again, and to an aggregate that order becomes its own. Windows without an order of theirs
have the rows of each partition as they come, sorted below or not: by their numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from gateway.sql.lowering.correlation import numbers
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Catalogue, is_steady
from gateway.sql.typed.copies import copied
from gateway.sql.typed.keys import key as structural
from gateway.sql.typed.nodes import Agg, Call, Col, Expr, Ids, Lit, Rel, SortKey, Window
from gateway.sql.typed.walk import all_expressions, all_relations, nodes
from gateway.sqltypes import BIGINT, INT

_AS_THEY_COME = frozenset((
    "first", "first_value", "last", "last_value", "any_value", "collect_list", "array_agg", "listagg", "string_agg",
))  # fmt: skip

_BY_PLACE = frozenset({"row_number", "ntile", "lag", "lead"})


def with_input_order(rel: Rel, ids: Ids | None, catalogue: Catalogue) -> Rel:
    """`rel` with its rows, those of LIMITs and of such aggregates and windows in the order of the sort below, in place."""
    relations = all_relations(rel)
    if not any(isinstance(r, b.Sort) or _has_open(r, catalogue) for r in relations):
        return rel
    orders = _Orders(ids or Ids(1 + max(c.id for r in relations for c in r.columns)), catalogue)
    orders.settle(rel)
    return orders.again(rel)


def is_in_order(rel: Rel, catalogue: Catalogue) -> bool:
    """Whether the rows of a statement, or those that a LIMIT, an aggregate or a window takes as they come, are in an order that
    they have had before something else is computed of them."""
    taken = (at if isinstance(at, b.Limit) else _taken(at, catalogue) for at in all_relations(rel))
    return _is_handed_on(rel) or any(at is not None and _is_handed_on(at) for at in taken)


def _taken(rel: Rel, catalogue: Catalogue) -> Rel | None:
    """What an aggregate or a window reads whose value is that of rows as they come; None for everything else."""
    if isinstance(rel, b.Aggregate):
        return rel.input if any(map(_asks, rel.aggs)) else None
    return rel.input if _has_open(rel, catalogue) or _has_even(rel) else None


def _is_handed_on(rel: Rel) -> bool:
    """Whether rows are in the order of a sort, or of a window over all rows, that is not the last step."""
    is_last = True
    while not isinstance(rel, b.Sort):
        if isinstance(rel, b.WindowRel):
            return all(w.order and not w.partition for w in rel.windows)
        if not isinstance(rel, (b.Project, b.Filter, b.CteRef, b.Generate, b.Limit)):
            return False
        computes = not isinstance(rel, b.Project) or not all(isinstance(e, Col) for e in rel.exprs)
        is_last = is_last and (isinstance(rel, b.Limit) or not computes)
        rel = rel.cte.plan if isinstance(rel, b.CteRef) else rel.input
    return not is_last


@dataclass(frozen=True, slots=True)
class _Orders:
    """One statement's: `ids` for the columns that are added, and the common table expressions that have been looked at."""

    ids: Ids
    catalogue: Catalogue
    settled: set[int] = field(default_factory=set)

    def settle(self, rel: Rel) -> None:
        """Give the LIMITs and aggregates in `rel` their order; what has it already stays as it is."""
        for at in all_relations(rel):
            if isinstance(at, b.Aggregate) and any(map(_asks, at.aggs)) and self._is_ordered(at.input):
                at.input, keys = self._ordered(at.input)
                at.aggs = tuple(replace(a, order=keys) if _asks(a) else a for a in at.aggs)
            elif _has_open(at, self.catalogue) or (_has_even(at) and self._is_ordered(at.input)):
                self._number(at)
            elif isinstance(at, b.Limit):
                at.input = self.again(at.input)

    def _number(self, at: b.WindowRel) -> None:
        """Give windows without an order, or by constants alone, that of their rows, which are numbered."""
        below, keys = self._ordered(at.input) if self._is_ordered(at.input) else (at.input, ())
        number = Col(INT, False, self.ids.take(), "order")
        own = at.columns[len(at.columns) - len(at.windows) :]
        at.input = b.WindowRel((*below.columns, number), below, (replace(numbers(), order=keys),))
        at.columns = (*at.input.columns, *own)
        key = SortKey(number, False, True)
        free = [_is_open(w, self.catalogue) or _is_even(w) for w in at.windows]
        at.windows = tuple(replace(w, order=(key,)) if f else w for w, f in zip(at.windows, free, strict=True))

    def again(self, rel: Rel) -> Rel:
        """The relation ordered again, where something stands between it and the sort that orders it."""
        above = self._above_sort(rel)
        # One projection is written together with the sort below it; behind two that is a query of FROM, without an order.
        if not any(isinstance(r, (b.Filter, b.CteRef, b.Generate)) for r in above) and len(above) < 2:
            return rel
        below, keys = self._ordered(rel)
        columns = tuple(rel.columns)
        return b.Project(columns, b.Sort(below.columns, below, keys), columns)

    def _above_sort(self, rel: Rel) -> list[Rel]:
        """What hands on the order of a sort below it; nothing without one, or where a name is of what differs each time."""
        found: list[Rel] = []
        while isinstance(rel, (b.Project, b.Filter, b.CteRef, b.Generate)):
            found.append(rel)
            if isinstance(rel, b.CteRef) and not all(
                is_steady(e, self.catalogue) for e in all_expressions(rel.cte.plan)
            ):
                return []
            rel = rel.cte.plan if isinstance(rel, b.CteRef) else rel.input
        return found if self._gives_order(rel) else []

    def _gives_order(self, rel: Rel) -> bool:
        """Whether it is a sort, or the LIMIT of what is ordered: of a sort by a column that it does not show, for one."""
        return _sort_of(rel) is not None or (isinstance(rel, b.Limit) and self._is_ordered(rel.input))

    def _is_ordered(self, rel: Rel) -> bool:
        return bool(self._above_sort(rel)) or self._gives_order(rel)

    def _ordered(self, rel: Rel) -> tuple[Rel, tuple[SortKey, ...]]:
        """The relation with what it is ordered by among its columns, and the keys over these."""
        if isinstance(rel, b.CteRef):  # in the place of its name, as Spark does: others use it without the keys
            if rel.cte.id not in self.settled:  # before it is copied, and once
                self.settled.add(rel.cte.id)
                self.settle(rel.cte.plan)
            plan, _ = copied(rel.cte.plan, self.ids)
            return self._ordered(b.Project(rel.columns, plan, tuple(plan.columns)))
        if isinstance(rel, b.Filter):
            below, keys = self._ordered(rel.input)
            return replace(rel, columns=below.columns, input=below), keys
        if isinstance(rel, b.Project):
            below, keys = self._ordered(rel.input)
            return _with_keys(replace(rel, input=below), rel.exprs, keys, self.ids)
        if isinstance(rel, b.Generate):
            return self._generated(rel)
        sort, columns = _sort_of(rel), tuple(rel.columns)
        if sort is None:
            assert isinstance(rel, b.Limit)
            return self._limited(rel)
        return _with_keys(b.Project(columns, rel, columns), columns, _deciding(sort), self.ids)

    def _limited(self, rel: b.Limit) -> tuple[Rel, tuple[SortKey, ...]]:
        """The first rows of what is ordered below something else, sorted again where they are taken."""
        below, keys = self._ordered(rel.input)
        if not isinstance(below, b.Limit):
            below = b.Sort(below.columns, below, keys)
        return replace(rel, columns=below.columns, input=below), keys

    def _generated(self, rel: b.Generate) -> tuple[Rel, tuple[SortKey, ...]]:
        """The rows that are made of each row, by the number of that row and their place among them."""
        below, keys = self._ordered(rel.input)
        number, place = (Col(t, False, self.ids.take(), "order") for t in (INT, BIGINT))
        counted = b.WindowRel((*below.columns, number), below, (replace(numbers(), order=keys),))
        found = replace(rel, columns=(*counted.columns, *rel.made, place), input=counted, position=place)
        return found, (SortKey(number, False, True), SortKey(place, False, True))


def _has_open(rel: Rel, catalogue: Catalogue) -> TypeGuard[b.WindowRel]:
    return isinstance(rel, b.WindowRel) and any(_is_open(window, catalogue) for window in rel.windows)


def _is_open(window: Window, catalogue: Catalogue) -> bool:
    """Whether what a window gives depends on an order of its rows that it does not have."""
    if window.order:
        return False
    start, end = window.frame.start, window.frame.end
    row = catalogue.get(window.fn.fn) if isinstance(window.fn, (Agg, Call)) else None
    return (row is not None and row.ordered) or not start.kind == end.kind == "unbounded"


def _has_even(rel: Rel) -> TypeGuard[b.WindowRel]:
    return isinstance(rel, b.WindowRel) and any(map(_is_even, rel.windows))


def _is_even(window: Window) -> bool:
    """Whether it goes by the places of rows, in an order that is the same for all."""
    by_place = isinstance(window.fn, Call) and window.fn.fn in _BY_PLACE
    by_rows = isinstance(window.fn, Agg) and window.frame.unit == "ROWS"
    return bool(window.order) and (by_place or by_rows) and all(isinstance(k.expr, Lit) for k in window.order)


def _asks(agg: Agg) -> bool:
    return agg.fn in _AS_THEY_COME and not agg.order and not agg.distinct


def _sort_of(rel: Rel) -> b.Sort | None:
    """The sort that gives a relation its order, or the rows of a LIMIT theirs."""
    while isinstance(rel, b.Limit):
        rel = rel.input
    asks = isinstance(rel, b.Sort) and any(isinstance(n, b.Subquery) for k in rel.keys for n in nodes(k.expr))
    return rel if isinstance(rel, b.Sort) and not asks else None


def _deciding(sort: b.Sort) -> tuple[SortKey, ...]:
    """Its keys without those that are one before them once more: the engine's aggregates fail at them in an order."""
    exprs, below = [key.expr for key in sort.keys], sort.input
    while isinstance(below, b.Project):
        made = {c.id: e for c, e in zip(below.columns, below.exprs, strict=True)}
        # What is computed of columns stays as it is: written out, nested queries could have it grow without end.
        exprs, below = [made.get(e.id, e) if isinstance(e, Col) else e for e in exprs], below.input
    found: dict[Hashable, SortKey] = {}
    for expr, one in zip(exprs, sort.keys, strict=True):
        found.setdefault(structural(expr), one)
    return tuple(found.values())


def _with_keys(
    rel: b.Project, exprs: tuple[Expr, ...], keys: tuple[SortKey, ...], ids: Ids
) -> tuple[Rel, tuple[SortKey, ...]]:
    """The projection with the keys (over its input) as columns, where they are none already."""
    known = {e.id: c for c, e in zip(rel.columns, exprs, strict=True) if isinstance(e, Col)}
    columns, own = list(rel.columns), list(exprs)
    found: list[SortKey] = []
    for key in keys:
        column = known.get(key.expr.id) if isinstance(key.expr, Col) else None
        if column is None:
            column = Col(key.expr.type, key.expr.nullable, ids.take(), f"order_{len(found)}")
            columns.append(column)
            own.append(key.expr)
        found.append(replace(key, expr=column))
    return replace(rel, columns=tuple(columns), exprs=tuple(own)), tuple(found)
