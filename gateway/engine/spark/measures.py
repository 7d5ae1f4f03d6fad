"""What Spark keeps of the plans that it has run, as the operators that the history shows."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from gateway.engine.measures import Operator
from gateway.engine.spark.java import java_class

MOST_OPERATORS = 300
_NEWEST = 200  # executions that are looked through
_LATE_SECONDS, _LOOK_SECONDS = 0.5, 0.01  # Spark's own listener is told of an end a moment after it
_SERIALIZER = "KVUtils$KVStoreScalaSerializer"  # what its history server writes with: a plan as JSON in one call
_NUMBER = re.compile(r"(-?[\d,]+(?:\.\d+)?)(?: (\w+))?")
_UNITS = {
    **{unit: float(1 << (10 * i)) for i, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))},
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_STATE = "Delta Table State"
_TIMES = ("timing", "nsTiming")
_WRITTEN, _READ, _ROWS = ("data size", "written output"), ("size of files read",), ("number of output rows",)
_SPILLED, _MEMORY = ("spill size",), ("peak memory",)
# What a name tells without the values that a statement may have in it; and places of files, which are nobody's business.
_NAME, _PLACES = re.compile(r"[\w.` -]*\w"), re.compile(r",? ?Location: [^\[\]]*(?:\[[^\]]*\]?)?")


def plan_of(spark: Any, description: str, since_ms: float) -> list[Operator]:
    """The operators of the longest plan that was run for what is described so; none where Spark tells none.

    `spark` is a classic session. Only what began at `since_ms` or later is looked at.
    """
    store = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001 (pyspark has no public name)
    end = time.monotonic() + _LATE_SECONDS
    while True:
        found = list(_executions(store, description, since_ms))
        if (found and all(one.completionTime().isDefined() for one in found)) or time.monotonic() > end:
            break
        time.sleep(_LOOK_SECONDS)
    serializer = java_class(spark, f"org.apache.spark.status.{_SERIALIZER}")()

    def told(kept: Any) -> Any:
        return json.loads(gzip.decompress(serializer.serialize(kept)))

    def is_nested(one: Any) -> bool:
        return bool(one.rootExecutionId() != one.executionId())

    found = [one for one in found if not (is_nested(one) and _is_of_the_log(told(store.planGraph(one.executionId()))))]
    outer = {one.rootExecutionId() for one in found if is_nested(one)}
    ended = [one for one in found if one.completionTime().isDefined() and one.executionId() not in outer]
    if not ended:
        return []
    longest = max(ended, key=lambda one: one.completionTime().get().getTime() - one.submissionTime()).executionId()
    graph, values = told(store.planGraph(longest)), told(store.executionMetrics(longest))
    return list(islice(operators(graph, values), MOST_OPERATORS))


def _is_of_the_log(graph: Mapping[str, Any]) -> bool:
    """Whether a plan is of what Delta asks of a table's log before it reads files with deletion vectors."""
    nodes = [*graph["nodes"], *(inner for node in graph["nodes"] for inner in node.get("nodes", ()))]
    return any(_STATE in node["name"] for node in nodes)


def _executions(store: Any, description: str, since_ms: float) -> Iterator[Any]:
    """What has been run, the newest first; what Delta asks meanwhile of its logs is described otherwise."""
    count = store.executionsCount()
    newest = store.executionsList(max(0, count - _NEWEST), _NEWEST)
    for i in range(newest.size() - 1, -1, -1):
        one = newest.apply(i)
        if one.submissionTime() < since_ms:
            return
        if one.description() == description:
            yield one


def operators(graph: Mapping[str, Any], values: Mapping[str, str]) -> Iterator[Operator]:
    """The operators of a plan, each before what it reads from; stages that were compiled as one stand above theirs."""
    nodes: dict[int, Mapping[str, Any]] = {}
    stage_of: dict[int, int] = {}
    for node in graph["nodes"]:
        nodes[node["id"]] = node
        for inner in node.get("nodes", ()):
            nodes[inner["id"]], stage_of[inner["id"]] = inner, node["id"]
    below: dict[int, list[int]] = {}
    for edge in graph["edges"]:
        below.setdefault(edge["toId"], []).append(edge["fromId"])
    read = {edge["fromId"] for edge in graph["edges"]}
    tops = [i for i, node in sorted(nodes.items()) if i not in read and "nodes" not in node]
    # A stack, as plans may be deep; what is read twice is told twice.
    waiting = [(0, tops[0], -1)] if tops else []
    while waiting:
        depth, identifier, stage = waiting.pop()
        inside = stage_of.get(identifier, -1)
        if inside not in (-1, stage):
            yield _operator(depth, nodes[inside], values)
            depth += 1
        yield _operator(depth, nodes[identifier], values)
        waiting += [(depth + 1, each, inside) for each in sorted(below.get(identifier, ()), reverse=True)]


def _operator(depth: int, node: Mapping[str, Any], values: Mapping[str, str]) -> Operator:
    told = [(m["name"], m["metricType"], _value(values.get(str(m["accumulatorId"])))) for m in node["metrics"]]

    def sizes(names: tuple[str, ...]) -> int:
        return round(sum(value for name, _, value in told if name in names and value is not None))

    rows = [value for name, _, value in told if name in _ROWS and value is not None]
    return Operator(
        depth,
        _text(node["name"], node["desc"]),
        round(rows[0]) if rows else None,
        sum(value for _, kind, value in told if kind in _TIMES and value is not None),
        sizes(_WRITTEN),
        sizes(_SPILLED),
        sizes(_READ),
        sizes(_MEMORY),
        0,
        (),
    )


def _text(name: str, description: str) -> str:
    """The name, and behind a colon what may hold values of the statement."""
    found = _NAME.match(name)
    rest = _PLACES.sub("", description.removeprefix(name)).strip()
    return f"{found[0] if found else 'Operator'}: {rest}".rstrip(": ")


def _value(shown: str | None) -> float | None:
    """A metric as Spark writes it: its total, in bytes and seconds; behind that it tells the tasks apart."""
    found = _NUMBER.match(shown.rpartition("\n")[2]) if shown else None
    if found is None:
        return None
    return float(found[1].replace(",", "")) * _UNITS.get(found[2] or "", 1.0)
