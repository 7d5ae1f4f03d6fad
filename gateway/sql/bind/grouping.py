"""Aggregates and windows: taken out of bound select items, replaced by columns of the relation that computes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.correlations import misplaced, mixed
from gateway.sql.bind.nullability import Nullability
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import (
    Agg,
    Aggregate,
    Call,
    Case,
    Col,
    Expr,
    Ids,
    Join,
    Lit,
    Rel,
    Subquery,
    Values,
    Window,
    WindowRel,
)
from gateway.sql.typed.walk import children, contains, has_outer, nodes, rebuilt
from gateway.sqltypes import BIGINT, BOOLEAN, INT, TINYINT

_OF_SETS = ("grouping", "grouping_id")


def has_grouping_call(expr: Expr) -> bool:
    """Whether grouping() or grouping_id() is used."""
    return any(isinstance(e, Call) and e.fn in _OF_SETS for e in nodes(expr))


@dataclass(slots=True)
class Grouping:
    """GROUP BY of one select: `keys`, optional `sets`, and the aggregates that its items use."""

    ids: Ids
    keys: list[Expr]
    sets: list[tuple[int, ...]] | None
    gid: Expr | None = None  # given for the one set without keys, which is a plain aggregate
    nullability: Nullability | None = None  # given for grouping sets, whose keys may be NULL above
    key_columns: list[Col] = field(default_factory=list)
    aggs: list[Agg] = field(default_factory=list)
    agg_columns: list[Col] = field(default_factory=list)
    free: set[int] = field(default_factory=set)  # columns that are made above the aggregate
    _by_key: dict[Any, Col] = field(default_factory=dict)
    _aggs: dict[Any, Col] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, expr in enumerate(self.keys):
            nullable = expr.nullable or (self.sets is not None and not all(index in s for s in self.sets))
            if isinstance(expr, Col):
                column = replace(expr, nullable=nullable, outer=False)
            else:
                column = Col(expr.type, nullable, self.ids.take(), "")
            self.key_columns.append(column)
            self._by_key.setdefault(key(expr), column)
        if self.sets is not None:
            self.gid = Col(BIGINT, False, self.ids.take(), "")

    def rewrite(self, expr: Expr) -> Expr:
        """`expr` over the aggregate's output; raises MISSING_AGGREGATION for a column that is not grouped."""
        if isinstance(expr, Lit) and self.sets is None:
            return expr
        if not isinstance(expr, Agg):
            column = self._by_key.get(key(expr)) if self._by_key else None
            if column is not None:
                return replace(column, name=expr.name) if isinstance(expr, Col) else column
        if isinstance(expr, Lit):
            return expr
        if isinstance(expr, Agg):
            return self._aggregate(expr)
        if isinstance(expr, Call) and expr.fn in _OF_SETS:
            return self._grouping(expr)
        if isinstance(expr, Col):
            if expr.outer or expr.id in self.free:
                return expr
            raise _missing(expr) if self.keys else _ungrouped(expr)
        if isinstance(expr, Subquery):
            grouped = {c.id for c in self.key_columns}
            for outer in expr.outer:
                if outer.id not in grouped and not outer.outer:
                    raise _missing(outer)
        if self.sets is None:
            return rebuilt(expr, self.rewrite)
        return self._over_sets(expr)

    def spelt(self, expr: Expr) -> str | None:
        """A column's name as GROUP BY spells it, which grouping sets leave it with; None where it is no key of such."""
        column = self._by_key.get(key(expr)) if self.sets is not None and isinstance(expr, Col) else None
        return None if column is None else column.name

    def check(self, exprs: Iterable[Expr]) -> None:
        """UserError for grouping() and grouping_id() of what is no key, which Spark tells before a column that is none."""
        for e in exprs:
            for part in nodes(e):
                if isinstance(part, Call) and part.fn in _OF_SETS:
                    self._grouping(part)

    def check_correlation(self, exprs: Iterable[Expr], span: Span | None) -> None:
        """UserError for columns of an enclosing query among the keys or in `exprs`, select items over the groups."""
        if any(map(has_outer, (*self.keys, *exprs))):
            raise misplaced(span)

    def _over_sets(self, expr: Expr) -> Expr:
        """`rewrite` of what holds keys that are NULL in the rows of other sets."""
        assert self.nullability is not None
        for child in children(expr):
            if isinstance(child, Lit) and key(child) in self._by_key:
                raise unsupported("a constant that is a grouping key inside an expression")
        if isinstance(expr, Window) and isinstance(expr.fn, Agg):  # Spark puts no key in the place of its arguments
            column = next((e for arg in expr.fn.args for e in _outside_aggregates(arg) if key(e) in self._by_key), None)
            if isinstance(column, Col):
                raise _missing(column)
        return self.nullability.after(rebuilt(expr, self.rewrite), expr)

    def _aggregate(self, agg: Agg) -> Expr:
        if any(contains(c, Agg) for c in children(agg)):
            raise UserError(
                "NESTED_AGGREGATE_FUNCTION",
                "It is not allowed to use an aggregate function in the argument of another aggregate function.",
                span=agg.span,
            )
        if any(has_outer(c) for c in children(agg)):
            if any(isinstance(part, Col) and not part.outer for part in nodes(agg)):
                raise mixed(agg.span)
            raise unsupported("an aggregate over columns of an enclosing query", agg.span)
        if any(contains(c, Window) for c in children(agg)):
            raise unsupported("a window function inside an aggregate", agg.span)
        k = key(agg)
        column = self._aggs.get(k)
        if column is None:
            column = Col(agg.type, agg.nullable, self.ids.take(), "")
            self._aggs[k] = column
            self.aggs.append(agg)
            self.agg_columns.append(column)
        return column

    def _grouping(self, call: Call) -> Expr:
        if self.gid is None:
            raise UserError(
                "UNSUPPORTED_GROUPING_EXPRESSION",
                "grouping()/grouping_id() can only be used with GroupingSets/Cube/Rollup.",
                span=call.span,
            )
        positions = {key(k): i for i, k in enumerate(self.keys)}
        if call.fn == "grouping":
            if len(call.args) != 1 or key(call.args[0]) not in positions:
                raise UserError(
                    "GROUPING_COLUMN_MISMATCH",
                    "Column of grouping can't be found in grouping columns.",
                    span=call.span,
                )
            shift = len(self.keys) - 1 - positions[key(call.args[0])]
            return Call(TINYINT, False, "_grouping_bit", (self.gid,), "grouping", (shift,), call.span)
        if call.args and [positions.get(key(a)) for a in call.args] != list(range(len(self.keys))):
            raise UserError(
                "GROUPING_ID_COLUMN_MISMATCH",
                "Columns of grouping_id do not match grouping columns.",
                span=call.span,
            )
        return self.gid

    def relation(self, source: Rel) -> Rel:
        """The Aggregate, once all items are rewritten."""
        columns = [*self.key_columns, *self.agg_columns]
        if self.sets is None or not isinstance(self.gid, Col):
            return Aggregate(tuple(columns), source, tuple(self.keys), tuple(self.aggs), None)
        columns.append(self.gid)
        sets = tuple(dict.fromkeys(self.sets))
        grouped = Aggregate(tuple(columns), source, tuple(self.keys), tuple(self.aggs), sets)
        if len(sets) == len(self.sets):
            return grouped
        # The same set once more has the same rows once more.
        place = Col(BIGINT, False, self.ids.take(), "")
        numbers = Values((place,), tuple((Lit(BIGINT, False, self._number(s)),) for s in self.sets))
        same = Call(BOOLEAN, False, "=", (self.gid, place))
        return Join((*columns, place), "inner", grouped, numbers, same)

    def _number(self, keys: tuple[int, ...]) -> int:
        """The grouping id of a set."""
        count = len(self.keys)
        return sum(1 << (count - 1 - i) for i in range(count) if i not in keys)


def _outside_aggregates(expr: Expr) -> Iterator[Expr]:
    """Its parts that are no operands of aggregates, nor of grouping()."""
    if not isinstance(expr, Agg) and not (isinstance(expr, Call) and expr.fn in _OF_SETS):
        yield expr
        for child in children(expr):
            yield from _outside_aggregates(child)


def _ungrouped(column: Col) -> UserError:
    return UserError(
        "MISSING_GROUP_BY",
        f"The query does not include a GROUP BY clause. Add GROUP BY or turn it into the window functions using OVER "
        f"clauses (column `{column.name}`).",
    )


def _missing(column: Col) -> UserError:
    return UserError(
        "MISSING_AGGREGATION",
        f'The non-aggregating expression "{column.name}" is based on columns which are not participating in the GROUP BY '
        "clause. Add the columns or the expression to the GROUP BY, aggregate the expression, or use "
        f'"any_value({column.name})" if you do not care which of the values within a group is returned.',
    )


@dataclass(slots=True)
class Windows:
    """The window functions of one select."""

    ids: Ids
    windows: list[Window] = field(default_factory=list)
    columns: list[Col] = field(default_factory=list)
    _known: dict[Any, Col] = field(default_factory=dict)

    def rewrite(self, expr: Expr) -> Expr:
        """`expr` with window functions replaced by columns."""
        if isinstance(expr, Window):
            if any(contains(c, Window) for c in children(expr)):
                raise unsupported("a window function inside another one")
            return self._or_default(expr)
        return rebuilt(expr, self.rewrite)

    def _or_default(self, window: Window) -> Expr:
        """The column of a window function; beside it a default of lag and lead that each row has its own of."""
        call = window.fn
        if not isinstance(call, Call) or call.fn not in ("lag", "lead") or isinstance(call.args[2], Lit):
            return self._column(window)
        offset, ignore_nulls = call.data
        if offset is None:  # refused when it is lowered
            return self._column(window)
        value, _, default = call.args
        there = found = self._column(_offset(window, call, value, call.data))
        if not ignore_nulls:  # a NULL may be the value of a row that is there
            there = self._column(_offset(window, call, Lit(BOOLEAN, False, True), call.data))
        if not isinstance(default, Col):  # evaluated for the rows that need none, too
            default = self._column(_offset(window, call, default, (0, False)))
        missing = Call(BOOLEAN, False, "is null", (there,))
        return Case(window.type, window.nullable, ((missing, default),), found)

    def _column(self, window: Window) -> Col:
        k = key(window)
        column = self._known.get(k)
        if column is None:
            column = Col(window.type, window.nullable, self.ids.take(), "")
            self._known[k] = column
            kept = tuple(p for p in window.partition if not is_foldable(p))  # of a constant nobody asks for its value
            self.windows.append(replace(window, partition=kept))
            self.columns.append(column)
        return column

    def relation(self, source: Rel) -> Rel:
        """The source with the windows' columns behind its own."""
        if not self.windows:
            return source
        return WindowRel((*source.columns, *self.columns), source, tuple(self.windows))


def _offset(window: Window, call: Call, value: Expr, data: tuple[int, bool]) -> Window:
    """`window`, a lag or lead, of another value and without a default; `data` is how far away, and whether NULLs count."""
    args = (value, Lit(INT, False, data[0]), Lit(value.type, True, None))
    fn = replace(call, type=value.type, nullable=True, args=args, data=data)
    return replace(window, type=value.type, nullable=True, fn=fn)
