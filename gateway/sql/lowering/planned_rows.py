"""What Spark knows of rows while it plans: which relations it computes then, one by one, and which may be without any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from gateway.sql.lowering.evaluation import simplified, truth
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Call, Col, Expr, Lit, Rel, Subquery
from gateway.sql.typed.walk import all_relations, conjuncts_of, expressions_of, inputs_of, nodes, rebuilt
from gateway.sqltypes import BOOLEAN

FEW = 20  # written rows whose values are looked at one by one
_LARGE = 200  # parts of an expression over such a row
# The side of a join without whose rows there are none; of other joins it is either.
_KEPT_SIDE = {"left": 0, "anti": 0, "right": 1}


def local_columns(rel: Rel) -> frozenset[int]:
    """Columns of relations that Spark computes while it plans, before it simplifies what is asked of them."""
    return frozenset(c.id for below in all_relations(rel) if is_local(below) for c in below.columns)


def is_local(rel: Rel) -> bool:
    """Whether Spark computes the relation's rows, one by one, while it plans."""
    over: list[Rel] = []
    while isinstance(rel, (b.Project, b.Filter, b.Limit, b.CteRef)):
        over.append(rel)
        rel = rel.cte.plan if isinstance(rel, b.CteRef) else rel.input
    return isinstance(rel, b.Values) and not any(map(_is_foreign, over))


def _is_foreign(rel: Rel) -> bool:
    """Whether it asks another query, or shows columns of one around its own: nothing that is known from one row."""
    parts = [part for e in expressions_of(rel) for part in nodes(e)]
    return any(
        isinstance(p, Subquery) or (isinstance(p, Col) and p.outer and isinstance(rel, b.Project)) for p in parts
    )


def own_condition(rel: b.Filter) -> Expr | None:
    """What a filter asks of its own rows; conditions on rows around the query are moved out of it first."""
    own = [c for c in conjuncts_of(rel.condition) if not is_outer(c)]
    return anded(own) if own else None


def anded(terms: Sequence[Expr]) -> Expr:
    """The conjunction of some terms."""
    return reduce(lambda left, right: Call(BOOLEAN, True, "and", (left, right)), terms)


def is_outer(expr: Expr) -> bool:
    """Whether it reads a column of a query around its own."""
    return any(isinstance(part, Col) and part.outer for part in nodes(expr))


def _left(rel: Rel, context: Context) -> list[dict[int, Expr]]:
    """The first rows of a relation that Spark computes while it plans, as far as its filters are known to leave them."""
    if isinstance(rel, b.Values):
        return [{c.id: simplified(e, context) for c, e in zip(rel.columns, row, strict=True)} for row in rel.rows[:FEW]]
    if isinstance(rel, b.CteRef):
        named = list(zip(rel.columns, rel.cte.plan.columns, strict=True))
        return [{c.id: row[p.id] for c, p in named} for row in _left(rel.cte.plan, context)]
    rows = _left(inputs_of(rel)[0], context)
    if isinstance(rel, b.Project):
        return [{c.id: over_row(e, row) for c, e in zip(rel.columns, rel.exprs, strict=True)} for row in rows]
    if isinstance(rel, b.Limit):
        return [] if rel.offset else rows[: rel.limit]
    own = own_condition(rel) if isinstance(rel, b.Filter) else None
    return rows if own is None else [row for row in rows if truth(over_row(own, row), context) is True]


class Emptiness:
    """Which relations Spark may know to have no rows while it plans, and so forgets what stands above. Looks at each once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[
            tuple[int, bool], tuple[Rel, bool]
        ] = {}  # with the relation, so that no other one gets its id

    def is_emptied(self, rel: Rel, early: bool = False) -> bool:
        """Whether the inputs of a relation may leave it without rows; `early`: before Spark plans the queries in expressions.

        It is only later that it makes joins of EXCEPT and INTERSECT.
        """
        known = self._known.get((id(rel), early))
        if known is None:
            known = self._known[id(rel), early] = rel, self._is_emptied(rel, early)
        return known[1]

    def is_without_rows(self, rel: Rel, early: bool = False) -> bool:
        """The same of a relation itself: one group there is over no rows, too."""
        return not is_one_group(rel) and self.is_emptied(rel, early)

    def _is_emptied(self, rel: Rel, early: bool) -> bool:
        empty = [self._may_be_empty(below, early) for below in inputs_of(rel)]
        if isinstance(rel, b.SetOp):
            return rel.kind == "union" and all(empty)
        if isinstance(rel, b.Join) and isinstance(rel.condition, Lit) and rel.condition.value is False:
            return rel.kind not in ("left", "right", "full", "anti") or any(empty)
        if isinstance(rel, b.Join) and rel.kind == "full":
            return all(empty)
        if isinstance(rel, b.Join) and rel.kind in _KEPT_SIDE:
            return empty[_KEPT_SIDE[rel.kind]]
        return any(empty)

    def _may_be_empty(self, rel: Rel, early: bool) -> bool:
        if isinstance(rel, b.CteRef):
            return self._may_be_empty(rel.cte.plan, early)
        if isinstance(rel, b.Limit) and rel.limit == 0 and not early:
            return True
        if isinstance(rel, (b.Filter, b.Limit)) and is_local(rel):
            if _left(rel, self._context):
                return False
            return isinstance(rel, b.Limit) or own_condition(rel) is not None or self._may_be_empty(rel.input, early)
        return self.is_without_rows(rel, early)


def is_one_group(rel: Rel) -> bool:
    """Whether it is an aggregate without GROUP BY, which has a row over no rows."""
    return isinstance(rel, b.Aggregate) and not rel.keys and rel.sets is None


def over_row(expr: Expr, row: Mapping[int, Expr]) -> Expr:
    """An expression over one written row, as far as it does not get too large."""
    parts = [row[part.id] for part in nodes(expr) if isinstance(part, Col) and part.id in row]
    if len(parts) > _LARGE or sum(len(nodes(part)) for part in parts) > _LARGE:
        return expr
    return _put(expr, row)


def _put(expr: Expr, row: Mapping[int, Expr]) -> Expr:
    if isinstance(expr, Col):
        return row.get(expr.id, expr)
    return rebuilt(expr, lambda e: _put(e, row))
