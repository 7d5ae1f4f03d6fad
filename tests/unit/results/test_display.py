"""Texts of nested values and of casts equal the reference's, and what a server of Databricks sent."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import sqltypes as t
from gateway.errors import UnsupportedError
from gateway.results.arrow_types import sql_type_of
from gateway.results.display import cast_to_string, wire_text
from tests.unit.results import typed_values as reference
from tests.unit.results.typed_values import UNTIMED, array_of, columns

ZONES = st.sampled_from(["UTC", "America/Los_Angeles"])


@UNTIMED
@given(columns(), ZONES)
def test_wire_text_equals_the_reference(column: tuple[t.DataType, list[Any]], zone: str) -> None:
    kind, values = column
    if kind == t.BINARY:  # travels in its own slot
        return
    expected = [reference.text(v, kind, zone, wire=True) for v in values]
    assert wire_text(array_of(kind, values), kind, zone).to_pylist() == expected


@UNTIMED
@given(columns(), ZONES, st.integers(0, 5), st.integers(0, 5))
def test_slices_are_shown_as_they_are(column: tuple[t.DataType, list[Any]], zone: str, start: int, length: int) -> None:
    kind, values = column
    array = array_of(kind, values)
    start = min(start, len(values))
    whole = wire_text(array, kind, zone).to_pylist()
    assert wire_text(array.slice(start, length), kind, zone).to_pylist() == whole[start : start + length]


def _has_binary(kind: t.DataType) -> bool:
    return kind == t.BINARY or any(_has_binary(child) for child in kind.children())


@UNTIMED
@given(columns(), ZONES)
def test_cast_text_equals_the_reference(column: tuple[t.DataType, list[Any]], zone: str) -> None:
    kind, values = column
    if _has_binary(kind):
        return
    expected = [reference.text(v, kind, zone, wire=False) for v in values]
    assert cast_to_string(array_of(kind, values), kind, zone).to_pylist() == expected


MAP = t.map_of(t.STRING, t.INT)
PAIR = t.struct(t.StructField("x", t.INT), t.StructField("y", t.STRING))
SPARK_CASTS: list[tuple[t.DataType, Any, str]] = [  # answers of Spark 4.2
    (t.array(t.DATE), [datetime.date(2020, 1, 1), None], "[2020-01-01, null]"),
    (t.array(t.TIMESTAMP), [datetime.datetime(2020, 1, 1, 0, 0, 0, 500000)], "[2020-01-01 00:00:00.5]"),
    (t.array(t.interval("day")), [86_400_000_000], "[INTERVAL '1' DAY]"),
    (t.array(t.BINARY), [b"ab", b"A"], "[ab, A]"),
    (MAP, [("b", 1), ("a", None)], "{b -> 1, a -> null}"),
    (PAIR, {"x": 1, "y": None}, "{1, null}"),
    (t.array(t.VOID), [None], "[null]"),
    (t.array(t.VOID), [], "[]"),
    (MAP, [], "{}"),
    (t.array(t.BOOLEAN), [True], "[true]"),
    (t.array(t.decimal(10, 4)), [Decimal("1.50")], "[1.5000]"),
    (t.array(PAIR), [{"x": 1, "y": "z"}], "[{1, z}]"),
    (t.array(t.array(t.INT)), [[1], None], "[[1], null]"),
    (t.struct(), {}, "{}"),
    (t.decimal(20, 10), Decimal("0.0000001"), "0.0000001000"),
]


@pytest.mark.parametrize(("kind", "value", "text"), SPARK_CASTS)
def test_casts_as_spark_writes_them(kind: t.DataType, value: Any, text: str) -> None:
    assert cast_to_string(pa.array([value, None], kind.arrow()), kind, "UTC").to_pylist() == [text, None]


WIRE: list[tuple[t.DataType, Any, str]] = [
    (t.array(t.INT), [1, None, 3], "[1,null,3]"),
    (t.map_of(t.STRING, t.STRING), [("b", "x"), ("a", None)], '{"a":null,"b":"x"}'),
    (t.map_of(t.INT, t.STRING), [(10, "x"), (9, "y"), (1, "z")], '{1:"z",10:"x",9:"y"}'),
    (t.array(t.DATE), [datetime.date(2020, 1, 1)], "[2020-01-01]"),
    (t.array(t.TIMESTAMP), [datetime.datetime(2020, 1, 1, 0, 0, 0, 500000)], "[2020-01-01 00:00:00.5]"),
    (t.array(t.STRING), ['q"x\\y\n\x01ü'], '["q\\"x\\\\y\\n\\u0001ü"]'),
    (t.array(t.DOUBLE), [1e20, 0.1, float("nan"), 1.0], "[1.0E20,0.1,NaN,1.0]"),
    (t.array(t.FLOAT), [0.1], "[0.1]"),
    (t.array(t.BINARY), [b"\x00\xff", b"", b"abc", b"a", None], '["AP8=","","YWJj","YQ==",null]'),
    (t.array(t.DAY_TIME), [93_784_500_000], "[1 02:03:04.500000000]"),
    (t.struct(t.StructField('a "b"', t.INT)), {'a "b"': 1}, '{"a \\"b\\"":1}'),
    (t.decimal(20, 10), Decimal("0.0000001"), "0.0000001000"),
    (t.YEAR_MONTH, 14, "1-2"),
    (t.array(t.VARIANT), ['{"a":"b"}', None, "null", '"x"'], '[{"a":"b"},null,null,"x"]'),
    (t.map_of(t.STRING, t.VARIANT), [("k", "[1]"), ("a", None)], '{"a":null,"k":[1]}'),
    (t.struct(t.StructField("v", t.VARIANT)), {"v": "1.5"}, '{"v":1.5}'),
]


@pytest.mark.parametrize(("kind", "value", "text"), WIRE)
def test_wire_forms(kind: t.DataType, value: Any, text: str) -> None:
    assert wire_text(pa.array([None, value], kind.arrow()), kind, "UTC").to_pylist() == [None, text]


def test_a_row_that_a_databricks_server_sent() -> None:
    """The nested columns of the compatibility table in databricks-sql-nodejs (tests/fixtures/compatibility)."""
    point = pa.struct([("d", pa.decimal128(3, 2)), ("n", pa.int64())])
    sent = {
        "arr2": (pa.list_(pa.map_(pa.string(), pa.decimal128(5, 4))),
                 [[("sqrt2", Decimal("1.4142"))], [("e", Decimal("2.7182"))], [("pi", Decimal("3.1415"))]],
                 '[{"sqrt2":1.4142},{"e":2.7182},{"pi":3.1415}]'),
        "map1": (pa.map_(pa.string(), pa.decimal128(4, 2)),
                 [("sqrt2", Decimal("1.41")), ("e", Decimal("2.71")), ("pi", Decimal("3.14"))],
                 '{"e":2.71,"pi":3.14,"sqrt2":1.41}'),
        "map3": (pa.map_(pa.string(), point),
                 [("struct1", {"d": Decimal("3.14"), "n": 314159265359}),
                  ("struct2", {"d": Decimal("2.71"), "n": 271828182846})],
                 '{"struct1":{"d":3.14,"n":314159265359},"struct2":{"d":2.71,"n":271828182846}}'),
        "map4": (pa.map_(pa.string(), pa.list_(pa.int64())), [("e", [271828182846]), ("pi", [314159265359])],
                 '{"e":[271828182846],"pi":[314159265359]}'),
    }  # fmt: skip
    for arrow, value, text in sent.values():
        assert wire_text(pa.array([value], arrow), sql_type_of(arrow), "UTC").to_pylist() == [text]


def test_null_containers_may_hide_entries() -> None:
    """Arrow allows entries under a null list; they must not leak into the text or shift the rows after it."""
    offsets = pa.array([0, 2, 3], pa.int32())
    hidden = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 3]), mask=pa.array([True, False]))
    assert wire_text(hidden, t.array(t.BIGINT), "UTC").to_pylist() == [None, "[3]"]
    maps = pa.MapArray.from_arrays(
        offsets, pa.array(["b", "a", "c"]), pa.array([1, 2, 3]), mask=pa.array([True, False])
    )
    assert wire_text(maps, t.map_of(t.STRING, t.BIGINT), "UTC").to_pylist() == [None, '{"c":3}']


def test_binary_that_is_not_utf8_is_not_cast() -> None:
    with pytest.raises(UnsupportedError, match="UTF-8"):
        cast_to_string(pa.array([b"\xff"]), t.BINARY, "UTC")
    assert cast_to_string(pa.array([b"ab", None]), t.BINARY, "UTC").to_pylist() == ["ab", None]
