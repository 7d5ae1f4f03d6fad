"""Rows of functions between text and bytes: character sets, Base64 and hex, valid UTF-8, URLs."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql.functions.constants import folded
from gateway.sql.functions.lowerings import kernel, raises, refused
from gateway.sql.functions.operators import comparison
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, coerce_args, make, param
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.common_types import least_common_of, least_common_type
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import BINARY, BOOLEAN, DOUBLE, STRING, VOID, DataType

_STRING_OR_BINARY = param("string", BINARY)


def _bind_url(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    for i, arg in enumerate(site.args):
        if arg.type not in (STRING, VOID):
            raise site.mismatch(i, "STRING")
    args = tuple(coerced(a, STRING) for a in site.args)
    return make(function, site, args, STRING, True)


def _bind_decode(function: Function, site: Site) -> Expr:
    if len(site.args) < 2:
        raise site.wrong_count("> 1")
    if len(site.args) == 2:
        args = coerce_args(Function("decode", (param(BINARY), param("string"))), site)
        return make(function, site, args, STRING, True)
    subject, rest = site.args[0], list(site.args[1:])
    pairs, other = len(rest) // 2, rest[-1] if len(rest) % 2 else None
    keys, values = rest[0 : 2 * pairs : 2], rest[1 : 2 * pairs : 2]
    for searched in keys:
        comparison("<=>", subject, searched, site.span)  # Spark's error
    untyped = subject.type == VOID  # compared with nothing but NULL, of whatever types
    common = least_common_of([subject.type, *(() if untyped else (k.type for k in keys))])
    other_type = STRING if other is None else other.type  # what is not found is a NULL of that type
    result = least_common_of([*(v.type for v in values), other_type])
    if common is None or result is None:
        raise site.diff_types()
    if not untyped and any(_is_compared_otherwise(subject.type, k.type, common) for k in keys):
        raise refused(
            Call(result, True, site.shown, (), span=site.span), f"{site.shown} of texts and several kinds of numbers"
        )
    args = (
        coerced(subject, common),
        *(
            a
            for k, v in zip(keys, values, strict=True)
            for a in (k if untyped else coerced(k, common), coerced(v, result))
        ),
        *((coerced(other, result),) if other is not None else ()),
    )
    nullable = other is None or any(a.nullable for a in args[2::2]) or args[-1].nullable
    return make(function, site, args, result, nullable)


def _is_compared_otherwise(subject: DataType, searched: DataType, common: DataType) -> bool:
    """Whether Spark, which compares what is searched for one by one, casts a text to another type, or needs no DOUBLE."""
    own = least_common_type(subject, searched)
    return searched != VOID and own != common and (STRING in (subject, searched) or common == DOUBLE)


def _decode(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if len(args) == 2:
        return bound.udf("decode", STRING, *args, raises=True)
    subject, rest = args[0], args[1:]
    pairs = len(rest) // 2
    whens = tuple((_found(subject, rest[2 * i]), rest[2 * i + 1]) for i in range(pairs))
    return bound.case(call.type, *whens, otherwise=rest[-1] if len(rest) % 2 else None)


def _found(subject: Expr, searched: Expr) -> Expr:
    if subject.type == VOID:
        return bound.lit(True, BOOLEAN) if searched.type == VOID else bound.is_null(searched)
    return bound.op("IS NOT DISTINCT FROM", BOOLEAN, subject, searched, nullable=False)


_BINARY_FORMATS = ("hex", "base64", "utf-8", "utf8")


def _bind_to_binary(function: Function, site: Site) -> Expr:
    row = Function(function.name, (param("string"), param("string")), optional=1)
    if len(site.args) == 2 and implicit_type(site.args[1].type, ["string"]) is None:
        raise _unknown_format(site, site.args[1].type.sql)
    args = coerce_args(row, site)
    data: tuple[str | None, ...] = ("hex",)
    if len(args) == 2:
        form = folded(args[1], site.context)
        if not isinstance(form, Lit):
            raise site.not_constant(1, "`fmt`", ' of type "STRING"')
        if form.value is not None and form.value.lower() not in _BINARY_FORMATS and function.name == "to_binary":
            raise _unknown_format(site, form.value)
        data = (form.value,)
    return make(function, site, args, BINARY, True, data)


def _unknown_format(site: Site, given: str) -> UserError:
    return UserError(
        "DATATYPE_MISMATCH.INVALID_ARG_VALUE",
        f'Cannot resolve "{site.shown}" due to data type mismatch: the `fmt` value must be case-insensitive '
        f"'hex', 'utf-8', 'utf8' or 'base64', but got '{given}'.",
        span=site.span_of(1),
    )


def _to_binary(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    (form,) = call.data
    if form is None or form.lower() not in _BINARY_FORMATS:
        return bound.null(BINARY)
    lenient = call.fn == "try_to_binary"
    if lenient and raises(args[0]):
        raise refused(call, "try_to_binary of what may raise, which is NULL then,")
    params = (form.lower().replace("utf8", "utf-8"), lenient)
    return bound.udf("to_binary", BINARY, args[0], params=params, raises=not lenient)


ROWS: tuple[Function, ...] = (
    Function("base64", (param(BINARY),), returns=STRING, lower=kernel("base64")),
    Function("unbase64", (param("string"),), returns=BINARY, lower=kernel("unbase64", raises=True)),
    Function(
        "encode",
        (param("string"), param("string")),
        returns=BINARY,
        nullable="always",
        lower=kernel("encode", raises=True),
    ),
    Function("decode", bind=_bind_decode, lower=_decode),
    Function("to_binary", bind=_bind_to_binary, lower=_to_binary),
    Function("try_to_binary", bind=_bind_to_binary, lower=_to_binary),
    Function(
        "make_valid_utf8", (_STRING_OR_BINARY,), returns=STRING, nullable="always", lower=kernel("utf8", "replace")
    ),
    Function(
        "validate_utf8",
        (_STRING_OR_BINARY,),
        returns=STRING,
        nullable="always",
        lower=kernel("utf8", "raise", raises=True),
    ),
    Function(
        "try_validate_utf8", (_STRING_OR_BINARY,), returns=STRING, nullable="always", lower=kernel("utf8", "null")
    ),
    Function("parse_url", bind=_bind_url, lower=kernel("parse_url", False, raises=True)),
    Function("try_parse_url", bind=_bind_url, lower=kernel("parse_url", True)),
    Function(
        "is_valid_utf8",
        (_STRING_OR_BINARY,),
        returns=BOOLEAN,
        nullable="always",
        lower=kernel("is_valid_utf8"),
    ),
    Function("url_encode", (param("string"),), returns=STRING, nullable="always", lower=kernel("url_encode")),
    Function(
        "url_decode",
        (param("string"),),
        returns=STRING,
        nullable="always",
        lower=kernel("url_decode", False, raises=True),
    ),
    Function("try_url_decode", (param("string"),), returns=STRING, nullable="always", lower=kernel("url_decode", True)),
)
