"""Where the conjuncts of a filter come to stand once Spark's optimizer has moved them down: over written rows, over constants.

A condition passes projections, sorts, keys of groups, the sides of joins that keep their rows, and each side of a union. What
it then asks of rows that are written down, or of constants, Spark computes while it plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Rel, Subquery
from gateway.sql.typed.walk import conjuncts_of, nodes, substituted

_LARGE = 200  # parts of an expression that is put elsewhere
_COMPARISONS = frozenset({"=", "<", ">", "<=", ">="})
_CONDITIONAL = frozenset(
    {"and", "or", "not", "if", "coalesce", "nvl", "ifnull", "nvl2", "nullif", "in", "<=>", "decode"}
)
#: Which sides of a join the conditions above it pass to.
_SIDES = {"inner": (0, 1), "cross": (0, 1), "left": (0,), "semi": (0,), "anti": (0,), "right": (1,), "full": ()}
_MOST_PARTS = 20_000
Arrived = tuple[Rel, list[Expr]]


class Effort:
    """How many parts of expressions may still be moved for a statement: filters over filters take the fourth power of them."""

    def __init__(self) -> None:
        self._left = _MOST_PARTS

    def spend(self, terms: Sequence[Expr]) -> bool:
        """Whether there is enough for one step more of these."""
        self._left -= sum(len(nodes(t)) for t in terms) if self._left > 0 else 0
        return self._left > 0


@dataclass(frozen=True, slots=True)
class Rules:
    """Where conjuncts stop, and which of them are moved at all."""

    is_end: Callable[[Rel], bool]
    is_steady: Callable[[Expr], bool]
    effort: Effort


def sunk(rel: b.Filter, rules: Rules) -> Iterator[Arrived]:
    """The relations that conjuncts of `rel` arrive at, with these over the columns there; none passes an end."""
    if not _asks(rel.condition):
        yield from _down(rel.input, conjuncts_of(rel.condition), rules)


def is_plain(terms: Sequence[Expr]) -> bool:
    """Whether Spark's optimizer makes nothing else of conjuncts: comparisons without conditions or NULL inside."""
    parts = [n for t in terms for n in nodes(t)]
    compares = all(isinstance(t, b.Call) and t.fn in _COMPARISONS for t in terms)
    return compares and not any(
        isinstance(n, b.Case)
        or (isinstance(n, b.Lit) and n.value is None)
        or (isinstance(n, b.Call) and n.fn in _CONDITIONAL)
        for n in parts
    )


def of_sides(
    rel: Rel, exprs: Sequence[Expr], effort: Effort, is_emptied: Callable[[Rel], bool]
) -> Iterator[list[Expr]]:
    """Select items right over a UNION ALL of projections, over the columns of each side: Spark moves them there, unless it
    has left the side out, as one without rows."""
    between: list[b.Project | b.CteRef] = []
    while isinstance(rel, (b.Filter, b.Project, b.CteRef)):
        if not isinstance(rel, b.Filter):
            between.append(rel)
        rel = rel.cte.plan if isinstance(rel, b.CteRef) else rel.input
    if not (isinstance(rel, b.SetOp) and rel.kind == "union" and rel.all):
        return
    moved = list(exprs)
    for each in between:
        if not effort.spend(moved):
            return
        moved = _over(moved, each.columns, each.exprs if isinstance(each, b.Project) else each.cte.plan.columns)
    for side in rel.inputs:
        if is_emptied(side):
            continue
        found = _over(moved, rel.columns, side.columns)
        while isinstance(side, b.Project):
            if not effort.spend(found):
                return
            found, side = _over(found, side.columns, side.exprs), side.input
        yield found


def _down(rel: Rel, terms: Sequence[Expr], rules: Rules) -> Iterator[Arrived]:
    kept = [t for t in terms if rules.is_steady(t)] if rules.effort.spend(terms) else []
    if not kept:
        return
    if rules.is_end(rel):
        yield rel, kept
        return
    for below, moved in _below(rel, kept):
        yield from _down(below, moved, rules)
    if isinstance(rel, b.Project) and isinstance(rel.input, (b.OneRow, b.Range, b.Scan)):
        moved = _over(kept, rel.columns, rel.exprs)
        if moved:
            yield rel.input, moved


def _below(rel: Rel, terms: list[Expr]) -> Iterator[Arrived]:
    """One step down."""
    if isinstance(rel, b.Project):
        yield rel.input, _over(terms, rel.columns, rel.exprs)
    elif isinstance(rel, b.CteRef):
        yield rel.cte.plan, _over(terms, rel.columns, rel.cte.plan.columns)
    elif isinstance(rel, b.Filter):
        if not _asks(rel.condition):
            yield rel.input, [*conjuncts_of(rel.condition), *terms]
    elif isinstance(rel, b.Generate):
        yield rel.input, _of(terms, rel.input.columns)
    elif isinstance(rel, b.WindowRel):
        keys = [[c for c in w.partition if isinstance(c, Col)] for w in rel.windows]
        yield rel.input, _of(terms, [c for c in keys[0] if all(c.id in {k.id for k in other} for other in keys)])
    elif isinstance(rel, (b.Sort, b.Distinct)):
        yield rel.input, terms
    elif isinstance(rel, b.Aggregate) and rel.sets is None:
        width = len(rel.keys)
        yield rel.input, _over(_of(terms, rel.columns[:width]), rel.columns[:width], rel.keys)
    elif isinstance(rel, b.SetOp) and rel.kind == "union":
        for side in rel.inputs:
            yield side, _over(terms, rel.columns, side.columns)
    elif isinstance(rel, b.SetOp) and not rel.all:  # a join with the others
        yield rel.inputs[0], _over(terms, rel.columns, rel.inputs[0].columns)
    elif isinstance(rel, b.Join) and rel.lateral:
        yield rel.left, _of(terms, rel.left.columns)
    elif isinstance(rel, b.Join):
        for place in _SIDES[rel.kind]:
            side = (rel.left, rel.right)[place]
            yield side, _of(terms, side.columns)


def _asks(condition: Expr) -> bool:
    """Whether it holds a subquery, of which Spark makes a join later."""
    return any(isinstance(n, Subquery) for n in nodes(condition))


def _of(terms: Sequence[Expr], columns: Sequence[Col]) -> list[Expr]:
    """The terms that read columns of these alone."""
    known = {c.id for c in columns}
    read = [(t, {n.id for n in nodes(t) if isinstance(n, Col)}) for t in terms]
    return [t for t, ids in read if ids and ids <= known]


def _over(terms: Sequence[Expr], columns: Sequence[Col], exprs: Sequence[Expr]) -> list[Expr]:
    known = {c.id: e for c, e in zip(columns, exprs, strict=True)}
    moved = [substituted(t, known) for t in terms]
    return [t for t in moved if len(nodes(t)) < _LARGE]
