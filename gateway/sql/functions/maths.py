"""Rows of mathematical and bitwise functions: natives on DOUBLE, rounding exactly as Spark rounds, checked integer forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from gateway.errors import UnsupportedError, UserError, unsupported
from gateway.sql.functions.casts import fold_cast
from gateway.sql.functions.constants import constant
from gateway.sql.functions.lowerings import (
    kernel,
    less_than,
    literal,
    native,
    one_nan,
    raise_row,
    raises,
    refused,
)
from gateway.sql.functions.operators import LOWER_NEGATIVE, LOWER_POSITIVE, bind_binary, bind_unary
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Param, Site, coerce_args, make, null_of, param
from gateway.sql.typed.coerce import accepts, coerced, implicit_type
from gateway.sql.typed.common_types import decimal_for, least_common_of
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import Call, Cast, Expr, Lit
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    STRING,
    TINYINT,
    VOID,
    DataType,
    DecimalType,
    IntervalType,
    decimal,
    is_fractional,
    is_integral,
    is_interval,
    is_numeric,
)

_DOUBLE = param(DOUBLE)
_PI, _E = 3.141592653589793, 2.718281828459045


def _zero() -> Lit:
    return bound.lit(0.0, DOUBLE)


def _real(name: str, lower: Lower | None = None, *aliases: str, shown: str | None = None) -> Function:
    """A DOUBLE function of one DOUBLE; always nullable in Spark."""
    return Function(
        name,
        (_DOUBLE,),
        returns=DOUBLE,
        nullable="always",
        lower=lower or native(name),
        aliases=aliases,
        shown=shown,
    )


def _partial(name: str) -> Lower:
    """A function that has no value for some numbers."""
    return lambda call, args, context: one_nan(bound.fn(name, DOUBLE, args[0]))


def _bind_log(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    args = coerce_args(Function("log", (_DOUBLE, _DOUBLE), optional=1), site)
    if len(args) == 1:
        args = (bound.Lit(DOUBLE, False, _E, "E()"), args[0])
    return make(function, site, args, DOUBLE, True)


def _sqrt(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    nan = bound.lit(float("nan"), DOUBLE)
    return bound.case(DOUBLE, (less_than(args[0], _zero()), nan), otherwise=bound.fn("sqrt", DOUBLE, args[0]))


def _atan2(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("atan2", DOUBLE, *(bound.op("+", DOUBLE, a, _zero()) for a in args))


def _scale(site: Site, index: int, of_decimal: bool = True) -> int | None:
    """The constant number of digits; None for NULL. Casts of literals are folded."""
    if site.args[index].type == STRING:
        raise site.mismatch(index, "INT")
    value = constant(site, index)
    if value is None:
        return None
    return _in_int(site, index, int(value), least=1 - 2**31 if of_decimal else -(2**31))


def _in_int(site: Site, index: int, value: int, least: int = 1 - 2**31) -> int:
    if not least <= value < 2**31:
        raise UserError(
            "CAST_OVERFLOW",
            f"The number of digits {value} of `{site.shown}` is out of the range of INT.",
            span=site.span_of(index),
        )
    return value


def rounded_decimal(t: DecimalType, digits: int) -> DecimalType:
    """Type of a DECIMAL rounded to `digits` (RoundBase.dataType): one more integer digit, never more scale."""
    whole = t.precision - t.scale + 1
    if digits < 0:
        return decimal(min(max(whole, 1 - digits), MAX_PRECISION), 0)
    scale = min(t.scale, digits)
    return decimal(min(whole + scale, MAX_PRECISION), scale)


def _bind_round(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    value_type = implicit_type(site.args[0].type, ["numeric"])
    if value_type is None:
        raise site.mismatch(0, "NUMERIC")
    value = coerced(site.args[0], value_type)
    if len(site.args) == 1:
        digits: int | None = 0
        shown: Expr = Lit(INT, False, 0)
    else:
        if implicit_type(site.args[1].type, [INT]) is None:
            raise site.mismatch(1, "INT")
        shown = coerced(site.args[1], INT)
        of_number = replace(site, args=(value, shown)) if site.args[1].type == STRING else site
        digits = _scale(of_number, 1, of_decimal=isinstance(value_type, DecimalType))
    type_ = rounded_decimal(value_type, digits or 0) if isinstance(value_type, DecimalType) else value_type
    return make(function, site, (value, shown), type_, True, (digits,))


def _round(mode: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        value, digits = args[0], call.data[0]
        if digits is None:
            return bound.null(call.type)
        if isinstance(value.type, DecimalType):
            return _round_decimal(call.type, value, digits, mode)
        if abs(digits) >= _BEYOND and (digits < 0 or is_integral(value.type)):
            return _beyond(call, value)
        if is_integral(value.type):
            if digits >= 0:
                return value
            return bound.udf("round_integer", call.type, value, params=(mode, digits), raises=True)
        return bound.udf("round_double", call.type, value, params=(mode, digits))

    return lower


#: Digits with which Java's BigInteger has no room for a power of ten.
_BEYOND = 646_456_993


def _beyond(call: Call, value: Expr) -> Expr:
    """A number rounded to so many digits: only what needs no power of ten is one."""
    zero = Lit(value.type, False, 0.0 if is_fractional(value.type) else 0)
    kept = [bound.is_null(value), bound.op("=", BOOLEAN, value, zero)]
    if is_fractional(value.type):
        kept += [bound.op("=", BOOLEAN, value, Lit(value.type, False, x)) for x in (math.nan, math.inf, -math.inf)]
    raising = raise_row(call.type, "ARITHMETIC_OVERFLOW", "BigInteger would overflow supported range.")
    plain = bound.op("+", call.type, value, zero) if is_fractional(value.type) else value  # BigDecimal knows no -0.0
    return bound.case(call.type, (bound.op("OR", BOOLEAN, *kept), plain), otherwise=raising)


def _round_decimal(type_: DataType, value: Expr, digits: int, mode: str) -> Expr:
    assert isinstance(value.type, DecimalType)
    if digits >= value.type.scale:
        return bound.cast(value, type_)
    return bound.udf("round_decimal", type_, value, params=(mode, digits), raises=True)


def _bind_ceil(function: Function, site: Site) -> Expr:
    """ceil(x): BIGINT, or a DECIMAL without scale; ceil(x, d): always DECIMAL."""
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    if len(site.args) == 1:
        source = implicit_type(site.args[0].type, ["decimal", DOUBLE, BIGINT] if _is_wide(site) else [DOUBLE])
        if accepts("integral", site.args[0].type):
            source = BIGINT
        if source is None:
            raise site.mismatch(0, "DECIMAL or DOUBLE or BIGINT")
        value = coerced(site.args[0], source)
        if isinstance(source, DecimalType):
            type_ = rounded_decimal(source, 0) if source.scale else source
            return make(function, site, (value,), type_, True, (0,))
        return make(function, site, (value,), BIGINT, True, (0,))
    digits = _scale(site, 1) if site.args[1].type == INT and is_foldable(site.args[1]) else None
    if digits is None:
        raise UserError(
            "NON_FOLDABLE_ARGUMENT",
            f'The function `{site.shown}` requires the parameter `scale` to be a foldable expression of the type "INT", '
            "but the actual argument is another.",
            span=site.span_of(1),
        )
    given = site.args[0].type
    if is_integral(given):
        source = decimal_for(given)
    elif given == FLOAT:
        source = decimal(14, 7)
    elif given == DOUBLE:
        source = decimal(30, 15)
    else:
        source = implicit_type(given, ["decimal"])
    if not isinstance(source, DecimalType):
        raise site.mismatch(0, "DECIMAL")
    value = coerced(site.args[0], source)
    shown = coerced(site.args[1], INT)
    return make(function, site, (value, shown), rounded_decimal(source, digits), True, (digits,))


def _is_wide(site: Site) -> bool:
    return isinstance(site.args[0].type, DecimalType)


def _ceil(mode: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        value, digits = args[0], call.data[0]
        if digits is None:
            return bound.null(call.type)
        if isinstance(value.type, DecimalType):
            return _round_decimal(call.type, value, digits, mode)
        if value.type == BIGINT:
            return value
        return bound.udf("whole_double", BIGINT, value, params=(mode,), nullable=call.nullable)

    return lower


def _shown_ceil(call: Call, names: list[str]) -> str:
    name = (call.shown or call.fn).lower()
    if len(names) == 1 and name in ("ceil", "floor"):
        name = name.upper()
    return f"{name}({', '.join(names)})"


_LONG = "negate_long_decimal"


def _bind_signed(function: Function, site: Site) -> Expr:
    """abs: numbers and intervals keep their type, strings are DOUBLE."""
    if len(site.args) != 1:
        raise site.wrong_count("1")
    source = implicit_type(site.args[0].type, ["numeric", "interval"])
    if source is None:
        raise site.mismatch(0, "NUMERIC or ANSI INTERVAL")
    value = coerced(site.args[0], source)
    return make(function, site, (value,), source, value.nullable)


def _abs(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if _is_long(call.type):
        return bound.udf(_LONG, call.type, args[0], params=("abs",), raises=True, nullable=call.nullable)
    if isinstance(call.type, DecimalType) or call.type in (FLOAT, DOUBLE):
        return bound.fn("abs", call.type, args[0], nullable=call.nullable)
    return bound.udf("abs_integer", call.type, args[0], raises=True, nullable=call.nullable)


def _bind_sign(function: Function, site: Site) -> Expr:
    if len(site.args) == 1 and is_interval(site.args[0].type):
        return make(function, site, site.args, DOUBLE, True)
    args = coerce_args(Function(function.name, (_DOUBLE,)), site)
    return make(function, site, args, DOUBLE, True)


def _signum(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    value = args[0]
    if is_interval(value.type):
        value = bound.cast(value, DOUBLE)
    return bound.udf("signum", DOUBLE, value)


def _bind_shift(function: Function, site: Site) -> Expr:
    args = coerce_args(Function(function.name, (param(INT, BIGINT), param(INT))), site)
    return make(function, site, args, args[0].type, any(a.nullable for a in args))


def _bind_bit_get(function: Function, site: Site) -> Expr:
    if len(site.args) == 2 and site.args[0].type == STRING:
        raise site.mismatch(0, "INTEGRAL")
    args = coerce_args(Function(function.name, (param("integral"), param(INT))), site)
    return make(function, site, args, TINYINT, any(a.nullable for a in args))


def _bit_get(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("bit_get", TINYINT, *args, raises=True)


def _bind_bit_count(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    arg = site.args[0]
    source = BOOLEAN if arg.type == BOOLEAN else implicit_type(arg.type, ["integral"])
    if source is None or arg.type == STRING or not (is_integral(source) or source == BOOLEAN):
        raise site.mismatch(0, "INTEGRAL or BOOLEAN")
    value = coerced(arg, source)
    return make(function, site, (value,), INT, value.nullable)


def _bit_count(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("bit_count", INT, bound.cast(args[0], BIGINT))


def _bind_width_bucket(function: Function, site: Site) -> Expr:
    if len(site.args) != 4:
        raise site.wrong_count("4")
    if any(is_interval(a.type) for a in site.args[:3]):
        kinds = set()
        for index, arg in enumerate(site.args[:3]):
            kind = arg.type if isinstance(arg.type, IntervalType) else implicit_type(arg.type, [DOUBLE])
            if kind is None:
                raise site.mismatch(index, "DOUBLE or INTERVAL YEAR TO MONTH or INTERVAL DAY TO SECOND")
            kinds.add(kind.is_year_month if isinstance(kind, IntervalType) else None)
        if len(kinds) > 1:
            raise site.diff_types()
        if implicit_type(site.args[3].type, [BIGINT]) is None:
            raise site.mismatch(3, "BIGINT")
        count = coerced(site.args[3], BIGINT)
        return make(function, site, (*site.args[:3], count), BIGINT, True)
    args = coerce_args(Function("width_bucket", (_DOUBLE, _DOUBLE, _DOUBLE, param(BIGINT))), site)
    return make(function, site, args, BIGINT, True)


def _width_bucket(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("width_bucket", BIGINT, *(bound.cast(a, DOUBLE) for a in args[:3]), args[3])


def _as_operator(symbol: str, key: str | None = None) -> Callable[[Function, Site], Expr]:
    """Binds f(a, b) exactly as ``a symbol b``, keeping the function's name; as row `key` if that is lowered otherwise."""

    def bind(function: Function, site: Site) -> Expr:
        if len(site.args) != 2:
            raise site.wrong_count("2")
        result = bind_binary(symbol, *site.args, site.span)
        if isinstance(result, Call):
            return replace(result, shown=site.shown, fn=key or result.fn)
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"{site.shown} of these types is not supported.", span=site.span)

    return bind


def _bind_unary(symbol: str) -> Callable[[Function, Site], Expr]:
    """Binds f(x) as the prefix operator, keeping the function's name."""

    def bind(function: Function, site: Site) -> Expr:
        if len(site.args) != 1:
            raise site.wrong_count("1")
        result = bind_unary(symbol, site.args[0], site.span)
        assert isinstance(result, Call)
        return replace(result, shown=result.shown if symbol == "+" else site.shown)

    return bind


def _pmod(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("pmod", call.type, *args, raises=True)


def _is_long(t: DataType) -> bool:
    """Whether Spark may round what it negates."""
    return isinstance(t, DecimalType) and t.precision > 34


def _negative(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if _is_long(call.type):
        return bound.udf(_LONG, call.type, args[0], raises=True, nullable=call.nullable)
    if isinstance(call.type, DecimalType):
        return bound.udf("negate_decimal", call.type, args[0], nullable=call.nullable)
    return LOWER_NEGATIVE(call, args, context)


def _bind_try(symbol: str) -> Callable[[Function, Site], Expr]:
    """Binds try_add(a, b) as ``a + b`` whose implicit casts give NULL instead of failing; always nullable."""

    def bind(function: Function, site: Site) -> Expr:
        if len(site.args) != 2:
            raise site.wrong_count("2")
        result = bind_binary(symbol, *site.args, site.span)
        if not isinstance(result, Call) or result.fn != symbol or not is_numeric(result.type):
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE",
                f"{site.shown} of dates, timestamps or intervals is not supported.",
                span=site.span,
            )
        untyped = all(a.type == VOID for a in site.args)
        args = [coerced(a, result.type) for a in site.args] if untyped else result.args
        whole = not all(is_numeric(a.type) for a in site.args)  # Spark tries the operands, too
        return make(function, site, tuple(map(_tried, args)), result.type, True, (symbol, whole))

    return bind


def _tried(arg: Expr) -> Expr:
    """An operand whose implicit casts give NULL instead of failing."""
    if not isinstance(arg, Cast) or not arg.implicit:
        return arg
    return replace(arg, arg=_tried(arg.arg), is_try=True, nullable=True)


def _never_cast(arg: Expr, context: Context) -> bool:
    """Whether it is a constant that Spark fails to cast before it looks at any row."""
    return isinstance(arg, Cast) and isinstance(arg.arg, Lit) and fold_cast(arg.arg, arg.type, context) is None


def _try(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    symbol, whole = call.data
    if whole and any(map(raises, args)) and not any(_never_cast(a, context) for a in call.args):
        raise refused(call, f"{call.fn} of what may raise, which is NULL then beside a STRING or NULL,")
    return bound.udf("try_arithmetic", call.type, *args, params=(symbol,))


def _bind_bitwise(function: Function, site: Site) -> Expr:
    if len(site.args) != 2:
        raise site.wrong_count("2")
    given = [a.type for a in site.args]
    alone = STRING in given and {*given} <= {STRING, VOID}  # beside a number only, a STRING is one
    types = [STRING, STRING] if alone else [BIGINT if t == STRING else t for t in given]
    common = least_common_of(types)
    if common == VOID:
        site, common = replace(site, args=tuple(map(null_of, site.args))), INT
    if common is None or not is_integral(common):
        raise UserError(
            "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"
            if types[0] != types[1]
            else "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
            f'Cannot resolve "{function.name}" due to data type mismatch: the operator requires integral operands, not '
            f'"{types[0].sql}" and "{types[1].sql}".',
            span=site.span,
        )
    args = tuple(coerced(a, common) for a in site.args)
    return make(function, site, args, common, any(a.nullable for a in args))


_HEX = Param((BIGINT, BINARY, STRING))


def _format_number(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if args[1].type == STRING:
        raise refused(call, "format_number with a pattern")
    single = call.args[0].type == FLOAT
    value = bound.cast(args[0], DOUBLE) if single else args[0]
    return bound.udf("format_number", STRING, value, args[1], params=(single,))


def _bind_format_number(function: Function, site: Site) -> Expr:
    if len(site.args) != 2:
        raise site.wrong_count("2")
    value, places = site.args
    if value.type != VOID and not is_numeric(value.type):
        raise site.mismatch(0, "NUMERIC")
    if places.type not in (INT, STRING, VOID):
        raise site.mismatch(1, "INT or STRING")
    value = coerced(value, DOUBLE) if value.type == VOID else value
    places = coerced(places, INT) if places.type == VOID else places
    return make(function, site, (value, places), STRING, True)


def _bind_random(function: Function, site: Site) -> Expr:
    if site.args:
        raise unsupported(f"{site.shown} with a seed", site.span)
    return make(function, site, (), DOUBLE, False)


def _bind_uuid(function: Function, site: Site) -> Expr:
    if site.args:
        raise unsupported(f"{site.shown} with a seed", site.span)
    return make(function, site, (), STRING, False)


_BY_KERNEL = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "csc", "exp", "expm1", "log10", "log1p", "log2", "sec",
    "sinh", "tanh",
)  # fmt: skip

ROWS: tuple[Function, ...] = (
    *(_real(n, _partial(n), shown=n.upper()) for n in ("cos", "cot", "sin", "tan")),
    *(_real(n, shown=n.upper()) for n in ("degrees", "radians")),
    *(_real(n, kernel(n), shown=n.upper()) for n in _BY_KERNEL),
    *(_real(n, kernel(n)) for n in ("ln", "rint")),
    _real("sqrt", _sqrt, shown="SQRT"),
    Function("log", bind=_bind_log, lower=kernel("log"), shown="LOG"),
    Function("atan2", (_DOUBLE, _DOUBLE), returns=DOUBLE, lower=_atan2, shown="ATAN2"),
    Function("hypot", (_DOUBLE, _DOUBLE), returns=DOUBLE, lower=kernel("hypot"), shown="HYPOT"),
    Function("pow", (_DOUBLE, _DOUBLE), returns=DOUBLE, lower=kernel("power")),
    Function("power", (_DOUBLE, _DOUBLE), returns=DOUBLE, lower=kernel("power"), shown="POWER"),
    Function("pi", returns=DOUBLE, nullable="never", lower=literal(_PI), shown="PI"),
    Function("e", returns=DOUBLE, nullable="never", lower=literal(_E), shown="E"),
    Function("sign", bind=_bind_sign, lower=_signum),
    Function("signum", bind=_bind_sign, lower=_signum, shown="SIGNUM"),
    Function("abs", bind=_bind_signed, lower=_abs),
    Function("round", bind=_bind_round, lower=_round("half_towards_infinity")),
    Function("bround", bind=_bind_round, lower=_round("half_to_even")),
    Function("ceil", bind=_bind_ceil, lower=_ceil("up"), aliases=("ceiling",), shown=_shown_ceil),
    Function("floor", bind=_bind_ceil, lower=_ceil("down"), shown=_shown_ceil),
    Function("factorial", (param(INT),), returns=BIGINT, nullable="always", lower=kernel("factorial")),
    Function("mod", bind=_as_operator("%")),
    Function("negative", bind=_bind_unary("-"), lower=_negative),
    Function("positive", bind=_bind_unary("+"), lower=LOWER_POSITIVE),
    Function("try_add", bind=_bind_try("+"), lower=_try),
    Function("try_subtract", bind=_bind_try("-"), lower=_try),
    Function("try_multiply", bind=_bind_try("*"), lower=_try),
    Function("try_divide", bind=_bind_try("/"), lower=_try),
    Function("try_mod", bind=_bind_try("%"), lower=_try),
    Function("pmod", bind=_as_operator("%", "pmod"), lower=_pmod),
    Function("&", bind=_bind_bitwise, lower=kernel("bitwise_and")),
    Function("|", bind=_bind_bitwise, lower=kernel("bitwise_or")),
    Function("^", bind=_bind_bitwise, lower=kernel("bitwise_xor")),
    Function("~", bind=_bind_unary("~"), lower=kernel("bitwise_not")),
    Function("bin", (param(BIGINT),), returns=STRING, lower=kernel("bin")),
    Function("hex", (_HEX,), returns=STRING, lower=kernel("hex")),
    Function("unhex", (param("string"),), returns=BINARY, nullable="always", lower=kernel("unhex")),
    Function(
        "conv",
        (param("string"), param(INT), param(INT)),
        returns=STRING,
        nullable="always",
        lower=kernel("conv", raises=True),
    ),
    Function("format_number", bind=_bind_format_number, lower=_format_number),
    Function("bit_count", bind=_bind_bit_count, lower=_bit_count),
    Function("bit_get", bind=_bind_bit_get, lower=_bit_get, aliases=("getbit",)),
    Function("shiftleft", bind=_bind_shift, lower=kernel("shiftleft")),
    Function("<<", bind=_bind_shift, lower=kernel("shiftleft")),
    Function("shiftright", bind=_bind_shift, lower=kernel("shiftright")),
    Function(">>", bind=_bind_shift, lower=kernel("shiftright")),
    Function("shiftrightunsigned", bind=_bind_shift, lower=kernel("shiftrightunsigned")),
    Function(">>>", bind=_bind_shift, lower=kernel("shiftrightunsigned")),
    Function("width_bucket", bind=_bind_width_bucket, lower=_width_bucket),
    Function("rand", bind=_bind_random, lower=native("random"), aliases=("random",), deterministic=False),
    Function("uuid", bind=_bind_uuid, lower=native("uuid"), deterministic=False),
)
