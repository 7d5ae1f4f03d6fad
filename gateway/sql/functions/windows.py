"""Rows of window functions: ranking and offset functions as `Call`s; aggregates over windows are in `aggregates`."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql.functions.constants import constant
from gateway.sql.functions.lowerings import engine_cast, integer, refused
from gateway.sql.functions.variants import written
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, make
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.common_types import least_common_type
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import BIGINT, DOUBLE, INT, STRING, VOID, DataType, is_interval, is_nested, is_numeric


def _bind_rank(function: Function, site: Site) -> Expr:
    takes = function.name in ("rank", "dense_rank", "percent_rank")
    if site.args and not takes:
        raise site.wrong_count("0")
    type_ = DOUBLE if function.name in ("percent_rank", "cume_dist") else INT
    return make(function, site, (), type_, False)


def _rank(name: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        result = bound.agg_fn(name, call.type)
        return engine_cast(result, INT) if call.type == INT else result

    return lower


def _constant_int(site: Site, index: int, default: int) -> int | None:
    """A constant argument, of type INT and no other; None for NULL."""
    if index >= len(site.args):
        return default
    if not is_foldable(site.args[index]):
        raise site.not_constant(index, f"of parameter {index + 1}")
    if site.args[index].type != INT:
        raise site.mismatch(index, "INT")
    found: int | None = constant(site, index)
    return found


def _bind_ntile(function: Function, site: Site) -> Expr:
    if len(site.args) > 1:
        raise site.wrong_count("[0, 1]")
    count = _constant_int(site, 0, 1)
    if count is None or count <= 0:
        raise UserError(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the buckets must be between (0, 2147483647] '
            f"(current value = {count}).",
            span=site.span_of(0),
        )
    return make(function, site, site.args or (integer(1),), INT, False, (count,))


def _ntile(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return engine_cast(bound.agg_fn("ntile", INT, integer(call.data[0])), INT)


def _bind_offset(function: Function, site: Site) -> Expr:
    """lag / lead (x, offset = 1, default = NULL); data holds (offset, ignore nulls)."""
    if not 1 <= len(site.args) <= 3:
        raise site.wrong_count("[1, 2, 3]")
    value = site.args[0]
    offset = _distance(site)
    default: Expr = site.args[2] if len(site.args) == 3 else bound.null(VOID)
    type_: DataType = value.type
    if default.type not in (type_, VOID):
        common = least_common_type(type_, default.type) if is_nested(type_) else None
        if common is not None and common.simple == type_.simple:  # they differ in what may be NULL inside
            type_ = common
        elif type_ == VOID or implicit_type(default.type, [type_]) is None:
            raise site.mismatch(2, type_.sql)
    default = coerced(default, type_)
    args = (coerced(value, type_), integer(offset if offset is not None else 0), default)
    return make(function, site, args, type_, value.nullable or default.nullable, (offset, site.ignore_nulls))


def _distance(site: Site) -> int | None:
    """The constant offset, which Spark negates for lag() where it is a literal, before it looks at its type."""
    given = site.args[1].type if len(site.args) > 1 else INT
    if given != VOID and not is_numeric(given) and not is_interval(given):
        if site.shown == "lag" and isinstance(site.args[1], Lit):
            raise UserError("FAILED_FUNCTION_CALL", f"Preparing the function `{site.shown}` failed.", span=site.span)
        if given != STRING:
            raise site.mismatch(1, "INT")
    if given in (STRING, VOID) or (is_numeric(given) and given != INT):
        message = f"Cannot specify window frame for {site.shown} function."
        raise UserError("_LEGACY_ERROR_TEMP_1035", message, span=site.span_of(1))
    offset = _constant_int(site, 1, 1)
    if len(site.args) > 1 and not isinstance(site.args[1], Lit):
        raise site.not_constant(1, "offset")  # it is named in the frame, too
    return offset


def _offset(name: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        value, _, default = args
        offset, ignore = call.data
        if offset is None or call.type == VOID:
            raise refused(call, f"{call.shown} of NULL or with a NULL offset")
        if leads_past_nulls(call):
            place = bound.lit(abs(offset), BIGINT)
            found = bound.agg_fn("nth_value", call.type, value, place, ignore_nulls=True)
            return bound.fn("coalesce", call.type, found, written(default), nullable=call.nullable)
        name_, distance = name, offset
        if distance < 0:
            name_, distance = ("lead" if name == "lag" else "lag"), -distance
        rest: tuple[Expr, ...] = (bound.lit(distance, BIGINT),)
        if not (isinstance(default, Lit) and default.value is None):
            rest = (*rest, written(default))
        return bound.agg_fn(name_, call.type, value, *rest, ignore_nulls=ignore)

    return lower


def leads_past_nulls(call: Call) -> bool:
    """Whether it is the second value or a later one of those behind a row that are not NULL.

    The engine's lead() forgets values that it has seen already (DataFusion 55), so that is asked of a frame without the row.
    """
    if call.fn not in ("lag", "lead"):
        return False
    offset, ignore = call.data
    return bool(ignore and offset is not None and (offset if call.fn == "lead" else -offset) > 1)


def _bind_nth(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    ignore = site.ignore_nulls
    if len(site.args) == 3:
        told = site.args[2]
        if not isinstance(told, Lit) or not isinstance(told.value, bool):
            message = (
                f"The value of parameter(s) `ignoreNulls` in `{site.shown}` is invalid: expects a boolean literal."
            )
            raise UserError("INVALID_PARAMETER_VALUE.BOOLEAN", message, span=site.span_of(2))
        ignore = ignore or told.value
    if implicit_type(site.args[1].type, [INT]) is None:
        raise site.mismatch(1, "INT")
    shown = coerced(site.args[1], INT)
    place = constant(site, 1, shown)
    if place is None or place <= 0:
        raise UserError(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the offset must be between (0, 9223372036854775807] '
            f"(current value = {place}).",
            span=site.span_of(1),
        )
    return make(function, site, (site.args[0], shown), site.args[0].type, True, (place, ignore))


def _nth(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    place, ignore = call.data
    if call.type == VOID:
        raise refused(call, "nth_value of NULL")
    return bound.agg_fn("nth_value", call.type, args[0], bound.lit(place, BIGINT), ignore_nulls=ignore)


def _shown_nth(call: Call, names: list[str]) -> str:
    return f"nth_value({', '.join(names)}){' ignore nulls' if call.data[1] else ''}"


def _window(name: str, shown: str | None = None) -> Function:
    return Function(name, kind="window", bind=_bind_rank, lower=_rank(name), shown=shown)


ROWS: tuple[Function, ...] = (
    _window("row_number"),
    _window("rank", "RANK"),
    _window("dense_rank", "DENSE_RANK"),
    _window("percent_rank", "PERCENT_RANK"),
    _window("cume_dist"),
    Function("ntile", kind="window", bind=_bind_ntile, lower=_ntile),
    Function("lag", kind="window", bind=_bind_offset, lower=_offset("lag")),
    Function("lead", kind="window", bind=_bind_offset, lower=_offset("lead")),
    Function("nth_value", kind="window", bind=_bind_nth, lower=_nth, shown=_shown_nth),
)
