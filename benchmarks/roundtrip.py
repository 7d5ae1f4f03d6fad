"""SELECT 1: what a statement costs when there is nothing to do."""

from __future__ import annotations

from benchmarks.measure import Row, cpu_seconds, rounds, show
from benchmarks.systems import ANEW, Connector, Floor, Ours, gateway_process, sail_process
from gateway.protocol.client import Client

STATEMENTS = 1000


def run() -> list[Row]:
    """p50 and p99 of single statements."""
    engine = Floor()
    floor = rounds(lambda: engine.query("SELECT 1"), STATEMENTS, 50)
    figures = {"floor": f"{show(floor.median)} / {show(floor.quantile(0.99))}"}
    with sail_process() as sail:
        if sail is not None:
            sample = rounds(lambda: sail.query("SELECT 1"), STATEMENTS // 4, 20, server=sail.pid)
            figures["Sail"] = f"{show(sample.median)} / {show(sample.quantile(0.99))}"
    with gateway_process() as (url, pid, _):
        with Client(url).open(ANEW) as client:
            ours = Ours(client, pid)
            raw = rounds(lambda: ours.query("SELECT 1"), STATEMENTS, 50, server=pid)
            before = cpu_seconds(pid)
            rounds(lambda: ours.query("SELECT 1"), STATEMENTS, 0)
            cpu = (cpu_seconds(pid) - before) / STATEMENTS

        with Client(url).open() as client:
            ours = Ours(client, pid)
            again = rounds(lambda: ours.query("SELECT 1"), STATEMENTS, 50, server=pid)
            before = cpu_seconds(pid)
            rounds(lambda: ours.query("SELECT 1"), STATEMENTS, 0)
            again_cpu = (cpu_seconds(pid) - before) / STATEMENTS

        def anew() -> None:
            with Client(url).open(ANEW) as other:
                assert other.execute("SELECT 1").table().num_rows == 1

        connected = rounds(anew, STATEMENTS // 4, 10)
        connector = Connector(url, pid)
        through = rounds(lambda: connector.query("SELECT 1"), STATEMENTS // 2, 20, server=pid)
        connector.close()
    return [
        Row(
            "SELECT 1, raw, p50 / p99",
            {**figures, "ours": f"{show(raw.median)} / {show(raw.quantile(0.99))}"},
            "<= 3 / 8 ms",
            raw.median <= 0.003 and raw.quantile(0.99) <= 0.008,
        ),
        Row("SELECT 1, raw, CPU each", {"ours": show(cpu)}, "<= 1.4 ms", cpu <= 0.0014),
        Row(
            "SELECT 1 again (kept), raw, p50 / p99, CPU each",
            {"ours": f"{show(again.median)} / {show(again.quantile(0.99))}, {show(again_cpu)}"},
            "<= 1.5 / 4 ms, 1.4 ms",
            again.median <= 0.0015 and again.quantile(0.99) <= 0.004 and again_cpu <= 0.0014,
        ),
        Row("connect and first row, raw, p50", {"ours": show(connected.median)}, "<= 3 ms", connected.median <= 0.003),
        Row("SELECT 1, connector, p50", {"ours": show(through.median)}, "<= 8 ms", through.median <= 0.008),
    ]
