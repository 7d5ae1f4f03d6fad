"""Sums and means of decimals: those of 64-bit words say what those of any size say."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from gateway.engine.functions import IMPLEMENTATIONS, RowError, load, row_error_in
from gateway.engine.functions.arithmetic import decimals_of_words, unscaled_words
from gateway.sqltypes import BIGINT, DOUBLE, DecimalType, decimal
from gateway.worker_jobs import UdfSpec

_WIDE = Context(prec=100)
_LARGE = Decimal("9" * 20)


def kernel(
    name: str, total: DecimalType, second: Any, returns: DecimalType, lenient: bool = False, over: bool = False
) -> Any:
    load()
    params = (lenient, over) if name == "decimal_total" else (lenient,)
    return IMPLEMENTATIONS[name](UdfSpec(name, (total, second), returns, params))


def mean(total: Decimal | None, count: int | None, scale: int) -> Decimal | None:
    """As Spark computes it: to 38 digits, then to the scale."""
    if total is None or not count:
        return None
    first = _WIDE.divide(total, Decimal(count)).quantize(Decimal(1).scaleb(-38), ROUND_HALF_UP, _WIDE)
    return first.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)


@pytest.mark.parametrize(("digits", "scale"), [(5, 0), (12, 2), (17, 3), (9, 9)])
def test_means_are_rounded_as_spark_rounds_them(digits: int, scale: int) -> None:
    chance = random.Random(digits)
    total, returns = decimal(38, scale), decimal(38, scale + 4)
    sums: list[Decimal | None] = [
        Decimal(chance.randint(-(10**digits), 10**digits)).scaleb(-scale) for _ in range(2000)
    ]
    counts: list[int | None] = [chance.choice([1, 2, 3, 7, 16, 1000, chance.randint(1, 10**6)]) for _ in sums]
    sums[10], counts[20], counts[30], sums[40] = None, 0, None, Decimal(0).scaleb(-scale)
    expected = [mean(t, n, scale + 4) for t, n in zip(sums, counts, strict=True)]
    run = kernel("decimal_mean", total, BIGINT, returns)
    arrays = pa.array(sums, total.arrow()), pa.array(counts, pa.int64())
    assert unscaled_words(arrays[0]) is not None
    assert run(*arrays).to_pylist() == expected
    assert run(arrays[0].slice(7), arrays[1].slice(7)).to_pylist() == expected[7:]
    larger = pa.array([*sums, _LARGE], total.arrow()), pa.array([*counts, 10**18], pa.int64())
    assert unscaled_words(larger[0]) is None
    assert run(*larger).to_pylist()[:-1] == expected


def test_halves_go_away_from_zero() -> None:
    total, returns = decimal(38, 0), decimal(5, 0)
    sums = [Decimal(n) for n in (1, -1, 3, -3, 5, 0)]
    found = kernel("decimal_mean", total, BIGINT, returns)(pa.array(sums, total.arrow()), pa.array([2] * 6, pa.int64()))
    assert found.to_pylist() == [1, -1, 2, -2, 3, 0]


@pytest.mark.parametrize("large", [Decimal(10**5), Decimal(-(10**5)), Decimal(2**63), _LARGE])
def test_a_mean_that_has_too_many_digits_raises_or_is_null(large: Decimal) -> None:
    total, returns = decimal(38, 0), decimal(5, 0)
    arrays = pa.array([Decimal(7), large], total.arrow()), pa.array([1, 1], pa.int64())
    with pytest.raises(RowError) as caught:
        kernel("decimal_mean", total, BIGINT, returns)(*arrays)
    assert "cannot be represented" in str(row_error_in(str(caught.value)))
    assert kernel("decimal_mean", total, BIGINT, returns, lenient=True)(*arrays).to_pylist() == [7, None]


@pytest.mark.parametrize(
    ("precision", "sums", "sizes", "expected"),
    [
        (20, [1, None, -(2**62)], [1.0, None, 2.0**62], [1, None, -(2**62)]),
        (5, [99_999, -99_999], [1e5, 1e5], [99_999, -99_999]),
        (5, [99_999, 100_000], [1e5, 1e5], [99_999, None]),
        (18, [-(2**63)], [2.0**63], [None]),
        (38, [7, 8], [7.0, 1.7e38], [7, None]),  # 128 bits have wrapped
        (38, [10**37], [1e37], [10**37]),
    ],
)
def test_sums_that_are_too_large_raise_or_are_null(
    precision: int, sums: list[int | None], sizes: list[float | None], expected: list[int | None]
) -> None:
    total, returns = decimal(38, 0), decimal(precision, 0)
    arrays = (
        pa.array([None if s is None else Decimal(s) for s in sums], total.arrow()),
        pa.array(sizes, pa.float64()),
    )
    assert kernel("decimal_total", total, DOUBLE, returns, lenient=True)(*arrays).to_pylist() == expected
    if sums != expected:
        with pytest.raises(RowError) as caught:
            kernel("decimal_total", total, DOUBLE, returns)(*arrays)
        assert "Overflow in sum of decimals" in str(row_error_in(str(caught.value)))
        with pytest.raises(RowError) as caught:
            kernel("decimal_total", total, DOUBLE, returns, over=True)(*arrays)
        assert "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION" in str(row_error_in(str(caught.value)))
    else:
        assert kernel("decimal_total", total, DOUBLE, returns)(*arrays).to_pylist() == expected


def test_words_there_and_back() -> None:
    type_ = pa.decimal128(38, 3)
    values = [Decimal("1.234"), None, Decimal(-(2**63)).scaleb(-3), Decimal(2**63 - 1).scaleb(-3), Decimal("-0.001")]
    array = pa.array(values, type_)
    for at in range(len(values)):
        words = unscaled_words(array.slice(at))
        assert words is not None
        assert decimals_of_words(*words, type_).to_pylist() == values[at:]
    assert unscaled_words(pa.array([Decimal(2**63).scaleb(-3)], type_)) is None
    assert unscaled_words(pa.array([Decimal(-(2**63) - 1).scaleb(-3)], type_)) is None
    empty = unscaled_words(pa.array([], type_))
    assert empty is not None and decimals_of_words(*empty, type_).to_pylist() == []
