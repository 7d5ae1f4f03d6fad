"""Of which columns files tell statistics: how properties say so, and what they may not say."""

from __future__ import annotations

import pytest

from gateway.delta.indexed import NAMES, NUMBER, check_named, indexed_paths, names_of
from gateway.errors import GatewayError
from gateway.sqltypes import BOOLEAN, INT, STRING, StructField, array, struct, varchar

_SCHEMA = struct(
    StructField("a", INT),
    StructField("p", STRING),
    StructField("s", struct(StructField("x", INT), StructField("y", struct(StructField("z", STRING))))),
    StructField("l", array(INT)),
    StructField("o", BOOLEAN),
    StructField("v", varchar(3)),
)
_ALL = ["a", "s.x", "s.y.z", "l", "o", "v"]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, _ALL),
        ({NUMBER: "-1"}, _ALL),
        ({NUMBER: "0"}, []),
        ({NUMBER: "2"}, ["a", "s.x"]),
        ({NUMBER: "2", NAMES: "o,S.Y"}, ["s.y.z", "o"]),
        ({NAMES: "s"}, ["s.x", "s.y.z"]),
        ({NAMES: ""}, []),
        ({NAMES: "nope"}, []),
    ],
)
def test_the_first_columns_or_those_that_are_named(properties: dict[str, str], expected: list[str]) -> None:
    assert [".".join(path) for path in indexed_paths(_SCHEMA, ["p"], properties)] == expected


@pytest.mark.parametrize("properties", [{NUMBER: "many"}, {NAMES: "a b"}])
def test_properties_that_nobody_could_have_set_are_a_damaged_log(properties: dict[str, str]) -> None:
    with pytest.raises(GatewayError) as caught:
        indexed_paths(_SCHEMA, ["p"], properties)
    assert caught.value.condition == "DELTA_LOG_CORRUPT"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a", [("a",)]),
        (" a , s.x,`d e`.`f``g` ", [("a",), ("s", "x"), ("d e", "f`g")]),
        ("größe,_1", [("größe",), ("_1",)]),
        ("a,", None),
        ("a b", None),
        ("`a", None),
        (".a", None),
        ("a;b", None),
    ],
)
def test_names_are_read_as_identifiers(text: str, expected: list[tuple[str, ...]] | None) -> None:
    assert names_of(text) == expected


@pytest.mark.parametrize(
    ("named", "condition"),
    [
        ("a,o", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("l", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("P", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
        ("s.q", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("s,s.x", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
    ],
)
def test_columns_that_can_have_none_are_refused(named: str, condition: str) -> None:
    with pytest.raises(GatewayError) as caught:
        check_named(_SCHEMA, ["p"], {NAMES: named})
    assert caught.value.condition == condition
    check_named(_SCHEMA, ["p"], {NAMES: "a,s,v"})
