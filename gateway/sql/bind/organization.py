"""ORDER BY, LIMIT and OFFSET, and the ordinals that stand for columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.bind.binder import Expressions, outside_select
from gateway.sql.bind.computed import Computing, whole_number
from gateway.sql.bind.correlations import check_existence
from gateway.sql.bind.outputs import Output, Sorted, unsupported_in_sort
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.bind.sorting import sort_key
from gateway.sql.functions.fold import fold
from gateway.sql.read.tree import Clustered, Distributed, span_of
from gateway.sql.typed.catalogue import is_generator
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Col, Expr, Limit, Lit, Rel, Sort, SortKey, Subquery, Window
from gateway.sql.typed.walk import contains, has_outer, nodes
from gateway.sqltypes import INT

Node = exp.Expr


def ordered(binder: Expressions, order: Node, rel: Rel) -> Rel:
    """`rel` in the order of an ORDER BY that knows nothing but its columns."""
    outputs, scope = Sorted([_output(binder, c) for c in rel.columns]), Scope()
    keys: list[tuple[SortKey, int | None]] = []
    for item in order.expressions:
        for expr, _ in order_keys(binder, item, rel.columns, outputs, scope):
            if outputs.aggregates:
                raise unsupported_in_sort(span_of(item))
            check_no_generator(binder, item, expr)
            keys.append((sort_key(item, expr), None))
    sorted_by = tuple(k for k, _ in telling(order, keys))
    return Sort(rel.columns, rel, sorted_by) if sorted_by else rel


def check_no_generator(binder: Expressions, item: Node, expr: Expr) -> None:
    """Raise UNSUPPORTED_GENERATOR.OUTSIDE_SELECT for an item of ORDER BY that is one."""
    if is_generator(expr, binder.catalogue):
        raise outside_select("Sort", span_of(item))


def telling(order: Node, keys: list[tuple[SortKey, int | None]]) -> list[tuple[SortKey, int | None]]:
    """The keys that rows are sorted by: those of DISTRIBUTE BY, which stand first, are only there to be checked."""
    return keys[sum(isinstance(item, Distributed) for item in order.expressions) :]


def _output(binder: Expressions, column: Col) -> Output:
    same = binder.ids.repeated.get(column.id, column.id)
    return Output(column.name, column, binder.ids.qualifiers.get(column.id, ()), same, True)


def order_keys(
    binder: Expressions, item: Node, columns: Sequence[Expr], outputs: Sorted, scope: Scope
) -> list[tuple[Expr, int | None]]:
    """What one ORDER BY item sorts by, and the place among the output `columns` that it names by ordinal or ALL."""
    if isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL":
        named = outputs.here("all", scope)
        return [(named, None)] if named is not None else [(column, place) for place, column in enumerate(columns)]
    expr = outputs.bind(binder.bind, item.this, scope)
    places = binder.context.order_by_ordinal and not isinstance(item, (Clustered, Distributed))
    ordinal = ordinal_of(item.this, expr) if places else None
    if _is_name(item.this) and any(isinstance(n, Subquery) or (isinstance(n, Col) and n.outer) for n in nodes(expr)):
        place = next((i for i, c in enumerate(columns) if key(c) == key(expr)), None)
        if place is not None:  # computed before
            return [(columns[place], place)]
    if has_outer(expr):
        raise unsupported("a column of an enclosing query in ORDER BY", span_of(item))
    if ordinal is None:
        check_existence(expr, span_of(item))
        if any(map(_correlated, nodes(expr))):
            raise unsupported("a correlated subquery in ORDER BY", span_of(item))
    if item.this.find(exp.Window) is not None and contains(expr, Window):
        raise unsupported_in_sort(span_of(item))
    if ordinal is None:
        return [(expr, None)]
    if not 1 <= ordinal <= len(columns):
        raise UserError(
            "ORDER_BY_POS_OUT_OF_RANGE",
            f"ORDER BY position {ordinal} is not in select list (valid range is [1, {len(columns)}]).",
            span=span_of(item),
        )
    return [(columns[ordinal - 1], ordinal - 1)]


def limited(binder: Expressions, tables: Computing, node: Node, rel: Rel) -> Rel:
    """LIMIT and OFFSET; `tables` compute what is no constant yet."""
    limit_node, offset_node = node.args.get("limit"), node.args.get("offset")
    limit = _count(binder, tables, "limit", limit_node.expression, rel) if limit_node is not None else None
    offset = _count(binder, tables, "offset", offset_node.expression, rel) if offset_node is not None else 0
    if limit is None and not offset:
        return rel
    return Limit(rel.columns, rel, limit, offset)


def _count(binder: Expressions, tables: Computing, what: str, node: Node, rel: Rel) -> int:
    expr = binder.bind(node, Scope([Source((), rel.columns)]))
    literal = fold(expr, binder.context)
    if literal is None and not is_foldable(expr):
        raise UserError(
            "INVALID_LIMIT_LIKE_EXPRESSION.IS_UNFOLDABLE",
            f"The {what} expression must evaluate to a constant value.",
            span=span_of(node),
        )
    if expr.type != INT:
        raise UserError(
            "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE",
            f'The {what} expression must be integer type, but got "{expr.type.sql}".',
            span=span_of(node),
        )
    value = whole_number(expr, tables, binder.ids, span_of(node)) if literal is None else literal.value
    if value is None:
        raise UserError(
            "INVALID_LIMIT_LIKE_EXPRESSION.IS_NULL",
            f"The evaluated {what} expression must not be null.",
            span=span_of(node),
        )
    if value < 0:
        raise UserError(
            "INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE",
            f"The {what} expression must be equal to or greater than 0, but got {value}.",
            span=span_of(node),
        )
    return int(value)


def ordinal_of(tree: Node, expr: Expr) -> int | None:
    """The position that an INT literal in ORDER BY or GROUP BY stands for."""
    if isinstance(tree, exp.Literal) and isinstance(expr, Lit) and expr.type == INT:
        return int(expr.value)
    return None


def _correlated(expr: Expr) -> bool:
    return isinstance(expr, Subquery) and bool(expr.outer)


def _is_name(tree: Node) -> bool:
    return isinstance(tree, exp.Column) and len(tree.parts) == 1
