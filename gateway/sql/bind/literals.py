"""Literals of Spark's grammar as typed constants, and constants as Spark prints them in column names."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

import numpy as np

from gateway import instants
from gateway.errors import Span, UserError, unsupported
from gateway.floats import float_text
from gateway.sql.functions.casts import (
    parse_date,
    parse_timestamp,
    parse_timestamp_ntz,
    special_date,
    special_timestamp,
)
from gateway.sql.read.tree import number_suffix
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Lit
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_UNITS,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_MONTH_UNITS,
    DecimalType,
    IntervalType,
    decimal,
    interval,
)

_RANGES = {"Y": (TINYINT, 7), "S": (SMALLINT, 15), "L": (BIGINT, 63)}
_MICROS = {
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
    "WEEK": 7 * 86_400_000_000,
}
_DAYS = {"DAY": 1, "WEEK": 7}


def number(text: str, span: Span | None) -> Lit:
    """A number literal with its sign and suffix: the narrowest of INT, BIGINT, DECIMAL, or as the suffix says."""
    digits, suffix = number_suffix(text)
    if suffix in _RANGES:
        type_, bits = _RANGES[suffix]
        value = int(digits)
        if not -(1 << bits) <= value < (1 << bits):
            raise UserError(
                "INVALID_NUMERIC_LITERAL_RANGE",
                f"Numeric literal {digits} is outside the valid range for {type_.simple} with minimum value of "
                f"{-(1 << bits)} and maximum value of {(1 << bits) - 1}. Please adjust the value accordingly.",
                span=span,
            )
        return Lit(type_, False, value)
    if suffix in ("D", "F"):
        value_f = float(digits)
        if suffix == "F":
            value_f = float(np.float32(digits))
        if math.isinf(value_f):
            raise UserError(
                "INVALID_NUMERIC_LITERAL_RANGE",
                f"Numeric literal {digits} is outside the valid range for {'double' if suffix == 'D' else 'float'}.",
                span=span,
            )
        return Lit(DOUBLE if suffix == "D" else FLOAT, False, value_f)
    if suffix == "BD":
        return _decimal(digits, span)
    if "e" in digits or "E" in digits:
        if math.isinf(float(digits)):
            raise UserError(
                "INVALID_NUMERIC_LITERAL_RANGE",
                f"Numeric literal {digits} is outside the valid range for double.",
                span=span,
            )
        return Lit(DOUBLE, False, float(digits))
    if "." in digits:
        return _decimal(digits, span)
    value = int(digits)
    if -(1 << 31) <= value < (1 << 31):
        return Lit(INT, False, value)
    if -(1 << 63) <= value < (1 << 63):
        return Lit(BIGINT, False, value)
    return _decimal(digits, span)


def _decimal(digits: str, span: Span | None) -> Lit:
    try:
        value = Decimal(digits)
    except InvalidOperation:
        raise UserError("PARSE_SYNTAX_ERROR", f"Syntax error at or near '{digits}'.", span=span) from None
    value = value or abs(value)  # Spark has no negative zero here
    _, mantissa, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    count = len(str(int("".join(map(str, mantissa)))))
    scale = max(0, -exponent)
    precision = max(count + max(0, exponent), scale)
    if precision > 38:
        raise UserError(
            "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
            f"Decimal precision {precision} exceeds max precision 38.",
            span=span,
        )
    return Lit(decimal(precision, scale), False, value)


def typed(text: str, kind: str, context: Context, span: Span | None) -> Lit:
    """``DATE '…'``, ``TIMESTAMP '…'``, ``X'…'``, ``INTERVAL '…'``."""
    if kind == "X":
        padded = text if len(text) % 2 == 0 else "0" + text
        try:
            return Lit(BINARY, False, bytes.fromhex(padded))
        except ValueError:
            raise _invalid("X", text, span) from None
    if kind == "DATE":
        days = parse_date(text)
        if days is None:
            days = special_date(text, context)
        if days is None:
            raise _invalid("DATE", text, span)
        return Lit(DATE, False, days)
    if kind == "INTERVAL":
        return interval_text(text, span)
    zoneless = kind == "TIMESTAMP_NTZ"
    if kind != "TIMESTAMP" and _fraction_digits(text) > 6:
        raise unsupported(f"A {kind} literal with more than six fractional digits", span)
    micros = parse_timestamp_ntz(text) if zoneless else parse_timestamp(text, context.time_zone)
    if micros is None:
        micros = special_timestamp(text, context, zoneless)
    if micros is None:
        stamp = None if zoneless else instants.parse_stamp(text)
        if stamp is not None and stamp.days is None:
            raise unsupported(f"A time of day as a timestamp ('{text}')", span)
        raise _invalid(kind, text, span)
    return Lit(TIMESTAMP_NTZ if zoneless else TIMESTAMP, False, micros)


def _fraction_digits(text: str) -> int:
    """Digits behind the point of a timestamp's seconds."""
    rest = text.partition(".")[2]
    return next((i for i, c in enumerate(rest) if not c.isdigit()), len(rest))


def _invalid(kind: str, text: str, span: Span | None) -> UserError:
    return UserError(
        "INVALID_TYPED_LITERAL", f"The value of the typed literal \"{kind}\" is invalid: '{text}'.", span=span
    )


def interval_text(text: str, span: Span | None) -> Lit:
    """``INTERVAL '1 day 2 hours'``: value and unit pairs in one string."""
    words = text.strip().split()
    if words and words[0].lower() == "interval":
        words = words[1:]
    if len(words) < 2 or len(words) % 2:
        raise _interval_error(text, span)
    parts = []
    for value, unit in zip(words[::2], words[1::2], strict=True):
        name = unit.upper().removesuffix("S")
        if name not in _MICROS and name not in ("YEAR", "MONTH"):
            raise _interval_error(text, span)
        parts.append((value, name))
    return interval_parts(tuple(parts), None, span)


def _interval_error(text: str, span: Span | None) -> UserError:
    return UserError(
        "INVALID_INTERVAL_FORMAT.UNKNOWN",
        f"Error parsing '{text}' to interval. Please ensure that the value provided is in a valid format.",
        span=span,
    )


def interval_parts(parts: tuple[tuple[str, str], ...], to: str | None, span: Span | None) -> Lit:
    """``INTERVAL 23 DAYS 4 HOURS`` (pairs), or with `to` one part ``'1-2' YEAR TO MONTH``."""
    if to is not None:
        return _ranged(parts[0][0], parts[0][1], to, span)
    units = [u for _, u in parts]
    text = " ".join(f"{v} {u.lower()}" for v, u in parts)
    if all(u in ("YEAR", "MONTH") for u in units):
        months = sum(_integer(v, span) * (12 if u == "YEAR" else 1) for v, u in parts)
        present = [u.lower() for u in units]
        ordered = [u for u in YEAR_MONTH_UNITS if u in present]
        return Lit(interval(ordered[0], ordered[-1]), False, _fitting(months, 32, text, span))
    if any(u in ("YEAR", "MONTH") for u in units):
        raise unsupported("An interval of months and days together (legacy CalendarInterval)", span)
    if any(u == "NANOSECOND" for u in units):
        raise unsupported("NANOSECOND in an interval", span)
    days = micros = 0
    for value, unit in parts:
        if unit == "SECOND":
            micros += _seconds(value, span)
        elif unit in _DAYS:
            days += _integer(value, span) * _DAYS[unit]
        else:
            micros += _integer(value, span) * _MICROS[unit]
    micros = _fitting(micros, 64, text, span) + _fitting(days, 32, text, span) * _MICROS["DAY"]
    if not -(1 << 63) <= micros < 1 << 63:
        message = "Integer overflow while operating with intervals."
        raise UserError("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", message, span=span)
    fields = {"WEEK": "day", "MILLISECOND": "second", "MICROSECOND": "second"}
    named = [fields.get(u, u.lower()) for u in units]
    order = [u for u in DAY_TIME_UNITS if u in named]
    return Lit(interval(order[0], order[-1]), False, micros)


def _fitting(value: int, bits: int, text: str, span: Span | None, kind: str = "ARITHMETIC_EXCEPTION") -> int:
    """Months, days or microseconds of an interval, which must fit into as many bits."""
    if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        return value
    raise UserError(
        f"INVALID_INTERVAL_FORMAT.{kind}",
        f"Error parsing '{text}' to interval. Please ensure that the value provided is in a valid format. It is too large.",
        span=span,
    )


def _integer(text: str, span: Span | None) -> int:
    if not _NUMERALS.issuperset(text.strip()):  # Python's numbers have more: 1_0, 1e2, digits of other scripts
        raise _interval_error(text, span)
    try:
        return int(text)
    except ValueError:
        raise _interval_error(text, span) from None


def _seconds(text: str, span: Span | None) -> int:
    if not _NUMERALS.issuperset(text.strip()):
        raise _interval_error(text, span)
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise _interval_error(text, span) from None
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -9:
        raise _interval_error(text, span)
    return int(value * 1_000_000)


_NUMERALS = frozenset("+-.0123456789")
_LONGEST = 100  # characters of an interval with several fields
_LIMITS = {"hour": 23, "minute": 59, "second": 59}


def _ranged(text: str, start: str, end: str, span: Span | None) -> Lit:
    first, last = start.lower(), end.lower()
    if not text.isascii() or len(text) > _LONGEST:
        raise _interval_error(text, span)
    if first in YEAR_MONTH_UNITS and last in YEAR_MONTH_UNITS and first != last:
        sign, body = _signed(text.strip())
        years, dash, months = body.partition("-")
        if not dash or not years.isdigit() or not months.isdigit() or int(months) > 11:
            raise _interval_error(text, span)
        total = _fitting(sign * (int(years) * 12 + int(months)), 32, text, span, "INTERVAL_PARSING")
        return Lit(interval("year", "month"), False, total)
    if first not in DAY_TIME_UNITS or last not in DAY_TIME_UNITS:
        raise _interval_error(text, span)
    low, high = DAY_TIME_UNITS.index(first), DAY_TIME_UNITS.index(last)
    if low >= high:
        raise _interval_error(text, span)
    sign, body = _signed(text.strip())
    fields: list[str] = []
    if first == "day":
        day, _, body = body.partition(" ")
        fields.append(day)
        body = body.strip()
    fields += body.split(":")
    units = DAY_TIME_UNITS[low : high + 1]
    if len(fields) != len(units):
        raise _interval_error(text, span)
    micros = 0
    for index, (value, unit) in enumerate(zip(fields, units, strict=True)):
        whole = value.partition(".")[0] if unit == "second" else value
        if not whole.isdigit() or (index > 0 and int(whole) > _LIMITS[unit]):
            raise _interval_error(text, span)
        micros += _seconds(value, span) if unit == "second" else int(value) * _MICROS[unit.upper()]
    micros = _fitting(sign * micros, 64, text, span, "INTERVAL_PARSING")
    return Lit(interval(first, last), False, micros)


def _signed(text: str) -> tuple[int, str]:
    if text[:1] in ("-", "+"):
        return (-1 if text[0] == "-" else 1), text[1:]
    return 1, text


def java_double(value: float, single: bool = False) -> str:
    """Java's Double.toString (Float.toString with `single`)."""
    return float_text(value, 24 if single else 53)


def date_text(days: int) -> str:
    """``yyyy-MM-dd`` of days since 1970, also for years beyond 9999."""
    text = str(np.datetime64(days, "D"))
    year, rest = text[:-6], text[-6:]
    sign, year = ("-", year[1:]) if year.startswith("-") else ("", year)
    if len(year) > 4 and not sign:
        sign = "+"
    return f"{sign}{year.zfill(4)}{rest}"


def timestamp_text(micros: int, time_zone: str) -> str:
    """``yyyy-MM-dd HH:mm:ss[.ffffff]`` of an instant in a zone, without trailing zeros."""
    local = instants.local_of(micros, instants.known_zone(time_zone))
    days, rest = divmod(local, 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{date_text(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + ("." + f"{fraction:06d}".rstrip("0") if fraction else "")


def interval_display(value: int, type_: IntervalType) -> str:
    """ANSI text of an interval: ``INTERVAL '1-2' YEAR TO MONTH``, ``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""
    sign, rest = ("-" if value < 0 else ""), abs(value)
    units = type_.sql.removeprefix("INTERVAL ")
    if type_.is_year_month:
        body = {"year": f"{rest // 12}", "month": f"{rest}"}[type_.start] if type_.start == type_.end else None
        if body is None:
            body = f"{rest // 12}-{rest % 12}"
        return f"INTERVAL '{sign}{body}' {units}"
    low, high = DAY_TIME_UNITS.index(type_.start), DAY_TIME_UNITS.index(type_.end)
    seconds, fraction = divmod(rest, 1_000_000)
    amounts = [seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60]
    amounts[low] = [seconds // 86_400, seconds // 3600, seconds // 60, seconds][low]
    pieces = []
    for index in range(low, high + 1):
        piece = str(amounts[index]) if index == 0 else f"{amounts[index]:02d}"
        if index == 3 and fraction:
            piece += "." + f"{fraction:06d}".rstrip("0")
        pieces.append(piece)
    body = pieces[0] + " " + ":".join(pieces[1:]) if low == 0 and high > 0 else ":".join(pieces)
    return f"INTERVAL '{sign}{body}' {units}"


def shown(literal: Lit, time_zone: str) -> str:
    """A constant as Spark prints it in the name of an expression."""
    value, t = literal.value, literal.type
    if literal.text is not None:
        return literal.text
    if value is None:
        return "NULL"
    if t == BOOLEAN:
        return "true" if value else "false"
    if t == STRING:
        return str(value)
    if t == BINARY:
        return f"X'{value.hex().upper()}'"
    if t == DATE:
        return f"DATE '{date_text(value)}'"
    if t == TIMESTAMP:
        return f"TIMESTAMP '{timestamp_text(value, time_zone)}'"
    if t == TIMESTAMP_NTZ:
        return f"TIMESTAMP_NTZ '{timestamp_text(value, 'UTC')}'"
    if isinstance(t, IntervalType):
        return interval_display(value, t)
    if t in (DOUBLE, FLOAT):
        return java_double(value, t == FLOAT)
    if isinstance(t, DecimalType):
        return _decimal_text(Decimal(value))
    return str(value)


def _decimal_text(value: Decimal) -> str:
    """Java's BigDecimal.toString: scientific below 1E-6, no negative zero."""
    value = value or abs(value)
    return str(value) if value.adjusted() < -6 else f"{value:f}"
