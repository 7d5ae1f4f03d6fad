"""Rows of aggregates that gather the values of a group: lists, sets, joined texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.errors import UserError
from gateway.sql.functions.aggregates import aggregate, collected, distinct, filtered, not_windowed
from gateway.sql.functions.constants import folded
from gateway.sql.functions.lowerings import engine_cast, key_of_order, not_null, refused, text
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, coerce_args, make, param
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Agg, Expr, Lit
from gateway.sqltypes import BINARY, DOUBLE, FLOAT, STRING, TIMESTAMP, VOID, StructField, array, has_map, struct


def _in_order(agg: Agg, value: Expr) -> Expr:
    """The non-NULL values in the order of the aggregate, sorted once they are collected: the engine (DataFusion 55) compares
    rows one by one, and takes ten times as long."""
    key = key_of_order(agg.order)
    fields = (StructField("key", BINARY, False), StructField("value", value.type, False))
    pair = struct(*fields)
    made = bound.fn("named_struct", pair, text("key"), key, text("value"), value, nullable=False)
    where = filtered(agg, not_null(value))
    pairs = bound.agg_fn("array_agg", array(pair, False), made, where=where, distinct=False, order=())
    return bound.udf("list_in_order", array(value.type, False), pairs)


def _bind_collect(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    value = site.args[0]
    if function.name == "collect_set" and has_map(value.type):
        raise UserError(
            "DATATYPE_MISMATCH.UNSUPPORTED_INPUT_TYPE",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the input can\'t be "MAP" type data.',
            span=site.span,
        )
    return make(function, site, (value,), array(value.type, False), False)


def _collect(distinct: bool) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        value = args[0]
        if value.type == VOID:
            raise refused(agg, f"{agg.shown} of NULL")
        if (distinct or agg.distinct) and value.type in (FLOAT, DOUBLE):
            value = bound.op("+", value.type, value, bound.lit(0.0, value.type))
        once = distinct or agg.distinct
        where = filtered(agg, not_null(value))
        lists = (
            _in_order(agg, value)
            if agg.order and not once
            else bound.agg_fn("array_agg", agg.type, value, of=agg, where=where, distinct=once)
        )
        return bound.udf("list_or_empty", agg.type, lists, nullable=False)

    return lower


def _bind_listagg(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    binary = site.args[0].type == BINARY
    kind = param(BINARY) if binary else param("string")
    args = coerce_args(Function("listagg", (kind, kind), optional=1), site)
    if len(args) == 2 and site.args[1].type != VOID and (site.args[1].type == BINARY) != binary:
        raise site.diff_types()
    if site.distinct and site.order:
        _check_order(site, args[0])
    if len(args) == 1:
        args = (*args, bound.null(BINARY if binary else STRING))
    separator = folded(args[1], site.context)
    if not isinstance(separator, Lit):
        raise site.not_constant(1, "delimiter", f' of type "{args[1].type.sql}"')
    return make(function, site, args, args[0].type, True, (separator.value,))


#: Types of which several values have the same text, or one value several.
_UNSAFE_TEXTS = (FLOAT, DOUBLE, TIMESTAMP, VOID)


def _check_order(site: Site, value: Expr) -> None:
    """DISTINCT values are sorted by themselves, or by what they are the texts of, where texts tell it apart as it does."""
    keys = [key(k.expr) for k in site.order]
    if keys == [key(value)]:
        return
    within = f"Invalid function `{site.shown}` with WITHIN GROUP."
    if not isinstance(value, bound.Cast) or keys != [key(value.arg)]:
        raise UserError(
            "INVALID_WITHIN_GROUP_EXPRESSION.MISMATCH_WITH_DISTINCT_INPUT",
            f"{within} The function is invoked with DISTINCT and WITHIN GROUP but expressions in them do not match.",
            span=site.span,
        )
    if value.arg.type in _UNSAFE_TEXTS:
        raise UserError(
            "INVALID_WITHIN_GROUP_EXPRESSION.MISMATCH_WITH_DISTINCT_INPUT_UNSAFE_CAST",
            f"{within} DISTINCT with an order is not supported for {value.arg.type.sql}: cast the input and the order to "
            f"{value.type.sql}.",
            span=site.span,
        )


def _listagg(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    value, (separator,) = args[0], agg.data
    if agg.type == BINARY:
        raise refused(agg, f"{agg.shown} of BINARY")
    if agg.distinct or agg.order:  # the engine's DISTINCT loses the order
        lists = _in_order(agg, value) if agg.order else collected(replace(agg, distinct=False), value)
        word = "list_join_distinct" if agg.distinct else "list_join"
        return bound.udf(word, STRING, lists, params=(separator or "",))
    joined = bound.agg_fn("string_agg", STRING, value, text(separator or ""), of=agg)
    return engine_cast(joined, STRING)


def _shown_listagg(agg: Any, names: list[str]) -> str:
    return f"{'listagg' if agg.order else agg.shown}({distinct(agg)}{', '.join(names)})"


ROWS: tuple[Function, ...] = (
    aggregate(
        "collect_list",
        bind=_bind_collect,
        lower=_collect(False),
        aliases=("array_agg",),
        ordered=True,
        shown=lambda agg, names: f"collect_list({distinct(agg)}{names[0]})",
    ),
    aggregate("collect_set", bind=_bind_collect, lower=_collect(True), ordered=True),
    not_windowed(
        aggregate(
            "listagg", bind=_bind_listagg, lower=_listagg, aliases=("string_agg",), ordered=True, shown=_shown_listagg
        )
    ),
)
