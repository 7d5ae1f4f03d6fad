"""Constants computed while compiling: what pruning, LIMIT, time travel and typed literals need to know as values.

Only operations whose value is certain are folded; an operation that would raise, or that is not listed, stays an expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

from gateway import instants
from gateway.sql.functions.casts import fold_cast
from gateway.sql.functions.context import SURROUNDINGS
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.foldable import UNASKED
from gateway.sql.typed.nodes import Call, Cast, Expr, Lit, lit
from gateway.sqltypes import (
    BIGINT,
    DATE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    DecimalType,
    IntervalType,
    is_fractional,
)

_FIRST_MICROS, _LAST_MICROS = -719_161 * instants.MICROS_PER_DAY, 2_932_896 * instants.MICROS_PER_DAY  # years 1 to 9999
_BITS = {TINYINT: 7, SMALLINT: 15, INT: 31, BIGINT: 63}


def fold(expr: Expr, context: Context) -> Lit | None:
    """The constant that `expr` is; None if it is not known here."""
    if isinstance(expr, Lit):
        return expr
    if isinstance(expr, Cast):
        arg = fold(expr.arg, context)
        return fold_cast(arg, expr.type, context) if arg is not None and not expr.is_try else None
    if isinstance(expr, Call):
        if not expr.args and expr.fn in SURROUNDINGS:
            return lit(SURROUNDINGS[expr.fn][1](context), expr.type)
        if expr.fn == UNASKED:
            return Lit(expr.type, True, None)
        if expr.fn == "typeof":
            return lit(expr.args[0].type.simple, expr.type)
        if expr.fn == "_ts_add_micros":
            return _moved(expr, context)
        rule = _RULES.get(expr.fn)
        if rule is None:
            return None
        args = [fold(a, context) for a in expr.args]
        if any(a is None for a in args):
            return None
        values = [a.value for a in args if a is not None]
        if any(v is None for v in values):
            return Lit(expr.type, True, None)
        value = rule(expr.type, values)
        if expr.type == DATE and value is not None and not -(1 << 31) <= value < 1 << 31:
            return None  # Spark's days wrap around
        return None if value is None else Lit(expr.type, False, value)
    return None


def fold_whole(expr: Expr, context: Context) -> Lit | None:
    """The BIGINT that a constant is cast to, without its fraction; None if it is not known here."""
    known = fold(expr, context)
    value = known.value if known is not None else None
    if isinstance(value, Decimal | float) and -(1 << 63) < value < 1 << 63:
        return lit(int(value), BIGINT)
    return fold(expr if expr.type == BIGINT else Cast(BIGINT, True, expr), context)


def _moved(expr: Call, context: Context) -> Lit | None:
    """A TIMESTAMP moved by a day-time interval: whole days by the session's calendar, the rest by the clock."""
    start, interval = (fold(a, context) for a in expr.args)
    if start is None or interval is None:
        return None
    if start.value is None or interval.value is None:
        return Lit(expr.type, True, None)
    zone = instants.known_zone(context.time_zone)
    rest = int(math.fmod(interval.value, instants.MICROS_PER_DAY))
    local_now = instants.local_of(start.value, zone)
    local = local_now + interval.value - rest
    if not _FIRST_MICROS <= local <= _LAST_MICROS:
        return None  # no year of four digits: the engine raises, or knows better
    return Lit(expr.type, False, instants.instant_of(local, zone, local_now - start.value) + rest)


def _checked(t: DataType, value: Any) -> Any:
    if t in _BITS:
        bits = _BITS[t]
        return value if -(1 << bits) <= value < (1 << bits) else None
    if isinstance(t, DecimalType):
        with localcontext() as ctx:
            ctx.prec = 80
            exact = Decimal(value)
            if -exact.as_tuple().exponent > t.scale:  # type: ignore[operator]
                return None
            exact = abs(exact) if exact == 0 else exact  # no decimal is -0
            return exact if abs(exact) < Decimal(10) ** (t.precision - t.scale) else None
    if is_fractional(t) or isinstance(t, IntervalType):
        return None
    return value


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[DataType, list[Any]], Any]:
    def rule(t: DataType, values: list[Any]) -> Any:
        if t not in _BITS and not isinstance(t, DecimalType):
            return None
        with localcontext() as ctx:
            ctx.prec = 80
            return _checked(t, compute(values[0], values[1]))

    return rule


def _negative(t: DataType, values: list[Any]) -> Any:
    if isinstance(t, DecimalType) and t.precision > 34:
        return None  # Spark rounds it
    return _checked(t, -values[0])


def _days(t: DataType, values: list[Any]) -> Any:
    return values[0] + values[1]


def _minus_days(t: DataType, values: list[Any]) -> Any:
    return values[0] - values[1]


def _whole_days(t: DataType, values: list[Any]) -> Any:
    return int(values[0] // 86_400_000_000)


def _months(t: DataType, values: list[Any]) -> Any:
    if t != DATE:
        return None
    return add_months(values[0], values[1])


def _ntz_micros(t: DataType, values: list[Any]) -> Any:
    return values[0] + values[1] if t == TIMESTAMP_NTZ else None


def add_months(days: int, months: int) -> int:
    """Days since 1970 after adding months, clamped to the month's end (proleptic Gregorian, any year)."""
    year, month, day = civil(days)
    index = year * 12 + month - 1 + months
    year, month = index // 12, index % 12 + 1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    return from_civil(year, month, min(day, last))


def civil(days: int) -> tuple[int, int, int]:
    """Year, month, day of days since 1970."""
    z = days + 719_468
    era, doe = divmod(z, 146_097)
    yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    return yoe + era * 400 + (1 if month <= 2 else 0), month, doy - (153 * mp + 2) // 5 + 1


def from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date."""
    y = year - (1 if month <= 2 else 0)
    era, yoe = divmod(y, 400)
    doy = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719_468


def _joined(t: DataType, values: list[Any]) -> Any:
    return "".join(values) if t == STRING and all(isinstance(v, str) for v in values) else None


_RULES: dict[str, Callable[[DataType, list[Any]], Any]] = {
    "+": _arithmetic(lambda a, b: a + b),
    "-": _arithmetic(lambda a, b: a - b),
    "*": _arithmetic(lambda a, b: a * b),
    "negative": _negative,
    "positive": lambda t, values: values[0],
    "_interval_neg": lambda t, values: -values[0],
    "concat": _joined,
    "date_add": _days,
    "date_sub": _minus_days,
    "extractansiintervaldays": _whole_days,
    "_date_add_months": _months,
    "_ntz_add_micros": _ntz_micros,
}
