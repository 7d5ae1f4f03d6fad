"""The GROUP BY clause of one SELECT: expressions, ordinals, aliases, ALL, grouping sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from sqlglot import exp

from gateway.errors import Span, UnsupportedError, UserError, unsupported
from gateway.sql.bind.binder import outside_select
from gateway.sql.bind.columns import stray_star
from gateway.sql.bind.generated import Generators
from gateway.sql.bind.grouping import Grouping, has_grouping_call
from gateway.sql.bind.items import Item
from gateway.sql.bind.nullability import Nullability
from gateway.sql.bind.organization import ordinal_of
from gateway.sql.bind.relations import Relations
from gateway.sql.bind.scope import Scope
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import is_generator, is_steady
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Agg, Col, Expr, Lit, Subquery, Window
from gateway.sql.typed.walk import children, contains, nodes
from gateway.sqltypes import BIGINT, has_map, has_variant

Node = exp.Expr


class GroupBy:
    """Resolves one GROUP BY clause, any number of times: HAVING is tried against it before it is known whole."""

    def __init__(self, binder: Relations, node: exp.Select, generators: Generators) -> None:
        self.binder = binder
        self.node = node
        self.expressions = binder.expressions
        self.ids = binder.ids
        self.generators = generators

    def grouping(self, scope: Scope, items: list[Item], exprs: list[Expr], having: bool) -> Grouping | None:
        """The grouping of a SELECT whose clauses bound to `exprs`; None if it has none, with or without HAVING."""
        group = self.node.args.get("group")
        if group is None:
            if any(contains(e, Agg) for e in exprs) or having:
                return Grouping(self.ids, [], None)
            if any(has_grouping_call(e) for e in exprs):
                raise _grouping_call(span_of(self.node))
            return None
        named = group.args.get("all") and (
            scope.first("all") is not None or any(i.name.lower() == "all" for i in items)
        )
        if named:  # a column or an item of the name goes first
            group = exp.Group(expressions=[exp.column("all")])
        if group.args.get("all"):
            if any(i.lateral is not None and not contains(i.lateral, Agg) for i in items):
                raise _lateral_in_group(span_of(group))
            outputs = [i.expr for i in items if not self.generators.uses(i.expr)]
            outputs += [a for call in self.generators.calls() for a in call.args]
            plain = [e for e in outputs if not contains(e, Agg)]
            keys = [e for e in plain if not isinstance(e, Lit)] or plain  # by a constant alone: no rows make no group
            if any(contains(k, Window) for k in keys):
                raise unsupported("GROUP BY ALL with window functions", span_of(group))
            if not keys and any(map(_reads_rows, outputs)):
                raise UserError(
                    "UNRESOLVED_ALL_IN_GROUP_BY",
                    "Cannot infer grouping columns for GROUP BY ALL based on the select clause. Please explicitly specify "
                    "the grouping columns.",
                    span=span_of(group),
                )
            for k in keys:
                _check_grouped(k, span_of(group))
            return Grouping(self.ids, _distinct(keys), None)
        if self.binder.context.group_by_aliases:
            scope.fallbacks = {i.name.lower(): i.expr for i in reversed(items)}  # the first of a name
        try:
            return self._explicit(group, scope, items)
        finally:
            scope.fallbacks = {}

    def _explicit(self, group: Node, scope: Scope, items: list[Item]) -> Grouping:
        elements: list[list[tuple[Expr, ...]]] = []
        analytic = bool(group.args.get("grouping_sets"))
        plain: list[Expr] = []
        for tree in group.expressions:
            if isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                analytic = True
                elements.append(self._sets(tree, scope, items))
            else:
                expr = self._key(tree, scope, items)
                plain.append(expr)
                elements.append([(expr,)])
        if group.args.get("grouping_sets"):
            elements = [self._sets(group.args["grouping_sets"][0], scope, items)]
        if not analytic:
            return Grouping(self.ids, _distinct(plain), None)
        keys = _distinct([*plain, *(e for sets in elements for s in sets for e in s)])
        positions = {key(k): i for i, k in enumerate(keys)}
        combined: list[tuple[int, ...]] = []
        for choice in product(*elements):
            indexes = sorted({positions[key(e)] for part in choice for e in part})
            combined.append(tuple(indexes))
        if len(combined) > 4096:
            raise unsupported("GROUP BY of more than 4096 grouping sets", span_of(group))
        nullability = Nullability(self.binder.catalogue, self.binder.context)
        if combined == [()]:
            return Grouping(self.ids, [], None, Lit(BIGINT, False, 0), nullability)
        return Grouping(self.ids, keys, combined, None, nullability)

    def _sets(self, tree: Node, scope: Scope, items: list[Item]) -> list[tuple[Expr, ...]]:
        if isinstance(tree, exp.GroupingSets):
            found: list[tuple[Expr, ...]] = []
            for element in tree.expressions:
                if isinstance(element, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                    found += self._sets(element, scope, items)
                else:
                    found.append(self._members(element, scope, items))
            return found
        groups = [self._members(e, scope, items) for e in tree.expressions]
        if isinstance(tree, exp.Rollup):
            return [tuple(e for g in groups[:n] for e in g) for n in range(len(groups), -1, -1)]
        if len(groups) > 12:
            raise unsupported("CUBE of more than 12 groups", span_of(tree))
        result = []
        for mask in range((1 << len(groups)) - 1, -1, -1):
            chosen = [g for i, g in enumerate(groups) if mask >> (len(groups) - 1 - i) & 1]
            result.append(tuple(e for g in chosen for e in g))
        return result

    def _members(self, tree: Node, scope: Scope, items: list[Item]) -> tuple[Expr, ...]:
        members = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
        return tuple(self._key(e, scope, items, in_sets=True) for e in members)

    def _key(self, tree: Node, scope: Scope, items: list[Item], *, in_sets: bool = False) -> Expr:
        expr = self.expressions.bind(tree, scope)
        self._refuse_lateral(tree, scope, items)
        ordinal = ordinal_of(tree, expr) if self.binder.context.group_by_ordinal else None
        if ordinal is not None:
            if any(stray_star(e) is not None for e in self.node.expressions):
                raise UserError(
                    "STAR_GROUP_BY_POS",
                    "Star (*) is not allowed in a select list when GROUP BY an ordinal position is used.",
                    span=span_of(tree),
                )
            if not 1 <= ordinal <= len(items):
                raise UserError(
                    "GROUP_BY_POS_OUT_OF_RANGE",
                    f"GROUP BY position {ordinal} is not in select list (valid range is [1, {len(items)}]).",
                    span=span_of(tree),
                )
            expr = items[ordinal - 1].expr
            if items[ordinal - 1].lateral is not None:
                raise _lateral_in_group(span_of(tree))
            if contains(expr, Agg):
                raise UserError(
                    "GROUP_BY_POS_AGGREGATE",
                    f"GROUP BY {ordinal} refers to an expression that contains an aggregate function. Aggregate "
                    "functions are not allowed in GROUP BY.",
                    span=span_of(tree),
                )
        if contains(expr, Agg):
            raise UserError(
                "GROUP_BY_AGGREGATE", "Aggregate functions are not allowed in GROUP BY.", span=span_of(tree)
            )
        if in_sets:
            self._check_set_key(expr, span_of(tree))
        if contains(expr, Window):
            raise UserError(
                "UNSUPPORTED_EXPR_FOR_OPERATOR", "Window functions are not allowed in GROUP BY.", span=span_of(tree)
            )
        if has_grouping_call(expr):
            raise _grouping_call(span_of(tree))
        if is_generator(expr, self.binder.catalogue):
            raise UserError(
                "UNSUPPORTED_EXPR_FOR_OPERATOR", "A generator is not allowed in GROUP BY.", span=span_of(tree)
            )
        self.generators.refuse(expr, "GROUP BY", span_of(tree))
        _check_grouped(expr, span_of(tree))
        return expr

    def _check_set_key(self, expr: Expr, span: Span | None) -> None:
        """Of grouping sets, whose keys Spark computes before it groups."""
        if is_generator(expr, self.binder.catalogue):
            raise outside_select("Aggregate", span)
        if contains(expr, Window) or any(isinstance(e, Subquery) and e.outer for e in nodes(expr)):
            raise unsupported("grouping sets of window functions or correlated subqueries", span)
        if not is_steady(expr, self.binder.catalogue):
            raise unsupported("grouping sets of what differs from call to call", span)

    def _refuse_lateral(self, tree: Node, scope: Scope, items: list[Item]) -> None:
        """Like Spark, group by no alias of an item that itself refers to an alias."""
        lateral = {i.name.lower() for i in items if i.lateral is not None}
        if not lateral:
            return
        saved, scope.fallbacks = scope.fallbacks, {}
        try:
            for column in tree.find_all(exp.Column):
                name = column.parts[0].name
                if name.lower() in lateral and scope.resolve([name], None) is None:
                    raise _lateral_in_group(span_of(tree))
        finally:
            scope.fallbacks = saved


def _check_grouped(expr: Expr, span: Span | None) -> None:
    """Raise UserError for what has no order; UnsupportedError for maps: the order of their entries is nothing to Spark."""
    if has_variant(expr.type):
        raise UserError(
            "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE",
            f'An expression of the type "{expr.type.sql}" cannot be used to group by: the type is not orderable.',
            span=span,
        )
    if has_map(expr.type):
        raise unsupported(f"GROUP BY an expression of type {expr.type.sql}", span)


def _grouping_call(span: Span | None) -> UserError:
    text = "grouping()/grouping_id() can only be used with GroupingSets/Cube/Rollup."
    return UserError("UNSUPPORTED_GROUPING_EXPRESSION", text, span=span)


def _lateral_in_group(span: Span | None) -> UnsupportedError:
    return UnsupportedError(
        "UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_GROUP_BY",
        "A select item that refers to an earlier alias is not supported in GROUP BY.",
        span=span,
    )


def _reads_rows(expr: Expr) -> bool:
    """Whether a column stands in `expr` outside of aggregates."""
    return not isinstance(expr, Agg) and (isinstance(expr, Col) or any(map(_reads_rows, children(expr))))


def _distinct(exprs: Sequence[Expr]) -> list[Expr]:
    found: dict[Any, Expr] = {}
    for e in exprs:
        found.setdefault(key(e), e)
    return list(found.values())
