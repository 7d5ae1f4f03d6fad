"""Columns that are one constant in all rows: Spark puts it in their place wherever they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Lit, Rel
from gateway.sql.typed.walk import nodes, substituted

_LARGE = 200  # parts of a constant that is put elsewhere


class Passing:
    """What the columns of a statement are made of, as far as that is constants.

    Args:
        relations: those of the statement.
        is_constant: whether an expression has no columns and one value.
        is_local: whether Spark computes a relation while it plans, so that its columns are no constants any more.
        is_emptied: whether Spark knows by then that a side of a union has no rows.
        unsure: columns that stay as they are.
    """

    def __init__(
        self,
        relations: Sequence[Rel],
        is_constant: Callable[[Expr], bool],
        is_local: Callable[[Rel], bool],
        is_emptied: Callable[[Rel], bool],
        unsure: Set[int] = frozenset(),
    ) -> None:
        self._made: dict[int, Sequence[Expr]] = {}  # one expression for each side of a union
        self._known: dict[int, Sequence[Expr]] = {}
        self._is_constant = is_constant
        self._is_emptied = is_emptied
        for below in relations:
            if not is_local(below):
                self._learn(below)
        for below in relations:
            self._forget(below)
        for column in unsure & self._made.keys():
            if not all(isinstance(e, (Col, Lit)) for e in self._made[column]):  # a literal never fails
                del self._made[column]

    def over(self, expr: Expr) -> list[Expr]:
        """The expression over such constants, once for each side of a union that they come from; empty without any."""
        if isinstance(expr, (Col, Lit)):
            return []
        found = {e.id: self._constants(e.id) for e in nodes(expr) if isinstance(e, Col)}
        known = {i: constants for i, constants in found.items() if constants}
        sides = max(map(len, known.values()), default=0)
        return [substituted(expr, _of_side(known, side)) for side in range(sides)]

    def _learn(self, rel: Rel) -> None:
        if isinstance(rel, b.Project):
            self._pass(rel.columns, [(e,) for e in rel.exprs])
        elif isinstance(rel, b.Aggregate) and rel.sets is None:
            self._pass(rel.columns, [(k,) for k in rel.keys])
        elif isinstance(rel, b.CteRef):
            self._pass(rel.columns, [(c,) for c in rel.cte.plan.columns])
        elif isinstance(rel, b.SetOp) and rel.all is (rel.kind == "union"):  # of the others it makes aggregates
            united = (side for side in rel.inputs if not self._is_emptied(side))
            sides = united if rel.kind == "union" else rel.inputs[:1]
            self._pass(rel.columns, list(zip(*(side.columns for side in sides), strict=True)))

    def _pass(self, columns: Sequence[Col], made: Sequence[Sequence[Expr]]) -> None:
        for column, exprs in zip(columns, made, strict=False):
            if all((isinstance(e, Col) and e.id != column.id) or self._is_small(e) for e in exprs):
                self._made[column.id] = exprs

    def _is_small(self, expr: Expr) -> bool:
        return self._is_constant(expr) and len(nodes(expr)) < _LARGE

    def _forget(self, rel: Rel) -> None:
        """Columns that are NULL in rows that a join adds, or other sets of keys."""
        lost: Sequence[Col] = ()
        if isinstance(rel, b.Join) and rel.kind in ("left", "right", "full"):
            lost = (
                *(rel.right.columns if rel.kind != "right" else ()),
                *(rel.left.columns if rel.kind != "left" else ()),
            )
        elif isinstance(rel, b.Aggregate) and rel.sets is not None:
            lost = rel.columns
        for column in lost:
            self._made.pop(column.id, None)

    def _constants(self, column: int) -> Sequence[Expr]:
        if column not in self._known:
            self._known[column] = ()  # while it is looked for
            found: list[Expr] = []
            for e in self._made.get(column, ()):
                constants = self._constants(e.id) if isinstance(e, Col) else (e,)
                if not constants:
                    return ()
                found += constants
            self._known[column] = found
        return self._known[column]


def _of_side(known: Mapping[int, Sequence[Expr]], side: int) -> dict[int, Expr]:
    return {i: constants[min(side, len(constants) - 1)] for i, constants in known.items()}
