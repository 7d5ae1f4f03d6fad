"""`make bench-short`: ratios to the floor within a minute, beside the last that were kept in `history.jsonl`.

Small tables are made on the spot; gateway and floor take turns, and a ratio is the median of their ratios. A ratio that is more
than a fifth worse than the last is LOST. Only an error or a wrong answer makes the exit code 1; `--keep` appends a record.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.answers import same
from benchmarks.measure import Row, print_rows, settle, show
from benchmarks.systems import ANEW, Floor, Ours, System, gateway_process
from benchmarks.tables import write_delta
from gateway.protocol.client import Client

HISTORY = Path(__file__).with_name("history.jsonl")
SECONDS, MOST, LEAST = 3.0, 200, 5  # of a case, and its rounds
WORSE = 1.2
VIEWS, KEYS, KEY_FILES, INTS, INSERTED = 300_000, 200_000, 10, 200_000, 100_000
SCHEMA = "short"


def _texts(pattern: str, numbers: Any) -> pa.Array:
    distinct, index = np.unique(numbers, return_inverse=True)
    return pa.array([pattern.format(n) for n in distinct.tolist()]).take(pa.array(index))


def make(warehouse: Path) -> dict[str, Path]:
    """The tables: page views, their topics, sorted keys in some files, integers."""
    random = np.random.default_rng(7)
    ids, keys = np.arange(INTS), np.arange(KEYS)
    item = (random.pareto(0.8, VIEWS) * 30).astype(np.int64) % 20_000
    per_file = KEYS // KEY_FILES
    made = {
        "views": [
            pa.table(
                {
                    "url": _texts("https://www.example.org/item/{}?from=mail", item),
                    "phrase": _texts("buy red shoes {}", item % 3001),
                    "region": random.integers(0, 200, VIEWS).astype(np.int32),
                    "width": random.integers(300, 4000, VIEWS).astype(np.int32),
                }
            )
        ],
        "topics": [
            pa.table(
                {
                    "phrase": _texts("buy red shoes {}", np.arange(3001)),
                    "topic": _texts("topic {}", np.arange(3001) % 40),
                }
            )
        ],
        "keys": [
            pa.table({"id": keys[at : at + per_file], "amount": keys[at : at + per_file] * 7919 % 1_000_003 / 8.0})
            for at in range(0, KEYS, per_file)
        ],
        "ints": [pa.table({f"c{i}": ids * (2 * i + 1) * 104_729 % 1_000_000_007 for i in range(5)})],
    }
    for name, files in made.items():
        write_delta(warehouse / SCHEMA / name, iter(files))
    return {name: warehouse / SCHEMA / name for name in made}


@dataclass(frozen=True, slots=True)
class Case:
    """A work that both do, and how one tells from what they give back that it is done right."""

    name: str
    floor: Callable[[], pa.Table]
    ours: Callable[[], pa.Table]
    is_right: Callable[[pa.Table, pa.Table], bool] = same


QUERIES: Mapping[str, str] = {
    "SELECT 1": "SELECT 1 AS one",
    "look-up": f"SELECT id, amount FROM keys WHERE id = {KEYS * 2 // 3}",
    "scan and groups": (
        "SELECT region, count(*) AS c, sum(width) AS w FROM views GROUP BY region ORDER BY c DESC, region LIMIT 10"
    ),
    "text filter": "SELECT count(*) AS c FROM views WHERE url LIKE '%item/12%'",
    "groups of texts": "SELECT phrase, count(*) AS c FROM views GROUP BY phrase ORDER BY c DESC, phrase LIMIT 10",
    "join": (
        "SELECT topic, count(*) AS c FROM views JOIN topics ON views.phrase = topics.phrase "
        "GROUP BY topic ORDER BY c DESC, topic"
    ),
    "transfer, Arrow": "SELECT * FROM ints",
}


def cases(floor: System, ours: System, pages: System, scratch: Path) -> list[Case]:
    """All works; the floor's INSERT is a COPY of the same rows to Parquet."""
    rows, whole = f"SELECT c0, c1 FROM ints LIMIT {INSERTED}", QUERIES["transfer, Arrow"]
    copied = f"COPY ({rows}) TO '{scratch / 'copied.parquet'}' STORED AS PARQUET"

    def as_many(answer: pa.Table, received: pa.Table) -> bool:
        return bool(received.column(0).to_pylist() == [answer.num_rows])

    def all_written(copied: pa.Table, inserted: pa.Table) -> bool:
        return all(answer.column(0).to_pylist() == [INSERTED] for answer in (copied, inserted))

    return [
        *(Case(name, partial(floor.query, text), partial(ours.query, text)) for name, text in QUERIES.items()),
        Case("transfer, columnar", partial(floor.query, whole), partial(pages.query, whole), as_many),
        Case("INSERT", partial(floor.query, copied), partial(ours.query, f"INSERT INTO written {rows}"), all_written),
    ]


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def by_turns(case: Case) -> tuple[float, float, float]:
    """Median seconds of the floor and of the gateway, and the median of their ratios."""
    floors: list[float] = []
    ours: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(floors) < MOST and (len(floors) < LEAST or time.perf_counter() < end):
        floors.append(_seconds(case.floor))
        ours.append(_seconds(case.ours))
    ratios = [own / floor for own, floor in zip(ours, floors, strict=True)]
    return statistics.median(floors), statistics.median(ours), statistics.median(ratios)


def run() -> tuple[list[Row], dict[str, float], bool]:
    """A row per work, the ratios, and whether all answers are right."""
    rows: list[Row] = []
    ratios: dict[str, float] = {}
    right = True
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder) / "warehouse"
        folders = make(warehouse)
        floor = Floor()
        floor.use(folders)
        with gateway_process(warehouse=warehouse) as (url, pid, _), Client(url).open(ANEW) as client:
            ours, pages = Ours(client, pid), Ours(client, pid, arrow=False)
            ours.use(folders)
            ours.query("CREATE TABLE written (c0 BIGINT, c1 BIGINT)")
            all_cases = cases(floor, ours, pages, Path(folder))
            wrong = {case.name for case in all_cases if not case.is_right(case.floor(), case.ours())}
            settle(pid)
            for case in all_cases:
                floor_seconds, seconds, ratio = by_turns(case)
                told = " OTHER ANSWER" if case.name in wrong else ""
                rows.append(Row(case.name, {"floor": show(floor_seconds), "ours": show(seconds) + told}))
                ratios[case.name] = ratio
            right = not wrong
    return rows, ratios, right


def last(history: Path) -> dict[str, Any]:
    """The last record, {} if there is none."""
    lines = history.read_text(encoding="utf-8").splitlines() if history.exists() else []
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found


def compared(rows: Sequence[Row], ratios: Mapping[str, float], record: Mapping[str, Any]) -> None:
    """Each row with its ratio, the one of a record, and whether it is lost against it."""
    head = f"{record.get('date')}, {record.get('commit')}" if record else "before"
    for row in rows:
        ratio, before = ratios[row.work], record.get("ratios", {}).get(row.work)
        row.figures["ratio"] = f"{ratio:.2f}"
        row.figures[head] = "" if before is None else f"{before:.2f}"
        row.figures["change"] = "" if before is None else "LOST" if ratio > WORSE * before else ""


def commit() -> str:
    """The commit that is checked out."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=HISTORY.parent).stdout.strip()


def keep(history: Path, ratios: Mapping[str, float]) -> None:
    """Append a record."""
    record = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": commit(),
        "machine": machine(),
        "ratios": {name: round(ratio, 3) for name, ratio in ratios.items()},
    }
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def machine() -> str:
    """Architecture, cores and Python, to tell which records can be compared."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 after a wrong answer; errors are raised."""
    parser = argparse.ArgumentParser(prog="make bench-short", description="Ratios to the floor within a minute.")
    parser.add_argument("--keep", action="store_true", help="append a record to benchmarks/history.jsonl")
    chosen = parser.parse_args(arguments)
    start = time.perf_counter()
    rows, ratios, right = run()
    record = last(HISTORY)
    compared(rows, ratios, record)
    print(f"{machine()}; medians by turns, ratio ours / floor, {time.perf_counter() - start:.0f} s\n")
    print_rows(rows)
    if record and record["machine"] != machine():
        print(f"\nThe last record is of another machine: {record['machine']}.")
    if not right:
        return 1
    if chosen.keep:
        keep(HISTORY, ratios)
    return 0


if __name__ == "__main__":
    sys.exit(main())
