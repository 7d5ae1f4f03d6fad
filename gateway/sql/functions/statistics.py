"""Rows of statistical aggregates: moments, pairs, percentiles, mode; list kernels where the engine means something else."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from gateway.errors import UnsupportedError, UserError, unsupported
from gateway.sql.functions.aggregates import (
    NOT_AS_WINDOW,
    aggregate,
    collected,
    complete,
    filtered,
    mean_of,
    not_windowed,
)
from gateway.sql.functions.constants import constant, folded
from gateway.sql.functions.lowerings import engine_cast, equals, lazy_case, not_null, one_nan, raises, refused
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import WINDOWED, Context, Function, Lower, Site, make, param
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import Agg, AggFn, Call, Cast, Expr, Lit
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    MAX_PRECISION,
    STRING,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    array,
    decimal,
    has_map,
    is_datetime,
    is_integral,
    is_interval,
    is_nested,
)

_DOUBLE = param(DOUBLE)


#: Statistics that Spark puts together from parts, but for windows. It begins with a part of no values, whose share of the
#: spread, 0 * (mean * mean / count), is NaN where that overflows (CentralMomentAgg, Covariance: mergeExpressions).
MERGED = frozenset((
    "stddev_samp", "stddev_pop", "var_samp", "var_pop", "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept",
    "regr_r2", "regr_sxx", "regr_sxy", "regr_syy",
))  # fmt: skip


def _nan_if(*conditions: Expr) -> Expr:
    """What makes a number NaN where a condition holds, and leaves it as it is elsewhere."""
    whens = ((c, bound.lit(float("nan"), DOUBLE)) for c in conditions)
    return bound.case(DOUBLE, *whens, otherwise=bound.lit(0.0, DOUBLE))


def _overflows(left: Expr, right: Expr, count: Expr) -> Expr:
    """Whether the product of two means by the count is beyond DOUBLE."""
    share = bound.op("*", DOUBLE, left, bound.op("/", DOUBLE, right, engine_cast(count, DOUBLE)))
    return bound.op(">", BOOLEAN, bound.fn("abs", DOUBLE, share), bound.lit(sys.float_info.max, DOUBLE))


def _is_small(value: Expr) -> bool:
    """Whether it is no number of DOUBLE's full range, but a cast of a smaller type."""
    return isinstance(value, Cast) and value.arg.type != DOUBLE and plain(value.arg.type) != STRING


def _moment(native_name: str, list_name: str) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        if agg.distinct:
            return bound.udf(list_name, DOUBLE, collected(agg, args[0]))
        native = bound.agg_fn(native_name, DOUBLE, args[0], of=agg, order=())
        if _is_small(agg.args[0]):
            return native
        # The engine's spread gets below zero where values are further apart than DOUBLE holds: infinite to it, NaN to Spark.
        wrong: list[Expr] = [bound.op("<", BOOLEAN, native, bound.lit(0.0, DOUBLE))]
        if WINDOWED not in agg.data:
            mean = bound.agg_fn("avg", DOUBLE, args[0], of=agg, order=())
            count = bound.agg_fn("count", BIGINT, args[0], of=agg, order=())
            wrong += [_overflows(mean, mean, count), bound.fn("isnan", BOOLEAN, mean)]
        elif native_name.endswith(
            "_pop"
        ):  # 0 for a single value to the engine, NaN to Spark if that is NaN or infinite
            most = bound.agg_fn("max", DOUBLE, args[0], of=agg, order=())
            native_ = bound.op("+", DOUBLE, native, bound.op("-", DOUBLE, most, most))
            return one_nan(bound.op("+", DOUBLE, native_, _nan_if(*wrong)))
        return one_nan(bound.op("+", DOUBLE, native, _nan_if(*wrong)))

    return lower


def _of_list(list_name: str) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.udf(list_name, DOUBLE, collected(agg, args[0]))

    return lower


def _pairs(agg: Agg, name: str, args: tuple[Expr, ...]) -> AggFn:
    return bound.agg_fn(name, DOUBLE, *args, of=agg, order=())


def _single(agg: Agg) -> None:
    if agg.distinct:
        raise refused(agg, f"{agg.shown}(DISTINCT …)")


def _spread(name: str) -> Lower:
    """covar_*, regr_sxx and their kin, as Spark puts them together."""
    sides = {"regr_sxx": ("regr_avgx", "regr_avgx"), "regr_syy": ("regr_avgy", "regr_avgy")}

    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        _single(agg)
        native = _pairs(agg, name, args)
        if WINDOWED in agg.data or all(map(_is_small, agg.args)):
            return native
        left, right = (_pairs(agg, side, args) for side in sides.get(name, ("regr_avgx", "regr_avgy")))
        far = _overflows(left, right, _pairs(agg, "regr_count", args))
        return one_nan(bound.op("+", DOUBLE, native, _nan_if(far)))

    return lower


_SXX, _SYY, _SXY = (_spread(name) for name in ("regr_sxx", "regr_syy", "regr_sxy"))


def _is_nan(value: Expr) -> Expr:
    return bound.fn("isnan", BOOLEAN, value)


def _corr(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    _single(agg)
    spread = bound.op("*", DOUBLE, _SXX(agg, args, context), _SYY(agg, args, context))
    count = engine_cast(_pairs(agg, "regr_count", args), BIGINT)
    value: Expr = _pairs(agg, "corr", args)
    if WINDOWED not in agg.data:  # of groups the engine subtracts sums of products: large values lose their digits
        value = bound.op("/", DOUBLE, _SXY(agg, args, context), bound.fn("sqrt", DOUBLE, spread))
    return bound.udf("correlation", DOUBLE, value, count, spread, raises=True)


def _regr_slope(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    """NaN where the spread is, also of a single pair, of which the engine knows no slope."""
    _single(agg)
    unknown = bound.op("OR", BOOLEAN, _is_nan(_SXX(agg, args, context)), _is_nan(_SXY(agg, args, context)))
    flat = equals(_SXX(agg, args, context), bound.lit(0.0, DOUBLE))
    nan = bound.lit(float("nan"), DOUBLE)
    return bound.case(DOUBLE, (flat, bound.null(DOUBLE)), (unknown, nan), otherwise=_pairs(agg, "regr_slope", args))


def _regr_count(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    _single(agg)
    if any(map(raises, args)):
        return bound.agg_fn("count", BIGINT, complete(args), of=agg, order=())
    known = [not_null(a) for a in args]
    return bound.agg_fn("count", BIGINT, bound.lit(1, INT), of=agg, where=filtered(agg, *known), order=())


def _regr_r2(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    _single(agg)
    zero = bound.lit(0.0, DOUBLE)
    across, along = _SXX(agg, args, context), _SYY(agg, args, context)
    unknown = bound.op("OR", BOOLEAN, _is_nan(across), _is_nan(along))
    return bound.case(
        DOUBLE,
        (equals(across, zero), bound.null(DOUBLE)),
        (equals(along, zero), bound.lit(1.0, DOUBLE)),
        (unknown, bound.lit(float("nan"), DOUBLE)),
        otherwise=_pairs(agg, "regr_r2", args),
    )


def _regr_intercept(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    slope = bound.op("*", DOUBLE, _regr_slope(agg, args, context), _pairs(agg, "regr_avgx", args))
    return bound.op("-", DOUBLE, _pairs(agg, "regr_avgy", args), slope)


def _bind_regr_mean(function: Function, site: Site) -> Expr:
    """regr_avgx / regr_avgy: avg of one side over the complete pairs."""
    if len(site.args) != 2:
        raise site.wrong_count("2")
    args = []
    for i, arg in enumerate(site.args):
        source = implicit_type(arg.type, ["numeric"])
        if source is None:
            raise site.mismatch(i, "NUMERIC")
        args.append(coerced(arg, source))
    side = args[0 if function.name == "regr_avgy" else 1].type
    type_: DataType = DOUBLE
    if isinstance(side, DecimalType):
        type_ = decimal(min(MAX_PRECISION, side.precision + 4), min(MAX_PRECISION, side.scale + 4))
    return make(function, site, tuple(args), type_, True)


def _regr_mean(side: int) -> Lower:
    def lower(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        _single(agg)
        paired = Agg(agg.type, True, agg.fn, args, where=filtered(agg, *(not_null(a) for a in args)), span=agg.span)
        return mean_of(paired, args[side], agg.type, False)

    return lower


def _shares(site: Site, index: int) -> tuple[tuple[float, ...], bool]:
    """The constant percentages and whether they are an array."""
    given = site.args[index].type
    if not isinstance(given, ArrayType):
        if implicit_type(given, [DOUBLE]) is None or is_datetime(given):
            raise site.mismatch(index, "DOUBLE or ARRAY<DOUBLE>")
        return (_share(site, index, constant(site, index, coerced(site.args[index], DOUBLE))),), False
    arg = folded(site.args[index])
    while isinstance(arg, Cast):
        arg = arg.arg
    if not isinstance(arg, Call) or arg.fn != "array":
        raise site.not_constant(index, "percentage")
    if not arg.args:  # of which Spark makes no array
        raise unsupported(f"{site.shown} of no percentage", site.span_of(index))
    shares = []
    for item in map(folded, arg.args):
        if not isinstance(item, Lit):
            raise site.not_constant(index, "percentage")
        if isinstance(item.value, (str, bool)) or item.value is None:
            raise site.mismatch(index, "DOUBLE or ARRAY<DOUBLE>")
        shares.append(_share(site, index, item.value))
    return tuple(shares), True


def _share(site: Site, index: int, value: Any) -> float:
    if value is None:
        raise UserError(
            "DATATYPE_MISMATCH.UNEXPECTED_NULL", "The percentage must not be NULL.", span=site.span_of(index)
        )
    share = float(value)
    if not 0.0 <= share <= 1.0:
        raise UserError(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the percentage must be between [0.0, 1.0] '
            f"(current value = {share}).",
            span=site.span_of(index),
        )
    return share


def _unordered(agg: Expr) -> Expr:
    """Without WITHIN GROUP: the order has become data."""
    assert isinstance(agg, Agg)
    return replace(agg, order=())


def _check_values(site: Site, given: DataType) -> None:
    if not is_interval(given) and implicit_type(given, ["numeric"]) is None:
        raise site.mismatch(0, "NUMERIC or ANSI INTERVAL")


def _bind_percentile(function: Function, site: Site) -> Expr:
    """median, percentile, percentile_cont, percentile_disc; data holds (percentages, is array, discrete, descending)."""
    name, descending = function.name, False
    values: tuple[Expr, ...]
    shown: tuple[Expr, ...] = ()
    if name in ("percentile_cont", "percentile_disc"):
        if len(site.args) != 1:
            raise site.wrong_count("1")
        if len(site.order) != 1:
            raise UserError(
                "INVALID_WITHIN_GROUP_EXPRESSION.WRONG_NUM_ORDERINGS"
                if site.order
                else "INVALID_WITHIN_GROUP_EXPRESSION.WITHIN_GROUP_MISSING",
                f"The function `{site.shown}` requires WITHIN GROUP (ORDER BY …) with one expression.",
                span=site.span,
            )
        if site.distinct:
            raise UserError(
                "INVALID_WITHIN_GROUP_EXPRESSION.DISTINCT_UNSUPPORTED",
                f"Invalid function `{site.shown}` with WITHIN GROUP. The function does not support DISTINCT.",
                span=site.span,
            )
        _check_values(site, site.order[0].expr.type)
        shares, is_array = _shares(site, 0)
        values, descending = (site.order[0].expr,), site.order[0].descending
        shown = site.args
    elif name == "median":
        if len(site.args) != 1:
            raise site.wrong_count("1")
        (shares, is_array), values = ((0.5,), False), site.args
    else:
        if not 2 <= len(site.args) <= 3:
            raise site.wrong_count("[2, 3]")
        _check_values(site, site.args[0].type)
        if len(site.args) == 3 and not is_integral(site.args[2].type) and site.args[2].type != VOID:
            raise site.mismatch(2, "INTEGRAL")
        if len(site.args) == 3 and not (isinstance(site.args[2], Lit) and site.args[2].value == 1):
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE", "percentile with frequencies is not supported.", span=site.span
            )
        shares, is_array = _shares(site, 1)
        values, shown = site.args[:1], (site.args[1], Lit(BIGINT, False, 1))
    _check_values(site, values[0].type)
    source = implicit_type(values[0].type, ["numeric"])
    if source is None:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"{site.shown} of intervals is not supported.", span=site.span)
    value = coerced(coerced(values[0], source), DOUBLE)
    type_: DataType = array(DOUBLE, False) if is_array else DOUBLE
    data = (shares, is_array, name == "percentile_disc", descending)
    return _unordered(make(function, site, (value, *shown), type_, True, data))


def _percentile(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("list_percentile", agg.type, collected(agg, args[0]), params=agg.data)


def _shown_ordered(agg: Any, names: list[str]) -> str:
    """percentile_cont(0.5) WITHIN GROUP (ORDER BY v): the value is the first argument, the share the second."""
    direction = " DESC" if agg.data[3] else ""
    return f"{agg.shown}({names[1]}) WITHIN GROUP (ORDER BY {names[0]}{direction})"


def _bind_approx_percentile(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    given = site.args[0].type
    source = given if given.name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ") or is_interval(given) else None
    source = source or implicit_type(given, ["numeric"])
    if source is None:
        raise site.mismatch(0, "NUMERIC or DATE or TIMESTAMP or ANSI INTERVAL")
    shares, is_array = _shares(site, 1)
    accuracy: Expr = Lit(INT, False, 10000)
    shown: Expr = site.args[2] if len(site.args) == 3 else accuracy
    if len(site.args) == 3:
        if not is_integral(shown.type) and shown.type != VOID:
            raise site.mismatch(2, "INTEGRAL")
        accuracy = Lit(BIGINT, False, constant(site, 2))
        if accuracy.value is None:
            message = "The accuracy must not be NULL."
            raise UserError("DATATYPE_MISMATCH.UNEXPECTED_NULL", message, span=site.span_of(2))
        if not 0 < accuracy.value <= 2147483647:
            raise UserError(
                "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
                f'Cannot resolve "{site.shown}" due to data type mismatch: the accuracy must be between (0, 2147483647] '
                f"(current value = {accuracy.value}).",
                span=site.span_of(2),
            )
    type_: DataType = array(source, False) if is_array else source
    value = coerced(site.args[0], source)
    assert isinstance(accuracy, Lit)
    return make(function, site, (value, site.args[1], shown), type_, True, (shares, is_array, accuracy.value))


def _approx_percentile(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("list_quantile", agg.type, collected(agg, args[0]), params=agg.data)


def _check_deterministic(site: Site, given: Expr) -> None:
    """What stands behind the value of mode(): a constant that is TRUE or FALSE."""
    span = site.span_of(1)
    if not is_foldable(given):
        message = "The function `mode` requires the parameter `deterministic` to be a foldable expression of the type "
        raise UserError("NON_FOLDABLE_ARGUMENT", f'{message}"BOOLEAN".', span=span)
    if given.type == VOID or (given.type == BOOLEAN and constant(site, 1) is None):
        message = "The parameter `deterministic` of mode must not be null."
        raise UserError("DATATYPE_MISMATCH.UNEXPECTED_NULL", message, span=span)
    if given.type != BOOLEAN:
        message = f'The second parameter of `mode` requires the "BOOLEAN" type, but it has the type "{given.type.sql}".'
        raise UserError("UNEXPECTED_INPUT_TYPE", message, span=span)


def _bind_mode(function: Function, site: Site) -> Expr:
    """mode(x [, deterministic]) and mode() WITHIN GROUP (ORDER BY x); data holds how ties are decided."""
    ties = "any"
    if site.distinct:
        raise UserError(
            "INVALID_WITHIN_GROUP_EXPRESSION.DISTINCT_UNSUPPORTED",
            "Invalid WITHIN GROUP expression: mode does not support DISTINCT.",
            span=site.span,
        )
    if site.order:
        if site.args or len(site.order) != 1:
            wanted = 0 if site.args else 1
            raise UserError(
                "INVALID_WITHIN_GROUP_EXPRESSION.WRONG_NUM_ORDERINGS",
                f"Invalid function `mode` with WITHIN GROUP. The function requires {wanted} orderings in WITHIN GROUP but "
                f"got {len(site.order)}.",
                span=site.span,
            )
        value = site.order[0].expr
        ties = "high" if site.order[0].descending else "low"
    else:
        if not site.args:
            raise UserError(
                "INVALID_WITHIN_GROUP_EXPRESSION.WITHIN_GROUP_MISSING",
                "Invalid function `mode` with WITHIN GROUP. WITHIN GROUP is required for the function.",
                span=site.span,
            )
        if len(site.args) > 2:
            raise site.wrong_count("[0, 1, 2]")
        value = site.args[0]
        if len(site.args) == 2:
            _check_deterministic(site, site.args[1])
            ties = "low" if constant(site, 1) else "any"
    if has_map(value.type):
        raise unsupported("mode of a MAP", site.span)
    ordered = bool(site.order) or ties == "low"
    return _unordered(make(function, site, (value,), value.type, True, (ties, ordered)))


def _mode(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    if is_nested(args[0].type) or args[0].type == VOID:
        raise refused(agg, f"{agg.shown} of {args[0].type.sql}")
    return bound.udf("list_mode", agg.type, collected(agg, args[0]), params=agg.data[:1])


def _shown_mode(agg: Any, names: list[str]) -> str:
    ties, ordered = agg.data
    if not ordered:
        return f"{agg.shown}({names[0]})"
    # Spark rewrites the deterministic form to a descending order and takes its last value
    return f"mode() WITHIN GROUP (ORDER BY {names[0]}{' DESC' if ties == 'low' else ''})"


def _sparing(name: str, lower: Lower) -> Lower:
    """With the second side of a pair evaluated only where the first is not NULL; those of the slope change places."""
    first, second = (1, 0) if name in ("regr_slope", "regr_intercept") else (0, 1)

    def spared(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
        if raises(args[second]):
            sides = list(args)
            sides[second] = lazy_case(args[second].type, (not_null(args[first]), args[second]))
            args = tuple(sides)
        return lower(agg, args, context)

    return spared


#: Arguments that Spark only asks whether they are NULL, by position.
_TESTED = {"regr_count": (0, 1), "regr_avgx": (0,), "regr_sxx": (0,), "regr_avgy": (1,), "regr_syy": (1,)}


def untouched(agg: Agg) -> list[int]:
    """The arguments of an aggregate that are only asked whether they are NULL and never are."""
    positions = range(len(agg.args)) if agg.fn == "count" and not agg.distinct else _TESTED.get(agg.fn, ())
    return [i for i in positions if not agg.args[i].nullable]


def tested(agg: Agg, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The lowered `args` of an aggregate, without what raises for nothing."""
    if agg.fn in _TESTED and agg.fn != "regr_count" and any(isinstance(a, Lit) and a.value is None for a in args):
        return tuple(bound.null(a.type) for a in args)  # to Spark's optimizer it is an aggregate of NULL
    kept = list(args)
    for i in untouched(agg):
        if raises(args[i]):
            kept[i] = bound.lit(1.0, DOUBLE)
    if _TESTED.get(agg.fn) == (1,) and not agg.args[0].nullable and raises(args[0]):
        kept[0] = lazy_case(args[0].type, (not_null(kept[1]), args[0]))
    return tuple(kept)


def windowed(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The lowered arguments of an aggregate with OVER: Spark computes all of them below it, whatever is NULL."""
    raising = [a for a in args if raises(a)]
    if len(args) < 2 or not raising:
        return args
    typed = [a if a.type != VOID else bound.null(INT) for a in args]
    return tuple(bound.udf("last", a.type, *raising, a, nullable=a.nullable, raises=True) for a in typed)


def _statistic(name: str, lower: Lower, *aliases: str, arguments: int = 1) -> Function:
    if arguments == 2:
        lower = _sparing(name, lower)
    return aggregate(
        name, params=(_DOUBLE,) * arguments, returns=DOUBLE, nullable="always", lower=lower, aliases=aliases
    )


_ROWS: tuple[Function, ...] = (
    _statistic("stddev_samp", _moment("stddev_samp", "list_stddev_samp"), "stddev", "std"),
    _statistic("stddev_pop", _moment("stddev_pop", "list_stddev_pop")),
    _statistic("var_samp", _moment("var_samp", "list_var_samp"), "variance"),
    _statistic("var_pop", _moment("var_pop", "list_var_pop")),
    _statistic("skewness", _of_list("list_skewness")),
    _statistic("kurtosis", _of_list("list_kurtosis")),
    _statistic("covar_pop", _spread("covar_pop"), arguments=2),
    _statistic("covar_samp", _spread("covar_samp"), arguments=2),
    _statistic("corr", _corr, arguments=2),
    aggregate("regr_count", params=(_DOUBLE, _DOUBLE), returns=BIGINT, nullable="never", lower=_regr_count),
    aggregate("regr_avgx", bind=_bind_regr_mean, lower=_sparing("regr_avgx", _regr_mean(1))),
    aggregate("regr_avgy", bind=_bind_regr_mean, lower=_regr_mean(0)),
    _statistic("regr_slope", _regr_slope, arguments=2),
    _statistic("regr_intercept", _regr_intercept, arguments=2),
    _statistic("regr_r2", _regr_r2, arguments=2),
    _statistic("regr_sxx", _spread("regr_sxx"), arguments=2),
    _statistic("regr_sxy", _spread("regr_sxy"), arguments=2),
    _statistic("regr_syy", _spread("regr_syy"), arguments=2),
    aggregate("median", bind=_bind_percentile, lower=_percentile),
    aggregate("percentile", bind=_bind_percentile, lower=_percentile),
    aggregate("percentile_cont", bind=_bind_percentile, lower=_percentile, shown=_shown_ordered),
    aggregate("percentile_disc", bind=_bind_percentile, lower=_percentile, shown=_shown_ordered),
    aggregate(
        "percentile_approx", bind=_bind_approx_percentile, lower=_approx_percentile, aliases=("approx_percentile",)
    ),
    aggregate("mode", bind=_bind_mode, lower=_mode, shown=_shown_mode),
)

ROWS = tuple(not_windowed(row) if row.name in NOT_AS_WINDOW else row for row in _ROWS)
