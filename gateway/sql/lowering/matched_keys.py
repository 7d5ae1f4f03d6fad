"""Rows that a join pairs with none because a key is NULL: gone from its sides before anything is computed that may fail.

Spark infers of a condition that what it compares is not NULL, and asks that of the sides, below their projections and groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from gateway.sql.lowering.evaluation import null_by
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Call, Cast, Col, Expr, Rel
from gateway.sql.typed.walk import all_relations, conjuncts_of, expressions_of, inputs_of, nodes
from gateway.sqltypes import BOOLEAN

_COMPARISONS = frozenset({"=", "<", ">", "<=", ">="})
#: The sides whose rows are lost where the condition is NULL, and those that conditions above the join pass to.
_LOSES = {"inner": (0, 1), "cross": (0, 1), "semi": (0, 1), "left": (1,), "right": (0,), "anti": (1,), "full": ()}
_PASSES = {"inner": (0, 1), "cross": (0, 1), "semi": (0,), "left": (0,), "right": (1,), "anti": (0,), "full": ()}


def with_matched_keys(rel: Rel, raises: Callable[[Expr], bool]) -> Rel:
    """`rel` with such filters over sides of joins in which an expression may fail; changes it in place."""
    found = all_relations(rel)
    joins = [r for r in found if isinstance(r, b.Join) and not r.lateral]
    if joins:
        # What is read in two places has rows that only one of them drops.
        read = Counter(id(below) for r in found for below in inputs_of(r))
        filters = [r for r in found if isinstance(r, b.Filter) and read[id(r.input)] == 1]
        above = {id(r.input): _compared(r.condition) for r in filters}
        sides = {id(side) for join in joins for side in inputs_of(join) if read[id(side)] == 1}
        open_ = [(join, above.get(id(join), {})) for join in joins if id(join) not in sides]
        while open_:
            join, asked = open_.pop()
            for name, keys in _keys_of_sides(join, asked):
                side = getattr(join, name)
                if isinstance(side, b.Join) and not side.lateral and id(side) in sides:
                    open_.append((side, keys))
                elif keys and any(map(raises, _computed(side))):
                    told = [key for key in keys.values() if not _is_aggregate(side, key)]
                    if told:
                        setattr(join, name, b.Filter(side.columns, side, _not_null(told)))
    return rel


def _keys_of_sides(join: b.Join, above: dict[int, Col]) -> Iterator[tuple[str, dict[int, Col]]]:
    """The sides of a join, and the columns of which each keeps no row with NULL; `above`: those that are asked above it."""
    own = _compared(join.condition) if join.condition is not None else {}
    for place, name in enumerate(("left", "right")):
        asked = (own if place in _LOSES[join.kind] else {}) | (above if place in _PASSES[join.kind] else {})
        mine = {c.id for c in getattr(join, name).columns}
        yield name, {k: c for k, c in asked.items() if k in mine}


def _compared(condition: Expr) -> dict[int, Col]:
    """The columns of which none is NULL where the condition holds, by their ids, as far as comparisons say it."""
    found: dict[int, Col] = {}
    for conjunct in conjuncts_of(condition):
        if isinstance(conjunct, Call) and conjunct.fn in _COMPARISONS:
            columns = [null_by(arg) or {} for arg in conjunct.args]
            found |= {k: c for known in columns for k, c in known.items() if isinstance(c, Col) and not c.outer}
    return found


def _computed(side: Rel) -> list[Expr]:
    """What is selected of a side; nothing beside windows, which Spark computes before it asks for its rows.

    Sums that leave their type are left out: a filter more for each join of groups is not worth it.
    """
    below = all_relations(side)
    if any(isinstance(r, b.WindowRel) for r in below):
        return []
    made = [e for r in below if isinstance(r, b.Project) for e in expressions_of(r)]
    return [e for e in made if any(isinstance(part, (Call, Cast)) for part in nodes(e))]


def _is_aggregate(side: Rel, column: Col) -> bool:
    """Whether it is computed of an aggregate, beside which Spark computes all that is selected of the groups."""
    ids = {column.id}
    while isinstance(side, (b.Project, b.Filter)):
        if isinstance(side, b.Project):
            made = [e for c, e in zip(side.columns, side.exprs, strict=True) if c.id in ids]
            ids = {part.id for e in made for part in nodes(e) if isinstance(part, Col)}
        side = side.input
    return isinstance(side, b.Aggregate) and bool(ids & {c.id for c in side.columns[len(side.keys) :]})


def _not_null(columns: Sequence[Col]) -> Expr:
    tests = tuple(Call(BOOLEAN, False, "isnotnull", (c,)) for c in columns)
    return tests[0] if len(tests) == 1 else Call(BOOLEAN, False, "and", tests)
