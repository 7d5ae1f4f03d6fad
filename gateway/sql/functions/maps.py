"""Functions of maps."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql.functions.collections import array_of, check_count, udf_lower
from gateway.sql.functions.lowerings import refused
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, make, param
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import least_common_of, plain, shared_type
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import (
    BOOLEAN,
    STRING,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
    array,
    map_of,
    struct,
)


def _one_map(site: Site) -> MapType:
    t = plain(site.args[0].type)
    if t == VOID and site.shown != "map_contains_key":
        raise refused(Call(VOID, True, site.shown, (), span=site.span), f"{site.shown} of an untyped NULL")
    if not isinstance(t, MapType):
        raise site.mismatch(0, "MAP")
    return t


def _bind_map_part(function: Function, site: Site) -> Expr:
    check_count(site, 1)
    t = _one_map(site)
    entry = struct(StructField("key", t.key, False), StructField("value", t.value, t.value_contains_null))
    result = {
        "map_keys": array(t.key),
        "map_values": array(t.value),
        "map_entries": array(entry, False),
    }[function.name]
    return make(function, site, site.args, result, site.args[0].nullable)


def _bind_contains_key(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    t = _one_map(site)
    key = site.args[1]
    common = shared_type(t.key, plain(key.type), wider=True)
    if key.type == VOID or common is None:
        raise UserError(
            "DATATYPE_MISMATCH.NULL_TYPE" if key.type == VOID else "DATATYPE_MISMATCH.MAP_FUNCTION_DIFF_TYPES",
            f'`{site.shown}` needs a key of the map\'s type "{t.key.sql}", but it has "{key.type.sql}".',
            span=site.span,
        )
    base = coerced(site.args[0], map_of(common, t.value, t.value_contains_null))
    return make(function, site, (base, coerced(key, common)), BOOLEAN, True)


def _bind_map_concat(function: Function, site: Site) -> Expr:
    types = [plain(a.type) for a in site.args]
    if not all(isinstance(t, MapType) for t in types):
        shown = ", ".join(f'"{t.sql}"' for t in types)
        raise UserError(
            "DATATYPE_MISMATCH.MAP_CONCAT_DIFF_TYPES",
            f"The `{site.shown}` should all be of type map, but it's [{shown}].",
            span=site.span,
        )
    common = least_common_of(types) if types else map_of(STRING, STRING, False)
    if not isinstance(common, MapType):
        raise site.diff_types()
    args = tuple(coerced(a, common) for a in site.args)
    return make(function, site, args, common, any(a.nullable for a in args))


def _lower_map_concat(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if not args:
        raise refused(call, "map_concat without arguments")
    return bound.udf("maps_joined", call.type, *args, nullable=call.nullable, raises=True)


def _bind_from_arrays(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    types = [plain(a.type) for a in site.args]
    if VOID in types:
        raise refused(Call(VOID, True, site.shown, (), span=site.span), f"{site.shown} of an untyped NULL")
    for index, t in enumerate(types):
        if not isinstance(t, ArrayType):
            raise site.mismatch(index, "ARRAY")
    keys, values = (array_of(a) for a in site.args)
    site.check_map_key(keys.element)
    result = map_of(keys.element, values.element, values.contains_null)
    return make(function, site, site.args, result, any(a.nullable for a in site.args))


def _bind_from_entries(function: Function, site: Site) -> Expr:
    check_count(site, 1)
    t = plain(site.args[0].type)
    if not (isinstance(t, ArrayType) and isinstance(t.element, StructType) and len(t.element.fields) == 2):
        raise site.mismatch(0, "ARRAY of pair STRUCT")
    key, value = t.element.fields
    site.check_map_key(key.type)
    result = map_of(key.type, value.type, value.nullable)
    return make(function, site, site.args, result, site.args[0].nullable or t.contains_null)


ROWS: tuple[Function, ...] = (
    Function("map_keys", bind=_bind_map_part, lower=udf_lower("map_key_list")),
    Function("map_values", bind=_bind_map_part, lower=udf_lower("map_value_list")),
    Function("map_entries", bind=_bind_map_part, lower=udf_lower("map_entry_list")),
    Function("map_contains_key", bind=_bind_contains_key, lower=udf_lower("array_contains")),
    Function(
        "str_to_map",
        params=(param("text"), param("text"), param("text")),
        optional=2,
        defaults=(Lit(STRING, False, ","), Lit(STRING, False, ":")),
        returns=map_of(STRING, STRING),
        lower=udf_lower("text_to_map", raises=True),
    ),
    Function("map_concat", bind=_bind_map_concat, lower=_lower_map_concat),
    Function("map_from_arrays", bind=_bind_from_arrays, lower=udf_lower("map_from_lists", raises=True)),
    Function("map_from_entries", bind=_bind_from_entries, lower=udf_lower("map_from_entry_list", raises=True)),
)
