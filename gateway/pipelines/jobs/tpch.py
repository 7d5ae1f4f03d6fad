"""TPC-H tables: the official rows from tpchgen-cli where it is installed, else the samples' rows, which only look so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.catalog.samples import tpch
from gateway.engine import spill
from gateway.errors import ConfigError, ServerError
from gateway.pipelines.jobs.report import Say

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
GENERATOR = "tpchgen-cli"
_ADVICE = f"for the official TPC-H data: pip install {GENERATOR}"
LARGEST_OWN = 1.0  # the samples' rows are made in memory


def find_generator() -> str | None:
    """tpchgen-cli beside this Python, else on the PATH."""
    beside = Path(sys.executable).with_name(GENERATOR)
    return str(beside) if beside.is_file() else shutil.which(GENERATOR)


def check_scale(scale: float) -> None:
    """Raise ConfigError for a scale over `LARGEST_OWN` without tpchgen-cli."""
    if scale > LARGEST_OWN and find_generator() is None:
        raise ConfigError("scale", f"{scale:g} needs {GENERATOR}, which is not installed ({_ADVICE})")


@contextmanager
def tpch_frames(spark: Any, scale: float, scratch: Path, say: Say, notes: list[str]) -> Iterator[Callable[[str], Any]]:
    """A function from the name of a table to its DataFrame; `notes` is told where the rows come from.

    Raises ServerError if tpchgen-cli fails. See `check_scale`.
    """
    generator = find_generator()
    if generator is None:
        notes.append(
            f"{GENERATOR} is not installed: the rows follow TPC-H's schema and rules but are not official; {_ADVICE}"
        )
        own = tpch(scale)
        yield lambda name: spark.createDataFrame(pa.table({n: values for n, (_, values) in own[name].items()}))
        return
    with spill.claimed(scratch / "jobs") as folder:
        say(f"{GENERATOR} makes scale {scale:g}")
        command = [generator, "parquet", "-s", f"{scale:g}", f"--output-dir={folder}", "--quiet"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason given"]
            raise ServerError("INTERNAL_ERROR", f"{GENERATOR} fails: {last[0][:500]}")
        notes.append(f"official TPC-H rows of {GENERATOR}")
        yield lambda name: spark.read.parquet(f"{folder}/{name}.parquet")
