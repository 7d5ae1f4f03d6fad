"""Number formats: digits of a DECIMAL laid out by the tokens of a pattern, and read back by them (Spark's ToNumberParser)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gateway.engine.functions import RowError
from gateway.engine.functions.distinct import scalar

Token = tuple[str, tuple[tuple[str, int], ...]]


def _capacity(tokens: tuple[Token, ...]) -> tuple[int, int]:
    """Digits that the format has before and after its point."""
    counts, side = [0, 0], 0
    for kind, parts in tokens:
        side = 1 if kind == "." else side
        counts[side] += sum(n for _, n in parts)
    return counts[0], counts[1]


@scalar("to_char")
def to_char(value: Decimal, tokens: tuple[Token, ...]) -> str:
    """A number by a format; number signs instead of digits where it does not fit."""
    whole, _, fraction = f"{abs(value):f}".partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    before, after = _capacity(tokens)
    fits = len(whole) <= before and len(fraction) <= after
    digits = iter(whole.rjust(before) + fraction.ljust(after) if fits else "#" * (before + after))
    out: list[str] = []
    negative, past_point = value < 0, False
    for kind, parts in tokens:
        if kind == "digits":
            _put_digits(out, parts, digits, past_point)
        elif kind == ".":
            if out and out[-1] == " ":
                out[-1] = "0"
            out.append(".")
            past_point = True
        else:
            _put_mark(out, kind, negative)
    _strip_point(out)
    return "".join(out)


def _put_digits(out: list[str], parts: Sequence[tuple[str, int]], digits: Iterator[str], past_point: bool) -> None:
    """The next digits of a number, in groups; zeros or blanks where it has none."""
    for part, count in parts:
        if part == ",":
            _lead(out) if not (out and out[-1].isdigit()) else out.append(",")
        for _ in range(count):
            digit = next(digits)
            if digit != " ":
                out.append(digit)
            elif part == "0" or past_point:
                out.append("0")
            else:
                _lead(out)


def _put_mark(out: list[str], kind: str, negative: bool) -> None:
    """A currency or a sign."""
    if kind == "$":
        out.append("$")
    elif kind == "<":
        if negative:
            out.append("<")
    elif kind == "S":
        _sign(out, "-" if negative else "+")
    elif kind == "MI":
        _sign(out, "-") if negative else out.append(" ")
    elif negative:
        _sign(out, ">")
    else:
        _strip_point(out)
        out += [" ", " "]


def _lead(out: list[str]) -> None:
    """A blank for a missing leading digit: before a sign or bracket that already stands there."""
    out.insert(len(out) - 1 if out and out[-1] in "+-<" else len(out), " ")


def _sign(out: list[str], sign: str) -> None:
    """A sign directly after the last character that is not blank."""
    _strip_point(out)
    end = len(out)
    while end and out[end - 1] == " ":
        end -= 1
    out.insert(end, sign)


def _strip_point(out: list[str]) -> None:
    if "." in out:
        at = out.index(".")
        if at == len(out) - 1 or out[at + 1] == " ":
            out[at] = " "


@scalar("to_number")
def to_number(text: str, tokens: tuple[Token, ...], pattern: str, lenient: bool) -> Decimal | None:
    """The number that a text spells in a format; INVALID_FORMAT.MISMATCH_INPUT (NULL if `lenient`) where it doesn't."""
    number = _parsed(text, tokens)
    if number is not None and len(f"{abs(number):f}".partition(".")[0].lstrip("0")) > _capacity(tokens)[0]:
        raise RowError(
            "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", f"The number '{text}' does not fit in the format '{pattern}'."
        )
    if number is None and not lenient:
        raise RowError(
            "INVALID_FORMAT.MISMATCH_INPUT",
            f"The format is invalid: '{pattern}'. The input \"STRING\" '{text}' does not match the format.",
        )
    return number


def _parsed(text: str, tokens: tuple[Token, ...]) -> Decimal | None:
    at, negative, past_point = 0, False, False
    sides: list[list[str]] = [[], []]
    fraction_starts = next((i for i, (kind, _) in enumerate(tokens) if kind == "."), len(tokens))
    for place, (kind, parts) in enumerate(tokens):
        char = text[at : at + 1]
        if kind == "digits":
            fraction = fraction_starts <= place
            stop = _groups(text, at, parts, (past_point, fraction), sides[past_point])
            if stop is None:
                return None
            at = stop
        elif kind == ".":
            past_point = past_point or char == "."
            at += char == "."
        elif kind == "$":
            if char != "$":
                return None
            at += 1
        elif kind == "S":
            negative ^= char == "-"
            at += char in ("+", "-")
        elif kind == "MI":
            negative ^= char == "-"
            at += char == "-"
        elif char == kind:
            negative ^= kind == ">"
            at += 1
    if at < len(text) or not (sides[0] or sides[1]):
        return None
    number = Decimal(f"{''.join(sides[0]) or '0'}.{''.join(sides[1])}")
    return -number if negative else number


def _groups(
    text: str, at: int, parts: tuple[tuple[str, int], ...], where: tuple[bool, bool], digits: list[str]
) -> int | None:
    """Reads digits and separators; None if a group has more digits than its part allows, or fewer than zeros demand.

    `where`: whether the text's and the format's point have passed; the fraction may always be shorter.
    """
    past_point, fraction = where
    sizes = [0]
    while at < len(text):
        char = text[at]
        if char in "0123456789":
            sizes[-1] += 1
            digits.append(char)
        elif char == "," and not past_point:
            sizes.append(0)
        elif not char.isspace():
            break
        at += 1
    expected = [p for p in parts if p[0] != ","]
    found = sizes[::-1]
    if len(found) > len(expected):
        return None
    for i, (kind, count) in enumerate(reversed(expected)):
        size = found[i] if i < len(found) else 0
        if size > count or (kind == "0" and size != count and not fraction):
            return None
    return at
