"""Values of types without an order: nothing compares them, and no map has them as keys; what Spark 4.2 says of maps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.sql.functions.probe_runner import Probes


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Probes:
    return Probes(tmp_path_factory.mktemp("unordered"))


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT equal_null(map(1, 2), map(1, 2))", "INVALID_ORDERING_TYPE"),
        ("SELECT equal_null(array(map(1, 2)), array(map(1, 2)))", "INVALID_ORDERING_TYPE"),
        ("SELECT 1 WHERE map(1, 2) IN (SELECT map(1, 2))", "INVALID_ORDERING_TYPE"),
        ("SELECT 1 WHERE (1, array(map(1, 2))) IN (SELECT 1, array(map(1, 2)))", "INVALID_ORDERING_TYPE"),
        ("SELECT greatest(map(1, 2), map(1, 2))", "INVALID_ORDERING_TYPE"),
        ("SELECT least(struct(map(1, 2)), struct(map(1, 2)))", "INVALID_ORDERING_TYPE"),
        ("SELECT nullif(array(map(1, 2)), array(map(1, 2)))", "INVALID_ORDERING_TYPE"),
        ("SELECT max_by(1, map(1, 2))", "INVALID_ORDERING_TYPE"),
        ("SELECT map_from_entries(array(struct(map(1, 2), 'a')))", "INVALID_MAP_KEY_TYPE"),
        ("SELECT transform_keys(map('k', 1), (k, v) -> map(k, v))", "INVALID_MAP_KEY_TYPE"),
        ("SELECT map_concat(map('1', 2), map(2, 3))", "DATA_DIFF_TYPES"),
        ("SELECT map_concat(map('a', NULL), map(1, 2))", "DATA_DIFF_TYPES"),
    ],
)
def test_what_spark_refuses(probes: Probes, query: str, condition: str) -> None:
    error = probes.run(query).error
    assert error is not None and error.span is not None
    assert (error.condition, error.sqlstate) == (f"DATATYPE_MISMATCH.{condition}", "42K09")


@pytest.mark.parametrize(
    ("query", "type_", "pairs"),
    [
        ("map_concat(map(1, '2'), map(2, 3))", "map<int,bigint>", [(1, 2), (2, 3)]),
        ("map_concat(map('1', '2'), map('2', 2.5))", "map<string,double>", [("1", 2.0), ("2", 2.5)]),
        ("map_concat(map('a', '2024-01-01'), map('b', DATE'2024-01-02'))", "map<string,date>", None),
        ("map_concat(map('a', NULL), map('b', '2'))", "map<string,string>", [("a", None), ("b", "2")]),
    ],
)
def test_values_of_maps_meet_as_all_values_do(
    probes: Probes, query: str, type_: str, pairs: list[tuple[Any, Any]] | None
) -> None:
    outcome = probes.run(f"SELECT {query}")
    assert outcome.schema is not None and outcome.schema.fields[0].type.simple == type_
    if pairs is not None:
        assert outcome.rows == [[{"m": pairs}]]


@pytest.mark.parametrize("key", ["m", "1", "ALL"])
def test_maps_are_not_grouped_by_the_order_of_their_entries(probes: Probes, key: str) -> None:
    error = probes.run(f"SELECT m, count(*) FROM VALUES (map(1, 2, 3, 4)), (map(3, 4, 1, 2)) t(m) GROUP BY {key}").error
    assert error is not None and error.condition == "UNSUPPORTED_FEATURE" and error.span is not None


def test_nothing_is_grouped_by_values_without_an_order(probes: Probes) -> None:
    for key in ("v", "1", "ALL"):
        error = probes.run(f"SELECT v, count(*) FROM VALUES (array(parse_json('1'))) t(v) GROUP BY {key}").error
        assert error is not None and error.condition == "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE"
