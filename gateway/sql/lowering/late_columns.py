"""Which scans read their other columns late: only of the rows that are left once the columns of conditions have been read.

That pays where few rows are left, and costs a second pass over the selection where many are (a third of the time of a scan
that reads little else). How many are left nobody knows beforehand; what tells: a value that a column must have, and a join
with rows that were picked so, whose keys then pick from the others. With many other columns it always pays; beside several
conditions it does not for one or two columns more, nor for none. Of the facts of a star, which several others pick from, it
does not: the engine goes over the scan for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.delta.predicates import Comparison, OneOf, StartsWith
from gateway.sql.lowering.pushdown import Hints
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Rel
from gateway.sql.typed.walk import expressions_of, inputs_of, nodes

_FEW_ROWS = 20  # one value is no small part of so few
_MANY_COLUMNS = 5
_FEW_COLUMNS = 2
_SEVERAL_CONDITIONS = 2
_MANY_CONDITIONS = 3
_SEVERAL_OTHERS = 2
_BOTH_SIDES = ("inner", "cross", "semi")


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A scan, or groups, whose rows meet those of others."""

    scan: b.Scan | None
    picked: bool  # by few values of a column
    pinned: bool  # by one value
    asked: bool  # whether conditions speak of it


class LateColumns:
    """The scans of one bound query that read columns late."""

    def __init__(self, rel: Rel, hints: Hints) -> None:
        self._hints = hints
        self._late: dict[int, bool] = {}  # whether one value of its own picks from it
        self._ctes: set[int] = set()
        self._settle(self._leaves(rel))

    def reads_late(self, scan: b.Scan, columns: int) -> bool:
        """Whether a scan does of which so many columns are read."""
        conditions = self._hints.conditions.get(id(scan), 0)
        others = columns - conditions
        if id(scan) in self._late and others > 0:
            several = _MANY_CONDITIONS if self._late[id(scan)] else _SEVERAL_CONDITIONS
            return conditions < several or others > _FEW_COLUMNS
        return conditions > 0 and others >= _MANY_COLUMNS

    def _leaves(self, rel: Rel) -> list[_Leaf]:
        """The scans whose rows meet in `rel`; those below it that meet only among themselves are settled."""
        inner = [leaf for plan in self._subqueries(rel) for leaf in self._leaves(plan)]
        if isinstance(rel, b.Filter):  # the engine makes joins of them
            return self._filtered(rel.input) + inner
        self._settle(inner)
        if isinstance(rel, b.Scan):
            found = self._hints.of(rel)
            pinned = any(isinstance(p, Comparison) and p.op == "=" for p in found)
            picked = pinned or any(isinstance(p, (OneOf, StartsWith)) for p in found)
            return [_Leaf(rel, picked and not _is_tiny(rel), pinned, self._hints.conditions.get(id(rel), 0) > 0)]
        if isinstance(rel, b.Join):
            left, right = self._leaves(rel.left), self._leaves(rel.right)
            correlated = rel.kind == "left" and isinstance(rel.right, b.Aggregate)  # a value per row, compared above
            if rel.kind in _BOTH_SIDES or correlated:
                return left + right
            kept = {"left": left, "anti": left, "right": right}.get(rel.kind, [])
            for side in (left, right):
                if side is not kept:
                    self._settle(side)
            return kept
        if isinstance(rel, (b.Project, b.Sort, b.Distinct, b.Aggregate)):
            return self._leaves(rel.input)
        if isinstance(rel, b.CteRef):
            if rel.cte.id not in self._ctes:
                self._ctes.add(rel.cte.id)
                self._settle(self._leaves(rel.cte.plan))
            return []
        for below in inputs_of(rel):
            self._settle(self._leaves(below))
        return []

    def _filtered(self, rel: Rel) -> list[_Leaf]:
        """As `_leaves`, of what is filtered: groups that are picked pick from whatever they are joined with."""
        if not (isinstance(rel, b.Aggregate) and rel.keys):
            return self._leaves(rel)
        self._settle(self._leaves(rel))
        return [_Leaf(None, picked=True, pinned=False, asked=True)]

    def _subqueries(self, rel: Rel) -> list[Rel]:
        if not self._hints.has_subqueries:
            return []
        return [e.plan for expr in expressions_of(rel) for e in nodes(expr) if isinstance(e, b.Subquery)]

    def _settle(self, leaves: list[_Leaf]) -> None:
        picked = sum(leaf.picked for leaf in leaves)
        alone = len(leaves) == 1
        for leaf in leaves[1:] if _begins_with_facts(leaves) else leaves:
            if leaf.scan is not None and (picked > leaf.picked or leaf.pinned or (leaf.picked and alone)):
                self._late[id(leaf.scan)] = leaf.pinned


def _begins_with_facts(leaves: Sequence[_Leaf]) -> bool:
    """Whether the first one is the largest, which says nothing itself, of several that do."""
    if not leaves or leaves[0].scan is None or leaves[0].asked or sum(leaf.asked for leaf in leaves) < _SEVERAL_OTHERS:
        return False
    most = leaves[0].scan.table.num_rows
    others = [leaf.scan.table.num_rows for leaf in leaves[1:] if leaf.scan is not None]
    return most is not None and all(rows is not None and rows <= most for rows in others)


def _is_tiny(scan: b.Scan) -> bool:
    rows = scan.table.num_rows
    return rows is not None and rows <= _FEW_ROWS
