"""Text to engine query for the TPC-DS statements: parse, bind, type, rewrite, generate, plan.

Statements and tables come from the shared corpus (`../shared` or GATEWAY_SHARED); without it this benchmark is left out.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.measure import Row, show
from gateway.engine.base import SessionState
from gateway.errors import GatewayError
from gateway.runner import make_runner
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement

ROUNDS = 5


def corpus() -> Path | None:
    """The folder of the shared corpora."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("GATEWAY_SHARED") or root.parent / "shared") / "conformance"
    return folder if (folder / "tpc.jsonl.gz").exists() else None


def statements(corpus: Path) -> dict[str, str]:
    """Name to text of the TPC-DS statements."""
    return {name: statement["sql"] for name, statement in _recorded(corpus)}


def failures(corpus: Path) -> dict[str, str]:
    """Name to condition of the TPC-DS statements for which Spark raises an error on these tables."""
    return {name: s["error"]["condition"] for name, s in _recorded(corpus) if s.get("error")}


def _recorded(corpus: Path) -> Iterator[tuple[str, Any]]:
    with gzip.open(corpus / "tpc.jsonl.gz", "rt") as lines:
        next(lines)
        for line in lines:
            file = json.loads(line)
            if "tpcds" in file["file"]:
                for statement in file["statements"]:
                    yield file["file"], statement


def warehouse(corpus: Path) -> Path:
    """A warehouse with the tables of TPC-DS at scale 0.01, made if it is not there yet."""
    folder = tables.CACHE / "tpc"
    if not (folder / "tpcds").exists():
        command = [sys.executable, str(corpus / "make_tpc_data.py"), "--out", str(folder), "--format", "delta"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def _measure(texts: dict[str, str], warehouse: Path) -> tuple[list[float], int]:
    """Median seconds of each statement that compiles, and how many are refused."""
    state = tables.CACHE / "state"
    runner = make_runner(
        warehouse=str(warehouse), samples=str(state / "samples"), spill=str(state / "spill"), memory_limit=1 << 30
    )
    runner.warm_up()
    gc.collect()
    gc.freeze()  # as workers do after their start
    session = SessionState("main", "tpcds", "bench", {})
    medians, refused = [], 0
    for text in texts.values():
        seconds = []
        try:
            for _ in range(ROUNDS):
                start = time.perf_counter()
                env = runner.environment(session)
                command = parse_command(read_statement(text))
                assert isinstance(command, Query)
                runner.prepared(command.tree, env)
                seconds.append(time.perf_counter() - start)
        except GatewayError:
            refused += 1
            continue
        medians.append(statistics.median(seconds))
    return medians, refused


def run() -> list[Row]:
    """p50 over the statements."""
    folder = corpus()
    if folder is None:
        return [Row("compile, TPC-DS", {"ours": "left out: the corpus is not here"})]
    tables_folder = warehouse(folder)
    result: list[tuple[list[float], int]] = []
    threading.stack_size(256 << 20)  # as in a worker
    thread = threading.Thread(target=lambda: result.append(_measure(statements(folder), tables_folder)))
    thread.start()
    threading.stack_size(0)
    thread.join()
    medians, refused = result[0]
    middle = statistics.median(medians)
    slowest = show(max(medians))
    shown = f"{show(middle)}, slowest {slowest}, {len(medians)} compiled, {refused} refused"
    return [Row("compile, TPC-DS p50", {"ours": shown}, "<= 5 ms", middle <= 0.005)]
