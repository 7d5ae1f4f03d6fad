"""Interval arithmetic: the primitives that binding of operators calls by name, and the constructors of ANSI intervals."""

from __future__ import annotations

from gateway import instants
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, param
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import DATE, DAY_TIME, INT, TIMESTAMP, YEAR_MONTH, DataType, decimal


def _constants(*args: Expr) -> list[int] | None:
    """The whole-number values of constant arguments."""
    values = [a.value for a in args if isinstance(a, Lit)]
    return values if len(values) == len(args) and all(isinstance(v, int) for v in values) else None


def folded_add(call: Call, args: tuple[Expr, ...], zone: str) -> Lit | None:
    """A constant date or timestamp moved by a constant, for pruning; None where that is not certain."""
    values = _constants(*args)
    if values is None:
        return None
    moment, count = values
    if call.type == TIMESTAMP and instants.known_zone(zone).region is not None:
        return None
    if call.fn.endswith("months"):
        if abs(count) > 12_000 or call.type == TIMESTAMP:
            return None
        days, rest = (moment, 0) if call.type == DATE else divmod(moment, instants.MICROS_PER_DAY)
        import numpy as np

        moved = int(instants.add_months(np.array([days]), np.array([count]))[0])
        return bound.lit(moved if call.type == DATE else moved * instants.MICROS_PER_DAY + rest, call.type)
    total = moment + count
    limit = 2**31 if call.type == DATE else 2**62
    return bound.lit(total, call.type) if abs(total) < limit else None


def _add(impl: str, zoned: bool) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        folded = folded_add(call, args, context.time_zone)
        if folded is not None:
            return folded
        params = (context.time_zone,) if zoned and call.type == TIMESTAMP else ("UTC",) if zoned else ()
        return bound.udf(impl, call.type, *args, params=params, nullable=call.nullable, raises=True)

    return lower


def _subtract_dates(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("sub_dates", call.type, *args, nullable=call.nullable, raises=True)


def _subtract_timestamps(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    zone = context.time_zone if args[0].type == TIMESTAMP else "UTC"
    return bound.udf("sub_timestamps", call.type, *args, params=(zone,), nullable=call.nullable, raises=True)


def _scaled(symbol: str, is_try: bool = False) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.udf(
            "interval_scale", call.type, *args, params=(symbol, is_try), nullable=call.nullable, raises=not is_try
        )

    return lower


def _summed(symbol: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.udf("interval_sum", call.type, *args, params=(symbol,), nullable=call.nullable, raises=True)

    return lower


def _negated(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    (arg,) = args
    if isinstance(arg, Lit) and isinstance(arg.value, int) and abs(arg.value) < 2**31:
        return bound.lit(-arg.value, call.type)
    return bound.udf("interval_negate", call.type, arg, nullable=call.nullable, raises=True)


def _made(impl: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.udf(impl, call.type, *args, nullable=call.nullable, raises=True)

    return lower


def _zeros(type_: DataType, count: int) -> tuple[Lit, ...]:
    return tuple(Lit(type_, False, 0) for _ in range(count))


_SECONDS = decimal(18, 6)

ROWS: tuple[Function, ...] = (
    Function("_date_add_days", kind="operator", lower=_add("date_add_days", zoned=False)),
    Function("_date_add_months", kind="operator", lower=_add("date_add_months", zoned=False)),
    Function("_ts_add_months", kind="operator", lower=_add("ts_add_months", zoned=True)),
    Function("_ntz_add_months", kind="operator", lower=_add("ts_add_months", zoned=True)),
    Function("_ts_add_micros", kind="operator", lower=_add("ts_add_micros", zoned=True)),
    Function("_ntz_add_micros", kind="operator", lower=_add("ts_add_micros", zoned=True)),
    Function("_sub_dates", kind="operator", lower=_subtract_dates),
    Function("_sub_timestamps", kind="operator", lower=_subtract_timestamps),
    Function("_interval_mul", kind="operator", lower=_scaled("*")),
    Function("_interval_div", kind="operator", lower=_scaled("/")),
    Function("_interval_add", kind="operator", lower=_summed("+")),
    Function("_interval_sub", kind="operator", lower=_summed("-")),
    Function("_interval_neg", kind="operator", lower=_negated),
    Function(
        "make_dt_interval",
        params=(param(INT), param(INT), param(INT), param(_SECONDS)),
        optional=4,
        defaults=(*_zeros(INT, 3), Lit(_SECONDS, False, 0, "0.000000")),
        returns=DAY_TIME,
        lower=_made("make_dt_interval"),
    ),
    Function(
        "make_ym_interval",
        params=(param(INT), param(INT)),
        optional=2,
        defaults=_zeros(INT, 2),
        returns=YEAR_MONTH,
        lower=_made("make_ym_interval"),
    ),
)
