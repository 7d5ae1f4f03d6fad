"""A million rows: five integers, ten mixed types, nested ones; the whole result received."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from benchmarks import tables
from benchmarks.answers import same
from benchmarks.measure import Row, Sample, rounds, show
from benchmarks.systems import ANEW, Floor, Ours, System, gateway_process, sail_process
from gateway.protocol.client import Client

ROUNDS, WARM_UP = 11, 3


@dataclass(frozen=True, slots=True)
class Case:
    """A table, and the seconds asked for Arrow and columnar results."""

    table: str
    work: str
    arrow: float
    columnar: float


CASES = (
    Case("ints", "1M rows x 5 bigints", 0.12, 0.25),
    Case("mixed", "1M rows x 10 mixed types", 0.25, 0.9),
    Case("nested", "1M nested rows", 0.35, 3.0),
)


def _measure(system: System, case: Case) -> tuple[Sample, pa.Table]:
    system.use({case.table: tables.table(case.table)})
    sql = f"SELECT * FROM {case.table}"
    answer = system.query(sql)
    return rounds(lambda: system.query(sql), ROUNDS, WARM_UP, server=system.pid), answer


def run() -> list[Row]:
    """Medians per table and encoding."""
    for case in CASES:
        tables.table(case.table)
    floor = {case.table: _measure(Floor(), case) for case in CASES}
    sail_samples: dict[str, tuple[Sample, pa.Table]] = {}
    with sail_process() as sail:
        if sail is not None:
            sail_samples = {case.table: _measure(sail, case) for case in CASES}
    result = []
    with gateway_process() as (url, pid, _), Client(url).open(ANEW) as client:
        for case in CASES:
            reference = floor[case.table][1]
            figures = {"floor": str(floor[case.table][0])}
            if case.table in sail_samples:
                sample, answer = sail_samples[case.table]
                figures["Sail"] = str(sample) + ("" if same(reference, answer) else " OTHER ANSWER")
            sample, answer = _measure(Ours(client, pid), case)
            right = same(reference, answer)
            shown = str(sample) + ("" if right else " OTHER ANSWER")
            result.append(
                Row(
                    f"{case.work}, Arrow",
                    {**figures, "ours": shown},
                    f"<= {show(case.arrow)}",
                    right and sample.median <= case.arrow,
                )
            )
            sample, answer = _measure(Ours(client, pid, arrow=False), case)
            right = answer.column(0).to_pylist() == [reference.num_rows]
            result.append(
                Row(
                    f"{case.work}, columnar",
                    {"ours": str(sample) + ("" if right else " OTHER ROW COUNT")},
                    f"<= {show(case.columnar)}",
                    right and sample.median <= case.columnar,
                )
            )
    return result
