"""Checked arithmetic: 64-bit integers, division and remainder, and decimals as Spark rounds them.

Decimals whose intermediate results may pass 38 digits are computed on numpy object arrays of integers: exact at any width, and
only used where the native types cannot hold the result, nor `quotients` of 64 bits do.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation, quotients
from gateway.sqltypes import INT, DecimalType


def _overflow(what: str) -> RowError:
    return RowError("ARITHMETIC_OVERFLOW", f"{what} overflow.")


def _checked(name: str, what: str) -> None:
    compute = getattr(pc, name)

    @implementation(name)
    def factory(spec: UdfSpec) -> Kernel:
        def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
            try:
                return compute(a, b)
            except pa.ArrowInvalid:
                raise _overflow(what) from None

        return kernel


_checked("add_checked", "long")
_checked("subtract_checked", "long")
_checked("multiply_checked", "long")


@implementation("negate_checked")
def negate_checked(spec: UdfSpec) -> Kernel:
    """``- x`` of an integer."""
    type_ = spec.returns.arrow()

    def kernel(a: pa.Array) -> pa.Array:
        try:
            return pc.negate_checked(a).cast(type_)
        except pa.ArrowInvalid:
            raise _overflow(spec.returns.simple) from None

    return kernel


@implementation("narrow_checked")
def narrow_checked(spec: UdfSpec) -> Kernel:
    """A BIGINT result back in TINYINT, SMALLINT or INT."""
    type_ = spec.returns.arrow()
    condition = "ARITHMETIC_OVERFLOW" if spec.returns == INT else "BINARY_ARITHMETIC_OVERFLOW"

    def kernel(a: pa.Array) -> pa.Array:
        try:
            return pc.cast(a, type_)
        except pa.ArrowInvalid:
            raise RowError(
                condition,
                f"The result of {spec.params[0]} is out of the range of {spec.returns.sql}.",
            ) from None

    return kernel


def _reject_zero(a: pa.Array, b: pa.Array, condition: str, message: str) -> None:
    zero = pc.equal(b, pa.scalar(0, b.type) if not pa.types.is_decimal(b.type) else pa.scalar(0).cast(b.type))
    if pc.any(pc.and_kleene(zero, pc.is_valid(a))).as_py():
        raise RowError(condition, message)


_DIVIDE = ("DIVIDE_BY_ZERO", "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.")
_REMAINDER = (
    "REMAINDER_BY_ZERO",
    "Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead.",
)


@implementation("divide_checked")
def divide_checked(spec: UdfSpec) -> Kernel:
    """``a / b`` of doubles; a zero divisor raises."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        _reject_zero(a, b, *_DIVIDE)
        return pc.divide(a, b)

    return kernel


@implementation("float_remainder")
def float_remainder(spec: UdfSpec) -> Kernel:
    """``a % b`` of floats with the dividend's sign (C fmod, as Java)."""
    type_ = spec.returns.arrow()

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        _reject_zero(a, b, *_REMAINDER)
        with np.errstate(invalid="ignore"):
            values = np.fmod(a.fill_null(0).to_numpy(False), b.fill_null(1).to_numpy(False))
        valid = pc.and_(a.is_valid(), b.is_valid()).to_numpy(False)
        return pa.array(values, type_, mask=~valid)

    return kernel


@implementation("integer_remainder")
def integer_remainder(spec: UdfSpec) -> Kernel:
    """``a % b`` of integers with the dividend's sign."""
    type_ = spec.returns.arrow()

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        _reject_zero(a, b, *_REMAINDER)
        x, y = a.fill_null(0).to_numpy(False), b.fill_null(1).to_numpy(False)
        y = np.where(y == 0, 1, y)
        valid = pc.and_(a.is_valid(), b.is_valid()).to_numpy(False)
        return pa.array(np.fmod(x, np.where(y == -1, 1, y)), type_, mask=~valid)

    return kernel


@implementation("integer_div")
def integer_div(spec: UdfSpec) -> Kernel:
    """``a div b`` of BIGINTs, truncated; params: the smallest value of an interval's type, if they are intervals.

    The smallest interval divided by -1 is itself.
    """

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        _reject_zero(a, b, *_DIVIDE)
        safe = pc.if_else(pc.equal(b, 0), 1, b)
        if spec.params:
            safe = pc.if_else(pc.and_(pc.equal(a, spec.params[0]), pc.equal(b, -1)), 1, safe)
        try:
            return pc.divide_checked(a, safe)
        except pa.ArrowInvalid:
            raise _overflow("long") from None

    return kernel


def unscaled(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Unscaled values of a decimal128 array as Python integers (object array; 0 for NULL), and a validity mask."""
    array = array if isinstance(array, pa.Array) else array.combine_chunks()
    valid = array.is_valid().to_numpy(False)
    words = np.frombuffer(array.buffers()[1], dtype="<u8")[2 * array.offset : 2 * (array.offset + len(array))]
    low = words[0::2].astype(object)
    high = words[1::2].view("<i8").astype(object)
    return np.where(valid, high * (1 << 64) + low, 0), valid


def unscaled_words(array: pa.Array) -> tuple[np.ndarray, np.ndarray] | None:
    """Unscaled values of a decimal128 array as int64 (0 for NULL), and a validity mask; None if one of them is larger."""
    valid = array.is_valid().to_numpy(False)
    words = np.frombuffer(array.buffers()[1], dtype="<i8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2], words[1::2]
    if not np.array_equal(np.where(valid, high, 0), np.where(valid, low >> 63, 0)):
        return None
    return np.where(valid, low, 0), valid


def decimals_of_words(values: np.ndarray, valid: np.ndarray, type_: pa.Decimal128Type) -> pa.Array:
    """A decimal128 array from unscaled int64 values, all of which are within its precision."""
    words = np.empty((len(values), 2), dtype="<i8")
    words[:, 0], words[:, 1] = values, values >> 63
    mask = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(words.tobytes())])


def decimals(values: np.ndarray, valid: np.ndarray, type_: pa.Decimal128Type) -> pa.Array:
    """A decimal128 array from unscaled Python integers; a value beyond the precision raises."""
    limit = 10**type_.precision
    if len(values) and (bool((values >= limit).any()) or bool((values <= -limit).any())):
        bad = next(int(v) for v in values if v >= limit or v <= -limit)
        raise RowError(
            "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
            f"{_plain(bad, type_.scale)} cannot be represented as Decimal({type_.precision}, {type_.scale}).",
        )
    words = np.empty((len(values), 2), dtype="<u8")
    words[:, 0] = np.array([int(v) & 0xFFFFFFFFFFFFFFFF for v in values], dtype="<u8")
    words[:, 1] = np.array([(int(v) >> 64) & 0xFFFFFFFFFFFFFFFF for v in values], dtype="<u8")
    mask = pa.array(valid).buffers()[1] if not valid.all() else None
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(words.tobytes())])


def _plain(value: int, scale: int) -> str:
    sign, digits = ("-" if value < 0 else ""), str(abs(value)).rjust(scale + 1, "0")
    return sign + (digits if scale == 0 else f"{digits[:-scale]}.{digits[-scale:]}")


def divided_half_up(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Quotient rounded half away from zero; a zero denominator counts as 1 (the caller has raised or masked it)."""
    denominator = np.where(denominator == 0, 1, denominator)
    negative = (numerator < 0) != (denominator < 0)
    n, d = abs(numerator), abs(denominator)
    quotient = (2 * n + d) // (2 * d)
    return np.asarray(np.where(negative, -quotient, quotient))


_WIDEST = pa.decimal128(38, 0)


def _scale(t: object) -> int:
    assert isinstance(t, DecimalType)
    return t.scale


@implementation("decimal_arithmetic")
def decimal_arithmetic(spec: UdfSpec) -> Kernel:
    """``+ - *`` of decimals where the exact result may need more than 38 digits: exact, then rounded HALF_UP to the type."""
    symbol = spec.params[0]
    left, right, result = _scale(spec.args[0]), _scale(spec.args[1]), _scale(spec.returns)
    type_ = spec.returns.arrow()

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        x, xv = unscaled(a)
        y, yv = unscaled(b)
        if symbol == "*":
            exact, scale = x * y, left + right
        else:
            scale = max(left, right)
            x, y = x * 10 ** (scale - left), y * 10 ** (scale - right)
            exact = x + y if symbol == "+" else x - y
        valid = xv & yv
        exact = np.where(valid, exact, 0)
        if scale > result:
            exact = divided_half_up(exact, np.full(len(exact), 10 ** (scale - result), dtype=object))
        return decimals(exact, valid, type_)

    return kernel


@implementation("decimal_divide")
def decimal_divide(spec: UdfSpec) -> Kernel:
    """``a / b`` of decimals, rounded HALF_UP to the result's scale."""
    left, right, result = _scale(spec.args[0]), _scale(spec.args[1]), _scale(spec.returns)
    type_ = spec.returns.arrow()
    shift = result + right - left

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        short = quotients.of_words(unscaled_words(a), unscaled_words(b), shift, type_.precision)
        if short is not None:
            words, valid, by_zero = short
            if by_zero:
                raise RowError(*_DIVIDE)
            mask = None if valid.all() else pa.array(valid).buffers()[1]
            return pa.Array.from_buffers(type_, len(a), [mask, pa.py_buffer(words.tobytes())])
        x, xv = unscaled(a)
        y, yv = unscaled(b)
        valid = xv & yv
        if bool(((y == 0) & valid).any()):
            raise RowError(*_DIVIDE)
        if shift >= 0:
            x = x * 10**shift
        else:
            y = y * 10**-shift
        return decimals(np.where(valid, divided_half_up(x, y), 0), valid, type_)

    return kernel


@implementation("decimal_remainder")
def decimal_remainder(spec: UdfSpec) -> Kernel:
    """``a % b`` of decimals with the dividend's sign."""
    left, right, result = _scale(spec.args[0]), _scale(spec.args[1]), _scale(spec.returns)
    type_ = spec.returns.arrow()
    scale = max(left, right)

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        x, xv = unscaled(a)
        y, yv = unscaled(b)
        valid = xv & yv
        if bool(((y == 0) & valid).any()):
            raise RowError(*_REMAINDER)
        x, y = x * 10 ** (scale - left), y * 10 ** (scale - right)
        y = np.where(y == 0, 1, y)
        rest = np.where(x < 0, -(abs(x) % abs(y)), abs(x) % abs(y))
        if scale > result:
            rest = divided_half_up(rest, np.full(len(rest), 10 ** (scale - result), dtype=object))
        elif scale < result:
            rest = rest * 10 ** (result - scale)
        return decimals(np.where(valid, rest, 0), valid, type_)

    return kernel


@implementation("decimal_div")
def decimal_div(spec: UdfSpec) -> Kernel:
    """``a div b`` of decimals (or a decimal and an integer) as BIGINT: truncated, and of that the low 64 bits."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        x, xv = unscaled(a)
        y, yv = unscaled(b)
        left, right = a.type.scale, b.type.scale
        valid = xv & yv
        if bool(((y == 0) & valid).any()):
            raise RowError(*_DIVIDE)
        scale = max(left, right)
        x, y = x * 10 ** (scale - left), y * 10 ** (scale - right)
        y = np.where(y == 0, 1, y)
        quotient = abs(x) // abs(y)
        quotient = np.where(valid, np.where((x < 0) != (y < 0), -quotient, quotient), 0)
        decimals(quotient, valid, _WIDEST)  # raises
        quotient = (quotient + 2**63) % 2**64 - 2**63  # as java.math.BigDecimal.longValue
        return pa.array(quotient.astype("i8"), mask=~valid)

    return kernel


@implementation("typed_null")
def typed_null(spec: UdfSpec) -> Kernel:
    """NULLs of a type that has no literal in the engine's SQL."""
    type_ = spec.returns.arrow()
    return lambda array: pa.nulls(len(array), type_)


@implementation("last")
def last(spec: UdfSpec) -> Kernel:
    """The last argument; the others are evaluated for the errors that they raise."""
    return lambda *arrays: arrays[-1]
