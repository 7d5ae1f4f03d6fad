"""`gateway demo --once` as a user runs it: a process that shows rows, ends by itself and leaves nothing running."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from importlib.metadata import version
from pathlib import Path

import pytest

from gateway.cli.demo import FOR_SPARK, QUERY
from tests.live.gateway import clean_environment
from tests.live.spark import jars


def marked(mark: str) -> list[int]:
    """Process ids whose environment has the variable MARK of this value."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                variables = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"MARK={mark}".encode() in variables:
                found.append(int(entry))
    return found


def demo(tmp_path: Path, *flags: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; when it has ended, so have all processes that it started."""
    mark = uuid.uuid4().hex
    command = [
        sys.executable,
        "-m",
        "gateway",
        "demo",
        "--once",
        "--port",
        "0",
        "--state",
        str(tmp_path / "state"),
        *flags,
    ]
    environment = clean_environment() | {"MARK": mark}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.pid in marked(mark)
        output, errors = process.communicate(timeout=180)  # until nothing holds the pipes
    finally:
        process.kill()
    end = time.monotonic() + 10
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == []
    return process.returncode, output, errors


@pytest.mark.spark
@pytest.mark.heavy
def test_the_demo_with_spark_shows_what_only_spark_knows(spark_here: None, tmp_path: Path) -> None:
    code, output, _ = demo(tmp_path, "--spark", "local[2]", "--spark-jars", str(jars()))
    assert code == 0
    _, _, answer = output.partition("What only Spark knows goes to Spark")
    assert all(line in answer for line in FOR_SPARK.splitlines())
    assert '[{"x":' in answer.partition("and got:\n")[2]


def test_the_demo_shows_rows_of_the_connector_and_ends(tmp_path: Path) -> None:
    code, output, errors = demo(tmp_path)
    assert (code, errors) == (0, "")
    asked, _, answer = output.partition("and got:\n")
    assert f"databricks-sql-connector {version('databricks-sql-connector')} asked:" in asked
    assert all(line in asked for line in QUERY.splitlines())
    lines = [line.strip() for line in answer.strip().split("\n\n")[0].splitlines()]
    assert lines[0].split() == ["region", "orders", "revenue", "latest"]
    rows = [line.rsplit(maxsplit=3) for line in lines[2:]]
    assert sorted(row[0] for row in rows) == ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
    assert sum(int(row[1]) for row in rows) == 15_000
    revenues = [float(row[2]) for row in rows]
    assert revenues == sorted(revenues, reverse=True) and revenues[-1] > 0
    assert all(row[3].startswith("1998-") for row in rows)
