"""PIVOT and UNPIVOT: rows to columns and back, as relations that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.columns import check_no_star
from gateway.sql.bind.grouping import Grouping
from gateway.sql.bind.names import Names
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.bind.sites import called
from gateway.sql.functions.fold import fold
from gateway.sql.read.tree import Pivot, Unpivot, span_of
from gateway.sql.typed.catalogue import Catalogue, Context, is_generator
from gateway.sql.typed.coerce import cast_nullable, coerced
from gateway.sql.typed.common_types import plain, written_of
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import (
    Agg,
    Call,
    Cast,
    Col,
    Expr,
    Filter,
    Generate,
    Ids,
    Lit,
    Project,
    Rel,
    Subquery,
    Window,
)
from gateway.sql.typed.walk import children, contains, nodes, rebuilt
from gateway.sqltypes import BOOLEAN, DOUBLE, FLOAT, INT, STRING, VOID, DataType, has_map, is_nested, is_numeric

Node = exp.Expr

# Aggregates that see the same rows through a FILTER as through arguments that are NULL elsewhere, which is how Spark pivots
# what is no number, and those of them that are never NULL.
_FILTERED = frozenset({"count", "max", "min", "sum", "avg", "collect_list", "collect_set", "array_agg"})
_FILLED = frozenset({"count", "collect_list", "collect_set", "array_agg"})
# The engine plans for ten seconds then, with the square of their number.
_MOST_COLUMNS = 4000


class Binder(Protocol):
    """What is needed of `relations.Relations`."""

    catalogue: Catalogue
    context: Context
    ids: Ids
    expressions: Expressions
    names: Names

    def relation(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]: ...

    def aliased(self, rel: Rel, alias: Node | None, qualifier: tuple[str, ...]) -> Scope: ...

    def generated(self, rel: Rel, call: Call, outer: bool, names: Sequence[str] | None) -> Generate: ...


@dataclass(frozen=True, slots=True)
class _Value:
    """One value of IN: its name, and the condition that a row has it."""

    name: str
    condition: Expr


def pivoted(binder: Binder, node: Pivot, parent: Scope | None) -> tuple[Rel, Scope]:
    """``relation PIVOT (…)``: grouped by the columns that it does not name."""
    span = span_of(node)
    rel, scope = binder.relation(node.this, parent)
    scope.parent = parent
    columns = _columns(scope, "PIVOT", span)
    turned = [_own(binder, c, scope) for c in node.args["columns"]]
    items = [_item(binder, item, scope) for item in node.expressions]
    if len(node.args["values"]) * len(items) > _MOST_COLUMNS:
        raise unsupported(f"PIVOT into more than {_MOST_COLUMNS} columns", span)
    values = [_value(binder, v, turned, scope) for v in node.args["values"]]
    if len({v.name for v in values}) < len(values):
        raise unsupported("a value twice in PIVOT", span)
    used = {c.id for c in turned} | {n.id for _, e in items for n in nodes(e) if isinstance(n, Col)}
    kept = [c for c in columns if c.id not in used]
    if any(has_map(c.type) for c in kept):
        raise unsupported("PIVOT beside a column with a MAP", span)
    names = [v.name if len(items) == 1 else f"{v.name}_{name}" for v in values for name, _ in items]
    exprs = [e for _, e in items]
    if all(_is_plain(e.type) for e in exprs):
        rel, grouping, found = _in_two_steps(binder, rel, kept, turned, exprs, values)
    else:
        grouping = Grouping(binder.ids, list(kept), None)
        found = [grouping.rewrite(_where(e, v.condition, span)) for v in values for e in exprs]
        rel = grouping.relation(rel)
    made = tuple(Col(e.type, e.nullable, binder.ids.take(), n) for e, n in zip(found, names, strict=True))
    above = tuple(replace(c, name=k.name) for c, k in zip(grouping.key_columns, kept, strict=True))
    return _finished(binder, node, Project((*above, *made), rel, (*above, *found)), scope, above, made)


def unpivoted(binder: Binder, node: Unpivot, parent: Scope | None) -> tuple[Rel, Scope]:
    """``relation UNPIVOT (…)``: a row for each of its sets of columns."""
    span = span_of(node)
    rel, scope = binder.relation(node.this, parent)
    scope.parent = parent
    columns = _columns(scope, "UNPIVOT", span)
    names = [i.name for i in node.args["values"]]
    sets, labels = [], []
    for item in node.args["columns"]:
        trees = (item.this if item.alias else item).expressions
        found = [binder.expressions.bind(tree, scope) for tree in trees]
        if len(found) != len(names):
            message = (
                f"All unpivot value columns must have the same size as there are value column names ({len(names)})."
            )
            raise UserError("UNPIVOT_VALUE_SIZE_MISMATCH", message, span=span)
        sets.append([_plain_column(e, columns, span_of(tree)) for e, tree in zip(found, trees, strict=True)])
        labels.append(item.alias or "_".join(tree.name for tree in trees))
    used = {c.id for row in sets for c in row}
    kept = tuple(c for c in columns if c.id not in used)
    given = [c.name.lower() for c in kept] + [n.lower() for n in (node.args["name"].name, *names)]
    if len(set(given)) < len(given):
        raise unsupported("UNPIVOT into columns of one name", span)
    types = [_common(column, span) for column in zip(*sets, strict=True)]
    args: list[Expr] = [Lit(INT, False, len(sets))]
    for label, row in zip(labels, sets, strict=True):
        args += [Lit(STRING, False, label), *(coerced(c, t) for c, t in zip(row, types, strict=True))]
    call = called(binder.expressions, "stack", tuple(args), (), span)
    assert isinstance(call, Call)
    generated = binder.generated(rel, call, False, [node.args["name"].name, *names])
    assert isinstance(generated, Generate)
    rows = generated.columns[len(rel.columns) :]
    nullable = [False] + [
        any(cast_nullable(plain(c.type), t, c.nullable) for c in column)
        for column, t in zip(zip(*sets, strict=True), types, strict=True)
    ]
    made = tuple(replace(c, id=binder.ids.take(), nullable=n) for c, n in zip(rows, nullable, strict=True))
    below: Rel = generated
    if not node.args.get("nulls"):
        given_ = [Call(BOOLEAN, False, "is not null", (c,)) for c in rows[1:]]
        below = Filter(generated.columns, generated, reduce(lambda a, b: Call(BOOLEAN, False, "or", (a, b)), given_))
    return _finished(binder, node, Project((*kept, *made), below, (*kept, *rows)), scope, kept, made)


def _columns(scope: Scope, what: str, span: Span | None) -> list[Col]:
    found = [c for c in scope.columns() if isinstance(c, Col)]
    if (
        scope.merged
        or len(found) < len(scope.columns())
        or any(c.id in s.repeated for s in scope.sources for c in found)
    ):
        raise unsupported(f"{what} of a join with USING, or of a relation that has a column twice", span)
    return found


def _own(binder: Binder, identifier: Node, scope: Scope) -> Col:
    """A column before IN, by its bare name."""
    column = exp.Column(this=identifier)
    column._meta = identifier._meta  # noqa: SLF001 (its place is the name's)
    found = binder.expressions.bind(column, scope)
    if not isinstance(found, Col) or found.outer or found.type in (DOUBLE, FLOAT) or found.type != plain(found.type):
        raise unsupported("PIVOT for a floating-point number, a CHAR, or what is no column,", span_of(identifier))
    if has_map(found.type):
        message = f"Invalid pivot column `{found.name}`. Pivot columns must be comparable."
        raise UserError("INCOMPARABLE_PIVOT_COLUMN", message, span=span_of(identifier))
    return found


def _item(binder: Binder, item: Node, scope: Scope) -> tuple[str, Expr]:
    """An aggregate with its name."""
    tree = item.this if item.alias else item
    check_no_star(tree)
    expr = binder.expressions.bind(tree, scope)
    inside = list(nodes(expr))
    odd = any(isinstance(n, (Subquery, Window)) or is_generator(n, binder.catalogue) for n in inside)
    if odd or not contains(expr, Agg) or _outside(expr):
        raise unsupported("PIVOT of anything but aggregates and expressions over them", span_of(item))
    return item.alias or binder.names.of(expr), expr


def _outside(expr: Expr) -> bool:
    """Whether a column stands outside of all aggregates, or one of an enclosing query anywhere."""
    if isinstance(expr, Agg):
        return any(isinstance(n, Col) and n.outer for n in nodes(expr))
    return isinstance(expr, Col) or any(map(_outside, children(expr)))


def _value(binder: Binder, item: Node, columns: Sequence[Col], scope: Scope) -> _Value:
    """A value of IN, one per column, as constants of the columns' types."""
    tree, span = (item.this if item.alias else item), span_of(item)
    row = binder.expressions.bind(tree, scope)
    if not is_foldable(row):
        message = f'Literal expressions required for pivot values, found "{binder.names.of(row)}".'
        raise UserError("NON_LITERAL_PIVOT_VALUES", message, span=span)
    parts = [row]
    if len(columns) > 1:
        if not (isinstance(row, Call) and row.fn == "named_struct" and len(row.args) == 2 * len(columns)):
            raise unsupported("a value in PIVOT that is no row of as many values as there are columns", span)
        parts = list(row.args[1::2])
    texts, conditions = [], []
    for part, column in zip(parts, columns, strict=True):
        text = _text(part, binder.context)
        value = fold(coerced(part, plain(column.type)), binder.context) if part.type != VOID else part
        constant = value.value if isinstance(value, Lit) else None
        odd = part.type == VOID and len(columns) == 1 and (column.type == VOID or is_nested(column.type))
        if text is None or odd or (constant is None and part.type != VOID):  # such a NULL Spark does not find
            raise unsupported(f"a value of {part.type.sql} for a column of {column.type.sql} in PIVOT", span)
        texts.append("null" if text.value is None else str(text.value))
        same = Lit(plain(column.type), constant is None, constant)
        conditions.append(Call(BOOLEAN, False, "<=>", (column, same)))
    name = texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
    return _Value(item.alias or name, reduce(lambda a, b: Call(BOOLEAN, False, "and", (a, b)), conditions))


def _text(value: Expr, context: Context) -> Lit | None:
    """A constant's text; None if it is not known."""
    if value.type == VOID:
        return Lit(STRING, True, None)
    literal = fold(value, context)
    if literal is not None and isinstance(literal.value, bool):
        return Lit(STRING, False, str(literal.value).lower())
    return fold(Cast(STRING, True, value), context)


def _is_plain(t: DataType) -> bool:
    """Whether Spark pivots values of the type after it has grouped by the pivoted columns too."""
    return is_numeric(t) or t == BOOLEAN


def _in_two_steps(
    binder: Binder, rel: Rel, kept: list[Col], turned: list[Col], exprs: list[Expr], values: list[_Value]
) -> tuple[Rel, Grouping, list[Expr]]:
    """Aggregates of each group and each value, then one row per group: what a group has no rows of is NULL, counts too."""
    first = Grouping(binder.ids, [*kept, *turned], None)
    results = [first.rewrite(e) for e in exprs]
    columns = [Col(e.type, e.nullable, binder.ids.take(), "") for e in results]
    below = first.relation(rel)
    keys = first.key_columns
    rel = Project((*keys, *columns), below, (*keys, *results))
    grouping = Grouping(binder.ids, list(keys[: len(kept)]), None)
    found = [
        grouping.rewrite(Agg(column.type, True, "max", (column,), where=value.condition))
        for value in values
        for column in columns
    ]
    return grouping.relation(rel), grouping, found


def _where(expr: Expr, condition: Expr, span: Span | None) -> Expr:
    """`expr` with its aggregates over the rows of `condition` alone."""
    if not isinstance(expr, Agg):
        return rebuilt(expr, lambda child: _where(child, condition, span))
    if expr.fn not in _FILTERED:
        raise unsupported(f"PIVOT of {expr.fn} beside a type that is no number", span)
    where = condition if expr.where is None else Call(BOOLEAN, expr.where.nullable, "and", (expr.where, condition))
    return replace(expr, where=where, nullable=expr.fn not in _FILLED)


def _plain_column(expr: Expr, columns: Sequence[Col], span: Span | None) -> Col:
    if not isinstance(expr, Col) or expr.id not in {c.id for c in columns}:
        raise unsupported("UNPIVOT of anything but columns", span)
    return expr


def _common(columns: Sequence[Col], span: Span | None) -> DataType:
    """The type of an unpivoted column, into which no number is made a text."""
    types = [plain(c.type) for c in columns]
    common = written_of(types)
    if len(set(types)) > 1 and any(map(is_nested, types)):
        raise unsupported("UNPIVOT of nested columns of several types", span)
    if common is None or (STRING in types and any(t not in (STRING, VOID) for t in types)):
        shown = ", ".join(f'"{t.sql}"' for t in dict.fromkeys(types))
        message = f"Unpivot value columns must share a least common type, some types do not: [{shown}]."
        raise UserError("UNPIVOT_VALUE_DATA_TYPE_MISMATCH", message, span=span)
    return common


def _finished(
    binder: Binder, node: Node, rel: Rel, scope: Scope, kept: Sequence[Col], made: tuple[Col, ...]
) -> tuple[Rel, Scope]:
    """The relation's scope: columns that were there keep their qualifiers, unless there is an alias."""
    alias = node.args.get("alias")
    if alias is not None:
        return rel, binder.aliased(rel, alias, ()).reading(scope)
    sources = [
        replace(s, columns=tuple(k for c in s.columns for k in kept if k.id == c.id), _places=None)
        for s in scope.sources
    ]
    return rel, Scope([*(s for s in sources if s.columns), Source((), made)], outer_refs=scope.outer_refs)
