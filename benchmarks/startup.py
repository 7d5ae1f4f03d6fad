"""Start to ready, memory of the idle front process, and that large results do not stay in it."""

from __future__ import annotations

import statistics

from benchmarks.measure import Row, resident_bytes, show
from benchmarks.systems import ANEW, gateway_process
from gateway.protocol.client import Client

ROUNDS = 5
MIB = 1024 * 1024


def _drink(client: Client, rows: int) -> int:
    result = client.execute(f"SELECT id, id * 3 AS a, id * 7 AS b FROM range({rows})")
    return sum(batch.num_rows for batch in result.batches())


def run() -> list[Row]:
    """Start, idle memory, growth from 1M to 10M rows."""
    seconds, idle = [], []
    with gateway_process():
        pass  # the first start makes the sample data
    for _ in range(ROUNDS):
        with gateway_process() as (_, pid, took):
            seconds.append(took)
            idle.append(resident_bytes(pid) / MIB)
    with gateway_process() as (url, pid, _), Client(url).open(ANEW) as client:
        assert _drink(client, 1_000_000) == 1_000_000
        before = resident_bytes(pid)
        assert _drink(client, 10_000_000) == 10_000_000
        growth = (resident_bytes(pid) - before) / MIB
    start, memory = statistics.median(seconds), statistics.median(idle)
    return [
        Row(
            "start to ready",
            {"ours": f"{show(start)} ({show(min(seconds))}..{show(max(seconds))})"},
            "<= 1.5 s",
            start <= 1.5,
        ),
        Row("idle memory of the front", {"ours": f"{memory:.0f} MiB"}, "<= 150 MiB", memory <= 150),
        Row("front after 10M rows, over 1M", {"ours": f"{growth:+.0f} MiB"}, "<= 128 MiB", growth <= 128),
    ]
