"""Decimals cut off and rounded: what Python's exact decimals say, near multiples of 2**32 above all."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.functions.decimal_digits import MODES, cut, rounded_to

EXACT = Context(prec=100)


def numbers(scale: int) -> st.SearchStrategy[int]:
    """Unscaled values of DECIMAL(38, scale): any, and those beside multiples of powers of two."""
    beside = st.builds(
        lambda sign, power, times, more: sign * (2**power * times * 10**scale + more),
        st.sampled_from((1, -1)),
        st.integers(0, 126),
        st.integers(1, 9),
        st.one_of(st.integers(-2, 2), st.just(5 * 10 ** max(scale - 1, 0))),
    )
    return st.one_of(beside, st.integers(-(10**38) + 1, 10**38 - 1)).filter(lambda u: abs(u) < 10**38)


@given(st.data())
def test_digits(data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, 37), "scale")
    wanted = data.draw(st.integers(-12, 38), "wanted")
    values = [EXACT.scaleb(Decimal(u), -scale) for u in data.draw(st.lists(numbers(scale), min_size=1), "unscaled")]
    column = pa.array([None, *values, None], pa.decimal128(38, scale)).slice(1)
    step = Decimal(1).scaleb(-min(wanted, scale))
    for name, mode in MODES.items():
        assert rounded_to(column, wanted, name).to_pylist() == [v.quantize(step, mode, EXACT) for v in values] + [None]
    if wanted >= 0:
        cut_off = [v.quantize(step, "ROUND_DOWN", EXACT) for v in values]
        assert cut(column, wanted).to_pylist() == [*cut_off, None]


@pytest.mark.parametrize("scale", range(10, 29))
def test_below_2_to_the_32nd(scale: int) -> None:
    column = pa.array([Decimal(2**32 * 10**scale - 1).scaleb(-scale, EXACT)], pa.decimal128(38, scale))
    assert cut(column, 0).to_pylist() == [2**32 - 1]
    assert rounded_to(column, 0, "half_towards_infinity").to_pylist() == [2**32]
