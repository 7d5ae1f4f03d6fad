"""`make bench-spark`: what Spark costs behind the gateway, and what it carries that one machine's engine cannot.

Plain PySpark, with the same settings and jars, is measured in a process of its own before the gateway starts its Spark.
TPC-H at SF10 makes 3 GB of data the first time; TPC-DS needs the shared corpus (`../shared` or GATEWAY_SHARED).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.request import urlopen

from benchmarks import compile as compiled
from benchmarks import tables, tpch
from benchmarks.measure import Row, print_rows, resident_bytes, rounds, show, tree
from benchmarks.systems import gateway_process
from gateway.engine.spark import session, setup
from gateway.protocol.client import Client, RemoteError

SMALL = ("SELECT 1 AS one", "SELECT id % 7 AS k, count(*) AS n FROM range(1000) GROUP BY ALL")
BIGINTS = "SELECT id, id + 1 AS b, id * 2 AS c, id % 97 AS d, -id AS e FROM range({rows})"
WARM, TIMED = 100, 60
OVERHEAD_SECONDS = 0.030
TRANSFER_RATIO = 1.2
HEAP = "2GiB"
GROWTH_BYTES = 256 << 20


def _jars() -> Path:
    return Path(os.environ.get("GATEWAY_SPARK_JARS") or setup.default_folder())


def plain() -> None:
    """Medians of plain PySpark as a line of JSON: seconds by statement, and to write 1M rows as Parquet."""
    with tempfile.TemporaryDirectory() as scratch:
        spark = session.start("local[*]", session.settings(setup.check(_jars()), Path(scratch), memory=2 << 30))

        def ask(sql: str) -> Callable[[], object]:
            return lambda: spark.sql(sql).toArrow()

        small = [rounds(ask(sql), TIMED, WARM).median for sql in SMALL]
        text = BIGINTS.format(rows=1_000_000)

        def write() -> None:
            spark.sql(text).write.mode("overwrite").parquet(f"{scratch}/written")

        print(json.dumps({"small": small, "write": rounds(write, 7, 3).median}))
        spark.stop()


def _plain() -> dict[str, list[float] | float]:
    command = [sys.executable, "-c", "from benchmarks.spark import plain; plain()"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=tables.CACHE.parent)
    found: dict[str, list[float] | float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _on_spark(url: str) -> Client:
    client = Client(url).open()
    client.execute("SET gateway.engine = spark").close()
    return client


def overhead(url: str, alone: list[float]) -> list[Row]:
    """p50 of small statements, above plain PySpark's."""
    rows = []
    with _on_spark(url) as client:
        for sql, own in zip(SMALL, alone, strict=True):
            sample = rounds(lambda sql=sql: client.execute(sql).table(), TIMED, WARM)  # type: ignore[misc]
            more = sample.median - own
            rows.append(
                Row(
                    f"{sql[:40]}…, p50",
                    {"PySpark": show(own), "gateway": show(sample.median), "more": show(more)},
                    f"<= {show(OVERHEAD_SECONDS)} more",
                    more <= OVERHEAD_SECONDS,
                )
            )
    return rows


def transfer(url: str, written: float) -> list[Row]:
    """1M x 5 bigints received, against the time in which plain Spark writes them."""
    with _on_spark(url) as client:
        sample = rounds(lambda: client.execute(BIGINTS.format(rows=1_000_000)).table(), 7, 3)
    ratio = sample.median / written
    figures = {"PySpark": f"{show(written)} to write", "gateway": show(sample.median), "more": f"{ratio:.2f} x"}
    return [Row("1M x 5 bigints received", figures, f"<= {TRANSFER_RATIO} x", ratio <= TRANSFER_RATIO)]


def large(url: str, pid: int) -> list[Row]:
    """10M rows with a small heap; memory of all processes of Python."""
    with _on_spark(url) as client:
        client.execute(BIGINTS.format(rows=1_000_000)).table()
        before = sum(_python_memory(pid).values())
        start = time.perf_counter()
        count = sum(batch.num_rows for batch in client.execute(BIGINTS.format(rows=10_000_000)).batches())
        seconds = time.perf_counter() - start
        grown = sum(_python_memory(pid).values()) - before
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


def tpcds(url: str) -> list[Row]:
    """The TPC-DS statements of the corpus: how many are answered, by which engine."""
    corpus = compiled.corpus()
    if corpus is None:
        return [Row("TPC-DS", {"gateway": "left out: the corpus is not here"})]
    texts = compiled.statements(corpus)
    failures = compiled.failures(corpus)
    answered = 0
    start = time.perf_counter()
    with Client(url).open() as client:
        client.execute("USE main.tpcds").close()
        for name, sql in texts.items():
            try:
                client.execute(sql).table()
                answered += 1
            except RemoteError as error:
                if name in failures and failures[name] in str(error):
                    answered += 1  # as Spark does
                else:
                    print(f"{name}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
        engines = _by_engine(url)
    seconds = time.perf_counter() - start
    figures = {"gateway": f"{answered} of {len(texts)} in {show(seconds)} ({engines})"}
    return [Row("TPC-DS, scale 0.01", figures, f"{len(texts)}", answered == len(texts))]


def tpch_large(url: str) -> list[Row]:
    """TPC-H SF10 with 2 GiB for the embedded engine: all answered, by which engine."""
    texts = tpch.statements()
    if texts is None:
        return [Row("TPC-H SF10", {"gateway": "left out: the corpus is not here"})]
    slowest = (0.0, "")
    answered = 0
    start = time.perf_counter()
    with Client(url).open() as client:
        client.execute("USE main.tpch_sf10").close()
        for name, sql in texts.items():
            begin = time.perf_counter()
            try:
                client.execute(sql).table()
            except RemoteError as error:
                print(f"{name}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
                continue
            answered += 1
            slowest = max(slowest, (time.perf_counter() - begin, name))
        engines = _by_engine(url)
    seconds = time.perf_counter() - start
    figures = {"gateway": f"{answered} of 22 in {show(seconds)} ({engines}), slowest {slowest[1]} {show(slowest[0])}"}
    return [Row("TPC-H SF10, 2 GiB", figures, "22", answered == 22)]


def _by_engine(url: str) -> str:
    """Queries that have finished, by engine, from the gateway's metrics."""
    counts: Counter[str] = Counter()
    with urlopen(f"{url}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if "statements_total{" in line and 'state="FINISHED"' in line and 'statement_type="SELECT"' in line:
                engine = line.partition('engine="')[2].partition('"')[0]
                counts[engine] += int(float(line.rpartition(" ")[2]))
    return ", ".join(f"{count} {engine}" for engine, count in counts.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """All parts, or those that are named (small, tpcds, tpch10)."""
    chosen = list(arguments or ("small", "tpcds", "tpch10"))
    rows: list[Row] = []
    flags = ["--spark", "local[*]", "--spark-memory", HEAP, "--spark-jars", str(_jars())]
    if "small" in chosen:
        alone = _plain()
        small, written = alone["small"], alone["write"]
        assert isinstance(small, list) and isinstance(written, float)
        with gateway_process(*flags) as (url, pid, _):
            rows += overhead(url, small) + transfer(url, written) + large(url, pid)
    if "tpcds" in chosen:
        corpus = compiled.corpus()
        folder = compiled.warehouse(corpus) if corpus is not None else tables.WAREHOUSE
        with gateway_process(*flags, warehouse=folder) as (url, _, _):
            rows += tpcds(url)
    if "tpch10" in chosen:
        tables.tpch(10)
        with gateway_process(*flags, "--memory-limit", "2GiB") as (url, _, _):
            rows += tpch_large(url)
    print_rows(rows)
    return 1 if any(row.ok is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
