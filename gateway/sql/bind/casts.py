"""Explicit casts: which pairs are allowed, and the functions that are casts by another name."""

from __future__ import annotations

from gateway.errors import Span, UserError, unsupported
from gateway.sql.typed.coerce import can_cast, cast_nullable, cast_refusal, could_cast, keeps_keys
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Cast, Expr
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    decimal,
    is_nested,
)

CAST_FUNCTIONS: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "tinyint": TINYINT,
    "smallint": SMALLINT,
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "decimal": decimal(10, 0),
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
}


def cast_to(arg: Expr, target: DataType, is_try: bool, span: Span | None, implicit: bool = False) -> Expr:
    """An explicit cast, checked against the allowed pairs."""
    target = plain(target)
    inside = is_try and is_nested(arg.type)
    loses_keys = inside and not keeps_keys(arg.type, target)
    allowed = can_cast(arg.type, target)
    if inside and not allowed and not loses_keys and could_cast(arg.type, target):
        raise unsupported(f"TRY_CAST of {arg.type.sql} to {target.sql}", span)  # it knows no ANSI mode inside of values
    if not allowed or loses_keys:
        raise UserError(
            cast_refusal(arg.type, target, is_try),
            f'Cannot resolve the cast due to data type mismatch: cannot cast "{arg.type.sql}" to "{target.sql}".',
            span=span,
        )
    nullable = cast_nullable(arg.type, target, arg.nullable, is_try)
    return Cast(target, nullable, arg, implicit, is_try, span)
