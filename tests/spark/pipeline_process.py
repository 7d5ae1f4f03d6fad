"""Many commands of `gateway pipeline` on one JVM: arguments as lines of JSON in, exit code and texts as lines of JSON out.

The same code runs as from the command line, but that a JVM is started once; each command gets a Connect session of its own.
`plain` runs Spark's own `spark-pipelines` there.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.cli import main
from gateway.config import load_config
from gateway.pipelines import graph, run, server, validate
from tests.live.spark import quick_flags


def commands(folder: Path, jars: str, warehouse: Path) -> None:
    """Serve standard input until it ends."""
    flags: dict[str, str | list[str] | None] = {
        "warehouse": str(warehouse),
        "state": str(folder),
        "spark": "local[2]",
        "spark-jars": jars,
        "spark-memory": "1GiB",
        "spark-properties": quick_flags(folder.parent)[1],
    }
    with server.serve(load_config(flags, {}), "local[2]", warehouse, folder / "spark.log") as one:
        service = getattr(one.jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
        url = f"sc://localhost:{getattr(service, 'MODULE$').localPort()}"

        @contextlib.contextmanager
        def shared(config: Any, master: str, *_: Any) -> Iterator[server.Server]:
            with contextlib.closing(server._Connected(url)) as connected:
                own = one.jvm if not master.startswith("sc://") else None
                yield replace(one, session=connected.session, jvm=own, process=None)

        for module in (run, validate, graph):
            setattr(module, "serve", shared)  # noqa: B010 (mypy knows no `serve` there)
        for line in sys.stdin:
            arguments = json.loads(line)
            if arguments[0] == "plain":
                print(json.dumps(_plain(url, *arguments[1:])), flush=True)
            else:
                print(json.dumps(_one(arguments)), flush=True)


def _plain(url: str, project: str, database: str, location: str) -> tuple[int, str, str]:
    """Spark's own `spark-pipelines run` on the same server, in a database that is there."""
    with contextlib.closing(server._Connected(url)) as connected:
        connected.session.sql(f"CREATE DATABASE IF NOT EXISTS {database} LOCATION 'file:{location}'").collect()
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "--remote", url, "run"]
    done = subprocess.run(
        [*command, "--spec", f"{project}/spark-pipeline.yml"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    return done.returncode, done.stdout, done.stderr


def _one(arguments: list[str]) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(["pipeline", *arguments])
    return code, out.getvalue(), errors.getvalue()


if __name__ == "__main__":
    commands(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
