"""Doubles, floats and decimals are written as Java writes them."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.floats import doubles_of_floats, float_text, float_texts
from gateway.results.numerals import decimal_text
from tests.unit.results.typed_values import UNTIMED, java_number

JAVA_DOUBLES = [  # printed by Java 17
    (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (1e20, "1.0E20"), (1e7, "1.0E7"), (9999999.0, "9999999.0"),
    (1e-3, "0.001"), (9.999e-4, "9.999E-4"), (1.5e-5, "1.5E-5"), (float("nan"), "NaN"), (float("inf"), "Infinity"),
    (float("-inf"), "-Infinity"), (5e-324, "4.9E-324"), (-5e-324, "-4.9E-324"), (1.234567890123e12, "1.234567890123E12"),
    (123456789.0, "1.23456789E8"), (1e16, "1.0E16"), (-123456789.125, "-1.23456789125E8"), (2.0**53, "9.007199254740992E15"),
    (5.684341886080802e-14, "5.6843418860808015E-14"), (2e23, "1.9999999999999998E23"), (-(2.0**63), "-9.223372036854776E18"),
    (1.7976931348623157e308, "1.7976931348623157E308"), (0.1, "0.1"), (100.0, "100.0"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), JAVA_DOUBLES)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert float_texts(pa.array([value])).to_pylist() == [text]


def test_all_forms_in_one_array() -> None:
    values = pa.array([value for value, _ in JAVA_DOUBLES] + [None])
    assert float_texts(values).to_pylist() == [text for _, text in JAVA_DOUBLES] + [None]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e20, "1.0E20"), (16777216.0, "1.6777216E7"), (1.4e-45, "1.4E-45"), (0.1, "0.1"), (3.4028235e38, "3.4028235E38")],
)
def test_floats_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert float_texts(pa.array([value], pa.float32())).to_pylist() == [text]


@UNTIMED
@given(st.lists(st.none() | st.floats() | st.integers(-(10**18), 10**18).map(float), max_size=20))
def test_double_text_equals_the_reference(values: list[float | None]) -> None:
    expected = [None if v is None else java_number(v, np.float64) for v in values]
    assert float_texts(pa.array(values, pa.float64())).to_pylist() == expected


@UNTIMED
@given(st.lists(st.none() | st.floats(width=32), max_size=20))
def test_float_text_equals_the_reference(values: list[float | None]) -> None:
    expected = [None if v is None else java_number(v, np.float32) for v in values]
    assert float_texts(pa.array(values, pa.float32())).to_pylist() == expected


@UNTIMED
@given(st.lists(st.none() | st.floats(width=32), max_size=20))
def test_a_float_is_the_double_that_its_text_names(values: list[float | None]) -> None:
    result = doubles_of_floats(pa.array(values, pa.float32())).to_pylist()
    expected = [None if v is None else float(float_text(v, 24)) for v in values]
    np.testing.assert_array_equal(np.array(result, dtype=float), np.array(expected, dtype=float))


@UNTIMED
@given(st.integers(0, 38).flatmap(lambda s: st.tuples(st.just(s), st.lists(st.integers(-(10**38) + 1, 10**38 - 1)))))
def test_decimals_are_plain_at_every_scale(case: tuple[int, list[int]]) -> None:
    scale, unscaled = case
    values = [Decimal(f"{u}e-{scale}") for u in [*unscaled, 0, 1, -1]]
    array = pa.array([*values, None], pa.decimal128(38, scale))
    assert decimal_text(array).to_pylist() == [*(f"{v:f}" for v in values), None]
    assert decimal_text(array.slice(1)).to_pylist() == [*(f"{v:f}" for v in values[1:]), None]
