"""Ranges of numeric expressions, from literals, types and file statistics: where overflow is impossible, guards are left out.

A range is a pair of exact numbers that every non-NULL value lies between; None is "unknown". Row counts are upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Agg, Call, Case, Cast, Col, Expr, Lit, Rel
from gateway.sql.typed.walk import nodes
from gateway.sqltypes import BIGINT, INT, SMALLINT, TINYINT, DataType, DecimalType

Range = tuple[Fraction, Fraction] | None
_BITS = {TINYINT: 7, SMALLINT: 15, INT: 31, BIGINT: 63}
_MANY = 10**30  # rows of a relation that nothing is known of


@lru_cache(maxsize=1024)
def of_type(t: DataType) -> Range:
    """All values of an integral or decimal type."""
    if t in _BITS:
        return Fraction(-(1 << _BITS[t])), Fraction((1 << _BITS[t]) - 1)
    if isinstance(t, DecimalType):
        limit = Fraction(10 ** (t.precision - t.scale))
        return -limit, limit
    return None


def fits(found: Range, t: DataType) -> bool:
    """Whether every value of the range is one of the integral type `t`."""
    limits = of_type(t) if t in _BITS else None
    return found is not None and limits is not None and limits[0] <= found[0] and found[1] <= limits[1]


class Bounds:
    """The ranges of one bound query's columns as far as they are `needed` (ids), and the row counts of its relations."""

    def __init__(self, rel: Rel, needed: Set[int], has_subqueries: bool) -> None:
        self._needed = needed
        self._has_subqueries = has_subqueries
        self._columns: dict[int, Range | Callable[[], Range]] = {}  # computed when somebody asks
        self._ctes: dict[int, int] = {}
        self._inputs: dict[int, int] = {}
        self.rows(rel)

    def of(self, e: Expr) -> Range:
        """The range of a Spark-level expression."""
        if isinstance(e, Col):
            found = self._columns.get(e.id)
            if callable(found):
                self._columns[e.id] = None
                found = self._columns[e.id] = found()
            return found or of_type(e.type)
        if isinstance(e, Lit):
            return _point(e.value)
        if isinstance(e, Cast):
            return _within(self.of(e.arg), e.type)
        if isinstance(e, Call):
            return self._call(e)
        if isinstance(e, Case):
            values = [v for _, v in e.whens]
            return self._any_of(values if e.otherwise is None else [*values, e.otherwise]) or of_type(e.type)
        return of_type(e.type)

    def _call(self, e: Call) -> Range:
        if e.fn in ("+", "-", "*") and len(e.args) == 2:
            left, right = self.of(e.args[0]), self.of(e.args[1])
            if left is None or right is None:
                return of_type(e.type)
            if e.fn == "+":
                return left[0] + right[0], left[1] + right[1]
            if e.fn == "-":
                return left[0] - right[1], left[1] - right[0]
            corners = [x * y for x in left for y in right]
            return min(corners), max(corners)
        if e.fn == "negative" and not (isinstance(e.type, DecimalType) and e.type.precision > 34):  # which is rounded
            found = self.of(e.args[0])
            return (-found[1], -found[0]) if found is not None else None
        if e.fn in ("coalesce", "if"):
            return self._any_of(e.args[e.fn == "if" :]) or of_type(e.type)
        return of_type(e.type)

    def exact(self, call: Call) -> bool:
        """Whether the engine's own ``+ - *`` gives every row's exact result in the call's type."""
        t = call.type
        if not isinstance(t, DecimalType):
            return fits(self.of(call), t)
        left, right = call.args[0].type, call.args[1].type
        if not isinstance(left, DecimalType) or not isinstance(right, DecimalType):
            return False
        scale = left.scale + right.scale if call.fn == "*" else max(left.scale, right.scale)
        if scale != t.scale or t.precision != 38:
            return False  # rounded, or exact by its type already
        ranges = [self.of(call)] if call.fn == "*" else [self.of(call), self.of(call.args[0]), self.of(call.args[1])]
        return all(r is not None and bool(max(abs(r[0]), abs(r[1])) * 10**scale < 10**38) for r in ranges)

    def sum_fits(self, agg: Agg, result: DataType) -> bool:
        """Whether no sum of the aggregate's argument can leave the result's type, nor 128 bits of its units."""
        found = self.of(agg.args[0]) if agg.args else None
        rows = self._inputs.get(id(agg), _MANY)
        if found is None:
            return False
        total = max(abs(found[0]), abs(found[1])) * rows
        if isinstance(result, DecimalType):
            return bool(total * 10**result.scale < 10**result.precision)
        limits = of_type(result)
        return limits is not None and total <= limits[1]

    def sum_splits(self, agg: Agg, added: Call, value: Expr, number: int) -> bool:
        """Whether no row of `added`, ``value + number``, overflows, and a BIGINT holds all sums of either and of both."""
        found, rows = self.of(value), self._inputs.get(id(agg), _MANY)
        if found is None or not self.exact(added):
            return False
        return (max(abs(found[0]), abs(found[1])) + abs(number)) * rows < 1 << 63

    def rows(self, rel: Rel) -> int:
        """An upper bound of the rows of `rel`; learns the ranges of its columns on the way."""
        return min(self._rows(rel), _MANY)

    def _rows(self, rel: Rel) -> int:
        if self._has_subqueries:
            self._inside(rel)
        if isinstance(rel, b.OneRow):
            return 1
        if isinstance(rel, b.Scan):
            return self._scan(rel)
        if isinstance(rel, b.Values):
            for index, column in enumerate(rel.columns):
                self._columns[column.id] = partial(self._any_of, [row[index] for row in rel.rows])
            return len(rel.rows)
        if isinstance(rel, b.Range):
            self._columns[rel.columns[0].id] = _between(min(rel.start, rel.stop), max(rel.start, rel.stop))
            return max(0, (rel.stop - rel.start) // rel.step + 1)
        if isinstance(rel, b.Project):
            count = self.rows(rel.input)
            for column, expr in zip(rel.columns, rel.exprs, strict=True):
                self._learn(column, expr)
            return count
        if isinstance(rel, b.Join):
            return _joined(rel.kind, self.rows(rel.left), self.rows(rel.right))
        if isinstance(rel, b.Aggregate):
            return self._aggregate(rel)
        if isinstance(rel, b.SetOp):
            return self._set_op(rel)
        if isinstance(rel, b.CteRef):
            return self._cte(rel)
        if isinstance(rel, b.Generate):
            self.rows(rel.input)
            return _MANY
        if isinstance(rel, b.Limit):
            count = self.rows(rel.input)
            return count if rel.limit is None else min(count, rel.limit)
        inner = getattr(rel, "input", None)
        return self.rows(inner) if inner is not None else _MANY

    def _inside(self, rel: Rel) -> None:
        """Learn of the subqueries in the relation's own expressions."""
        exprs: Sequence[Any] = ()
        if isinstance(rel, b.Project):
            exprs = rel.exprs
        elif isinstance(rel, b.Filter) or (isinstance(rel, b.Join) and rel.condition is not None):
            exprs = (rel.condition,)
        for expr in exprs:
            self._subqueries(expr)

    def _subqueries(self, expr: Expr) -> None:
        for e in nodes(expr):
            if isinstance(e, b.Subquery):
                self.rows(e.plan)

    def _scan(self, rel: b.Scan) -> int:
        known = getattr(rel.table, "value_range", None)
        if known is not None:
            for column, source in zip(rel.columns, rel.sources, strict=True):
                if column.id in self._needed:
                    self._columns[column.id] = partial(_known, known, source, column.type)
        return rel.table.num_rows if rel.table.num_rows is not None else _MANY

    def _aggregate(self, rel: b.Aggregate) -> int:
        count = self.rows(rel.input)
        width = len(rel.keys)
        for column, expr in zip(rel.columns, rel.keys, strict=False):
            self._columns.setdefault(column.id, partial(self.of, expr))
        for column, agg in zip(rel.columns[width:], rel.aggs, strict=False):
            self._inputs[id(agg)] = count
            if agg.fn in ("min", "max", "first", "last", "any_value") and agg.args:
                self._learn(column, agg.args[0])
            elif agg.fn == "count":
                self._columns[column.id] = partial(_between, 0, count)
            elif agg.fn == "sum" and agg.args:
                self._columns[column.id] = partial(self._sum, agg.args[0], count, column.type)
        return max(count, 1) * (len(rel.sets) if rel.sets else 1)

    def _set_op(self, rel: b.SetOp) -> int:
        counts = [self.rows(side) for side in rel.inputs]
        for index, column in enumerate(rel.columns):
            self._columns[column.id] = partial(self._any_of, [side.columns[index] for side in rel.inputs])
        return sum(counts) if rel.kind == "union" else counts[0]

    def _cte(self, rel: b.CteRef) -> int:
        count = self._ctes.get(rel.cte.id)
        if count is None:
            count = self._ctes[rel.cte.id] = self.rows(rel.cte.plan)
        for column, source in zip(rel.columns, rel.cte.plan.columns, strict=True):
            if column.id in self._needed:
                self._learn(column, source)
        return count

    def _learn(self, column: Col, expr: Expr) -> None:
        if not isinstance(expr, Col) or expr.id != column.id:  # a column that passes is known already
            self._columns[column.id] = partial(self.of, expr)

    def _any_of(self, exprs: Sequence[Expr]) -> Range:
        return _union([self.of(e) for e in exprs])

    def _sum(self, arg: Expr, count: int, t: DataType) -> Range:
        found = self.of(arg)
        if found is None:
            return None
        return _within((min(found[0], Fraction(0)) * count, max(found[1], Fraction(0)) * count), t)


def _joined(kind: str, left: int, right: int) -> int:
    """How many rows a join may have: of a FULL JOIN each row of both sides may be beside none."""
    if kind in ("semi", "anti"):
        return left
    pairs = max(left, 1) * max(right, 1)
    return max(pairs, left + right) if kind == "full" else pairs


def _known(range_of: Callable[[str], tuple[Any, Any] | None], source: str, t: DataType) -> Range:
    found = range_of(source) if of_type(t) is not None else None
    return None if found is None else _between(*found)


def _between(least: Any, greatest: Any) -> Range:
    return Fraction(least), Fraction(greatest)


def _point(value: Any) -> Range:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    exact = Fraction(value)
    return exact, exact


def _within(found: Range, t: DataType) -> Range:
    """The range after a cast to `t`: rounding moves a value by less than one, and what does not fit raises."""
    limits = of_type(t)
    if limits is None:
        return None
    if found is None:
        return limits
    return max(found[0] - 1, limits[0]), min(found[1] + 1, limits[1])


def _union(ranges: Sequence[Range]) -> Range:
    known = [r for r in ranges if r is not None]
    if not known or len(known) != len(ranges):
        return None
    return min(r[0] for r in known), max(r[1] for r in known)
