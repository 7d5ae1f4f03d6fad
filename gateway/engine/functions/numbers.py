"""Numbers as Java writes and rounds them: text of doubles, `printf` conversions, grouped digits, HALF_UP on decimal text."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np

from gateway.engine.functions import RowError
from gateway.engine.functions.distinct import scalar
from gateway.floats import float_text

_WIDE = Context(prec=800)
_FIGURES = 400  # no number of ours has more decimals than that: what is asked for beyond are zeros
_DOUBLE_PLACES = 340  # java.text.DecimalFormat writes no more decimals of a double
MAX_WIDTH = 1 << 24  # characters that one number or text may be padded to


def java_double(value: float) -> str:
    """java.lang.Double.toString: plain from 1e-3 up to 1e7, else ``d.dddE±n``."""
    return float_text(value, 53)


def java_float(value: float) -> str:
    """java.lang.Float.toString of a 32-bit float held in a Python float."""
    return float_text(value, 24)


def shortest_decimal(value: float) -> Decimal:
    """The decimal that Java's text of a double denotes."""
    return Decimal(float_text(value, 53))


def grouped(value: Decimal, places: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """``12,332.1235``: `value` with `places` decimals and thousands separators."""
    if rounding == ROUND_HALF_EVEN and places <= _FIGURES:
        return f"{value:,.{places}f}"  # as Python rounds decimals itself
    return _fixed(value, places, ",", rounding)


def _fixed(value: Decimal, places: int, flags: str, rounding: str) -> str:
    """`value` with exactly `places` decimals, and thousands separators if a comma is among the flags."""
    if places > MAX_WIDTH:
        raise RowError("RESOURCE_EXHAUSTED", f"A number with more than {MAX_WIDTH} decimals is too long.")
    shown = min(places, _FIGURES)
    rounded = value.quantize(Decimal(1).scaleb(-shown), rounding=rounding, context=_WIDE)
    sign = "-" if not rounded and rounded.is_signed() else ""
    body = abs(rounded) if sign else rounded
    return sign + (f"{body:,f}" if "," in flags else f"{body:f}") + "0" * (places - shown)


@scalar("format_number")
def format_number(value: Any, places: int, single: bool) -> str | None:
    """format_number(x, d): HALF_EVEN; NULL for a negative d."""
    if places < 0:
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        if single:
            value = float(np.float32(value))
        if abs(value) < _SURE and places <= _SURE_PLACES:
            # Python rounds what the double is, Java what it prints as: the same but for ties, which are short texts
            text = repr(value)
            if not (text[-1] == "5" and len(text) - text.find(".") - 1 == places + 1):
                return f"{value:,.{places}f}"
        value = Decimal(float_text(value, 53))
    elif isinstance(value, Decimal):
        return grouped(value, places)
    return grouped(Decimal(value), min(places, _DOUBLE_PLACES))  # as java.text.DecimalFormat of doubles and longs


# A double below it has figures for so many decimals and one more.
_SURE, _SURE_PLACES = 1e9, 4
_FLAGS = "-#+ 0,("
_INT_MAX = 2**31 - 1
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def _bad(message: str) -> RowError:
    return RowError("INVALID_PARAMETER_VALUE.PATTERN", f"The value of parameter `strfmt` is invalid: {message}.")


@scalar("format_string", strict=False)
def format_string(pattern: str | None, *rest: Any) -> str | None:
    """java.util.Formatter for the conversions b c d e f g n o s x %; the last of `rest` are the arguments' type names."""
    if pattern is None:
        return None
    args, types = rest[:-1], rest[-1]
    out: list[str] = []
    at, ordinary, last = 0, 0, -1
    while at < len(pattern):
        hit = pattern.find("%", at)
        if hit < 0:
            out.append(pattern[at:])
            break
        out.append(pattern[at:hit])
        at, index, flags, width, precision, letter = _specifier(pattern, hit + 1)
        _check(flags, width, precision, letter)
        if letter == "n":
            out.append("\n")
        elif letter == "%":
            out.append(_padded("%", flags, width))
        else:
            if index == "<":
                position = last
            elif index:
                position = int(index) - 1
            else:
                position, ordinary = ordinary, ordinary + 1
            if not 0 <= position < len(args):
                raise _bad(f"format specifier '%{letter}' has no argument")
            last = position
            out.append(_converted(args[position], types[position], flags, width, precision, letter))
    return "".join(out)


def _specifier(pattern: str, at: int) -> tuple[int, str, str, int | None, int | None, str]:
    def digits(start: int) -> int:
        end = start
        while end < len(pattern) and pattern[end] in "0123456789":
            end += 1
        return end

    index = ""
    end = digits(at)
    if end > at and pattern[end : end + 1] == "$":
        index, at = pattern[at:end], end + 1
    elif pattern[at : at + 1] == "<":
        index, at = "<", at + 1
    start = at
    while at < len(pattern) and pattern[at] in _FLAGS:
        at += 1
    flags = pattern[start:at]
    end = digits(at)
    width = int(pattern[at:end]) if end > at else None
    at, precision = end, None
    if pattern[at : at + 1] == ".":
        end = digits(at + 1)
        if end == at + 1:
            raise _bad("a precision is missing")
        precision, at = int(pattern[at + 1 : end]), end
    letter = pattern[at : at + 1]
    if letter and letter in "aAtThH":
        raise RowError("UNSUPPORTED_FEATURE", f"The conversion '%{letter}' of format_string is not supported.")
    if not letter or letter not in "bBsScCdoxXeEfgGn%":
        raise _bad(f"unknown format conversion '%{letter}'")
    return at + 1, index, flags, width, precision, letter


def _padded(text: str, flags: str, width: int | None) -> str:
    if width is None:
        return text
    return text.ljust(width) if "-" in flags else text.rjust(width)


_ALLOWED = {"b": "-", "s": "-", "c": "-", "d": _FLAGS.replace("#", ""), "o": "-#0", "x": "-#0"}
_ALLOWED |= {"e": _FLAGS.replace(",", ""), "f": _FLAGS, "g": _FLAGS.replace("#", ""), "%": "-", "n": ""}


def _check(flags: str, width: int | None, precision: int | None, letter: str) -> None:
    """What java.util.Formatter refuses in a specifier."""
    kind = letter.lower()
    for size in (width or 0, precision or 0):
        if size > _INT_MAX:
            raise _bad(f"the number {size} in '%{letter}' is too large")
        if size > MAX_WIDTH:
            raise RowError("RESOURCE_EXHAUSTED", f"format_string makes a text of more than {MAX_WIDTH} characters.")
    if len(set(flags)) < len(flags) or ("-" in flags and "0" in flags) or ("+" in flags and " " in flags):
        raise _bad(f"the flags '{flags}' do not go together")
    if any(f not in _ALLOWED[kind] for f in flags):
        raise _bad(f"the conversion '{letter}' does not take the flags '{flags}'")
    if width is None and ("-" in flags or "0" in flags):
        raise _bad(f"'%{flags}{letter}' has no width")
    if precision is not None and kind in "dxocn%":
        raise _bad(f"the conversion '{letter}' does not take a precision")
    if "#" in flags and kind in "ef":
        raise RowError("UNSUPPORTED_FEATURE", f"format_string with '%#{letter}' is not supported.")


def _converted(value: Any, type_: str, flags: str, width: int | None, precision: int | None, letter: str) -> str:
    kind = letter.lower()
    if kind == "b":
        text = "false" if value is None else ("true" if not isinstance(value, bool) or value else "false")
        text = text[:precision] if precision is not None else text
    elif value is None:
        text = "null"[:precision]
    elif kind == "s":
        text = _plain(value, type_)
        text = text[:precision] if precision is not None else text
    elif kind == "c":
        if type_ not in _BITS or type_ == "BIGINT" or not 0 <= value < 0x110000:
            raise _bad(f"conversion 'c' of {type_}")
        text = chr(value)
    elif kind in "dox":
        if type_ not in _BITS:
            raise _bad(f"conversion '{letter}' of {type_}")
        return _cased(_integer(value, type_, flags, width, kind), letter)
    else:
        if type_ not in ("FLOAT", "DOUBLE"):
            raise _bad(f"conversion '{letter}' of {type_}")
        return _cased(_floating(value, flags, width, precision, kind), letter)
    return _padded(_cased(text, letter), flags, width)


def _cased(text: str, letter: str) -> str:
    return text.upper() if letter.isupper() else text


def _plain(value: Any, type_: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if type_ == "DOUBLE":
        return java_double(value)
    if type_ == "FLOAT":
        return java_float(value)
    return str(value)


def _integer(value: int, type_: str, flags: str, width: int | None, kind: str) -> str:
    if kind == "d":
        body = f"{abs(value):,d}" if "," in flags else str(abs(value))
        return _signed(body, value < 0, flags, width)
    if value < 0:
        value += 1 << _BITS[type_]
    body = format(value, kind)
    if "#" in flags:
        body = ("0x" if kind == "x" else "0") + body
    if "0" in flags and width:
        prefix = 2 if "#" in flags and kind == "x" else 0
        body = body[:prefix] + body[prefix:].rjust(width - prefix, "0")
    return _padded(body, flags, width)


def _signed(body: str, negative: bool, flags: str, width: int | None, *, zeros: bool = True) -> str:
    before, after = "", ""
    if negative:
        before, after = ("(", ")") if "(" in flags else ("-", "")
    elif "+" in flags:
        before = "+"
    elif " " in flags:
        before = " "
    if "0" in flags and width and zeros:
        body = body.rjust(width - len(before) - len(after), "0")
    return _padded(before + body + after, flags, width)


def _floating(value: float, flags: str, width: int | None, precision: int | None, kind: str) -> str:
    """The digits of a DOUBLE, as which Java formats a FLOAT too."""
    if math.isnan(value):
        return _padded("NaN", flags, width)
    negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        return _signed("Infinity", negative, flags, width, zeros=False)
    number = abs(shortest_decimal(value))
    places = 6 if precision is None else precision
    if kind == "g":
        places = max(places, 1)
        rounded = _significant(number, places)
        if not rounded:
            kind, places = "f", places - 1
        elif Decimal("0.0001") <= rounded < Decimal(10) ** places:
            kind, places = "f", places - (rounded.adjusted() + 1)
        else:
            kind, places = "e", places - 1
    if kind == "f":
        body = _fixed(number, places, flags, ROUND_HALF_UP)
    else:
        rounded = _significant(number, places + 1)
        exponent = rounded.adjusted() if rounded else 0
        digits = "".join(map(str, rounded.as_tuple().digits)).ljust(places + 1, "0")[: places + 1]
        body = digits[0] + ("." + digits[1:] if places else "") + f"e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return _signed(body, negative, flags, width)


def _significant(number: Decimal, digits: int) -> Decimal:
    if not number:
        return Decimal(0)
    last = number.adjusted() - min(digits, _FIGURES) + 1
    return number.quantize(Decimal(1).scaleb(last), rounding=ROUND_HALF_UP, context=_WIDE)
