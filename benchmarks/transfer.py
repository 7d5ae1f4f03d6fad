"""A million rows: five integers, ten mixed types, nested ones, long texts; the whole result received."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from benchmarks import tables
from benchmarks.answers import same
from benchmarks.measure import Peak, Row, Sample, rounds, show
from benchmarks.systems import ANEW, Floor, Ours, System, gateway_process, sail_process
from gateway.protocol.client import Client

ROUNDS, WARM_UP = 11, 3
MB = 1_000_000


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


def _wide() -> list[Row]:
    """A million rows of long texts: bytes per second, and what all processes of a new server hold meanwhile."""
    folder = {"wide": tables.table("wide")}
    sql = "SELECT * FROM wide"
    floor = Floor()
    floor.use(folder)
    size = floor.query(sql).nbytes / MB
    figures = {"floor": f"{size / rounds(lambda: floor.query(sql), 5).median:.0f} MB/s"}
    with gateway_process() as (url, pid, _), Client(url).open(ANEW, catalog="main", schema="bench") as client:

        def receive() -> None:
            assert sum(batch.num_rows for batch in client.execute(sql).batches()) == tables.TRANSFER_ROWS

        with Peak(pid) as peak:
            for _ in range(3):
                receive()
        rate = size / rounds(receive, 5, server=pid).median
    held = peak.bytes / 2**20
    return [
        Row("1M wide strings, Arrow", {**figures, "ours": f"{rate:.0f} MB/s"}, ">= 600 MB/s", rate >= 600),
        Row("memory of all processes meanwhile", {"ours": f"{held:.0f} MiB"}, "<= 700 MiB", held <= 700),
    ]


def run() -> list[Row]:
    """Medians per table and encoding."""
    for case in CASES:
        tables.table(case.table)
    floor = {case.table: _measure(Floor(), case) for case in CASES}
    sail_samples: dict[str, tuple[Sample, pa.Table]] = {}
    with sail_process() as sail:
        if sail is not None:
            sail_samples = {case.table: _measure(sail, case) for case in CASES}
    result = _wide()
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
