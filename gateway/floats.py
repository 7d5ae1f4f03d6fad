"""Doubles and floats as Java up to 18 prints them, which Spark shows, casts and makes decimals of."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Sizes = np.ndarray[Any, np.dtype[np.floating[Any]]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def float_text(value: float, bits: int) -> str:
    """One double or float as Java prints it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    size = abs(value)
    if size >= 2.0**bits or (size and math.frexp(size)[0] == 0.5):
        digits = java_digits(size, bits)
        return java_text(value, "-" + digits if value < 0 else digits)
    return java_text(value, repr(value) if bits == 53 else str(np.float32(value)))


def java_digits(value: float, bits: int) -> str:
    """Decimal digits of a positive finite float as Java up to 18 makes them (FloatingDecimal.dtoa); `bits` 53 or 24.

    Newer Java and everybody else prints the shortest text that reads back; the old algorithm misses it for powers of two,
    for ties and for whole numbers beyond the mantissa.
    """
    numerator, denominator = value.as_integer_ratio()
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator < denominator << exponent if exponent >= 0 else numerator << -exponent < denominator:
        exponent -= 1
    smallest = -1074 if bits == 53 else -149
    significant = min(bits, exponent - smallest + 1)
    if denominator == 1 and exponent <= 62:
        dropped = int((exponent - significant - 1) * 0.30103) if exponent > significant else 0
        whole, residue = divmod(numerator, 10**dropped)
        if dropped and residue >= 10**dropped // 2:
            whole += 1
        return f"{whole}e{dropped}"
    # value = rest / whole, half an ulp = half / whole, all of them integers
    shift = max(0, significant - exponent) + 1
    rest, whole = numerator << shift, denominator << shift
    half = denominator << (shift + exponent - significant)
    if numerator & (numerator - 1) == 0:
        rest, whole = rest << 1, whole << 1
    scale = math.floor(math.log10(value))
    if scale > 0:
        whole *= 10**scale
    elif scale < 0:
        rest, half = rest * 10**-scale, half * 10**-scale
    if rest >= 10 * whole:
        whole, scale = whole * 10, scale + 1
    elif rest < whole:
        rest, half, scale = rest * 10, half * 10, scale - 1
    digits, low, high, count = 0, False, False, 0
    while not low and not high:
        digit, rest = divmod(rest, whole)
        digits = digits * 10 + digit
        count += 1
        low, high = rest < half, rest + half > whole
        if count == 1 and (scale < -3 or scale >= 7):
            low = high = False  # two digits at least where there is an exponent
        if not low and not high:
            rest, half = rest * 10, half * 10
    if high and (not low or 2 * rest > whole or (2 * rest == whole and digits % 2)):
        digits += 1
    return f"{digits}e{scale - count + 1}"


def java_text(value: float, digits: str) -> str:
    """A finite double or float in the form of Java's toString; `digits` is its decimal text of any form."""
    number = Decimal(digits)
    sign, figures, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    head = "-" if sign else ""
    if not number:
        return head + "0.0"
    shown = "".join(map(str, figures)).rstrip("0") or "0"
    point = len(figures) + exponent  # decimal point after this many figures
    if 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            return f"{head}0.{'0' * -point}{shown}"
        if len(shown) <= point:
            return f"{head}{shown.ljust(point, '0')}.0"
        return f"{head}{shown[:point]}.{shown[point:]}"
    if len(shown) == 1:
        # Java prints two digits and takes the nearest pair (4.9E-324)
        pair = f"{abs(value):.1e}"
        if float(pair) == abs(value):
            mantissa, _, power = pair.partition("e")
            return f"{head}{mantissa}E{int(power)}"
    return f"{head}{shown[0]}.{shown[1:] or '0'}E{point - 1}"


def _has_own_digits(sizes: Sizes, bits: int) -> Mask:
    """Of which values Java may print other digits than the shortest."""
    plain = (sizes >= 1e-3) & (sizes < 1e7)
    found: Mask = ~plain & ((sizes >= 2.0**bits) | (np.frexp(sizes)[0] == 0.5)) & np.isfinite(sizes)
    return found


def doubles_of_floats(array: pa.FloatArray) -> pa.DoubleArray:
    """FLOAT values as the doubles that their texts name: 0.1 for 0.1f."""
    if array.null_count == len(array):
        return array.cast(pa.float64())
    shortest = array.cast(pa.string()).cast(pa.float64())
    own = _has_own_digits(np.abs(pc.fill_null(array, pa.scalar(1.0, array.type)).to_numpy(zero_copy_only=False)), 24)
    if not own.any():
        return shortest
    mask = pa.array(own)
    return pc.replace_with_mask(shortest, mask, float_texts(array.filter(mask)).cast(pa.float64()))


def float_texts(array: pa.Array) -> pa.StringArray:
    """FLOAT or DOUBLE values as Java prints them: Arrow's shortest texts, put into Java's form; NULLs stay NULL."""
    bits = 53 if array.type == pa.float64() else 24
    texts = array.cast(pa.string())
    values = (pc.fill_null(array, pa.scalar(1.0, array.type)) if array.null_count else array).to_numpy(
        zero_copy_only=False
    )
    sizes = np.abs(values)
    with np.errstate(invalid="ignore"):
        plain = (sizes >= 1e-3) & (sizes < 1e7)
        # the old algorithm's own digits, and single ones, which Java pads by the next digit
        odd = _has_own_digits(sizes, bits) | (~plain & (~np.isfinite(values) | (sizes == 0)))
    shown = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    if plain.all():
        return shown
    result = pc.if_else(pa.array(plain), shown, _scientific(texts))
    short = ~plain & ~odd & np.asarray(pc.match_substring_regex(texts, "^-?0*[.]?0*[1-9]0*(e.*)?$").fill_null(False))
    rows = np.flatnonzero((odd | short) & np.asarray(array.is_valid()))
    if not len(rows):
        return result
    patched = pa.array([float_text(float(values[i]), bits) for i in rows], pa.string())
    where = np.zeros(len(array), dtype=np.bool_)
    where[rows] = True
    return pc.replace_with_mask(result, pa.array(where), patched)


def _scientific(texts: pa.Array) -> pa.Array:
    """Arrow's texts of numbers that Java prints with an exponent: ``12345678.9``, ``0.00012``, ``1.5e-7``."""
    sign = pc.if_else(pc.starts_with(texts, "-"), "-", "")
    bare = pc.utf8_ltrim(texts, "-")
    power = pc.find_substring(bare, "e")
    marked = pc.greater_equal(power, 0)
    body = pc.if_else(marked, pc.replace_substring_regex(bare, "e.*$", ""), bare)
    given = pc.if_else(marked, pc.replace_substring_regex(bare, "^[^e]*e[+]?", ""), "0").cast(pa.int32())
    point = pc.find_substring(body, ".")
    whole = pc.if_else(pc.less(point, 0), pc.utf8_length(body), point)
    figures = pc.replace_substring(body, ".", "")
    significant = pc.utf8_ltrim(figures, "0")
    leading = pc.subtract(pc.utf8_length(figures), pc.utf8_length(significant))
    exponent = pc.add(given, pc.subtract(pc.subtract(whole, leading), 1))
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(significant, 1), "0")
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    first = pc.utf8_slice_codeunits(significant, 0, 1)
    return pc.binary_join_element_wise(sign, first, ".", rest, "E", exponent.cast(pa.string()), "")
