"""Mathematical functions of ours over numpy arrays: Spark's rounding, saturating casts, Java's shifts, base conversion."""

from __future__ import annotations

import binascii
import contextlib
import math
import operator
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.cast_numbers import nulls
from gateway.engine.functions.decimal_digits import MODES, rounded_to
from gateway.engine.functions.distinct import per_distinct, scalar, vectorised
from gateway.floats import float_text
from gateway.sqltypes import BIGINT, INT, MAX_PRECISION, DataType, DecimalType

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_EXACT = Context(prec=800)
Floats = np.ndarray[Any, np.dtype[np.float64]]


def _floats(array: pa.Array) -> tuple[Floats, Any]:
    """Values as float64 (anything where NULL) and the mask of NULLs."""
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False).astype(np.float64), nulls


def _integers(array: pa.Array) -> tuple[Any, Any]:
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    zero = pa.scalar(0, array.type)
    return pc.fill_null(array, zero).to_numpy(zero_copy_only=False), nulls


def _real(name: str, function: Callable[..., Floats]) -> None:
    """Registers a numpy function of float64 arrays."""

    def kernel(*arrays: pa.Array) -> pa.Array:
        values, masks = zip(*(_floats(a) for a in arrays), strict=True)
        with np.errstate(all="ignore"):
            return pa.array(function(*values), pa.float64(), mask=np.logical_or.reduce(masks))

    vectorised(name)(kernel)


_real("csc", lambda x: 1.0 / np.sin(x))
_real("sec", lambda x: 1.0 / np.cos(x))
_real("rint", np.rint)


def _signum(x: Floats) -> Floats:
    sign: Floats = np.where((x == 0.0) | np.isnan(x), x, np.copysign(1.0, x))
    return sign


_real("signum", _signum)


vectorised("negate_decimal")(pc.negate)

_SHORT = Context(prec=34, rounding=ROUND_HALF_EVEN)


@implementation("negate_long_decimal")
def negate_long_decimal(spec: UdfSpec) -> Kernel:
    """-x of a DECIMAL of more than 34 digits, of which Spark keeps 34; params: ("abs",) for that of negative values alone."""
    returns = spec.returns.arrow()
    least = Decimal(10 ** (returns.precision - returns.scale))
    only_negative = bool(spec.params)

    def negated(value: Decimal | None) -> Decimal | None:
        if value is None or (only_negative and value >= 0):
            return value
        found = _SHORT.plus(_EXACT.copy_negate(value))
        if abs(found) >= least:
            raise RowError(
                "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
                f"The {found} rounded half up from {found} cannot be represented as "
                f"Decimal({returns.precision}, {returns.scale}).",
            )
        return found

    def kernel(value: pa.Array) -> pa.Array:
        return pa.array(map(negated, value.to_pylist()), returns)

    return kernel


#: More digits than any double has in front of its point: beyond, a double is rounded as here.
_LONGEST = 400


@implementation("round_double")
def round_double(spec: UdfSpec) -> Kernel:
    """round / bround of FLOAT and DOUBLE: Spark rounds the decimal text of the double.

    Where the scaled value is far from a tie and exact as an integer, one division gives the same double; the rest goes
    through Decimal. Params: rounding mode, digits.
    """
    mode, digits = spec.params
    digits = max(digits, -_LONGEST)
    returns = spec.returns.arrow()

    def slow(x: float) -> float:
        if not math.isfinite(x):
            return x
        return float(
            Decimal(float_text(x, 53)).quantize(Decimal(1).scaleb(-digits), rounding=MODES[mode], context=_EXACT)
        )

    def kernel(value: pa.Array) -> pa.Array:
        x, nulls = _floats(value)
        if abs(digits) > 15:
            out = np.array([slow(v) for v in x.tolist()]) if digits <= 330 else x
            out = out + 0.0  # BigDecimal knows no -0.0
            return pa.array(out.astype(returns.to_pandas_dtype()), returns, mask=nulls)
        power = 10.0 ** abs(digits)
        with np.errstate(all="ignore"):
            size = np.abs(x * power if digits >= 0 else x / power)
            low = np.floor(size)
            fraction = size - low
            plain = (size < 1e11) & (np.abs(fraction - 0.5) > 1e-4)
            whole = low + (fraction > 0.5)
            rounded = np.copysign(whole / power if digits >= 0 else whole * power, x)
        hard = np.flatnonzero(~plain & ~nulls)
        rounded[hard] = [slow(v) for v in x[hard].tolist()]
        rounded = rounded + 0.0
        return pa.array(rounded.astype(returns.to_pandas_dtype()), returns, mask=nulls)

    return kernel


@implementation("round_integer")
def round_integer(spec: UdfSpec) -> Kernel:
    """round / bround of an integer to tens, hundreds …; params: mode, digits < 0."""
    mode, digits = spec.params
    returns = spec.returns.arrow()
    step, half = Decimal(1).scaleb(-max(digits, -30)), 1 << (returns.bit_width - 1)

    def compute(value: int) -> int:
        rounded = int(Decimal(value).quantize(step, rounding=MODES[mode], context=_EXACT))
        if not -half <= rounded < half:
            raise RowError("ARITHMETIC_OVERFLOW", f"Overflow in round of {value}.")
        return rounded

    def kernel(value: pa.Array) -> pa.Array:
        if digits < -_POWERS:
            return per_distinct(compute, (value,), returns)
        values, nulls = _integers(value)
        power = 10**-digits
        below, rest = np.divmod(values.astype(np.int64), power)
        below += _goes_up(mode, below, rest, power)
        beyond = np.flatnonzero(((below > (half - 1) // power) | (below < -(half // power))) & ~nulls)
        if len(beyond):
            compute(int(values[beyond[0]]))  # raises
        return pa.array((below * power).astype(returns.to_pandas_dtype()), returns, mask=nulls)

    return kernel


_POWERS = 18  # of ten, that are 64-bit integers, doubled too


def _goes_up(mode: str, below: Any, rest: Any, power: int) -> Any:
    """Which integers are rounded to the multiple of a power above them, not the one below."""
    if mode in ("up", "down"):
        return (rest > 0) & (mode == "up")
    tied = below % 2 == 1 if mode == "half_to_even" else below >= 0  # else away from zero
    return (2 * rest > power) | ((2 * rest == power) & tied)


@implementation("round_decimal")
def round_decimal(spec: UdfSpec) -> Kernel:
    """round, bround, ceil and floor of DECIMAL(p,s) to `digits`; params: pyarrow's rounding mode, digits."""
    mode, digits = spec.params
    source = spec.args[0]
    if not isinstance(source, DecimalType):
        raise TypeError(str(source))
    returns = spec.returns.arrow()
    step = Decimal(1).scaleb(min(-digits, 2 * MAX_PRECISION))

    def far(value: Decimal) -> Decimal:
        rounded = value.quantize(step, rounding=MODES[mode], context=_EXACT)
        if rounded:
            raise RowError(
                "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
                f"The {value} rounded to {-digits} zeros cannot be represented as {spec.returns.sql}.",
            )
        return Decimal(0)

    def kernel(value: pa.Array) -> pa.Array:
        if digits <= -MAX_PRECISION:  # no decimal but zero has so many
            return per_distinct(far, (value,), returns)
        try:
            return rounded_to(value, digits, mode).cast(returns)
        except pa.ArrowInvalid as error:
            raise RowError(
                "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
                f"A rounded value cannot be represented as {spec.returns.sql}.",
            ) from error

    return kernel


@vectorised("whole_double")
def whole_double(value: pa.Array, mode: str) -> pa.Array:
    """ceil / floor of DOUBLE as BIGINT like Java's cast: saturating, NaN is 0."""
    x, nulls = _floats(value)
    with np.errstate(all="ignore"):
        whole = np.ceil(x) if mode == "up" else np.floor(x)
        inside = np.where(np.isnan(whole), 0.0, np.clip(whole, -9.2e18, 9.2e18)).astype(np.int64)
        big, small = whole >= 2.0**63, whole <= -(2.0**63)
        near = ~big & ~small & (np.abs(whole) > 9.2e18)
        inside[near] = whole[near].astype(np.int64)
    inside[big], inside[small] = _INT64_MAX, _INT64_MIN
    return pa.array(inside, pa.int64(), mask=nulls)


@implementation("abs_integer")
def abs_integer(spec: UdfSpec) -> Kernel:
    """abs of integers and intervals; the smallest value overflows."""
    returns = spec.returns.arrow()

    def kernel(value: pa.Array) -> pa.Array:
        try:
            return pc.abs_checked(value).cast(returns)
        except pa.ArrowInvalid:
            raise RowError("ARITHMETIC_OVERFLOW", "Overflow in function abs.") from None

    return kernel


_FACTORIALS = np.array([math.factorial(n) for n in range(21)], dtype=np.int64)


@vectorised("factorial")
def factorial(value: pa.Array) -> pa.Array:
    """n! for 0..20, else NULL."""
    n, nulls = _integers(value)
    outside = (n < 0) | (n > 20)
    return pa.array(_FACTORIALS[np.where(outside, 0, n)], pa.int64(), mask=nulls | outside)


@scalar("bin")
def to_binary_digits(value: int) -> str:
    """Binary digits of a BIGINT's two's complement."""
    return format(value & 0xFFFFFFFFFFFFFFFF, "b")


@scalar("hex")
def to_hex(value: int | str | bytes) -> str:
    """hex of a BIGINT's two's complement, or of bytes."""
    if isinstance(value, int):
        return format(value & 0xFFFFFFFFFFFFFFFF, "X")
    return (value.encode("utf-8") if isinstance(value, str) else value).hex().upper()


@scalar("unhex")
def unhex(value: str) -> bytes | None:
    """Bytes of hex digits, an odd first digit stands alone; NULL if malformed."""
    try:
        return binascii.unhexlify(("0" if len(value) % 2 else "") + value)
    except ValueError:
        return None


@vectorised("bit_count")
def bit_count(value: pa.Array) -> pa.Array:
    """Bits set in a BIGINT."""
    n, nulls = _integers(value)
    return pa.array(np.bitwise_count(n.astype(np.int64).view(np.uint64)).astype(np.int32), pa.int32(), mask=nulls)


@implementation("bit_get")
def bit_get(spec: UdfSpec) -> Kernel:
    """bit_get(value, position) by the width of the value's type."""
    width = spec.args[0].arrow().bit_width

    def kernel(value: pa.Array, position: pa.Array) -> pa.Array:
        n, nulls = _integers(value)
        at, unknown = _integers(position)
        nulls = nulls | unknown
        wrong = ((at < 0) | (at >= width)) & ~nulls
        if wrong.any():
            raise RowError(
                "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
                f"The value of parameter(s) `pos` in `bit_get` is invalid: expects an integer value in [0, {width}), but "
                f"got {at[wrong][0]}.",
            )
        bits = (n.astype(np.int64) >> np.where(nulls, 0, at)) & 1
        return pa.array(bits.astype(np.int8), pa.int8(), mask=nulls)

    return kernel


def _shift(name: str, function: Callable[[Any, Any], Any]) -> None:
    """Registers a shift; the distance is taken modulo the width of the value, as Java does."""

    def kernel(value: pa.Array, distance: pa.Array) -> pa.Array:
        n, nulls = _integers(value)
        by, unknown = _integers(distance)
        amount = (by & (value.type.bit_width - 1)).astype(n.dtype)
        return pa.array(function(n, amount), value.type, mask=nulls | unknown)

    vectorised(name)(kernel)


_shift("shiftleft", lambda n, by: n << by)
_shift("shiftright", lambda n, by: n >> by)
_shift("shiftrightunsigned", lambda n, by: (n.view(f"u{n.itemsize}") >> by.view(f"u{n.itemsize}")).view(n.dtype))

vectorised("bitwise_and")(pc.bit_wise_and)
vectorised("bitwise_or")(pc.bit_wise_or)
vectorised("bitwise_xor")(pc.bit_wise_xor)
vectorised("bitwise_not")(pc.bit_wise_not)


@vectorised("width_bucket")
def width_bucket(value: pa.Array, low: pa.Array, high: pa.Array, count: pa.Array) -> pa.Array:
    """width_bucket; NULL for bad bounds or counts, as Spark."""
    (v, vn), (lo, ln), (hi, hn) = _floats(value), _floats(low), _floats(high)
    n, cn = _integers(count)
    bad = (
        vn
        | ln
        | hn
        | cn
        | (n <= 0)
        | (n == _INT64_MAX)
        | np.isnan(v)
        | (lo == hi)
        | ~np.isfinite(lo)
        | ~np.isfinite(hi)
    )
    with np.errstate(all="ignore"):
        lower, upper = np.minimum(lo, hi), np.maximum(lo, hi)
        inside = np.where(lo < hi, (v - lo) * n / (hi - lo), (lo - v) * n / (lo - hi))
        bucket = np.where(bad | (v < lower) | (v > upper), 0, inside).astype(np.int64) + 1
    bucket = np.where(lo < hi, np.where(v < lower, 0, bucket), np.where(v > upper, 0, bucket))
    bucket = np.where(lo < hi, np.where(v >= upper, n + 1, bucket), np.where(v <= lower, n + 1, bucket))
    return pa.array(bucket, pa.int64(), mask=bad)


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@scalar("conv")
def conv(value: str, source: int, target: int) -> str | None:
    """Base conversion through an unsigned 64-bit number, as Hive's NumberConverter."""
    value = value.strip(" ")
    if not value or not 2 <= source <= 36 or not 2 <= abs(target) <= 36:
        return None
    negative = value[0] == "-"
    number = 0
    for char in value[1:] if negative else value:
        digit = _DIGITS.find(char.upper()) if char.isascii() else -1
        if not 0 <= digit < source:
            break
        number = number * source + digit
        if number > 0xFFFFFFFFFFFFFFFF:
            raise RowError("ARITHMETIC_OVERFLOW", "Overflow in function conv().")
    top = number >= 2**63
    if negative and target > 0:
        number = 0xFFFFFFFFFFFFFFFF if top else -number & 0xFFFFFFFFFFFFFFFF
    elif target < 0 and top:
        number, negative = 2**64 - number, True
    base, out = abs(target), ""
    while number:
        number, digit = divmod(number, base)
        out = _DIGITS[digit] + out
    return ("-" if negative and target < 0 else "") + (out or "0")


def _fitting(value: Decimal, type_: DataType) -> Decimal:
    """A decimal that must be one of the type."""
    assert isinstance(type_, DecimalType)
    if abs(value) < Decimal(10) ** (type_.precision - type_.scale):
        return value
    raise RowError(
        "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
        f"{value} cannot be represented as Decimal({type_.precision}, {type_.scale}). If necessary set "
        '"spark.sql.ansi.enabled" to "false" to bypass this error, and return NULL instead.',
    )


@implementation("float_extreme")
def float_extreme(spec: UdfSpec) -> Kernel:
    """The greatest or least of some floats that are not NULL, NaN above all; of equal ones, as both zeros are, the first."""
    greatest = spec.params[0] == "greatest"

    def kernel(*arrays: pa.Array) -> pa.Array:
        best = arrays[0].fill_null(0).to_numpy(False)
        known = arrays[0].is_valid().to_numpy(False)
        for array in arrays[1:]:
            found, valid = array.fill_null(0).to_numpy(False), array.is_valid().to_numpy(False)
            high, low = (found, best) if greatest else (best, found)
            with np.errstate(invalid="ignore"):
                better = (high > low) | (np.isnan(high) & ~np.isnan(low))
            best = np.where(valid & (better | ~known), found, best)
            known = known | valid
        return pa.array(best, spec.returns.arrow(), mask=~known)

    return kernel


@implementation("pmod")
def pmod(spec: UdfSpec) -> Kernel:
    """pmod: the remainder, made positive by adding the divisor once and taking the remainder again."""
    returns = spec.returns.arrow()
    half = {INT: 2**31, BIGINT: 2**63}.get(spec.returns)

    def compute(a: Any, b: Any) -> Any:
        if b == 0:
            raise RowError(
                "REMAINDER_BY_ZERO",
                "Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead.",
            )
        if isinstance(a, float):
            rest = _float_remainder(a, b)
            return _float_remainder(rest + b, b) if rest < 0 else rest
        if isinstance(a, Decimal):
            exact = _EXACT.remainder(a, b)
            return _fitting(_EXACT.remainder(_EXACT.add(exact, b), b) if exact < 0 else exact, spec.returns)
        rest = _java_remainder(a, b)
        if rest >= 0:
            return rest
        # INT and BIGINT wrap around, which two negative numbers may come to
        moved = rest + b if half is None else (rest + b + half) % (2 * half) - half
        return _java_remainder(moved, b)

    def kernel(left: pa.Array, right: pa.Array) -> pa.Array:
        if not pa.types.is_integer(returns):
            return per_distinct(compute, (left, right), returns)
        (a, a_void), (b, b_void) = _integers(left), _integers(right)
        void, zero = a_void | b_void, np.flatnonzero((b == 0) & ~a_void & ~b_void)
        if len(zero):
            compute(int(a[zero[0]]), 0)  # raises
        a, b = a.astype(np.int64), np.where(b == 0, 1, b).astype(np.int64)
        rest = _remainders(a, b)
        moved = rest + b  # wraps around, as in Java
        if returns == pa.int32():
            moved = moved.astype(np.int32).astype(np.int64)
        found = np.where(rest < 0, _remainders(moved, b), rest)
        return pa.array(found.astype(returns.to_pandas_dtype()), returns, mask=void)

    return kernel


def _remainders(a: Any, b: Any) -> Any:
    """Of integers, none of them divided by zero, with the sign of the dividend; of the smallest by -1 there is no quotient."""
    return np.fmod(a, np.where(b == -1, 1, b))


@implementation("try_arithmetic")
def try_arithmetic(spec: UdfSpec) -> Kernel:
    """try_add, try_subtract, try_multiply, try_divide, try_mod: NULL where the operator would fail. Params: the symbol."""
    (symbol,) = spec.params
    returns = spec.returns.arrow()
    compute = _decimal_try(spec) if isinstance(spec.returns, DecimalType) else _plain_try(symbol, returns)

    def kernel(left: pa.Array, right: pa.Array) -> pa.Array:
        if pa.types.is_floating(returns):
            return _tried_floats(symbol, left, right, returns)
        if pa.types.is_integer(returns) and symbol in _CHECKED:
            with contextlib.suppress(pa.ArrowInvalid):  # one of them overflows: which, is found one by one
                return _CHECKED[symbol](left.cast(returns), right.cast(returns))
        return per_distinct(compute, (left, right), returns)

    return kernel


_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


def _tried_floats(symbol: str, left: pa.Array, right: pa.Array, returns: pa.DataType) -> pa.Array:
    (a, a_void), (b, b_void) = ((x.fill_null(0).to_numpy(zero_copy_only=False), nulls(x)) for x in (left, right))
    kind = returns.to_pandas_dtype()
    void = a_void | b_void | ((b == 0) if symbol in "/%" else False)
    with np.errstate(all="ignore"):
        return pa.array(_FLOAT_OPERATIONS[symbol](a.astype(kind), b.astype(kind)), returns, mask=void)


def _float_remainder(a: float, b: float) -> float:
    """Java's: of infinity it is not a number, where C's function fails."""
    return math.fmod(a, b) if math.isfinite(a) and not math.isnan(b) else math.nan


def _java_remainder(a: int, b: int) -> int:
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


_FLOAT_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": np.fmod,
}
_INTEGER_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": _java_remainder,
}


def _plain_try(symbol: str, returns: pa.DataType) -> Callable[[Any, Any], Any]:
    def compute_integer(a: int, b: int) -> int | None:
        if symbol in "/%" and b == 0:
            return None
        result = _INTEGER_OPERATIONS[symbol](a, b)
        half = 1 << (returns.bit_width - 1)
        return result if -half <= result < half else None

    return compute_integer


def _decimal_try(spec: UdfSpec) -> Callable[[Any, Any], Any]:
    (symbol,) = spec.params
    target = spec.returns
    assert isinstance(target, DecimalType)
    step = Decimal(1).scaleb(-target.scale)
    limit = Decimal(10) ** (target.precision - target.scale)
    context = Context(prec=120)

    def compute(a: Decimal, b: Decimal) -> Decimal | None:
        if symbol in "/%" and not b:
            return None
        if symbol == "+":
            value = context.add(a, b)
        elif symbol == "-":
            value = context.subtract(a, b)
        elif symbol == "*":
            value = context.multiply(a, b)
        elif symbol == "/":
            value = context.divide(a, b)
        else:
            value = context.remainder(a, b)
        rounded = value.quantize(step, rounding=ROUND_HALF_UP, context=context)
        return rounded if abs(rounded) < limit else None

    return compute
