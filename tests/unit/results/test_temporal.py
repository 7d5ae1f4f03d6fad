"""Dates, timestamps and intervals are written as the reference and Spark write them."""

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import sqltypes as t
from gateway.results.temporal import date_text, interval_display, interval_literal, timestamp_text
from tests.unit.results import typed_values as reference

UNITS = [
    (kind, t.interval(start, end))
    for kind in (t.YEAR_MONTH_UNITS, t.DAY_TIME_UNITS)
    for i, start in enumerate(kind)
    for end in kind[i:]
]
DAY = 86_400_000_000


@reference.UNTIMED
@given(st.lists(reference.DAYS, max_size=30))
def test_dates_equal_the_standard_library(days: list[int]) -> None:
    expected = [(date(1970, 1, 1) + timedelta(days=d)).isoformat() for d in days]
    assert date_text(np.array(days, np.int64)).to_pylist() == expected


def test_close_days_share_a_table() -> None:
    days = np.arange(500) % 40 - 20
    expected = [(date(1970, 1, 1) + timedelta(days=int(d))).isoformat() for d in days]
    assert date_text(days).to_pylist() == expected


def test_years_without_four_digits_as_spark_writes_them() -> None:
    days = np.array([2932897, -735525, -719528, 102932896, 0])
    assert date_text(days).to_pylist() == ["+10000-01-01", "-0044-03-15", "0000-01-01", "+283790-09-12", "1970-01-01"]


@reference.UNTIMED
@given(st.lists(reference.MICROS, max_size=30), st.sampled_from(["UTC", "America/Los_Angeles", "Asia/Kathmandu"]))
def test_timestamps_equal_the_standard_library(micros: list[int], zone: str) -> None:
    values = np.array(micros, np.int64)
    assert timestamp_text(values, zone).to_pylist() == [reference.timestamp(m, zone) for m in micros]
    assert timestamp_text(values, None).to_pylist() == [reference.timestamp(m, None) for m in micros]


def test_timestamps_as_spark_writes_them() -> None:
    micros = np.array([300_000_000_000_000_000, -70_000_000_000_000_000, -1, -5_000_000_000_000_000])
    assert timestamp_text(micros, "America/Los_Angeles").to_pylist() == [
        "+11476-08-14 22:20:00",
        "-0249-10-15 11:40:22",
        "1969-12-31 15:59:59.999999",
        "1811-07-23 07:13:42",
    ]


# Answers of Spark 4.2 to CAST(INTERVAL … AS STRING).
SPARK_LITERALS = [
    (14, t.YEAR_MONTH, "INTERVAL '1-2' YEAR TO MONTH"),
    (-14, t.YEAR_MONTH, "INTERVAL '-1-2' YEAR TO MONTH"),
    (14, t.interval("month"), "INTERVAL '14' MONTH"),
    (36, t.interval("year"), "INTERVAL '3' YEAR"),
    (DAY, t.interval("day"), "INTERVAL '1' DAY"),
    (DAY + 7_200_000_000, t.interval("day", "hour"), "INTERVAL '1 02' DAY TO HOUR"),
    (-DAY - 7_384_500_000, t.DAY_TIME, "INTERVAL '-1 02:03:04.5' DAY TO SECOND"),
    (7_200_000_000, t.interval("hour"), "INTERVAL '02' HOUR"),
    (93_780_000_000, t.interval("hour", "minute"), "INTERVAL '26:03' HOUR TO MINUTE"),
    (180_000_000, t.interval("minute"), "INTERVAL '03' MINUTE"),
    (185_000_000, t.interval("minute", "second"), "INTERVAL '03:05' MINUTE TO SECOND"),
    (-5_250_000, t.interval("second"), "INTERVAL '-05.25' SECOND"),
    (0, t.interval("second"), "INTERVAL '00' SECOND"),
    (-(2**63), t.DAY_TIME, "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND"),
]


@pytest.mark.parametrize(("value", "kind", "text"), SPARK_LITERALS)
def test_interval_literals_as_spark_writes_them(value: int, kind: t.IntervalType, text: str) -> None:
    assert interval_literal(np.array([value], np.int64), kind).to_pylist() == [text]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, t.interval("month"), "0-1"),
        (DAY, t.interval("day"), "1 00:00:00.000000000"),
        (-DAY - 7_384_500_000, t.DAY_TIME, "-1 02:03:04.500000000"),
        (-14, t.YEAR_MONTH, "-1-2"),
    ],
)
def test_interval_columns_as_databricks_sends_them(value: int, kind: t.IntervalType, text: str) -> None:
    assert interval_display(np.array([value], np.int64), kind).to_pylist() == [text]


@reference.UNTIMED
@given(st.sampled_from(UNITS), st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-(2**63), 2**63 - 1)))
def test_intervals_equal_the_reference(units: tuple[tuple[str, ...], t.IntervalType], values: list[int]) -> None:
    kind = units[1]
    array = np.array(values, np.int64)
    assert interval_literal(array, kind).to_pylist() == [reference.interval(v, kind, True) for v in values]
    assert interval_display(array, kind).to_pylist() == [reference.interval(v, kind, False) for v in values]
