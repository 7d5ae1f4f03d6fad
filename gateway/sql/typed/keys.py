"""Structural keys of expressions: equal where they compute the same, however they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any

from gateway.sql.typed.nodes import (
    Agg,
    Bound,
    Call,
    Case,
    Cast,
    Col,
    Cte,
    Expr,
    Frame,
    Join,
    Lambda,
    LambdaVar,
    Lit,
    Rel,
    SetOp,
    SortKey,
    Subquery,
    Window,
)
from gateway.sqltypes import DataType

#: Operators whose operands have no order, and what a comparison is with its sides changed or under NOT, as in Spark's
#: canonical form: ``a + 1`` and ``1 + a`` are one grouping key.
_UNORDERED = frozenset({"+", "*", "and", "or", "&", "|", "^", "=", "<=>", "greatest", "least"})

_CHAINS = _UNORDERED - {"=", "<=>"}

_MIRRORED = {">": "<", ">=": "<="}

_NEGATED = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}

_SYNONYMS = {"ifnull": "coalesce", "nvl": "coalesce"}


def key(expr: Expr) -> tuple[Any, ...]:
    """A hashable structural key: equal for expressions that mean the same by construction (names do not count)."""
    if isinstance(expr, Col):
        return ("col", expr.id)
    if isinstance(expr, Lit):
        return ("lit", expr.type, type(expr.value).__name__, repr(expr.value))
    if isinstance(expr, Call):
        return _call_key(expr)
    if isinstance(expr, Cast):
        return ("cast", expr.type, expr.is_try, key(expr.arg))
    if isinstance(expr, Case):
        other = key(expr.otherwise) if expr.otherwise else None
        return ("case", other, *((key(c), key(v)) for c, v in expr.whens))
    if isinstance(expr, Agg):
        where = key(expr.where) if expr.where else None
        order = tuple((key(k.expr), k.descending, k.nulls_first) for k in expr.order)
        return ("agg", expr.fn, expr.data, expr.distinct, where, order, expr.ignore_nulls, *(key(a) for a in expr.args))
    if isinstance(expr, LambdaVar):
        return ("var", expr.id)
    if isinstance(expr, Lambda):
        return ("lambda", *_renumbered(key(expr.body), [p.id for p in expr.params]))
    if isinstance(expr, Window):
        order = tuple((key(k.expr), k.descending, k.nulls_first) for k in expr.order)
        frame = (expr.frame.unit, _bound_key(expr.frame.start), _bound_key(expr.frame.end))
        return ("window", key(expr.fn), tuple(key(p) for p in expr.partition), order, frame)
    if isinstance(expr, Subquery):
        return ("subquery", _shape(expr, {}))
    return ("id", id(expr))


def _renumbered(body: tuple[Any, ...], params: list[int]) -> tuple[int, tuple[Any, ...]]:
    """The lambdas nested in the key of a lambda's body, and the key with the parameters by their places."""
    depth = max((k[1] for k in _tuples(body) if k[0] == "lambda"), default=0) + 1

    def change(k: Any) -> Any:
        if not isinstance(k, tuple):
            return k
        if len(k) == 2 and k[0] == "var" and k[1] in params:
            return ("parameter", depth, params.index(k[1]))
        return tuple(map(change, k))

    return depth, change(body)


def _tuples(k: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if k:
        yield k
    for part in k:
        if isinstance(part, tuple):
            yield from _tuples(part)


_UNSEEN = frozenset({"name", "span", "shown", "text", "alias"})  # fields that do not change what is computed


def _shape(node: Any, known: dict[int, int]) -> Any:
    """The structure of a subquery: equal where only the ids of the columns that are made inside differ."""
    if isinstance(node, Col):
        return ("col", known.get(node.id, ("outer", node.id)))
    if isinstance(node, Cte):
        return ("cte", node.id)
    if isinstance(node, Lambda):
        known.update((p.id, len(known) + at) for at, p in enumerate(node.params))
        return ("function", len(node.params), _shape(node.body, known))
    if isinstance(node, LambdaVar):
        return ("var", known.get(node.id, ("outer", node.id)))
    if isinstance(node, Rel):
        inner = [_shape(r, known) for r in _relations(node)]
        for column in node.columns:
            known.setdefault(column.id, len(known))
        others = [f.name for f in fields(node) if f.name not in _UNSEEN and f.name not in _INPUTS]
        return (type(node).__name__, *inner, *(_shape(getattr(node, n), known) for n in others))
    if isinstance(node, tuple):
        return tuple(_shape(n, known) for n in node)
    if isinstance(node, Lit):
        return key(node)
    if isinstance(node, Subquery):
        return (node.kind, tuple(_shape(a, known) for a in node.args), _shape(node.plan, known))
    if isinstance(node, (Expr, SortKey, Frame, Bound)):
        return (
            type(node).__name__,
            *(_shape(getattr(node, f.name), known) for f in fields(node) if f.name not in _UNSEEN),
        )
    return node if isinstance(node, _PLAIN) else id(node)  # tables are the same objects in one statement


_PLAIN = (str, int, float, bool, bytes, Decimal, DataType, type(None))

_INPUTS = frozenset({"input", "inputs", "left", "right"})


def _relations(rel: Any) -> tuple[Rel, ...]:
    if isinstance(rel, Join):
        return (rel.left, rel.right)
    if isinstance(rel, SetOp):
        return rel.inputs
    inner = getattr(rel, "input", None)
    return () if inner is None else (inner,)


def _call_key(call: Call) -> tuple[Any, ...]:
    fn, args = _SYNONYMS.get(call.fn, call.fn), call.args
    if fn == "not" and isinstance(args[0], Call) and args[0].fn in _NEGATED:
        fn, args = _NEGATED[args[0].fn], args[0].args
    if fn in _MIRRORED:
        fn, args = _MIRRORED[fn], args[::-1]
    keys = [key(a) for a in (_operands(call) if fn in _CHAINS else args)]
    if fn in _UNORDERED:
        keys.sort(key=repr)
    elif fn == "in":
        keys[1:] = sorted(keys[1:], key=repr)
    return ("call", fn, call.data[:1] if fn == "_field" else call.data, call.type, *keys)


def _operands(call: Call) -> list[Expr]:
    """The operands of nested calls of one operator, whose results have one type."""
    found: list[Expr] = []
    stack: list[Expr] = [call]
    while stack:
        e = stack.pop()
        same = isinstance(e, Call) and _SYNONYMS.get(e.fn, e.fn) == _SYNONYMS.get(call.fn, call.fn)
        if isinstance(e, Call) and same and e.type == call.type:
            stack += reversed(e.args)
        else:
            found.append(e)
    return found


def _bound_key(bound: Bound) -> tuple[Any, ...]:
    return (bound.kind, bound.preceding, key(bound.offset) if bound.offset else None)
