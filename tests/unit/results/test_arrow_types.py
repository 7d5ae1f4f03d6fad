"""Arrow arrays become the internal type of their column or are refused, never converted in silence."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from gateway import sqltypes as t
from gateway.errors import UnsupportedError, UserError
from gateway.results.arrow_types import plain, sql_type_of
from tests.unit.results.typed_values import UNTIMED, array_of, columns

SPEC_TABLE: list[tuple[pa.DataType, t.DataType]] = [
    (pa.bool_(), t.BOOLEAN),
    (pa.int8(), t.TINYINT),
    (pa.int16(), t.SMALLINT),
    (pa.int32(), t.INT),
    *((kind, t.BIGINT) for kind in (pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.float32(), t.FLOAT),
    (pa.float64(), t.DOUBLE),
    *((kind, t.STRING) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, t.DATE) for kind in (pa.date32(), pa.date64())),
    *((pa.timestamp(unit, zone), t.TIMESTAMP) for unit in ("s", "ms", "us", "ns") for zone in ("UTC", "+01:00")),
    *((pa.timestamp(unit), t.TIMESTAMP_NTZ) for unit in ("s", "ms", "us", "ns")),
    *((kind, t.BINARY) for kind in (pa.binary(), pa.large_binary(), pa.binary(4), pa.binary_view())),
    (pa.decimal128(10, 2), t.decimal(10, 2)),
    (pa.decimal256(38, 5), t.decimal(38, 5)),
    (pa.decimal256(76, 5), t.decimal(38, 5)),
    *((kind, t.array(t.INT)) for kind in (pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 3))),
    (pa.map_(pa.string(), pa.date32()), t.map_of(t.STRING, t.DATE)),
    (pa.struct([("a", pa.list_(pa.uint8()))]), t.struct(t.StructField("a", t.array(t.BIGINT)))),
    (pa.dictionary(pa.int32(), pa.string()), t.STRING),
    (pa.null(), t.VOID),
]

REFUSED = [
    pa.month_day_nano_interval(),
    pa.duration("us"),
    pa.time32("s"),
    pa.time64("us"),
    pa.list_view(pa.int32()),
    pa.large_list_view(pa.int32()),
    pa.float16(),
    pa.run_end_encoded(pa.int32(), pa.int64()),
    pa.sparse_union([pa.field("a", pa.int32())]),
    pa.decimal128(5, -2),
    pa.uuid(),
]


@pytest.mark.parametrize(("arrow", "kind"), SPEC_TABLE, ids=str)
def test_sql_type_of_every_row_of_the_specification(arrow: pa.DataType, kind: t.DataType) -> None:
    assert sql_type_of(arrow) == kind


@pytest.mark.parametrize("arrow", REFUSED, ids=str)
def test_types_without_an_honest_form_are_refused_by_name(arrow: pa.DataType) -> None:
    for wrapped in (arrow, pa.list_(arrow), pa.struct([("x", arrow)]), pa.map_(pa.string(), arrow)):
        with pytest.raises(UnsupportedError) as error:
            sql_type_of(wrapped, "col")
        assert error.value.condition == "UNSUPPORTED_RESULT_TYPE"
        assert error.value.sqlstate == "0A000"
        assert "`col`" in error.value.message
        assert str(arrow) in error.value.message


@pytest.mark.parametrize("arrow", REFUSED, ids=str)
def test_values_of_refused_types_are_refused_too(arrow: pa.DataType) -> None:
    try:
        values = pa.nulls(1, arrow)
    except (NotImplementedError, pa.ArrowNotImplementedError):
        pytest.skip("pyarrow makes no such array")
    with pytest.raises(UnsupportedError, match="`col`"):
        plain(values, t.BIGINT, "col")


@UNTIMED
@given(columns())
def test_internal_arrays_pass_untouched(column: tuple[t.DataType, list[Any]]) -> None:
    kind, values = column
    array = array_of(kind, values)
    assert plain(array, kind, "c") is array


LIBERAL: list[tuple[pa.Array, t.DataType, list[Any]]] = [
    (pa.array([200, None], pa.uint8()), t.BIGINT, [200, None]),
    (pa.array([5], pa.int32()), t.BIGINT, [5]),
    (pa.array([1.5], pa.float32()), t.DOUBLE, [1.5]),
    (pa.array(["a", None], pa.string_view()), t.STRING, ["a", None]),
    (pa.array(["a"], pa.large_string()), t.varchar(3), ["a"]),
    (pa.array([b"ab"], pa.binary(2)), t.BINARY, [b"ab"]),
    (pa.array([Decimal("1.50")], pa.decimal256(60, 2)), t.decimal(38, 2), [Decimal("1.50")]),
    (pa.array([None, [1]], pa.large_list(pa.uint8())), t.array(t.BIGINT), [None, [1]]),
    (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)), t.array(t.INT), [[1, 2], None, [3, 4]]),
    (pa.array([["x"], None, []], pa.list_(pa.string_view())), t.array(t.STRING), [["x"], None, []]),
    (pa.array([{"a": b"x"}, None], pa.struct([("a", pa.large_binary())])), t.struct(t.StructField("b", t.BINARY)),
     [{"b": b"x"}, None]),
    (pa.array([[("k", 1)], None], pa.map_(pa.large_string(), pa.uint32())), t.map_of(t.STRING, t.BIGINT),
     [[("k", 1)], None]),
    (pa.array(["x", None, "x"]).dictionary_encode(), t.STRING, ["x", None, "x"]),
    (pa.array([["x"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))), t.array(t.STRING), [["x"]]),
    (pa.nulls(2), t.array(t.INT), [None, None]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "kind", "expected"), LIBERAL, ids=lambda v: str(getattr(v, "type", "")))
def test_other_layouts_become_the_internal_type(values: pa.Array, kind: t.DataType, expected: list[Any]) -> None:
    result = plain(values, kind, "c")
    result.validate(full=True)
    assert result.type == kind.arrow()
    assert result.to_pylist() == expected
    tail = plain(values.slice(1), kind, "c")
    assert tail.to_pylist() == expected[1:]


@pytest.mark.parametrize(
    ("values", "kind", "condition"),
    [
        (pa.array([2**63], pa.uint64()), t.BIGINT, "NUMERIC_VALUE_OUT_OF_RANGE"),
        (pa.array([[2**64 - 1]], pa.list_(pa.uint64())), t.array(t.BIGINT), "NUMERIC_VALUE_OUT_OF_RANGE"),
        (pa.array([300], pa.int64()), t.TINYINT, "NUMERIC_VALUE_OUT_OF_RANGE"),
        (pa.array([Decimal(10) ** 39], pa.decimal256(76, 0)), t.decimal(38, 0), "NUMERIC_VALUE_OUT_OF_RANGE"),
        (pa.array([2**62], pa.timestamp("s")), t.TIMESTAMP_NTZ, "DATETIME_OVERFLOW"),
    ],
)
def test_values_that_do_not_fit_are_refused(values: pa.Array, kind: t.DataType, condition: str) -> None:
    with pytest.raises(UserError, match="`c`") as error:
        plain(values, kind, "c")
    assert error.value.condition == condition


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["1"]), t.BIGINT),
        (pa.array([1]), t.STRING),
        (pa.array([1.5]), t.FLOAT),
        (pa.array([Decimal("1.5")]), t.decimal(10, 3)),
        (pa.array([0], pa.timestamp("us", "UTC")), t.TIMESTAMP_NTZ),
        (pa.array([{"a": 1}]), t.struct()),
        (pa.array([1]), t.VOID),
        (pa.array([1], pa.duration("us")), t.DAY_TIME),
    ],
)
def test_a_column_of_another_type_is_never_converted_in_silence(values: pa.Array, kind: t.DataType) -> None:
    with pytest.raises(UnsupportedError) as error:
        plain(values, kind, "c")
    assert error.value.condition == "UNSUPPORTED_RESULT_TYPE"
