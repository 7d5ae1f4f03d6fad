"""LATERAL subqueries as joins: what a subquery in FROM computes for each row of the relations before it.

Projections and filters at its top become those of a join with the relation below them. What stands below is asked once for all
rows: an aggregate without GROUP BY as a correlated one (`correlation.joined`), all else by the equalities in its filters. What
neither takes is computed for each combination of values (`domains`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.errors import unsupported
from gateway.sql.lowering.correlation import Pulled, here, joined, numbered, over_nothing, reaches
from gateway.sql.lowering.domains import beside, spread
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Catalogue, is_steady
from gateway.sql.typed.nodes import Call, Case, Col, Expr, Filter, Ids, Join, Limit, Lit, Project, Rel, Sort, Subquery
from gateway.sql.typed.walk import all_expressions, all_of, conjuncts_of, expressions_of, is_global, nodes, substituted
from gateway.sqltypes import BOOLEAN, INT


def decorrelated(rel: Rel, ids: Ids, catalogue: Catalogue) -> Rel:
    """`rel` without lateral joins; changes it in place. Raises UNSUPPORTED_FEATURE."""
    return _Laterals(ids, catalogue).without(rel)


@dataclass(slots=True)
class _Peeled:
    """The relation below a subquery's projections and filters, and these over its columns."""

    base: Rel
    values: tuple[Expr, ...]
    conditions: list[Expr]

    def over(self, known: dict[int, Expr]) -> None:
        """Put expressions in the place of the base's columns."""
        self.values = tuple(substituted(v, known) for v in self.values)
        self.conditions = [substituted(c, known) for c in self.conditions]


class _Laterals:
    def __init__(self, ids: Ids, catalogue: Catalogue) -> None:
        self._ids = ids
        self._catalogue = catalogue
        self._seen: set[int] = set()

    def without(self, rel: Rel) -> Rel:
        if id(rel) in self._seen:
            return rel
        self._seen.add(id(rel))
        for e in expressions_of(rel):
            for part in nodes(e):
                if isinstance(part, Subquery):
                    part.plan = self.without(part.plan)
        if isinstance(rel, Join):
            rel.left, rel.right = self.without(rel.left), self.without(rel.right)
            return self._joined(rel) if rel.lateral else rel
        if isinstance(rel, b.SetOp):
            rel.inputs = tuple(map(self.without, rel.inputs))
        elif isinstance(rel, b.CteRef):
            rel.cte.plan = self.without(rel.cte.plan)
        elif (inner := getattr(rel, "input", None)) is not None:
            rel.input = self.without(inner)  # type: ignore[attr-defined]
        return rel

    def _joined(self, join: Join) -> Rel:
        """The lateral `join` as a plain one."""
        self._check(join.right)
        right = join.columns[len(join.left.columns) :]
        foreign = {c.id for c in join.left.columns}
        if not reaches(join.right, foreign):
            join.lateral = False
            return join
        peeled = _peeled(join.right)
        own = dict(zip([c.id for c in join.right.columns], peeled.values, strict=True))
        if join.condition is not None:
            peeled.conditions += [substituted(c, own) for c in conjuncts_of(join.condition)]
        if isinstance(peeled.base, b.OneRow):
            base: Rel = join.left
        elif not reaches(peeled.base, foreign):
            return self._beside(join, peeled, foreign, right)
        else:
            found = self._base(join, peeled, foreign)
            if found is None:
                return self._beside(join, peeled, foreign, right)
            base = found
        conditions = [here(c) for c in peeled.conditions]
        values: Sequence[Expr] = [here(v) for v in peeled.values]
        if conditions and join.kind == "left":
            values = [Case(c.type, True, ((all_of(conditions), v),), None) for c, v in zip(right, values, strict=True)]
        elif conditions:
            base = Filter(base.columns, base, all_of(conditions))
        return Project(join.columns, base, (*join.left.columns, *values))

    def _base(self, join: Join, peeled: _Peeled, foreign: set[int]) -> Rel | None:
        """The left side with the rows of the subquery's base; None where they are found by a join."""
        if isinstance(peeled.base, b.Generate) and join.kind != "left" and isinstance(peeled.base.input, b.OneRow):
            return self._generated(join, peeled.base)
        if isinstance(peeled.base, b.SetOp) and join.kind != "left":
            return self._of_branches(join, peeled, peeled.base)
        if isinstance(peeled.base, b.Aggregate) and is_global(peeled.base):
            return self._aggregated(join, peeled, peeled.base, foreign)
        return None

    def _check(self, rel: Rel) -> None:
        """Spark takes nothing that differs from call to call."""
        if not all(is_steady(e, self._catalogue) for e in all_expressions(rel)):
            raise unsupported("a LATERAL subquery that differs from call to call")

    def _generated(self, join: Join, made: b.Generate) -> Rel:
        """The left side with the rows that a generator makes of each row."""
        generator = here(made.generator)
        assert isinstance(generator, Call)
        return b.Generate((*join.left.columns, *made.columns), join.left, generator, made.outer)

    def _of_branches(self, join: Join, peeled: _Peeled, union: b.SetOp) -> Rel | None:
        """The left side once for each row of a UNION ALL of single rows, whose number chooses their values; None for others."""
        sides = [_peeled(side) for side in union.inputs]
        if union.kind != "union" or not union.all or not all(isinstance(side.base, b.OneRow) for side in sides):
            return None
        number = Col(INT, False, self._ids.take(), "")
        rows = b.Values((number,), tuple((Lit(INT, False, i),) for i in range(len(sides))))
        chosen = [Call(BOOLEAN, False, "=", (number, Lit(INT, False, i))) for i in range(len(sides))]
        known: dict[int, Expr] = {}
        for place, column in enumerate(union.columns):
            whens = tuple((c, side.values[place]) for c, side in zip(chosen, sides, strict=True))
            known[column.id] = Case(column.type, column.nullable, whens, None)
        peeled.over(known)
        if any(side.conditions for side in sides):
            true = Lit(BOOLEAN, False, True)
            kept = tuple((c, all_of(side.conditions or [true])) for c, side in zip(chosen, sides, strict=True))
            peeled.conditions.insert(0, Case(BOOLEAN, True, kept, None))
        return Join((*join.left.columns, number), "cross", join.left, rows, None)

    def _aggregated(self, join: Join, peeled: _Peeled, aggregate: b.Aggregate, foreign: set[int]) -> Rel | None:
        """The left side with the values of the subquery's one row."""
        made = joined(join.left, aggregate, foreign, self._ids) or numbered(join.left, aggregate, foreign, self._ids)
        if made is None:
            return None
        base, found = made
        known: dict[int, Expr] = {}
        for column, agg, value in zip(aggregate.columns, aggregate.aggs, found, strict=True):
            whole = over_nothing(agg, value)
            if whole is None:
                raise unsupported(f"`{agg.shown or agg.fn}` in a correlated subquery", agg.span)
            known[column.id] = whole
        peeled.over(known)
        return base

    def _beside(self, join: Join, peeled: _Peeled, foreign: set[int], right: Sequence[Col]) -> Rel:
        """A join with all rows of the subquery's base, under the conditions that it has for each row of the left side."""
        pulled = Pulled(foreign, self._ids)
        source = pulled.below(peeled.base)
        if source is None:
            return self._of_each(join)
        there = Col(BOOLEAN, False, self._ids.take(), "")
        marked = Project((*source.columns, there), source, (*source.columns, Lit(BOOLEAN, False, True)))
        conditions = [here(c) for c in (*pulled.terms(), *peeled.conditions)]
        values: list[Expr] = [here(v) for v in peeled.values]
        outer = join.kind == "left"
        if outer:  # of a row that nothing was found for, all is NULL
            matched = Call(BOOLEAN, False, "is not null", (replace(there, nullable=True),))
            values = [
                v if isinstance(v, Col) and v.id not in foreign else Case(c.type, True, ((matched, v),), None)
                for c, v in zip(right, values, strict=True)
            ]
        columns = tuple(replace(c, nullable=True) for c in marked.columns) if outer else marked.columns
        kind = "left" if outer else "inner" if conditions else "cross"
        made = Join((*join.left.columns, *columns), kind, join.left, marked, all_of(conditions) if conditions else None)
        return Project(join.columns, made, (*join.left.columns, *values))

    def _of_each(self, join: Join) -> Rel:
        """A join with the subquery's rows for each combination of the values that it reads."""
        if not all(is_steady(e, self._catalogue) for e in all_expressions(join.left)):
            raise unsupported("a LATERAL subquery beside what differs from call to call")
        read = [c for c in join.left.columns if reaches(join.right, {c.id})]
        right, keys = spread(join.left, join.right, read, self._ids)
        more = conjuncts_of(join.condition) if join.condition is not None else ()
        made = beside(join.kind if join.kind == "left" else "inner", join.left, right, read, keys, *more)
        return Project(join.columns, made, join.columns)


def _peeled(rel: Rel) -> _Peeled:
    found = _Peeled(rel, rel.columns, [])
    while True:
        below = found.base
        if isinstance(below, Project) and not any(map(_has_subquery, below.exprs)):
            found.over(dict(zip([c.id for c in below.columns], below.exprs, strict=True)))
        elif isinstance(below, Filter):
            terms = conjuncts_of(below.condition)
            found.conditions += [t for t in terms if not _has_subquery(t)]
            kept = [t for t in terms if _has_subquery(t)]
            if kept:
                found.base = Filter(below.columns, below.input, all_of(kept))
                return found
        elif isinstance(below, Limit) and not below.offset and _is_row(below.input):
            if below.limit == 0:
                found.conditions.append(Lit(BOOLEAN, False, False))
        elif not isinstance(below, Sort):
            return found
        found.base = below.input


def _is_row(rel: Rel) -> bool:
    """Whether it has one row at most."""
    while isinstance(rel, (Project, Filter, Sort)):
        rel = rel.input
    return isinstance(rel, b.OneRow) or is_global(rel)


def _has_subquery(e: Expr) -> bool:
    return any(isinstance(n, Subquery) for n in nodes(e))
