"""Groups that are repeated and grouped again, hidden from what the engine knows of their keys.

The keys of a GROUP BY, DISTINCT or set operation tell its rows apart. The engine thinks that they still do once a join or a
generator has repeated the rows and another GROUP BY has put them together by more keys; of a third one it then leaves out keys
that nobody reads (DataFusion 55, optimize_projections by functional dependencies), and of a join with them, of whose columns
nobody reads any, it asks only whether there is a row (eliminate_join): rows are lost. Remove when a key that was repeated is
none any more.
"""

from __future__ import annotations

from gateway.sql.lowering.row_keys import projected
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Call, Expr, Rel
from gateway.sql.typed.walk import expressions_of, inputs_of, nodes
from gateway.sqltypes import VOID

_REPEAT = frozenset({"inner", "cross", "left", "right", "full"})
_ENOUGH = 2  # of a reader and groupings above what repeats rows: the reader is a grouping, or a join


def with_hidden_groups(rel: Rel) -> Rel:
    """`rel` with one key of such groups behind a function; changes it in place."""
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
        repeated = repeated or (above >= _ENOUGH and _repeats(below))
        above = min(_ENOUGH, above + _groupings(below)) if not _joins(below) else max(above, 1)
        if repeated and below not in hidden.values():
            _hide(below, hidden)
        stack += [(inner, above, repeated) for inner in inputs_of(below)]
        if isinstance(below, b.CteRef):
            stack.append((below.cte.plan, above, repeated))
        stack += [
            (part.plan, 0, False) for e in expressions_of(below) for part in nodes(e) if isinstance(part, b.Subquery)
        ]
    return rel


def _repeats(rel: Rel) -> bool:
    """Whether a row below may become several."""
    return isinstance(rel, b.Generate) or _joins(rel)


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
    is_group = _tells_apart(rel) or (isinstance(rel, b.Aggregate) and rel.keys and rel.sets is None)
    first = next((c for c in rel.columns if c.type != VOID), None)
    if not is_group or first is None:
        return rel
    if id(rel) not in hidden:

        def key(e: Expr) -> Expr:
            return Call(e.type, True, "_unmatched", (e,)) if e is first else e

        hidden[id(rel)] = projected(rel, key)
    return hidden[id(rel)]
