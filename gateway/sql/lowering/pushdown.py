"""What a scan may leave out: conjuncts of filters and inner joins that say something about one table's columns.

They are hints for choosing files (`delta.predicates`); the engine evaluates every condition itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import pyarrow as pa

from gateway.delta.predicates import Comparison, NullTest, OneOf, Predicate, StartsWith
from gateway.sql.functions.fold import fold
from gateway.sql.lowering.row_keys import HIDDEN
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Call, Cast, Col, Expr, Lit, Rel
from gateway.sql.typed.walk import children, conjuncts_of, expressions_of, inputs_of, nodes, rebuilt
from gateway.sqltypes import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, is_fractional, is_integral, is_nested

_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "="}
_RANGES = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}

Conjunct = tuple[Expr, frozenset[int]]  # with the ids of its columns


class Asked:
    """A walk from the top down of one bound query: at each relation, conjuncts that hold for its rows which anybody needs."""

    def __init__(self, rel: Rel, has_subqueries: bool) -> None:
        self.has_subqueries = has_subqueries
        self._ctes: set[int] = set()
        self._walk(rel, [])

    def met(self, rel: Rel, conjuncts: Sequence[Conjunct]) -> None:
        """What is to be done at a relation, once for each place where it is read."""
        raise NotImplementedError

    def _walk(self, rel: Rel, conjuncts: Sequence[Conjunct]) -> None:
        if self.has_subqueries:
            for expr in expressions_of(rel):
                for e in nodes(expr):
                    if isinstance(e, b.Subquery):
                        self._walk(e.plan, [])
        self.met(rel, conjuncts)
        if isinstance(rel, b.Join):
            self._join(rel, conjuncts)
        elif isinstance(rel, b.SetOp):
            for side in rel.inputs:
                self._walk(side, _mapped(conjuncts, rel.columns, side.columns) if rel.kind == "union" else [])
        elif isinstance(rel, b.CteRef):
            if rel.cte.id not in self._ctes:
                self._ctes.add(rel.cte.id)
                self._walk(rel.cte.plan, [])
        elif type(rel) in _HANDED_ON:
            self._walk(inputs_of(rel)[0], _HANDED_ON[type(rel)](rel, conjuncts))

    def _join(self, rel: b.Join, conjuncts: Sequence[Conjunct]) -> None:
        on = _conjuncts(rel.condition) if rel.condition is not None else []
        left, right = list(conjuncts), list(conjuncts)
        if rel.kind in ("inner", "cross"):
            left, right = left + on, right + on
        elif rel.kind == "left":
            right = list(on)
        elif rel.kind == "right":
            left = list(on)
        elif rel.kind == "semi":
            left, right = left + on, list(on)
        elif rel.kind == "anti":
            right = list(on)
        else:
            left, right = [], []
        # What speaks of the other side, too, is left out where it meets a scan or a projection.
        self._walk(rel.left, left)
        self._walk(rel.right, right)


class Hints(Asked):
    """Predicates per scan of one bound query; whether it compares floats, and whether it joins by them."""

    def __init__(self, rel: Rel, context: Context, has_subqueries: bool) -> None:
        self.context = context
        self.found: dict[int, list[Predicate]] = {}
        self.conditions: dict[int, int] = {}  # how many columns of a scan conditions on it alone speak of
        self.compares_floats = False
        self.joins_floats = False
        super().__init__(rel, has_subqueries)

    def of(self, scan: b.Scan) -> list[Predicate]:
        """The predicates of one scan."""
        return self.found.get(id(scan), [])

    def met(self, rel: Rel, conjuncts: Sequence[Conjunct]) -> None:
        self.compares_floats = self.compares_floats or _compares_floats(rel)
        self.joins_floats = self.joins_floats or _joins_floats(rel)
        if isinstance(rel, b.Scan):
            self._scan(rel, conjuncts)

    def _scan(self, scan: b.Scan, conjuncts: Sequence[Conjunct]) -> None:
        """What is said of a scan; of one that is read in several places, as by NOT IN, what is said in each."""
        before = self.found.get(id(scan))
        names = {c.id: (n, c.type) for c, n in zip(scan.columns, scan.sources, strict=True)}
        own = [(c, ids) for c, ids in conjuncts if ids <= names.keys()]
        asked = len({i for _, ids in own for i in ids})
        self.conditions[id(scan)] = asked if before is None else min(asked, self.conditions[id(scan)])
        predicates = [p for c, _ in own for p in self._predicates(c, names)]
        shared = (c for c, ids in conjuncts if not ids <= names.keys() and not ids.isdisjoint(names))
        predicates += [p for c in shared if isinstance(c, Call) and c.fn == "or" for p in self._either(c, names)]
        self.found[id(scan)] = predicates if before is None else [p for p in before if p in predicates]

    def _predicates(self, e: Expr, names: dict[int, tuple[str, DataType]]) -> list[Predicate]:
        if isinstance(e, Call) and e.fn == "or":
            return self._either(e, names)
        found = self._predicate(e, names)
        return [] if found is None else [found]

    def _either(self, e: Call, names: dict[int, tuple[str, DataType]]) -> list[Predicate]:
        """``a = 1 AND … OR a = 2 AND …``: the values of each column that every side pins."""
        sides = _sides(e)
        if len(sides) > 1_000:
            return []
        pinned: dict[str, tuple[Any, ...]] | None = None
        for side in sides:
            own: dict[str, tuple[Any, ...]] = {}
            for predicate in (p for c in conjuncts_of(side) for p in self._predicates(c, names)):
                if isinstance(predicate, Comparison) and predicate.op == "=":
                    own[predicate.column] = (predicate.value,)
                elif isinstance(predicate, OneOf):
                    own[predicate.column] = predicate.values
            pinned = own if pinned is None else {k: v + own[k] for k, v in pinned.items() if k in own}
        return [OneOf(column, values) for column, values in (pinned or {}).items()]

    def _predicate(self, e: Expr, names: dict[int, tuple[str, DataType]]) -> Predicate | None:
        if not isinstance(e, Call):
            return None
        if e.fn in _FLIPPED and len(e.args) == 2:
            return self._comparison(e.fn, e.args[0], e.args[1], names) or self._comparison(
                _FLIPPED[e.fn], e.args[1], e.args[0], names
            )
        if e.fn == "in":
            return self._one_of(e, names)
        if e.fn in ("is null", "is not null") and isinstance(e.args[0], Col) and e.args[0].id in names:
            return NullTest(names[e.args[0].id][0], e.fn == "is not null")
        if e.fn == "not" and isinstance(e.args[0], Call) and e.args[0].fn == "is null":
            inner = e.args[0].args[0]
            if isinstance(inner, Col) and inner.id in names:
                return NullTest(names[inner.id][0], True)
        if e.fn == "like" and isinstance(e.args[0], Col) and e.args[0].id in names and isinstance(e.args[1], Lit):
            prefix = _prefix(e.args[1].value)
            return StartsWith(names[e.args[0].id][0], prefix) if prefix else None
        return None

    def _comparison(
        self, symbol: str, left: Expr, right: Expr, names: dict[int, tuple[str, DataType]]
    ) -> Comparison | None:
        column = _column(left, names)
        if column is None:
            return None
        value = self._value(right, column[1], left.type)
        if value is None:
            return None
        return Comparison(column[0], "=" if symbol == "<=>" else symbol, value)

    def _one_of(self, e: Call, names: dict[int, tuple[str, DataType]]) -> OneOf | None:
        column = _column(e.args[0], names)
        if column is None or len(e.args) > 10_000:
            return None
        values = [self._value(a, column[1], e.args[0].type) for a in e.args[1:]]
        if any(v is None for v in values):
            return None
        return OneOf(column[0], tuple(values))

    def _value(self, expr: Expr, stored: DataType, compared: DataType) -> Any:
        """The constant in the column's own type; None if there is none of exactly that value."""
        literal = fold(expr, self.context)
        if literal is None or literal.value is None or is_nested(stored) or is_fractional(stored):
            return None
        value = literal.value
        if literal.type != compared:
            return None
        if stored != compared:
            if not (is_integral(stored) and is_integral(compared)):
                return None
            bits = _RANGES[stored.name]
            if not -(1 << bits) <= value < (1 << bits):
                return None
        if stored in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            integers = pa.int32() if stored == DATE else pa.int64()
            return pa.array([value], integers).cast(stored.arrow())[0]
        if stored == STRING or stored.name in ("CHAR", "VARCHAR"):
            return pa.scalar(value, pa.string())
        try:
            return pa.scalar(value, stored.arrow())
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return None


# What computes with floats but never selects rows by their order, so that skipped NaN do no harm.
_ARITHMETIC = {"+", "-", "*", "/", "negative", "positive", "abs", "round"}
_SUMS = {"sum", "avg", "count", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"}


def _compares_floats(rel: Rel) -> bool:
    """Whether a float may be compared in the relation itself; True when in doubt."""
    if isinstance(rel, (b.Scan, b.Limit, b.CteRef, b.Generate)):
        return isinstance(rel, b.Generate) and _has_float(rel.generator)
    if isinstance(rel, b.Project):
        return not all(map(_only_computes, rel.exprs))
    if isinstance(rel, b.Aggregate):
        computed = (a for agg in rel.aggs for a in (agg.args if agg.fn in _SUMS and not agg.distinct else (agg,)))
        keys = [*rel.keys, *(a.where for a in rel.aggs if a.where), *(k.expr for a in rel.aggs for k in a.order)]
        return any(map(_has_float, keys)) or not all(map(_only_computes, computed))
    if isinstance(rel, b.SetOp) and rel.kind == "union" and rel.all:
        return False
    if isinstance(rel, (b.Distinct, b.SetOp)):
        return any(map(_has_float, rel.columns))
    return any(map(_has_float, expressions_of(rel)))


def _joins_floats(rel: Rel) -> bool:
    """Whether floats of two sides are matched: by a join, a set operation, or a condition that the engine makes a join of."""
    if isinstance(rel, b.SetOp):
        return rel.kind != "union" and any(_is_float(c.type) for c in rel.columns)
    return any(_matches_floats(node) for expr in expressions_of(rel) for node in nodes(expr))


def _matches_floats(e: Expr) -> bool:
    if isinstance(e, b.Subquery):
        return any(_is_float(a.type) for a in e.args)
    if not (isinstance(e, Call) and e.fn in ("=", "<=>", "in") and any(_is_float(a.type) for a in e.args)):
        return False
    return not all(isinstance(a, Lit) for a in e.args[1:]) and not isinstance(e.args[0], Lit)


def _has_float(e: Expr) -> bool:
    return any(_is_float(node.type) for node in nodes(e))


def _is_float(t: DataType) -> bool:
    return is_fractional(t) or (is_nested(t) and any(map(_is_float, t.children())))


def _only_computes(e: Expr) -> bool:
    """Whether floats in `e` are only passed on or calculated with."""
    if isinstance(e, (Col, Lit)) or not _has_float(e):
        return True
    if not isinstance(e, Cast) and not (isinstance(e, Call) and e.fn in _ARITHMETIC):
        return False
    return is_fractional(e.type) and all(map(_only_computes, children(e)))


def _column(e: Expr, names: dict[int, tuple[str, DataType]]) -> tuple[str, DataType] | None:
    """The table's column that `e` is, also under a widening implicit cast of integers."""
    if isinstance(e, Cast) and e.implicit and is_integral(e.type) and is_integral(e.arg.type):
        e = e.arg
    return names.get(e.id) if isinstance(e, Col) else None


def _sides(e: Expr) -> list[Expr]:
    """The operands of a chain of ORs, whatever its brackets."""
    found: list[Expr] = []
    open_ = [e]
    while open_:
        one = open_.pop()
        if isinstance(one, Call) and one.fn == "or":
            open_.extend(one.args)
        else:
            found.append(one)
    return found


def _prefix(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return ""
    end = len(pattern)
    for index, char in enumerate(pattern):
        if char in "%_\\":
            end = index
            break
    return pattern[:end]


def _conjuncts(condition: Expr) -> list[Conjunct]:
    found = [c for whole in conjuncts_of(condition) for c in (whole.args if _is_range(whole) else (whole,))]
    return [(c, frozenset([e.id for e in nodes(c) if isinstance(e, Col)])) for c in found]


def _is_range(e: Expr) -> TypeGuard[Call]:
    """Whether it is BETWEEN, whose operands are two comparisons."""
    return isinstance(e, Call) and e.fn == "between"


def _mapped(conjuncts: Sequence[Conjunct], columns: Sequence[Col], exprs: Sequence[Expr]) -> list[Conjunct]:
    """Conjuncts over output `columns` as conjuncts over what they are, where that is a plain column, maybe a hidden one."""
    if not conjuncts:
        return []
    below = {c.id: e for c, e in zip(columns, map(_shown, exprs), strict=False) if isinstance(e, Col)}
    return [(_replaced(c, below), frozenset([below[i].id for i in ids])) for c, ids in conjuncts if ids <= below.keys()]


def _shown(expr: Expr) -> Expr:
    return expr.args[0] if isinstance(expr, Call) and expr.fn == HIDDEN else expr


def _replaced(expr: Expr, below: dict[int, Col]) -> Expr:
    if isinstance(expr, Col):
        return below[expr.id]
    return rebuilt(expr, lambda e: _replaced(e, below))


def _of_groups(rel: b.Aggregate, conjuncts: Sequence[Conjunct]) -> Sequence[Conjunct]:
    if rel.sets is not None or not rel.keys:
        return []
    return _mapped(conjuncts, rel.columns[: len(rel.keys)], rel.keys)


def _of_input(rel: b.Generate, conjuncts: Sequence[Conjunct]) -> Sequence[Conjunct]:
    known = {c.id for c in rel.input.columns}
    return [c for c in conjuncts if c[1] <= known]


# What conjuncts over a relation say of its only input.
_HANDED_ON: Mapping[type[Rel], Callable[[Any, Sequence[Conjunct]], Sequence[Conjunct]]] = {
    b.Filter: lambda rel, conjuncts: [*conjuncts, *_conjuncts(rel.condition)],
    b.Project: lambda rel, conjuncts: _mapped(conjuncts, rel.columns, rel.exprs),
    b.Aggregate: _of_groups,
    b.Generate: _of_input,
    b.Sort: lambda rel, conjuncts: conjuncts,
    b.Distinct: lambda rel, conjuncts: conjuncts,
    b.Limit: lambda rel, conjuncts: [],
    b.WindowRel: lambda rel, conjuncts: [],
}
