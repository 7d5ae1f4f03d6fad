"""Generated queries with Spark's answers: joins, groupings, windows, set operations, and subqueries in every place.

tests/data/query-probes.jsonl.gz holds 950 statements over constant rows, run once by PySpark 4.2.0.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sql.functions.probe_runner import Probes, judge

DATA = Path(__file__).parents[2] / "data" / "query-probes.jsonl.gz"


def statements(group: str) -> list[dict[str, Any]]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        next(lines)
        return [s for entry in map(json.loads, lines) if entry["file"] == group for s in entry["statements"]]


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Probes:
    return Probes(tmp_path_factory.mktemp("queries"))


@pytest.mark.parametrize(("group", "least"), [("queries", 600), ("subqueries", 250)])
def test_queries(probes: Probes, group: str, least: int) -> None:
    counts: Counter[str] = Counter()
    bad = []
    for statement in statements(group):
        outcome = probes.run(statement["sql"])
        verdict = judge(group, statement, outcome)
        kind = verdict.kind
        if kind == "same" and outcome.schema is not None and "nullable" in statement:
            kind = "same" if [f.nullable for f in outcome.schema.fields] == statement["nullable"] else "nullable"
        counts[kind] += 1
        if kind not in ("same", "refused"):
            bad.append(f"{statement['id']} {kind} {statement['sql']}: {verdict.detail}")
    print(group, dict(counts))
    assert not bad, "\n".join(bad)
    assert counts["same"] >= least
