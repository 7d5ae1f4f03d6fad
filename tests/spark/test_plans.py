"""What the history keeps of statements on Spark: the plan with its figures, and the tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.live.processes import eventually
from tests.live.spark import Sql

pytestmark = pytest.mark.spark


def details(sql: Sql, alias: str) -> dict[str, Any]:
    """What is kept of the statement on Spark that has this word in its text."""
    asked = (
        f"SELECT details FROM system.runtime.statements WHERE engine = 'spark' AND statement_text LIKE '%{alias}%' "
        "ORDER BY start_time DESC LIMIT 1"
    )
    found: list[Any] = []

    def is_told() -> bool:
        found[:] = [json.loads(text) for (text,) in sql.embedded(asked) if text]
        return bool(found)

    eventually(is_told, 20)
    return dict(found[0])


def test_a_query_on_spark_keeps_its_plan_with_rows_and_times(sql: Sql) -> None:
    sql.spark("CREATE OR REPLACE TABLE plan_source AS SELECT id, id % 7 AS k FROM range(100000)")
    rows = sql.spark(
        "SELECT concat('k', k), count(*) AS planned_one FROM plan_source JOIN range(2000000) r ON plan_source.id = r.id "
        "WHERE r.id + 77777 > 0 GROUP BY k"
    )
    assert len(rows) == 7
    told = details(sql, "planned_one")
    assert [name[-1] for name in told["read"]] == ["plan_source"]
    operators = told["operators"]
    assert [each["depth"] for each in operators].count(0) == 1
    names = [each["text"].partition(":")[0] for each in operators]
    assert any("plan_source" in name for name in names if name.startswith("Scan")), names
    assert {100_000} <= {each["rows"] for each in operators}
    assert sum(each["ms"] for each in operators) > 0
    assert "77777" not in json.dumps(told) and "file:/" not in json.dumps(told) and "spark_catalog" not in names


def test_what_spark_writes_is_told_with_its_plan(sql: Sql) -> None:
    sql.spark("CREATE OR REPLACE TABLE plan_target (id BIGINT, planned_two STRING)")
    sql.spark("INSERT INTO plan_target SELECT id, repeat('x', 20) AS planned_two FROM range(500000)")
    told = details(sql, "INSERT INTO plan_target")
    assert [name[-1] for name in told["written"]] == ["plan_target"] and not told.get("read")
    assert 500_000 in {each["rows"] for each in told["operators"]}
