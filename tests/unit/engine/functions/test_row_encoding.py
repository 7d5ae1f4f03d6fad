"""Rows as bytes: alike, and in order, where the rows are by Python's own comparisons, and nowhere else."""

from __future__ import annotations

import datetime
import itertools
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.engine.base import UdfSpec
from gateway.engine.functions import IMPLEMENTATIONS, RowError, row_encoding
from gateway.engine.functions.row_encoding import encoded
from gateway.sqltypes import BINARY

_KEY = IMPLEMENTATIONS["row_key"](UdfSpec("row_key", (), BINARY))
_SCALARS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-2, 2),
    pa.int64(): st.sampled_from((-(2**63), -1, 0, 1, 256, 2**63 - 1)),
    pa.bool_(): st.booleans(),
    pa.string(): st.text("ab\0é", max_size=3),
    pa.binary(): st.binary(max_size=2),
    pa.date32(): st.sampled_from((datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
    pa.timestamp("us"): st.sampled_from((datetime.datetime(1, 1, 1), datetime.datetime(2024, 1, 1))),
    pa.decimal128(38, 2): st.sampled_from((Decimal("0.00"), Decimal("-0.01"), Decimal(10**35))),
    pa.float64(): st.sampled_from((0.0, -0.0, 1.5, math.nan, -math.nan, math.inf)),
    pa.float32(): st.sampled_from((0.0, -0.0, 1.5, math.nan)),
    pa.null(): st.none(),
}


def _typed(depth: int) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """A type and values of it, NULLs among them."""
    scalars = st.sampled_from([(t, st.none() | values) for t, values in _SCALARS.items()])
    if depth == 0:
        return scalars
    inner = _typed(depth - 1)
    lists = inner.map(lambda e: (pa.list_(e[0]), st.none() | st.lists(e[1], max_size=2)))
    structs = st.tuples(inner, inner).map(
        lambda two: (
            pa.struct([("x", two[0][0]), ("y", two[1][0])]),
            st.none() | st.fixed_dictionaries({"x": two[0][1], "y": two[1][1]}),
        )
    )
    return st.one_of(scalars, lists, structs)


def _compared(a: Any, b: Any) -> int:
    """Spark's order of nested values: by element, NULL first, NaN last."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, dict):
        a, b = [a[k] for k in sorted(a)], [b[k] for k in sorted(b)]
    if isinstance(a, list):
        return next((o for o in map(_compared, a, b) if o), (len(a) > len(b)) - (len(a) < len(b)))
    if isinstance(a, float) and (a != a or b != b):
        return int(a != a) - int(b != b)
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def _told(value: Any) -> Any:
    """What tells a value apart in Python: one NaN, one zero, True not 1."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(map(_told, value))
    if isinstance(value, dict):
        return tuple((k, _told(value[k])) for k in sorted(value))
    return value


@settings(deadline=None)
@given(st.data())
def test_rows_are_alike_where_their_bytes_are(data: st.DataObject) -> None:
    columns = data.draw(st.lists(_typed(2), min_size=1, max_size=3), "types")
    rows = data.draw(st.lists(st.tuples(*(values for _, values in columns)), min_size=1, max_size=8), "rows")
    at = data.draw(st.integers(0, len(rows) - 1), "from")
    arrays = [pa.array([row[i] for row in rows], t).slice(at) for i, (t, _) in enumerate(columns)]
    keys = _KEY(*arrays).to_pylist()
    rows = rows[at:]
    assert [k is None for k in keys] == [None in row for row in rows]
    whole = [(k, tuple(map(_told, row))) for k, row in zip(keys, rows, strict=True) if k is not None]
    assert len({k for k, _ in whole}) == len({row for _, row in whole}) == len(set(whole))


@settings(deadline=None)
@given(st.data())
def test_bytes_are_in_the_values_order(data: st.DataObject) -> None:
    t, values = data.draw(_typed(2), "type")
    given_ = data.draw(st.lists(values, min_size=2, max_size=8), "values")
    keys = encoded(pa.array(given_, t)).to_pylist()
    assert [k is None for k in keys] == [v is None for v in given_]
    pairs = [(k, v) for k, v in zip(keys, given_, strict=True) if k is not None]
    for a, b in itertools.product(pairs, repeat=2):
        assert (a[0] > b[0]) - (a[0] < b[0]) == _compared(a[1], b[1])


def _by(ways: tuple[tuple[bool, bool], ...], a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    """How two rows compare by keys of which each is descending or not, and has NULL first or not."""
    for x, y, (descending, nulls_first) in zip(a, b, ways, strict=True):
        if x is None or y is None:
            found = ((x is not None) - (y is not None)) * (1 if nulls_first else -1)
        else:
            found = _compared(x, y) * (-1 if descending else 1)
        if found:
            return found
    return 0


@settings(deadline=None)
@given(st.data())
def test_keys_of_an_order_are_in_its_order(data: st.DataObject) -> None:
    columns = data.draw(st.lists(_typed(1), min_size=1, max_size=3), "types")
    ways = tuple(data.draw(st.tuples(st.booleans(), st.booleans()), "way") for _ in columns)
    rows = data.draw(st.lists(st.tuples(*(values for _, values in columns)), min_size=2, max_size=8), "rows")
    at = data.draw(st.integers(0, 1), "from")
    arrays = [pa.array([row[i] for row in rows], t).slice(at) for i, (t, _) in enumerate(columns)]
    keys = IMPLEMENTATIONS["order_key"](UdfSpec("order_key", (), BINARY, ways))(*arrays).to_pylist()
    for (k, a), (m, b) in itertools.product(zip(keys, rows[at:], strict=True), repeat=2):
        assert (k > m) - (k < m) == _by(ways, a, b)


def test_more_than_an_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_encoding, "MAX_TEXT_BYTES", 100)
    with pytest.raises(RowError) as caught:
        _KEY(pa.array(["a" * 60, "b" * 60]), pa.array([1, 2]))
    assert caught.value.condition == "RESOURCE_EXHAUSTED"


def test_no_rows() -> None:
    empty = (pa.array([], pa.list_(pa.string())), pa.array([], pa.float64()))
    assert _KEY(*empty).to_pylist() == []
    ways = ((True, False), (False, True))
    assert IMPLEMENTATIONS["order_key"](UdfSpec("order_key", (), BINARY, ways))(*empty).to_pylist() == []
