"""TPC-H at scale 1 over Delta: 22 statements, answers compared, geometric mean of the medians.

The statements are those of the shared corpus (`../shared` or GATEWAY_SHARED); without it this benchmark is left out.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import statistics
from pathlib import Path

from benchmarks import tables
from benchmarks.measure import Row, show
from benchmarks.suite import Effort, beside_floor, is_right, measure, systems

EFFORT = Effort(rounds=3)


def statements(suite: str = "tpch") -> dict[str, str] | None:
    """Name to text of a suite's statements, None without the corpus."""
    root = Path(__file__).resolve().parents[1]
    path = Path(os.environ.get("GATEWAY_SHARED") or root.parent / "shared") / "conformance" / "tpc.jsonl.gz"
    if not path.exists():
        return None
    found = {}
    with gzip.open(path, "rt") as lines:
        next(lines)
        for line in lines:
            file = json.loads(line)
            if Path(file["file"]).parent.name == suite:
                for statement in file["statements"]:
                    found[Path(file["file"]).stem] = statement["sql"]
    return found


def for_floor(text: str) -> str:
    """A text in DataFusion's words: it has no function `year`, and quotes names as the standard does."""
    return text.replace("year(", "date_part('year', ").replace("`", '"')


def run() -> list[Row]:
    """Geometric means, and the statement that is slowest beside the floor."""
    texts = statements()
    if texts is None:
        return [Row("TPC-H SF1", {"ours": "left out: the corpus is not here"})]
    schema = tables.tpch()
    with systems() as found:
        results = measure(found, {name: schema / name for name in tables.TPCH_TABLES}, texts, EFFORT, for_floor)
    right = {key: sum(is_right(results, key, name) for name in texts) for key in results}
    means = {
        key: statistics.geometric_mean([a.seconds for a in given.values()]) for key, given in results.items() if given
    }
    shown = {key: f"{show(mean)}, {right[key]} right" for key, mean in means.items()}
    slowest, worst = next(iter(beside_floor(results)), ("none", math.inf))
    met = False if right["ours"] < len(texts) else None if "Sail" not in means else means["ours"] <= 1.1 * means["Sail"]
    return [
        Row("TPC-H SF1, 22 statements, geomean", shown, "22 right, <= 1.1 x Sail", met),
        Row("TPC-H SF1, slowest beside the floor", {"ours": f"{worst:.2f} ({slowest})"}, "<= 1.2", worst <= 1.2),
    ]
