"""TPC-H at scale 1 over Delta: 22 statements, answers compared, geometric mean of the medians.

The statements are those of the shared corpus (`../shared` or GATEWAY_SHARED); without it this benchmark is left out.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from benchmarks import tables
from benchmarks.answers import near, same
from benchmarks.measure import Row, rounds, settle, show
from benchmarks.systems import ANEW, Floor, Ours, System, gateway_process, sail_process
from gateway.protocol.client import Client

ROUNDS = 3
Results = Mapping[str, tuple[float, pa.Table]]


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


def _measure(system: System, texts: Mapping[str, str]) -> dict[str, tuple[float, pa.Table]]:
    schema = tables.tpch()
    system.use({name: schema / name for name in tables.TPCH_TABLES})
    result = {}
    if system.pid is not None:
        settle(system.pid)
    for name, text in texts.items():
        if isinstance(system, Floor):
            text = for_floor(text)
        try:
            answer = system.query(text)
        except Exception as error:  # noqa: BLE001 - a refusal is a result of the benchmark
            print(f"{system.name}: {name}: {str(error).splitlines()[0][:200]}")
            continue
        result[name] = (rounds(lambda text=text: system.query(text), ROUNDS, 0).median, answer)  # type: ignore[misc]
    return result


def _summary(results: Results, reference: Results) -> tuple[str, int, float]:
    right = [
        name
        for name, (_, answer) in results.items()
        if name in reference and (same(reference[name][1], answer) or near(reference[name][1], answer))
    ]
    for name in sorted(set(results) - set(right)):
        print(f"{name}: other answer than the floor's")
    mean = statistics.geometric_mean([seconds for seconds, _ in results.values()]) if results else float("nan")
    return f"{show(mean)}, {len(right)} right", len(right), mean


def _slowest(results: Results, reference: Results) -> tuple[float, str]:
    """The statement that takes longest beside the floor, and how many times as long."""
    ratios = {name: seconds / reference[name][0] for name, (seconds, _) in results.items() if name in reference}
    name = max(ratios, key=lambda n: ratios[n])
    return ratios[name], f"{ratios[name]:.2f} ({name})"


def run() -> list[Row]:
    """Geometric means, and the statement that is slowest beside the floor."""
    texts = statements()
    if texts is None:
        return [Row("TPC-H SF1", {"ours": "left out: the corpus is not here"})]
    floor = _measure(Floor(), texts)
    figures = {"floor": f"{show(statistics.geometric_mean([s for s, _ in floor.values()]))}, {len(floor)} answered"}
    sail_mean: float | None = None
    with sail_process() as sail:
        if sail is not None:
            figures["Sail"], _, sail_mean = _summary(_measure(sail, texts), floor)
    with gateway_process() as (url, pid, _), Client(url).open(ANEW) as client:
        ours = _measure(Ours(client, pid), texts)
    shown, right, mean = _summary(ours, floor)
    worst, slowest = _slowest(ours, floor)
    met = False if right < len(texts) else None if sail_mean is None else mean <= 1.1 * sail_mean
    return [
        Row("TPC-H SF1, 22 statements, geomean", {**figures, "ours": shown}, "22 right, <= 1.1 x Sail", met),
        Row("TPC-H SF1, slowest beside the floor", {"ours": slowest}, "<= 1.2", worst <= 1.2),
    ]
