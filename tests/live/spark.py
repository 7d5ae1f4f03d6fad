"""A live gateway with Spark as its second engine, and statements on it."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

from gateway.engine.spark import setup
from gateway.engine.spark.masters import is_local
from tests.live.gateway import Server, connect_to, start_server
from tests.live.processes import descendants, eventually

SPARK_SECONDS = 300.0
# Short statements on a cold JVM: compiling them costs more than running them. What the first compiler alone may keep of its
# own accord is too little for Spark.
_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=512m -XX:+UseSerialGC"
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.driver.extraJavaOptions": _JVM,
}


def jars() -> Path:
    """The folder of the Delta jars: GATEWAY_SPARK_JARS, else the cache folder."""
    given = os.environ.get("GATEWAY_SPARK_JARS")
    return Path(given) if given else setup.default_folder()


def missing() -> str | None:
    """Why no Spark can be started here; None if one can."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    found = [problem.detail for problem in setup.problems(jars())]
    return "; ".join(found) or None


def quick_flags(folder: Path) -> tuple[str, ...]:
    """The setting of a gateway whose Spark is `QUICK`; the file is kept in `folder`."""
    properties = folder / "spark.properties"
    folder.mkdir(parents=True, exist_ok=True)
    properties.write_text("".join(f"{key} {value}\n" for key, value in QUICK.items()), encoding="utf-8")
    return ("--spark-properties", str(properties))


def start_with_spark(folder: Path, *flags: str, master: str = "local[2]") -> Server:
    """A gateway with Spark, made `QUICK` where it is its own; Spark itself starts with the first statement that needs it."""
    if is_local(master) and "--spark-properties" not in flags:
        flags = (*quick_flags(folder), *flags)
    return start_server(folder, "--spark", master, "--memory-limit", "1GiB", *flags)


class Sql:
    """A connection that runs statements on the engine that the method says."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.engine = ""

    def auto(self, text: str, *parameters: Any, **named: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement on the engine that the gateway chooses."""
        return self._run("auto", text, parameters, named)

    def spark(self, text: str, *parameters: Any, **named: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement on Spark."""
        return self._run("spark", text, parameters, named)

    def embedded(self, text: str, *parameters: Any, **named: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement on the embedded engine."""
        return self._run("datafusion", text, parameters, named)

    def _run(self, engine: str, text: str, positional: tuple[Any, ...], named: dict[str, Any]) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            if engine != self.engine:
                cursor.execute(f"SET gateway.engine = {engine}")
                self.engine = engine
            cursor.execute(text, list(positional) or named or None)
            return [tuple(row) for row in cursor.fetchall()]


def jvm_of(server: Server) -> int | None:
    """The process id of the gateway's JVM, None if it has none."""
    below = descendants(server.process.pid).items()
    # Before it, short ones tell their version and write its command.
    java = [pid for pid, line in below if line.split(" ")[0].endswith("java") and "org.apache.spark.deploy" in line]
    return java[0] if java else None


def scratch(server: Server) -> list[str]:
    """Files of results that Spark has written and nobody has read yet."""
    base = server.log.parent / "state" / "spark"
    return [str(p) for p in base.glob("*/result-*")]


class Background(threading.Thread):
    """Runs a statement on Spark over a connection of its own; `cancel` may come from another thread."""

    left: ClassVar[list[Background]] = []

    def __init__(self, server: Server, text: str, setting: str = "SET gateway.engine = spark") -> None:
        super().__init__(daemon=True)
        # Few attempts: a test may kill the server before it closes this.
        self.connection = connect_to(server, _retry_stop_after_attempts_count=2, _retry_delay_max=5)
        self.cursor = self.connection.cursor()
        self.cursor.execute(setting)
        self.before = self.operation
        self.text = text
        self.rows: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.ended: float | None = None
        self.left.append(self)
        self.start()

    def run(self) -> None:
        """See `threading.Thread`."""
        try:
            self.cursor.execute(self.text)
            self.rows = [tuple(r) for r in self.cursor.fetchall()]
        except Exception as error:  # noqa: BLE001 - told to the test
            self.error = error
        self.ended = time.monotonic()

    @property
    def operation(self) -> str:
        """The id of what the cursor runs or has run, "" if there is none."""
        found = self.cursor.active_command_id
        return found.to_hex_guid() if found is not None else ""

    def cancel(self) -> float:
        """Ask the server to stop it, once its handle is known; when that was."""
        eventually(lambda: self.operation not in ("", self.before), 60)
        asked = time.monotonic()
        self.cursor.cancel()
        return asked

    def close(self) -> None:
        """End the thread and its connection."""
        self.join(60)
        assert not self.is_alive()
        self.connection.close()
        self.left.remove(self)

    @classmethod
    def end_all(cls) -> None:
        """Close the connections that a failed test has left, which ends their statements."""
        while cls.left:
            cls.left.pop().connection.close()
