"""Functions that take a lambda: DataFusion's array_transform, array_filter and array_any_match, each with one parameter.

A second parameter (the index, the other array, the map's value) becomes a field of a struct that the one parameter holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from gateway.errors import UserError
from gateway.sql.functions.lowerings import refused
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, OpenLambda, Site, make, null_of
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import plain, written_type
from gateway.sql.typed.nodes import Agg, Call, Expr, Lambda, LambdaVar, Lit, Subquery, Window
from gateway.sql.typed.walk import nodes
from gateway.sqltypes import (
    BOOLEAN,
    INT,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    array,
    map_of,
    struct,
)


def list_of(site: Site, index: int) -> ArrayType:
    """The type of an argument that has to be an array."""
    t = plain(site.args[index].type)
    if not isinstance(t, ArrayType):
        raise site.mismatch(index, "ARRAY")
    return t


def _map(site: Site, index: int) -> MapType:
    t = plain(site.args[index].type)
    if not isinstance(t, MapType):
        raise site.mismatch(index, "MAP")
    return t


def open_lambda(site: Site, index: int) -> OpenLambda:
    """An argument that has to be a lambda."""
    arg = site.args[index]
    if not isinstance(arg, OpenLambda):
        raise refused(
            Call(VOID, True, site.shown, (), span=site.span_of(index)), f"{site.shown} without a lambda function"
        )
    return arg


def _condition(site: Site, body: Lambda, least: int = 1) -> Lambda:
    """A lambda whose body is BOOLEAN; one that is NULL to Spark without a look at it has as few parameters as it may."""
    if body.type == BOOLEAN:
        return body
    if body.type == VOID:
        inner, unseen = body.body, isinstance(body.body, (Lit, LambdaVar, Agg, Window, Subquery))
        if unseen or (isinstance(inner, Call) and inner.fn == "raise_error"):
            inner = null_of(inner) if not isinstance(inner, LambdaVar) else Lit(VOID, True, None)
            body = replace(body, params=body.params[:least])
        return Lambda(BOOLEAN, True, body.params, coerced(inner, BOOLEAN))
    raise UserError(
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        f'The lambda of `{site.shown}` must give a "BOOLEAN", but it gives "{body.type.sql}".',
        span=site.span,
    )


def _count(site: Site, expected: int) -> None:
    if len(site.args) != expected:
        raise site.wrong_count(str(expected))


def closed(bind: Callable[[Function, Site], Expr]) -> Callable[[Function, Site], Expr]:
    """`bind`, with Spark's error for a subquery anywhere in the call; aggregates of a lambda's parameter are refused."""

    def bound_call(function: Function, site: Site) -> Expr:
        call = bind(function, site)
        if any(isinstance(e, Subquery) for e in nodes(call)):
            raise UserError(
                "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.HIGHER_ORDER_FUNCTION",
                "Unsupported subquery expression: Subquery expressions are not supported within higher-order functions. "
                "Please remove all subquery expressions from higher-order functions and then try the query again.",
                span=site.span,
            )
        if any(isinstance(e, (Agg, Window)) and _has_parameter(e) for e in nodes(call)):
            what = "An aggregate or window function of a lambda's parameter"  # which has no value there
            raise refused(Call(VOID, True, function.name, (), span=site.span), what)
        return call

    return bound_call


def _has_parameter(expr: Expr) -> bool:
    """Whether a parameter of a lambda around an expression is read in it."""
    inside = nodes(expr)
    own = {p.id for e in inside if isinstance(e, Lambda) for p in e.params}
    return any(isinstance(e, LambdaVar) and e.id not in own for e in inside)


def _bind_over_array(function: Function, site: Site) -> Expr:
    """transform, filter, exists, forall."""
    _count(site, 2)
    t = list_of(site, 0)
    opened = open_lambda(site, 1)
    types: list[tuple[DataType, bool]] = [(t.element, t.contains_null)]
    if function.name in ("transform", "filter") and len(opened.names) == 2:
        types.append((INT, False))
    body = opened.close(types)
    args = (site.args[0], body)
    nullable = site.args[0].nullable
    if function.name == "transform":
        return make(function, site, args, array(body.type, body.nullable), nullable)
    body = _condition(site, body)
    args = (site.args[0], body)
    if function.name == "filter":
        return make(function, site, args, t, nullable)
    return make(function, site, args, BOOLEAN, nullable or body.nullable)


def _bind_zip_with(function: Function, site: Site) -> Expr:
    _count(site, 3)
    left, right = list_of(site, 0), list_of(site, 1)
    body = open_lambda(site, 2).close([(left.element, True), (right.element, True)])
    nullable = any(a.nullable for a in site.args[:2])
    return make(function, site, (*site.args[:2], body), array(body.type, body.nullable), nullable)


def _bind_over_map(function: Function, site: Site) -> Expr:
    """map_filter, transform_keys, transform_values."""
    _count(site, 2)
    t = _map(site, 0)
    body = open_lambda(site, 1).close([(t.key, False), (t.value, t.value_contains_null)])
    result: DataType = t
    if function.name == "map_filter":
        body = _condition(site, body, least=2)
    elif function.name == "transform_values":
        result = map_of(t.key, body.type, body.nullable)
    else:
        site.check_map_key(body.type)
        result = map_of(body.type, t.value, t.value_contains_null)
    return make(function, site, (site.args[0], body), result, site.args[0].nullable)


def substituted(expr: Any, values: dict[int, Expr]) -> Any:
    """An engine-level tree with lambda variables replaced by expressions, by their ids."""
    if isinstance(expr, LambdaVar):
        return values.get(expr.id, expr)
    if isinstance(expr, tuple):
        return tuple(substituted(e, values) for e in expr)
    if isinstance(expr, Expr) and is_dataclass(expr):
        changes = {}
        for f in fields(expr):
            value = getattr(expr, f.name)
            if isinstance(value, (Expr, tuple)) and f.name not in ("params", "data"):
                changes[f.name] = substituted(value, values)
        return replace(expr, **changes) if changes else expr
    return expr


def _packed(body: Lambda, names: tuple[str, ...]) -> tuple[Lambda, StructType]:
    """A lambda of several parameters as one over a struct that has them as fields `names`."""
    first = body.params[0]
    pair = struct(*(StructField(n, p.type, p.nullable) for n, p in zip(names, body.params, strict=True)))
    var = LambdaVar(pair, False, first.id, first.name)
    values: dict[int, Expr] = {
        p.id: bound.fn("[]", p.type, var, Lit(STRING, False, name), nullable=p.nullable)
        for p, name in zip(body.params, names, strict=True)
    }
    return Lambda(body.type, body.nullable, (var,), substituted(body.body, values)), pair


def _lambda_of(args: tuple[Expr, ...], index: int) -> Lambda:
    body = args[index]
    assert isinstance(body, Lambda)
    return body


def _indexed(items: Expr, body: Lambda) -> tuple[Expr, Lambda, StructType]:
    packed, pair = _packed(body, ("x", "i"))
    return bound.udf("array_indexed", array(pair, False), items, nullable=items.nullable), packed, pair


def _transform(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    items, body = args[0], _lambda_of(args, 1)
    if len(body.params) == 2:
        items, body, _ = _indexed(items, body)
    return bound.fn("array_transform", call.type, items, body, nullable=call.nullable)


def _filter(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    items, body = args[0], _lambda_of(args, 1)
    if len(body.params) == 1:
        return bound.fn("array_filter", call.type, items, body, nullable=call.nullable)
    items, body, pair = _indexed(items, body)
    left = bound.fn("array_filter", items.type, items, body, nullable=call.nullable)
    (var,) = body.params
    again = LambdaVar(pair, False, var.id, var.name)
    element = pair.fields[0].type
    unpack = Lambda(element, True, (again,), bound.fn("[]", element, again, Lit(STRING, False, "x")))
    return bound.fn("array_transform", call.type, left, unpack, nullable=call.nullable)


def _exists(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.fn("array_any_match", BOOLEAN, *args, nullable=call.nullable)


def _forall(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """NOT exists(NOT …): three-valued logic turns around as it should."""
    body = _lambda_of(args, 1)
    negated = Lambda(BOOLEAN, body.nullable, body.params, bound.not_(body.body))
    return bound.not_(bound.fn("array_any_match", BOOLEAN, args[0], negated, nullable=call.nullable))


def _zip_with(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    body, pair = _packed(_lambda_of(args, 2), ("x", "y"))
    zipped = bound.udf("arrays_zipped", array(pair, False), *args[:2], nullable=call.nullable)
    return bound.fn("array_transform", call.type, zipped, body, nullable=call.nullable)


def _entries(items: Expr, pair: StructType) -> Expr:
    return bound.udf("map_entry_list", array(pair, False), items, nullable=items.nullable)


def _map_filter(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    body, pair = _packed(_lambda_of(args, 1), ("key", "value"))
    entries = _entries(args[0], pair)
    left = bound.fn("array_filter", entries.type, entries, body, nullable=call.nullable)
    return bound.udf("map_from_entry_list", call.type, left, nullable=call.nullable)


def _transform_map(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    body, pair = _packed(_lambda_of(args, 1), ("key", "value"))
    entries = _entries(args[0], pair)
    made = bound.fn("array_transform", array(body.type), entries, body, nullable=call.nullable)
    if call.fn == "transform_values":
        t = pair.fields[0].type
        kept = bound.udf("map_key_list", array(t, False), args[0], nullable=call.nullable)
        return bound.udf("map_from_lists", call.type, kept, made, nullable=call.nullable)
    kept = bound.udf("map_value_list", array(pair.fields[1].type), args[0], nullable=call.nullable)
    return bound.udf("map_from_lists", call.type, made, kept, nullable=call.nullable, raises=True)


def _bind_map_zip_with(function: Function, site: Site) -> Expr:
    _count(site, 3)
    left, right = _map(site, 0), _map(site, 1)
    key = written_type(left.key, right.key)
    if key is None:
        raise UserError(
            "DATATYPE_MISMATCH.MAP_ZIP_WITH_DIFF_TYPES",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the maps must have keys of the same type, but they have '
            f'"{left.key.sql}" and "{right.key.sql}".',
            span=site.span,
        )
    body = open_lambda(site, 2).close([(key, False), (left.value, True), (right.value, True)])
    maps = (
        coerced(arg, map_of(key, t.value, t.value_contains_null))
        for arg, t in zip(site.args, (left, right), strict=False)
    )
    nullable = any(a.nullable for a in site.args[:2])
    return make(function, site, (*maps, body), map_of(key, body.type, body.nullable), nullable)


def _map_zip_with(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """Entries of the keys and what the lambda gives for them, in one go: operands are computed once."""
    body, row = _packed(_lambda_of(args, 2), ("key", "x", "y"))
    (var,) = body.params
    key = bound.fn("[]", row.fields[0].type, var, Lit(STRING, False, "key"), nullable=False)
    t = struct(StructField("key", key.type, False), StructField("value", body.type, body.nullable))
    named = (Lit(STRING, False, "key"), key, Lit(STRING, False, "value"), body.body)
    entry = Lambda(t, False, body.params, bound.fn("named_struct", t, *named, nullable=False))
    zipped = bound.udf("maps_zipped", array(row, False), *args[:2], nullable=call.nullable)
    made = bound.fn("array_transform", array(t, False), zipped, entry, nullable=call.nullable)
    return bound.udf("map_from_entry_list", call.type, made, nullable=call.nullable)


def _is_alike(left: DataType, right: DataType) -> bool:
    """Whether two types differ in nullability and names of fields at most."""
    match plain(left), plain(right):
        case ArrayType() as a, ArrayType() as b:
            return _is_alike(a.element, b.element)
        case MapType() as a, MapType() as b:
            return _is_alike(a.key, b.key) and _is_alike(a.value, b.value)
        case StructType() as a, StructType() as b:
            pairs = zip(a.fields, b.fields, strict=False)
            return len(a.fields) == len(b.fields) and all(_is_alike(x.type, y.type) for x, y in pairs)
        case a, b:
            return a == b


def _bind_aggregate(function: Function, site: Site) -> Expr:
    """aggregate, reduce: the start's type is that of all that comes of it, but for nullability and names of fields."""
    if len(site.args) not in (3, 4):
        raise site.wrong_count("[3, 4]")
    t, start = list_of(site, 0), site.args[1]
    state = (start.type, True)
    merge = open_lambda(site, 2).close([state, (t.element, t.contains_null)])
    if merge.type == VOID:
        body = Lit(VOID, True, None) if isinstance(merge.body, LambdaVar) else merge.body
        merge = Lambda(start.type, True, merge.params, coerced(body, start.type))
    if not _is_alike(start.type, merge.type):
        raise UserError(
            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the third parameter requires the "{start.type.sql}" '
            f'type, however the lambda gives the type "{merge.type.sql}".',
            span=site.span,
        )
    if start.type == VOID:
        raise refused(Call(VOID, True, site.shown, (), span=site.span), f"{site.shown} from an untyped NULL")
    if len(site.args) == 4:
        finish = open_lambda(site, 3).close([state])
    else:
        var = LambdaVar(start.type, True, merge.params[0].id, "id")
        finish = Lambda(start.type, True, (var,), var)
    nullable = site.args[0].nullable or finish.nullable
    return make(function, site, (site.args[0], start, merge, finish), finish.type, nullable)


def _aggregate(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.fn("fold", call.type, *args, nullable=call.nullable)


ROWS: tuple[Function, ...] = (
    Function("transform", bind=closed(_bind_over_array), lower=_transform),
    Function("filter", bind=closed(_bind_over_array), lower=_filter),
    Function("exists", bind=closed(_bind_over_array), lower=_exists),
    Function("forall", bind=closed(_bind_over_array), lower=_forall),
    Function("zip_with", bind=closed(_bind_zip_with), lower=_zip_with),
    Function("map_filter", bind=closed(_bind_over_map), lower=_map_filter),
    Function("transform_keys", bind=closed(_bind_over_map), lower=_transform_map),
    Function("transform_values", bind=closed(_bind_over_map), lower=_transform_map),
    Function("map_zip_with", bind=closed(_bind_map_zip_with), lower=_map_zip_with),
    *(Function(name, bind=closed(_bind_aggregate), lower=_aggregate) for name in ("aggregate", "reduce")),
)
