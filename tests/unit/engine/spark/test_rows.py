"""Arrow as Spark makes it, in the layout of our types; what needs Spark itself is in `tests/spark`."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.engine.spark import arrow_files, rows
from gateway.errors import ServerError
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DAY_TIME,
    INT,
    STRING,
    VARIANT,
    VOID,
    DataType,
    StructField,
    array,
    decimal,
    interval,
    map_of,
    struct,
)

NOT_NULL = pa.list_(pa.field("element", pa.struct([pa.field("a", pa.int32(), False)]), False))
NESTED = [
    (pa.array([[1], None, [], [2, 3]], pa.list_(pa.field("element", pa.int32(), False))), array(INT)),
    (pa.array([[1], None, [], [2, 3]], pa.large_list(pa.int32())), array(INT)),
    (pa.array([[{"a": 1}], None, [], [{"a": 2}, {"a": 3}]], NOT_NULL), array(struct(StructField("a", INT)))),
    (
        pa.array([[("k", [1])], None, [], [("l", None), ("m", [])]], pa.map_(pa.string(), pa.list_(pa.int64()))),
        map_of(STRING, array(BIGINT)),
    ),
    (
        pa.array([{"a": [1]}, None, {"a": None}, {"a": [None, 2]}], pa.struct([("a", pa.list_(pa.int32()))])),
        struct(StructField("x", array(INT))),
    ),
    (pa.array([["a"], None, [], [None]], pa.list_(pa.string())), array(VOID)),
]


def plain(values: list[object], type_: DataType) -> list[object]:
    """Values as our types show them: fields by their place, VOID always NULL."""
    if type_ == struct(StructField("x", array(INT))):
        return [None if v is None else {"x": v["a"]} for v in values]  # type: ignore[index]
    if type_ == array(VOID):
        return [None if v is None else [None] * len(v) for v in values]  # type: ignore[arg-type]
    return values


@pytest.mark.parametrize(("found", "type_"), NESTED)
@pytest.mark.parametrize("part", [slice(0, 4), slice(1, 4), slice(2, 4), slice(3, 4), slice(1, 2), slice(2, 2)])
def test_nested_arrays_and_slices_of_them(found: pa.Array, type_: DataType, part: slice) -> None:
    sliced = found[part]
    ours = rows._array(sliced, type_)
    ours.validate(full=True)
    assert ours.type.equals(type_.arrow())
    assert ours.to_pylist() == plain(sliced.to_pylist(), type_)


def test_durations_of_any_unit() -> None:
    found = pa.array([datetime.timedelta(days=-1, seconds=2), None], pa.duration("ns"))
    assert rows._array(found, DAY_TIME).type.equals(DAY_TIME.arrow())


def test_another_type_than_planned_is_our_fault() -> None:
    with pytest.raises(ServerError, match="Spark delivered list<item: int64> where int32 was planned"):
        rows._array(pa.array([[1]]), INT)


@pytest.mark.parametrize(
    ("type_", "carried"),
    [
        (INT, "INT"),
        (VOID, "STRING"),
        (interval("month"), "INT"),
        (array(VOID), "ARRAY<STRING>"),
        (map_of(STRING, struct(StructField("a b", INT, False))), "MAP<STRING, STRUCT<`a b`: INT>>"),
    ],
)
def test_types_that_arrow_and_parquet_have(type_: DataType, carried: str) -> None:
    assert rows._carried(type_).sql == carried


@pytest.mark.parametrize(
    ("type_", "width"),
    [
        (INT, 4),
        (BOOLEAN, 1),
        (decimal(38, 3), 16),
        (interval("month"), 4),
        (DAY_TIME, 8),
        (STRING, 0),
        (VOID, 0),
        (VARIANT, 0),
        (array(INT), 0),
        (struct(), 0),
    ],
)
def test_the_bytes_of_a_value(type_: DataType, width: int) -> None:
    assert rows._width(type_) == width


def test_files_are_read_in_the_order_of_partitions_and_of_their_numbers() -> None:
    names = [
        "part-00002-6-b-c000.lz4raw.parquet",
        "part-00002-6-b-c101.lz4raw.parquet",
        "part-00002-6-b-c1000.lz4raw.parquet",
        "part-00010-6-b-c000.lz4raw.parquet",
        "part-100000-6-b-c000.lz4raw.parquet",
        "part-100001",
    ]
    assert [p.name for p in sorted(map(Path, reversed(names)), key=rows._order)] == names


class Frame:
    """Columns that are called as they should be."""

    def toDF(self, *names: str) -> Frame:  # noqa: N802 (pyspark's name)
        return self


@pytest.mark.parametrize("arrived", [0, 2, 4])
@pytest.mark.parametrize("type_", [BIGINT, STRING])
def test_a_result_of_which_a_part_is_elsewhere_is_no_result(
    type_: DataType, arrived: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "result"

    def write(frame: Frame, folder: Path, *_: int) -> int:
        folder.mkdir()
        for number in range(arrived):
            pq.write_table(pa.table({"c0": ["a"]}), folder / f"part-0000{number}")
        return 3

    monkeypatch.setattr(arrow_files, "write", write)
    monkeypatch.setattr(rows, "_write_parquet", write)
    with pytest.raises(ServerError, match="--state must be a folder that all hosts of the cluster share") as raised:
        next(rows.written(Frame(), struct(StructField("a", type_)), folder))
    assert raised.value.sqlstate == "KD001" and not folder.exists()
