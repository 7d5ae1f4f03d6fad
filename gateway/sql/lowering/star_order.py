"""Inner joins of a chain in the order in which they leave few rows: what keeps a small part of them is joined first.

The engine joins tables as they are written. A row of a fact is met by one of a dimension at most, where the key may be unique
there: so many values fit between its least and its greatest. A dimension of which conditions leave a part then only takes
rows away, the more the earlier. Everything else stays where it is written, and so do chains that begin with no fact.

Only below aggregates that take rows in any order, and where nothing may fail: the rows are the same, those looked at are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gateway.delta.predicates import Comparison, NullTest, OneOf, Predicate, StartsWith
from gateway.sql.lowering.bounds import Bounds, Range
from gateway.sql.lowering.expressions import Lowering
from gateway.sql.lowering.pushdown import Hints
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Agg, Call, Cast, Col, Expr, Rel
from gateway.sql.typed.walk import (
    all_of,
    all_relations,
    conjuncts_of,
    contains,
    expressions_of,
    has_columns,
    has_outer,
    nodes,
    read_by,
)

_IN_ANY_ORDER = frozenset(
    {"count", "sum", "avg", "mean", "min", "max", "count_if", "bool_and", "bool_or", "every", "some"}
)
_Above = b.Aggregate | b.Filter | b.Project
# Parts of the rows that conditions leave of which nothing else is known.
_ONE_VALUE, _RANGE, _PREFIX, _SOMETHING = Fraction(1, 20), Fraction(3, 10), Fraction(1, 10), Fraction(1, 2)
_SMALL_PART = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A relation that is joined: ids of its columns, the table that it is of, and at most how many rows that has."""

    rel: Rel
    ids: frozenset[int]
    scan: b.Scan
    rows: int


def with_star_order(rel: Rel, lowering: Lowering, hints: Hints) -> Rel:
    """`rel` with such joins in that order; changes what stands above them in place."""
    for above, join, where in _chains(rel):
        again = _again(join, where, lowering, hints)
        if again is not None:
            above.input = again
    return rel


def _chains(rel: Rel) -> Iterator[tuple[_Above, b.Join, list[Expr]]]:
    """Two or more joins below aggregates: what stands right above them, the last one, and the conditions above it."""
    for at in all_relations(rel):
        if isinstance(at, b.Aggregate) and all(map(_takes_any_order, at.aggs)):
            above: _Above = at
            where: list[Expr] = []
            while isinstance(above.input, (b.Filter, b.Project)):
                above = above.input
                where += conjuncts_of(above.condition) if isinstance(above, b.Filter) else []
            join = above.input
            if isinstance(join, b.Join) and isinstance(join.left, b.Join):
                yield above, join, where


def _takes_any_order(agg: Agg) -> bool:
    return agg.fn in _IN_ANY_ORDER and not agg.order


def _again(join: b.Join, where: Sequence[Expr], lowering: Lowering, hints: Hints) -> Rel | None:
    """The joins in another order; None where there is none that is better, or nothing is known."""
    rels, conjuncts = _flat(join)
    leaves = [leaf for leaf in map(_leaf, rels) if leaf is not None]
    # Of chains that begin with no fact the engine knows better which side to look up in the other.
    if not 2 < len(leaves) == len(rels) or leaves[0].rows < max(leaf.rows for leaf in leaves):
        return None
    equal = [pair for c in (*conjuncts, *where) for pair in _equal(c)]
    if not _is_connected(leaves, equal) or not all(map(_is_movable, conjuncts)):
        return None
    bounds = lowering.bounds
    if bounds is None:
        return None
    parts = [_part(leaf.scan, bounds, hints) for leaf in leaves]
    order = _ordered(leaves, parts, equal, bounds)
    computed = (*conjuncts, *(e for leaf in leaves for e in _made(leaf.rel)))
    return None if order == leaves or any(map(lowering.may_fail, computed)) else _joined(join, order, conjuncts)


def _is_movable(conjunct: Expr) -> bool:
    """Whether it is a condition on the joined rows alone."""
    return has_columns(conjunct) and not has_outer(conjunct) and not contains(conjunct, b.Subquery)


def _flat(join: b.Join) -> tuple[list[Rel], list[Expr]]:
    """The relations of a chain as they are written, and its conditions; but for one behind which others stand as a whole."""
    rels: list[Rel] = []
    conjuncts: list[Expr] = []
    at: Rel = join
    while isinstance(at, b.Join) and at.kind in ("inner", "cross") and not at.lateral:
        rels.insert(0, at.right)
        conjuncts[:0] = [] if at.condition is None else conjuncts_of(at.condition)
        at = at.left
    return [at, *rels], conjuncts


def _leaf(rel: Rel) -> _Leaf | None:
    """None for what is more than rows of a table."""
    below = rel
    while isinstance(below, (b.Filter, b.Project)):
        below = below.input
    if not isinstance(below, b.Scan) or any(isinstance(n, b.Subquery) for e in _made(rel) for n in nodes(e)):
        return None
    rows = below.table.num_rows
    return None if rows is None else _Leaf(rel, frozenset([c.id for c in rel.columns]), below, rows)


def _made(rel: Rel) -> Iterator[Expr]:
    """What is computed of a table's rows."""
    while isinstance(rel, (b.Filter, b.Project)):
        yield from expressions_of(rel)
        rel = rel.input


def _equal(conjunct: Expr) -> Iterator[tuple[Col, Col]]:
    """Both columns that an equality compares, also where integers are widened for it."""
    if isinstance(conjunct, Call) and conjunct.fn == "=":
        left, right = (a.arg if isinstance(a, Cast) and a.implicit else a for a in conjunct.args)
        if isinstance(left, Col) and isinstance(right, Col):
            yield left, right
            yield right, left


def _is_connected(leaves: Sequence[_Leaf], equal: Sequence[tuple[Col, Col]]) -> bool:
    """Whether each one is compared with one before it: else the engine finds an order of its own."""
    before = leaves[0].ids
    for leaf in leaves[1:]:
        if not any(own.id in leaf.ids and other.id in before for own, other in equal):
            return False
        before |= leaf.ids
    return True


def _ordered(
    leaves: Sequence[_Leaf], parts: Sequence[Fraction], equal: Sequence[tuple[Col, Col]], bounds: Bounds
) -> list[_Leaf]:
    found, left = [leaves[0]], list(zip(leaves, parts, strict=True))[1:]
    while left:
        small = [(leaf, part) for leaf, part in left if part <= _SMALL_PART and _only_takes(leaf, found, equal, bounds)]
        chosen = min(small, key=lambda pair: pair[1], default=left[0])
        found.append(chosen[0])
        left.remove(chosen)
    return found


def _only_takes(leaf: _Leaf, before: Sequence[_Leaf], equal: Sequence[tuple[Col, Col]], bounds: Bounds) -> bool:
    """Whether a row of those before meets one of the leaf at most, as far as it can be told."""
    for own, other in equal:
        partner = next((p for p in before if other.id in p.ids), None)
        if own.id in leaf.ids and partner is not None and leaf.rows <= partner.rows:
            values = bounds.of(own)
            if values is not None and values[1] - values[0] + 1 >= leaf.rows:
                return True
    return False


def _joined(join: b.Join, order: Sequence[_Leaf], conjuncts: Sequence[Expr]) -> b.Join:
    """The chain in another order: each condition at the first join that has what it reads."""
    open_ = [(c, read_by(c)) for c in conjuncts]
    made: Rel = order[0].rel
    ids = order[0].ids
    for leaf in order[1:]:
        ids |= leaf.ids
        own = [c for c, read in open_ if read <= ids]
        open_ = [(c, read) for c, read in open_ if not read <= ids]
        columns = (*made.columns, *leaf.rel.columns)
        made = b.Join(columns, "inner" if own else "cross", made, leaf.rel, all_of(own) if own else None)
    assert isinstance(made, b.Join) and not open_
    made.columns = join.columns
    return made


# ---- parts of a table


def _part(scan: b.Scan, bounds: Bounds, hints: Hints) -> Fraction:
    """The part of a table's rows that conditions on it alone leave, guessed."""
    by_name: dict[str, list[Predicate]] = {}
    for predicate in hints.of(scan):
        by_name.setdefault(predicate.column, []).append(predicate)
    columns = {source: bounds.of(column) for column, source in zip(scan.columns, scan.sources, strict=True)}
    part = Fraction(1)
    for name, predicates in by_name.items():
        part *= _part_of(predicates, columns.get(name))
    unknown = hints.conditions.get(id(scan), 0) - len(by_name)
    return part * _SOMETHING ** max(0, unknown)


def _part_of(predicates: Sequence[Predicate], values: Range) -> Fraction:
    """What conditions on one column leave, as if all integers in its range were there as often."""
    one = _ONE_VALUE if values is None else 1 / (values[1] - values[0] + 1)
    part = Fraction(1)
    for predicate in predicates:
        match predicate:
            case NullTest(negated=False) | Comparison(op="="):
                part = min(part, one)
            case StartsWith():
                part = min(part, _PREFIX)
            case OneOf():
                part = min(part, len(predicate.values) * one)
    ends = [p for p in predicates if isinstance(p, Comparison) and p.op != "="]
    return part * _between(ends, values) if ends else part


def _between(ends: Sequence[Comparison], values: Range) -> Fraction:
    """The part of a range that is left between some ends."""
    if values is None:
        return _RANGE ** len({p.op[0] for p in ends})
    least, greatest = values
    for end in ends:
        value = Fraction(end.value.as_py())
        if end.op[0] == "<":
            greatest = min(greatest, value)
        else:
            least = max(least, value)
    return max(Fraction(0), greatest - least + 1) / (values[1] - values[0] + 1)
