"""TPC-H larger than memory: scale 10 with 4 GiB for the gateway, each statement once; with SCALE=30 scale 30 with 2 GiB too.

The floor has no limit. The statements are those of the shared corpus; without it this benchmark is left out, and so is
a scale where the disk has no room for its tables.
"""

from __future__ import annotations

import os
import shutil

from benchmarks import tables, tpch
from benchmarks.measure import Row
from benchmarks.suite import Effort, measure, report, systems, total

SCALE, MEMORY, MEMORY_OF_OTHERS = 10, "4GiB", "2GiB"
ASKED = 0.7  # times the floor
EFFORT = Effort(warm=False, rounds=1, limit=900.0)
_PER_SCALE = 1_000_000_000  # bytes while the tables are made


def _rows(scale: int, memory: str, texts: dict[str, str]) -> list[Row]:
    """A row per statement, and the total."""
    work = f"TPC-H SF{scale}, {memory}"
    missing = not (tables.WAREHOUSE / f"tpch_sf{scale}").exists()
    tables.CACHE.mkdir(exist_ok=True)
    if missing and shutil.disk_usage(tables.CACHE).free < scale * _PER_SCALE:
        return [Row(work, {"ours": f"left out: it takes {scale * _PER_SCALE >> 30} GiB of disk"})]
    schema = tables.tpch(scale)
    folders = {name: schema / name for name in tables.TPCH_TABLES}
    with systems("--memory-limit", memory, sail=False) as found:
        results = measure(found, folders, texts, EFFORT, tpch.for_floor)
    return report(work, texts, results, [total(f"{work}, {len(results['ours'])} answered", ASKED)])


def run() -> list[Row]:
    """Rows of scale 10, and of SCALE."""
    texts = tpch.statements()
    if texts is None:
        return [Row("TPC-H larger than memory", {"ours": "left out: the corpus is not here"})]
    rows = _rows(SCALE, MEMORY, texts)
    if os.environ.get("SCALE"):
        rows += _rows(int(os.environ["SCALE"]), MEMORY_OF_OTHERS, texts)
    return rows
