"""Fields of dates, timestamps and intervals: year() and its kin, EXTRACT, date_part. Those of dates are the engine's."""

from __future__ import annotations

from gateway import instants
from gateway.errors import UserError
from gateway.sql.functions.constants import folded
from gateway.sql.functions.datetimes import wall_clock
from gateway.sql.functions.fold import from_civil
from gateway.sql.functions.lowerings import at_most, both, engine_cast
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, make, param
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    DataType,
    IntervalType,
    decimal,
    is_datetime,
    is_interval,
)

_SECOND = decimal(8, 6)
# The years that the engine's calendar reaches; for what is beyond, its date_part is NULL.
_FIRST_DAY, _LAST_DAY = from_civil(-262142, 1, 1), from_civil(262141, 12, 31)


def _within_calendar(moment: Expr) -> Expr:
    """Whether the engine knows the fields of a date or timestamp."""
    units, size = (INT, 1) if moment.type == DATE else (BIGINT, instants.MICROS_PER_DAY)
    number = engine_cast(moment, units)
    return both(
        at_most(bound.lit(_FIRST_DAY * size, units), number), at_most(number, bound.lit(_LAST_DAY * size, units))
    )


def _part(field: str, plus: int = 0) -> Lower:
    """A field by date_part, which counts from 0 where `plus` is 1."""

    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        moment = wall_clock(args[0], context)
        part: Expr = bound.fn("date_part", INT, bound.lit(field, STRING), moment, nullable=call.nullable)
        if not (isinstance(moment, Lit) and moment.value is None):
            far = bound.udf("far_part", INT, moment, params=(field,), nullable=call.nullable)
            part = bound.case(INT, (_within_calendar(moment), part), otherwise=far)
        if plus:
            part = bound.op("+" if plus > 0 else "-", INT, part, Lit(INT, False, abs(plus)), nullable=call.nullable)
        return part if call.type == INT else bound.cast(part, call.type)

    return lower


_DATE_PARTS = {
    "year": _part("year"),
    "quarter": _part("quarter"),
    "month": _part("month"),
    "day": _part("day"),
    "dayofmonth": _part("day"),
    "dayofyear": _part("doy"),
    "weekofyear": _part("week"),
    "dayofweek": _part("dow", plus=1),
    "weekday": _part("isodow", plus=-1),
}

#: Names of fields of EXTRACT and date_part, and what they are.
_FIELDS = {
    name: field
    for field, names in {
        "year": ("YEAR", "Y", "YEARS", "YR", "YRS"),
        "yearofweek": ("YEAROFWEEK",),
        "quarter": ("QUARTER", "QTR"),
        "month": ("MONTH", "MON", "MONS", "MONTHS"),
        "weekofyear": ("WEEK", "W", "WEEKS"),
        "day": ("DAY", "D", "DAYS"),
        "dayofweek": ("DAYOFWEEK", "DOW"),
        "isodow": ("DAYOFWEEK_ISO", "DOW_ISO"),
        "dayofyear": ("DOY",),
        "hour": ("HOUR", "H", "HOURS", "HR", "HRS"),
        "minute": ("MINUTE", "M", "MIN", "MINS", "MINUTES"),
        "second": ("SECOND", "S", "SEC", "SECONDS", "SECS"),
    }.items()
    for name in names
}
_INTERVAL_FIELDS: dict[bool, dict[str, DataType]] = {
    True: {"year": INT, "month": TINYINT},
    False: {"day": INT, "hour": TINYINT, "minute": TINYINT, "second": _SECOND},
}
_INTERVAL_UNITS = {True: ("year", "month"), False: ("day", "hour", "minute", "second")}


def _bind_extract(function: Function, site: Site) -> Expr:
    if len(site.args) != 2:
        raise site.wrong_count("2")
    first = folded(site.args[0], site.context)
    if not isinstance(first, Lit) or first.type not in (STRING, VOID):
        raise site.not_foldable(0, "field", STRING.sql)
    name = first.value
    source = site.args[1]
    if name is None:
        return make(function, site, site.args, DOUBLE, True, ("null",))
    field = _FIELDS.get(str(name).upper())
    t = plain(source.type)

    def refused() -> UserError:
        return UserError(
            "INVALID_EXTRACT_FIELD",
            f"Cannot extract `{name}` from an expression of type {t.sql}.",
            span=site.span_of(0),
        )

    if field is None:
        raise refused()
    if isinstance(t, IntervalType):
        result = _INTERVAL_FIELDS[t.is_year_month].get(field)
        units = _INTERVAL_UNITS[t.is_year_month]
        if result is None or not units.index(t.start) <= units.index(field) <= units.index(t.end):
            raise refused()
        return make(function, site, (site.args[0], source), result, source.nullable, (field,))
    target = DATE
    if field in ("hour", "minute", "second"):
        target = t if t in (TIMESTAMP, TIMESTAMP_NTZ) else TIMESTAMP
    if not (is_datetime(t) or t.name in ("STRING", "VOID")):
        raise site.mismatch(1, target.sql)
    source = coerced(source, target)
    return make(
        function, site, (site.args[0], source), _SECOND if field == "second" else INT, source.nullable, (field,)
    )


def _extract(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    (field,), source = call.data, args[1]
    if field == "null":
        return bound.null(call.type)
    if is_interval(source.type):
        if field == "second":
            return bound.udf("second_fraction", call.type, source, nullable=call.nullable)
        return bound.udf("interval_field", call.type, source, params=(field,), nullable=call.nullable)
    if field == "second":
        return bound.udf("second_fraction", call.type, wall_clock(source, context), nullable=call.nullable)
    if field == "yearofweek":
        return bound.udf("year_of_week", call.type, source, nullable=call.nullable)
    return (_DATE_PARTS.get(field) or _part(field))(call, (source,), context)


def _shown_extract(call: Call, args: list[str]) -> str:
    name = call.shown or call.fn
    return f"{name}({args[0]}, {args[1]})" if name == "date_part" else f"{name}({args[0]} FROM {args[1]})"


ROWS: tuple[Function, ...] = (
    *(Function(name, params=(param(DATE),), returns=INT, lower=lower) for name, lower in _DATE_PARTS.items()),
    *(
        Function(name, params=(param(TIMESTAMP, TIMESTAMP_NTZ),), returns=INT, lower=_part(name))
        for name in ("hour", "minute", "second")
    ),
    *(
        Function(name, bind=_bind_extract, lower=_extract, shown=_shown_extract)
        for name in ("extract", "date_part", "datepart")
    ),
)
