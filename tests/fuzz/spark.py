"""Spark in a JVM of our own, the oracle: a session per case, whole-stage code generation off unless it is asked for."""

from __future__ import annotations

import contextlib
import datetime
import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from gateway.delta.schema import parse_schema, struct_of
from gateway.engine.spark import rows as spark_rows
from gateway.engine.spark import session as spark_session
from gateway.engine.spark import setup
from gateway.engine.spark.errors import as_gateway_error
from gateway.jobs import Parameter
from gateway.sqltypes import StructType
from tests.conformance.session import Result
from tests.fuzz.embedded import columns_of
from tests.fuzz.outcome import Outcome
from tests.fuzz.tree import Case
from tests.live.spark import jars

# Small plans on few rows: planning them costs more than running them.
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
_LONGEST_SECONDS = 20.0
#: The types that parameters have here, as Python values that Spark takes for them.
_PYTHON: dict[str, Callable[[str], Any]] = {"INT": int, "STRING": str, "DATE": datetime.date.fromisoformat}


class Spark:
    """Sessions of a Spark that runs in this process."""

    def __init__(self, root: Any) -> None:
        self._root = root

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: Path, memory: int = 1 << 30) -> Iterator[Spark]:
        """A Spark with a JVM of its own for the block; what it logs goes to a file below `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = spark_session.settings(setup.jar_paths(jars()), folder, memory=memory, extra=QUICK)
        with warnings.catch_warnings():  # pyspark speaks of pandas, which it only imports
            warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="pyspark")
            with spark_session.output_to(folder / "spark.log"):
                root = spark_session.start("local[1]", settings, app="fuzz")
        try:
            yield cls(root)
        finally:
            root.stop()

    def ask(self, case: Case, *, compiled: bool = False) -> Outcome:
        """The answer to the case's last statement, or the first failure of one before it."""
        spark = self._root.newSession()
        spark.conf.set("spark.sql.session.timeZone", case.zone)
        for key, value in (COMPILED if compiled else INTERPRETED).items():
            spark.conf.set(key, value)
        statements = case.statements
        for text in statements[:-1]:
            before = self._one(spark, text)
            if before.kind != "answer":
                return before
        return self._one(spark, statements[-1], case.parameters)

    @contextlib.contextmanager
    def _bounded(self) -> Iterator[None]:
        """Cancels what takes too long, which is then an error like others."""
        watch = threading.Timer(_LONGEST_SECONDS, self._root.sparkContext.cancelAllJobs)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def _one(self, spark: Any, text: str, parameters: Iterable[Parameter] = ()) -> Outcome:
        try:
            frame = spark.sql(text, args=_arguments(tuple(parameters)))
            schema: StructType = struct_of(parse_schema(json.loads(frame._jdf.schema().json())))
            with self._bounded():
                found = Result(schema, list(_batches(frame, schema)))
            return Outcome("answer", columns_of(schema), found.rows())
        except Exception as error:
            told = as_gateway_error(error, text, lambda at: at, lambda name: name)
            if told.condition == "WORKER_LOST":
                raise
            return Outcome("error", condition=told.condition, message=told.message)


def _batches(frame: Any, schema: StructType) -> Iterator[Any]:
    if not schema.fields:
        frame.collect()
        return
    for batch in spark_rows._positional(frame, schema).toArrow().to_batches():
        yield spark_rows._as_ours(batch, schema)


def _arguments(parameters: tuple[Parameter, ...]) -> Any:
    """Values as Python has them, by name or by position."""
    if not parameters:
        return None
    values = [None if p.value is None else _PYTHON[p.type](p.value) for p in parameters]
    if parameters[0].name is None:
        return values
    return {str(p.name): v for p, v in zip(parameters, values, strict=True)}
