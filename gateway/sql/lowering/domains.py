"""Correlated subqueries of any form: computed once for each combination of values that they read of the enclosing query.

The combinations are a relation of their own, the domain, made of a copy of the enclosing query's rows. It is joined with what
the subquery reads, its columns take the place of the outer ones, and pass as keys through all that stands above: rows are
grouped, numbered and told apart per key. That is how Spark itself does it (DecorrelateInnerQuery).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gateway.errors import unsupported
from gateway.sql.lowering.correlation import ALL_ROWS, mentions, numbers, over_nothing, reaches
from gateway.sql.typed import nodes as b
from gateway.sql.typed.copies import copied
from gateway.sql.typed.nodes import (
    Aggregate,
    Call,
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
    SortKey,
)
from gateway.sql.typed.walk import all_expressions, all_relations, children, expressions_of, nodes, substituted
from gateway.sqltypes import BOOLEAN, INT, DataType, MapType, is_fractional

_FORM = "a correlated subquery of this form"
_MOST = 2**31 - 1
#: Aggregates whose value follows the order of their rows.
_OF_ORDER = frozenset(
    {"first", "first_value", "last", "last_value", "any_value", "collect_list", "array_agg", "listagg", "string_agg"}
)
_HARMLESS = frozenset(
    {"=", "<", ">", "<=", ">=", "<=>", "and", "or", "not", "in", "is null", "is not null", "count", "min", "max"}
)
Keys = tuple[Col, ...]


def spread(base: Rel, rel: Rel, foreign: Sequence[Col], ids: Ids) -> tuple[Rel, Keys]:
    """The rows of `rel` for each combination of values of the columns `foreign` of `base`, and these values' columns there.

    Raises UNSUPPORTED_FEATURE.
    """
    return _Spread(base, rel, foreign, ids).below(rel)


def aggregated(
    base: Rel, origin: Rel, aggregate: Aggregate, foreign: Sequence[Col], ids: Ids, scalar: bool, spares: bool = False
) -> tuple[Rel, Keys]:
    """`base` with the values of a global `aggregate` over what refers to its columns `foreign`, and the aggregate's columns
    there, NULL where it had no rows. `origin`: the rows of `base` before anything was joined to them; `scalar`: it is a value,
    not a count of rows that exist; `spares`: global aggregates further in have no row of no rows.
    """
    domain = _Spread(origin, aggregate, foreign, ids, spares)
    if not scalar:  # conditions at the top are those of the join
        inner = aggregate.input
        while isinstance(inner, Filter):
            inner = inner.input
        domain.told_apart = {i for i in domain.told_apart if reaches(inner, {i})}
    source, keys = domain.below(aggregate.input)
    aggs = tuple(domain.over(a, keys) for a in aggregate.aggs)
    found = tuple(Col(c.type, True, ids.take(), c.name) for c in aggregate.columns)
    grouped_keys = _fresh(keys, ids)
    grouped = Aggregate((*grouped_keys, *found), source, keys, aggs)  # type: ignore[arg-type]
    return beside("left", base, grouped, domain.outer, grouped_keys), found


def beside(kind: str, base: Rel, right: Rel, outer: Sequence[Col], keys: Sequence[Col], *more: Expr) -> Join:
    """`base` beside the rows of `right` whose `keys` its columns `outer` are, under `more` conditions."""
    columns = tuple(replace(c, nullable=True) for c in right.columns) if kind == "left" else right.columns
    return Join((*base.columns, *columns), kind, base, right, _all([*_same(outer, keys), *more]))


class _Spread:
    def __init__(self, base: Rel, rel: Rel, foreign: Sequence[Col], ids: Ids, spares: bool = False) -> None:
        distinct = {c.id: replace(c, outer=False) for c in foreign}
        if not distinct.keys() <= {c.id for c in base.columns} or any(_has_map(c.type) for c in foreign):
            raise unsupported(_FORM)
        self.outer = tuple(distinct.values())
        self._ids = ids
        self._foreign = set(distinct)
        self._spares = spares
        self.told_apart = set(distinct)  # the columns whose values Spark computes rows for
        self._base = _superset(base, self.outer, all_expressions(rel))
        ids.domains = True

    def below(self, rel: Rel) -> tuple[Rel, Keys]:
        if isinstance(rel, b.OneRow):
            return self._domain()
        if not reaches(rel, self._foreign):
            domain, keys = self._domain()
            return Join((*rel.columns, *keys), "cross", rel, domain, None), keys
        rule = _RULES.get(type(rel))
        if rule is None:
            raise unsupported(_FORM)
        return rule(self, rel)

    def over(self, e: Expr, keys: Keys) -> Expr:
        """`e` with the domain's columns in the place of the enclosing query's."""
        if any(isinstance(n, b.Subquery) and reaches(n.plan, self._foreign) for n in nodes(e)):
            raise unsupported(_FORM)
        return substituted(e, dict(zip([c.id for c in self.outer], keys, strict=True)))

    def _domain(self) -> tuple[Rel, Keys]:
        keys = _fresh(self.outer, self._ids)
        rows, known = copied(self._base, self._ids)
        values = tuple(replace(c, id=known[c.id]) for c in self.outer)
        return Distinct(keys, Project(keys, rows, values)), keys

    def filter(self, rel: Filter) -> tuple[Rel, Keys]:
        inner, keys = self.below(rel.input)
        return Filter(inner.columns, inner, self.over(rel.condition, keys)), keys

    def project(self, rel: Project) -> tuple[Rel, Keys]:
        inner, keys = self.below(rel.input)
        exprs = tuple(self.over(e, keys) for e in rel.exprs)
        return Project((*rel.columns, *keys), inner, (*exprs, *keys)), keys

    def sort(self, rel: Sort) -> tuple[Rel, Keys]:
        inner, keys = self.below(rel.input)
        return Sort(inner.columns, inner, self._order(rel, keys)), keys

    def _order(self, rel: Sort, keys: Keys) -> tuple[SortKey, ...]:
        return tuple(replace(k, expr=self.over(k.expr, keys)) for k in rel.keys)

    def distinct(self, rel: Distinct) -> tuple[Rel, Keys]:
        inner, keys = self.below(rel.input)
        kept = (*rel.columns, *keys)
        return Distinct(kept, Project(kept, inner, kept)), keys

    def limit(self, rel: Limit) -> tuple[Rel, Keys]:
        """The first rows of each key, by their numbers."""
        if isinstance(rel.input, Project) and isinstance(rel.input.input, Sort):  # what is sorted by is not shown
            shown, ordered = rel.input, rel.input.input
            return self.below(replace(shown, input=Limit(ordered.columns, ordered, rel.limit, rel.offset)))
        if rel.limit != ALL_ROWS and not all(reaches(rel.input, {i}) for i in self.told_apart):
            raise unsupported(_FORM)  # Spark counts the rows of all those together that only other parts tell apart
        inner, keys = self.below(rel.input)
        if rel.limit == ALL_ROWS:
            return Limit(inner.columns, inner, ALL_ROWS, 0), keys
        order = self._order(rel.input, keys) if isinstance(rel.input, Sort) else ()
        row = Col(INT, False, self._ids.take(), "")
        columns = (*inner.columns, row)
        terms: list[Expr] = [Call(BOOLEAN, False, ">", (row, Lit(INT, False, min(rel.offset, _MOST))))]
        if rel.limit is not None and rel.offset + rel.limit < _MOST:
            terms.append(Call(BOOLEAN, False, "<=", (row, Lit(INT, False, rel.offset + rel.limit))))
        number = replace(numbers(), partition=keys, order=order)
        return Filter(columns, b.WindowRel(columns, inner, (number,)), _all(terms)), keys

    def window(self, rel: b.WindowRel) -> tuple[Rel, Keys]:
        inner, keys = self.below(rel.input)
        windows = []
        for w in rel.windows:
            over = self.over(w, keys)
            assert isinstance(over, b.Window)
            windows.append(replace(over, partition=(*over.partition, *keys)))
        made = rel.columns[len(rel.columns) - len(windows) :]
        return b.WindowRel((*inner.columns, *made), inner, tuple(windows)), keys

    def generate(self, rel: b.Generate) -> tuple[Rel, Keys]:
        inner, keys = self.below(rel.input)
        generator = self.over(rel.generator, keys)
        assert isinstance(generator, Call)
        return b.Generate((*inner.columns, *rel.made), inner, generator, rel.outer), keys

    def aggregate(self, rel: Aggregate) -> tuple[Rel, Keys]:
        if rel.sets is not None:
            raise unsupported(_FORM)
        inner, keys = self.below(rel.input)
        by = tuple(self.over(k, keys) for k in rel.keys)
        aggs = tuple(self.over(a, keys) for a in rel.aggs)
        width, fresh = len(by), _fresh(keys, self._ids)
        if by or self._spares:
            columns = (*rel.columns[:width], *fresh, *rel.columns[width:])
            return Aggregate(columns, inner, (*by, *keys), aggs), fresh  # type: ignore[arg-type]
        found = tuple(Col(c.type, True, self._ids.take(), c.name) for c in rel.columns)
        grouped = Aggregate((*fresh, *found), inner, keys, aggs)  # type: ignore[arg-type]
        domain, outer = self._domain()
        values = []
        for agg, value in zip(rel.aggs, found, strict=True):
            whole = over_nothing(agg, value)
            if whole is None:
                raise unsupported(f"`{agg.shown or agg.fn}` in a correlated subquery", agg.span)
            values.append(whole)
        return Project((*rel.columns, *outer), beside("left", domain, grouped, outer, fresh), (*values, *outer)), outer

    def join(self, rel: Join) -> tuple[Rel, Keys]:
        """The keys come from a side that keeps its rows; where both have them, they are equal."""
        own = rel.condition is not None and mentions(rel.condition, self._foreign)
        if rel.lateral or (own and rel.kind == "full"):  # of which Spark loses rows of the right side
            raise unsupported(_FORM)
        on_left, on_right = reaches(rel.left, self._foreign), reaches(rel.right, self._foreign)
        on_right = on_right or rel.kind in ("right", "full")
        on_left = on_left or rel.kind in ("left", "full", "semi", "anti") or (own and not on_right)
        left, left_keys = self.below(rel.left) if on_left else (rel.left, ())
        right, right_keys = self.below(rel.right) if on_right else (rel.right, ())
        keys = left_keys if on_left and rel.kind != "right" else right_keys
        terms = list(_same(left_keys, right_keys)) if on_left and on_right else []
        if rel.condition is not None:
            terms.append(self.over(rel.condition, keys))
        columns = {c.id: c for c in rel.columns}
        if rel.kind in ("semi", "anti"):
            shown = left.columns
        else:
            lost = {
                *(left_keys if rel.kind in ("right", "full") else ()),
                *(right_keys if rel.kind in ("left", "full") else ()),
            }
            columns |= {c.id: replace(c, nullable=True) for c in lost}
            shown = tuple(columns.get(c.id, c) for c in (*left.columns, *right.columns))
        kind = ("inner" if terms else "cross") if rel.kind in ("inner", "cross") else rel.kind
        made = Join(shown, kind, left, right, _all(terms) if terms else None)
        if rel.kind != "full":
            return made, keys
        either = _fresh(keys, self._ids)
        values = tuple(
            Call(k.type, k.nullable, "coalesce", (replace(x, nullable=True), replace(y, nullable=True)))
            for k, x, y in zip(either, left_keys, right_keys, strict=True)
        )
        return Project((*rel.columns, *either), made, (*rel.columns, *values)), either

    def set_operation(self, rel: b.SetOp) -> tuple[Rel, Keys]:
        sides = []
        for side in rel.inputs:
            inner, keys = self.below(side)
            kept = (*side.columns, *keys)
            sides.append(Project(kept, inner, kept))
        fresh = _fresh(self.outer, self._ids)
        return replace(rel, columns=(*rel.columns, *fresh), inputs=tuple(sides)), fresh


_RULES: dict[type, Callable[[_Spread, Any], tuple[Rel, Keys]]] = {
    Filter: _Spread.filter,
    Project: _Spread.project,
    Sort: _Spread.sort,
    Distinct: _Spread.distinct,
    Limit: _Spread.limit,
    b.WindowRel: _Spread.window,
    b.Generate: _Spread.generate,
    Aggregate: _Spread.aggregate,
    Join: _Spread.join,
    b.SetOp: _Spread.set_operation,
}


def _superset(rel: Rel, foreign: Sequence[Col], asked: Sequence[Expr]) -> Rel:
    """What has the same rows whenever it is computed, and all those of `rel` among them; `asked`: what is computed of these.

    Of a LIMIT and of ties nobody knows which rows come first, nor of sums of floats their last bits. Rows that a LIMIT left
    out must not raise.
    """
    if isinstance(rel, Limit):
        if not all(map(_is_harmless, asked)):
            raise unsupported("a correlated subquery, in which a row may fail, of a query over LIMIT")
        return _superset(rel.input, foreign, asked)
    asked = [*asked, *expressions_of(rel)]
    if isinstance(rel, (Project, Filter, Sort, Distinct)):
        return replace(rel, input=_superset(rel.input, foreign, asked))
    if isinstance(rel, Join) and rel.kind in ("inner", "cross"):
        return replace(rel, left=_superset(rel.left, foreign, asked), right=_superset(rel.right, foreign, asked))
    for below in all_relations(rel):
        numbered = isinstance(below, (b.WindowRel, Aggregate)) and any(map(_follows_order, expressions_of(below)))
        if isinstance(below, Limit) or (numbered and len(foreign) > 1):
            raise unsupported(_FORM)
        if isinstance(below, (b.WindowRel, Aggregate)) and any(is_fractional(c.type) for c in foreign):
            raise unsupported(_FORM)
    return rel


def _is_harmless(e: Expr) -> bool:
    """Whether it is seen at once that it raises for no row."""
    is_known = isinstance(e, (Col, Lit)) or (isinstance(e, (Call, b.Agg)) and e.fn in _HARMLESS)
    return is_known and all(map(_is_harmless, children(e)))


def _follows_order(e: Expr) -> bool:
    """Whether a value depends on which of its rows comes first."""
    return any(isinstance(n, b.Window) or (isinstance(n, b.Agg) and n.fn in _OF_ORDER) for n in nodes(e))


def _same(outer: Sequence[Col], keys: Sequence[Col]) -> list[Expr]:
    """That the keys are those of a row, NULL being one."""
    return [
        Call(BOOLEAN, False, "<=>" if o.nullable or k.nullable else "=", (o, k))
        for o, k in zip(outer, keys, strict=False)
    ]


def _fresh(columns: Sequence[Col], ids: Ids) -> Keys:
    return tuple(replace(c, id=ids.take(), name="") for c in columns)


def _has_map(t: DataType) -> bool:
    return isinstance(t, MapType) or any(map(_has_map, t.children()))


def _all(terms: Sequence[Expr]) -> Expr:
    whole = terms[0]
    for term in terms[1:]:
        whole = Call(BOOLEAN, True, "and", (whole, term))
    return whole
