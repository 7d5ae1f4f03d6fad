"""VARIANT in queries: values are handed on, made of JSON and made JSON; whatever else would look at them is refused."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import unsupported
from gateway.sql.functions.casts import becomes_scalar, becomes_value
from gateway.sql.lowering.evaluation import NULL_TESTS
from gateway.sql.typed import nodes as b
from gateway.sql.typed.walk import all_relations, expressions_of, nodes, substituted
from gateway.sql.typed.walk import children as parts_of
from gateway.sqltypes import VARIANT, VOID, ArrayType, DataType, is_string

# Which calls give a VARIANT, and which take one.
_HANDS_ON = frozenset({"coalesce", "nvl", "ifnull", "nvl2", "if"})
_GETS = frozenset({"variant_get", "try_variant_get", "_variant_path"})
_MAKES = frozenset({"parse_json", "try_parse_json", "to_json", "to_variant_object"}) | _GETS | _HANDS_ON
_ROWS = frozenset({"variant_explode", "variant_explode_outer"})
_OF_ROWS = frozenset({"first", "last", "any_value", "max_by", "min_by"})  # aggregates that give one of their values
_OF_WINDOWS = frozenset({"lag", "lead", "nth_value"})
_TAKES = (
    frozenset({"to_json", "is_variant_null", "typeof", "schema_of_variant", "schema_of_variant_agg", *NULL_TESTS})
    | _GETS
    | _HANDS_ON
    | _ROWS
)


def check_variants(rel: b.Rel) -> None:
    """Raise UnsupportedError for what is done to a VARIANT beyond that; the engine has texts in their place."""
    for below in all_relations(rel):
        tells = isinstance(below, b.Distinct) or (isinstance(below, b.SetOp) and not below.all)
        if tells and any(_holds(column.type) for column in below.columns):
            raise unsupported("telling rows apart beside a VARIANT")
        for expr in expressions_of(below):
            if isinstance(below, (b.Sort, b.Aggregate)) and _holds(expr.type) and not _is_one_of(expr):
                raise unsupported("grouping or sorting by a VARIANT")
            inside = list(nodes(expr))
            beside = {id(part) for node in inside if _hands_on(node) for part in parts_of(node) if _is_text(part)}
            beside |= {id(part) for node in inside if _joins(node) for part in parts_of(node) if _is_joined(part)}
            for node in inside:
                if id(node) not in beside:
                    _check(node)


def with_texts(rel: b.Rel, ids: b.Ids) -> b.Rel:
    """A relation with the JSON of its VARIANT columns in their place, computed below what sorts: above, its order is lost."""
    match rel:
        case b.Project() if isinstance(rel.input, (b.Sort, b.Limit)) and all(isinstance(e, b.Col) for e in rel.exprs):
            inner = with_texts(rel.input, ids)
            known = _known(rel.input, inner)
            return replace(rel, input=inner, exprs=tuple(substituted(e, known) for e in rel.exprs))
        case b.Project():
            return replace(rel, exprs=tuple(map(_text, rel.exprs)))
        case b.Sort():
            inner = with_texts(rel.input, ids)
            known = _known(rel.input, inner)
            keys = tuple(b.SortKey(substituted(k.expr, known), k.descending, k.nulls_first) for k in rel.keys)
            return b.Sort(inner.columns, inner, keys)
        case b.Limit():
            inner = with_texts(rel.input, ids)
            return replace(rel, columns=inner.columns, input=inner)
        case b.With():
            inner = with_texts(rel.input, ids)
            return replace(rel, columns=inner.columns, input=inner)
    columns = tuple(b.Col(c.type, c.nullable, ids.take(), c.name) for c in rel.columns)
    return b.Project(columns, rel, tuple(map(_text, rel.columns)))


def _known(before: b.Rel, after: b.Rel) -> dict[int, b.Expr]:
    return {old.id: new for old, new in zip(before.columns, after.columns, strict=True)}


def _text(expr: b.Expr) -> b.Expr:
    return b.Call(VARIANT, expr.nullable, "to_json", (expr,)) if expr.type == VARIANT else expr


def _check(node: b.Expr) -> None:
    span = getattr(node, "span", None)
    if node.type != VARIANT and _holds(node.type) and not (isinstance(node, b.Call) and node.fn in _ROWS):
        raise unsupported("VARIANT inside of another value", span)
    if isinstance(node, b.Col):
        return
    if node.type == VARIANT and not _may_give(node):
        raise unsupported("a VARIANT made in this way", span)
    takes = (
        _hands_on(node) or (isinstance(node, (b.Call, b.Agg)) and node.fn in _TAKES) or _tells(node) or _of_window(node)
    )
    takes |= isinstance(node, b.Agg) and node.fn == "count" and not node.distinct
    if not takes and any(_holds(part.type) for part in parts_of(node)):
        raise unsupported("an expression over a VARIANT", span)


def _is_one_of(node: b.Expr) -> bool:
    """Whether it is an aggregate that gives a value of its rows."""
    return isinstance(node, b.Agg) and node.fn in _OF_ROWS


def _hands_on(node: b.Expr) -> bool:
    return isinstance(node, b.Case) or (isinstance(node, b.Call) and node.fn in _HANDS_ON)


def _is_text(node: b.Expr) -> bool:
    """Whether it is a text that becomes a VARIANT because it stands beside one."""
    return isinstance(node, b.Cast) and node.type == VARIANT and is_string(node.arg.type)


def _joins(node: b.Expr) -> bool:
    """Whether it makes texts of its operands by itself."""
    return isinstance(node, b.Call) and node.fn == "concat" and is_string(node.type)


def _is_joined(node: b.Expr) -> bool:
    return isinstance(node, b.Cast) and node.implicit and node.arg.type == VARIANT and is_string(node.type)


def _of_window(node: b.Expr) -> bool:
    """Whether it gives a value of a row that a window shows, or counts them."""
    if isinstance(node, b.Window):
        return _of_window(node.fn)
    return _is_one_of(node) or (isinstance(node, b.Call) and node.fn in _OF_WINDOWS)


def _tells(node: b.Expr) -> bool:
    """Whether a VARIANT becomes another type because the statement says so: Spark does nothing of the kind by itself."""
    told = isinstance(node, b.Cast) and (not node.implicit or node.span is not None)  # int(v) has its place
    return told and becomes_value(node.type)


def _may_give(node: b.Expr) -> bool:
    if isinstance(node, b.Lit):
        return node.value is None
    if isinstance(node, b.Cast):
        return node.arg.type == VOID or (_becomes_variant(node.arg.type) and not node.implicit)
    return isinstance(node, b.Case) or (isinstance(node, b.Call) and node.fn in _MAKES) or _of_window(node)


def _becomes_variant(source: DataType) -> bool:
    return _becomes_variant(source.element) if isinstance(source, ArrayType) else becomes_scalar(source)


def _holds(data_type: DataType) -> bool:
    return data_type == VARIANT or any(map(_holds, data_type.children()))
