"""What UPDATE and MERGE, which Spark runs, store in a column of a Delta table (tests/data/store-assignment.csv)."""

from __future__ import annotations

import csv
import re
from collections import defaultdict

import pytest
from databricks.sql.exc import Error

from tests.live.spark import Sql
from tests.unit.runner.commands.test_assignment import DATA

pytestmark = pytest.mark.spark

TEXTS = {
    "update": "UPDATE {t} SET c = {value}",
    "merge": "MERGE INTO {t} USING (SELECT {value} AS v) s ON false WHEN MATCHED THEN UPDATE SET c = s.v",
}


def pairs() -> list[dict[str, str]]:
    """Some pairs of types for each of the outcomes that the two statements have."""
    by_outcome = defaultdict(list)
    with DATA.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if "VARIANT" not in (row["source"], row["target"]):
                by_outcome[row["position"], row["update"], row["merge"]].append(row)
    return [row for rows in by_outcome.values() for row in (rows[0], rows[len(rows) // 2])]


def outcome(sql: Sql, text: str) -> str:
    try:
        sql.auto(text)
    except Error as error:
        found = re.search(r"\[([A-Z0-9_.]+)\]", str(error))
        return found[1] if found else str(error)
    return "ok"


def test_update_and_merge_store_as_delta_does(sql: Sql) -> None:
    rows = pairs()
    assert {row["update"] for row in rows} > {"ok", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", "CAST_INVALID_INPUT"}
    tables = {target: f"assigned{i}" for i, target in enumerate(dict.fromkeys(row["target"] for row in rows))}
    for target, name in tables.items():
        sql.auto(f"CREATE TABLE {name} (c {target})")
    differ = []
    for row in rows:
        for way, text in TEXTS.items():
            got = outcome(sql, text.format(t=tables[row["target"]], value=row["value"]))
            if got != row[way]:
                differ.append(f"{way} {row['source']} -> {row['target']}: {row[way]} / {got}")
    assert not differ, "\n".join(differ)
