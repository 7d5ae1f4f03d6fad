"""Operators as rows of the catalogue: arithmetic, comparison, logic; typing as in tests/data/coercion.csv.

`bind_binary` and `bind_unary` choose the row by symbol and types. Overflow, division by zero and decimal rounding are Spark's:
up to 32 bits the engine computes in BIGINT and casts back, 64 bits and decimals beyond 38 digits use checked kernels of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from gateway.errors import Span, UserError
from gateway.sql.functions.lowerings import any_nan, one_nan, one_zero
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context, Function, Site, null_of
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import (
    arithmetic_decimal,
    comparable_type,
    decimal_for,
    decimal_for_literal,
    least_common_type,
    plain,
    wider_decimal,
)
from gateway.sql.typed.nested import are_compared
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sql.typed.walk import has_columns
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
    ArrayType,
    DataType,
    DecimalType,
    IntervalType,
    StructType,
    interval,
    is_datetime,
    is_decimal,
    is_fractional,
    is_integral,
    is_interval,
    is_numeric,
    is_orderable,
)

COMPARISONS = ("=", "<", ">", "<=", ">=", "<=>")
DAY = interval("day")
DAY_SECOND = interval("day", "second")


def _mismatch(kind: str, symbol: str, left: Expr, right: Expr, span: Span | None, message: str) -> UserError:
    return UserError(
        f"DATATYPE_MISMATCH.{kind}",
        f'Cannot resolve the operator "{symbol}" due to data type mismatch: {message} '
        f'("{left.type.sql}" and "{right.type.sql}").',
        span=span,
    )


def _wrong(symbol: str, left: Expr, right: Expr, span: Span | None) -> UserError:
    return _mismatch(
        "BINARY_OP_WRONG_TYPE", symbol, left, right, span, "the operator does not take operands of these types"
    )


def _different(symbol: str, left: Expr, right: Expr, span: Span | None) -> UserError:
    return _mismatch(
        "BINARY_OP_DIFF_TYPES", symbol, left, right, span, "the left and right operands have incompatible types"
    )


def _unexpected(symbol: str, left: Expr, right: Expr, span: Span | None) -> UserError:
    return _mismatch(
        "UNEXPECTED_INPUT_TYPE", symbol, left, right, span, "the operands are not of the types that are required"
    )


def _nullable(*args: Expr) -> bool:
    return any(a.nullable for a in args)


def bind_binary(symbol: str, left: Expr, right: Expr, span: Span | None, precision_loss: bool = True) -> Expr:
    """The typed operator node for ``left symbol right``; raises Spark's DATATYPE_MISMATCH conditions."""
    if symbol in COMPARISONS:
        return comparison(symbol, left, right, span)
    special = _temporal(symbol, left, right, span)
    if special is not None:
        return special
    return _arithmetic(symbol, left, right, span, precision_loss)


_ORDERINGS = frozenset(("<", "<=", ">", ">="))


def comparison(symbol: str, left: Expr, right: Expr, span: Span | None) -> Expr:
    """A comparison, or what is known of it without a look at the values."""
    known = known_order(symbol, left, right)
    return both_sides(symbol, left, right, span) if known is None else Lit(BOOLEAN, False, known)


def both_sides(symbol: str, left: Expr, right: Expr, span: Span | None) -> Call:
    """A comparison: both sides in their least common type."""
    common = comparable_type(left.type, right.type)
    if common is None or not are_compared(left.type, right.type):
        raise _different(symbol, left, right, span)
    if not is_orderable(common):
        raise _mismatch(
            "INVALID_ORDERING_TYPE", symbol, left, right, span, "the operator does not support ordering on this type"
        )
    decimals = _literals_as_decimals(left, right)
    args = (coerced(left, common), coerced(right, common))
    if decimals and symbol in _ORDERINGS and isinstance(left, Lit) and isinstance(right, Lit):
        return Call(BOOLEAN, False, symbol, args, span=span)  # which Spark makes one of integers
    nullable = symbol != "<=>" and _nullable(left, right, *decimals, *args)
    return Call(BOOLEAN, nullable, symbol, args, span=span)


def known_order(symbol: str, left: Expr, right: Expr) -> bool | None:
    """What every integer is to a decimal constant beyond BIGINT, NULL too (DecimalPrecision.integralAndDecimalLiteral)."""
    for number, constant, symbols in ((left, right, ("<", "<=")), (right, left, (">", ">="))):
        if symbol in _ORDERINGS and is_integral(number.type) and isinstance(constant, Lit):
            value = constant.value
            if isinstance(value, Decimal) and not -(1 << 63) <= value <= (1 << 63) - 1:
                return (symbol in symbols) == (value > 0)
    return None


def _literals_as_decimals(left: Expr, right: Expr) -> list[Expr]:
    """Integer literals compared with a decimal, in the decimals of their digits: Spark takes such casts for nullable."""
    if not (is_decimal(plain(left.type)) or is_decimal(plain(right.type))):
        return []
    return [coerced(e, _decimal_of(e)) for e in (left, right) if isinstance(e, Lit) and is_integral(e.type)]


def _temporal(symbol: str, left: Expr, right: Expr, span: Span | None) -> Expr | None:
    """Arithmetic with dates, timestamps and intervals; None where neither side is one."""
    lt, rt = plain(left.type), plain(right.type)
    if not (is_datetime(lt) or is_interval(lt) or is_datetime(rt) or is_interval(rt)):
        return None
    if symbol == "+":
        return _plus(left, right, lt, rt, span)
    if symbol == "-":
        return _minus(left, right, lt, rt, span)
    if symbol in ("*", "/"):
        return _scaled(symbol, left, right, lt, rt, span)
    if symbol == "div" and (is_interval(lt) or is_interval(rt)):
        if isinstance(lt, IntervalType) and isinstance(rt, IntervalType) and lt.is_year_month == rt.is_year_month:
            return Call(BIGINT, True, "div", (left, right), span=span)
        if VOID in (lt, rt):
            t = rt if lt == VOID else lt
            return Call(BIGINT, True, "div", (coerced(left, t), coerced(right, t)), span=span)
    if STRING in (lt, rt) and (is_interval(lt) or is_interval(rt)):
        raise _different(symbol, left, right, span)
    raise (_wrong if lt == rt or STRING in (lt, rt) else _different)(symbol, left, right, span)


def _plus(left: Expr, right: Expr, lt: DataType, rt: DataType, span: Span | None) -> Expr:
    if is_datetime(rt) and not is_datetime(lt) and (is_interval(lt) or (rt == DATE and lt in (TINYINT, SMALLINT, INT))):
        return add_to_datetime("+", right, left, span)
    if lt == VOID or rt == VOID:
        known, unknown = (right, left) if lt == VOID else (left, right)
        if is_interval(known.type):
            unknown = coerced(unknown, known.type)
            return _interval_sum(
                "+", *((unknown, known) if lt == VOID else (known, unknown)), known.type, known.type, span
            )
        return add_to_datetime("+", known, coerced(unknown, DAY_SECOND), span)
    if is_datetime(lt):
        if is_interval(rt) or (lt == DATE and rt in (TINYINT, SMALLINT, INT)):
            return add_to_datetime("+", left, right, span)
        if lt == DATE or rt == DATE:
            raise _unexpected("+", left, right, span)
        raise (_wrong if lt == rt or rt == STRING else _different)("+", left, right, span)
    if is_datetime(rt):
        if rt == DATE or (isinstance(lt, IntervalType)):
            raise _unexpected("+", left, right, span)
        raise (_wrong if lt == STRING else _different)("+", left, right, span)
    return _interval_sum("+", left, right, lt, rt, span)


def _is_day_time(t: DataType) -> bool:
    return isinstance(t, IntervalType) and not t.is_year_month


def _interval_sum(symbol: str, left: Expr, right: Expr, lt: DataType, rt: DataType, span: Span | None) -> Expr:
    if isinstance(lt, IntervalType) and isinstance(rt, IntervalType):
        common = least_common_type(lt, rt)
        if common is None:
            opened = symbol == "-" and not lt.is_year_month
            raise (_different if opened else _unexpected)(symbol, left, right, span)
        name = "_interval_add" if symbol == "+" else "_interval_sub"
        return Call(common, _nullable(left, right), name, (left, right), symbol, span=span)
    day_time = _is_day_time(lt) or _is_day_time(rt)
    if day_time and STRING in (lt, rt) and (lt == STRING or symbol == "+"):
        # The text is read as a timestamp, moved, and written as text again.
        moment, step = (left, right) if lt == STRING else (right, left)
        moved = add_to_datetime(symbol, coerced(moment, TIMESTAMP), step, span)
        return coerced(moved, STRING)
    if day_time and not (symbol == "-" and is_interval(lt)):
        raise _unexpected(symbol, left, right, span)
    raise _different(symbol, left, right, span)


def add_to_datetime(symbol: str, moment: Expr, amount: Expr, span: Span | None) -> Expr:
    """A date or timestamp plus or minus an integer of days or an interval."""
    nullable = _nullable(moment, amount)
    t, at = moment.type, amount.type
    if not isinstance(at, IntervalType):
        return Call(DATE, nullable, "date_add" if symbol == "+" else "date_sub", (moment, amount), span=span)
    if t == DATE and at == DAY:
        days = Call(INT, amount.nullable, "extractansiintervaldays", (amount,), span=span)
        if symbol == "-":
            days = Call(INT, days.nullable, "negative", (days,), "-", span=span)
        return Call(DATE, nullable, "date_add", (moment, days), span=span)
    if t == DATE and not at.is_year_month:
        moment, t = coerced(moment, TIMESTAMP), TIMESTAMP
    step = amount if symbol == "+" else Call(at, amount.nullable, "_interval_neg", (amount,), "-", span=span)
    prefix = {DATE: "_date", TIMESTAMP: "_ts", TIMESTAMP_NTZ: "_ntz"}[t]
    name = prefix + ("_add_months" if at.is_year_month else "_add_micros")
    return Call(t, nullable, name, (moment, step), symbol, span=span)


def _minus(left: Expr, right: Expr, lt: DataType, rt: DataType, span: Span | None) -> Expr:
    if is_interval(rt) and (is_datetime(lt)):
        return add_to_datetime("-", left, right, span)
    if lt == DATE and rt in (TINYINT, SMALLINT, INT):
        return add_to_datetime("-", left, right, span)
    if is_datetime(lt) or is_datetime(rt):
        others = {t for t in (lt, rt) if not is_datetime(t)}
        if others - {STRING, VOID}:
            raise _unexpected("-", left, right, span)
        if {lt, rt} <= {DATE, STRING, VOID}:
            args = (coerced(left, DATE), coerced(right, DATE))
            return Call(DAY, _nullable(*args), "_sub_dates", args, "-", span=span)
        target = TIMESTAMP_NTZ if TIMESTAMP_NTZ in (lt, rt) else TIMESTAMP
        args = (coerced(left, target), coerced(right, target))
        return Call(DAY_SECOND, _nullable(*args), "_sub_timestamps", args, "-", span=span)
    if VOID in (lt, rt):
        t = rt if lt == VOID else lt
        return _interval_sum("-", coerced(left, t), coerced(right, t), t, t, span)
    return _interval_sum("-", left, right, lt, rt, span)


def _scaled(symbol: str, left: Expr, right: Expr, lt: DataType, rt: DataType, span: Span | None) -> Expr:
    if symbol == "*" and is_interval(rt) and not is_interval(lt):
        left, right, lt, rt = right, left, rt, lt  # Spark's node begins with the interval, and so does its name
    if not isinstance(lt, IntervalType):
        if STRING in (lt, rt) and is_interval(rt):
            raise _different(symbol, left, right, span)
        raise (_wrong if lt == rt or STRING in (lt, rt) else _different)(symbol, left, right, span)
    if rt in (STRING, VOID):
        right = coerced(right, DOUBLE)
    elif not is_numeric(rt):
        raise _unexpected(symbol, left, right, span)
    result = interval("year", "month") if lt.is_year_month else DAY_SECOND
    name = "_interval_mul" if symbol == "*" else "_interval_div"
    return Call(result, _nullable(left, right), name, (left, right), symbol, span=span)


def _arithmetic(symbol: str, left: Expr, right: Expr, span: Span | None, precision_loss: bool) -> Expr:
    lt, rt = plain(left.type), plain(right.type)
    if STRING in (lt, rt):
        common = _beside_text(symbol, left, right, span)
        left, right, lt, rt = coerced(left, common), coerced(right, common), common, common
    if lt == VOID and rt == VOID:
        left, right = (left, right) if symbol == "/" else (null_of(left), null_of(right))
        t = BIGINT if symbol == "div" else DOUBLE
        return Call(t, True, symbol, (coerced(left, t), coerced(right, t)), span=span)
    if lt == VOID or rt == VOID:
        known = rt if lt == VOID else lt
        if not is_numeric(known) or (symbol == "div" and is_fractional(known)):
            raise _different(symbol, left, right, span)
        if symbol == "/" and (is_integral(known) or lt == VOID):
            known = DOUBLE
        left, right, lt, rt = coerced(left, known), coerced(right, known), known, known
    if not (is_numeric(lt) and is_numeric(rt)):
        raise (_wrong if lt == rt else _different)(symbol, left, right, span)
    if symbol == "div" and (is_fractional(lt) or is_fractional(rt)):
        doubles = lt == rt or (DOUBLE in (lt, rt) and (is_decimal(lt) or is_decimal(rt)))
        raise (_wrong if doubles else _different)(symbol, left, right, span)
    nullable = _nullable(left, right) or symbol in ("/", "%", "div")
    if (is_decimal(lt) or is_decimal(rt)) and not (is_fractional(lt) or is_fractional(rt)):
        return _decimal_arithmetic(symbol, left, right, nullable, span, precision_loss)
    if symbol == "/":
        return Call(DOUBLE, True, "/", (coerced(left, DOUBLE), coerced(right, DOUBLE)), span=span)
    if symbol == "div":
        return Call(BIGINT, True, "div", (coerced(left, BIGINT), coerced(right, BIGINT)), span=span)
    wider = least_common_type(lt, rt)
    assert wider is not None
    left, right = coerced(left, wider), coerced(right, wider)
    return Call(wider, nullable or _nullable(left, right), symbol, (left, right), span=span)


def _beside_text(symbol: str, left: Expr, right: Expr, span: Span | None) -> DataType:
    """The type of both operands where one is a text. Raises UserError if there is none."""
    lt, rt = plain(left.type), plain(right.type)
    other = rt if lt == STRING else lt
    if is_integral(other):
        return BIGINT
    if is_numeric(other) and symbol != "div":  # a quotient with an integer is one of BIGINTs, made doubles
        return DOUBLE
    if is_numeric(other) or least_common_type(lt, rt) is not None:
        raise _wrong(symbol, left, right, span)
    raise _different(symbol, left, right, span)


def _decimal_of(expr: Expr) -> DecimalType:
    # Spark counts the digits of all integer literals but those of one byte
    if isinstance(expr, Lit) and isinstance(expr.value, int) and is_integral(expr.type) and expr.type != TINYINT:
        return decimal_for_literal(expr.value)
    return decimal_for(expr.type)


def _decimal_arithmetic(
    symbol: str, left: Expr, right: Expr, nullable: bool, span: Span | None, precision_loss: bool
) -> Expr:
    ld, rd = _decimal_of(left), _decimal_of(right)
    args = (coerced(left, ld), coerced(right, rd))
    if symbol == "div":
        return Call(BIGINT, True, "div", args, span=span)
    nullable = nullable or _nullable(*args)
    return Call(arithmetic_decimal(symbol, ld, rd, precision_loss), nullable, symbol, args, span=span)


def bind_unary(symbol: str, arg: Expr, span: Span | None) -> Expr:
    """``- x``, ``+ x``, ``~ x``, ``NOT x``."""
    t = plain(arg.type)
    if symbol == "not":
        arg = as_boolean(arg, span)
        return Call(BOOLEAN, arg.nullable, "not", (arg,), span=span)
    if symbol == "~":
        if t == VOID:
            arg = coerced(null_of(arg), INT)
        elif not is_integral(t):  # a text is none, otherwise than beside & and |
            raise _unexpected(symbol, arg, arg, span)
        return Call(arg.type, arg.nullable, "~", (arg,), span=span)
    if t in (STRING, VOID):
        arg = coerced(arg, DOUBLE)
    elif not is_numeric(t) and not is_interval(t):
        raise _unexpected(symbol, arg, arg, span)
    if symbol == "+":
        return Call(arg.type, arg.nullable, "positive", (arg,), "+", span=span)
    name = "_interval_neg" if is_interval(t) else "negative"
    return Call(arg.type, arg.nullable, name, (arg,), "-", span=span)


def as_boolean(arg: Expr, span: Span | None) -> Expr:
    """A condition: boolean, or a string / NULL that is cast to one."""
    if arg.type == BOOLEAN:
        return arg
    if plain(arg.type) == STRING or arg.type == VOID:
        return coerced(arg, BOOLEAN)
    raise UserError(
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        f'A condition must be of type "BOOLEAN", but it has the type "{arg.type.sql}".',
        span=span,
    )


def bind_connective(word: str, args: list[Expr], spans: list[Span | None]) -> Expr:
    """``a AND b AND …`` (or OR) as one n-ary node."""
    if all(arg.type == VOID for arg in args):
        args = list(map(null_of, args))
    checked = []
    for arg, span in zip(args, spans, strict=True):
        t = plain(arg.type)
        if t not in (BOOLEAN, STRING, VOID):
            raise UserError(
                "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
                f'The operands of {word.upper()} must be of type "BOOLEAN", but one has the type "{arg.type.sql}".',
                span=span,
            )
        checked.append(coerced(arg, BOOLEAN))
    types = {plain(a.type) for a in args}
    if STRING in types and BOOLEAN not in types:  # nothing there asks for a BOOLEAN
        raise UserError(
            "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
            f'The operands of {word.upper()} must be of type "BOOLEAN", not "STRING".',
            span=spans[0],
        )
    return Call(BOOLEAN, _nullable(*checked), word, tuple(checked))


def _lower_comparison(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    t = call.args[0].type
    if isinstance(t, (ArrayType, StructType)):
        return b.udf("nested_compare", BOOLEAN, *args, params=(call.fn,), nullable=call.nullable)
    if call.fn in ("=", "<=>") and all(map(has_columns, call.args)):
        args = tuple(map(one_zero, args))  # a join may be by them (`lowering.zeros`)
    if call.fn == "<=>":
        return b.op("IS NOT DISTINCT FROM", BOOLEAN, *args, nullable=False)
    return b.op(call.fn, BOOLEAN, *args, nullable=call.nullable)


_CHECKED = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}


def _literal_nonzero(expr: Expr) -> bool:
    while isinstance(expr, b.EngineCast):
        expr = expr.arg
    return isinstance(expr, Lit) and expr.value is not None and expr.value != 0


def _is_finite(arg: Expr) -> bool:
    """Whether no sum or product with it is NaN unless the other operand is: a finite number, not zero."""
    while isinstance(arg, b.EngineCast):
        arg = arg.arg
    return isinstance(arg, Lit) and arg.value is not None and arg.value != 0 and abs(arg.value) < math.inf


def _lower_arithmetic(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    t, symbol = call.type, call.fn
    if t in (TINYINT, SMALLINT, INT):
        wide = b.op(symbol, BIGINT, *(b.cast(a, BIGINT) for a in args), nullable=call.nullable)
        if t == INT and has_columns(call):  # the engine would raise for constants that no row may need
            return b.cast(wide, t, raises=True)
        return b.udf("narrow_checked", t, wide, params=(symbol,), raises=True, nullable=call.nullable)
    if t == BIGINT:
        return b.udf(_CHECKED[symbol], t, *args, raises=True, nullable=call.nullable)
    if isinstance(t, DecimalType):
        return _lower_decimal(call, t, args)
    bare = tuple(map(any_nan, args))
    result = b.op(symbol, t, *bare, nullable=call.nullable)
    safe = any(map(_is_finite, args)) and all(x is y for x, y in zip(bare, args, strict=True))
    return result if safe else one_nan(result)


def _lower_decimal(call: Call, t: DecimalType, args: tuple[Expr, ...]) -> Expr:
    left, right = args[0].type, args[1].type
    assert isinstance(left, DecimalType) and isinstance(right, DecimalType)
    if call.fn == "*":
        exact = left.precision + right.precision + 1 <= 38
    else:
        scale = max(left.scale, right.scale)
        exact = max(left.precision - left.scale, right.precision - right.scale) + scale + 1 <= 38
    if exact:
        return b.op(call.fn, t, *args, nullable=call.nullable)
    return b.udf("decimal_arithmetic", t, *args, params=(call.fn,), raises=True, nullable=call.nullable)


def _lower_divide(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    if isinstance(call.type, DecimalType):
        return b.udf("decimal_divide", call.type, *args, raises=True)
    if _literal_nonzero(args[1]):
        return b.op("/", call.type, *args, nullable=call.nullable)
    return b.udf("divide_checked", call.type, *args, raises=True)


def _lower_remainder(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    t = call.type
    if isinstance(t, DecimalType):
        left, right = args[0].type, args[1].type
        assert isinstance(left, DecimalType) and isinstance(right, DecimalType)
        common = wider_decimal(left, right)
        scale = max(left.scale, right.scale)
        if common.scale < scale:
            return b.udf("decimal_remainder", t, *args, raises=True)
        wide = [b.cast(a, common) for a in args]
        return b.udf("decimal_remainder", t, *wide, raises=True)
    if t in (FLOAT, DOUBLE):
        return b.udf("float_remainder", t, *args, raises=True)
    if _literal_nonzero(args[1]):
        return b.op("%", t, *args, nullable=call.nullable)
    return b.udf("integer_remainder", t, *args, raises=True)


def _lower_div(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    if is_decimal(args[0].type) or is_decimal(args[1].type):
        return b.udf("decimal_div", BIGINT, *args, raises=True)
    wide = [_as_bigint(a) for a in args]
    t = args[1].type
    smallest = (-(2**31) if t.is_year_month else -(2**63),) if isinstance(t, IntervalType) else ()
    return b.udf("integer_div", BIGINT, *wide, raises=True, params=smallest)


def _as_bigint(arg: Expr) -> Expr:
    if isinstance(arg.type, IntervalType):
        return b.EngineCast(BIGINT, arg.nullable, arg)
    return b.cast(arg, BIGINT)


def _lower_negative(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    t = call.type
    if is_integral(t):
        return b.udf("negate_checked", t, args[0], raises=True, nullable=call.nullable)
    if is_decimal(t):
        return b.op("-", t, Lit(t, False, 0), args[0], nullable=call.nullable)
    return b.op("*", t, args[0], Lit(t, False, -1.0), nullable=call.nullable)


def _lower_logic(word: str) -> Callable[[Call, tuple[Expr, ...], Context], Expr]:
    def lower(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
        return b.op(word, BOOLEAN, *args, nullable=call.nullable)

    return lower


def _lower_in(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    if isinstance(call.args[0].type, (ArrayType, StructType)):
        equal = [b.udf("nested_compare", BOOLEAN, args[0], a, params=("=",)) for a in args[1:]]
        return b.op("OR", BOOLEAN, *equal, nullable=call.nullable) if len(equal) > 1 else equal[0]
    args = tuple(map(one_zero, args))
    return b.op("IN", BOOLEAN, *args, nullable=call.nullable)


def _lower_between(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    return b.op("AND", BOOLEAN, *args, nullable=call.nullable)


def _lower_grouping_bit(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    """One bit of the grouping id: 1 where the key is not in the row's grouping set."""
    shifted = b.op("/", BIGINT, args[0], Lit(BIGINT, False, 1 << call.data[0]))
    return b.cast(b.op("%", BIGINT, shifted, Lit(BIGINT, False, 2)), TINYINT)


def _lower_days(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    micros = b.EngineCast(BIGINT, args[0].nullable, args[0])
    return b.cast(b.op("/", BIGINT, micros, Lit(BIGINT, False, 86_400_000_000)), INT)


def _lower_char_pad(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    """A text with spaces behind it up to a length, the longer ones as they are; with its own spaces taken away before."""
    text, length = args
    if call.data:
        text = b.fn("rtrim", STRING, text, nullable=text.nullable)
    if isinstance(text, Lit) and isinstance(length, Lit):
        return text if text.value is None else Lit(STRING, False, text.value.ljust(length.value))
    short = b.op("<", BOOLEAN, b.fn("char_length", INT, text), length)
    padded = b.fn("rpad", STRING, text, b.cast(length, BIGINT), Lit(STRING, False, " "))
    return b.case(STRING, (short, padded), otherwise=text)


def _positive(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    return args[0]


def _bind_div(function: Function, site: Site) -> Expr:
    """``div(a, b)``: the operator, also by name."""
    if len(site.args) != 2:
        raise site.wrong_count("2")
    return bind_binary("div", *site.args, site.span)


ROWS: tuple[Function, ...] = (
    *(Function(symbol, lower=_lower_comparison, kind="operator") for symbol in COMPARISONS),
    *(Function(symbol, lower=_lower_arithmetic, kind="operator") for symbol in ("+", "-", "*")),
    Function("/", lower=_lower_divide, kind="operator"),
    Function("%", lower=_lower_remainder, kind="operator"),
    Function("div", bind=_bind_div, lower=_lower_div, kind="operator"),
    Function("and", lower=_lower_logic("AND"), kind="operator"),
    Function("or", lower=_lower_logic("OR"), kind="operator"),
    Function("not", lower=_lower_logic("NOT"), kind="operator"),
    Function("is null", lower=_lower_logic("IS NULL"), kind="operator"),
    Function("is not null", lower=_lower_logic("IS NOT NULL"), kind="operator"),
    Function("in", lower=_lower_in, kind="operator"),
    Function("between", lower=_lower_between, kind="operator"),
    Function("_grouping_bit", lower=_lower_grouping_bit, kind="operator"),
    Function("_char_pad", lower=_lower_char_pad, kind="operator"),
    Function("extractansiintervaldays", lower=_lower_days, kind="operator"),
)

#: Rows that share their name with a function of Spark; used by the functions' own modules.
LOWER_NEGATIVE = _lower_negative
LOWER_POSITIVE = _positive
