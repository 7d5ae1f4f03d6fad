"""Projects of `gateway pipeline`, and many of its commands on one JVM."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.delta.table import open_snapshot
from gateway.pipelines.lock import process_start
from tests.live.gateway import clean_environment
from tests.live.spark import jars, quick_flags

ROOT = Path(__file__).resolve().parents[2]
JARS = jars()
SECONDS = 240
SPEC = """\
name: {name}
storage: {storage}
database: {name}
configuration:
  spark.sql.sources.default: delta
  spark.sql.shuffle.partitions: "1"
  spark.sql.pipelines.maxFlowRetryAttempts: "0"
libraries:
  - glob:
      include: t/**
"""

# Verb, project and further arguments; `settings=False` without those of the JVM's folder. Exit code and both outputs.
Ask = Callable[..., tuple[int, str, str]]


def flags(warehouse: Path, state: Path) -> list[str]:
    """The settings of a run that starts its own Spark."""
    own = ["--spark", "local[2]", "--spark-jars", str(JARS), "--spark-memory", "1GiB", *quick_flags(state.parent)]
    return ["--warehouse", str(warehouse), "--state", str(state), *own]


def project(folder: Path, name: str, **files: str) -> Path:
    """A project in `folder`; `files` by name, with _ for the dot before the ending."""
    made = folder / name
    (made / "t").mkdir(parents=True)
    (made / "spark-pipeline.yml").write_text(SPEC.format(name=name, storage=f"file://{folder}/{name}-storage"))
    for file, content in files.items():
        stem, _, ending = file.rpartition("_")
        (made / "t" / f"{stem}.{ending}").write_text(content)
    return made


@contextlib.contextmanager
def on_one_jvm(place: Path) -> Iterator[Ask]:
    """Runs commands of `gateway pipeline` on a JVM for them all; its folder `place` has those of state and warehouse."""
    script = ROOT / "tests" / "spark" / "pipeline_process.py"
    command = [sys.executable, "-W", "ignore", str(script), str(place / "state"), str(JARS), str(place / "warehouse")]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**clean_environment(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    out, into = process.stdout, process.stdin

    def one(verb: str, made: Path, *arguments: str, settings: bool = True) -> tuple[int, str, str]:
        fixed = flags(place / "warehouse", place / "state") if settings else []
        into.write(json.dumps([verb, str(made), *fixed, *arguments]) + "\n")
        into.flush()
        watch = threading.Timer(SECONDS, process.kill)
        watch.start()
        code, text, errors = json.loads(out.readline())
        watch.cancel()
        return code, text, errors

    yield one
    into.close()
    assert process.wait(60) == 0


def start(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """`gateway pipeline` as a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "gateway", "pipeline", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment or clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, errors = process.communicate(timeout=SECONDS)
    return process.returncode, out, errors


def rows(folder: Path) -> int | None:
    """How many rows a Delta table has."""
    return open_snapshot(str(folder)).num_rows


def summary(out: str) -> dict[str, list[str]]:
    """The cells of the printed tables by their first cell and, for expectations, their second."""
    found = {}
    for line in out.splitlines():
        cells = line.split()
        key = ".".join(cells[:2]) if len(cells) > 2 and cells[2] in ("warn", "fail", "count") else (cells or [""])[0]
        found[key] = cells
    return found


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """Read standard error until a line holds `text`: all that was said until then."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if text in line:
            return "".join(seen)
    pytest.fail(f"{text!r} was not said:\n{''.join(seen)}")


def jvm_of(lock: Path) -> tuple[int, int]:
    """Pid and start time of the JVM of the run that holds `lock`."""
    holder = json.loads(lock.read_text())
    assert holder["jvm"] > 0 and process_start(holder["jvm"]) == holder["jvm_start"]
    return holder["jvm"], holder["jvm_start"]


def gone(jvm: tuple[int, int], seconds: float) -> bool:
    """Whether the process ends in time."""
    end = time.monotonic() + seconds
    while process_start(jvm[0]) == jvm[1]:
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
