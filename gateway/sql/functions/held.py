"""Which decimals Spark holds as 64 bits while it computes an expression, and which as a BigDecimal.

It shows where one is cast to INT, SMALLINT or TINYINT: a BigDecimal becomes a double first (`Decimal.roundToNumeric`), so that
5.9999999999999999 is 6. Of a column the type alone tells it.
"""

from __future__ import annotations

from gateway.sql.typed.common_types import decimal_for, decimal_for_literal, plain
from gateway.sql.typed.nodes import Call, Cast, Expr, Lit
from gateway.sql.typed.walk import has_columns
from gateway.sqltypes import INT, SMALLINT, TINYINT, DataType, DecimalType, is_integral, is_nested

_LONG_DIGITS = 18
_EXACT_DIGITS = 15  # of any decimal that is a double as well
_SMALL = (INT, SMALLINT, TINYINT)
_KEEPING = frozenset(("abs", "negative", "positive"))
_SUMS = frozenset(("+", "-"))
_PRODUCTS = frozenset(("*", "/", "%", "mod", "pmod"))


def cut_as_double(arg: Expr, target: DataType) -> bool | None:
    """Whether decimals of `arg` become whole numbers by way of a double; None where it is as with columns, or no matter."""
    source = plain(arg.type)
    if target not in _SMALL and not is_nested(target):
        return None
    if is_nested(source):
        return None if has_columns(arg) else True
    if not isinstance(source, DecimalType) or source.precision <= _EXACT_DIGITS:
        return None
    as_long = _as_long(arg)
    return None if as_long == (source.precision <= _LONG_DIGITS) else not as_long


def _as_long(expr: Expr) -> bool:
    """Whether Spark holds a number as 64 bits: constants it doesn't, but for those that it made of whole numbers."""
    type_ = plain(expr.type)
    if isinstance(expr, Lit):
        return is_integral(type_)
    if isinstance(expr, Cast):
        return _cast_as_long(expr, type_)
    if isinstance(expr, Call) and expr.fn in _SUMS:
        return all(map(_as_long, expr.args)) and len({decimal_for(plain(arg.type)).scale for arg in expr.args}) == 1
    if isinstance(expr, Call) and expr.fn in _KEEPING:
        return _as_long(expr.args[0])
    if (isinstance(expr, Call) and expr.fn in _PRODUCTS) or not has_columns(expr):
        return False
    return not isinstance(type_, DecimalType) or type_.precision <= _LONG_DIGITS


def _cast_as_long(cast: Cast, target: DataType) -> bool:
    """What was 64 bits stays so while all digits that its type may have fit."""
    source = plain(cast.arg.type)
    if is_integral(source):
        value = cast.arg.value if isinstance(cast.arg, Lit) else None
        source = decimal_for(source) if value is None else decimal_for_literal(value)
    if not (isinstance(source, DecimalType) and isinstance(target, DecimalType)):
        return False
    return _as_long(cast.arg) and source.precision - source.scale + target.scale <= _LONG_DIGITS
