"""Rows of hash functions."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql.functions.lowerings import kernel, refused
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, make, param
from gateway.sql.typed.nodes import Call, Expr
from gateway.sqltypes import BIGINT, BINARY, INT, STRING, IntervalType, has_map, has_variant


def _bind_hash(function: Function, site: Site) -> Expr:
    if not site.args:
        raise site.wrong_count("> 0")
    for i, arg in enumerate(site.args):
        if has_variant(arg.type):
            text = f"Input to the function `{site.shown}` cannot contain elements of the type VARIANT."
            raise UserError("DATATYPE_MISMATCH.HASH_VARIANT_TYPE", text, span=site.span)
        if has_map(arg.type):
            raise site.mismatch(i, "any type but MAP")
    return make(function, site, site.args, INT if function.name == "hash" else BIGINT, False)


def _hash(name: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        for arg in call.args:
            if isinstance(arg.type, IntervalType):
                raise refused(call, f"{call.shown} of {arg.type.sql}")
        typed = tuple(a for a in args if a.type.name != "VOID")
        if not typed:
            return bound.lit(42, call.type)
        return bound.udf(name, call.type, *typed, nullable=False)

    return lower


ROWS: tuple[Function, ...] = (
    Function("md5", (param(BINARY),), returns=STRING, lower=kernel("md5")),
    Function("sha1", (param(BINARY),), returns=STRING, lower=kernel("sha1"), aliases=("sha",)),
    Function("sha2", (param(BINARY), param(INT)), returns=STRING, nullable="always", lower=kernel("sha2")),
    Function("crc32", (param(BINARY),), returns=BIGINT, lower=kernel("crc32")),
    Function("hash", bind=_bind_hash, lower=_hash("hash")),
    Function("xxhash64", bind=_bind_hash, lower=_hash("xxhash64")),
)
