"""The systems that are measured: DataFusion in process, Sail by Spark Connect, plain Spark, the gateway by several clients."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from benchmarks import tables
from gateway.protocol.client import DEFAULT_PATH, Client

#: Settings of each session: what is measured is never a kept answer.
ANEW = {"use_cached_result": "false"}
Folders = Mapping[str, Path]  # table name -> folder with Parquet files and a Delta log


class System(Protocol):
    """Something that answers SQL. `pid` is the server's process, None if there is none."""

    name: str
    pid: int | None

    def use(self, folders: Folders) -> None:
        """Make each table known under its name."""

    def query(self, sql: str) -> pa.Table: ...


class Floor:
    """DataFusion in this process over the folders of Parquet files, with its defaults."""

    name = f"DataFusion {metadata.version('datafusion')}"
    pid: int | None = None

    def __init__(self) -> None:
        from datafusion import SessionContext

        self._context = SessionContext()

    def use(self, folders: Folders) -> None:
        """See `System`."""
        for name, folder in folders.items():
            self._context.deregister_table(name)
            self._context.register_parquet(name, str(folder))

    def query(self, sql: str) -> pa.Table:
        """See `System`."""
        return pa.table(self._context.sql(sql))


class Sail:
    """A Sail server, asked by PySpark's Connect client."""

    def __init__(self, session: Any, pid: int) -> None:
        self.name = f"Sail {metadata.version('pysail')}"
        self.pid: int | None = pid
        self._session = session

    def use(self, folders: Folders) -> None:
        """See `System`."""
        for name, folder in folders.items():
            self._session.read.format("delta").load(str(folder)).createOrReplaceTempView(name)

    def query(self, sql: str) -> pa.Table:
        """See `System`."""
        return self._session.sql(sql).toArrow()

    def change(self, sql: str) -> None:
        """A statement that is none to fetch from: it is over when this is."""
        self._session.sql(sql)


class Ours:
    """The gateway, asked by the raw client; `arrow` False takes columnar pages and leaves them as bytes."""

    def __init__(self, client: Client, pid: int, *, arrow: bool = True) -> None:
        self.name = "gateway" if arrow else "gateway, columnar"
        self.pid: int | None = pid
        self._client = client
        self._arrow = arrow

    def use(self, folders: Folders) -> None:
        """See `System`; the folders are in the warehouse, so their schema is only chosen."""
        schemas = {folder.parent.name for folder in folders.values()}
        assert len(schemas) == 1 and all(name == folder.name for name, folder in folders.items())
        self._client.execute(f"USE main.{schemas.pop()}").close()

    def query(self, sql: str) -> pa.Table:
        """See `System`."""
        if self._arrow:
            return self._client.execute(sql).table()
        return pa.table({"rows": [self._client.execute(sql, arrow=False, direct=False).received()]})


class Connector:
    """The gateway, asked by the databricks-sql-connector."""

    name = "gateway, connector"

    def __init__(self, url: str, pid: int, *, links: bool = False) -> None:
        from databricks import sql

        self.pid: int | None = pid
        self._connection = sql.connect(
            server_hostname="localhost",
            http_path=DEFAULT_PATH,
            _connection_uri=url + DEFAULT_PATH,
            access_token="none-needed",
            enable_telemetry=False,
            use_cloud_fetch=links,
            session_configuration=ANEW,
        )
        self._cursor = self._connection.cursor()

    def use(self, folders: Folders) -> None:
        """See `System`."""
        schemas = {folder.parent.name for folder in folders.values()}
        self._cursor.execute(f"USE main.{schemas.pop()}")

    def query(self, sql: str) -> pa.Table:
        """See `System`."""
        table: pa.Table = self._cursor.execute(sql).fetchall_arrow()
        return table

    def close(self) -> None:
        """End the session."""
        self._connection.close()


@contextlib.contextmanager
def gateway_process(*flags: str, warehouse: Path = tables.WAREHOUSE) -> Iterator[tuple[str, int, float]]:
    """A `gateway serve` over a warehouse of the benchmarks: its URL, process id, and seconds from start to ready.

    Its modules are kept compiled, as an installation has them, whatever this process was told: compiling them at each start
    takes two fifths of the processor's time until the first answer.
    """
    tables.WAREHOUSE.mkdir(parents=True, exist_ok=True)
    state = tables.CACHE / "state"
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "gateway", "serve", "--warehouse", str(warehouse), "--port", "0"]
        command += ["--state", str(state), "--ready-file", str(ready), "--log-level", "warning", *flags]
        left_out = ("GATEWAY_", "PYTHONDONTWRITEBYTECODE")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
        try:
            while not ready.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"gateway serve ended with {process.returncode}")
                time.sleep(0.002)
            seconds = time.perf_counter() - start
            yield json.loads(ready.read_text())["http"], process.pid, seconds
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def sail_process() -> Iterator[Sail | None]:
    """A Sail server, or None if it is not installed (extra `bench`)."""
    if util.find_spec("pysail") is None or util.find_spec("pyspark") is None:
        yield None
        return
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = shutil.which("sail", path=str(Path(sys.executable).parent)) or "sail"
    command = [program, "spark", "server", "--ip", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    session: Any = None
    try:
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            if process.poll() is not None:
                raise RuntimeError(f"sail ended with {process.returncode}")
            time.sleep(0.02)
        from pyspark.sql import SparkSession

        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        yield Sail(session, process.pid)
    finally:
        if session is not None:
            session.stop()  # before its server: the client waits minutes for one that is gone
        process.terminate()
        process.wait()


def spark_jars() -> Path:
    """The folder of the Delta jars."""
    from gateway.engine.spark import setup

    return Path(os.environ.get("GATEWAY_SPARK_JARS") or setup.default_folder())


class PlainSpark:
    """Plain PySpark with Delta in a process of its own, with the settings and jars of the gateway's; ends with the block."""

    def __init__(self) -> None:
        self.name = f"Spark {metadata.version('pyspark')}"
        command = [sys.executable, "-c", "from benchmarks.systems import answer_by_spark; answer_by_spark()"]
        # What a Connect client has set for this process would make it another one.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tables.CACHE.parent,
            env=environment,
        )
        self.pid = self._process.pid

    def __enter__(self) -> PlainSpark:
        self.seconds("SELECT 1")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def seconds(self, sql: str, way: str = "arrow") -> float:
        """What a statement takes whose rows are brought here as `arrow` or `rows`, or written as `parquet`.

        Raises RuntimeError with Spark's message.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([sql, way]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Spark ended with {self._process.wait()}")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return float(answer)


def answer_by_spark() -> None:
    """What `PlainSpark` runs: a line of input is a statement and the way of its rows, one of output seconds or an error."""
    from gateway.engine.spark import session, setup

    with tempfile.TemporaryDirectory() as scratch:
        spark = session.start("local[*]", session.settings(setup.check(spark_jars()), Path(scratch), memory=2 << 30))
        for line in sys.stdin:
            sql, way = json.loads(line)
            start = time.perf_counter()
            try:
                found = spark.sql(sql)
                match way:
                    case "arrow":
                        found.toArrow()
                    case "rows":
                        found.collect()
                    case "parquet":
                        found.write.mode("overwrite").parquet(f"{scratch}/written")
                print(json.dumps(time.perf_counter() - start), flush=True)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told to who asked
                print(json.dumps(str(error)), flush=True)
        spark.stop()
