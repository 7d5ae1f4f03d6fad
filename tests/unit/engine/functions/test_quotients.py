"""Arithmetic of whole arrays is what exact arithmetic of each row is."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from itertools import product

import pyarrow as pa
import pytest

from gateway.engine.base import UdfSpec
from gateway.engine.functions import IMPLEMENTATIONS, Kernel, RowError, guarded, load, row_error_in
from gateway.engine.functions.arithmetic import unscaled_words
from gateway.engine.functions.quotients import of_words
from gateway.sqltypes import BIGINT, INT, SMALLINT, DataType, DecimalType, decimal

EXACT = Context(prec=200)
load()


def kernel(name: str, *types: DataType, params: tuple[object, ...] = ()) -> Kernel:
    """An implementation; the last type is the result's."""
    return guarded(IMPLEMENTATIONS[name](UdfSpec(name, types[:-1], types[-1], params)), name)


def refused(run: Kernel, *columns: pa.Array) -> str:
    """The condition of what it raises."""
    with pytest.raises(RowError) as caught:
        run(*columns)
    error = row_error_in(str(caught.value))
    assert error is not None
    return error.condition


NUMBERS = [0, 1, -1, 2, 3, -7, 9, 15, 25, 10**9 - 1, -(10**9), 10**17 - 1, 10**18 - 1, -(10**18) + 1]
#: Dividend, divisor and what Spark makes of them.
TYPES = [
    (decimal(18, 2), decimal(10, 0), decimal(29, 13)),
    (decimal(18, 2), decimal(18, 2), decimal(38, 20)),
    (decimal(18, 0), decimal(9, 9), decimal(38, 10)),
    (decimal(18, 6), decimal(3, 1), decimal(22, 10)),
    (decimal(38, 0), decimal(18, 0), decimal(38, 6)),
]


@pytest.mark.parametrize(("left", "right", "result"), TYPES)
def test_decimals(left: DecimalType, right: DecimalType, result: DecimalType) -> None:
    def given(type_: DecimalType) -> list[Decimal]:
        return [Decimal(n).scaleb(-type_.scale, EXACT) for n in NUMBERS if abs(n) < 10**type_.precision]

    pairs = [(a, b) for a, b in product(given(left), given(right)) if b]
    step = Decimal(1).scaleb(-result.scale)
    expected = [EXACT.divide(a, b).quantize(step, ROUND_HALF_UP, EXACT) for a, b in pairs]
    fitting = [i for i, value in enumerate(expected) if abs(value) < 10 ** (result.precision - result.scale)]
    a, b = (pa.array([None, *(pairs[i][side] for i in fitting)], (left, right)[side].arrow()) for side in (0, 1))
    divide = kernel("decimal_divide", left, right, result)
    assert divide(a, b).to_pylist() == [None, *(expected[i] for i in fitting)]
    alone = [divide(a[i : i + 1], b[i : i + 1])[0].as_py() for i in range(len(a))]  # some of which are short
    assert alone == [None, *(expected[i] for i in fitting)]
    by_zero = (pa.array([Decimal(1).scaleb(-left.scale)], left.arrow()), pa.array([Decimal(0)], right.arrow()))
    assert refused(divide, *by_zero) == "DIVIDE_BY_ZERO"


def test_what_is_too_long_is_not_done_here() -> None:
    one, large = (unscaled_words(pa.array([Decimal(n)], pa.decimal128(18, 0))) for n in (1, 10**18 - 1))
    assert of_words(one, one, 6, 38) is not None
    assert of_words(None, one, 6, 38) is None
    assert of_words(one, large, 6, 38) is None  # no digit would be left for long division
    assert of_words(large, one, 21, 38) is None  # 39 digits
    assert of_words(one, one, 37, 38) is None


MODES = {
    "half_towards_infinity": ROUND_HALF_UP,
    "half_to_even": ROUND_HALF_EVEN,
    "up": ROUND_CEILING,
    "down": ROUND_FLOOR,
}


@pytest.mark.parametrize("digits", [-1, -2, -18, -19])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("type_", "bits"), [(BIGINT, 64), (SMALLINT, 16)])
def test_integers_rounded(type_: DataType, bits: int, mode: str, digits: int) -> None:
    half = 1 << (bits - 1)
    run = kernel("round_integer", type_, type_, params=(mode, digits))
    for value in (0, 5, 15, 25, 50, 150, -5, -15, -25, -50, -149, -151, half - 1, -half):
        expected = int(Decimal(value).quantize(Decimal(1).scaleb(-digits), MODES[mode], EXACT))
        if -half <= expected < half:
            assert run(pa.array([None, value], type_.arrow())).to_pylist() == [None, expected]
        else:
            assert refused(run, pa.array([None, value], type_.arrow())) == "ARITHMETIC_OVERFLOW"


@pytest.mark.parametrize(("type_", "half"), [(BIGINT, 2**63), (INT, 2**31)])
def test_remainders_wrap_around_as_in_java(type_: DataType, half: int) -> None:
    run = kernel("pmod", type_, type_, type_)
    rows = [(-1, -half, half - 1), (-half, -1, 0), (-7, 3, 2), (7, -3, 1), (-7, -3, -1), (-half, half - 1, half - 2)]
    a, b, expected = zip(*rows, strict=True)
    assert run(pa.array([*a, None, 1], type_.arrow()), pa.array([*b, 0, None], type_.arrow())).to_pylist() == [
        *expected, None, None,
    ]  # fmt: skip
    assert refused(run, pa.array([None, 1], type_.arrow()), pa.array([0, 0], type_.arrow())) == "REMAINDER_BY_ZERO"
