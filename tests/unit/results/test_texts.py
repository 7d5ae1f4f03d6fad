"""Files of texts hold what columnar pages say, with the timestamps and bytes of the Statement Execution API."""

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pytest

from gateway import sqltypes as t
from gateway.results.spool import Rows
from gateway.results.texts import csv_rows, json_rows


def rows(values: list[Any], data_type: t.DataType) -> Rows:
    return Rows(pa.record_batch([pa.array(values, data_type.arrow())], names=["c"]))


def schema(data_type: t.DataType) -> t.StructType:
    return t.struct(t.StructField("c", data_type))


def texts(values: list[Any], data_type: t.DataType, zone: str = "UTC") -> list[str | None]:
    return [row[0] for row in json.loads(json_rows([rows(values, data_type)], schema(data_type), zone))]


JANUARY, JUNE = 1609524000000000, 1623785696789000  # 2021-01-01 18:00:00, 2021-06-15 19:34:56.789, UTC


@pytest.mark.parametrize(
    ("zone", "data_type", "value", "shown"),
    [
        ("UTC", t.BIGINT, -5, "-5"),
        ("UTC", t.DOUBLE, 1.0, "1.0"),
        ("UTC", t.BOOLEAN, True, "true"),
        ("UTC", t.decimal(10, 2), "1.50", "1.50"),
        ("UTC", t.DATE, 18993, "2022-01-01"),
        ("UTC", t.BINARY, b"\x01\xff", "01FF"),
        ("UTC", t.BINARY, b"", ""),
        ("UTC", t.array(t.STRING), ["a", None, 'q"'], '["a",null,"q\\""]'),
        ("UTC", t.STRING, 'a "b"\n\\ é \0 \U0001f600', 'a "b"\n\\ é \0 \U0001f600'),
        # As recorded of a Databricks server.
        ("America/Los_Angeles", t.TIMESTAMP, JANUARY, "2021-01-01T10:00:00.000-08:00"),
        ("America/Los_Angeles", t.TIMESTAMP, JUNE, "2021-06-15T12:34:56.789-07:00"),
        ("UTC", t.TIMESTAMP, JUNE, "2021-06-15T19:34:56.789Z"),
        ("UTC", t.TIMESTAMP, JUNE + 1, "2021-06-15T19:34:56.789001Z"),
        ("Asia/Kolkata", t.TIMESTAMP, 0, "1970-01-01T05:30:00.000+05:30"),
        ("Europe/Amsterdam", t.TIMESTAMP, -3_000_000_000_000_000, "1874-12-07T18:59:32.000+00:19:32"),
        ("Asia/Tokyo", t.TIMESTAMP_NTZ, JUNE, "2021-06-15T19:34:56.789"),
        ("UTC", t.TIMESTAMP, -1, "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_values(zone: str, data_type: t.DataType, value: Any, shown: str) -> None:
    if isinstance(data_type, t.DecimalType):
        from decimal import Decimal

        value = Decimal(value)
    assert texts([value, None, value], data_type, zone) == [shown, None, shown]


def test_rows_of_several_parts_and_columns() -> None:
    two = t.struct(t.StructField("a,b", t.INT), t.StructField("c", t.STRING))
    parts = [
        Rows(pa.record_batch([pa.array([1, None], pa.int32()), pa.array(["x", "null"])], names=["a", "c"])),
        Rows(pa.record_batch([pa.array([3], pa.int32()), pa.array(['q"\r\n,'])], names=["a", "c"])),
    ]
    assert json_rows(parts, two, "UTC") == b'[["1","x"],[null,"null"],["3","q\\"\\r\\n,"]]'
    assert json_rows([], two, "UTC") == b"[]"
    text = csv_rows(parts, two, "UTC", header=True).decode()
    assert text.startswith('"a,b",c\r\n1,x\r\nnull,null\r\n')
    assert list(csv.reader(io.StringIO(text, newline="")))[-1] == ["3", 'q"\r\n,']
    assert csv_rows(parts[1:], two, "UTC", header=False).count(b"\r\n") == 2
