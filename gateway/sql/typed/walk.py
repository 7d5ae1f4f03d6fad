"""Walks over the bound tree: what is directly below a node, the same node over other children, structural keys."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import (
    Agg,
    AggFn,
    Aggregate,
    Call,
    Case,
    Cast,
    Col,
    Distinct,
    EngineCast,
    Expr,
    Filter,
    Fn,
    Lambda,
    LambdaVar,
    Limit,
    Lit,
    Op,
    Project,
    Rel,
    Sort,
    SortKey,
    Subquery,
    Udf,
    Window,
)
from gateway.sqltypes import BOOLEAN


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct sub-expressions at either level, subqueries' plans excluded."""
    rule = _CHILDREN.get(type(expr))  # by class: this is the innermost step of every walk
    return rule(expr) if rule is not None else ()


def has_columns(expr: Expr) -> bool:
    """Whether a column, a lambda's variable or a subquery is in `expr`: without, it has one value."""
    return isinstance(expr, (Col, LambdaVar, Subquery)) or any(map(has_columns, children(expr)))


def nodes(expr: Expr) -> list[Expr]:
    """`expr` and everything below it at either level, subqueries' plans excluded; each before what is below it."""
    found = [expr]
    for e in found:  # grows on the way
        rule = _CHILDREN.get(type(e))
        if rule is not None:
            found += rule(e)
    return found


def _args(expr: Any) -> tuple[Expr, ...]:
    args: tuple[Expr, ...] = expr.args
    return args


def _arg(expr: Any) -> tuple[Expr, ...]:
    return (expr.arg,)


def _case_parts(expr: Case) -> tuple[Expr, ...]:
    parts = tuple(part for when in expr.whens for part in when)
    return parts if expr.otherwise is None else (*parts, expr.otherwise)


def _agg_parts(expr: Any) -> tuple[Expr, ...]:
    if expr.where is None and not expr.order:
        return _args(expr)
    where = (expr.where,) if expr.where is not None else ()
    return (*expr.args, *where, *(sort.expr for sort in expr.order))


def _window_parts(expr: Window) -> tuple[Expr, ...]:
    return (expr.fn, *expr.partition, *(sort.expr for sort in expr.order))


def _lambda_parts(expr: Lambda) -> tuple[Expr, ...]:
    return (expr.body,)


_CHILDREN: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    **dict.fromkeys((Call, Fn, Op, Udf, Subquery), _args),
    **dict.fromkeys((Cast, EngineCast), _arg),
    **dict.fromkeys((Agg, AggFn), _agg_parts),
    Case: _case_parts,
    Lambda: _lambda_parts,
    Window: _window_parts,
}


def rebuilt_engine(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An engine-level `expr` with `change` applied to its direct children."""
    if isinstance(expr, (Fn, Op, Udf)):
        return replace(expr, args=tuple(change(a) for a in expr.args)) if expr.args else expr
    if isinstance(expr, EngineCast):
        return replace(expr, arg=change(expr.arg))
    if isinstance(expr, Case):
        whens = tuple((change(c), change(v)) for c, v in expr.whens)
        return replace(expr, whens=whens, otherwise=change(expr.otherwise) if expr.otherwise is not None else None)
    return expr


def outer_in_order(plan: Rel, refs: Mapping[int, Col]) -> tuple[Col, ...]:
    """The references to the enclosing query's columns `refs` in the order in which Spark shows them: as met from the top of
    the plan down, and as often."""
    found: list[Col] = []

    def visit(e: Expr) -> None:
        if isinstance(e, Col) and e.id in refs:
            found.append(refs[e.id])
        for child in children(e):
            visit(child)

    stack = [plan]
    while stack:
        rel = stack.pop()
        for e in expressions_of(rel):
            visit(e)
        stack += reversed(inputs_of(rel))
        if isinstance(rel, b.With):
            stack += [cte.plan for cte in reversed(rel.ctes)]
    return tuple(found)


def has_outer(expr: Expr) -> bool:
    """Whether `expr` reads a column of an enclosing query."""
    return (isinstance(expr, Col) and expr.outer) or any(has_outer(c) for c in children(expr))


def read_by(expr: Expr) -> frozenset[int]:
    """The columns that an expression reads."""
    return frozenset([e.id for e in nodes(expr) if isinstance(e, Col)])


def rebuilt(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to its direct children; the same object if nothing changed."""
    if isinstance(expr, Call):
        args = tuple(change(a) for a in expr.args)
        return expr if _are(args, expr.args) else replace(expr, args=args)
    if isinstance(expr, Cast):
        arg = change(expr.arg)
        return expr if arg is expr.arg else replace(expr, arg=arg)
    if isinstance(expr, Case):
        whens = tuple((change(c), change(v)) for c, v in expr.whens)
        otherwise = change(expr.otherwise) if expr.otherwise is not None else None
        same = otherwise is expr.otherwise and all(map(_are, whens, expr.whens))
        return expr if same else replace(expr, whens=whens, otherwise=otherwise)
    if isinstance(expr, Agg):
        args, order = tuple(change(a) for a in expr.args), _keys(expr.order, change)
        where = change(expr.where) if expr.where is not None else None
        same = where is expr.where and order is expr.order and _are(args, expr.args)
        return expr if same else replace(expr, args=args, where=where, order=order)
    if isinstance(expr, Window):
        fn, order = rebuilt(expr.fn, change), _keys(expr.order, change)
        partition = tuple(change(p) for p in expr.partition)
        same = fn is expr.fn and order is expr.order and _are(partition, expr.partition)
        return expr if same else replace(expr, fn=fn, partition=partition, order=order)
    if isinstance(expr, Subquery):
        args = tuple(change(a) for a in expr.args)
        return expr if _are(args, expr.args) else replace(expr, args=args)
    if isinstance(expr, Lambda):
        body = change(expr.body)
        return expr if body is expr.body else replace(expr, body=body)
    return expr


def _are(new: Sequence[Expr], old: Sequence[Expr]) -> bool:
    return all(map(operator.is_, new, old))


def substituted(expr: Expr, known: Mapping[int, Expr]) -> Expr:
    """`expr` with other expressions in the place of columns, by their ids."""
    return known.get(expr.id, expr) if isinstance(expr, Col) else rebuilt(expr, lambda child: substituted(child, known))


def _keys(keys: tuple[SortKey, ...], change: Callable[[Expr], Expr]) -> tuple[SortKey, ...]:
    changed = [change(k.expr) for k in keys]
    if _are(changed, [k.expr for k in keys]):
        return keys
    return tuple(SortKey(e, k.descending, k.nulls_first) for e, k in zip(changed, keys, strict=True))


def contains(expr: Expr, kind: type[Expr]) -> bool:
    """Whether a node of class `kind` is in `expr` (not inside subqueries; an Agg under a Window does not count as one)."""
    if isinstance(expr, (Col, Lit)):
        return isinstance(expr, kind)
    stack = [expr]
    while stack:
        e = stack.pop()
        if isinstance(e, kind):
            return True
        if kind is Agg and isinstance(e, Window):
            stack += (*e.partition, *(k.expr for k in e.order), *children(e.fn))
        elif not isinstance(e, (Col, Lit)):
            stack += children(e)
    return False


def inputs_of(rel: Rel) -> tuple[Rel, ...]:
    """Direct input relations."""
    rule = _INPUTS.get(type(rel))
    return rule(rel) if rule is not None else ()


def expressions_of(rel: Rel) -> Sequence[Expr]:
    """The expressions that stand in the relation itself."""
    rule = _EXPRESSIONS.get(type(rel))
    return rule(rel) if rule is not None else ()


def all_relations(rel: Rel) -> list[Rel]:
    """`rel` and all relations below it, those of common table expressions and subqueries included."""
    found: list[Rel] = []
    stack, seen = [rel], set()
    while stack:
        below = stack.pop()
        if id(below) in seen:
            continue
        seen.add(id(below))
        found.append(below)
        stack += inputs_of(below)
        for e in expressions_of(below):
            if not isinstance(e, (Col, Lit)):  # most are, and have no parts
                stack += [part.plan for part in nodes(e) if type(part) is Subquery]
        if isinstance(below, b.CteRef):
            stack.append(below.cte.plan)
    return found


def all_expressions(rel: Rel) -> list[Expr]:
    """The expressions of `rel` and of all relations below it."""
    return [e for below in all_relations(rel) for e in expressions_of(below)]


def _input(rel: Any) -> tuple[Rel, ...]:
    return (rel.input,)


def _both_sides(rel: b.Join) -> tuple[Rel, ...]:
    return (rel.left, rel.right)


def _all_sides(rel: b.SetOp) -> tuple[Rel, ...]:
    return rel.inputs


_INPUTS: dict[type, Callable[[Any], tuple[Rel, ...]]] = {
    b.Join: _both_sides,
    b.SetOp: _all_sides,
    **dict.fromkeys((Aggregate, Distinct, Filter, b.Generate, Limit, Project, Sort, b.WindowRel, b.With), _input),
}
_EXPRESSIONS: dict[type, Callable[[Any], Sequence[Expr]]] = {
    b.Project: lambda rel: rel.exprs,
    b.Filter: lambda rel: (rel.condition,),
    b.Join: lambda rel: () if rel.condition is None else (rel.condition,),
    b.Aggregate: lambda rel: (*rel.keys, *rel.aggs),
    b.WindowRel: lambda rel: rel.windows,
    b.Sort: lambda rel: [k.expr for k in rel.keys],
    b.Values: lambda rel: [e for row in rel.rows for e in row],
    b.Generate: lambda rel: (rel.generator,),
}


def conjuncts_of(expr: Expr) -> list[Expr]:
    """The operands of a (nested) AND, in order."""
    result: list[Expr] = []
    stack = [expr]
    while stack:
        e = stack.pop()
        if isinstance(e, b.Call) and e.fn == "and":
            stack.extend(reversed(e.args))
        else:
            result.append(e)
    return result


def all_of(terms: Sequence[Expr]) -> Expr:
    """The AND of one or more conditions."""
    return terms[0] if len(terms) == 1 else b.Call(BOOLEAN, any(t.nullable for t in terms), "and", tuple(terms))


def is_global(rel: Rel) -> bool:
    """Whether `rel` has at most one row because its top is an aggregate without GROUP BY."""
    while isinstance(rel, (Project, Filter, Sort, Limit, Distinct)):
        rel = rel.input
    return isinstance(rel, Aggregate) and not rel.keys and rel.sets is None
