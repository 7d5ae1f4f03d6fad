"""Correlated aggregates as joins: what a subquery computes for each row of the enclosing query.

``(SELECT agg FROM s WHERE s.k = o.k)`` is the agg of the group ``s.k`` that a LEFT JOIN finds for ``o.k``. Where it finds
none, the aggregate's value over no rows stands: 0 for counts, an empty array for collected ones, else NULL.
Under other conditions the rows of ``o`` are numbered, joined with those of ``s``, and grouped by their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import (
    Agg,
    Aggregate,
    Call,
    Cast,
    Col,
    Distinct,
    Expr,
    Filter,
    Ids,
    Join,
    Limit,
    Lit,
    Project,
    Rel,
    Sort,
)
from gateway.sql.typed.walk import conjuncts_of, expressions_of, has_columns, inputs_of, nodes, rebuilt, substituted
from gateway.sqltypes import BIGINT, BOOLEAN, INT, VOID, ArrayType, DataType, MapType, array, is_fractional

ALL_ROWS = 9223372036854775807  # the limit of a `Limit` that no filter passes, and that leaves all rows
_MOST = 2**31 - 1
_KEEPS = ("inner", "cross", "left", "semi", "anti")
Pair = tuple[Call, Col, Expr]  # the comparison, the key inside, and what it is compared with outside


def over_nothing(agg: Agg, value: Expr) -> Expr | None:
    """`value`, an aggregate's or NULL where it had no rows, with what Spark gives over no rows; None if not known."""
    if agg.nullable:
        return value
    if agg.type == BIGINT:
        return Call(BIGINT, False, "coalesce", (value, Lit(BIGINT, False, 0)))
    if isinstance(agg.type, ArrayType):
        empty = Cast(agg.type, False, Call(array(VOID, False), False, "array", ()), implicit=True)
        return Call(agg.type, False, "coalesce", (value, empty))
    return None


def over_no_rows(rel: Rel) -> dict[int, Expr]:
    """What a query of aggregates gives over no rows, by the ids of its columns; without those that are not known.

    Spark asks neither HAVING nor GROUP BY then, whose keys are NULL (RewriteCorrelatedScalarSubquery, evalSubqueryOnZeroTups).
    """
    if isinstance(rel, Filter):
        return over_no_rows(rel.input)
    if isinstance(rel, Project):
        below = over_no_rows(rel.input)
        made = zip(rel.columns, rel.exprs, strict=True)
        return {c.id: substituted(e, below) for c, e in made if has_columns(e)} if below else {}
    if not isinstance(rel, Aggregate) or rel.sets is not None:
        return {}
    width = len(rel.keys)
    values: dict[int, Expr] = {c.id: Lit(c.type, True, None) for c in rel.columns[:width]}
    for column, agg in zip(rel.columns[width:], rel.aggs, strict=True):
        value = over_nothing(agg, Lit(agg.type, True, None))
        if value is None:
            return {}
        values[column.id] = value
    return values


def joined(base: Rel, aggregate: Aggregate, foreign: Set[int], ids: Ids) -> tuple[Join, tuple[Col, ...]] | None:
    """`base` joined with a global `aggregate` that refers to its columns `foreign`, and the aggregate's columns there.

    None where equalities of the aggregate's filters are not all that refers to `foreign`.
    """
    if not foreign <= {c.id for c in base.columns} or any(mentions(a, foreign) for a in aggregate.aggs):
        return None
    pulled = Pulled(foreign, ids)
    source = pulled.below(aggregate.input)
    if source is None:
        return None
    found = tuple(Col(c.type, True, ids.take(), c.name) for c in aggregate.columns)
    below = {k.id: k for _, k, _ in pulled.pairs}
    keys = {k.id: Col(k.type, k.nullable, ids.take(), "") for k in below.values()}
    grouped = Aggregate((*keys.values(), *found), source, tuple(below.values()), aggregate.aggs)
    terms = pulled.terms(keys)
    condition = _all(terms) if terms else None
    right = tuple(replace(c, nullable=True) for c in grouped.columns)
    return Join((*base.columns, *right), "left", base, grouped, condition), found


def numbered(base: Rel, aggregate: Aggregate, foreign: Set[int], ids: Ids) -> tuple[Rel, tuple[Col, ...]] | None:
    """The same for any conditions in the filters right below the aggregate: grouped by the rows of `base`."""
    if not foreign <= {c.id for c in base.columns} or any(mentions(a, foreign) for a in aggregate.aggs):
        return None
    source, found = _filtered(aggregate.input, foreign), []
    while isinstance(source, Filter):
        found += conjuncts_of(source.condition)
        source = _filtered(source.input, foreign)
    terms = [c for c in found if mentions(c, foreign)]
    if reaches(source, foreign) or not all(map(_plain, terms)):
        return None
    kept = [c for c in found if not mentions(c, foreign)]
    if kept:
        source = Filter(source.columns, source, _all(kept))
    row, there, kept_row = (Col(t, n, ids.take(), "") for t, n in ((INT, False), (BOOLEAN, True), (INT, False)))
    left = b.WindowRel((*base.columns, row), base, (numbers(),))
    right = Project((*source.columns, there), source, (*source.columns, Lit(BOOLEAN, False, True)))
    columns = (*left.columns, *(replace(c, nullable=True) for c in right.columns))
    pairs = Join(columns, "left", left, right, _all([here(t) for t in terms]) if terms else None)
    matched = Call(BOOLEAN, False, "is not null", (there,))
    aggs = tuple(
        replace(a, where=matched if a.where is None else Call(BOOLEAN, True, "and", (matched, a.where)))
        for a in aggregate.aggs
    )
    own = tuple(Agg(c.type, c.nullable, "first", (c,), data=(False, False)) for c in base.columns)
    made = tuple(Col(c.type, True, ids.take(), c.name) for c in aggregate.columns)
    grouped = Aggregate((kept_row, *base.columns, *made), pairs, (row,), (*own, *aggs))
    return grouped, made


def mentions(e: Expr, ids: Set[int]) -> bool:
    """Whether `e` refers to one of the columns, also from within a subquery."""
    return any(
        (isinstance(n, Col) and n.id in ids)
        or (isinstance(n, b.Subquery) and (any(c.id in ids for c in n.outer) or reaches(n.plan, ids)))
        for n in nodes(e)
    )


def reaches(rel: Rel, ids: Set[int]) -> bool:
    """Whether anything in `rel` refers to one of the columns."""
    stack = [rel]
    while stack:
        r = stack.pop()
        if any(mentions(e, ids) for e in expressions_of(r)):
            return True
        stack += inputs_of(r)
    return False


class Pulled:
    """Equalities with columns of the enclosing query, taken out of filters; the columns inside pass to the top."""

    def __init__(self, foreign: Set[int], ids: Ids) -> None:
        self.pairs: list[Pair] = []
        self.outside: list[Expr] = []  # conditions on the enclosing query's row alone
        self._foreign = foreign
        self._ids = ids

    def below(self, rel: Rel) -> Rel | None:
        """`rel` for all rows of the enclosing query at once: of each, it holds those whose keys are equal."""
        if not reaches(rel, self._foreign):
            return rel
        rel = _filtered(rel, self._foreign)
        if isinstance(rel, Filter):
            return self._filter(rel)
        if isinstance(rel, Limit):
            return self._limit(rel)
        if isinstance(rel, (Project, Sort, Distinct, b.WindowRel, Aggregate)):
            if any(mentions(e, self._foreign) for e in expressions_of(rel)):
                return None
            inner = self.below(rel.input)
            return None if inner is None else self._over(rel, inner)
        if isinstance(rel, Join) and rel.kind in ("inner", "cross", "left", "semi", "anti") and not rel.lateral:
            return self._join(rel)
        return None

    def terms(self, keys: Mapping[int, Col] | None = None) -> list[Expr]:
        """The conditions of the join that brings rows of both queries together; `keys` has the keys' columns there."""
        equal = [replace(call, args=(k if keys is None else keys[k.id], here(outer))) for call, k, outer in self.pairs]
        return [*equal, *(here(c) for c in self.outside)]

    def _over(self, rel: Rel, inner: Rel) -> Rel | None:
        keys = self._keys(rel.columns)
        if isinstance(rel, Project):
            return Project((*rel.columns, *keys), inner, (*rel.exprs, *keys))
        if isinstance(rel, b.WindowRel):
            windows = tuple(replace(w, partition=(*w.partition, *self._keys(()))) for w in rel.windows)
            width = len(rel.columns) - len(windows)
            return b.WindowRel((*rel.columns[:width], *keys, *rel.columns[width:]), inner, windows)
        if isinstance(rel, Aggregate):
            if not rel.keys or rel.sets is not None:
                return None
            return self._aggregate(rel, inner)
        return replace(rel, columns=(*rel.columns, *keys), input=inner)  # type: ignore[call-arg]

    def _limit(self, rel: Limit) -> Rel | None:
        """The first rows of each key, by their numbers."""
        if isinstance(rel.input, Project) and isinstance(rel.input.input, Sort):  # what is sorted by is not shown
            ordered = rel.input.input
            return self.below(replace(rel.input, input=Limit(ordered.columns, ordered, rel.limit, rel.offset)))
        inner = self.below(rel.input)
        if inner is None:
            return None
        if rel.limit == ALL_ROWS:
            return Limit(inner.columns, inner, ALL_ROWS, 0)
        order = rel.input.keys if isinstance(rel.input, Sort) else ()
        row = Col(INT, False, self._ids.take(), "")
        number = replace(numbers(), partition=self._keys(()), order=order)
        columns = (*inner.columns, row)
        terms: list[Expr] = [Call(BOOLEAN, False, ">", (row, Lit(INT, False, min(rel.offset, _MOST))))]
        if rel.limit is not None and rel.offset + rel.limit < _MOST:
            terms.append(Call(BOOLEAN, False, "<=", (row, Lit(INT, False, rel.offset + rel.limit))))
        return Filter(columns, b.WindowRel(columns, inner, (number,)), _all(terms))

    def _aggregate(self, rel: Aggregate, inner: Rel) -> Aggregate:
        below = [k for _, k, _ in self.pairs]
        above = [replace(k, id=self._ids.take()) for k in below]
        self.pairs = [(c, a, o) for a, (c, _, o) in zip(above, self.pairs, strict=True)]
        width = len(rel.keys)
        columns = (*rel.columns[:width], *above, *rel.columns[width:])
        return Aggregate(columns, inner, (*rel.keys, *below), rel.aggs)

    def _keys(self, known: Sequence[Col]) -> tuple[Col, ...]:
        present = {c.id for c in known}
        keys = {k.id: k for _, k, _ in self.pairs if k.id not in present}
        return tuple(keys.values())

    def _join(self, rel: Join) -> Rel | None:
        if rel.condition is not None and mentions(rel.condition, self._foreign):  # not an inner join's
            return None
        left = self.below(rel.left)
        if left is None:
            return None
        right: Rel | None = rel.right
        if reaches(rel.right, self._foreign):
            of_left, self.pairs = self.pairs, []  # their keys are none of the right side's
            right = self.below(rel.right) if rel.kind in ("inner", "cross") else None
            self.pairs = [*of_left, *self.pairs]
        if right is None:
            return None
        columns = rel.columns if rel.kind in ("semi", "anti") else (*left.columns, *right.columns)
        return replace(rel, columns=(*columns, *self._keys(columns)), left=left, right=right)

    def _filter(self, rel: Filter) -> Rel | None:
        inner = self.below(rel.input)
        if inner is None:
            return None
        kept: list[Expr] = []
        found: list[tuple[Call, Expr, Expr]] = []
        for conjunct in conjuncts_of(rel.condition):
            if not mentions(conjunct, self._foreign):
                kept.append(conjunct)
                continue
            sides = self._sides(conjunct)
            if sides is not None:
                found.append(sides)
            elif self._outside(conjunct):
                self.outside.append(conjunct)
            else:
                return None
        columns = (*inner.columns, *self._keys(inner.columns))
        if kept:
            inner = Filter(columns, inner, _all(kept))
        computed = []
        for call, own, outer in found:
            key = own if isinstance(own, Col) else Col(own.type, own.nullable, self._ids.take(), "")
            self.pairs.append((call, key, outer))
            if key is not own:
                computed.append((key, own))
        if computed:
            inner = Project((*columns, *(k for k, _ in computed)), inner, (*columns, *(o for _, o in computed)))
        return inner

    def _sides(self, e: Expr) -> tuple[Call, Expr, Expr] | None:
        """The sides of an equality: one of columns inside alone, the other of the enclosing query's alone."""
        if not isinstance(e, Call) or e.fn not in ("=", "<=>") or not _groups(e.args[0].type):
            return None
        for own, outer in (e.args, e.args[::-1]):
            if _plain(own) and not mentions(own, self._foreign) and has_columns(own) and self._outside(outer):
                return e, own, outer
        return None

    def _outside(self, e: Expr) -> bool:
        return _plain(e) and all(n.id in self._foreign for n in nodes(e) if isinstance(n, Col))


def reads_in_filters(rel: Rel, foreign: Set[int]) -> bool:
    """Whether only filters and conditions of inner joins refer to `foreign`, and nothing above those tells rows apart."""
    stack = [rel]
    while stack:
        r = stack.pop()
        if not reaches(r, foreign):
            continue
        if isinstance(r, Join):
            if r.lateral or r.kind not in _KEEPS or (r.kind not in ("inner", "cross") and reaches(r.right, foreign)):
                return False
            if r.kind not in ("inner", "cross") and r.condition is not None and mentions(r.condition, foreign):
                return False
        elif isinstance(r, (Project, Sort, b.Generate)):
            if any(mentions(e, foreign) for e in expressions_of(r)):
                return False
        elif not isinstance(r, Filter):
            return False
        stack += inputs_of(r)
    return True


def numbers() -> b.Window:
    """row_number() over all rows."""
    whole = b.Frame("ROWS", b.Bound("unbounded", preceding=True), b.Bound("current"))
    return b.Window(INT, False, Call(INT, False, "row_number", ()), (), (), whole)


def _filtered(rel: Rel, foreign: Set[int]) -> Rel:
    """`rel`; an inner join whose condition refers to `foreign` as a filter over the join."""
    if not isinstance(rel, Join) or rel.kind not in ("inner", "cross") or rel.lateral or rel.condition is None:
        return rel
    terms = conjuncts_of(rel.condition)
    moved = [t for t in terms if mentions(t, foreign)]
    kept = [t for t in terms if not mentions(t, foreign)]
    if not moved:
        return rel
    join = replace(rel, kind="inner" if kept else "cross", condition=_all(kept) if kept else None)
    return Filter(rel.columns, join, _all(moved))


def _all(terms: Sequence[Expr]) -> Expr:
    whole = terms[0]
    for term in terms[1:]:
        whole = Call(BOOLEAN, True, "and", (whole, term))
    return whole


def _plain(e: Expr) -> bool:
    return not any(isinstance(n, b.Subquery) for n in nodes(e))


def _groups(t: DataType) -> bool:
    """Whether GROUP BY and ``=`` tell the same values apart: floats have two zeros and many NaN."""
    return not is_fractional(t) and t != VOID and not isinstance(t, MapType) and all(map(_groups, t.children()))


def here(e: Expr) -> Expr:
    """A reference to the enclosing query, in that query itself."""
    if isinstance(e, Col):
        return replace(e, outer=False)
    return rebuilt(e, here)
