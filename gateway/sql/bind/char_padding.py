"""CHAR in comparisons: Spark pads the shorter side with spaces where a CHAR column meets a constant or another such column.

Only columns as such are padded, no expressions over them, and only beside constants and columns (Spark's ApplyCharTypePadding).
Everything else compares texts as they are: VARCHAR columns, BETWEEN, NULLIF, IN (subquery).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.delta.schema import holds_char
from gateway.errors import Span, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.functions.context import SURROUNDINGS
from gateway.sql.functions.fold import fold
from gateway.sql.functions.operators import comparison
from gateway.sql.typed.catalogue import is_steady
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Case, Cast, Col, Expr, Lit
from gateway.sql.typed.walk import has_columns, nodes
from gateway.sqltypes import INT, STRING, CharType, DataType, is_nested

_OTHERWISE = "Comparing nested values whose CHAR have different lengths"


def compared(binder: Expressions, symbol: str, left: Expr, right: Expr, span: Span | None) -> Expr:
    """The comparison of two values, the shorter one padded where one is a CHAR column."""
    return comparison(symbol, *_sides(binder, left, right, span), span)


def listed(binder: Expressions, value: Expr, items: Sequence[Expr], span: Span | None) -> tuple[Expr, list[Expr]]:
    """The operands of ``value IN (items)``."""
    length = _length(value)
    if length is None:
        _refuse_nested([value, *items], span)
        return value, list(items)
    if all(_is_constant(binder, i) for i in items):
        if any(plain(i.type) != STRING for i in items):  # every operand is cast then, the column as well
            return value, list(items)
        return value, [_as_stored(binder, i, length, span) for i in items]
    lengths = [_length(i) for i in items if isinstance(i, Col) and not i.outer]
    known = [n for n in lengths if n is not None]
    if len(known) != len(items):
        return value, list(items)
    longest = max(length, *known)
    return _padded(value, length, longest), [_padded(i, n, longest) for i, n in zip(items, known, strict=True)]


def decoded(binder: Expressions, args: Sequence[Expr], span: Span | None) -> tuple[Expr, ...]:
    """The arguments of decode(value, search, result, …), whose searches are compared with the value one by one."""
    made = list(args)
    if any(_length(a) is not None for a in args):
        for place in range(1, len(args) - 1, 2):
            value, made[place] = _sides(binder, args[0], args[place], span)
            if value is not args[0]:
                raise unsupported("`decode` of a CHAR column beside longer texts", span)
    return tuple(made)


def pair(binder: Expressions, args: Sequence[Expr], span: Span | None) -> tuple[Expr, ...]:
    """The arguments of equal_null(a, b)."""
    return _sides(binder, args[0], args[1], span) if len(args) == 2 else tuple(args)


def _sides(binder: Expressions, left: Expr, right: Expr, span: Span | None) -> tuple[Expr, Expr]:
    ours, theirs = _length(left), _length(right)
    if ours is not None and theirs is not None:
        longest = max(ours, theirs)
        return _padded(left, ours, longest), _padded(right, theirs, longest)
    if ours is not None and _is_text(binder, right):
        return _beside(binder, left, ours, right)
    if theirs is not None and _is_text(binder, left):
        column, constant = _beside(binder, right, theirs, left)
        return constant, column
    _refuse_nested((left, right), span)
    return left, right


def _beside(binder: Expressions, column: Expr, length: int, constant: Expr) -> tuple[Expr, Expr]:
    """A CHAR column and what it is compared with, as long as the longer of both."""
    known = fold(constant, binder.context)
    if known is None:
        size = Call(INT, constant.nullable, "char_length", (constant,))
        return _pad(column, size), _pad(constant, Lit(INT, False, length))
    if known.value is None or len(known.value) == length:
        return column, constant
    if len(known.value) > length:
        return _pad(column, Lit(INT, False, len(known.value))), constant
    return column, _pad(constant, Lit(INT, False, length))


def _as_stored(binder: Expressions, item: Expr, length: int, span: Span | None) -> Expr:
    """A text as a column CHAR(length) holds it; itself where none does."""
    known = fold(item, binder.context)
    if known.value is None if known is not None else item.nullable:  # Spark loses items behind a NULL
        raise unsupported("IN over a CHAR column with NULL in the list", span)
    if known is None:
        return Call(STRING, False, "_char_pad", (item, Lit(INT, False, length)), data=("trimmed",))
    text = known.value.rstrip(" ")
    if len(text) > length or len(known.value) == length:
        return item
    if len(known.value) < length:
        return _pad(item, Lit(INT, False, length))
    return Lit(STRING, False, text.ljust(length), item.text or item.value if isinstance(item, Lit) else known.value)


def _padded(column: Expr, length: int, longest: int) -> Expr:
    return column if length == longest else _pad(column, Lit(INT, False, longest))


def _pad(text: Expr, length: Expr) -> Expr:
    return Call(STRING, text.nullable, "_char_pad", (text, length))


def _length(expr: Expr) -> int | None:
    """The length of a CHAR column; None of everything else."""
    t = expr.type
    return t.length if isinstance(expr, Col) and isinstance(t, CharType) and t.name == "CHAR" else None


def _is_text(binder: Expressions, expr: Expr) -> bool:
    return plain(expr.type) == STRING and _is_constant(binder, expr)


def _is_constant(binder: Expressions, expr: Expr) -> bool:
    """Whether Spark computes it while it resolves names; what it knows of user and catalog comes later."""
    if isinstance(expr, Lit):
        return True
    if has_columns(expr) or not is_steady(expr, binder.catalogue):
        return False
    parts = nodes(expr)
    return all(isinstance(p, (Lit, Call, Cast, Case)) for p in parts) and not any(
        isinstance(p, Call) and p.fn in SURROUNDINGS for p in parts
    )


def _refuse_nested(compared: Sequence[Expr], span: Span | None) -> None:
    """UnsupportedError where Spark would pad inside of two nested columns."""
    types = [e.type for e in compared if isinstance(e, Col) and is_nested(e.type) and holds_char(e.type)]
    if len(types) > 1 and any(_lengths(t) != _lengths(types[0]) for t in types[1:]):
        raise unsupported(_OTHERWISE, span)


def _lengths(t: DataType) -> list[int]:
    return [t.length] if isinstance(t, CharType) else [n for c in t.children() for n in _lengths(c)]
