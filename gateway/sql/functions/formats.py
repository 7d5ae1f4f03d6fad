"""Rows of number formats (to_char, to_number): the pattern is read here, its tokens go to the kernel.

Pattern: ``[MI | S] [$] [0 | 9 | G | ,]… [. | D] [0 | 9]… [$] [PR | MI | S]`` (Spark's ToNumberParser).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from gateway.errors import UserError
from gateway.sql.functions import datetimes, encodings, maths, strings
from gateway.sql.functions.constants import constant, folded
from gateway.sql.functions.lowerings import text
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, bind_call, coerce_args, make, param
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.common_types import decimal_for
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import (
    BINARY,
    DOUBLE,
    FLOAT,
    MAX_PRECISION,
    STRING,
    VOID,
    DataType,
    DecimalType,
    decimal,
    is_datetime,
    is_integral,
)

Token = tuple[str, tuple[tuple[str, int], ...]]

_SIMPLE = {".": ".", "D": ".", "$": "$", "S": "S"}
_DIGITS, _OPEN, _CLOSE, _MINUS = "digits", "<", ">", "MI"


def _invalid(kind: str, message: str, site: Site) -> UserError:
    return UserError(f"INVALID_FORMAT.{kind}", f"The format is invalid: {message}", span=site.span_of(1))


def tokens_of(pattern: str, site: Site) -> tuple[Token, ...]:
    """The tokens of a number format; raises INVALID_FORMAT.*.

    A "digits" token holds its groups: ("0", n) exactly n digits, ("9", n) at most n, (",", 0) a separator.
    """
    upper = pattern.upper()
    if not upper:
        raise _invalid("EMPTY", "The number format string cannot be empty.", site)
    tokens: list[Token] = []
    unknown: str | None = None
    wrapped = False
    at = 0
    while at < len(upper):
        char = upper[at]
        if char in "09":
            stop = at
            while stop < len(upper) and upper[stop] in "09":
                stop += 1
            _extend(tokens, (char, stop - at))
            at = stop
            continue
        if char in ",G":
            _extend(tokens, (",", 0))
        elif char in _SIMPLE:
            tokens.append((_SIMPLE[char], ()))
        elif upper.startswith("MI", at):
            tokens.append((_MINUS, ()))
            at += 1
        elif upper.startswith("PR", at):
            tokens.append((_CLOSE, ()))
            wrapped = True
            at += 1
        else:
            unknown = unknown or pattern[at]
            tokens.append(("?", ()))
        at += 1
    _validate(tokens, unknown, pattern, site)
    return tuple([(_OPEN, ()), *tokens] if wrapped else tokens)


def _extend(tokens: list[Token], part: tuple[str, int]) -> None:
    """Adds digits or a separator to the digit group that is being read."""
    if tokens and tokens[-1][0] == _DIGITS:
        tokens[-1] = (_DIGITS, (*tokens[-1][1], part))
    else:
        tokens.append((_DIGITS, (part,)))


def _validate(tokens: list[Token], unknown: str | None, pattern: str, site: Site) -> None:
    kinds = [kind for kind, _ in tokens]
    digits = [i for i, (kind, parts) in enumerate(tokens) if kind == _DIGITS]
    if not any(p[0] != "," for i in digits for p in tokens[i][1]):
        raise _invalid("WRONG_NUM_DIGIT", "The format string requires at least one number digit.", site)
    point = kinds.index(".") if "." in kinds else len(kinds)
    dollar = kinds.index("$") if "$" in kinds else -1
    if dollar > digits[0]:
        raise _invalid(
            "CUR_MUST_BEFORE_DIGIT",
            f"Currency characters must appear before digits in the number format: '{pattern}'.",
            site,
        )
    if dollar > point:
        raise _invalid(
            "CUR_MUST_BEFORE_DEC",
            f"Currency characters must appear before any decimal point in the number format: '{pattern}'.",
            site,
        )
    if any(p[0] == "," for i in digits if i > point for p in tokens[i][1]):
        raise _invalid(
            "THOUSANDS_SEPS_MUST_BEFORE_DEC",
            f"Thousands separators (, or G) may not appear after the decimal point in the number format: '{pattern}'.",
            site,
        )
    for i in digits:
        separators = [p[0] == "," for p in tokens[i][1]]
        if separators[0] or separators[-1] or any(a and b for a, b in pairwise(separators)):
            raise _invalid(
                "CONT_THOUSANDS_SEPS",
                f"Thousands separators (, or G) must have digits in between them in the number format: '{pattern}'.",
                site,
            )
    for kind in (".", "S", _MINUS, "$", _CLOSE):
        if kinds.count(kind) > 1:
            raise _invalid("WRONG_NUM_TOKEN", f"At most one {kind} is allowed in the number format: '{pattern}'.", site)
    if unknown is not None or not _ordered(kinds):
        raise _invalid(
            "UNEXPECTED_TOKEN",
            f"Found the unexpected {unknown or kinds[-1]} in the format string '{pattern}'; the structure of the format "
            "string must match: [MI|S] [$] [0|9|G|,]* [.|D] [0|9]* [$] [PR|MI|S].",
            site,
        )


def _ordered(kinds: list[str]) -> bool:
    """Whether the tokens come in the allowed order."""
    slots = [(_MINUS, "S"), ("$",), (_DIGITS,), (".",), (_DIGITS,), ("$",), (_CLOSE, _MINUS, "S")]
    at = 0
    for slot in slots:
        if at < len(kinds) and kinds[at] in slot:
            at += 1
    return at == len(kinds)


def _shape(tokens: tuple[Token, ...]) -> tuple[int, int]:
    """Precision and scale of a format."""
    before = after = 0
    seen = False
    for kind, parts in tokens:
        if kind == ".":
            seen = True
        count = sum(n for _, n in parts)
        if seen:
            after += count
        else:
            before += count
    return before + after, after


def _format(site: Site) -> str | None:
    """The constant format; None for NULL."""
    if implicit_type(site.args[1].type, ["string"]) is None:
        raise site.mismatch(1, "STRING")
    found: str | None = constant(site, 1, coerced(site.args[1], STRING))
    return found


def _bind_to_number(function: Function, site: Site) -> Expr:
    if len(site.args) != 2:
        raise site.wrong_count("2")
    args = coerce_args(Function(function.name, (param("string"), param("string"))), site)
    pattern = _format(site)
    nullable = function.name == "try_to_number" or any(a.nullable for a in args)
    if pattern is None:
        return make(function, site, args, decimal(10, 0), True, (None,))
    tokens = tokens_of(pattern, site)
    precision, scale = _shape(tokens)
    if precision > MAX_PRECISION:
        raise UserError(
            "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
            f"Decimal precision {precision} exceeds max precision {MAX_PRECISION}.",
            span=site.span_of(1),
        )
    return make(function, site, args, decimal(precision, scale), nullable, (tokens, pattern))


def _to_number(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if call.data[0] is None:
        return bound.null(call.type)
    tokens, pattern = call.data
    lenient = call.fn == "try_to_number"
    return bound.udf("to_number", call.type, args[0], params=(tokens, pattern, lenient), raises=not lenient)


_ROWS = {row.name: row for rows in (datetimes.ROWS, maths.ROWS, strings.ROWS, encodings.ROWS) for row in rows}


def _bind_to_char(function: Function, site: Site) -> Expr:
    """By the first argument: dates through date_format, bytes through base64 / hex / decode, numbers by a format."""
    if len(site.args) != 2:
        raise site.wrong_count("2")
    given = site.args[0].type
    if is_datetime(given):
        return bind_call(_ROWS["date_format"], replace(site, name="date_format"))
    if given == BINARY:
        return _bytes(site)
    pattern = _format(site)
    source = _decimal_of(given)
    if source is None:
        raise site.mismatch(0, "NUMERIC or DATE or TIMESTAMP or BINARY")
    args = (coerced(site.args[0], source), coerced(site.args[1], STRING))
    nullable = any(a.nullable for a in args)
    if pattern is None:
        return make(function, site, args, STRING, True, (None,))
    return make(function, site, args, STRING, nullable, (tokens_of(pattern, site), pattern))


def _decimal_of(given: DataType) -> DataType | None:
    if is_integral(given) or isinstance(given, DecimalType):
        return decimal_for(given)
    if given in (FLOAT, DOUBLE):
        return decimal(14, 7) if given == FLOAT else decimal(30, 15)
    if given == VOID:
        return decimal(38, 18)
    return implicit_type(given, ["decimal"])


def _bytes(site: Site) -> Expr:
    given = folded(site.args[1], site.context)
    if not isinstance(given, Lit) or given.type != STRING:
        raise site.not_foldable(1, "format", STRING.sql)
    pattern = given.value
    if pattern is None:
        raise UserError(
            "INVALID_PARAMETER_VALUE.NULL",
            f"The value of parameter(s) `format` in `{site.shown}` is invalid: expects a non-NULL value.",
            span=site.span_of(1),
        )
    form = pattern.lower().strip("".join(map(chr, range(33))))
    first = replace(site, args=site.args[:1])
    kept = "to_varchar" if site.shown == "to_varchar" else form  # only to_char shows what it stands for
    if form == "base64":
        return bind_call(_ROWS["base64"], replace(first, name=kept))
    if form == "hex":
        return bind_call(_ROWS["hex"], replace(first, name=kept))
    if form == "utf-8":
        charset = replace(text("UTF-8"), text=pattern)  # shown as it was written
        name = "to_varchar" if site.shown == "to_varchar" else "decode"
        return bind_call(_ROWS["decode"], replace(site, name=name, args=(site.args[0], charset)))
    raise UserError(
        "INVALID_PARAMETER_VALUE.BINARY_FORMAT",
        f"The value of parameter(s) `format` in `{site.shown}` is invalid: expects one of binary formats 'base64', 'hex', "
        f"'utf-8', but got '{pattern}'.",
        span=site.span_of(1),
    )


def _to_char(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if call.data[0] is None:
        return bound.null(STRING)
    return bound.udf("to_char", STRING, args[0], params=call.data[:1], nullable=call.nullable)


ROWS: tuple[Function, ...] = (
    Function("to_number", bind=_bind_to_number, lower=_to_number),
    Function("try_to_number", bind=_bind_to_number, lower=_to_number),
    Function("to_char", bind=_bind_to_char, lower=_to_char, aliases=("to_varchar",), shown="to_char"),
)
