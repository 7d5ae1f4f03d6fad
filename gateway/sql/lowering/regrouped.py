"""Groups that are repeated and grouped again, hidden from what the engine knows of their keys.

The keys of a GROUP BY, DISTINCT or set operation tell its rows apart. The engine thinks that they still do once a generator has
repeated the rows: DISTINCT is left out, a GROUP BY by a key and more is one by the key alone, and of a join with them, of whose
columns nobody reads any, it asks only whether there is a row (DataFusion 55: Unnest keeps functional dependencies). Once a join
has repeated them it thinks so where another GROUP BY has put them together by more keys: of a third one it leaves out keys that
nobody reads (optimize_projections), and treats joins in the same way. Remove when a key that was repeated is none any more.

The engine moves no condition below such a key: what only compares columns with constants is asked of the groups once more, so
that it gets to the scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.sql.lowering.planned_rows import anded
from gateway.sql.lowering.pushdown import Asked, Conjunct
from gateway.sql.lowering.row_keys import HIDDEN, projected
from gateway.sql.typed import nodes as b
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Call, Cast, Col, Expr, Lit, Rel
from gateway.sql.typed.walk import expressions_of, inputs_of, nodes
from gateway.sqltypes import BIGINT, VOID, is_integral

_REPEAT = frozenset({"inner", "cross", "left", "right", "full"})
# What compares, and never raises.
_COMPARES = frozenset({"=", "<=>", "<", "<=", ">", ">=", "in", "between", "is null", "is not null", "and", "or", "not"})
_ENOUGH = 2  # of a reader and groupings above a join: the reader is a grouping, or a join


def with_hidden_groups(rel: Rel, has_subqueries: bool) -> Rel:
    """`rel` with keys of such groups behind a function; changes it in place."""
    stack: list[tuple[Rel, int, bool]] = [(rel, 0, False)]
    seen: set[tuple[int, int, bool]] = set()
    kept: list[Rel] = []  # so that no relation made here takes the place of one that was seen
    hidden: dict[int, Rel] = {}
    while stack:
        here = stack.pop()
        below, above, repeated = here
        if (id(below), above, repeated) in seen:
            continue
        seen.add((id(below), above, repeated))
        kept.append(below)
        repeated = repeated or bool(above and isinstance(below, b.Generate)) or (above >= _ENOUGH and _joins(below))
        above = min(_ENOUGH, above + _groupings(below)) if not _joins(below) else max(above, 1)
        if repeated and below not in hidden.values():
            _hide(below, hidden)
        stack += [(inner, above, repeated) for inner in inputs_of(below)]
        if isinstance(below, b.CteRef):
            stack.append((below.cte.plan, above, repeated))
        stack += [
            (part.plan, 0, False) for e in expressions_of(below) for part in nodes(e) if isinstance(part, b.Subquery)
        ]
    if hidden:
        _Filtered(rel, hidden.values(), has_subqueries).ask()
    return rel


def _joins(rel: Rel) -> bool:
    return isinstance(rel, b.Join) and rel.kind in _REPEAT


def _groupings(rel: Rel) -> int:
    """How often rows are put together; aggregates of distinct values do so once more."""
    if isinstance(rel, b.Aggregate):
        return bool(rel.keys) + any(agg.distinct for agg in rel.aggs)
    return int(_tells_apart(rel))


def _tells_apart(rel: Rel) -> bool:
    return isinstance(rel, b.Distinct) or (isinstance(rel, b.SetOp) and not (rel.kind == "union" and rel.all))


def _hide(rel: Rel, hidden: dict[int, Rel]) -> None:
    """Puts a projection over the groups that a relation reads."""
    if isinstance(rel, b.Join):
        rel.left, rel.right = _behind(rel.left, hidden), _behind(rel.right, hidden)
    elif isinstance(rel, b.SetOp):
        rel.inputs = tuple(_behind(side, hidden) for side in rel.inputs)
    elif isinstance(rel, b.CteRef):
        rel.cte.plan = _behind(rel.cte.plan, hidden)
    elif inputs_of(rel):
        rel.input = _behind(rel.input, hidden)  # type: ignore[attr-defined]


def _behind(rel: Rel, hidden: dict[int, Rel]) -> Rel:
    keys = _keys(rel)
    if not keys:
        return rel
    if id(rel) not in hidden:

        def of_key(e: Expr) -> Expr:
            return Call(e.type, True, HIDDEN, (e,)) if e in keys else e

        hidden[id(rel)] = projected(rel, of_key)
    return hidden[id(rel)]


def _keys(rel: Rel) -> tuple[Expr, ...]:
    """The columns to hide: one, and of a GROUP BY all, for the engine may be left with those that determine the others."""
    known = tuple(c for c in rel.columns if c.type != VOID)
    if isinstance(rel, b.Aggregate):
        return known[: len(rel.keys)] if rel.sets is None else ()
    return known[:1] if _tells_apart(rel) else ()


class _Filtered(Asked):
    """The conjuncts that every place which reads hidden groups asks of them."""

    def __init__(self, rel: Rel, hidden: Iterable[Rel], has_subqueries: bool) -> None:
        self._hidden = {id(h) for h in hidden}
        self._asked: dict[int, tuple[b.Project, list[Expr]]] = {}
        super().__init__(rel, has_subqueries)

    def met(self, rel: Rel, conjuncts: Sequence[Conjunct]) -> None:
        if id(rel) not in self._hidden or not isinstance(rel, b.Project):
            return
        known = {c.id for c in rel.columns}
        asked = [c for c, ids in conjuncts if ids and ids <= known and all(map(_compares, nodes(c)))]
        if id(rel) in self._asked:
            before = {key(c) for c in self._asked[id(rel)][1]}
            asked = [c for c in asked if key(c) in before]
        self._asked[id(rel)] = (rel, asked)

    def ask(self) -> None:
        """Puts filters below the projections that hide keys, which leave columns their ids."""
        for rel, conjuncts in self._asked.values():
            if conjuncts:
                rel.input = b.Filter(rel.input.columns, rel.input, anded(conjuncts))


def _compares(e: Expr) -> bool:
    if isinstance(e, Cast):
        return e.implicit and is_integral(e.arg.type) and e.type == BIGINT
    return isinstance(e, Lit) or (isinstance(e, Col) and not e.outer) or (isinstance(e, Call) and e.fn in _COMPARES)
