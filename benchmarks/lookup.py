"""Look-ups by key in 10M sorted rows in 100 files: one after the other, from 64 connections, and at a fixed rate."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from benchmarks import tables
from benchmarks.measure import Row, Sample, cpu_seconds, rounds, settle, show
from benchmarks.systems import ANEW, Floor, Ours, Sail, System, gateway_process, sail_process
from gateway.protocol.client import Client

LOOKUPS = 200
CONNECTIONS = 64
LOAD_SECONDS = 10.0
TURNS = 4
RATE = 50


def sql(key: int) -> str:
    """A look-up."""
    return f"SELECT id, amount, name FROM lookup WHERE id = {key}"


def check(answer: pa.Table, key: int) -> None:
    """The row of `key`, recomputed."""
    wanted = {"id": key, "amount": (key * 7919 % 1_000_003) / 8.0, "name": f"name {key}"}
    if answer.to_pylist() != [wanted]:
        raise AssertionError(f"look-up of {key} gave {answer.to_pylist()}, not {wanted}")


def _one_by_one(system: System) -> tuple[float, float | None]:
    """Median seconds, and CPU seconds of the server per look-up."""
    system.use({"lookup": tables.table("lookup")})
    keys = random.Random(1)

    def look_up() -> None:
        key = keys.randrange(tables.LOOKUP_ROWS)
        check(system.query(sql(key)), key)

    for _ in range(20):
        look_up()
    if system.pid is not None:
        settle(system.pid)
    before = cpu_seconds(system.pid) if system.pid else 0.0
    sample = rounds(look_up, LOOKUPS, 0)
    return sample.median, (cpu_seconds(system.pid) - before) / LOOKUPS if system.pid else None


@dataclass
class Load:
    """Counts of a load run."""

    done: int = 0
    failed: int = 0
    seconds: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def one(self, look_up: Callable[[int], None], key: int) -> None:
        """Run one look-up and count it."""
        start = time.perf_counter()
        try:
            look_up(key)
        except Exception as error:  # noqa: BLE001 - failures are what is counted
            with self.lock:
                self.failed += 1
                if self.failed == 1:
                    print(f"first failure: {error!r}")
            return
        with self.lock:
            self.done += 1
            self.seconds.append(time.perf_counter() - start)


def _closed_loop(clients: list[Callable[[int], None]], seconds: float, load: Load) -> None:
    """The clients ask as fast as they are answered."""
    end = time.perf_counter() + seconds

    def work(seed: int, look_up: Callable[[int], None]) -> None:
        keys = random.Random(seed)
        while time.perf_counter() < end:
            load.one(look_up, keys.randrange(tables.LOOKUP_ROWS))

    threads = [threading.Thread(target=work, args=each) for each in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _open_loop(make: Callable[[], Callable[[int], None]]) -> Load:
    """`RATE` look-ups a second, whether or not earlier ones are answered."""
    load = Load()
    free: list[Callable[[int], None]] = []
    lock = threading.Lock()

    def work(key: int) -> None:
        with lock:
            look_up = free.pop() if free else None
        look_up = look_up or make()
        load.one(look_up, key)
        with lock:
            free.append(look_up)

    keys = random.Random(3)
    threads = []
    start = time.perf_counter()
    for number in range(int(RATE * LOAD_SECONDS)):
        time.sleep(max(0.0, start + number / RATE - time.perf_counter()))
        threads.append(threading.Thread(target=work, args=(keys.randrange(tables.LOOKUP_ROWS),)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return load


def _ours(url: str) -> Callable[[int], None]:
    client = Client(url).open(ANEW, catalog="main", schema="bench")

    def look_up(key: int) -> None:
        check(client.execute(sql(key)).table(), key)

    return look_up


def _sail(sail: Sail) -> Callable[[int], None]:
    def look_up(key: int) -> None:
        check(sail.query(sql(key)), key)

    return look_up


def run() -> list[Row]:
    """Latency, CPU, throughput and failures."""
    tables.table("lookup")
    engine = Floor()
    floor, _ = _one_by_one(engine)
    closed, sails, floors = Load(), Load(), Load()
    _closed_loop([lambda key: check(engine.query(sql(key)), key)] * CONNECTIONS, LOAD_SECONDS / TURNS, floors)
    figures, cpu = {"floor": show(floor)}, {}
    rates = {"floor": f"{floors.done / (LOAD_SECONDS / TURNS):.0f} per s"}
    with sail_process() as sail, gateway_process() as (url, pid, _):
        if sail is not None:
            median, per = _one_by_one(sail)
            figures["Sail"], cpu["Sail"] = show(median), show(per or 0.0)
        with Client(url).open(ANEW) as client:
            median, per = _one_by_one(Ours(client, pid))
        assert per is not None
        with Client(url).open(catalog="main", schema="bench") as client:
            kept = rounds(lambda: client.execute(sql(7)).table(), LOOKUPS, 20, server=pid)
        clients = [_ours(url) for _ in range(CONNECTIONS)]
        others = [_sail(sail) for _ in range(CONNECTIONS)] if sail is not None else []
        for _ in range(TURNS):  # by turns, so that a slow minute of the machine is one of both
            if others:
                _closed_loop(others, LOAD_SECONDS / TURNS, sails)
            _closed_loop(clients, LOAD_SECONDS / TURNS, closed)
        open_loop = _open_loop(lambda: _ours(url))
    rate, sail_rate = closed.done / LOAD_SECONDS, sails.done / LOAD_SECONDS
    if sails.done:
        rates["Sail"] = f"{sail_rate:.0f} per s, {sails.failed} failed"
    times = Sample(tuple(open_loop.seconds or [float("inf")]))
    return [
        Row("look-up, p50", {**figures, "ours": show(median)}, "<= 12 ms", median <= 0.012),
        Row("look-up, CPU each", {**cpu, "ours": show(per)}, "<= 12 ms", per <= 0.012),
        Row("the same look-up again, p50", {"ours": show(kept.median)}, "<= 1.5 ms", kept.median <= 0.0015),
        Row(
            f"look-ups, {CONNECTIONS} connections",
            {**rates, "ours": f"{rate:.0f} per s, {closed.failed} failed"},
            ">= 1.3 x Sail, 0 failed",
            closed.failed == 0 and rate >= 1.3 * sail_rate,
        ),
        Row(
            f"look-ups, {RATE} per s open loop",
            {
                "ours": f"{open_loop.failed} failed, p99 {show(times.quantile(0.99))}, slowest {show(times.quantile(1.0))}"
            },
            "0 failed, p99 <= 40 ms",
            open_loop.failed == 0 and times.quantile(0.99) <= 0.04,
        ),
    ]
