"""Partition values as text, row by row of the specification's table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway import sqltypes as t
from gateway.delta.partitions import folder_name, java_double, log_path, value_text
from gateway.errors import UnsupportedError

UTC = dt.UTC


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [
        (t.INT, 0, "0"),
        (t.INT, -(2**31), "-2147483648"),
        (t.BIGINT, 2**63 - 1, "9223372036854775807"),
        (t.TINYINT, -128, "-128"),
        (t.SMALLINT, None, None),
        (t.DOUBLE, 0.0, "0.0"),
        (t.DOUBLE, -0.0, "0.0"),
        (t.DOUBLE, 1.7976931348623157e308, "1.7976931348623157E308"),
        (t.DOUBLE, float("nan"), "NaN"),
        (t.DOUBLE, float("inf"), "Infinity"),
        (t.DOUBLE, float("-inf"), "-Infinity"),
        (t.DOUBLE, 0.1, "0.1"),
        (t.DOUBLE, 123456.0, "123456.0"),
        (t.DOUBLE, 1e7, "1.0E7"),
        (t.DOUBLE, 0.001, "0.001"),
        (t.DOUBLE, 0.00012, "1.2E-4"),
        (t.FLOAT, 0.1, "0.1"),
        (t.BOOLEAN, True, "true"),
        (t.BOOLEAN, False, "false"),
        (t.decimal(38, 18), Decimal(0), "0.000000000000000000"),
        (t.decimal(38, 18), Decimal("-1.23"), "-1.230000000000000000"),
        (t.DATE, dt.date(1, 1, 1), "0001-01-01"),
        (t.DATE, dt.date(9999, 12, 31), "9999-12-31"),
        (t.TIMESTAMP, dt.datetime(2024, 6, 15, 19, 30, 45, tzinfo=UTC), "2024-06-15T19:30:45.000000Z"),
        (t.TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "1969-12-31T23:59:59.999999Z"),
        (t.TIMESTAMP_NTZ, dt.datetime(2024, 6, 15, 12, 30, 45), "2024-06-15 12:30:45"),
        (t.TIMESTAMP_NTZ, dt.datetime(2024, 6, 15, 23, 59, 59, 500000), "2024-06-15 23:59:59.5"),
        (t.BINARY, b"", None),
        (t.BINARY, b"HELLO", "HELLO"),
        (t.STRING, "", None),
        (t.STRING, None, None),
        (t.STRING, " ", " "),
        (t.STRING, "100%25", "100%25"),
    ],
)
def test_value_text(data_type: t.DataType, value: Any, text: str | None) -> None:
    assert value_text(pa.scalar(value, data_type.arrow()), data_type) == text


@pytest.mark.parametrize(
    ("data_type", "value"),
    [(t.STRING, "a\0b"), (t.BINARY, b"\xde\xad\xbe\xef"), (t.array(t.INT), [1])],
)
def test_values_without_a_text(data_type: t.DataType, value: Any) -> None:
    with pytest.raises(UnsupportedError):
        value_text(pa.scalar(value, data_type.arrow()), data_type)


def test_year_out_of_range() -> None:
    with pytest.raises(UnsupportedError, match="years 1 to 9999"):
        value_text(pa.scalar(2_932_897, pa.int32()).cast(pa.date32()), t.DATE)


@pytest.mark.parametrize(
    ("text", "folder", "logged"),
    [
        (None, "p=__HIVE_DEFAULT_PARTITION__", "p=__HIVE_DEFAULT_PARTITION__"),
        ("a{b", "p=a%7Bb", "p=a%257Bb"),
        ("a}b", "p=a}b", "p=a%7Db"),
        ("hello world", "p=hello world", "p=hello%20world"),
        ("a<b>c|d", "p=a<b>c|d", "p=a%3Cb%3Ec%7Cd"),
        ("a@b!c(d)", "p=a@b!c(d)", "p=a@b!c(d)"),
        ("a&b+c$d;e,f", "p=a&b+c$d;e,f", "p=a&b+c$d;e,f"),
        ("Serbia/srb%", "p=Serbia%2Fsrb%25", "p=Serbia%252Fsrb%2525"),
        ("100%25", "p=100%2525", "p=100%252525"),
        ("/=%", "p=%2F%3D%25", "p=%252F%253D%2525"),
        (" ", "p= ", "p=%20"),
    ],
)
def test_folders_and_log_paths(text: str | None, folder: str, logged: str) -> None:
    assert folder_name("p", text) == folder
    assert log_path(folder) == logged


def test_java_double_round_trips() -> None:
    rng = np.random.default_rng(1)
    for value in rng.standard_normal(300) * 10.0 ** rng.integers(-300, 300, 300):
        assert float(java_double(float(value), np.float64)) == value
        assert np.float32(java_double(float(np.float32(1.5) * 3), np.float32)) == np.float32(4.5)
