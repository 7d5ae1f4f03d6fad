"""`make bench-spark`: what Spark costs behind the gateway, and what it carries that one machine's engine cannot.

Plain PySpark, with the same settings and jars, is a process of its own and takes turns with the gateway.
TPC-H at SF10 makes 3 GB of data the first time; TPC-DS needs the shared corpus (`../shared` or GATEWAY_SHARED).
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from benchmarks import compile as compiled
from benchmarks import tables, tpch
from benchmarks.measure import Row, print_rows, resident_bytes, settle, show, tree
from benchmarks.systems import ANEW, PlainSpark, gateway_process, spark_jars
from gateway.protocol.client import Client, RemoteError

SMALL = ("SELECT 1 AS one", "SELECT id % 7 AS k, count(*) AS n FROM range(1000) GROUP BY ALL")
BIGINTS = "SELECT id, id + 1 AS b, id * 2 AS c, id % 97 AS d, -id AS e FROM range({rows})"
MILLION = BIGINTS.format(rows=1_000_000)
WARM, TIMED = 100, 60
OVERHEAD_SECONDS = 0.030
TRANSFER_RATIO = 1.2
HEAP = "2GiB"
GROWTH_BYTES = 256 << 20
_LOOK_BATCHES = 16  # how often memory is looked at


class Turns(NamedTuple):
    """Medians, in seconds."""

    alone: float
    gateway: float


def by_turns(
    alone: Callable[[], float], pid: int, server: int, action: Callable[[], object], count: int, warm: int
) -> Turns:
    """Rounds of both, one after the other, so that a slow minute of the machine is one of both; `alone` tells its seconds."""
    for _ in range(warm):
        alone()
        action()
    settle(pid)
    settle(server)
    own, ours = [], []
    for _ in range(count):
        own.append(alone())
        start = time.perf_counter()
        action()
        ours.append(time.perf_counter() - start)
    return Turns(statistics.median(own), statistics.median(ours))


def _on_spark(url: str) -> Client:
    client = Client(url).open(ANEW)
    client.execute("SET gateway.engine = spark").close()
    return client


def overhead(url: str, pid: int, alone: PlainSpark) -> list[Row]:
    """p50 of small statements, above plain PySpark's."""
    rows = []
    with _on_spark(url) as client:
        for sql in SMALL:
            ask = functools.partial(_answer, client, sql)
            own, ours = by_turns(functools.partial(alone.seconds, sql), alone.pid, pid, ask, TIMED, WARM)
            more = ours - own
            rows.append(
                Row(
                    f"{sql[:40]}…, p50",
                    {"PySpark": show(own), "gateway": show(ours), "more": show(more)},
                    f"<= {show(OVERHEAD_SECONDS)} more",
                    more <= OVERHEAD_SECONDS,
                )
            )
    return rows


def _answer(client: Client, sql: str) -> None:
    client.execute(sql).table()


def transfer(url: str, pid: int, alone: PlainSpark) -> list[Row]:
    """1M x 5 bigints received, against the time in which plain Spark writes them."""
    with _on_spark(url) as client:
        ask = functools.partial(_answer, client, MILLION)
        own, ours = by_turns(functools.partial(alone.seconds, MILLION, "parquet"), alone.pid, pid, ask, 21, 10)
    ratio = ours / own
    figures = {"PySpark": f"{show(own)} to write", "gateway": show(ours), "more": f"{ratio:.2f} x"}
    return [Row("1M x 5 bigints received", figures, f"<= {TRANSFER_RATIO} x", ratio <= TRANSFER_RATIO)]


def large(url: str, pid: int) -> list[Row]:
    """10M rows with a small heap; memory of all processes of Python."""
    with _on_spark(url) as client:
        client.execute(MILLION).table()
        before = sum(_python_memory(pid).values())
        start = time.perf_counter()
        count, most = 0, before
        for number, batch in enumerate(client.execute(BIGINTS.format(rows=10_000_000)).batches()):
            count += batch.num_rows
            if number % _LOOK_BATCHES == 0:
                most = max(most, sum(_python_memory(pid).values()))
        seconds = time.perf_counter() - start
        grown = most - before
    figures = {"gateway": f"{count} rows in {show(seconds)}, {grown / 2**20:+.0f} MiB"}
    return [
        Row(
            f"10M x 5 bigints, heap {HEAP}",
            figures,
            "all, memory flat",
            count == 10_000_000 and grown < GROWTH_BYTES,
        )
    ]


def _python_memory(pid: int) -> dict[int, int]:
    found = {}
    for process in tree(pid):
        try:
            name = Path(f"/proc/{process}/exe").resolve().name
            if name.startswith("python"):
                found[process] = resident_bytes(process)
        except OSError:
            continue  # it ended meanwhile
    return found


class Answers:
    """Statements one after the other on one connection: which were answered, by which engine, and how fast."""

    def __init__(self, url: str, schema: str, texts: Mapping[str, str], failures: Mapping[str, str]) -> None:
        self.lines: dict[str, tuple[str, float]] = {}  # engine and seconds by name
        self.total = len(texts)
        with Client(url).open(ANEW) as client:
            client.execute(f"USE main.{schema}").close()
            before = _by_engine(url)
            for name, sql in texts.items():
                start = time.perf_counter()
                try:
                    client.execute(sql).table()
                except RemoteError as error:
                    if name not in failures or failures[name] not in str(error):
                        print(f"{name}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
                        continue
                    self.lines[name] = (f"{failures[name]} as Spark", time.perf_counter() - start)
                    continue
                seconds = time.perf_counter() - start
                while (after := _by_engine(url)) == before:
                    time.sleep(0.01)  # it is counted just after its end
                self.lines[name] = ("+".join(after - before), seconds)
                before = after

    def row(self, work: str) -> Row:
        """The line of the report."""
        slowest = max(self.lines, key=lambda name: self.lines[name][1])
        seconds = sum(each for _, each in self.lines.values())
        engines = Counter(engine for engine, _ in self.lines.values())
        by = ", ".join(f"{count} {engine}" for engine, count in engines.most_common())
        answered = len(self.lines)
        told = f"{answered} of {self.total} in {show(seconds)} ({by}), slowest {slowest} {show(self.lines[slowest][1])}"
        return Row(work, {"gateway": told}, f"{self.total}", answered == self.total)

    def show(self) -> None:
        """Each statement's engine and time."""
        for name, (engine, seconds) in self.lines.items():
            print(f"  {name.ljust(12)} {show(seconds).rjust(8)}  {engine}")


def _by_engine(url: str) -> Counter[str]:
    """Queries that have finished, by engine, from the gateway's metrics."""
    counts: Counter[str] = Counter()
    with urlopen(f"{url}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if "statements_total{" in line and 'state="FINISHED"' in line and 'statement_type="SELECT"' in line:
                engine = line.partition('engine="')[2].partition('"')[0]
                counts[engine] += int(float(line.rpartition(" ")[2]))
    return counts


def tpcds(url: str, corpus: Path) -> list[Row]:
    """The TPC-DS statements of the corpus; one that fails as Spark does counts as answered."""
    answers = Answers(url, "tpcds", compiled.statements(corpus), compiled.failures(corpus))
    answers.show()
    return [answers.row("TPC-DS, scale 0.01")]


def tpch_large(url: str, texts: Mapping[str, str]) -> list[Row]:
    """TPC-H SF10 with 2 GiB for the embedded engine."""
    answers = Answers(url, "tpch_sf10", texts, {})
    answers.show()
    return [answers.row("TPC-H SF10, 2 GiB")]


def main(arguments: Sequence[str] | None = None) -> int:
    """All parts, or those that are named (small, tpcds, tpch10)."""
    chosen = list(arguments or ("small", "tpcds", "tpch10"))
    rows: list[Row] = []
    flags = ["--spark", "local[*]", "--spark-memory", HEAP, "--spark-jars", str(spark_jars())]
    if "small" in chosen:
        with gateway_process(*flags) as (url, pid, _):
            with PlainSpark() as alone:
                rows += overhead(url, pid, alone) + transfer(url, pid, alone)
            rows += large(url, pid)
    if "tpcds" in chosen:
        corpus = compiled.corpus()
        if corpus is None:
            rows.append(Row("TPC-DS", {"gateway": "left out: the corpus is not here"}))
        else:
            with gateway_process(*flags, warehouse=compiled.warehouse(corpus)) as (url, _, _):
                rows += tpcds(url, corpus)
    if "tpch10" in chosen:
        texts = tpch.statements()
        if texts is None:
            rows.append(Row("TPC-H SF10", {"gateway": "left out: the corpus is not here"}))
        else:
            tables.tpch(10)
            with gateway_process(*flags, "--memory-limit", "2GiB") as (url, _, _):
                rows += tpch_large(url, texts)
    print_rows(rows)
    return 1 if any(row.ok is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
