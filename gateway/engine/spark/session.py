"""Spark sessions: the settings that make Spark mean what the gateway promises, a JVM of our own, or a Connect server."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.config.session import DEFAULT_ZONE
from gateway.engine.spark.java import keep_classes
from gateway.engine.spark.masters import find, has_executors, is_local, reach
from gateway.errors import ConfigError

_RETRIES = 5  # some 5 s: pyspark's own 15 take ten minutes
# Exit codes of the process that owns Spark, and their meaning.
JVM_ENDED, JVM_HUNG, JVM_MEMORY, SERVER_GONE, CLUSTER_GONE, TASKS_STUCK = 71, 72, 73, 74, 75, 76
ENDS: Mapping[int, str] = {
    JVM_ENDED: "its JVM ended",
    JVM_HUNG: "it did not answer",
    JVM_MEMORY: "its JVM ran out of memory: see --spark-memory",
    SERVER_GONE: "its Connect server is gone, or did not answer",
    TASKS_STUCK: "tasks of a statement that was over did not end",
    CLUSTER_GONE: "its executors are gone and its master does not answer",
}
# Logged by PySpark itself as a line of JSON with the whole Java stack trace for every failing statement.
_NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

# What the meaning of statements depends on; also set in sessions of a Connect server that others configured.
SEMANTICS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.caseSensitive": "false",
    # Else `${…}` in a statement becomes a variable of the process or a setting, behind every check of the text.
    "spark.sql.variable.substitute": "false",
    # Without it, parameters stay unbound under the Delta extension.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_DELTA: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
LOCAL: Mapping[str, str] = {
    # VACUUM and its kin list folders with as many tasks as this says, 10,000 by default, one by one where cores are few.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
    # All of this machine reaches the driver's ports, which make objects of what comes: not before its own secret is known.
    "spark.authenticate": "true",
}
_QUIET: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def settings(
    jars: Sequence[Path],
    scratch: Path,
    *,
    memory: int = 2 << 30,
    connect_port: int | None = None,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The configuration of a Spark that the gateway starts.

    Args:
        jars: the Delta jars.
        scratch: an existing folder of its own for the warehouse of stray tables, shuffles and spilled data.
        memory: heap of the driver, bytes.
        connect_port: also serve Spark Connect on this loopback port (no authentication); 0 takes a free one.
        extra: the user's settings; they win, but for SEMANTICS.
    """
    paths = ":".join(str(jar) for jar in jars)
    found = {
        "spark.driver.memory": f"{memory >> 20}m",
        # Not spark.jars: those come too late for the session extensions of a Connect server in the same JVM.
        "spark.driver.extraClassPath": paths,
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.sql.warehouse.dir": f"file:{scratch / 'warehouse'}",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.session.timeZone": DEFAULT_ZONE,
        "spark.sql.shuffle.partitions": "4",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.artifact.isolation.enabled": "false",
        **_DELTA,
        **_QUIET,
    }
    if connect_port is not None:
        found |= {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(connect_port),
            "spark.sql.connect.serverStacktrace.enabled": "false",
        }
    return {**found, **(extra or {}), **SEMANTICS}


def configure(spark: Any, key: str, value: str | None) -> None:
    """Give a session's setting a value; None: the one that sessions start with."""
    value = SEMANTICS.get(key) if value is None else value
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)


def start(master: str, configuration: Mapping[str, str], app: str = "delta-sql-gateway") -> Any:
    """A classic SparkSession with a JVM of its own, which ends when this process does. Takes 5 to 60 s.

    One with a cluster is no member of this process' group, so that it gives its executors back where the group is killed.

    Raises ConfigError if the JVM or the connection to the master cannot be had.
    """
    quieten()
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if not is_local(master):
        find(master)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else it listens on the machine's first address
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.pop("SPARK_REMOTE", None)
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in configuration.items():
        builder = builder.config(key, value)
    try:
        if has_executors(master) and SparkContext._gateway is None:  # noqa: SLF001 (pyspark has no public door)
            conf = SparkConf().setMaster(master).setAll(list(configuration.items()))
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"process_group": 0}))  # noqa: SLF001
        spark = builder.getOrCreate()
        keep_classes(spark)
        return spark
    except PySparkException as error:
        told = f"Spark does not start on {master}: {first_line(error)}"
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            told = (
                f"The JVM of Spark ended as it began; why stands in this server's standard error ({first_line(error)})"
            )
        raise ConfigError("spark", told) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "py4j":  # the JVM's own exceptions, of any kind
            told = f"Spark does not start on {master}: {first_line(error)}"
            if has_executors(master):
                told += "; more stands in this server's standard error"
            raise ConfigError("spark", told) from error
        raise


def connect(url: str) -> Any:
    """A session of a Connect server (``sc://host:port``). Raises ConfigError if it does not answer."""
    quieten()
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    where = reach(url)
    try:
        session = SparkSession.builder.remote(url).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
        for key, value in SEMANTICS.items():
            session.conf.set(key, value)
    except (PySparkException, OSError, ValueError) as error:
        raise ConfigError("spark", f"{where} does not answer: {first_line(error)}") from error
    return session


def quieten() -> None:
    """No Java stack traces of failing statements on standard error: their errors are reported as such. No advice on pandas."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def refuse_classes() -> None:
    """No module is imported, and no class made, because a schema in somebody's file names it as the type of a column."""
    from pyspark.errors import PySparkValueError
    from pyspark.sql.types import UserDefinedType

    def refused(_: type, _json: dict[str, Any]) -> UserDefinedType:
        raise PySparkValueError(
            errorClass="UNSUPPORTED_OPERATION", messageParameters={"operation": "data types that users have defined"}
        )

    UserDefinedType.fromJson = classmethod(refused)


def first_line(error: BaseException) -> str:
    """The line of an exception's text that tells most, without the JVM's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("Caused by:", ": ")) or "Exception:" in line]
    return (told or lines or [type(error).__name__])[0].lstrip(": ")[:500]


@contextlib.contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Children started in the block write to `log` instead of our standard output and error."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for number in (descriptor, *saved):
            os.close(number)
