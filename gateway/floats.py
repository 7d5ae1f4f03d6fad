"""Doubles and floats as Java up to 18 prints them, which Spark shows, casts and makes decimals of."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np


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
