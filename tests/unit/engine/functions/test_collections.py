"""Kernels of arrays and maps on columns: slices, NULL rows, NULL elements, NaN and signed zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.engine.base import UdfSpec
from gateway.engine.functions import IMPLEMENTATIONS, RowError, load, row_error_in
from gateway.sqltypes import BIGINT, BOOLEAN, DOUBLE, INT, STRING, DataType, StructField, array, map_of, struct

NAN = float("nan")
load()

INTS, TEXTS, FLOATS = array(INT), array(STRING), array(DOUBLE)
PAIR = struct(StructField("pos", INT), StructField("col", INT))
ENTRY = struct(StructField("key", STRING, False), StructField("x", INT), StructField("y", BIGINT))

# implementation, argument types, result type, params, arguments, expected
CASES: list[tuple[str, list[DataType], DataType, tuple[Any, ...], list[list[Any]], list[Any]]] = [
    ("list_size", [INTS], INT, (), [[[1, None], [], None]], [2, 0, None]),
    ("array_item", [INTS, INT], INT, (), [[[1, 2], None, [3]], [1, 0, None]], [2, None, None]),
    ("array_element_at", [INTS, INT], INT, (True,), [[[1, 2], [3], [4]], [-2, 5, 1]], [1, None, 4]),
    ("map_item", [map_of(STRING, INT), STRING], INT, (), [[[("a", 1), ("b", None)], [("a", 2)], None], ["a", "z", "a"]],
     [1, None, None]),
    ("maps_zipped", [map_of(STRING, INT), map_of(STRING, BIGINT)], array(ENTRY, False), (),
     [[[("a", 1), ("b", None)], [("a", 2)], None, [], [("z", 9)]],
      [[("c", 3), ("a", 4)], None, [("a", 5)], [("q", None)], [("z", 8), ("y", 7)]]],
     [[{"key": "a", "x": 1, "y": 4}, {"key": "b", "x": None, "y": None}, {"key": "c", "x": None, "y": 3}], None, None,
      [{"key": "q", "x": None, "y": None}], [{"key": "z", "x": 9, "y": 8}, {"key": "y", "x": None, "y": 7}]]),
    ("array_contains", [INTS, INT], BOOLEAN, (), [[[1, 2], [1, None], [None], [], None], [2, 2, 1, 1, 1]],
     [True, None, None, False, None]),
    ("array_contains", [FLOATS, DOUBLE], BOOLEAN, (), [[[NAN], [0.0]], [NAN, -0.0]], [True, True]),
    ("array_position", [INTS, INT], BIGINT, (), [[[5, 7, 7], [None], [1]], [7, 1, None]], [2, 0, None]),
    ("array_removed", [INTS, INT], INTS, (), [[[1, None, 2, 1], None, [1]], [1, 1, None]], [[None, 2], None, None]),
    ("array_deduplicated", [FLOATS], FLOATS, (), [[[0.0, -0.0, 1.0, None, None], []]], [[0.0, 1.0, None], []]),
    ("array_compacted", [INTS], INTS, (), [[[1, None], None, [None]]], [[1], None, []]),
    ("array_sorted", [INTS], INTS, (False, False), [[[3, None, 1], [], None]], [[1, 3, None], [], None]),
    ("array_sorted", [INTS], INTS, (True, False), [[[3, None, 4]]], [[4, 3, None]]),
    ("array_sorted", [array(INTS)], array(INTS), (False, True), [[[[2], [1, 5], None, [1, None]]]],
     [[None, [1, None], [1, 5], [2]]]),
    ("array_extreme", [FLOATS], DOUBLE, ("min",), [[[2.0, None, -1.0], [None], []]], [-1.0, None, None]),
    ("array_reversed", [INTS], INTS, (), [[[1, 2, None], None, []]], [[None, 2, 1], None, []]),
    ("array_slice", [INTS, INT, INT], INTS, (), [[[1, 2, 3], [1, 2, 3], [1], None], [2, -2, 5, 1], [2, 1, 1, 1]],
     [[2, 3], [2], [], None]),
    ("array_set", [INTS, INTS], INTS, ("union",), [[[1, 1, None], None], [[None, 2], [1]]], [[1, None, 2], None]),
    ("array_set", [INTS, INTS], INTS, ("intersect",), [[[1, 2, None], [1]], [[None, 2], None]], [[2, None], None]),
    ("array_set", [INTS, INTS], INTS, ("except",), [[[1, 2, 2, 3], [1]], [[1], []]], [[2, 3], [1]]),
    ("arrays_overlap", [INTS, INTS], BOOLEAN, (), [[[1], [1, None], [1], []], [[1], [2], [2], [None]]],
     [True, None, False, False]),
    ("arrays_joined", [INTS, INTS], INTS, (), [[[1], [2], None], [[3], None, [4]]], [[1, 3], None, None]),
    ("array_extended", [INTS, INT], INTS, ("prepend",), [[[1], None], [None, 5]], [[None, 1], None]),
    ("array_inserted", [INTS, INT, INT], INTS, (), [[[1, 2], [1, 2], [1], [1]], [-1, -5, 3, None], [9, 9, 9, 9]],
     [[1, 2, 9], [9, None, None, 1, 2], [1, None, 9], None]),
    ("array_repeated", [STRING, INT], TEXTS, (), [["x", None, "y"], [2, 1, None]], [["x", "x"], [None], None]),
    ("array_flattened", [array(INTS)], INTS, (), [[[[1], [2, 3]], [[1], None], None, []]], [[1, 2, 3], None, None, []]),
    ("array_text", [TEXTS, STRING], STRING, (), [[["a", None, "b"], [], None], [",", ",", ","]], ["a,b", "", None]),
    ("array_text", [TEXTS, STRING, STRING], STRING, (), [[["a", None], ["b"]], [",", ","], ["-", None]], ["a,-", None]),
    ("sequence_integers", [INT, INT], INTS, (), [[1, 3, None], [3, 1, 1]], [[1, 2, 3], [3, 2, 1], None]),
    ("map_from_lists", [TEXTS, INTS], map_of(STRING, INT), (), [[["a"], None], [[None], [1]]], [[("a", None)], None]),
    ("generated_rows", [INTS], array(PAIR), ("posexplode", True), [[[7], [], None]],
     [[{"pos": 0, "col": 7}], [{"pos": None, "col": None}], [{"pos": None, "col": None}]]),
    ("generated_rows", [INTS], array(PAIR), ("posexplode", False), [[[7, 8], None]],
     [[{"pos": 0, "col": 7}, {"pos": 1, "col": 8}], []]),
]  # fmt: skip

FAILURES: list[tuple[str, list[DataType], DataType, tuple[Any, ...], list[list[Any]], str]] = [
    ("array_item", [INTS, INT], INT, (), [[None, [1]], [5, 1]], "INVALID_ARRAY_INDEX"),
    ("array_item", [INTS, INT], INT, (), [[[1]], [-1]], "INVALID_ARRAY_INDEX"),
    ("array_element_at", [INTS, INT], INT, (False,), [[[1]], [2]], "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"),
    ("array_element_at", [INTS, INT], INT, (True,), [[[1]], [0]], "INVALID_INDEX_OF_ZERO"),
    ("array_slice", [INTS, INT, INT], INTS, (), [[[1]], [0], [1]], "INVALID_PARAMETER_VALUE.START"),
    ("array_slice", [INTS, INT, INT], INTS, (), [[[1]], [1], [-1]], "INVALID_PARAMETER_VALUE.LENGTH"),
    ("array_repeated", [STRING, INT], TEXTS, (), [["x"], [2_000_000_000]], "RESOURCE_EXHAUSTED"),
    ("sequence_integers", [BIGINT, BIGINT], array(BIGINT), (), [[0], [10**9]], "RESOURCE_EXHAUSTED"),
    (
        "sequence_integers",
        [BIGINT, BIGINT],
        array(BIGINT),
        (),
        [[0], [10**15]],
        "COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER",
    ),
    ("map_from_lists", [TEXTS, INTS], map_of(STRING, INT), (), [[["a", "a"]], [[1, 2]]], "DUPLICATED_MAP_KEY"),
    ("map_from_lists", [TEXTS, INTS], map_of(STRING, INT), (), [[[None]], [[1]]], "NULL_MAP_KEY"),
]


def run(
    impl: str, types: list[DataType], returns: DataType, params: tuple[Any, ...], columns: list[pa.Array]
) -> pa.Array:
    return IMPLEMENTATIONS[impl](UdfSpec(impl, tuple(types), returns, params))(*columns)


@pytest.mark.parametrize(("impl", "types", "returns", "params", "args", "expected"), CASES)
def test_kernel(
    impl: str,
    types: list[DataType],
    returns: DataType,
    params: tuple[Any, ...],
    args: list[list[Any]],
    expected: list[Any],
) -> None:
    columns = [pa.array(a, t.arrow()) for a, t in zip(args, types, strict=True)]
    sliced = [pa.concat_arrays([c, c, c])[len(c) : 2 * len(c)] for c in columns]
    for given in (columns, sliced):
        result = run(impl, types, returns, params, given)
        result.validate(full=True)
        assert result.to_pylist() == expected


@pytest.mark.parametrize(("impl", "types", "returns", "params", "args", "condition"), FAILURES)
def test_failures(
    impl: str,
    types: list[DataType],
    returns: DataType,
    params: tuple[Any, ...],
    args: list[list[Any]],
    condition: str,
) -> None:
    columns = [pa.array(a, t.arrow()) for a, t in zip(args, types, strict=True)]
    with pytest.raises(RowError) as caught:
        run(impl, types, returns, params, columns)
    error = row_error_in(str(caught.value))
    assert error is not None
    assert error.condition == condition


def test_a_slice_of_maps_as_the_engine_cuts_it() -> None:
    """Its starts alone tell of it: they do not begin at 0, and the entries are all there."""
    whole = pa.array([[(1, "x"), (2, "y")], [(0, "")], None, [(5, "z")]], map_of(INT, STRING).arrow())
    entries = pa.StructArray.from_arrays(
        [whole.keys, whole.items], fields=[whole.type.key_field, whole.type.item_field]
    )
    starts = pa.py_buffer(np.array([2, 3], dtype=np.int32))
    part = pa.Array.from_buffers(whole.type, 1, [None, starts], children=[entries])
    assert part.to_pylist() == [[(0, "")]]
    contains = IMPLEMENTATIONS["array_contains"](UdfSpec("array_contains", (map_of(INT, STRING), INT), BOOLEAN))
    assert contains(part, pa.array([0], pa.int32())).to_pylist() == [True]
    assert contains(part, pa.array([1], pa.int32())).to_pylist() == [False]
    for start in range(4):
        cut = whole.slice(start, 1)
        wanted = [None if m is None else any(k == 5 for k, _ in m) for m in cut.to_pylist()]
        assert contains(cut, pa.array([5], pa.int32())).to_pylist() == wanted
