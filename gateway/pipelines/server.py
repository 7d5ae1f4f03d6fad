"""The Spark that a run uses: a JVM of its own with Delta and Spark Connect, or a Connect server that exists.

Definitions always run through Connect. In our own JVM the classic session beside it lets us read Spark's analysed graph, which
Connect does not give out.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.config import Config
from gateway.engine import spill
from gateway.engine.spark import masters, session, setup
from gateway.engine.spark.errors import tells_full_disk
from gateway.engine.spark.properties import read_properties
from gateway.errors import ConfigError, disk_full

_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_MODE = "SPARK_CONNECT_MODE_ENABLED"
_NO_PROXY = "no_grpc_proxy"
_END_SECONDS = 15
_SCRATCH = "spark-"
TABLE_FORMAT = "spark.sql.sources.default"
# Of how many micro-batches a stream remembers what it has read: a few kilobytes each. Spark's default is 100.
PROGRESS_KEPT = "spark.sql.streaming.numRecentProgressUpdates"
_PROGRESS = "10000"


@dataclass(frozen=True, slots=True)
class Server:
    """A connected Spark. `jvm` (py4j) and `process` are None for a server that was there before us."""

    session: Any
    jvm: Any | None
    process: subprocess.Popen[bytes] | None
    log: Path | None
    scratch: Path | None

    def end(self) -> str | None:
        """How the JVM of our own has ended, in words; None while it lives."""
        if self.process is None or self.process.poll() is None:
            return None
        return f"Spark has ended with exit code {self.process.returncode} in the middle of the run; its output is in {self.log}"


@contextlib.contextmanager
def serve(config: Config, master: str, warehouse: Path, log: Path) -> Iterator[Server]:
    """Connect to `master`, or start a JVM on it that ends with the block; its output goes to the file `log`.

    Raises ConfigError if Java, a jar or pyspark is missing, or if Spark cannot be reached.
    """
    problem = setup.pyspark_problem()
    if problem is not None:
        raise ConfigError("spark", problem.detail)
    _check_connect()
    with _connect_mode():
        if masters.is_connect(master):
            with contextlib.closing(_Connected(master)) as connected:
                yield Server(connected.session, None, None, None, None)
            return
        with _own(config, master, warehouse, log) as server:
            yield server


@contextlib.contextmanager
def _connect_mode() -> Iterator[None]:
    """Functions and DataFrames of definitions are those of Connect, although a classic session is there."""
    before = os.environ.get(_MODE)
    os.environ[_MODE] = "1"
    try:
        yield
    finally:
        os.environ.pop(_MODE)
        if before is not None:
            os.environ[_MODE] = before


@contextlib.contextmanager
def _own(config: Config, master: str, warehouse: Path, log: Path) -> Iterator[Server]:
    jars = setup.check(config.spark_jars or setup.default_folder())
    given = read_properties(config.spark_properties) if config.spark_properties else {}
    # Managed tables of the database `default` lie here; all others are made with a location.
    fixed = {"spark.sql.warehouse.dir": f"file:{warehouse / 'default'}", TABLE_FORMAT: "delta"}
    local = session.LOCAL if masters.is_local(master) else {}
    extra = {PROGRESS_KEPT: _PROGRESS, **local, **given, **fixed}
    with spill.claimed(log.parent, _SCRATCH) as scratch:
        settings = session.settings(jars, scratch, memory=config.spark_memory, connect_port=0, extra=extra)
        with _started(master, settings, log) as (classic, process), contextlib.closing(_local(classic)) as connected:
            yield Server(connected.session, classic._jvm, process, log, scratch)  # noqa: SLF001 (no public door)


class _Connected:
    """A Connect session that is let go of even if its server is gone by then."""

    def __init__(self, url: str) -> None:
        self.session = session.connect(url)

    def close(self) -> None:
        # The server may be gone, which is how an interrupted run ends: there is nothing left to release.
        with contextlib.suppress(Exception):
            self.session.stop()


def _check_connect() -> None:
    try:
        import google.rpc  # noqa: F401
        import grpc  # noqa: F401
        import grpc_status  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "spark", f"{error.name} is not installed: pip install '.[spark]' in the project's folder"
        ) from error


def _local(classic: Any) -> _Connected:
    service = getattr(classic._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")  # noqa: SLF001
    port = getattr(service, "MODULE$").localPort()
    return _Connected(f"sc://localhost:{port}")


@contextlib.contextmanager
def _started(master: str, settings: Mapping[str, str], log: Path) -> Iterator[tuple[Any, subprocess.Popen[bytes]]]:
    from pyspark import SparkContext

    os.environ[_TOKEN] = secrets.token_hex(32)  # the port is on loopback, but other users of this machine reach it
    os.environ.setdefault(_NO_PROXY, "localhost")
    mode = os.environ.pop(_MODE)
    try:
        try:
            with session.output_to(log):
                classic = session.start(master, settings, app="gateway pipeline")
        except ConfigError as error:
            if tells_full_disk(error.message):
                raise disk_full(f"Spark does not start: no space left on the disk of {log.parent}.") from error
            raise ConfigError("spark", f"{error.message.removeprefix('spark: ')} (see {log})") from error
        finally:
            os.environ[_MODE] = mode
        yield classic, SparkContext._gateway.proc  # noqa: SLF001
    finally:
        os.environ.pop(_TOKEN, None)
        if SparkContext._gateway is not None:  # noqa: SLF001
            _end(SparkContext._gateway)  # noqa: SLF001
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001


def _end(gateway: Any) -> None:
    """End the JVM: it leaves when its standard input closes, and is killed if it does not."""
    process: subprocess.Popen[bytes] = gateway.proc
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(Exception):  # py4j's own threads find the other end closed
            gateway.shutdown()
