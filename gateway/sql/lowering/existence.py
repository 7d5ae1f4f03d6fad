"""Subqueries in places that the engine has no plan for, as scalar subqueries over counts, with Spark's meaning of NULL.

In a filter the engine joins: EXISTS and IN stay there as conjuncts and below AND and OR. Anywhere else (select items, below
NOT or a function, join conditions) Spark asks only whether a row exists: `x IN (…)` is true or false, never NULL, and
`x NOT IN (…)` is true only if no row equals x or might. Those become ``(SELECT count(1) > 0 …)``.
A correlated scalar subquery that is not an aggregate becomes one, guarded by the count of its rows; of one that is an aggregate
without GROUP BY, `correlation` makes a join, and what stands over the aggregate is computed beside the outer row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gateway.errors import unsupported
from gateway.sql.functions.lowerings import raise_row
from gateway.sql.lowering.correlation import (
    ALL_ROWS,
    here,
    joined,
    numbered,
    over_nothing,
    reads_in_filters,
)
from gateway.sql.lowering.domains import aggregated
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Catalogue, is_steady
from gateway.sql.typed.nodes import (
    Agg,
    Aggregate,
    Call,
    Case,
    Col,
    CteRef,
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
    Subquery,
)
from gateway.sql.typed.walk import (
    all_expressions,
    all_of,
    all_relations,
    children,
    conjuncts_of,
    expressions_of,
    has_columns,
    is_global,
    nodes,
    rebuilt,
    substituted,
)
from gateway.sqltypes import BIGINT, BOOLEAN, INT

_TRUE, _FALSE = Lit(BOOLEAN, False, True), Lit(BOOLEAN, False, False)
_TELLS_NULL = frozenset({"is null", "is not null", "isnull", "isnotnull", "=", "<=>", "coalesce", "nvl", "in"})
_TOO_MANY = "More than one row returned by a subquery used as an expression."


def rewritten(rel: Rel, ids: Ids, catalogue: Catalogue) -> Rel:
    """`rel` with its subqueries in forms that the engine plans; changes it in place."""
    _Existence(ids, catalogue).relation(rel)
    return rel


class _Existence:
    def __init__(self, ids: Ids, catalogue: Catalogue) -> None:
        self._ids = ids
        self._catalogue = catalogue
        self._seen: set[int] = set()
        self._filters = False  # whether they are a filter's
        self._base: Rel | None = None  # what the expressions at hand are over, joined with what they ask for
        self._origin: Rel | None = None  # the same before anything was joined

    def relation(self, rel: Rel) -> None:
        stack = [rel]
        while stack:
            r = stack.pop()
            if id(r) in self._seen:
                continue
            self._seen.add(id(r))
            self._expressions(r)
            if isinstance(r, Join):
                stack += [r.left, r.right]
            elif isinstance(r, b.SetOp):
                stack += r.inputs
            elif isinstance(r, CteRef):
                stack.append(r.cte.plan)
            else:
                inner = getattr(r, "input", None)
                if inner is not None:
                    stack.append(inner)

    def _expressions(self, r: Rel) -> None:
        enclosing, self._base = (self._base, self._origin, self._filters), None
        self._filters = isinstance(r, Filter)
        if isinstance(r, (Filter, Project, Aggregate, b.WindowRel, Sort)):
            self._base = self._origin = r.input
            self._rewrite(r)
            r.input = self._base
        else:
            self._rewrite(r)
        self._base, self._origin, self._filters = enclosing

    def _rewrite(self, r: Rel) -> None:
        if isinstance(r, (Sort, b.Generate)):  # as Spark, which has no plan for them
            for e in expressions_of(r):
                _check_scalar(e, "ORDER BY" if isinstance(r, Sort) else "a generator")
        if isinstance(r, Filter):
            self._split(r)
            r.condition = self.condition(r.condition)
        elif isinstance(r, Project):
            r.exprs = tuple(self.value(e) for e in r.exprs)
        elif isinstance(r, Join):
            if r.condition is not None and _has_subquery(r.condition):
                _check_join(r.condition, r.kind)
                r.condition = self._lifted(self.value(r.condition), r)
        elif isinstance(r, Aggregate):
            r.keys = tuple(self.value(e) for e in r.keys)
            r.aggs = tuple(a for a in map(self.value, r.aggs) if isinstance(a, Agg))
        elif isinstance(r, b.WindowRel):
            r.windows = tuple(w for w in map(self.value, r.windows) if isinstance(w, b.Window))
        elif isinstance(r, Sort):
            r.keys = tuple(SortKey(self.value(k.expr), k.descending, k.nulls_first) for k in r.keys)
        elif isinstance(r, b.Generate):
            r.generator = replace(r.generator, args=tuple(self.value(a) for a in r.generator.args))

    def _split(self, r: Filter) -> None:
        """What asks for no join is asked first, below the joins: as Spark moves it."""
        conjuncts = conjuncts_of(r.condition)
        plain = tuple(c for c in conjuncts if not _joins(c))
        if plain and len(plain) < len(conjuncts) and self._base is not None:
            self._base = self._origin = Filter(self._base.columns, self._base, self.condition(all_of(plain)))
            r.condition = all_of(tuple(c for c in conjuncts if _joins(c)))

    def _lifted(self, e: Expr, join: Join) -> Expr:
        """A join condition whose subqueries are computed below the join, on the side that they refer to."""
        if not isinstance(e, Subquery):
            return rebuilt(e, lambda child: self._lifted(child, join)) if _has_subquery(e) else e
        found = {c.id for c in e.outer}
        left = not found & {c.id for c in join.right.columns}
        if not left and found & {c.id for c in join.left.columns}:
            raise unsupported("a subquery over both sides of a join in its condition", e.span)
        side = join.left if left else join.right
        column = Col(e.type, True, self._ids.take(), "")
        made = Project((*side.columns, column), side, (*side.columns, e))
        if left:
            join.left = made
        else:
            join.right = made
        return column

    def condition(self, e: Expr) -> Expr:
        """A conjunct of a filter: the engine joins for EXISTS, IN and their negations."""
        if not _has_subquery(e):
            return e
        if isinstance(e, Call) and e.fn == "and":
            return replace(e, args=tuple(self.condition(a) for a in e.args))
        if isinstance(e, Call) and e.fn == "not":
            arg = e.args[0]
            if isinstance(arg, Subquery):
                return self._anti(e, arg)
            pushed = _negated(arg)
            return self.condition(pushed) if pushed is not None else self.value(e)
        return self.under(e)

    def under(self, e: Expr) -> Expr:
        """Below AND and OR of a filter, nothing negated: NULL is as good as false."""
        if isinstance(e, Call) and e.fn in ("and", "or"):
            return replace(e, args=tuple(self.under(a) for a in e.args))
        if isinstance(e, Call) and e.fn == "not" and isinstance(e.args[0], Subquery) and not e.args[0].nullable:
            return self._anti(e, e.args[0])
        if isinstance(e, Subquery) and e.kind in ("exists", "in") and not _is_counted(e):
            e = self._entered(e)
            if e.kind == "exists":
                return self._bare(e)
            return e if _is_column(e.args) else self._matching(e)
        return self.value(e)

    def _anti(self, negation: Call, e: Subquery) -> Expr:
        if e.kind == "scalar" or _is_counted(e):
            return self.value(negation)
        e = self._entered(e)
        if e.kind == "exists":
            return replace(negation, args=(self._bare(e),))
        if _is_column(e.args) and not (e.outer and e.nullable):
            return replace(negation, args=(e,))
        return replace(negation, args=(self._matching(e, maybe=True),))

    def value(self, e: Expr) -> Expr:
        """A place where the value counts."""
        if not _has_subquery(e):
            return e
        e = _truth(e) or e
        if isinstance(e, Subquery):
            return self._value_of(self._entered(e))
        if isinstance(e, Call) and e.fn == "not":
            arg = e.args[0]
            if isinstance(arg, Subquery) and arg.kind == "in" and arg.nullable and not _is_null_asked(arg):
                return self._not_in(self._entered(arg))
            pushed = _negated(arg)
            if pushed is not None:
                return self.value(pushed)
        return rebuilt(e, self.value)

    def _entered(self, e: Subquery) -> Subquery:
        """The subquery with its own subqueries rewritten."""
        plan = _asked_for_values(e.plan) if e.kind == "in" else e.plan
        self.relation(plan)
        return replace(e, plan=plan, args=tuple(self.value(a) for a in e.args))

    def _value_of(self, e: Subquery) -> Expr:
        if is_row(e):
            return self._row(e)
        if e.kind == "exists":
            bare = self._bare(e)
            return self._exists(bare) if isinstance(bare, Subquery) else bare
        source, values = _peeled(e.plan)
        if isinstance(source, b.OneRow):  # no rows to ask: the values themselves
            found = tuple(map(here, values))
            if e.kind == "scalar":
                return found[0]
            if _is_null_asked(e):
                return Lit(BOOLEAN, True, None)
            term = all_of(tuple(Call(BOOLEAN, e.nullable, "=", pair) for pair in zip(e.args, found, strict=True)))
            return Call(BOOLEAN, False, "coalesce", (term, _FALSE)) if term.nullable else term
        if e.kind == "in" and _is_null_asked(e):
            return Case(BOOLEAN, True, ((self._exists(replace(e, args=())), Lit(BOOLEAN, True, None)),), _FALSE)
        if e.kind == "in":
            return self._exists(self._matching(e))
        return self._single(e) if e.outer else self._free(e)

    def _free(self, e: Subquery) -> Subquery:
        """A scalar subquery of no outer columns: one that may be empty is NULL then, of which the engine is told by a join."""
        if _is_always(e.plan):
            return e
        column = replace(e.plan.columns[0], nullable=True)
        one = Project((), b.OneRow(()), ())
        return replace(e, plan=Join((column,), "left", one, e.plan, None))

    def _row(self, e: Subquery, negated: bool = False) -> Expr:
        """A correlated subquery that is an aggregate without GROUP BY, of whose one row HAVING and LIMIT may leave nothing."""
        aggregate, exprs, conditions = _unfolded(e.plan)
        exprs, conditions = tuple(map(here, exprs)), list(map(here, conditions))
        values = dict(zip([c.id for c in aggregate.columns], self._aggregated(e, aggregate), strict=True))
        kept = tuple(Call(BOOLEAN, False, "<=>", (substituted(c, values), _TRUE)) for c in conditions)
        there = all_of(kept) if kept else None
        if e.kind == "exists":
            return there if there is not None else _TRUE
        found = tuple(substituted(x, values) for x in exprs)
        if e.kind == "scalar":
            return found[0] if there is None else Case(e.type, True, ((there, found[0]),), None)
        equal = all_of(tuple(Call(BOOLEAN, True, "=", pair) for pair in zip(e.args, found, strict=True)))
        certain = Call(BOOLEAN, False, "coalesce", (_not(equal) if negated else equal, _FALSE))
        if there is None:
            return certain
        return Case(BOOLEAN, False, ((there, certain),), _TRUE if negated else _FALSE)

    def _aggregated(self, e: Subquery, aggregate: Aggregate) -> tuple[Expr, ...]:
        """The values of a correlated global aggregate, for each row of the enclosing query."""
        found: tuple[Expr, ...] | None = None
        if self._base is not None and self._origin is not None:
            foreign = {c.id for c in e.outer}
            made = joined(self._base, aggregate, foreign, self._ids) or numbered(
                self._base, aggregate, foreign, self._ids
            )
            if made is None:
                self._check_steady(e, aggregate)
                made = aggregated(
                    self._base, self._origin, aggregate, e.outer, self._ids, e.kind == "scalar", _spares_rows(e)
                )
            self._base, found = made
        if found is None:  # below a join's condition, from where it is lifted first
            found = tuple(
                Subquery(a.type, True, "scalar", replace(aggregate, columns=(c,), aggs=(a,)), (), e.outer, e.span)
                for c, a in zip(aggregate.columns, aggregate.aggs, strict=True)
            )
        values = tuple(over_nothing(a, v) for a, v in zip(aggregate.aggs, found, strict=True))
        for agg, value in zip(aggregate.aggs, values, strict=True):
            if value is None:
                raise unsupported(f"`{agg.shown or agg.fn}` in a correlated subquery", e.span)
        return tuple(v for v in values if v is not None)

    def _check_steady(self, e: Subquery, aggregate: Aggregate) -> None:
        """What is computed twice must give the same."""
        assert self._origin is not None
        if not all(is_steady(x, self._catalogue) for r in (self._origin, aggregate) for x in all_expressions(r)):
            raise unsupported("a correlated subquery beside what differs from call to call", e.span)

    def _matching(self, e: Subquery, maybe: bool = False) -> Subquery:
        """EXISTS over the rows of an IN that equal its left side; with `maybe` also those that may, for NULL."""
        source, columns = _peeled(e.plan, distinct=True)
        terms = tuple(
            Call(BOOLEAN, c.nullable or v.nullable, "=", (c, _outer(v))) for c, v in zip(columns, e.args, strict=True)
        )
        term = all_of(terms)
        if maybe and term.nullable:
            term = Call(BOOLEAN, False, "coalesce", (term, _TRUE))
        plan = Filter(source.columns, source, term)
        outer = {c.id: c for c in e.outer} | {c.id: c for v in e.args for c in _columns(v)}
        return Subquery(BOOLEAN, False, "exists", plan, (), tuple(outer.values()), e.span)

    def _not_in(self, e: Subquery) -> Expr:
        """NOT IN as a value: true over no rows; false for a NULL on either side; else whether nothing equals."""
        if is_row(e):
            return self._row(e, negated=True)
        whens: list[tuple[Expr, Expr]] = [(_not(self._exists(replace(e, args=()))), _TRUE)]
        source, columns = _peeled(e.plan, distinct=True)
        for value, column in zip(e.args, columns, strict=True):
            if len(e.args) > 1 and (value.nullable or column.nullable):
                matching = self._matching(e, maybe=True)
                return _not(self._exists(matching))
            if value.nullable:
                whens.append((Call(BOOLEAN, False, "is null", (value,)), _FALSE))
            if column.nullable:
                missing = Filter(source.columns, source, Call(BOOLEAN, False, "is null", (column,)))
                whens.append((self._exists(replace(e, plan=missing, args=())), _FALSE))
        return Case(BOOLEAN, False, tuple(whens), _not(self._exists(self._matching(e))))

    def _exists(self, e: Subquery) -> Expr:
        """Whether there are rows, by their count."""
        source, _ = _peeled(e.plan)
        return Call(BOOLEAN, False, ">", (self._asked(e, source, ())[0], Lit(BIGINT, False, 0)))

    def _asked(self, e: Subquery, source: Rel, aggs: tuple[Agg, ...]) -> tuple[Expr, ...]:
        """The count of the rows of `source`, and `aggs` over them."""
        aggs = (Agg(BIGINT, False, "count", (Lit(INT, False, 1),)), *aggs)
        columns = tuple(Col(a.type, a.nullable, self._ids.take(), "") for a in aggs)
        aggregate = Aggregate(columns, source, (), aggs)
        if e.outer:
            return self._aggregated(e, aggregate)
        return tuple(
            Subquery(a.type, True, "scalar", replace(aggregate, columns=(c,), aggs=(a,)), (), (), e.span)
            for c, a in zip(columns, aggs, strict=True)
        )

    def _global(self, e: Subquery) -> Expr | None:
        """EXISTS over an aggregate without GROUP BY: its one row is always there, unless HAVING or LIMIT removes it."""
        plan = e.plan
        while isinstance(plan, (Project, Sort, Distinct)):
            plan = plan.input
        return _TRUE if is_global(plan) and isinstance(plan, Aggregate) else None

    def _bare(self, e: Subquery) -> Expr:
        """EXISTS without what does not matter to it: select list, DISTINCT, ORDER BY, LIMIT."""
        always = self._global(e)
        if always is not None:
            return always
        plan = _asked_for_rows(e.plan)
        one = Col(INT, False, self._ids.take(), "")
        return replace(e, plan=Project((one,), plan, (Lit(INT, False, 1),)))

    def _single(self, e: Subquery) -> Expr:
        """A correlated scalar subquery that may have several rows."""
        source, (value,) = _peeled(e.plan)
        first = Agg(e.type, True, "first", (value,), data=(False, False))
        count, only = self._asked(e, source, (first,))
        several = Call(BOOLEAN, False, ">", (count, Lit(BIGINT, False, 1)))
        if self._base is not None:  # whoever asks for the value, and wherever: Spark's join fails
            failing = raise_row(BOOLEAN, "SCALAR_SUBQUERY_TOO_MANY_ROWS", _TOO_MANY)
            checked = Filter(self._base.columns, self._base, Case(BOOLEAN, False, ((several, failing),), _TRUE))
            self._base = Limit(checked.columns, checked, ALL_ROWS, 0) if self._filters else checked
            return only
        failing = raise_row(e.type, "SCALAR_SUBQUERY_TOO_MANY_ROWS", _TOO_MANY)
        return Case(e.type, True, ((several, failing),), only)


def _has_subquery(e: Expr) -> bool:
    return isinstance(e, Subquery) or any(map(_has_subquery, children(e)))


def _joins(e: Expr) -> bool:
    """Whether Spark makes a join of a subquery in `e`, not a constant."""
    return any(isinstance(n, Subquery) and (n.outer or n.kind == "in") for n in nodes(e))


def _peeled(rel: Rel, distinct: bool = False) -> tuple[Rel, tuple[Expr, ...]]:
    """The relation below projections and sorts (and DISTINCT) at the top, and the columns of `rel` over it."""
    exprs: tuple[Expr, ...] = rel.columns
    while isinstance(rel, (Project, Sort)) or (distinct and isinstance(rel, Distinct)):
        if isinstance(rel, Project):
            known = {c.id: x for c, x in zip(rel.columns, rel.exprs, strict=True)}
            exprs = tuple(substituted(x, known) for x in exprs)
        rel = rel.input
    return rel, exprs


def _check_join(e: Expr, kind: str) -> None:
    """What Spark refuses in a join condition, or answers by the way that it plans the join."""
    if isinstance(e, Subquery):
        _check_scalar(e, "a join condition")
    if kind not in ("inner", "cross") and isinstance(e, Call) and e.fn == "not" and _may_be_unknown(e):
        raise unsupported("NOT IN (subquery) with NULLs in the condition of an outer join", e.span)
    if isinstance(e, Call) and e.fn in _TELLS_NULL and any(_may_be_unknown(n) for a in e.args for n in _chosen(a)):
        raise unsupported("telling NULL from false in the result of IN (subquery) of a join's condition", e.span)
    for child in children(e):
        _check_join(child, kind)


def _check_scalar(e: Expr, place: str) -> None:
    """What Spark refuses outside select items, filters and aggregates."""
    for n in nodes(e):
        if isinstance(n, Subquery) and n.kind == "scalar" and n.outer:
            raise unsupported(f"a correlated scalar subquery in {place}", n.span)


def is_row(e: Subquery) -> bool:
    """Whether a correlated subquery is an aggregate without GROUP BY."""
    return bool(e.outer) and is_global(e.plan)


def _is_always(rel: Rel) -> bool:
    """Whether `rel` is one row whatever the data are."""
    while isinstance(rel, (Project, Sort, Distinct)):
        rel = rel.input
    return isinstance(rel, b.OneRow) or (isinstance(rel, Aggregate) and not rel.keys and rel.sets is None)


def _is_counted(e: Subquery) -> bool:
    """Whether the engine's own joins for EXISTS and IN would take a correlated subquery's rows for others."""
    plan = _asked_for_rows(e.plan) if e.kind == "exists" else _asked_for_values(e.plan)
    foreign = {c.id for c in e.outer}
    return is_row(e) or (bool(foreign) and not reads_in_filters(plan, foreign))


def _spares_rows(e: Subquery) -> bool:
    """Whether aggregates without GROUP BY inside of a scalar subquery's aggregate have no row of no rows: Spark gives them one
    only if one of them has a value over no rows, as counts have (PullupCorrelatedPredicates leaves the others to the join)."""
    top = e.plan
    while isinstance(top, Project):
        top = top.input
    if e.kind != "scalar" or not isinstance(top, Aggregate):
        return False
    inside = (r for r in all_relations(top.input) if isinstance(r, Aggregate) and not r.keys and r.sets is None)
    return all(a.nullable for r in inside for a in r.aggs)


def _asked_for_rows(rel: Rel) -> Rel:
    """`rel` without what does not change whether it has rows."""
    while isinstance(rel, (Project, Sort, Distinct)) or (isinstance(rel, Limit) and rel.limit != 0 and not rel.offset):
        rel = rel.input
    return replace(rel, all=True) if isinstance(rel, b.SetOp) and rel.kind == "union" else rel


def _asked_for_values(rel: Rel) -> Rel:
    """`rel` without what does not change which values its rows have."""
    while isinstance(rel, Distinct) and [c.id for c in rel.columns] == [c.id for c in rel.input.columns]:
        rel = rel.input
    return rel


def _unfolded(rel: Rel) -> tuple[Aggregate, tuple[Expr, ...], list[Expr]]:
    """The aggregate that a global one's plan stands on, and over it the plan's columns and the conditions on its row."""
    exprs: tuple[Expr, ...] = rel.columns
    conditions: list[Expr] = []
    while not isinstance(rel, Aggregate):
        assert isinstance(rel, (Project, Filter, Sort, Limit, Distinct))
        if isinstance(rel, Project):
            known = {c.id: x for c, x in zip(rel.columns, rel.exprs, strict=True)}
            exprs = tuple(substituted(x, known) for x in exprs)
            conditions = [substituted(x, known) for x in conditions]
        elif isinstance(rel, Filter):
            conditions.append(rel.condition)
        elif isinstance(rel, Limit) and (rel.limit == 0 or rel.offset):
            conditions.append(_FALSE)
        rel = rel.input
    return rel, exprs, conditions


def _chosen(e: Expr) -> Iterator[Expr]:
    """The expressions whose value `e` may have."""
    if isinstance(e, Case):
        for value in (*(then for _, then in e.whens), *((e.otherwise,) if e.otherwise is not None else ())):
            yield from _chosen(value)
    else:
        yield e


def _may_be_unknown(e: Expr) -> bool:
    """Whether `e` is an IN or NOT IN whose NULL Spark does not keep everywhere."""
    while isinstance(e, Call) and e.fn == "not":
        e = e.args[0]
    return isinstance(e, Subquery) and e.kind == "in" and e.nullable


def _is_null_asked(e: Subquery) -> bool:
    """Whether it is NULL IN (subquery), of which Spark knows that it is NULL or false before it looks at rows."""
    if e.kind != "in" or e.outer or len(e.args) != 1:
        return False
    value = e.args[0]
    while isinstance(value, b.Cast):
        value = value.arg
    return isinstance(value, Lit) and value.value is None


def _truth(e: Expr) -> Expr | None:
    """IN or NOT IN (subquery), which Spark makes of ``IN … = false`` and ``NOT (NOT IN …)`` before it looks at rows."""
    if isinstance(e, Subquery):
        return e if _may_be_unknown(e) else None
    if isinstance(e, Call) and e.fn == "not":
        inner = _truth(e.args[0])
        return _inverse(inner) if inner is not None else None
    if not isinstance(e, Call) or e.fn not in ("=", "in") or len(e.args) != 2:
        return None
    asked, constant = e.args if isinstance(e.args[1], Lit) else reversed(e.args)
    inner = _truth(asked)
    if inner is None or not isinstance(constant, Lit) or constant.value is None:
        return None
    return inner if constant.value else _inverse(inner)


def _inverse(e: Expr) -> Expr:
    return e.args[0] if isinstance(e, Call) and e.fn == "not" else _not(e)


def _not(e: Expr) -> Expr:
    return Call(BOOLEAN, e.nullable, "not", (e,))


def _is_column(values: tuple[Expr, ...]) -> bool:
    """Whether the engine's own IN takes them: one value, and of columns (it takes a constant NULL for equal to all)."""
    return len(values) == 1 and has_columns(values[0])


def _negated(e: Expr) -> Expr | None:
    """NOT e with the negation moved inwards; None where it stays."""
    if isinstance(e, Call) and e.fn in ("and", "or") and e.shown is None:
        other = "or" if e.fn == "and" else "and"
        return Call(BOOLEAN, e.nullable, other, tuple(_not(a) for a in e.args), span=e.span)
    return e.args[0] if isinstance(e, Call) and e.fn == "not" else None


def _outer(e: Expr) -> Expr:
    """A value of the enclosing query as its subquery sees it."""
    return replace(e, outer=True) if isinstance(e, Col) else rebuilt(e, _outer)


def _columns(e: Expr) -> list[Col]:
    return [e] if isinstance(e, Col) else [c for child in children(e) for c in _columns(child)]
