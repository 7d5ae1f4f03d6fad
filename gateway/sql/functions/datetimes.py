"""Date and time functions. Fields of dates are DataFusion's; all that reads the session's zone or Java's patterns is ours."""

from __future__ import annotations

import math
from collections.abc import Callable

from gateway import instants
from gateway.errors import UnsupportedError, UserError
from gateway.sql.functions.intervals import folded_add
from gateway.sql.functions.lowerings import both, raises
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, coerce_args, make, nullable_of, param
from gateway.sql.typed.coerce import can_cast, coerced
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Cast, Expr, Lit
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    DataType,
    DecimalType,
    decimal,
    is_fractional,
    is_integral,
)

DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"


def _text(value: str) -> Lit:
    return Lit(STRING, False, value)


def kernel(impl: str, *, zoned: bool = False, raises: bool = False, params: tuple[object, ...] = ()) -> Lower:
    """Our function `impl`; with `zoned` the session's zone is its first constant."""

    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        constants = ((context.time_zone,) if zoned else ()) + params
        return bound.udf(impl, call.type, *args, params=constants, nullable=call.nullable, raises=raises)

    return lower


def wall_clock(arg: Expr, context: Context) -> Expr:
    """A DATE or TIMESTAMP_NTZ itself; a TIMESTAMP as the wall clock of the session's zone."""
    if arg.type != TIMESTAMP or instants.known_zone(context.time_zone) == instants.UTC:
        return arg
    return bound.udf("local_time", TIMESTAMP_NTZ, arg, params=(context.time_zone,), nullable=arg.nullable)


_UNITS = {
    "YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "week", "DAY": "day", "DAYOFYEAR": "dayofyear",
    "HOUR": "hour", "MINUTE": "minute", "SECOND": "second", "MILLISECOND": "millisecond", "MICROSECOND": "microsecond",
}  # fmt: skip


def _unit(site: Site, *refused: str) -> str:
    """The unit that stands as the first of three arguments, and is none of `refused`."""
    first = site.args[0]
    word = first.value if isinstance(first, Lit) and first.text is not None else None
    unit = _UNITS.get(word.upper()) if isinstance(word, str) else None
    if unit is None:
        raise _without_unit(site, "2")
    if unit in refused:
        raise UserError(
            "INVALID_PARAMETER_VALUE.DATETIME_UNIT",
            f"The value of parameter(s) `unit` in `{site.shown}` is invalid: expects one of the units without quotes YEAR, "
            "QUARTER, MONTH, WEEK, DAY, DAYOFYEAR, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND, but got the string "
            f"literal '{word}'.",
            span=site.span_of(0),
        )
    return unit


def _without_unit(site: Site, count: str) -> UserError:
    """A call without a unit: only Spark's parser knows of functions that have one."""
    if site.shown.lower() in ("timestampadd", "timestampdiff", "timediff"):
        message = f"Cannot resolve routine `{site.shown}`, which begins with a unit and has three arguments."
        return UserError("UNRESOLVED_ROUTINE", message, span=site.span)
    return site.wrong_count(count)


def _bind_timestamp_add(function: Function, site: Site) -> Expr:
    if len(site.args) != 3:
        raise _without_unit(site, "3")
    unit = _unit(site)
    typed = Function(function.name, (param(STRING), param(BIGINT), param(TIMESTAMP, TIMESTAMP_NTZ)))
    args = coerce_args(typed, site)
    call = make(function, site, args, args[2].type, args[1].nullable or args[2].nullable, (unit,))
    assert isinstance(call, Call)
    call.shown = "timestampadd"
    return call


def _timestamp_add(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf(
        "timestamp_add",
        call.type,
        *args[1:],
        params=(context.time_zone, call.data[0]),
        nullable=call.nullable,
        raises=True,
    )


def _bind_timestamp_diff(function: Function, site: Site) -> Expr:
    if len(site.args) != 3:
        raise _without_unit(site, "3")
    unit = _unit(site, "dayofyear")
    typed = Function(function.name, (param(STRING), param(TIMESTAMP), param(TIMESTAMP)))
    args = coerce_args(typed, site)
    call = make(function, site, args, BIGINT, args[1].nullable or args[2].nullable, (unit,))
    assert isinstance(call, Call)
    call.shown = "timestampdiff"
    return call


def _timestamp_diff(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf(
        "timestamp_diff",
        call.type,
        *args[1:],
        params=(context.time_zone, call.data[0]),
        nullable=call.nullable,
        raises=True,
    )


_DAY_COUNTS = (TINYINT, SMALLINT, INT, STRING, VOID)
_DAYS = (param(DATE), param(INT, "integral"))


def _bind_date_add(function: Function, site: Site) -> Expr:
    """date_add(date, days); with a unit in front it is timestampadd."""
    if len(site.args) == 3:
        return _bind_timestamp_add(TIMESTAMP_ADD, site)
    if len(site.args) == 2 and plain(site.args[1].type) not in _DAY_COUNTS:
        raise site.mismatch(1, "INT or SMALLINT or TINYINT")
    args = coerce_args(Function(function.name, _DAYS), site)
    call = make(function, site, args, DATE, any(a.nullable for a in args))
    assert isinstance(call, Call)
    call.shown = "date_add" if function.name != "date_sub" else call.shown
    return call


def _bind_date_sub(function: Function, site: Site) -> Expr:
    if len(site.args) == 3:
        raise site.wrong_count("2")
    return _bind_date_add(function, site)


def _date_add(sign: int) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        moment, count = args
        if isinstance(count, Lit) and isinstance(count.value, int):
            steps = bound.lit(sign * count.value, INT)
            folded = folded_add(call, (moment, steps), context.time_zone)
            if folded is not None:
                return folded
        return bound.udf(
            "date_add_wrapping", DATE, moment, bound.cast(count, INT), params=(sign,), nullable=call.nullable
        )

    return lower


def _bind_datediff(function: Function, site: Site) -> Expr:
    if len(site.args) == 3:
        return _bind_timestamp_diff(TIMESTAMP_DIFF, site)
    args = coerce_args(Function(function.name, (param(DATE), param(DATE))), site)
    return make(function, site, args, INT, any(a.nullable for a in args))


def _datediff(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    left, right = (bound.cast(bound.EngineCast(INT, a.nullable, a), INT) for a in args)
    return bound.op("-", INT, left, right, nullable=call.nullable)


_PARSED = (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def _bind_parsed(function: Function, site: Site) -> Expr:
    """to_date, to_timestamp and kin: (text, pattern) parses, anything else is a cast."""
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    target = DATE if "date" in function.name else TIMESTAMP_NTZ if "ntz" in function.name else TIMESTAMP
    is_try = function.name.startswith("try_")
    if len(site.args) == 1 and can_cast(plain(site.args[0].type), target):
        args = list(site.args)
    else:
        params = (param(*_PARSED), param(STRING))[: len(site.args)]
        args = list(coerce_args(Function(function.name, params), site))
    t = plain(args[0].type)
    parse = len(args) == 2 and t == STRING
    crossing = t in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and (t == TIMESTAMP_NTZ) != (target == TIMESTAMP_NTZ)
    if (
        len(args) == 2 and crossing and site.context.time_zone not in ("UTC", "Etc/UTC")
    ):  # Spark takes the microseconds as they are
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE",
            f"`{function.name}` of a {t.sql} with a pattern, in a time zone other than UTC, is not supported.",
            span=site.span,
        )
    if not parse and t != target:
        casts = len(args) == 1 or is_try  # with a pattern it is no cast to Spark
        made = coerced(args[0], target).nullable if casts else args[0].nullable
        args[0] = Cast(target, made, args[0], implicit=True, is_try=is_try)
    nullable = (is_try and len(args) == 2) or any(a.nullable for a in args)
    return make(function, site, tuple(args), target, nullable, ("parse" if parse else "cast",))


def _parsed(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if call.data[0] == "cast":
        return _saturated(args[0])  # the pattern is not looked at
    is_try = call.fn.startswith("try_")
    between = TIMESTAMP if call.type == DATE else call.type
    function = "try_to_date" if call.type == DATE else "try_to_timestamp"
    stamp = bound.udf(
        "parse_datetime",
        between,
        *args,
        params=(context.time_zone, is_try, function),
        nullable=call.nullable,
        raises=not is_try,
    )
    return _as_date(stamp, context) if call.type == DATE else stamp


_LAST = 2**63 - 1


def _saturated(stamp: Expr) -> Expr:
    """try_to_timestamp of a double: a cast with ANSI off, which ends at the last microsecond, where TRY_CAST has NULL."""
    if not (
        isinstance(stamp, bound.Udf) and stamp.impl == "cast" and stamp.params[1] and is_fractional(stamp.args[0].type)
    ):
        return stamp
    seconds, last, infinity = bound.cast(stamp.args[0], DOUBLE), _LAST / instants.MICROS_PER_SECOND, math.inf

    def beyond(edge: float, end: float) -> Expr:
        sign = "<" if edge > 0 else ">"
        inside, outside = bound.op(sign, BOOLEAN, seconds, lit(end)), bound.op(f"{sign}=", BOOLEAN, lit(edge), seconds)
        return both(inside, outside)

    def lit(value: float) -> Expr:
        return bound.lit(value, DOUBLE)

    first = bound.lit(-_LAST - 1, stamp.type)
    latest = bound.lit(_LAST, stamp.type)
    return bound.case(stamp.type, (beyond(last, infinity), latest), (beyond(-last, -infinity), first), otherwise=stamp)


def _as_date(stamp: Expr, context: Context) -> Expr:
    return bound.udf("cast", DATE, stamp, params=(context.time_zone, False), nullable=stamp.nullable)


def _exactly(type_: DataType, returns: DataType) -> Callable[[Function, Site], Expr]:
    """One argument that Spark does not cast."""

    def bind(function: Function, site: Site) -> Expr:
        if len(site.args) != 1:
            raise site.wrong_count("1")
        (arg,) = site.args
        if arg.type != type_ and arg.type.name != "VOID":
            raise site.mismatch(0, type_.sql)
        return make(function, site, (coerced(arg, type_),), returns, arg.nullable)

    return bind


def _bind_unix(function: Function, site: Site) -> Expr:
    """unix_timestamp([time[, pattern]]): no argument is the statement's instant."""
    args = site.args
    if len(args) > 2 or (not args and function.name == "to_unix_timestamp"):
        raise site.wrong_count("[0, 1, 2]" if function.name == "unix_timestamp" else "[1, 2]")
    pattern = Lit(STRING, False, DEFAULT_PATTERN)
    if not args:
        args = (Call(TIMESTAMP, False, "current_timestamp", (), "current_timestamp"),)
    full = Site(site.name, (*args, pattern)[:2] if len(args) < 2 else args, site.context, site.span, site.spans)
    typed = Function(function.name, (param("text", *_PARSED[1:]), param("text")))
    done = coerce_args(typed, full)
    return make(function, site, done, BIGINT, nullable_of(Function(function.name), done))


def _unix(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    stamp, t = args[0], args[0].type
    if t == STRING:
        stamp = bound.udf(
            "parse_datetime",
            TIMESTAMP,
            *args,
            params=(context.time_zone, False, "try_to_timestamp"),
            nullable=call.nullable,
            raises=True,
        )
    elif t == DATE:  # its midnight in the session's zone; the wall clock of TIMESTAMP_NTZ is taken for UTC
        stamp = bound.udf(
            "cast", TIMESTAMP, stamp, params=(context.time_zone, False), nullable=call.nullable, raises=True
        )
    params = (instants.MICROS_PER_SECOND, *(("truncates",) if t != DATE else ()))
    return bound.udf("epoch_units", BIGINT, stamp, params=params, nullable=call.nullable)


def _from_unixtime(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    seconds = (instants.MICROS_PER_SECOND, "wraps")
    stamp = bound.udf("from_epoch", TIMESTAMP, args[0], params=seconds, nullable=args[0].nullable)
    return bound.udf(
        "date_format", STRING, stamp, args[1], params=(context.time_zone,), nullable=call.nullable, raises=True
    )


def _without_text(site: Site, expected: str) -> Site:
    """The call, unless its argument is a STRING, which Spark casts to no number here."""
    if len(site.args) == 1 and plain(site.args[0].type) == STRING:
        raise site.mismatch(0, expected)
    return site


def _bind_epoch(function: Function, site: Site) -> Expr:
    """timestamp_millis, timestamp_micros."""
    args = coerce_args(Function(function.name, (param("integral"),)), _without_text(site, "INTEGRAL"))
    return make(function, site, args, TIMESTAMP, args[0].nullable)


def _bind_timestamp_seconds(function: Function, site: Site) -> Expr:
    args = coerce_args(Function(function.name, (param("numeric"),)), _without_text(site, "NUMERIC"))
    nullable = args[0].nullable or plain(args[0].type) in (FLOAT, DOUBLE)
    return make(function, site, args, TIMESTAMP, nullable)


def _timestamp_seconds(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    t = args[0].type
    if is_integral(t):
        return bound.udf(
            "from_epoch", TIMESTAMP, args[0], params=(instants.MICROS_PER_SECOND,), nullable=call.nullable, raises=True
        )
    return bound.udf(
        "from_epoch_fraction", TIMESTAMP, args[0], nullable=call.nullable, raises=isinstance(t, DecimalType)
    )


def _bind_date_trunc(function: Function, site: Site) -> Expr:
    args = coerce_args(Function(function.name, (param(STRING), param(TIMESTAMP))), site)
    return make(function, site, args, TIMESTAMP, True)


_YEARLY = ("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK")
_DAILY = (*_YEARLY, "DAY", "DD", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")


def _cut(call: Call, unit: Expr, cut: Expr, units: tuple[str, ...]) -> Expr:
    """`cut` if its unit is one of `units`; else NULL, whatever the moment is."""
    if isinstance(unit, Lit):
        known = isinstance(unit.value, str) and unit.value.upper() in units
        return cut if known else bound.null(call.type)
    if not raises(cut):
        return cut
    upper = bound.fn("upper", STRING, unit)
    known_unit = bound.op("IN", BOOLEAN, upper, *map(_text, units))
    return bound.case(call.type, (known_unit, cut))


def _trunc(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return _cut(call, args[1], bound.udf("trunc", DATE, *args, nullable=call.nullable), _YEARLY)


def _date_trunc(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    cut = bound.udf("date_trunc", call.type, *args, params=(context.time_zone,), nullable=call.nullable)
    return _cut(call, args[0], cut, _DAILY)


def _unix_date(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.EngineCast(INT, call.nullable, args[0])


def _from_unix_date(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.EngineCast(DATE, call.nullable, args[0])


def _unix_micros(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.EngineCast(BIGINT, call.nullable, args[0])


def _bind_convert_timezone(function: Function, site: Site) -> Expr:
    """convert_timezone([source,] target, timestamp_ntz); without a source zone it is the session's."""
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    if len(site.args) == 2:
        zone = Call(STRING, False, "current_timezone", (), "current_timezone")
        site = Site(site.name, (zone, *site.args), site.context, site.span)
    args = coerce_args(Function(function.name, (param(STRING), param(STRING), param(TIMESTAMP_NTZ))), site)
    return make(function, site, args, TIMESTAMP_NTZ, any(a.nullable for a in args))


_CLOCK = (param(INT), param(INT), param(INT), param(INT), param(INT), param(decimal(16, 6)))


#: How many arguments a call with a date may have, by whether it makes wall clocks, and whether it goes by the plain name.
_OF_PARTS = {(False, True): (1, 2, 3), (False, False): (2, 3), (True, False): (2,)}


def _bind_make_timestamp(function: Function, site: Site) -> Expr:
    zoneless, is_try = function.name.endswith("ntz"), function.name.startswith("try_")
    count = len(site.args)
    if count in _OF_PARTS[zoneless, function.name.endswith("make_timestamp")]:
        # there are no values of TIME
        for i, (arg, expected) in enumerate(zip(site.args, ("DATE", "TIME", "STRING"), strict=False)):
            if arg.type != VOID and arg.type.name != expected:
                raise site.mismatch(i, expected)
        return make(function, site, site.args, TIMESTAMP_NTZ if zoneless else TIMESTAMP, True, ("date and time",))
    most = 6 if zoneless else 7
    if count not in (6, most):
        raise site.wrong_count("6" if zoneless else "[6, 7]")
    args = coerce_args(Function(function.name, (*_CLOCK, param(STRING))[:count]), site)
    target = TIMESTAMP_NTZ if zoneless else TIMESTAMP
    return make(function, site, args, target, is_try or any(a.nullable for a in args), (is_try,))


def _shown_make_timestamp(call: Call, args: list[str]) -> str:
    name = call.shown or call.fn
    return f"{name}({', '.join(args[:6] if name == 'try_make_timestamp' else args)})"


def _make_timestamp(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if call.data[0] == "date and time":
        from gateway.sql.functions.lowerings import refused

        raise refused(call, f"{call.shown} of a date and a time")
    return bound.udf(
        "make_timestamp",
        call.type,
        *args,
        params=(context.time_zone, call.data[0]),
        nullable=call.nullable,
        raises=not call.data[0],
    )


def _utc_shift(direction: str) -> Lower:
    return kernel("utc_shift", raises=True, params=(direction,))


TIMESTAMP_ADD = Function("timestampadd", bind=_bind_timestamp_add, lower=_timestamp_add)
TIMESTAMP_DIFF = Function("timestampdiff", bind=_bind_timestamp_diff, lower=_timestamp_diff)

ROWS: tuple[Function, ...] = (
    Function("dayname", params=(param(DATE),), returns=STRING, lower=kernel("weekday_name")),
    Function("monthname", params=(param(DATE),), returns=STRING, lower=kernel("month_name")),
    Function("last_day", params=(param(DATE),), returns=DATE, lower=kernel("last_day", raises=True)),
    Function(
        "next_day",
        params=(param(DATE), param(STRING)),
        returns=DATE,
        nullable="always",
        lower=kernel("next_day", raises=True),
    ),
    Function(
        "add_months", params=(param(DATE), param(INT)), returns=DATE, lower=kernel("add_months_checked", raises=True)
    ),
    *(Function(name, bind=_bind_date_add, lower=_date_add(1)) for name in ("date_add", "dateadd")),
    Function("date_sub", bind=_bind_date_sub, lower=_date_add(-1)),
    *(Function(name, bind=_bind_datediff, lower=_datediff) for name in ("datediff", "date_diff")),
    TIMESTAMP_ADD,
    TIMESTAMP_DIFF,
    Function("timediff", bind=_bind_timestamp_diff, lower=_timestamp_diff),
    Function(
        "months_between",
        params=(param(TIMESTAMP), param(TIMESTAMP), param(BOOLEAN)),
        optional=1,
        defaults=(Lit(BOOLEAN, False, True),),
        returns=DOUBLE,
        lower=kernel("months_between", zoned=True),
    ),
    Function("trunc", params=(param(DATE), param(STRING)), returns=DATE, nullable="always", lower=_trunc),
    Function("date_trunc", bind=_bind_date_trunc, lower=_date_trunc),
    Function(
        "make_date",
        params=(param(INT), param(INT), param(INT)),
        returns=DATE,
        lower=kernel("make_date", raises=True),
    ),
    *(
        Function(name, bind=_bind_make_timestamp, lower=_make_timestamp, shown=_shown_make_timestamp)
        for name in (
            "make_timestamp",
            "make_timestamp_ltz",
            "make_timestamp_ntz",
            "try_make_timestamp",
            "try_make_timestamp_ltz",
            "try_make_timestamp_ntz",
        )
    ),
    *(
        Function(name, bind=_bind_parsed, lower=_parsed)
        for name in (
            "to_date",
            "try_to_date",
            "to_timestamp",
            "try_to_timestamp",
            "to_timestamp_ltz",
            "to_timestamp_ntz",
        )
    ),
    Function(
        "date_format",
        params=(param(TIMESTAMP), param(STRING)),
        returns=STRING,
        lower=kernel("date_format", zoned=True, raises=True),
    ),
    Function(
        "from_unixtime",
        params=(param(BIGINT), param(STRING)),
        optional=1,
        defaults=(Lit(STRING, False, DEFAULT_PATTERN),),
        returns=STRING,
        nullable="always",
        lower=_from_unixtime,
    ),
    *(Function(name, bind=_bind_unix, lower=_unix) for name in ("unix_timestamp", "to_unix_timestamp")),
    Function("unix_date", bind=_exactly(DATE, INT), lower=_unix_date),
    Function("unix_micros", bind=_exactly(TIMESTAMP, BIGINT), lower=_unix_micros),
    Function("unix_millis", bind=_exactly(TIMESTAMP, BIGINT), lower=kernel("epoch_units", params=(1000,))),
    Function(
        "unix_seconds",
        bind=_exactly(TIMESTAMP, BIGINT),
        lower=kernel("epoch_units", params=(instants.MICROS_PER_SECOND,)),
    ),
    Function("date_from_unix_date", params=(param(INT),), returns=DATE, lower=_from_unix_date),
    Function("timestamp_seconds", bind=_bind_timestamp_seconds, lower=_timestamp_seconds),
    Function(
        "timestamp_millis",
        bind=_bind_epoch,
        lower=kernel("from_epoch", raises=True, params=(1000,)),
    ),
    Function(
        "timestamp_micros",
        bind=_bind_epoch,
        lower=kernel("from_epoch", params=(1,)),
    ),
    Function(
        "from_utc_timestamp", params=(param(TIMESTAMP), param(STRING)), returns=TIMESTAMP, lower=_utc_shift("from")
    ),
    Function("to_utc_timestamp", params=(param(TIMESTAMP), param(STRING)), returns=TIMESTAMP, lower=_utc_shift("to")),
    Function("convert_timezone", bind=_bind_convert_timezone, lower=kernel("convert_timezone", raises=True)),
)
