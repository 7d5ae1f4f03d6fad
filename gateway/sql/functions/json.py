"""Rows of JSON functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from gateway.delta.schema import UnreadableType, parse_schema
from gateway.errors import GatewayError, UnsupportedError, UserError
from gateway.sql.functions.constants import folded
from gateway.sql.functions.lowerings import kernel
from gateway.sql.read.datatypes import parse_columns, parse_type
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, coerce_args, make, param
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import (
    INT,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    CharType,
    DataType,
    IntervalType,
    MapType,
    StructField,
    StructType,
    array,
    is_nested,
    struct,
)

_TEXT = param(STRING)


def _no_options(site: Site, index: int) -> None:
    """Options are not read; NULL for them is Spark's error."""
    if len(site.args) <= index:
        return
    if site.args[index].type == VOID:
        raise UserError(
            "INVALID_OPTIONS.NON_MAP_FUNCTION",
            "Invalid options: Must use the `map()` function for options.",
            span=site.span_of(index),
        )
    raise UnsupportedError(
        "UNSUPPORTED_FEATURE", f"{site.shown} with options is not supported.", span=site.span_of(index)
    )


def _schema(site: Site) -> DataType:
    """The type that the constant second argument describes: columns as in CREATE TABLE, or a type."""
    arg = folded(site.args[1], site.context)
    if not isinstance(arg, Lit) or not isinstance(arg.value, str):
        if arg.type == STRING and is_foldable(arg) and not isinstance(arg, Lit):
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE", f"{site.shown} with a computed schema is not supported.", span=site.span_of(1)
            )
        raise UserError(
            "INVALID_SCHEMA.NON_STRING_LITERAL",
            "The input schema is not a valid schema string. The input expression must be string literal and not null.",
            span=site.span_of(1),
        )
    if not arg.value.strip():
        raise UserError("PARSE_EMPTY_STATEMENT", "Syntax error, unexpected empty statement.", span=site.span_of(1))
    found = _read_schema(arg.value, site)
    if _has(found, lambda t: isinstance(t, CharType)):
        raise UserError(
            "UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING",
            "The char/varchar type can't be used in the table schema.",
            span=site.span_of(1),
        )
    if _has(found, lambda t: isinstance(t, StructType) and len({f.name for f in t.fields}) < len(t.fields)):
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE",
            f"{site.shown} to a struct with two fields of one name is not supported.",
            span=site.span_of(1),
        )
    return found


def _read_schema(text: str, site: Site) -> DataType:
    try:
        return parse_columns(text)
    except UserError as no_columns:
        try:
            return parse_type(text)
        except UnsupportedError:
            if len(text.split()) == 1:
                raise
            raise UserError(no_columns.condition, no_columns.message, span=site.span_of(1)) from None
        except UserError as error:
            written = _in_json(text)
            if written is None:
                raise UserError(error.condition, error.message, span=site.span_of(1)) from None
            return written


def _has(t: DataType, asked: Callable[[DataType], bool]) -> bool:
    return asked(t) or any(_has(child, asked) for child in t.children())


def _in_json(text: str) -> DataType | None:
    """The type that a text describes in JSON, as `DataType.json` of Spark writes it; None for any other text."""
    try:
        field = {"name": "schema", "type": json.loads(text), "nullable": True, "metadata": {}}
        (column,) = parse_schema({"type": "struct", "fields": [field]})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, GatewayError):
        return None
    return None if _has(column.type, lambda t: isinstance(t, UnreadableType)) else plain(column.type)


def _readable(t: DataType) -> str | None:
    """The first type inside that cannot be read from JSON here."""
    if t.name in ("TIMESTAMP", "TIMESTAMP_NTZ", "BINARY", "VOID") or isinstance(t, IntervalType):
        return t.sql
    if isinstance(t, MapType) and t.key != STRING:
        return t.sql
    return next(filter(None, map(_readable, t.children())), None)


def _nullable_inside(t: DataType) -> DataType:
    """The schema with everything nullable, as from_json makes it."""
    if isinstance(t, ArrayType):
        return array(_nullable_inside(t.element))
    if isinstance(t, MapType):
        return MapType("MAP", t.key, _nullable_inside(t.value), True)
    if isinstance(t, StructType):
        return struct(*(StructField(f.name, _nullable_inside(f.type)) for f in t.fields))
    return t


def _bind_from_json(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    target = _nullable_inside(_schema(site))
    _no_options(site, 2)
    if not is_nested(target) and target != VARIANT:
        raise UserError(
            "DATATYPE_MISMATCH.INVALID_JSON_SCHEMA",
            f'Cannot resolve "{site.shown}" due to data type mismatch: input schema "{target.sql}" must be a struct, an '
            "array, a map or a variant.",
            span=site.span_of(1),
        )
    for field in target.fields if isinstance(target, StructType) else ():
        if field.name == "_corrupt_record" and field.type != STRING:
            message = f'The column `_corrupt_record` must have the nullable STRING type, but got "{field.type.sql}".'
            raise UserError("INVALID_CORRUPT_RECORD_TYPE", message, span=site.span_of(1))
    if plain(site.args[0].type) not in (STRING, VOID):
        raise site.mismatch(0, "STRING")
    (value,) = coerce_args(Function("from_json", (_TEXT,)), Site(site.name, site.args[:1], site.context, site.span))
    return make(function, site, (value,), target, True)


def _shown_from_json(call: Call, names: list[str]) -> str:
    return "entries" if isinstance(call.type, MapType) else f"{call.shown}({names[0]})"


def _from_json(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    obstacle = _readable(call.type)
    if obstacle is not None:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"from_json of {obstacle} is not supported.", span=call.span)
    return bound.udf("from_json", call.type, args[0])


def _bind_to_json(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    _no_options(site, 1)
    value = site.args[0]
    if not is_nested(value.type) and value.type not in (VOID, VARIANT):
        raise UserError(
            "DATATYPE_MISMATCH.INVALID_JSON_SCHEMA",
            f'Cannot resolve "{site.shown}" due to data type mismatch: Input schema "{value.type.sql}" must be a struct, an '
            "array, a map or a variant.",
            span=site.span_of(0),
        )
    return make(function, site, (value,), STRING, True)


def _writable(t: DataType) -> str | None:
    if isinstance(t, IntervalType) or (isinstance(t, MapType) and t.key != STRING):
        return t.sql
    return next(filter(None, map(_writable, t.children())), None)


def _to_json(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if args[0].type == VOID:
        return bound.null(STRING)
    if args[0].type == VARIANT:
        return bound.udf("variant_json", call.type, args[0], params=(context.time_zone,), raises=True)
    obstacle = _writable(args[0].type)
    if obstacle is not None:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"to_json of {obstacle} is not supported.", span=call.span)
    return bound.udf("to_json", STRING, args[0], params=(context.time_zone,))


def _bind_tuple(function: Function, site: Site) -> Expr:
    if len(site.args) < 2:
        raise site.wrong_count("> 1")
    for i, arg in enumerate(site.args):
        if plain(arg.type) != STRING:
            raise UserError(
                "DATATYPE_MISMATCH.NON_STRING_TYPE",
                f'Cannot resolve "{site.shown}" due to data type mismatch: all arguments of the function `json_tuple` must '
                "be strings.",
                span=site.span_of(i),
            )
    args = coerce_args(Function("json_tuple", (_TEXT,), _TEXT), site)
    columns = (StructField(f"c{i}", STRING) for i in range(len(args) - 1))
    return make(function, site, args, struct(*columns), False)


def _json_tuple(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("json_tuple", array(call.type, False), *args, nullable=False)


def _bind_strict(returns: DataType, raises: bool = False) -> Callable[[Function, Site], Expr]:
    """Texts only: these functions cast nothing but NULL. One that `raises` gives NULL for NULL alone."""

    def bind(function: Function, site: Site) -> Expr:
        for i, arg in enumerate(site.args):
            if plain(arg.type) not in (STRING, VOID):
                raise site.mismatch(i, "STRING")
        args = coerce_args(replace(function, bind=None), site)
        return make(function, site, args, returns, not raises or any(a.nullable for a in args))

    return bind


ROWS: tuple[Function, ...] = (
    Function(
        "get_json_object",
        (_TEXT, _TEXT),
        bind=_bind_strict(STRING),
        lower=kernel("get_json_object"),
    ),
    Function("json_array_length", (_TEXT,), bind=_bind_strict(INT), lower=kernel("json_array_length")),
    Function("json_object_keys", (_TEXT,), bind=_bind_strict(array(STRING)), lower=kernel("json_object_keys")),
    Function("json_tuple", kind="generator", bind=_bind_tuple, lower=_json_tuple),
    Function("from_json", bind=_bind_from_json, lower=_from_json, shown=_shown_from_json),
    Function("to_json", bind=_bind_to_json, lower=_to_json),
    Function(
        "parse_json", (_TEXT,), bind=_bind_strict(VARIANT, raises=True), lower=kernel("parse_json", False, raises=True)
    ),
    Function("try_parse_json", (_TEXT,), bind=_bind_strict(VARIANT), lower=kernel("parse_json", True)),
)
