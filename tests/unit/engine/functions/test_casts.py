"""Casts of whole arrays, also of slices and with NULLs; expectations are Spark's."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.engine.functions import RowError, row_error_in
from gateway.engine.functions.casts import caster
from gateway.engine.functions.intervals import interval_text, parse_interval
from gateway.errors import UnsupportedError
from gateway.floats import float_text, java_digits, java_text
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_MONTH,
    DataType,
    IntervalType,
    StructField,
    array,
    decimal,
    interval,
    map_of,
    struct,
)

NAN, INF = float("nan"), float("inf")
D = Decimal

CASES: list[tuple[DataType, DataType, list[Any], list[Any]]] = [
    (STRING, INT, ["1", " +5\t", "-0", None], [1, 5, 0, None]),
    (STRING, BIGINT, ["9223372036854775807", "-9223372036854775808"], [2**63 - 1, -(2**63)]),
    (STRING, DOUBLE, ["1.5", "inf", "1e400", "0x1p3", "1.5d", " 2 "], [1.5, INF, INF, 8.0, 1.5, 2.0]),
    (STRING, FLOAT, ["16777217", "2.5f"], [16777216.0, 2.5]),
    (STRING, decimal(5, 2), ["1.005", "-1.005", ".5", "1e2", None], [D("1.01"), D("-1.01"), D("0.50"), D(100), None]),
    (STRING, BOOLEAN, ["T", "no", None], [True, False, None]),
    (STRING, BINARY, ["ab"], [b"ab"]),
    (DOUBLE, STRING, [1.0, 1e7, 1e-3, 9.9e-4, -0.0, NAN, 5e-324, None],
     ["1.0", "1.0E7", "0.001", "9.9E-4", "-0.0", "NaN", "4.9E-324", None]),
    (FLOAT, STRING, [1.100000023841858, 12345678.0, 1.1e10], ["1.1", "1.2345678E7", "1.10000005E10"]),
    (DOUBLE, STRING, [1.5, 2.0, None], ["1.5", "2.0", None]),
    (decimal(38, 18), STRING, [D(0), D("1E-18")], ["0.000000000000000000", "0.000000000000000001"]),
    # of more than 18 digits by way of a double, but for BIGINT
    (decimal(38, 18), INT, [D("5.999999999999999999"), D("-5.999999999999999999"), D("5.9999999999"), D(6), None],
     [6, -6, 5, 6, None]),
    (decimal(38, 18), BIGINT, [D("5.999999999999999999"), D(2**62) - D("1E-9")], [5, 2**62 - 1]),
    (decimal(38, 8), INT, [D("2147483646.9999998"), D("2147483646.9999999"), D("-2147483648.9999")],
     [2147483646, 2147483647, -(2**31)]),
    (decimal(18, 17), INT, [D("5.99999999999999999")], [5]),
    (BIGINT, decimal(12, 2), [7, -9999999999, None], [D(7), D(-9999999999), None]),
    (BIGINT, decimal(38, 30), [12345678, None], [D(12345678), None]),
    (BIGINT, decimal(20, 0), [2**63 - 1, -(2**63)], [D(2**63 - 1), D(-(2**63))]),
    (decimal(38, 18), decimal(38, 37), [D("-9.5"), None], [D("-9.5"), None]),
    (STRING, DOUBLE, ["1.5", None, "1d", "7"], [1.5, None, 1.0, 7.0]),
    (STRING, decimal(5, 2), ["7", None, "1e1", "-1.005"], [D(7), None, D(10), D("-1.01")]),
    (STRING, DATE, ["2024-02-29", None, "2024-2-3", "2024-03-01 x", "2024-03-02T", " 2024-03-03"],
     [date(2024, 2, 29), None, date(2024, 2, 3), *(date(2024, 3, i) for i in (1, 2, 3))]),
    (STRING, TIMESTAMP_NTZ, ["2024-02-29", None, "2024-02-29T01:02:03", "2024-02-29 01:02:03.25", "2024-02-29 1:2"],
     [datetime(2024, 2, 29), None, datetime(2024, 2, 29, 1, 2, 3), datetime(2024, 2, 29, 1, 2, 3, 250000),
      datetime(2024, 2, 29, 1, 2)]),
    (DATE, STRING, [0, 5_000_000, -800_000, None], ["1970-01-01", "+15659-07-15", "-0221-09-04", None]),
    (TIMESTAMP, STRING, [0, 1_500_000, None], ["1970-01-01 00:00:00", "1970-01-01 00:00:01.5", None]),
    (BOOLEAN, STRING, [True, False, None], ["true", "false", None]),
    (DOUBLE, INT, [2.9, -2.9, None], [2, -2, None]),
    (DOUBLE, BIGINT, [9.223372036854775807e18, -9.223372036854775808e18], [2**63 - 1, -(2**63)]),
    (DOUBLE, decimal(4, 2), [1.005, 2.675, NAN, 99.99, None], [D("1.01"), D("2.68"), None, D("99.99"), None]),
    (decimal(10, 2), INT, [D("2.75"), D("-2.75")], [2, -2]),
    (decimal(10, 2), decimal(3, 1), [D("2.75"), D("-2.75")], [D("2.8"), D("-2.8")]),
    (decimal(20, 3), DOUBLE, [D("12345678901234567.891")], [1.2345678901234568e16]),
    (BOOLEAN, decimal(3, 2), [True, None], [D(1), None]),
    (DOUBLE, BOOLEAN, [0.0, -0.0, NAN], [False, False, True]),
    (decimal(3, 2), BOOLEAN, [D(0), D("0.01")], [False, True]),
    (TIMESTAMP, INT, [-500_000, 1_500_000], [-1, 1]),
    (array(INT), STRING, [[1, None], [], None, [3]], ["[1, null]", "[]", None, "[3]"]),
    (array(BOOLEAN), array(STRING), [[True, None], None], [["true", None], None]),
    (map_of(STRING, INT), STRING, [[("a", 1), ("b", None)], [], None], ["{a -> 1, b -> null}", "{}", None]),
    (map_of(INT, INT), map_of(STRING, BIGINT), [[(1, 2)], None], [[("1", 2)], None]),
    (struct(StructField("a", INT), StructField("b", STRING)), STRING, [{"a": 1, "b": "x"}, None], ["{1, x}", None]),
    (struct(StructField("a", INT)), struct(StructField("b", STRING)), [{"a": 1}, None], [{"b": "1"}, None]),
    (array(array(INT)), array(array(STRING)), [[[1], None], None], [[["1"], None], None]),
    (YEAR_MONTH, STRING, [14, -14], ["INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-1-2' YEAR TO MONTH"]),
    (STRING, YEAR_MONTH, ["1-2", "INTERVAL '-1-2' YEAR TO MONTH"], [14, -14]),
    (STRING, DAY_TIME, ["1 02:03:04.5", "-0 00:00:01"], [93_784_500_000, -1_000_000]),
    (DAY_TIME, interval("hour"), [-93_784_500_000], [-93_600_000_000]),
    (DAY_TIME, decimal(10, 2), [93_784_500_000], [D("93784.50")]),
    (decimal(8, 6), interval("hour", "minute"), [D("80.654321")], [4_839_259_260]),
]  # fmt: skip

FAILURES: list[tuple[DataType, DataType, Any, str]] = [
    (STRING, INT, "0x1F", "CAST_INVALID_INPUT"),
    (STRING, INT, "2147483648", "CAST_INVALID_INPUT"),
    (STRING, INT, "\uff11", "CAST_INVALID_INPUT"),
    (STRING, DOUBLE, "abc", "CAST_INVALID_INPUT"),
    (STRING, BOOLEAN, "on", "CAST_INVALID_INPUT"),
    (STRING, DATE, "2021-02-29", "CAST_INVALID_INPUT"),
    (STRING, decimal(5, 2), "1000", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (STRING, decimal(5, 2), "1e50", "NUMERIC_OUT_OF_SUPPORTED_RANGE"),
    (BIGINT, TINYINT, 300, "CAST_OVERFLOW"),
    (DOUBLE, INT, NAN, "CAST_OVERFLOW"),
    (FLOAT, INT, 2147483648.0, "CAST_OVERFLOW"),
    (DOUBLE, BIGINT, 1e19, "CAST_OVERFLOW"),
    (DOUBLE, decimal(4, 2), 99.996, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (decimal(10, 2), TINYINT, D("300.00"), "CAST_OVERFLOW"),
    (decimal(38, 18), INT, D("2147483647.99999999"), "CAST_OVERFLOW"),
    (decimal(38, 18), TINYINT, D("-128.999999999999999999"), "CAST_OVERFLOW"),
    (decimal(10, 2), decimal(3, 1), D("99.95"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (INT, decimal(3, 1), 100, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (BIGINT, decimal(12, 2), -(10**10), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (BIGINT, decimal(38, 30), 10**8, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (decimal(38, 18), decimal(38, 37), D("890.005"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (decimal(20, 0), decimal(38, 30), D(123456789), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (STRING, decimal(38, 37), "890.005", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    (DOUBLE, TIMESTAMP, NAN, "CAST_INVALID_INPUT"),
    (array(STRING), array(INT), ["1", "x"], "CAST_INVALID_INPUT"),
    (STRING, DAY_TIME, "x", "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING"),
]


@pytest.mark.parametrize(("source", "target", "values", "expected"), CASES)
def test_cast(source: DataType, target: DataType, values: list[Any], expected: list[Any]) -> None:
    given_ = pa.array(values, source.arrow())
    sliced = pa.concat_arrays([given_[:1], given_, given_[:1]])[1:-1]
    for column in (given_, sliced):
        result = caster(source, target)(column)
        assert result.type == target.arrow()
        assert result.to_pylist() == expected


@pytest.mark.parametrize(("source", "target", "value", "condition"), FAILURES)
def test_failures_raise_or_become_null(source: DataType, target: DataType, value: Any, condition: str) -> None:
    column = pa.array([None, value], source.arrow())
    with pytest.raises(RowError) as caught:
        caster(source, target)(column)
    error = row_error_in(str(caught.value))
    assert error is not None
    assert error.condition == condition
    tried = caster(source, target, is_try=True)(column).to_pylist()
    assert tried == [None, [1, None]] if isinstance(value, list) else tried == [None, None]


@pytest.mark.parametrize("is_try", [False, True])
@pytest.mark.parametrize(("source", "target", "value"), [(STRING, TIMESTAMP, "10:11:12"), (BINARY, STRING, b"\xff")])
def test_what_spark_would_convert_is_refused_and_never_null(
    source: DataType, target: DataType, value: Any, is_try: bool
) -> None:
    with pytest.raises(RowError) as caught:
        caster(source, target, is_try=is_try)(pa.array([None, value], source.arrow()))
    assert isinstance(row_error_in(str(caught.value)), UnsupportedError)


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=20), st.sampled_from([DOUBLE, FLOAT]))
def test_whole_columns_print_as_their_values_one_by_one(values: list[float], type_: DataType) -> None:
    column = pa.array(values).cast(type_.arrow(), safe=False)
    bits = 53 if type_ == DOUBLE else 24
    expected = [float_text(v, bits) for v in column.to_pylist()]
    assert caster(type_, STRING)(column).to_pylist() == expected


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_doubles_read_back(value: float) -> None:
    (text,) = caster(DOUBLE, STRING)(pa.array([value])).to_pylist()
    assert float(text) == value


@settings(deadline=None)
@given(st.floats(min_value=5e-324, allow_infinity=False))
def test_old_java_digits_read_back_and_are_mostly_the_shortest(value: float) -> None:
    digits = java_digits(value, 53)
    assert float(digits) == value
    numerator = value.as_integer_ratio()[0]
    if value < 2**53 and numerator & (numerator - 1):
        assert java_text(value, digits) == java_text(value, repr(value))


@pytest.mark.parametrize(
    ("value", "bits", "text"),
    [
        (1e23, 53, "9.999999999999999E22"),
        (9007199254740993.0, 53, "9.007199254740992E15"),
        (5.6843418860808015e-14, 53, "5.6843418860808015E-14"),
        (11000000512.0, 24, "1.10000005E10"),
        (1.401298464324817e-45, 24, "1.4E-45"),
        (3.4028234663852886e38, 24, "3.4028235E38"),
    ],
)
def test_old_java_digits(value: float, bits: int, text: str) -> None:
    assert java_text(value, java_digits(value, bits)) == text


@settings(deadline=None)
@given(
    st.sampled_from([YEAR_MONTH, DAY_TIME, interval("hour", "minute"), interval("second"), interval("month")]),
    st.integers(-(2**31), 2**31 - 1),
)
def test_interval_texts_read_back(type_: IntervalType, count: int) -> None:
    unit = 60_000_000 if type_.end == "minute" else 1
    assert parse_interval(interval_text(count * unit, type_), type_) == count * unit
