"""Constants that Spark computes before it reads a row: what raises among them raises even if no row needs it.

Spark's optimizer replaces what has no columns by its value, wherever it stands for certain to be evaluated: not below CASE and
its kin, not in columns that nobody reads, not beside a NULL that makes the whole NULL anyway, not over relations that it knows
to be empty by then. What is not certain is not listed here, and raises for a row as everything else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from gateway.sql.functions.statistics import untouched
from gateway.sql.lowering.correlation import over_no_rows, reaches
from gateway.sql.lowering.evaluation import CONDITIONAL, UNKNOWN, certain, is_written_null, simplified, truth
from gateway.sql.lowering.harmless import is_harmless
from gateway.sql.lowering.passing import Passing
from gateway.sql.lowering.planned_rows import (
    FEW,
    Emptiness,
    anded,
    is_local,
    is_outer,
    over_row,
    own_condition,
)
from gateway.sql.lowering.sunk import Effort, Rules, is_plain, of_sides, sunk
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Catalogue, Context, is_steady
from gateway.sql.typed.nodes import Agg, Call, Case, Cast, Col, Expr, Lambda, LambdaVar, Lit, Rel, Subquery, Window
from gateway.sql.typed.walk import all_relations, children, conjuncts_of, expressions_of, inputs_of, nodes
from gateway.sqltypes import VOID

# fmt: off
# A NULL among their operands does not make them NULL.
_TOLERANT = frozenset((
    "and", "or", "array", "struct", "named_struct", "map", "concat", "greatest", "least",
))
_MADE = frozenset(("array", "struct", "named_struct", "map"))
# What Spark does not compute before, whatever it is made of.
_RAISING = frozenset(("raise_error", "assert_true"))
UNFOLDED = _RAISING | {"elt", "map_concat"}
# The operand that they compute, behind If(both are not NULL): a constant where both are, or where the other one never is NULL.
_BEHIND_IF = {"regr_avgx": 1, "regr_sxx": 1, "regr_avgy": 0, "regr_syy": 0}
_NULL_TESTS = frozenset((
    "isnull", "isnotnull", "is null", "is not null", "count", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy",
))
# fmt: on


def computed_first(rel: Rel, catalogue: Catalogue, context: Context) -> list[tuple[Expr, bool]]:
    """The constants of a bound statement that Spark computes before it runs, and of each whether it is one of written rows."""
    if is_harmless(rel, context):
        return []
    emptiness = Emptiness(context)

    def of_statement(plan: Rel, is_read: bool, within: bool) -> list[tuple[Expr, bool]]:
        walk = _Found(catalogue, context, emptiness, {c.id for c in plan.columns} if is_read else set(), within)
        walk.enter(plan)
        return [(e, id(e) in walk.of_rows) for e in walk.constants]

    found = of_statement(rel, True, False)
    open_ = [rel]
    known: set[int] = set()
    while open_:
        for asked in _asked(open_.pop(), emptiness):
            if id(asked.plan) not in known:
                known.add(id(asked.plan))
                open_.append(asked.plan)
                found += of_statement(asked.plan, asked.is_read, True)
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query inside of another, which Spark plans by itself before it knows what of the other one is needed."""

    plan: Rel
    is_read: bool  # EXISTS reads no column


def _asked(rel: Rel, emptiness: Emptiness) -> Iterator[_Asked]:
    """The queries in expressions and behind LATERAL of relations that Spark does not know to be empty before; but for scalar
    ones with columns around them, of which it spares aggregates that nobody reads."""
    open_, ctes = [rel], set[int]()
    while open_:
        at = open_.pop()
        if is_local(at) or emptiness.is_without_rows(at, early=True):
            continue
        for part in (part for e in expressions_of(at) for part in nodes(e) if isinstance(part, Subquery)):
            if part.kind != "scalar" or not (part.outer or _is_one_row(part.plan)):
                yield _Asked(part.plan, part.kind != "exists")
        if isinstance(at, b.Join) and at.lateral:
            open_.append(at.left)
            if not _is_one_row(at.right):
                yield _Asked(at.right, True)
        elif not isinstance(at, b.CteRef):
            open_ += inputs_of(at)
        elif at.cte.id not in ctes:
            ctes.add(at.cte.id)
            open_.append(at.cte.plan)


def _is_selected_null(expr: Expr) -> bool:
    """Whether it is (SELECT NULL), in whose place Spark puts the NULL before it computes constants."""
    while isinstance(expr, Cast):
        expr = expr.arg
    if not isinstance(expr, Subquery) or expr.kind != "scalar":
        return False
    plan, value = expr.plan, None
    while isinstance(plan, b.Limit) and plan.limit != 0 and not plan.offset:
        plan = plan.input
    if isinstance(plan, b.Project) and _is_one_row(plan):
        value, below = plan.exprs[0], plan.input
        if isinstance(below, b.CteRef) and isinstance(below.cte.plan, b.Project) and isinstance(value, Col):
            places = {c.id: e for c, e in zip(below.columns, below.cte.plan.exprs, strict=True)}
            value = places.get(value.id, value)
    return value is not None and (is_written_null(value) or _is_selected_null(value))


def _is_one_row(rel: Rel) -> bool:
    """Whether it is a SELECT without FROM: Spark puts its expressions in its place."""
    while isinstance(rel, (b.Project, b.CteRef)):
        rel = rel.cte.plan if isinstance(rel, b.CteRef) else rel.input
    return isinstance(rel, b.OneRow)


class _Found:
    """A walk from the top down: constants met, and the columns that are read for certain.

    Args:
        read: the columns of the statement that are read.
        within: the statement is one inside of another: what reads columns of that one is moved there.
    """

    def __init__(
        self, catalogue: Catalogue, context: Context, emptiness: Emptiness, read: Set[int], within: bool
    ) -> None:
        self._context = context
        self._emptiness = emptiness
        self._read = read
        self._within = within
        self._exists = within and not read  # below EXISTS, which reads no column
        self.constants: list[Expr] = []
        self.of_rows: set[int] = set()  # ids of those that are computed with the rows that they stand over
        self.used = set(read)
        self._unsure: set[int] = set()  # read where they may never be needed, too
        self._catalogue = catalogue
        self._root: Rel | None = None
        self._is_dropped = False  # below a filter that no row passes
        self._passing: Passing | None = None
        self._seen: list[Expr] = []
        self._written: list[dict[int, Expr]] = []  # what is over single rows, for the ids in `_known`
        # What the queries in an expression hold, by the ids of their plans: it is walked twice, and so on inside of them.
        self._walked: dict[int, list[Expr]] = {}
        self._effort = Effort()
        self._known: dict[int, bool] = {}  # which expressions are constant, by their ids: they outlive this walk

    def enter(self, rel: Rel) -> None:
        """The whole statement; once more where a column may not be needed in one place, which spares it in all others."""
        relations = all_relations(rel)
        self._root = rel
        self._passing = Passing(relations, self._is_constant, is_local, self._emptiness.is_without_rows)
        self._cells(relations)
        self.relation(rel)
        if self._unsure and self.constants:
            self.constants, self.used = [], set(self._read)
            unsure = frozenset(self._unsure)
            self._passing = Passing(relations, self._is_constant, is_local, self._emptiness.is_without_rows, unsure)
            self._cells(relations)
            self.relation(rel)

    def _cells(self, relations: Sequence[Rel]) -> None:
        """What is written in VALUES, which Spark computes as it reads the statement."""
        tables = (v for v in relations if isinstance(v, b.Values) and len(v.rows) <= FEW)
        self._of_row(
            [e for v in tables for row in v.rows for e in row if not isinstance(e, Lit) and self._is_closed(e)]
        )

    def relation(self, rel: Rel, grouped: bool = False) -> None:
        """What `rel` and the relations below it hold; `grouped` where only distinct rows of it count."""
        if is_local(rel):
            self._local(rel)
            return
        if isinstance(rel, b.Limit) and rel.limit == 0:
            self._early(rel)
            return
        if self._emptiness.is_without_rows(rel):
            self._early(rel)
            return
        if isinstance(rel, b.Join) and grouped and _is_spared(rel, self.used):
            return
        for expr in self._evaluated(rel):
            self._known_or_not(expr)
        if not self._within and not self._is_dropped:
            if isinstance(rel, b.Filter) and self._holds_never(rel):
                self._is_dropped = True
                self.relation(rel.input, grouped)
                self._is_dropped = False
                return
            self._sunk(rel)
        if self._emptiness.is_emptied(rel):
            self._early(rel)
            return
        grouped = grouped or isinstance(rel, (b.Aggregate, b.Distinct))
        if isinstance(rel, b.CteRef):
            self._passed(rel.columns, rel.cte.plan)
            self.relation(rel.cte.plan, grouped)
        elif isinstance(rel, b.SetOp):
            self._sides(rel, grouped)
        elif isinstance(rel, b.Join):
            self._sides_of_join(rel, grouped)
        else:
            if isinstance(rel, b.Distinct):
                self._passed(rel.columns, rel.input, whole=True)
            for below in inputs_of(rel):
                self.relation(below, grouped)

    def _sunk(self, rel: Rel) -> None:
        """What a relation asks of written rows or of constants, once it is moved there."""
        if isinstance(rel, b.Project):
            for exprs in of_sides(rel.input, self._evaluated(rel), self._effort, self._emptiness.is_without_rows):
                for e in exprs:
                    self._expression(simplified(e, self._context))
        if not isinstance(rel, b.Filter):
            return
        for below, terms in sunk(rel, Rules(self._is_end, self._is_movable, self._effort)):
            whole = simplified(anded(terms), self._context)
            if is_local(below):
                if is_plain(terms):
                    self._local(b.Filter(below.columns, below, whole), last=True)
            elif not any(isinstance(n, Agg) for n in nodes(whole)):
                self._expression(whole)

    def _holds_never(self, rel: b.Filter) -> bool:
        """Whether Spark knows that no row is left, and drops what is below."""
        terms = [c for c in conjuncts_of(rel.condition) if self._is_constant(c)]
        return any(truth(t, self._context) in (False, None) for t in terms)

    def _is_end(self, rel: Rel) -> bool:
        return is_local(rel) or self._emptiness.is_without_rows(rel)

    def _is_movable(self, expr: Expr) -> bool:
        return is_steady(expr, self._catalogue) and not any(isinstance(n, Col) and n.outer for n in nodes(expr))

    def _sides(self, rel: b.SetOp, grouped: bool) -> None:
        for side in rel.inputs:
            if rel.kind != "union":  # rows are held against each other before anybody asks what is read of them
                self.used.update(c.id for c in side.columns)
            self._passed(rel.columns, side, whole=not rel.all)
            if rel.kind == "union" and is_local(side):
                self._local(side, united=True)
            else:
                self.relation(side, grouped)

    def _early(self, rel: Rel, beside: bool = False) -> None:
        """What Spark computes below `rel` while it does not know yet that there are no rows; `beside` other relations, whose
        rows may be known to be none before more than the first step is done."""
        beside = beside or len(inputs_of(rel)) > 1
        for below in (rel.cte.plan,) if isinstance(rel, b.CteRef) else inputs_of(rel):
            if is_local(below):
                self._local(below, first=beside, united=isinstance(rel, b.SetOp) and rel.kind == "union")
            else:
                self._early(below, beside)

    def _local(self, rel: Rel, first: bool = False, united: bool = False, last: bool = False) -> None:
        """Projections right over written rows: Spark computes all that they hold, for every row; then the first filter.

        Args:
            first: only the one over the rows.
            united: below a union, which makes one of projections over each other before.
            last: only what the last filter holds, which is not there from the start.
        """
        count = len(self.constants)
        if not self._over_rows(rel, first, united, count if last else None) and last:
            del self.constants[count:]

    def _over_rows(self, rel: Rel, first: bool, united: bool, only_from: int | None) -> bool:
        """Whether the topmost relation of the chain is reached, with rows."""
        chain = [rel]
        while not isinstance(chain[-1], b.Values):
            below = chain[-1]
            chain.append(below.cte.plan if isinstance(below, b.CteRef) else inputs_of(below)[0])
        hidden = _unread(chain[:-1])
        unread = hidden if united else set()
        rows = chain[-1]
        assert isinstance(rows, b.Values)
        plainly = rel is self._root and not hidden and all(map(self._is_plain, chain[:-1]))
        few = () if plainly else rows.rows[:FEW]  # else every value is computed anyway
        written = [{c.id: simplified(e, self._context) for c, e in zip(rows.columns, row, strict=True)} for row in few]
        for r in reversed(chain[:-1]):
            if r is rel and only_from is not None:
                del self.constants[only_from:]
            if isinstance(r, b.CteRef):
                named = list(zip(r.columns, r.cte.plan.columns, strict=True))
                written = [{c.id: row[p.id] for c, p in named if p.id in row} for row in written]
            elif isinstance(r, b.Project):
                kept = [(c, e) for c, e in zip(r.columns, r.exprs, strict=True) if c.id not in unread]
                told = {
                    c.id for c, _ in kept if c.name
                }  # the others are keys of a sort, which Spark computes as it sorts
                self._of_row([e for c, e in kept if c.id in told and self._is_closed(e)])
                if written or plainly:
                    self.constants += [e for c, e in kept if c.id not in told and self._is_constant(e)]
                written = [{c.id: over_row(e, row) for c, e in kept} for row in written]
                self._written += written
                self._of_row(
                    [e for row in written for i, e in row.items() if i in told and self._is_closed(e, _RAISING)]
                )
            elif isinstance(r, b.Filter):
                own = own_condition(r)
                if own is None:
                    continue
                self._of_row(list(filter(self._is_constant, conjuncts_of(own)[:1])))
                conditions = [over_row(own, row) for row in written]
                self._of_row(list(filter(self._is_closed, conditions)))
                held = [truth(c, self._context) for c in conditions]
                written = [row for row, is_held in zip(written, held, strict=True) if is_held is True]
                if not written or UNKNOWN in held:
                    return r is rel
            elif isinstance(r, b.Limit):
                written = written[: r.limit]
                if not written or r.offset:
                    return r is rel
            if first:
                return r is rel
        return True

    def _of_row(self, constants: Sequence[Expr]) -> None:
        self.constants += constants
        self.of_rows.update(map(id, constants))

    def _is_plain(self, rel: Rel) -> bool:
        """Whether it projects what is evaluated as it is written, from left to right."""
        return isinstance(rel, b.Project) and not any(
            isinstance(part, Call)
            and part.fn in ("and", "or")
            and (any(map(self._is_constant, part.args[1:])) or any(certain(a) is not None for a in part.args))
            for expr in rel.exprs
            for part in nodes(expr)
        )

    def _passed(self, columns: Sequence[Col], below: Rel, whole: bool = False) -> None:
        """Mark the columns of `below` that are read as `columns`; with `whole` all of them, but for EXISTS that reads none."""
        read = [c.id in self.used for c in columns]
        if whole and (any(read) or not self._exists):
            read = [True] * len(read)
        self.used.update(c.id for c, is_read in zip(below.columns, read, strict=True) if is_read)
        self._unsure.update(c.id for c, above in zip(below.columns, columns, strict=True) if above.id in self._unsure)

    def _evaluated(self, rel: Rel) -> Sequence[Expr]:
        """The expressions of the relation itself that Spark keeps."""
        if isinstance(rel, b.Project):
            made = list(zip(rel.columns, rel.exprs, strict=True))
            for c, e in made:
                if c.id in self._unsure:  # Spark puts it there, fails to compute it, and lets it be everywhere
                    self._unsure.update(part.id for part in nodes(e) if isinstance(part, Col))
            return [e for c, e in made if c.id in self.used and (c.id not in self._unsure or isinstance(e, Col))]
        if isinstance(rel, b.Aggregate):
            width = len(rel.keys)
            keys = [
                k
                for c, k in zip(rel.columns, rel.keys, strict=False)
                if not self._is_constant(k) or (rel.sets is None and c.id in self.used)
            ]
            aggs = [a for c, a in zip(rel.columns[width:], rel.aggs, strict=False) if c.id in self.used]
            return [*keys, *aggs]
        if isinstance(rel, b.WindowRel):
            windows = zip(rel.columns[len(rel.columns) - len(rel.windows) :], rel.windows, strict=True)
            return [
                w for c, w in windows if c.id in self.used or c.id in self._unsure
            ]  # of CASE, too, it is made before
        if isinstance(rel, b.Filter) and self._within:
            return [c for c in conjuncts_of(rel.condition) if not is_outer(c)]
        return expressions_of(rel)

    def _known_or_not(self, expr: Expr) -> None:
        """An expression that the relation holds, over the constants that columns are."""
        if isinstance(expr, Col):
            self._expression(expr)
            return
        known = self._passing.over(expr) if self._passing is not None else []
        if not known:
            plain = simplified(expr, self._context)
            known = [plain] if plain is not expr else []
        count = len(self.constants)
        around, self._walked = self._walked, {}
        self._expression(expr)
        if known:  # of the one without them only what it reads
            del self.constants[count:]
        for one in known:
            plain = simplified(one, self._context)
            self._expression(plain)
        self._walked = around

    def _expression(self, expr: Expr) -> None:
        if isinstance(expr, Col):
            self.used.add(expr.id)
        elif isinstance(expr, Lit):
            return
        elif self._is_constant(expr):
            self.constants.append(_untried(expr))
        elif isinstance(expr, Agg) and expr.fn == "count_if" and self._is_constant(expr.args[0]):
            self.constants.append(expr.args[0])
        elif self._is_lazy(expr):
            for part in nodes(expr):
                if isinstance(part, Subquery):
                    if not _is_one_row(part.plan):
                        self._subquery(part)
                elif isinstance(part, Col):
                    self._unsure.add(part.id)
        else:
            if isinstance(expr, Subquery):
                self._subquery(expr)
            for part in self._parts(expr):
                self._expression(part)

    def _parts(self, expr: Expr) -> Sequence[Expr]:
        if isinstance(expr, Window):
            kept = [p for p in expr.partition if not self._is_constant(p)]
            return [expr.fn, *kept, *(k.expr for k in expr.order)]
        if isinstance(expr, Agg):
            spared = {id(expr.args[i]) for i in untouched(expr)}
            return [part for part in children(expr) if id(part) not in spared]
        return self._before_null(expr) if isinstance(expr, Call) and expr.fn not in _TOLERANT else children(expr)

    def _before_null(self, call: Call) -> Sequence[Expr]:
        """The operands that are computed: where all are constants but for (SELECT NULL), none behind the first of these."""
        nulls = list(map(self._is_null_by_first, call.args))
        if not any(nulls) or not all(null or self._is_constant(a) for null, a in zip(nulls, call.args, strict=True)):
            return call.args
        return call.args[: nulls.index(True)]

    def _is_null_by_first(self, expr: Expr) -> bool:
        """Whether it is (SELECT NULL), or what is computed of constants behind it."""
        while isinstance(expr, Call) and expr.args and expr.fn not in (*_TOLERANT, *CONDITIONAL):
            if not all(map(self._is_constant, expr.args[1:])):
                return False
            expr = expr.args[0]
        return _is_selected_null(expr)

    def _subquery(self, subquery: Subquery) -> None:
        if subquery.outer:
            self._unmatched(subquery.plan, {c.id for c in subquery.plan.columns})
        if subquery.kind != "exists":
            self.used.update(c.id for c in subquery.plan.columns)
        walked = self._walked.get(id(subquery.plan))
        if walked is None:
            count, around = len(self.constants), self._exists
            self._exists = subquery.kind == "exists"
            self.relation(subquery.plan)
            self._exists = around
            self._walked[id(subquery.plan)] = self.constants[count:]
        else:
            self.constants += walked

    def _sides_of_join(self, join: b.Join, grouped: bool) -> None:
        self.relation(join.left, grouped)
        if not join.lateral:
            self.relation(join.right, grouped)
        elif reaches(join.right, {c.id for c in join.left.columns}):
            self._unmatched(join.right, self.used)

    def _unmatched(self, plan: Rel, read: Set[int]) -> None:
        """The values that the join with a correlated query has where no row matches, be there such a row or not."""
        values = over_no_rows(plan)
        self.constants += [
            values[c.id] for c in plan.columns if c.id in values and c.id in read and self._is_constant(values[c.id])
        ]

    def _is_lazy(self, expr: Expr) -> bool:
        """Whether an operand of it may never be evaluated."""
        if isinstance(expr, Case):
            return True
        if not isinstance(expr, (Call, Agg)):
            return False
        if expr.fn in CONDITIONAL or _is_known(expr):
            return True
        if _is_behind_if(expr):
            place = _BEHIND_IF[expr.fn]
            value, other = expr.args[place], expr.args[1 - place]
            return not self._is_constant(value) or (other.nullable and not self._is_constant(other))
        if isinstance(expr, Agg) or expr.fn in _TOLERANT or any(isinstance(a, Lambda) for a in expr.args):
            return False  # what a lambda is over is computed before it is asked for NULLs
        decisive = expr.args[:1] if expr.fn == "in" else expr.args
        return any(self._is_constant(a) and _has_null(a) for a in decisive)

    def _is_constant(self, expr: Expr) -> bool:
        """Whether Spark takes `expr` for foldable."""
        if isinstance(expr, Lit):
            return True
        if not isinstance(expr, (Call, Cast, Case)):
            return False
        known = self._known.get(id(expr))
        if known is None:
            known = all(map(self._is_constant, children(expr))) and (
                not isinstance(expr, Call) or self._is_steady(expr)
            )
            self._known[id(expr)] = known
            self._seen.append(expr)  # so that no other expression gets its id
        return known

    def _is_closed(self, expr: Expr, beside: Set[str] = frozenset()) -> bool:
        """Whether it reads no column, and has one value: constant but for lambdas, which Spark takes for none, and `beside`."""
        return all(
            isinstance(part, (Lit, Cast, Case, Lambda, LambdaVar))
            or (isinstance(part, Call) and (part.fn in beside or self._has_value(part)))
            for part in nodes(expr)
        )

    def _is_steady(self, call: Call) -> bool:
        return not _is_known(call) and self._has_value(call)

    def _has_value(self, call: Call) -> bool:
        row = self._catalogue.get(call.fn)
        return (
            row is not None
            and row.deterministic
            and row.kind not in ("generator", "window")
            and call.fn not in UNFOLDED
        )


def _is_behind_if(expr: Call | Agg) -> bool:
    """Whether an operand is computed behind IF: not beside a NULL that is written, which the engine sees before any row."""
    return expr.fn in _BEHIND_IF and not any(map(is_written_null, expr.args))


def _untried(expr: Expr) -> Expr:
    """An operand that try_add and its kin would spare: Spark computes a constant one before it looks at them."""
    if not isinstance(expr, Cast) or not expr.implicit or not expr.is_try:
        return expr
    return replace(expr, arg=_untried(expr.arg), is_try=False)


def _unread(chain: Sequence[Rel]) -> set[int]:
    """Columns of the projections at the top of a chain that those above them do not read."""
    unread: set[int] = set()
    used: set[int] | None = None
    for rel in chain:
        if isinstance(rel, b.CteRef) and used is not None:
            used = {below.id for c, below in zip(rel.columns, rel.cte.plan.columns, strict=True) if c.id in used}
            continue
        if not isinstance(rel, b.Project):
            break
        made = [(c, e) for c, e in zip(rel.columns, rel.exprs, strict=True) if used is None or c.id in used]
        unread.update(c.id for c in rel.columns if used is not None and c.id not in used)
        used = {part.id for _, e in made for part in nodes(e) if isinstance(part, Col)}
    return unread


def _is_known(expr: Call | Agg) -> bool:
    """Whether it asks for NULLs of what is never NULL: Spark knows the answer without the operand."""
    return expr.fn in _NULL_TESTS and not any(a.nullable for a in expr.args)


def _has_null(expr: Expr) -> bool:
    """Whether it may be NULL by a constant in it, as written: not by one inside of what is made of several."""
    if isinstance(expr, Lit) or expr.type == VOID:
        return not isinstance(expr, Lit) or expr.value is None
    if isinstance(expr, Call) and expr.fn in _MADE:
        return False
    return any(map(_has_null, children(expr)))


def _is_spared(join: b.Join, used: set[int]) -> bool:
    """Whether one side adds nothing to the distinct rows above: Spark may drop the join then."""
    if join.kind not in ("left", "right", "full"):
        return False
    return not all(any(c.id in used for c in side.columns) for side in (join.left, join.right))
