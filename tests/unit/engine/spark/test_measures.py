"""Operators out of what Spark's status store tells of a plan."""

from __future__ import annotations

from typing import Any

from gateway.engine.spark.measures import operators


def node(identifier: int, name: str, rest: str = "", **metrics: tuple[int, str]) -> dict[str, Any]:
    told = [{"name": n.replace("_", " "), "accumulatorId": i, "metricType": kind} for n, (i, kind) in metrics.items()]
    return {"id": identifier, "name": name, "desc": f"{name} {rest}".strip(), "metrics": told}


STAGE = {
    **node(1, "WholeStageCodegen (1)", duration=(18, "timing")),
    "nodes": [
        node(
            2, "Sort", "[k#0L ASC], true, 0", sort_time=(1, "timing"), peak_memory=(2, "size"), spill_size=(3, "size")
        ),
        node(3, "Filter", "(id#2L > 5)", number_of_output_rows=(4, "sum")),
    ],
}
SCAN = node(
    5,
    "Scan parquet spark_catalog.default.t",
    "Batched: true, Location: InMemoryFileIndex(1 paths)[file:/secret/t], ReadSchema: struct<id:bigint>",
    size_of_files_read=(6, "size"),
)
GRAPH = {
    "nodes": [node(0, "AdaptiveSparkPlan", "isFinalPlan=true"), STAGE, SCAN],
    "edges": [{"fromId": 2, "toId": 0}, {"fromId": 3, "toId": 2}, {"fromId": 5, "toId": 3}],
}
VALUES = {
    "18": "1.5 s",
    "1": "12 ms",
    "2": "total (min, med, max (stageId: taskId))\n16.1 MiB (1.0 MiB, 2.0 MiB, 3.0 MiB (stage 1.0: task 2))",
    "3": "0.0 B",
    "4": "1,000,000",
    "6": "2.0 KiB",
}


def test_a_tree_with_the_figures_of_each_operator_beneath_its_stage() -> None:
    told = [each.told() for each in operators(GRAPH, VALUES)]
    assert told == [
        {"depth": 0, "text": "AdaptiveSparkPlan: isFinalPlan=true", "rows": None, "ms": 0},
        {"depth": 1, "text": "WholeStageCodegen", "rows": None, "ms": 1500.0},
        {"depth": 2, "text": "Sort: [k#0L ASC], true, 0", "rows": None, "ms": 12.0, "memory": 16_882_074},
        {"depth": 3, "text": "Filter: (id#2L > 5)", "rows": 1_000_000, "ms": 0},
        {
            "depth": 4,
            "text": "Scan parquet spark_catalog.default.t: Batched: true, ReadSchema: struct<id:bigint>",
            "rows": None,
            "ms": 0,
            "read": 2048,
        },
    ]


def test_values_of_the_statement_are_behind_the_colon_only() -> None:
    (told,) = operators({"nodes": [node(0, "Scan JDBCRelation((SELECT 'secret'))", "[x#1]")], "edges": []}, {})
    assert told.text.partition(":")[0] == "Scan JDBCRelation"


def test_metrics_that_were_not_told_are_nothing() -> None:
    (told,) = operators({"nodes": [SCAN], "edges": []}, {"6": ""})
    assert told.rows is None and told.scanned == 0
    assert list(operators({"nodes": [], "edges": []}, {})) == []
