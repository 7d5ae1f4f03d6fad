"""Subqueries in places that the engine has no plan for, as scalar subqueries over counts, with Spark's meaning of NULL.

In a filter the engine joins: EXISTS and IN stay there as conjuncts and below AND and OR. Anywhere else (select items, below
NOT or a function, join conditions) Spark asks only whether a row exists: `x IN (…)` is true or false, never NULL, and
`x NOT IN (…)` is true only if no row equals x or might. Those become ``(SELECT count(1) > 0 …)``.
A correlated scalar subquery that is not an aggregate becomes one, guarded by the count of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.errors import unsupported
from gateway.sql import bound as b
from gateway.sql.bound import (
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
    children,
)
from gateway.sql.functions.lowerings import raise_row
from gateway.sql.grouping import rebuilt
from gateway.sqltypes import BIGINT, BOOLEAN, INT

_TRUE, _FALSE = Lit(BOOLEAN, False, True), Lit(BOOLEAN, False, False)
_TELLS_NULL = frozenset({"is null", "is not null", "isnull", "isnotnull", "=", "<=>", "coalesce", "nvl", "in"})
_TOO_MANY = "More than one row returned by a subquery used as an expression."


def rewritten(rel: Rel, ids: Ids) -> Rel:
    """`rel` with its subqueries in forms that the engine plans; changes it in place."""
    _Existence(ids).relation(rel)
    return rel


class _Existence:
    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._seen: set[int] = set()

    # ------------------------------------------------------------------------------------------------------- relations

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
        if isinstance(r, Filter):
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

    # ------------------------------------------------------------------------------------------------------- positions

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
        if isinstance(e, Subquery) and e.kind in ("exists", "in"):
            e = self._entered(e)
            if e.kind == "exists":
                return self._bare(e)
            return e if len(e.args) == 1 else self._matching(e)
        return self.value(e)

    def _anti(self, negation: Call, e: Subquery) -> Expr:
        e = self._entered(e)
        if e.kind == "exists":
            return replace(negation, args=(self._bare(e),))
        if e.kind != "in":
            return self.value(negation)
        if len(e.args) == 1 and not (e.outer and e.nullable):
            return replace(negation, args=(e,))
        return replace(negation, args=(self._matching(e, maybe=True),))

    def value(self, e: Expr) -> Expr:
        """A place where the value counts."""
        if not _has_subquery(e):
            return e
        if isinstance(e, Subquery):
            return self._value_of(self._entered(e))
        if isinstance(e, Call) and e.fn == "not":
            arg = e.args[0]
            if isinstance(arg, Subquery) and arg.kind == "in" and arg.nullable:
                return self._not_in(self._entered(arg))
            pushed = _negated(arg)
            if pushed is not None:
                return self.value(pushed)
        if isinstance(e, Call) and e.fn in _TELLS_NULL and any(map(_may_be_unknown, e.args)) and not _asks_truth(e):
            raise unsupported("telling NULL from false in the result of IN (subquery)", e.span)
        return rebuilt(e, self.value)

    # ------------------------------------------------------------------------------------------------------ subqueries

    def _entered(self, e: Subquery) -> Subquery:
        """The subquery with its own subqueries rewritten."""
        self.relation(e.plan)
        return replace(e, args=tuple(self.value(a) for a in e.args))

    def _value_of(self, e: Subquery) -> Expr:
        if e.kind == "exists":
            bare = self._bare(e)
            return self._exists(bare) if isinstance(bare, Subquery) else bare
        source, values = _peeled(e.plan)
        if isinstance(source, b.OneRow):  # no rows to ask: the values themselves
            here = tuple(_substituted(v, {c.id: c for c in e.outer}) for v in values)
            if e.kind == "scalar":
                return here[0]
            terms = tuple(Call(BOOLEAN, e.nullable, "=", pair) for pair in zip(e.args, here, strict=True))
            term = terms[0] if len(terms) == 1 else Call(BOOLEAN, e.nullable, "and", terms)
            return Call(BOOLEAN, False, "coalesce", (term, _FALSE)) if term.nullable else term
        if e.kind == "in":
            return self._exists(self._matching(e))
        if e.outer and not is_global(e.plan):
            return self._single(e)
        return e

    def _matching(self, e: Subquery, maybe: bool = False) -> Subquery:
        """EXISTS over the rows of an IN that equal its left side; with `maybe` also those that may, for NULL."""
        source, columns = _peeled(e.plan, distinct=True)
        terms = tuple(
            Call(BOOLEAN, c.nullable or v.nullable, "=", (c, _outer(v))) for c, v in zip(columns, e.args, strict=True)
        )
        term: Expr = Call(BOOLEAN, any(t.nullable for t in terms), "and", terms) if len(terms) > 1 else terms[0]
        if maybe and term.nullable:
            term = Call(BOOLEAN, False, "coalesce", (term, _TRUE))
        plan = Filter(source.columns, source, term)
        outer = {c.id: c for c in e.outer} | {c.id: c for v in e.args for c in _columns(v)}
        return Subquery(BOOLEAN, False, "exists", plan, (), tuple(outer.values()), e.span)

    def _not_in(self, e: Subquery) -> Expr:
        """NOT IN as a value: true over no rows; false for a NULL on either side; else whether nothing equals."""
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

    def _counted(self, e: Subquery, make: Callable[[Col], Expr]) -> Subquery:
        """The scalar subquery of an expression over the count of the rows."""
        count = Col(BIGINT, False, self._ids.take(), "")
        agg = Agg(BIGINT, False, "count", (Lit(INT, False, 1),))
        value = make(count)
        column = Col(value.type, value.nullable, self._ids.take(), "")
        source, _ = _peeled(e.plan)
        plan = Project((column,), Aggregate((count,), source, (), (agg,)), (value,))
        return Subquery(value.type, False, "scalar", plan, (), e.outer, e.span)

    def _exists(self, e: Subquery) -> Subquery:
        return self._counted(e, lambda count: Call(BOOLEAN, False, ">", (count, Lit(BIGINT, False, 0))))

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
        plan = e.plan
        while isinstance(plan, (Project, Sort, Distinct)) or (
            isinstance(plan, Limit) and plan.limit != 0 and not plan.offset
        ):
            plan = plan.input
        one = Col(INT, False, self._ids.take(), "")
        return replace(e, plan=Project((one,), plan, (Lit(INT, False, 1),)))

    def _single(self, e: Subquery) -> Expr:
        """A correlated scalar subquery that may have several rows."""
        source, (value,) = _peeled(e.plan)
        first = Col(e.type, True, self._ids.take(), "")
        agg = Agg(e.type, True, "first", (value,), data=(False, False))
        only = replace(e, plan=Aggregate((first,), source, (), (agg,)))
        several = self._counted(e, lambda count: Call(BOOLEAN, False, ">", (count, Lit(BIGINT, False, 1))))
        failing = raise_row(e.type, "SCALAR_SUBQUERY_TOO_MANY_ROWS", _TOO_MANY)
        return Case(e.type, True, ((several, failing),), only)


def _has_subquery(e: Expr) -> bool:
    return isinstance(e, Subquery) or any(map(_has_subquery, children(e)))


def _peeled(rel: Rel, distinct: bool = False) -> tuple[Rel, tuple[Expr, ...]]:
    """The relation below projections and sorts (and DISTINCT) at the top, and the columns of `rel` over it."""
    exprs: tuple[Expr, ...] = rel.columns
    while isinstance(rel, (Project, Sort)) or (distinct and isinstance(rel, Distinct)):
        if isinstance(rel, Project):
            known = {c.id: x for c, x in zip(rel.columns, rel.exprs, strict=True)}
            exprs = tuple(_substituted(x, known) for x in exprs)
        rel = rel.input
    return rel, exprs


def _check_join(e: Expr, kind: str) -> None:
    """What Spark refuses in a join condition, or answers by the way that it plans the join."""
    if isinstance(e, Subquery) and e.kind == "scalar" and e.outer:
        raise unsupported("a correlated scalar subquery in a join condition", e.span)
    if kind not in ("inner", "cross") and isinstance(e, Call) and e.fn == "not" and _may_be_unknown(e):
        raise unsupported("NOT IN (subquery) with NULLs in the condition of an outer join", e.span)
    for child in children(e):
        _check_join(child, kind)


def _substituted(e: Expr, known: dict[int, Expr]) -> Expr:
    return known.get(e.id, e) if isinstance(e, Col) else rebuilt(e, lambda child: _substituted(child, known))


def is_global(rel: Rel) -> bool:
    """Whether `rel` has at most one row because its top is an aggregate without GROUP BY."""
    while isinstance(rel, (Project, Filter, Sort, Limit, Distinct)):
        rel = rel.input
    return isinstance(rel, Aggregate) and not rel.keys and rel.sets is None


def _may_be_unknown(e: Expr) -> bool:
    """Whether `e` is an IN or NOT IN whose NULL Spark does not keep everywhere."""
    while isinstance(e, Call) and e.fn == "not":
        e = e.args[0]
    return isinstance(e, Subquery) and e.kind == "in" and e.nullable


def _asks_truth(e: Call) -> bool:
    return e.fn == "<=>" and any(isinstance(a, Lit) and a.value is True for a in e.args)


def _not(e: Expr) -> Expr:
    return Call(BOOLEAN, e.nullable, "not", (e,))


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
