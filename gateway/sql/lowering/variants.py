"""VARIANT in queries: values are handed on, made of JSON and made JSON; whatever else would look at them is refused."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import unsupported
from gateway.sql.functions.casts import casts_variants
from gateway.sql.lowering.evaluation import NULL_TESTS
from gateway.sql.typed import nodes as b
from gateway.sql.typed.walk import all_relations, expressions_of, nodes, substituted
from gateway.sql.typed.walk import children as parts_of
from gateway.sqltypes import STRING, VARIANT, VOID, ArrayType, DataType, has_variant, is_string

#: The call that gives what clients are shown of a value: JSON in the place of each VARIANT.
SHOWN = "_shown_variants"

# Calls that hand on the values which they are given, alone or as parts of others: none of them looks at one.
_HANDS_ON = frozenset((
    "coalesce", "nvl", "ifnull", "nvl2", "if", "array", "map", "named_struct", "stack", "arrays_zip", "_field",
    "_array_field", "_array_item", "_map_item", "_null_item", "get", "element_at", "try_element_at", "_fields_by_name",
    "size", "cardinality", "array_size", "array_append", "array_prepend", "array_insert", "array_repeat", "array_compact",
    "concat", "slice", "flatten", "reverse", "map_from_arrays", "map_from_entries", "map_concat", "map_keys",
    "map_values", "map_entries", "map_contains_key", "transform", "filter", "exists", "forall", "zip_with",
    "transform_values", "transform_keys", "map_filter", "explode", "explode_outer", "posexplode", "posexplode_outer",
    "inline", "inline_outer",
))  # fmt: skip
# Those that make values, and those that look at them as Spark does.
_KNOWS = frozenset((
    "parse_json", "try_parse_json", "to_variant_object", "from_json", "to_json", SHOWN, "variant_get", "try_variant_get",
    "_variant_path", "variant_explode", "variant_explode_outer", "is_variant_null", "typeof", "schema_of_variant", *NULL_TESTS,
))  # fmt: skip
_AGGREGATES = frozenset(
    {"first", "last", "any_value", "max_by", "min_by", "collect_list", "count", "schema_of_variant_agg"}
)
_OF_WINDOWS = frozenset({"lag", "lead", "nth_value"})


def check_variants(rel: b.Rel) -> None:
    """Raise UnsupportedError for what is done to a VARIANT beyond that; the engine has texts in their place."""
    for below in all_relations(rel):
        tells = isinstance(below, b.Distinct) or (isinstance(below, b.SetOp) and not below.all)
        if tells and any(has_variant(column.type) for column in below.columns):
            raise unsupported("telling rows apart beside a VARIANT")
        for expr in expressions_of(below):
            if isinstance(below, (b.Sort, b.Aggregate)) and has_variant(expr.type) and not isinstance(expr, b.Agg):
                raise unsupported("grouping or sorting by a VARIANT")
            inside = nodes(expr)
            if not any(has_variant(node.type) for node in inside):
                continue
            beside = {id(part) for node in inside if _hands_on(node) for part in parts_of(node) if _meets(part)}
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
    return b.Call(expr.type, expr.nullable, SHOWN, (expr,)) if has_variant(expr.type) else expr


def _check(node: b.Expr) -> None:
    span = getattr(node, "span", None)
    given = has_variant(node.type)
    if not (given or any(has_variant(part.type) for part in parts_of(node))) or _does(node):
        return
    raise unsupported("a VARIANT made in this way" if given else "an expression over a VARIANT", span)


def _does(node: b.Expr) -> bool:
    """Whether a node gives or takes a VARIANT in a way that is known."""
    match node:
        case b.Col() | b.LambdaVar() | b.Lambda():
            return True
        case b.Lit():
            return node.value is None
        case b.Call():
            return node.fn in _HANDS_ON or node.fn in _KNOWS or node.fn in _OF_WINDOWS
        case b.Agg():
            return node.fn in _AGGREGATES and not node.distinct
        case b.Window():
            return _does(node.fn)
        case b.Cast():
            return _tells(node)
        case b.Subquery():
            return node.kind == "scalar"
    return isinstance(node, b.Case)


def _hands_on(node: b.Expr) -> bool:
    return isinstance(node, b.Case) or (isinstance(node, b.Call) and node.fn in _HANDS_ON | _OF_WINDOWS)


def _meets(node: b.Expr) -> bool:
    """Whether it becomes another type because it stands beside a value of that: texts become a VARIANT."""
    return isinstance(node, b.Cast) and node.implicit and casts_variants(node.arg.type, node.type)


def _joins(node: b.Expr) -> bool:
    """Whether it makes texts of its operands by itself."""
    return isinstance(node, b.Call) and node.fn in ("concat", "concat_ws") and is_string(node.type)


def _is_joined(node: b.Expr) -> bool:
    if not isinstance(node, b.Cast) or not node.implicit:
        return False
    inner = node.arg.type.element if isinstance(node.arg.type, ArrayType) else node.arg.type
    return inner == VARIANT


def _tells(node: b.Cast) -> bool:
    """Whether a value becomes another type because the statement says so; by itself Spark makes texts alone."""
    told = not node.implicit or node.span is not None  # int(v) has its place
    told = told or (node.arg.type == VARIANT and node.type == STRING)
    return (told or _moves(node.arg.type, node.type)) and casts_variants(node.arg.type, node.type)


def _moves(source: DataType, target: DataType) -> bool:
    """Whether a cast leaves each VARIANT as it is, where a VARIANT is wanted too."""
    if VOID in (source, target) or VARIANT in (source, target):
        return source in (VOID, target)
    return all(map(_moves, source.children(), target.children()))
