"""Quotients of decimals whose digits fit into 64 bits, for whole arrays: long division into 128 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Held = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # unscaled values as int64, 0 for NULL, and which are there
_DIGITS = 18  # of any number below 2**63
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def of_words(
    left: Held | None, right: Held | None, shift: int, precision: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[Any], bool] | None:
    """``left * 10**shift / right``, rounded half away from zero: little-endian words of 128 bits, which are there, and whether
    one is divided by zero; None where that is not done here, as for quotients that may have more than `precision` digits.
    """
    if left is None or right is None or not 0 <= shift <= 2 * _DIGITS or not len(left[0]):
        return None
    (x, x_valid), (y, y_valid) = left, right
    valid = x_valid & y_valid
    by_zero = bool(((y == 0) & valid).any())
    dividend, divisor = _magnitude(x), _magnitude(np.where(y == 0, 1, y))
    at_once = _DIGITS - len(str(int(divisor.max())))
    whole, rest = dividend // divisor, dividend % divisor
    if at_once < 1 or (int(whole.max()) + 1) * 10**shift > 10**precision:
        return None
    high, low = np.zeros_like(whole), whole
    while shift:
        digits = min(at_once, shift)
        power = np.uint64(10**digits)
        rest = rest * power
        high, low = _times(high, low, power)
        high, low = _plus(high, low, rest // divisor)
        rest, shift = rest % divisor, shift - digits
    high, low = _plus(high, low, (rest * np.uint64(2) >= divisor).astype(np.uint64))
    negative = (x < 0) != (y < 0)
    words = np.empty((len(x), 2), dtype="<u8")
    words[:, 0] = np.where(negative, ~low + np.uint64(1), low)
    words[:, 1] = np.where(negative, ~high + (low == 0).astype(np.uint64), high)
    return words, valid, by_zero


def _magnitude(values: npt.NDArray[Any]) -> Words:
    size: Words = np.abs(values).view(np.uint64)  # of the smallest integer, too
    return size


def _plus(high: Words, low: Words, more: Words) -> tuple[Words, Words]:
    total = low + more
    return high + (total < more).astype(np.uint64), total


def _times(high: Words, low: Words, factor: np.uint64) -> tuple[Words, Words]:
    """128 bits times a factor, of which nothing is lost."""
    a, b, c, d = low & _LOW, low >> _HALF, factor & _LOW, factor >> _HALF
    lowest, mid, other = a * c, a * d, b * c
    carried = (lowest >> _HALF) + (mid & _LOW) + (other & _LOW)
    up = b * d + (mid >> _HALF) + (other >> _HALF) + (carried >> _HALF)
    return high * factor + up, (lowest & _LOW) | (carried << _HALF)
