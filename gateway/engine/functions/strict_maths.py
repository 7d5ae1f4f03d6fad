"""Exponentials, logarithms, powers, inverse and hyperbolic functions to the last bit as java.lang.StrictMath defines them.

That is by the algorithms of fdlibm (https://www.netlib.org/fdlibm), over numpy arrays: every branch is computed for all
values and the one that holds is taken. Functions of the same name elsewhere are as good, but round other values up.

fdlibm is Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunSoft, a Sun Microsystems, Inc.
business. Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is
preserved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from gateway.engine.functions.distinct import vectorised

Floats = np.ndarray[Any, np.dtype[np.float64]]
Words = np.ndarray[Any, np.dtype[np.int64]]

_LOW = np.int64(0xFFFFFFFF)
_LN2_HI, _LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INV_LN2 = 1.44269504088896338700e00
_LN2 = 6.93147180559945286227e-01
_LARGEST, _LEAST = 7.09782712893383973096e02, -7.45133219101941108420e02  # arguments of exp
_LARGEST_HALF = 7.10475860073943863426e02  # argument of cosh and sinh
_PI, _PI_LO = 3.141592653589793, 1.2246467991473531772e-16
_HALF_PI, _HALF_PI_LO, _QUARTER_PI = 1.57079632679489655800e00, 6.12323399573676603587e-17, 7.85398163397448278999e-01
_TWO_54 = 2.0**54

_LOG = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip
_EXP = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)  # fmt: skip
_EXPM1 = (
    -3.33333333333331316428e-02, 1.58730158725481460165e-03, -7.93650757867487942473e-05, 4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)  # fmt: skip
_POWER = (
    5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01, 2.72728123808534006489e-01,
    2.30660745775561754067e-01, 2.06975017800338417784e-01,
)  # fmt: skip
_ASIN_P = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01, -4.00555345006794114027e-02,
    7.91534994289814532176e-04, 3.47933107596021167570e-05,
)  # fmt: skip
_ASIN_Q = (
    1.0, -2.40339491173441421878e00, 2.02094576023350569471e00, -6.88283971605453293030e-01, 7.70381505559019352791e-02,
)  # fmt: skip
_ATAN = (
    3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01, -1.11111104054623557880e-01,
    9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02, -5.83357013379057348645e-02,
    4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02,
)  # fmt: skip


def _series(z: Floats, factors: Sequence[float]) -> Floats:
    """c0 + z * (c1 + z * (c2 + …))."""
    return reduce(lambda rest, c: c + z * rest, reversed(factors[:-1]), np.full_like(z, factors[-1]))


def _high(x: Floats) -> Words:
    """The upper 32 bits as a signed number."""
    return np.ascontiguousarray(x).view(np.int64) >> 32


def _with_high(x: Floats, high: Words) -> Floats:
    return ((high << 32) | (np.ascontiguousarray(x).view(np.int64) & _LOW)).view(np.float64)


def _of_high(high: Words) -> Floats:
    return (high << 32).view(np.float64)


def _chopped(x: Floats) -> Floats:
    """`x` without its lower 32 bits."""
    return _of_high(_high(x))


def _scaled(y: Floats, k: Words) -> Floats:
    """y * 2**k by its exponent, which stays one of normal numbers."""
    return _with_high(y, _high(y) + (k << 20))


def log(x: Floats) -> Floats:
    """The natural logarithm."""
    small = _high(x) < 0x00100000
    scaled = np.where(small, x * _TWO_54, x)
    hx = _high(scaled)
    k = (hx >> 20) - 1023 - np.where(small, 54, 0)
    hx = hx & 0x000FFFFF
    up = (hx + 0x95F64) & 0x100000
    f = _with_high(scaled, hx | (up ^ 0x3FF00000)) - 1.0
    dk = (k + (up >> 20)).astype(np.float64)
    near = f * f * (0.5 - 0.33333333333333333 * f)
    near = np.where(dk == 0, f - near, dk * _LN2_HI - ((near - dk * _LN2_LO) - f))
    near = np.where(f == 0, dk * _LN2_HI + dk * _LN2_LO, near)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = z * _series(w, _LOG[0::2]) + w * _series(w, _LOG[1::2])
    half = 0.5 * f * f
    wide = np.where(dk == 0, f - (half - s * (half + r)), dk * _LN2_HI - ((half - (s * (half + r) + dk * _LN2_LO)) - f))
    slim = np.where(dk == 0, f - s * (f - r), dk * _LN2_HI - ((s * (f - r) - dk * _LN2_LO) - f))
    found = np.where(((hx - 0x6147A) | (0x6B851 - hx)) > 0, wide, slim)
    found = np.where((0x000FFFFF & (2 + hx)) < 3, near, found)
    return np.where(x == 0, -np.inf, np.where(x < 0, np.nan, np.where(np.isfinite(x), found, x)))


def log10(x: Floats) -> Floats:
    """The logarithm to the base 10."""
    small = _high(x) < 0x00100000
    scaled = np.where(small, x * _TWO_54, x)
    hx = _high(scaled)
    k = (hx >> 20) - 1023 - np.where(small, 54, 0)
    below = np.where(k < 0, 1, 0)
    y = (k + below).astype(np.float64)
    rest = _with_high(scaled, (hx & 0x000FFFFF) | ((0x3FF - below) << 20))
    z = y * 3.69423907715893078616e-13 + 4.34294481903251816668e-01 * log(rest)
    found = z + y * 3.01029995663611771306e-01
    return np.where(x == 0, -np.inf, np.where(x < 0, np.nan, np.where(np.isfinite(x), found, x)))


def log1p(x: Floats) -> Floats:
    """ln(1 + x)."""
    hx = _high(x)
    plain = (hx < 0x3FDA827A) & ((hx > 0) | (hx <= 0xBFD2BEC3 - (1 << 32)))
    huge = hx >= 0x43400000
    u = np.where(huge, x, 1.0 + x)
    hu = _high(u)
    k = (hu >> 20) - 1023
    c = np.where(huge, 0.0, np.where(k > 0, 1.0 - (u - x), x - (u - 1.0)) / u)
    hu = hu & 0x000FFFFF
    low = hu < 0x6A09E
    f = _with_high(u, np.where(low, hu | 0x3FF00000, hu | 0x3FE00000)) - 1.0
    k = np.where(low, k, k + 1)
    hu = np.where(low, hu, (0x00100000 - hu) >> 2)
    f, hu, c = np.where(plain, x, f), np.where(plain, 1, hu), np.where(plain, 0.0, c)
    dk = np.where(plain, 0, k).astype(np.float64)
    half = 0.5 * f * f
    near = half * (1.0 - 0.66666666666666666 * f)
    near = np.where(dk == 0, f - near, dk * _LN2_HI - ((near - (dk * _LN2_LO + c)) - f))
    near = np.where(f == 0, dk * _LN2_HI + (c + dk * _LN2_LO), near)
    s = f / (2.0 + f)
    z = s * s
    r = z * _series(z, _LOG)
    found = np.where(
        dk == 0, f - (half - s * (half + r)), dk * _LN2_HI - ((half - (s * (half + r) + (dk * _LN2_LO + c))) - f)
    )
    found = np.where(hu == 0, near, found)
    size = hx & 0x7FFFFFFF
    found = np.where(size < 0x3E200000, np.where(size < 0x3C900000, x, x - x * x * 0.5), found)
    return np.where(x == -1, -np.inf, np.where(x < -1, np.nan, np.where(np.isfinite(x), found, x)))


def _reduced(x: Floats) -> tuple[Floats, Floats, Words]:
    """(hi, lo, k) with x = k * ln2 + (hi - lo)."""
    size, sign = _high(x) & 0x7FFFFFFF, np.where(x < 0, -1.0, 1.0)
    k = np.trunc(_INV_LN2 * x + 0.5 * sign)
    k = np.where(size < 0x3FF0A2B2, sign, k)
    k = np.where(size > 0x3FD62E42, k, 0.0)
    k = np.where(np.isfinite(k), np.clip(k, -2000, 2000), 0.0)
    return x - k * _LN2_HI, k * _LN2_LO, k.astype(np.int64)


def exp(x: Floats) -> Floats:
    """e to the power of x."""
    hi, lo, k = _reduced(x)
    rest = hi - lo
    t = rest * rest
    c = rest - t * _series(t, _EXP)
    plain = 1.0 - ((rest * c) / (c - 2.0) - rest)
    y = 1.0 - ((lo - (rest * c) / (2.0 - c)) - hi)
    tiny = k < -1021
    y = _scaled(y, np.where(tiny, k + 1000, np.minimum(k, 1024)))
    found = np.where(k == 0, plain, np.where(tiny, y * 2.0**-1000, y))
    found = np.where((_high(x) & 0x7FFFFFFF) < 0x3E300000, 1.0 + x, found)
    return np.where(np.isnan(x), x, np.where(x > _LARGEST, np.inf, np.where(x < _LEAST, 0.0, found)))


def expm1(x: Floats) -> Floats:
    """e to the power of x, less 1."""
    hi, lo, k = _reduced(x)
    rest = hi - lo
    c = np.where(k == 0, 0.0, (hi - rest) - lo)
    half = 0.5 * rest
    square = rest * half
    r = 1.0 + square * _series(square, _EXPM1)
    t = 3.0 - r * half
    e = square * ((r - t) / (6.0 - rest * t))
    plain = rest - (rest * e - square)
    e = (rest * (e - c) - c) - square
    one = np.where(rest < -0.25, -2.0 * (e - (rest + 0.5)), 1.0 + 2.0 * (rest - e))
    far = _scaled(1.0 - (e - rest), k) - 1.0
    few = np.clip(k, 0, 56)
    low = _scaled(_of_high(0x3FF00000 - (0x200000 >> np.minimum(few, 20))) - (e - rest), k)
    high = _scaled((rest - (e + _of_high((0x3FF - few) << 20))) + 1.0, k)
    found = np.where((k <= -2) | (k > 56), far, np.where(k < 20, low, high))
    found = np.where(k == 0, plain, np.where(k == -1, 0.5 * (rest - e) - 0.5, np.where(k == 1, one, found)))
    found = np.where((_high(x) & 0x7FFFFFFF) < 0x3C900000, x, found)
    below = (x < 0) & ((_high(x) & 0x7FFFFFFF) >= 0x4043687A)
    return np.where(np.isnan(x), x, np.where(x > _LARGEST, np.inf, np.where(below, -1.0, found)))


def _half_exp(size: Floats, half: Floats | float) -> Floats:
    """half * e to the power of a large number, beyond exp's own range as well."""
    w = exp(0.5 * size)
    return np.where(size < 709.78, half * exp(size), np.where(size <= _LARGEST_HALF, (half * w) * w, half * np.inf))


def cosh(x: Floats) -> Floats:
    """The hyperbolic cosine."""
    size, high = np.abs(x), _high(x) & 0x7FFFFFFF
    t = expm1(size)
    w = 1.0 + t
    near = np.where(high < 0x3C800000, w, 1.0 + (t * t) / (w + w))
    t = exp(size)
    found = np.where(high < 0x40360000, 0.5 * t + 0.5 / t, _half_exp(size, 0.5))
    return np.where(np.isnan(x), x, np.where(high < 0x3FD62E43, near, found))


def sinh(x: Floats) -> Floats:
    """The hyperbolic sine."""
    size, high, half = np.abs(x), _high(x) & 0x7FFFFFFF, np.where(x < 0, -0.5, 0.5)
    t = expm1(size)
    found = np.where(high < 0x3FF00000, half * (2.0 * t - t * t / (t + 1.0)), half * (t + t / (t + 1.0)))
    found = np.where(high < 0x40360000, found, _half_exp(size, half))
    return np.where(np.isnan(x) | (high < 0x3E300000), x, found)


def tanh(x: Floats) -> Floats:
    """The hyperbolic tangent."""
    size, high = np.abs(x), _high(x) & 0x7FFFFFFF
    t, s = expm1(2.0 * size), expm1(-2.0 * size)
    found = np.where(high < 0x3FF00000, -s / (s + 2.0), 1.0 - 2.0 / (t + 2.0))
    found = np.where(high < 0x40360000, found, 1.0)
    found = np.where(high < 0x3C800000, size * (1.0 + size), found)
    return np.where(np.isnan(x), x, np.copysign(found, x))


def _asin_part(t: Floats) -> Floats:
    return t * _series(t, _ASIN_P) / _series(t, _ASIN_Q)


def asin(x: Floats) -> Floats:
    """The inverse sine."""
    size, high = np.abs(x), _high(x) & 0x7FFFFFFF
    near = np.where(high < 0x3E400000, x, x + x * _asin_part(x * x))
    t = (1.0 - size) * 0.5
    ratio, s = _asin_part(t), np.sqrt(t)
    far = _HALF_PI - (2.0 * (s + s * ratio) - _HALF_PI_LO)
    w = _chopped(s)
    c = (t - w * w) / (s + w)
    middle = _QUARTER_PI - ((2.0 * s * ratio - (_HALF_PI_LO - 2.0 * c)) - (_QUARTER_PI - 2.0 * w))
    found = np.copysign(np.where(high >= 0x3FEF3333, far, middle), x)
    found = np.where(size == 1, x * _HALF_PI + x * _HALF_PI_LO, np.where(high < 0x3FE00000, near, found))
    return np.where(size > 1, np.nan, found)


def acos(x: Floats) -> Floats:
    """The inverse cosine."""
    size, high = np.abs(x), _high(x) & 0x7FFFFFFF
    near = np.where(high <= 0x3C600000, _HALF_PI + _HALF_PI_LO, _HALF_PI - (x - (_HALF_PI_LO - x * _asin_part(x * x))))
    z = (1.0 - size) * 0.5
    ratio, s = _asin_part(z), np.sqrt(z)
    negative = _PI - 2.0 * (s + (ratio * s - _HALF_PI_LO))
    df = _chopped(s)
    positive = 2.0 * (df + (ratio * s + (z - df * df) / (s + df)))
    found = np.where(high < 0x3FE00000, near, np.where(x < 0, negative, positive))
    found = np.where(size == 1, np.where(x > 0, 0.0, _PI + 2.0 * _HALF_PI_LO), found)
    return np.where(size > 1, np.nan, found)


_ATAN_HI = (4.63647609000806093515e-01, _QUARTER_PI, 9.82793723247329054082e-01, _HALF_PI)
_ATAN_LO = (2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17, _HALF_PI_LO)


def atan(x: Floats) -> Floats:
    """The inverse tangent."""
    size, high = np.abs(x), _high(x) & 0x7FFFFFFF
    ranges = [high < 0x3FDC0000, high < 0x3FE60000, high < 0x3FF30000, high < 0x40038000]
    reduced = [x, (2.0 * size - 1.0) / (2.0 + size), (size - 1.0) / (size + 1.0), (size - 1.5) / (1.0 + 1.5 * size)]
    t = np.select(ranges, reduced, -1.0 / size)
    z = t * t
    w = z * z
    part = z * _series(w, _ATAN[0::2]) + w * _series(w, _ATAN[1::2])
    base = np.select(ranges[1:], _ATAN_HI[:3], _ATAN_HI[3])
    rest = np.select(ranges[1:], _ATAN_LO[:3], _ATAN_LO[3])
    found = np.where(ranges[0], t - t * part, np.copysign(base - ((t * part - rest) - t), x))
    found = np.where(high >= 0x44100000, np.copysign(_HALF_PI + _HALF_PI_LO, x), found)
    return np.where(np.isnan(x) | (high < 0x3E200000), x, found)


def atan2(y: Floats, x: Floats) -> Floats:
    """The angle of a point; numpy's where its answer is a multiple of an eighth of a turn."""
    apart = ((_high(y) & 0x7FFFFFFF) - (_high(x) & 0x7FFFFFFF)) >> 20
    z = np.where(apart > 60, _HALF_PI + 0.5 * _PI_LO, atan(np.abs(y / x)))
    z = np.where((x < 0) & (apart < -60), 0.0, z)
    found = np.copysign(np.where(x < 0, _PI - (z - _PI_LO), z), y)
    plain = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    return np.where(plain, np.where(x == 1, atan(y), found), np.arctan2(y, x))


def cbrt(x: Floats) -> Floats:
    """The cube root."""
    size, high = np.abs(x), _high(x) & 0x7FFFFFFF
    t = np.where(high < 0x00100000, size * _TWO_54, size)
    t = _of_high(_high(t) // 3 + np.where(high < 0x00100000, 696219795, 715094163))
    r = t * t / size
    s = 5.42857142857142815906e-01 + r * t
    s = s + 1.41428571428571436819e00 + -7.05306122448979611050e-01 / s
    t = t * (3.57142857142857150787e-01 + 1.60714285714285720630e00 / s)
    t = _of_high(_high(t) + 1)
    r = size / (t * t)
    r = (r - t) / ((t + t) + r)
    return np.where(np.isfinite(x) & (x != 0), np.copysign(t + t * r, x), x)


_CP, _CP_H, _CP_L = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
_LG2, _LG2_H, _LG2_L = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
_IVLN2_H, _IVLN2_L = 1.44269502162933349609e00, 1.92596299112661746887e-08
_OVERFLOW = 8.0085662595372944372e-0017


def _log2(x: Floats) -> tuple[Floats, Floats]:
    """The logarithm to the base 2 of a positive number, as a sum whose first part has few bits."""
    small = _high(x) < 0x00100000
    ax = np.where(small, x * 2.0**53, x)
    ix = _high(ax)
    n = (ix >> 20) - 0x3FF - np.where(small, 53, 0)
    j = ix & 0x000FFFFF
    up = j >= 0xBB67A
    k = np.where((j > 0x3988E) & ~up, 1, 0)
    n = np.where(up, n + 1, n)
    ix = (j | 0x3FF00000) - np.where(up, 0x00100000, 0)
    ax = _with_high(ax, ix)
    base = np.where(k == 1, 1.5, 1.0)
    u, v = ax - base, 1.0 / (ax + base)
    ss = u * v
    s_h = _chopped(ss)
    t_h = _of_high(((ix >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_l = ax - (t_h - base)
    s_l = v * ((u - s_h * t_h) - s_h * t_l)
    s2 = ss * ss
    r = s2 * s2 * _series(s2, _POWER) + s_l * (s_h + ss)
    s2 = s_h * s_h
    t_h = _chopped(3.0 + s2 + r)
    t_l = r - ((t_h - 3.0) - s2)
    u = s_h * t_h
    v = s_l * t_h + t_l * ss
    p_h = _chopped(u + v)
    p_l = v - (p_h - u)
    z_h = _CP_H * p_h
    z_l = _CP_L * p_h + p_l * _CP + np.where(k == 1, 1.35003920212974897128e-08, 0.0)
    step, t = np.where(k == 1, 5.84962487220764160156e-01, 0.0), n.astype(np.float64)
    t1 = _chopped(((z_h + z_l) + step) + t)
    return t1, z_l - (((t1 - t) - step) - z_h)


def _log2_near_one(x: Floats) -> tuple[Floats, Floats]:
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u, v = _IVLN2_H * t, t * _IVLN2_L - w * _INV_LN2
    t1 = _chopped(u + v)
    return t1, v - (t1 - u)


def power(x: Floats, y: Floats) -> Floats:
    """x to the power of y."""
    size = np.abs(x)
    far = np.abs(y) > 2.0**31
    t1, t2 = (np.where(far, a, b) for a, b in zip(_log2_near_one(size), _log2(size), strict=True))
    y1 = _chopped(y)
    p_l, p_h = (y - y1) * t1 + y * t2, y1 * t1
    z = p_l + p_h
    over = (z > 1024) | ((z == 1024) & (p_l + _OVERFLOW > z - p_h))
    under = (z < -1075) | ((z == -1075) & (p_l <= z - p_h))
    safe = np.where(over | under | ~np.isfinite(z), 0.0, z)
    p_h = np.where(safe == z, p_h, 0.0)
    p_l = np.where(safe == z, p_l, 0.0)
    n = np.where(np.abs(safe) > 0.5, np.floor(np.abs(safe) + 0.5) * np.sign(safe), 0.0)
    p_h = p_h - n
    t = _chopped(p_l + p_h)
    u, v = t * _LG2_H, (p_l - (t - p_h)) * _LG2 + t * _LG2_L
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * _series(t, _EXP)
    z = 1.0 - (((z * t1) / (t1 - 2.0) - (w + z * w)) - z)
    found = np.where(over, np.inf, np.where(under, 0.0, np.ldexp(z, n.astype(np.int32))))
    beyond = far & ((size < 1 - 2.0**-20) | (size >= 1 + 2.0**-20) | (np.abs(y) > 2.0**64))
    found = np.where(beyond, np.where((size > 1) == (y > 0), np.inf, 0.0), found)
    found = np.where((y == 2), x * x, np.where((y == 0.5) & (x >= 0), np.sqrt(size), found))
    odd = np.abs(np.fmod(y, 2.0)) == 1
    found = np.where((x < 0) & odd, -found, found)
    found = np.where(y == 1, x, np.where(y == -1, 1.0 / x, found))
    special = ~np.isfinite(x) | ~np.isfinite(y) | (x == 0) | (y == 0) | (size == 1) | ((x < 0) & (np.trunc(y) != y))
    # C gives 1 for 1 ** NaN and (-1) ** inf, Java NaN
    unknown = (np.isnan(y) | np.isinf(y)) & (size == 1)
    return np.where(unknown, np.nan, np.where(special, np.power(x, y), found))


def asinh(x: Floats) -> Floats:
    """The inverse hyperbolic sine."""
    size, high = np.abs(x), _high(x) & 0x7FFFFFFF
    t = x * x
    near = log1p(size + t / (1.0 + np.sqrt(1.0 + t)))
    middle = log(2.0 * size + 1.0 / (np.sqrt(t + 1.0) + size))
    found = np.where(high > 0x41B00000, log(size) + _LN2, np.where(high > 0x40000000, middle, near))
    return np.where(~np.isfinite(x) | (high < 0x3E300000), x, np.copysign(found, x))


def acosh(x: Floats) -> Floats:
    """The inverse hyperbolic cosine."""
    t = x - 1.0
    near = log1p(t + np.sqrt(2.0 * t + t * t))
    middle = log(2.0 * x - 1.0 / (x + np.sqrt(x * x - 1.0)))
    found = np.where(_high(x) >= 0x41B00000, log(x) + _LN2, np.where(x > 2, middle, near))
    return np.where(x < 1, np.nan, np.where(np.isfinite(x), found, x))


def atanh(x: Floats) -> Floats:
    """The inverse hyperbolic tangent, as Spark computes it."""
    return 0.5 * (log1p(x) - log1p(-x))


def hypot(x: Floats, y: Floats) -> Floats:
    """The length of the hypotenuse."""
    a, b = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
    far = (_high(a) - _high(b)) > 0x3C00000
    k = np.where(_high(a) > 0x5F300000, 600, 0)
    k = np.where(_high(b) < 0x20B00000, np.where(_high(b) <= 0x000FFFFF, -1022, -600), k)
    down = np.ldexp(1.0, -k)
    a, b = a * down, b * down
    w = a - b
    t1 = _chopped(a)
    t2 = a - t1
    wide = np.sqrt(t1 * t1 - (b * (-b) - t2 * (a + t1)))
    twice = a + a
    y1 = _chopped(b)
    y2 = b - y1
    t1 = _of_high(_high(a) + 0x00100000)
    t2 = twice - t1
    even = np.sqrt(t1 * y1 - (w * (-w) - (t1 * y2 + t2 * b)))
    found = np.where(w > b, wide, even) * np.ldexp(1.0, k)
    plain = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    return np.where(plain, np.where(far, np.abs(x) + np.abs(y), found), np.hypot(x, y))


def _registered(name: str, function: Callable[..., Floats], above: float = -np.inf) -> None:
    """Registers a function of DOUBLEs; it is NULL where an argument is not above the asymptote, and its NaN is one."""

    def kernel(*arrays: pa.Array) -> pa.Array:
        values = [a.fill_null(1.0).to_numpy(zero_copy_only=False) for a in arrays]
        nulls = [a.is_null().to_numpy(zero_copy_only=False) for a in arrays]
        outside = [v <= above for v in values] if above > -np.inf else []
        with np.errstate(all="ignore"):
            result = function(*values)
        return pa.array(np.where(np.isnan(result), np.nan, result), mask=np.logical_or.reduce([*nulls, *outside]))

    vectorised(name)(kernel)


_LN_2 = float(log(np.array([2.0]))[0])

_TOTAL: dict[str, Callable[..., Floats]] = {
    "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan, "atan2": atan2, "atanh": atanh, "cbrt": cbrt,
    "cosh": cosh, "exp": exp, "expm1": expm1, "hypot": hypot, "power": power, "sinh": sinh, "tanh": tanh,
}  # fmt: skip

for _name, _function in _TOTAL.items():
    _registered(_name, _function)
_registered("ln", log, above=0.0)
_registered("log", lambda base, x: log(x) / log(base), above=0.0)
_registered("log10", log10, above=0.0)
_registered("log1p", log1p, above=-1.0)
_registered("log2", lambda x: log(x) / _LN_2, above=0.0)
