"""Columns that a statement brings along, defaults, overwrites, replaced tables, statistics: both engines do the same."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.live.delta_changes import CASES, SOURCE, bag, effects, made, record, recorded
from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_NESTED = (
    "(a INT, s STRUCT<x: INT, y: STRUCT<z: STRING, l: ARRAY<INT>>>, m MAP<STRING, INT>, b BINARY, o BOOLEAN, "
    "e DECIMAL(12, 3), t TIMESTAMP, n TIMESTAMP_NTZ, c VARCHAR(3), p STRING)"
)
_LONG = "'a text of more than thirty-two characters, cut'"
_NESTED_ROWS = (
    "SELECT /*+ COALESCE(1) */ * FROM VALUES "
    f"(1, named_struct('x', 5, 'y', named_struct('z', {_LONG}, 'l', array(1))), map('a', 1), X'00', true, 1.5, "
    "TIMESTAMP'2024-01-02 03:04:05.678', TIMESTAMP_NTZ'2024-01-02 03:04:05', 'c', 'p'), "
    "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'p'), "
    "(3, named_struct('x', NULL, 'y', NULL), map(), NULL, NULL, -2, NULL, NULL, NULL, 'p')"
)


def _folder(sql: Sql, name: str) -> Path:
    (row,) = sql.embedded(f"DESCRIBE DETAIL {name}")
    return Path(str(row[4]).removeprefix("file:"))


def _commit(sql: Sql, name: str) -> list[dict[str, Any]]:
    newest = max((_folder(sql, name) / "_delta_log").glob("*.json"))
    return [json.loads(line) for line in newest.read_text().splitlines()]


@pytest.mark.heavy  # Spark takes its time; what it did is recorded, and asked of the gateway with the clients' tests
@pytest.mark.parametrize("name", CASES)
def test_spark_does_what_is_recorded(sql: Sql, name: str) -> None:
    case = CASES[name]
    for table in ("ours", "theirs"):
        made(case, sql.embedded, table)
    answers = []
    for at, text in enumerate(case.done):
        told = sql.spark if at == len(case.done) - 1 else sql.embedded
        effects(case, "ours", text, sql.embedded, told)
        answers.append(effects(case, "theirs", text, sql.spark, told))
        if answers[-1]:
            for table, read in itertools.product(("ours", "theirs"), (sql.spark, sql.embedded)):
                assert bag(read(case.ask.format(t=table))) == answers[-1]["rows"], (table, text)
    if os.environ.get("GATEWAY_TEST_RECORD"):
        record(name, answers)
    assert answers == recorded()[name]


@pytest.mark.parametrize("name", [name for name in CASES if len(CASES[name].done) > 1])
def test_spark_reads_what_was_changed(sql: Sql, name: str) -> None:
    case = CASES[name]
    made(case, sql.embedded, "ours")
    for text in case.done:
        sql.embedded(text.format(t="ours", q=SOURCE))
    assert bag(sql.spark(case.ask.format(t="ours"))) == [e["rows"] for e in recorded()[name] if e][-1]


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '3')",
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '-1', 'delta.columnMapping.mode' = 'name')",
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a, s.Y.z, `e`')",
    ],
)
def test_files_tell_of_the_same_columns(sql: Sql, properties: str) -> None:
    names = ("ours", "theirs")
    for name, run in zip(names, (sql.embedded, sql.spark), strict=True):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
        sql.embedded(f"CREATE TABLE {name} {_NESTED} PARTITIONED BY (p) {properties}")
        run(f"INSERT INTO {name} {_NESTED_ROWS}")
    (ours,), (theirs,) = ([a["add"] for a in _commit(sql, name) if "add" in a] for name in names)
    stats, others = (
        _logical(sql, name, json.loads(add["stats"])) for name, add in zip(names, (ours, theirs), strict=True)
    )
    assert stats == others, (stats, others)


def _logical(sql: Sql, name: str, stats: dict[str, Any]) -> dict[str, Any]:
    """Statistics by the places of their columns, those that are empty left out; bounds of times, which Spark cuts, too."""
    (metadata,) = [
        action["metaData"]
        for path in sorted((_folder(sql, name) / "_delta_log").glob("*.json"))
        for action in map(json.loads, path.read_text().splitlines())
        if "metaData" in action
    ]
    schema = json.loads(metadata["schemaString"])

    def of(tree: dict[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
        names = {f["metadata"].get("delta.columnMapping.physicalName", f["name"]): f for f in fields}
        return {
            names[key]["name"]: of(value, names[key]["type"]["fields"]) if isinstance(value, dict) else value
            for key, value in tree.items()
        }

    parts = {key: of(value, schema["fields"]) if isinstance(value, dict) else value for key, value in stats.items()}
    for bounds in (parts.get("minValues", {}), parts.get("maxValues", {})):
        bounds.pop("t", None), bounds.pop("n", None)
    return {key: value for key, value in parts.items() if value != {}}


def test_properties_of_statistics_are_refused_alike(sql: Sql) -> None:
    for at, (columns, partition, value) in enumerate(
        (
            ("a INT, c BOOLEAN", "", "a,c"),
            ("a INT, c INT", "", "a,a"),
            ("a INT, c INT", "", "a,zz"),
            ("a INT, c INT", "PARTITIONED BY (a)", "a"),
        )
    ):
        text = (
            f"CREATE TABLE no{at} ({columns}) {partition} TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{value}')"
        )
        said = []
        for run in (sql.embedded, sql.spark):
            with pytest.raises(Exception, match=r"\[[A-Z_.]+\]") as caught:
                run(text)
            said.append(str(caught.value).split("]")[0].split("[")[-1])
        assert said[0] == said[1], text
