"""What is read from Spark's objects, on stand-ins for them."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from gateway.pipelines.spark_graph import SparkGraph


def collection(*items: Any) -> Any:
    """A Scala collection."""
    found = MagicMock()
    found.iterator.side_effect = lambda: MagicMock(
        hasNext=MagicMock(side_effect=[*[True] * len(items), False]), next=MagicMock(side_effect=items)
    )
    return found


@pytest.mark.parametrize(("kept", "rows"), [("4", 10), ("3", None)])
def test_rows_read_are_not_known_if_spark_may_have_forgotten_some(kept: str, rows: int | None) -> None:
    flow, table, name = MagicMock(), MagicMock(), MagicMock()
    flow.isStreaming.return_value, table.isStreaming.return_value = True, False
    query = flow.getStreamingQuery.return_value
    query.recentProgress.return_value = [MagicMock(**{"numInputRows.return_value": n}) for n in (4, 6)]
    query.sparkSession.return_value.conf.return_value.get.return_value = kept
    name.unquotedString.return_value = "s.f"
    pairs = [MagicMock(**{"productElement.side_effect": pair.__getitem__}) for pair in ((name, flow), (name, table))]
    graph = SparkGraph(MagicMock(), MagicMock(), "id")
    execution = graph._holder.getPipelineExecution.return_value.get.return_value.pipelineExecution.return_value
    execution.graphExecution.return_value.get.return_value.flowExecutions.return_value = collection(*pairs)
    assert graph.rows_read() == {"s.f": rows}
