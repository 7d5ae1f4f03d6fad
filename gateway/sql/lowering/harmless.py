"""Statements none of whose constants can raise, as most are: one walk tells so, and spares asking which Spark would compute."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.sql.functions.fold import fold
from gateway.sql.lowering.correlation import over_no_rows
from gateway.sql.lowering.evaluation import CHOOSING, UNKNOWN, simplified, truth
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Agg, Call, Case, Cast, Col, Expr, Lit, Rel, Subquery, Window
from gateway.sql.typed.walk import children, conjuncts_of, expressions_of, has_columns, inputs_of, nodes, substituted
from gateway.sqltypes import VOID

_MOST_SIDES = 20  # of a union, whose constants are put in the place of a column


def is_harmless(rel: Rel, context: Context) -> bool:
    """Whether each constant of a bound statement has a value that is known; False where a look at the whole would be needed."""
    try:
        _Walk(context).relation(rel)
    except _UnknownError:
        return False
    return True


def _asked(rel: Rel) -> Sequence[Expr]:
    """The expressions of a relation, conditions term by term."""
    held = expressions_of(rel)
    return [t for e in held for t in conjuncts_of(e)] if isinstance(rel, (b.Filter, b.Join)) else held


class _UnknownError(Exception):
    """A constant whose value is not known, or what may become one."""


class _Walk:
    """From the leaves up: which columns vary, and the constants in what is made of them.

    A column that does not vary, as far as that is known, is a constant in each side of a union: of literals these are kept.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._varying: set[int] = set()
        self._literals: dict[int, Sequence[Lit]] = {}
        self._seen: dict[int, Rel] = {}

    def relation(self, rel: Rel) -> None:
        """`rel` and all relations below it, each once."""
        if id(rel) in self._seen:
            return
        self._seen[id(rel)] = rel
        for below in (rel.cte.plan,) if isinstance(rel, b.CteRef) else inputs_of(rel):
            self.relation(below)
        if isinstance(rel, b.Join) and rel.lateral:
            self._unmatched(rel.right)
        vary = [self._whole(e) for e in _asked(rel)]
        if isinstance(rel, (b.Scan, b.Range, b.Generate, b.WindowRel)):
            handed_on = {c.id for below in inputs_of(rel) for c in below.columns}
            self._varying.update(c.id for c in rel.columns if c.id not in handed_on)
        elif isinstance(rel, b.Project):
            self._learn(rel.columns, vary)
            self._literals.update(
                (c.id, (e,)) for c, e in zip(rel.columns, rel.exprs, strict=True) if isinstance(e, Lit)
            )
        elif isinstance(rel, b.Aggregate):
            # The number of a grouping set is the last column.
            self._learn(rel.columns, vary + [True] * (len(rel.columns) - len(vary)))
        elif isinstance(rel, b.CteRef):
            self._pass(rel.columns, [(c,) for c in rel.cte.plan.columns])
        elif isinstance(rel, b.SetOp):
            self._pass(rel.columns, list(zip(*(side.columns for side in rel.inputs), strict=True)))

    def _learn(self, columns: Sequence[Col], vary: Sequence[bool]) -> None:
        self._varying.update(c.id for c, varies in zip(columns, vary, strict=True) if varies)

    def _pass(self, columns: Sequence[Col], below: Sequence[Sequence[Col]]) -> None:
        """The columns of sides under other names."""
        self._learn(columns, [all(c.id in self._varying for c in sides) for sides in below])
        for column, sides in zip(columns, below, strict=True):
            known = [lit for c in sides for lit in self._literals.get(c.id, ())]
            if len(known) <= _MOST_SIDES and all(c.id in self._literals or c.id in self._varying for c in sides):
                self._literals[column.id] = known

    def _unmatched(self, plan: Rel) -> None:
        """What a correlated query gives where it has no rows."""
        for value in over_no_rows(plan).values():
            self._whole(value)

    def _whole(self, expr: Expr) -> bool:
        """Whether an expression that a relation holds varies by row; its constants are looked at."""
        if isinstance(expr, (Col, Lit)):
            return isinstance(expr, Col) and expr.id in self._varying
        plain = simplified(expr, self._context) if has_columns(expr) else expr
        if isinstance(plain, (Col, Lit)):
            return self._whole(plain)
        varies = self._varies(plain)
        if not varies:
            self._check(plain)
        return varies

    def _varies(self, expr: Expr) -> bool:
        """Whether an expression varies by row; constants in what varies are looked at."""
        if isinstance(expr, (Col, Lit)):
            return isinstance(expr, Col) and expr.id in self._varying
        if isinstance(expr, Subquery):
            self.relation(expr.plan)
            if expr.outer:
                self._unmatched(expr.plan)
        parts = children(expr)
        if isinstance(expr, Window):
            parts = (*children(expr.fn), *parts[1:])
        vary = list(map(self._varies, parts))
        if not any(vary) and not isinstance(expr, (Agg, Window, Subquery)):
            return False
        chooses = isinstance(expr, Case) or (isinstance(expr, Call) and expr.fn in CHOOSING)
        if chooses and any(isinstance(part, Col) and part.id not in self._varying for part in nodes(expr)):
            raise _UnknownError  # what a constant chooses may be a constant itself
        for part, varies in zip(parts, vary, strict=True):
            if not varies:
                self._check(part)
        return True

    def _check(self, constant: Expr) -> None:
        """Go on only if its values are known."""
        if isinstance(constant, (Col, Lit)) or (isinstance(constant, Cast) and constant.arg.type == VOID):
            return
        columns = {part.id for part in nodes(constant) if isinstance(part, Col)}
        if len(columns) > 1:
            raise _UnknownError
        sides = [{i: value} for i in columns for value in self._literals.get(i, ())] if columns else [{}]
        over = (simplified(substituted(constant, side), self._context) if side else constant for side in sides)
        if not sides or any(fold(e, self._context) is None and truth(e, self._context) == UNKNOWN for e in over):
            raise _UnknownError
