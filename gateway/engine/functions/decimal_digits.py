"""Decimals with fewer decimals, for whole arrays: cut off, or rounded.

Arrow itself divides wrongly by powers of ten that don't fit into 32 bits: of 4294967295.999999999999999999, and of other
numbers just below multiples of 2**32, the whole part is one too small (Arrow 26). Hence steps of a few digits.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_AT_ONCE = 9  # 10**9 < 2**32
_DIGITS = 60  # enough for any decimal and for what is added while it is rounded
_EXACT = Context(prec=100)
#: Arrow's names of what Python calls otherwise.
MODES = {
    "half_towards_infinity": ROUND_HALF_UP,
    "half_to_even": ROUND_HALF_EVEN,
    "up": ROUND_CEILING,
    "down": ROUND_FLOOR,
}


def cut(array: pa.Array, scale: int) -> pa.Array:
    """Decimals of the same width with at most `scale` decimals (tens and hundreds, if it is negative); the rest is cut off."""
    kind = pa.decimal256 if pa.types.is_decimal256(array.type) else pa.decimal128
    while array.type.scale > scale:
        fewer = kind(array.type.precision, max(array.type.scale - _AT_ONCE, scale))
        array = pc.cast(array, options=pc.CastOptions(target_type=fewer, allow_decimal_truncate=True))
    return array


def rounded_to(array: pa.Array, scale: int, mode: str) -> pa.Array:
    """Decimals of 256 bits, rounded to `scale` decimals; `mode` as in `pyarrow.compute.round`."""
    exact = array.cast(pa.decimal256(_DIGITS, array.type.scale))
    if exact.type.scale - scale <= _AT_ONCE:
        return pc.round(exact, ndigits=scale, round_mode=mode)
    if scale < 0:  # Arrow computes with no negative scale
        step = Decimal(1).scaleb(-scale)
        tens = [None if v is None else v.quantize(step, MODES[mode], _EXACT) for v in exact.to_pylist()]
        return pa.array(tens, pa.decimal256(_DIGITS, 0))
    whole = cut(exact, scale)
    rest = pc.subtract(exact, whole.cast(exact.type))
    step = pa.scalar(Decimal(1).scaleb(-scale), whole.type)
    none = pa.scalar(Decimal(0), whole.type)
    above, below = pc.greater(rest, 0), pc.less(rest, 0)
    if mode in ("up", "down"):
        above, below = (above, pa.scalar(False)) if mode == "up" else (pa.scalar(False), below)
    else:
        far = _beyond_half(rest, scale, _odd(whole) if mode == "half_to_even" else pa.scalar(True))
        above, below = pc.and_(above, far), pc.and_(below, far)
    return pc.add(whole, pc.if_else(above, step, pc.if_else(below, pc.negate(step), none)))


def _beyond_half(rest: pa.Array, scale: int, tied: pa.Array | pa.Scalar) -> pa.Array:
    """Which rests are more than half a step, or half of one and `tied`."""
    half = pa.scalar(Decimal(5).scaleb(-scale - 1), rest.type)
    size = pc.abs(rest)
    return pc.or_(pc.greater(size, half), pc.and_(pc.equal(size, half), tied))


def _odd(array: pa.Array) -> pa.Array:
    """Which decimals of 256 bits are odd in their last digit; of NULLs something."""
    words: npt.NDArray[np.uint64] = np.frombuffer(array.buffers()[1], "<u8").reshape(-1, 4)
    return pa.array(words[array.offset : array.offset + len(array), 0] & np.uint64(1) == 1)
