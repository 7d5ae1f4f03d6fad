"""What the operators of a plan that has run say of themselves: rows, time, memory, bytes, and what was left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Metrics of DataFusion that tell what a scan was spared, as they are written; and what they are called here.
_PRUNED = {
    "files_ranges_pruned_statistics": "files",
    "row_groups_pruned_statistics": "row groups by statistics",
    "row_groups_pruned_bloom_filter": "row groups by bloom filter",
    "page_index_pages_pruned": "pages",
}
_PRUNED_TEXT = re.compile(r"(\w+)(?:\{[^}]*\})?=(\d+) total → (\d+) matched")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator. Seconds over all its partitions, sizes in bytes; `pruned`: what, how many of it, of how many."""

    depth: int
    text: str
    rows: int | None
    seconds: float
    written: int
    spilled: int
    scanned: int
    filtered: int
    pruned: tuple[tuple[str, int, int], ...]

    def line(self) -> str:
        """As EXPLAIN ANALYZE shows it."""
        facts = [] if self.rows is None else [f"rows {self.rows}"]
        facts.append(f"time {self.seconds * 1000:.2f} ms")
        for what, size in (("output", self.written), ("read", self.scanned), ("spilled", self.spilled)):
            if size:
                facts.append(f"{what} {size} bytes")
        if self.filtered:
            facts.append(f"rows filtered by the scan {self.filtered}")
        facts += [f"{what} pruned {left_out} of {total}" for what, left_out, total in self.pruned]
        return f"{'  ' * self.depth}{self.text} [{', '.join(facts)}]"


def operators(plan: Any, depth: int = 0) -> Iterator[Operator]:
    """The operators of a `datafusion.plan.ExecutionPlan` that has run, each before what it reads from."""
    metrics = plan.metrics()
    sums: dict[str, int] = {}
    shown = ""
    if metrics is not None:
        for metric in metrics.metrics():
            if isinstance(metric.value, int):
                sums[metric.name] = sums.get(metric.name, 0) + metric.value
        shown = str(metrics)
    yield Operator(
        depth,
        plan.display().strip(),
        sums.get("output_rows"),
        (sums.get("elapsed_compute", 0) + sums.get("time_elapsed_processing", 0)) / 1e9,
        sums.get("output_bytes", 0),
        sums.get("spilled_bytes", 0),
        sums.get("bytes_scanned", 0),
        sums.get("pushdown_rows_pruned", 0),
        _pruned(shown),
    )
    for child in plan.children():
        yield from operators(child, depth + 1)


def _pruned(shown: str) -> tuple[tuple[str, int, int], ...]:
    found: dict[str, tuple[int, int]] = {}
    for name, total, matched in _PRUNED_TEXT.findall(shown):
        if name in _PRUNED:
            before = found.get(name, (0, 0))
            found[name] = (before[0] + int(total) - int(matched), before[1] + int(total))
    return tuple((_PRUNED[name], *counts) for name, counts in found.items() if counts[1])
