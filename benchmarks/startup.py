"""Start to ready and to the first answer, memory of idle processes, and that large results do not stay in the front."""

from __future__ import annotations

import statistics
import time

from benchmarks.measure import Row, held_bytes, resident_bytes, settle, show
from benchmarks.systems import ANEW, gateway_process
from gateway.protocol.client import Client

ROUNDS = 5
MIB = 1024 * 1024


def _drink(client: Client, rows: int) -> int:
    result = client.execute(f"SELECT id, id * 3 AS a, id * 7 AS b FROM range({rows})")
    return sum(batch.num_rows for batch in result.batches())


def run() -> list[Row]:
    """Start, idle memory, growth from 1M to 10M rows."""
    seconds, first, idle, whole = [], [], [], []
    with gateway_process():
        pass  # the first start makes the sample data
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        with gateway_process() as (url, pid, took):
            seconds.append(took)
            with Client(url).open(ANEW) as client:
                assert client.execute("SELECT 1").table().num_rows == 1
            first.append(time.perf_counter() - begun)
            settle(pid)
            idle.append(resident_bytes(pid) / MIB)
            whole.append(held_bytes(pid) / MIB)
    with gateway_process() as (url, pid, _), Client(url).open(ANEW) as client:
        assert _drink(client, 1_000_000) == 1_000_000
        before = resident_bytes(pid)
        assert _drink(client, 10_000_000) == 10_000_000
        growth = (resident_bytes(pid) - before) / MIB
    start, memory = statistics.median(seconds), statistics.median(idle)
    answered, all_of_it = statistics.median(first), statistics.median(whole)
    return [
        Row(
            "start to ready",
            {"ours": f"{show(start)} ({show(min(seconds))}..{show(max(seconds))})"},
            "<= 1.5 s",
            start <= 1.5,
        ),
        Row("start to first answer", {"ours": show(answered)}, "<= 1.3 s", answered <= 1.3),
        Row("idle memory of all processes", {"ours": f"{all_of_it:.0f} MiB"}, "<= 300 MiB", all_of_it <= 300),
        Row("idle memory of the front", {"ours": f"{memory:.0f} MiB"}, "<= 150 MiB", memory <= 150),
        Row("front after 10M rows, over 1M", {"ours": f"{growth:+.0f} MiB"}, "<= 128 MiB", growth <= 128),
    ]
