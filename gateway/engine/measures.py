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
# What tells the memory that an operator has held, which only joins do; the engine gives it as text alone.
_MEMORY = re.compile(r"\b(?:build_|peak_)?mem_used(?:\{[^}]*\})?=([\d.]+) ([KMGT]?)B")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# Names are written out: literals of statements, however long, stand in the same text.
_PRUNED_TEXT = re.compile(rf"\b({'|'.join(_PRUNED)})(?:\{{[^}}]*\}})?=(\d+) total → (\d+) matched")


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
    memory: int
    filtered: int
    pruned: tuple[tuple[str, int, int], ...]

    def told(self) -> dict[str, Any]:
        """As the history keeps it: plain values, without what is nothing."""
        sizes = {"bytes": self.written, "spilled": self.spilled, "read": self.scanned, "memory": self.memory}
        return {
            "depth": self.depth,
            "text": self.text,
            "rows": self.rows,
            "ms": round(self.seconds * 1000, 2),
            **{name: size for name, size in {**sizes, "filtered": self.filtered}.items() if size},
            **({"pruned": [list(each) for each in self.pruned]} if self.pruned else {}),
        }

    def line(self) -> str:
        """As EXPLAIN ANALYZE shows it."""
        facts = [] if self.rows is None else [f"rows {self.rows}"]
        facts.append(f"time {self.seconds * 1000:.2f} ms")
        for what, size in (
            ("output", self.written),
            ("read", self.scanned),
            ("memory", self.memory),
            ("spilled", self.spilled),
        ):
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
        _memory(shown),
        sums.get("pushdown_rows_pruned", 0),
        _pruned(shown),
    )
    for child in plan.children():
        yield from operators(child, depth + 1)


def _memory(shown: str) -> int:
    found = _MEMORY.findall(shown) if "mem_used" in shown else ()  # the look through is what takes long
    return round(sum(float(number) * _UNITS[unit] for number, unit in found))


def _pruned(shown: str) -> tuple[tuple[str, int, int], ...]:
    found: dict[str, tuple[int, int]] = {}
    for name, total, matched in _PRUNED_TEXT.findall(shown) if " total → " in shown else ():
        before = found.get(name, (0, 0))
        found[name] = (before[0] + int(total) - int(matched), before[1] + int(total))
    return tuple((_PRUNED[name], *counts) for name, counts in found.items() if counts[1])
