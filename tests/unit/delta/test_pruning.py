"""File pruning: a file with a matching row is never left out, whatever the statistics look like."""

from __future__ import annotations

import datetime as dt
import operator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import sqltypes as t
from gateway.delta.features import Protocol
from gateway.delta.listed import Files
from gateway.delta.predicates import Comparison, NullTest, OneOf, Predicate, StartsWith
from gateway.delta.pruning import prune
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot

OPS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
Rows = list[list[Any]]


def snapshot(data_type: t.DataType, files: Rows, cut: int | None = None, *, partition: bool = False) -> Snapshot:
    """A snapshot whose statistics are made from `files` (values per file); `cut` cuts texts or milliseconds off."""
    arrow = data_type.arrow()

    def stat(choose: Any) -> list[Any]:
        out = []
        for values in files:
            known = [v for v in values if v is not None]
            out.append(shorten(choose(known)) if known else None)
        return out

    def shorten(value: Any) -> Any:
        if cut is None:
            return value
        if isinstance(value, str):
            return value[:cut]
        return value.replace(microsecond=value.microsecond // 1000 * 1000)

    def struct(values: list[Any], kind: pa.DataType) -> pa.StructArray:
        return pa.StructArray.from_arrays([pa.array(values, kind)], fields=[pa.field("c", kind)])

    return Snapshot(
        root="/t",
        version=0,
        protocol=Protocol(1, 2),
        columns=(Column("c", "c", None, data_type),),
        partition_columns=("c",) if partition else (),
        properties={},
        comment=None,
        mapping="none",
        files=Files(
            paths=[str(i) for i in range(len(files))],
            logged=[],
            sizes=np.zeros(len(files), np.int64),
            num_records=pa.array([len(values) for values in files], pa.int64()),
            null_count=struct([sum(v is None for v in values) for values in files], pa.int64()),
            minimum=struct(stat(min), arrow),
            maximum=struct(stat(max), arrow),
            partitions={"c": pa.array([values[0] for values in files], arrow)} if partition else {},
            deleted={},
            mended=False,
        ),
    )


def holds(predicate: Predicate, value: Any) -> bool:
    match predicate:
        case NullTest(negated=negated):
            return (value is None) != negated
        case Comparison(op=op, value=literal):
            return value is not None and bool(OPS[op](value, literal.as_py()))
        case OneOf(values=values):
            return value is not None and value in [v.as_py() for v in values]
        case StartsWith(prefix=prefix):
            return value is not None and value.startswith(prefix)


def check(table: Snapshot, files: Rows, predicate: Predicate) -> None:
    kept = prune(table, [predicate])
    for keep, values in zip(kept, files, strict=True):
        assert keep or not any(holds(predicate, v) for v in values), (predicate, values)


def predicates(values: Any, arrow: pa.DataType) -> Any:
    scalars = values.map(lambda v: pa.scalar(v, arrow))
    return st.one_of(
        st.builds(Comparison, st.just("c"), st.sampled_from(sorted(OPS)), scalars),
        st.builds(OneOf, st.just("c"), st.lists(scalars, min_size=1, max_size=3).map(tuple)),
        st.builds(NullTest, st.just("c"), st.booleans()),
    )


TEXTS = st.text(alphabet="ab\U0010ffff", max_size=5)
MOMENTS = st.integers(-3_000, 3_000).map(
    lambda us: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=us)
)


def files_of(values: Any) -> Any:
    return st.lists(st.lists(st.one_of(st.none(), values), min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_integers(data: st.DataObject) -> None:
    values = st.integers(-3, 3)
    files = data.draw(files_of(values))
    check(snapshot(t.BIGINT, files), files, data.draw(predicates(values, pa.int64())))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_cut_texts(data: st.DataObject) -> None:
    files = data.draw(files_of(TEXTS))
    either = st.one_of(predicates(TEXTS, pa.string()), st.builds(StartsWith, st.just("c"), TEXTS))
    cut = data.draw(st.sampled_from([None, 1, 2]))
    check(snapshot(t.STRING, files, cut), files, data.draw(either))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_cut_timestamps(data: st.DataObject) -> None:
    files = data.draw(files_of(MOMENTS))
    check(snapshot(t.TIMESTAMP, files, 1), files, data.draw(predicates(MOMENTS, t.TIMESTAMP.arrow())))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_partition_values(data: st.DataObject) -> None:
    files = [[v] for v in data.draw(st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=5))]
    either = st.one_of(predicates(TEXTS, pa.string()), st.builds(StartsWith, st.just("c"), TEXTS))
    check(snapshot(t.STRING, files, partition=True), files, data.draw(either))


LATER = Comparison("c", ">", pa.scalar(dt.date(2020, 6, 1)))
CHEAPER = Comparison("c", "<", pa.scalar(Decimal("1.50"), pa.decimal128(5, 2)))


@pytest.mark.parametrize(
    ("data_type", "files", "predicate", "kept"),
    [
        (t.BIGINT, [[1, 5], [6, 9], [None]], Comparison("c", "=", pa.scalar(5, pa.int64())), [True, False, False]),
        (t.BIGINT, [[1], [None, 1], [None]], NullTest("c", negated=False), [False, True, True]),
        (t.BIGINT, [[1], [None, 1], [None]], NullTest("c", negated=True), [True, True, False]),
        (t.BIGINT, [[1], [7]], Comparison("c", "=", pa.scalar(1, pa.int32())), [True, True]),  # another type: unknown
        (t.STRING, [["a"], ["b"]], StartsWith("c", "b"), [False, True]),
        (t.DATE, [[dt.date(2020, 1, 1)], [dt.date(2021, 1, 1)]], LATER, [False, True]),
        (t.decimal(5, 2), [[Decimal("1.00")], [Decimal("2.00")]], CHEAPER, [True, False]),
        (t.char(3), [["a  "], ["b  "]], Comparison("c", "=", pa.scalar("a")), [True, True]),  # padding: unknown
        (t.DOUBLE, [[1.0], [2.0]], Comparison("c", ">", pa.scalar(1.5)), [True, True]),  # statistics skip NaN
    ],
)  # fmt: skip
def test_what_is_left_out(data_type: t.DataType, files: Rows, predicate: Predicate, kept: list[bool]) -> None:
    assert prune(snapshot(data_type, files), [predicate]).tolist() == kept


def test_unknown_statistics_keep_the_file() -> None:
    table = snapshot(t.BIGINT, [[1], [2]])
    bare = Files(**{**vars(table.files), "null_count": None, "minimum": None, "maximum": None})
    object.__setattr__(table, "files", bare)
    assert prune(table, [Comparison("c", "=", pa.scalar(9, pa.int64())), NullTest("c", negated=False)]).all()
    assert prune(table, [Comparison("nothing", "=", pa.scalar(9, pa.int64()))]).all()
