"""Rows of aggregates: natives where DataFusion means the same, else a native collector finished by a function of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.errors import UnsupportedError, UserError
from gateway.sql.functions.lowerings import (
    any_nan,
    both,
    engine_cast,
    equals,
    lazy_case,
    not_null,
    one_nan,
    raises,
    refused,
)
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import (
    BOUNDED,
    WINDOWED,
    Context,
    Function,
    Lower,
    Site,
    bind_call,
    make,
    param,
)
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.nodes import Agg, AggFn, Call, Expr, Lit, SortKey
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    TIMESTAMP,
    VOID,
    YEAR_MONTH,
    DataType,
    DecimalType,
    IntervalType,
    array,
    decimal,
    has_map,
    is_fractional,
    is_integral,
    is_interval,
    is_nested,
)

#: Aggregates whose lowering is not valid with OVER.
NOT_AS_WINDOW: frozenset[str] = frozenset(
    {
        "max_by",
        "min_by",
        "listagg",
        "median",
        "percentile",
        "percentile_cont",
        "percentile_disc",
        "percentile_approx",
        "mode",
        "skewness",
        "kurtosis",
    }
)


def filtered(agg: Agg, *conditions: Expr) -> Expr | None:
    """The FILTER of `agg` with more conditions."""
    result = agg.where
    for condition in conditions:
        result = condition if result is None else both(result, condition)
    return result


def native_aggregate(name: str, *, distinct: bool = True) -> Lower:
    """The native aggregate; `distinct` False where DataFusion can't do (or ignores) DISTINCT."""

    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        if agg.distinct and not distinct:
            raise refused(agg, f"{agg.shown}(DISTINCT …)")
        return bound.agg_fn(name, agg.type, *args, of=agg, order=())

    return lower


def collected(agg: Agg, value: Expr, type_: DataType | None = None) -> AggFn:
    """array_agg of the non-NULL values, in input order or that of WITHIN GROUP."""
    list_type = array(type_ or value.type)
    return bound.agg_fn("array_agg", list_type, value, of=agg, where=filtered(agg, not_null(value)), order=())


def complete(args: Sequence[Expr]) -> Expr:
    """1 where no argument is NULL, of which each is computed where none before it is, whatever comes after it."""
    one: Expr = bound.lit(1, INT)
    for arg in reversed(args):
        one = bound.null(INT) if arg.type == VOID else bound.case(INT, (not_null(arg), one))
        if raises(arg):
            one = bound.udf("last", INT, arg, one, raises=True)
    return one


def _bind_count(function: Function, site: Site) -> Expr:
    if not site.args and not site.star:
        raise UserError(
            "WRONG_NUM_ARGS.WITH_SUGGESTION",
            "The `count` requires >= 1 parameters but the actual number is 0.",
            span=site.span,
        )
    args = site.args or (Lit(INT, False, 1),)
    return make(function, site, args, BIGINT, False)


def _count(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    if agg.distinct and any(has_map(a.type) for a in args):
        raise refused(agg, "count(DISTINCT …) of a MAP")
    if len(args) == 1:
        value = args[0]
        if value.type == VOID:
            value = bound.null(INT)
        elif isinstance(value, Lit) and value.value is not None:
            value = bound.lit(1, INT)  # of whatever type: the engine tells no two such counts apart
        if agg.distinct and value.type in (FLOAT, DOUBLE):
            value = bound.op("+", value.type, value, bound.lit(0.0, value.type))
        if agg.distinct and is_nested(value.type):
            value = bound.udf("row_key", BINARY, value, nullable=value.nullable)
        return bound.agg_fn("count", BIGINT, value, of=agg, order=())
    if not agg.distinct and any(map(raises, args)):
        return bound.agg_fn("count", BIGINT, complete(args), of=agg, order=())
    if agg.distinct:
        whole = [a if a.type != VOID else bound.null(INT) for a in args]
        row = bound.udf("row_key", BINARY, *whole, nullable=any(a.nullable for a in whole))
        return bound.agg_fn("count", BIGINT, row, of=agg, order=())
    known = [not_null(a) for a in args if a.type != VOID]
    if len(known) < len(args):
        known = [bound.lit(False, BOOLEAN)]
    return bound.agg_fn("count", BIGINT, bound.lit(1, INT), of=agg, where=filtered(agg, *known), order=())


def _count_if(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    hit = bound.case(INT, (args[0], bound.lit(1, INT)))
    return bound.agg_fn("count", BIGINT, hit, of=agg, order=())


def _bind_approx_count(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    if has_map(site.args[0].type):
        raise refused(Call(BIGINT, False, site.shown, (), span=site.span_of(0)), f"{site.shown} of a MAP")
    if len(site.args) == 2:
        _check_deviation(site)
    return make(function, site, site.args, BIGINT, False)


def _check_deviation(site: Site) -> None:
    """The relative deviation of approx_count_distinct: a literal that Spark makes a sketch of."""
    given = site.args[1]
    if not isinstance(given, Lit) or given.value is None or given.type.name not in ("DOUBLE", "DECIMAL"):
        raise UserError(
            "_LEGACY_ERROR_TEMP_1104",
            "The second argument should be a double literal.",
            span=site.span_of(1),
        )
    deviation = float(given.value)
    if not 0.0001 <= deviation < 1.106:
        raise refused(Call(BIGINT, False, site.shown, (), span=site.span_of(1)), f"{site.shown} to within {deviation}")
    if math.ceil(2.0 * math.log2(1.106 / deviation)) < 4:
        raise UserError(
            "FAILED_FUNCTION_CALL",
            f"Failed preparing of the function `{site.shown}` for call. Please, double check function's arguments.",
            span=site.span,
        )


def _approx_count(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    value = args[0] if args[0].type != VOID else bound.null(INT)
    if value.type in (FLOAT, DOUBLE):
        value = bound.op("+", value.type, value, bound.lit(0.0, value.type))
    if is_nested(value.type):  # Spark counts hashes, to which NULLs inside add nothing
        hashed = bound.udf("xxhash64", BIGINT, value, nullable=False)
        value = bound.case(BIGINT, (not_null(value), hashed))
    return bound.agg_fn("count", BIGINT, value, of=agg, distinct=True, order=())


def _bind_total(function: Function, site: Site) -> Expr:
    """sum, avg and their try_ forms: result types of Sum and Average."""
    if len(site.args) != 1:
        raise site.wrong_count("1")
    given = site.args[0].type
    source = given if is_interval(given) else implicit_type(given, ["numeric"])
    if given == TIMESTAMP:
        source = DOUBLE
    if source is None:
        raise site.mismatch(0, "NUMERIC or ANSI INTERVAL")
    value = coerced(site.args[0], source)
    mean = function.name in ("avg", "try_avg")
    if isinstance(source, DecimalType):
        more = 4 if mean else 10
        scale = min(MAX_PRECISION, source.scale + 4) if mean else source.scale
        type_: DataType = decimal(min(MAX_PRECISION, source.precision + more), scale)
    elif isinstance(source, IntervalType):
        type_ = (YEAR_MONTH if source.is_year_month else DAY_TIME) if mean else source
    else:
        type_ = DOUBLE if mean or is_fractional(source) else BIGINT
    return make(function, site, (value,), type_, True)


def _units(value: Expr) -> Expr:
    """An integer or interval as DECIMAL(20,0), whose sum cannot overflow."""
    return engine_cast(engine_cast(value, BIGINT) if is_interval(value.type) else value, decimal(20, 0))


def _float_total(name: str, agg: Agg, value: Expr) -> Expr:
    """Infinities of both signs make a NaN of the processor's."""
    total = bound.agg_fn(name, DOUBLE, bound.cast(any_nan(value), DOUBLE), of=agg, order=())
    return one_nan(total) if is_fractional(value.type) else total


def _sum(lenient: bool) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        value, type_ = args[0], agg.type
        if type_ == DOUBLE:
            return _float_total("sum", agg, value)
        if isinstance(type_, DecimalType):
            return _decimal_sum(agg, value, lenient)
        # Four thousand million values of INT may overflow; they are no window's, which is held in memory.
        is_small = BOUNDED in agg.data or (WINDOWED in agg.data and value.type != BIGINT)
        if is_integral(value.type) and is_small:
            whole = value if value.type == BIGINT else bound.cast(value, BIGINT)
            return bound.agg_fn("sum", BIGINT, whole, of=agg, order=())
        total = bound.agg_fn("sum", decimal(30, 0), _units(value), of=agg, order=())
        return bound.udf("integer_total", type_, total, params=(lenient,), raises=not lenient)

    return lower


def _decimal_sum(agg: Agg, value: Expr, lenient: bool) -> Expr:
    assert isinstance(value.type, DecimalType)
    type_ = decimal(min(MAX_PRECISION, value.type.precision + 10), value.type.scale)
    total = bound.agg_fn("sum", type_, value, of=agg, order=())
    if value.type.precision <= MAX_PRECISION - 10 or BOUNDED in agg.data:
        return total
    estimate = bound.agg_fn("sum", DOUBLE, bound.cast(value, DOUBLE), of=agg, order=())
    params = (lenient, WINDOWED in agg.data)
    return bound.udf("decimal_total", type_, total, estimate, params=params, raises=not lenient)


def _avg(lenient: bool) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        return mean_of(agg, args[0], agg.type, lenient)

    return lower


def mean_of(agg: Agg, value: Expr, type_: DataType, lenient: bool) -> Expr:
    if type_ == DOUBLE:
        return _float_total("avg", agg, value)
    count = bound.agg_fn("count", BIGINT, value, of=agg, order=())
    if isinstance(type_, DecimalType):
        total = _decimal_sum(agg, value, lenient)
        return bound.udf("decimal_mean", type_, total, count, params=(lenient,), raises=not lenient)
    total = bound.agg_fn("sum", decimal(30, 0), _units(value), of=agg, order=())
    checked = bound.udf("integer_total", type_, total, params=(lenient,), raises=not lenient)
    return bound.udf("integer_mean", type_, _units(checked), count)


def _bind_ordered(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    site.check_orderable(site.args[0].type)
    return make(function, site, site.args, site.args[0].type, True)


def _extreme(name: str) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        value, type_ = args[0], agg.type
        if is_nested(type_) and WINDOWED in agg.data:
            where = filtered(agg, not_null(value))
            values = bound.agg_fn("array_agg", array(type_, False), value, where=where, distinct=False)
            return bound.udf("array_extreme", type_, values, params=(name,))
        if is_nested(type_):  # of which the engine keeps no least and largest
            order = (SortKey(bound.udf("row_key", BINARY, value), name == "max", True),)
            where = filtered(agg, not_null(value))
            return bound.agg_fn("first_value", type_, value, where=where, distinct=False, order=order)
        if type_ == VOID:
            return bound.agg_fn(name, INT, bound.null(INT), of=agg, order=())
        if type_ in (FLOAT, DOUBLE):  # grouped min and max of floats start from the largest finite value
            word = INT if type_ == FLOAT else BIGINT
            key = bound.udf("float_order", word, value, params=("signed",))
            found = bound.udf("float_of_order", type_, bound.agg_fn(name, word, key, of=agg, order=()))
            return found if WINDOWED in agg.data else _first_zero(agg, value, found)
        return bound.agg_fn(name, type_, value, of=agg, order=())

    return lower


def _first_zero(agg: Agg, value: Expr, found: Expr) -> Expr:
    """The least or largest float; of both zeros the first that came, as they are equal to Spark."""
    zero = bound.lit(0.0, agg.type)
    mine, theirs = (equals(bound.op("+", agg.type, e, zero), zero) for e in (found, value))
    first = bound.agg_fn("first_value", agg.type, value, where=filtered(agg, theirs), distinct=False)
    return bound.case(agg.type, (mine, first), otherwise=found)


def _bind_first(function: Function, site: Site) -> Expr:
    """first(x [, ignoreNulls]) and its kin; data holds (ignore, windowed)."""
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    ignore = site.ignore_nulls
    if len(site.args) == 2:
        told = site.args[1]
        if not isinstance(told, Lit) or not isinstance(told.value, bool):
            message = f"The second argument in {function.name} should be a boolean literal."
            raise UserError("_LEGACY_ERROR_TEMP_1210", message, span=site.span_of(1))
        ignore = told.value
    value = site.args[0]
    return make(function, site, (value,), value.type, True, (ignore, site.windowed))


def _first(name: str) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        value = args[0] if args[0].type != VOID else bound.null(INT)
        ignore, windowed = agg.data
        if windowed:
            if agg.where is not None:
                raise refused(agg, f"{agg.shown} with FILTER and OVER")
            return bound.agg_fn(name, agg.type, value, distinct=False, ignore_nulls=ignore)
        where = filtered(agg, not_null(value)) if ignore else agg.where
        order = agg.order
        if name == "first_value" and is_nested(value.type) and not order:
            # Of the first of all rows that are equal, the engine (DataFusion 55) is ten times as fast to keep nested values.
            order = (SortKey(Lit(INT, False, 0), False, True),)
        return bound.agg_fn(name, agg.type, value, where=where, distinct=False, order=order)

    return lower


def _bind_by(function: Function, site: Site) -> Expr:
    if len(site.args) == 3:
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"{site.shown} with three arguments is not supported.", span=site.span
        )
    if len(site.args) != 2:
        raise site.wrong_count("2")
    site.check_orderable(site.args[1].type)
    return make(function, site, site.args, site.args[0].type, True)


def _by(descending: bool) -> Lower:
    """The last row of the order wins, as Spark keeps the later one of equals."""

    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        value, key = args
        if key.type == VOID or value.type == VOID:
            raise refused(agg, f"{agg.shown} of NULL")
        where = filtered(agg, not_null(key))
        if key.nullable and raises(value):  # Spark does not evaluate what has no place in the order
            value = lazy_case(value.type, (not_null(key), value))
        if is_nested(key.type):  # the engine orders no such keys as Spark does
            key = bound.udf("row_key", BINARY, key)
        elif key.type in (FLOAT, DOUBLE):
            key = bound.udf("float_order", INT if key.type == FLOAT else BIGINT, key)
        order = (SortKey(key, descending, True),)
        return bound.agg_fn("last_value", agg.type, value, where=where, distinct=False, order=order)

    return lower


def _shown_first(agg: Any, names: list[str]) -> str:
    return f"{agg.shown}({distinct(agg)}{names[0]})"


def distinct(agg: Any) -> str:
    """What stands before the operands of an aggregate in its column's name."""
    return "DISTINCT " if agg.distinct else ""


def _bind_bits(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    type_ = INT if site.args[0].type == VOID else site.args[0].type
    if not is_integral(type_):
        raise site.mismatch(0, "INTEGRAL")
    return make(function, site, (coerced(site.args[0], type_),), type_, True)


def not_windowed(row: Function) -> Function:
    """The row whose binding refuses OVER."""

    def bind(function: Function, site: Site) -> Expr:
        if site.windowed:
            raise UnsupportedError("UNSUPPORTED_FEATURE", f"{site.shown} with OVER is not supported.", span=site.span)
        return row.bind(function, site) if row.bind is not None else bind_call(replace(function, bind=None), site)

    return replace(row, bind=bind)


def aggregate(name: str, **row: Any) -> Function:
    return Function(name, kind="aggregate", **row)


def _boolean(name: str, *aliases: str) -> Function:
    return aggregate(
        name,
        params=(param(BOOLEAN),),
        returns=BOOLEAN,
        nullable="always",
        lower=native_aggregate(name),
        aliases=aliases,
    )


_ROWS: tuple[Function, ...] = (
    aggregate("count", bind=_bind_count, lower=_count),
    aggregate("count_if", params=(param(BOOLEAN),), returns=BIGINT, nullable="never", lower=_count_if),
    aggregate("approx_count_distinct", bind=_bind_approx_count, lower=_approx_count, shown=_shown_first),
    aggregate("sum", bind=_bind_total, lower=_sum(False)),
    aggregate("try_sum", bind=_bind_total, lower=_sum(True)),
    aggregate("avg", bind=_bind_total, lower=_avg(False), aliases=("mean",)),
    aggregate("try_avg", bind=_bind_total, lower=_avg(True)),
    aggregate("min", bind=_bind_ordered, lower=_extreme("min")),
    aggregate("max", bind=_bind_ordered, lower=_extreme("max")),
    aggregate(
        "first",
        bind=_bind_first,
        lower=_first("first_value"),
        aliases=("first_value",),
        shown=_shown_first,
        ordered=True,
    ),
    aggregate("any_value", bind=_bind_first, lower=_first("first_value"), shown=_shown_first, ordered=True),
    aggregate(
        "last", bind=_bind_first, lower=_first("last_value"), aliases=("last_value",), shown=_shown_first, ordered=True
    ),
    aggregate("max_by", bind=_bind_by, lower=_by(False)),
    aggregate("min_by", bind=_bind_by, lower=_by(True)),
    _boolean("bool_and", "every"),
    _boolean("bool_or", "any", "some"),
    aggregate("bit_and", bind=_bind_bits, lower=native_aggregate("bit_and")),
    aggregate("bit_or", bind=_bind_bits, lower=native_aggregate("bit_or")),
    aggregate("bit_xor", bind=_bind_bits, lower=native_aggregate("bit_xor")),
)

ROWS = tuple(not_windowed(row) if row.name in NOT_AS_WINDOW else row for row in _ROWS)
