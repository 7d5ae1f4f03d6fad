"""One Spark for all statements of a process: sessions, statements side by side, cancel, progress, signs of life."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.engine.base import Definition, Emit, Progress
from gateway.engine.spark import session as sessions
from gateway.engine.spark import setup
from gateway.engine.spark.errors import is_lost
from gateway.engine.spark.mirror import Mirror
from gateway.errors import CanceledError, GatewayError

# Exit codes of the process, which the pool turns into words.
JVM_ENDED, JVM_HUNG = 71, 72
_SILENCE_SECONDS = 12.0  # a JVM that says nothing for this long is given up
_WATCH_SECONDS = 0.2
_IDLE_SECONDS = 1.0
_PROGRESS_SECONDS = 1.0
_KEPT_SESSIONS = 64


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How Spark is started. `memory` is the driver's heap in bytes, `extra` the user's own settings."""

    master: str
    jars: Path
    scratch: Path
    memory: int = 2 << 30
    extra: Mapping[str, str] = field(default_factory=dict)


class SparkSessionSlot:
    """A Spark session of a gateway session: `spark`, a lock for what changes it, its views and current database."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self.lock = threading.Lock()
        self.views: dict[str, object] = {}
        self.definitions: dict[str, Definition] = {}
        self.database = ""


class _Running:
    """A statement on Spark, as the watch sees it."""

    def __init__(self, statement_id: str, emit: Emit, spark: Any) -> None:
        self.statement_id = statement_id
        self.emit = emit
        self.spark = spark
        self.lock = threading.Lock()
        self.over = False
        self.told = 0.0


class SparkEngine:
    """Spark behind `options.master`; `start` before anything else. Everything else is safe from many threads."""

    name = "spark"

    def __init__(self, options: SparkOptions) -> None:
        self.options = options
        self.is_connect = sessions.is_connect(options.master)
        self._root: Any = None
        self._mirror: Mirror | None = None
        self._slots: OrderedDict[object, SparkSessionSlot] = OrderedDict()
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._alive = time.monotonic()

    def start(self) -> None:
        """Start the JVM, or connect. Raises ConfigError with the remedy."""
        options = self.options
        if self.is_connect:
            self._root = sessions.connect(options.master)
        else:
            jars = setup.check(options.jars)
            options.scratch.mkdir(parents=True, exist_ok=True)
            logging = options.scratch / "log4j2.properties"
            logging.write_text(_LOGGING)
            extra = dict(options.extra)
            java = f"-Dlog4j2.configurationFile={logging.as_uri()} {extra.pop('spark.driver.extraJavaOptions', '')}"
            configuration = sessions.settings(jars, options.scratch, memory=options.memory, extra=extra)
            configuration["spark.driver.extraJavaOptions"] = java.strip()
            self._root = sessions.start(options.master, configuration)
        self._mirror = Mirror(self._root)
        self._root.sql("SELECT 1").collect()
        self._alive = time.monotonic()
        for target in (self._watch, self._check_life):
            threading.Thread(target=target, name=f"spark-{target.__name__.strip('_')}", daemon=True).start()

    @property
    def mirror(self) -> Mirror:
        """What Spark knows of databases and tables."""
        assert self._mirror is not None
        return self._mirror

    def slot(self, key: object, settings: Mapping[str, str]) -> SparkSessionSlot:
        """The Spark session for `key`, made with `settings`; those used least recently are let go."""
        with self._lock:
            found = self._slots.get(key)
            if found is None:
                spark = sessions.connect(self.options.master) if self.is_connect else self._root.newSession()
                for name, value in settings.items():
                    spark.conf.set(name, value)
                found = self._slots[key] = SparkSessionSlot(spark)
                if len(self._slots) > _KEPT_SESSIONS:
                    self._slots.popitem(last=False)
            self._slots.move_to_end(key)
            return found

    @contextlib.contextmanager
    def job(self, statement_id: str, pool: str, emit: Emit, spark: Any) -> Iterator[None]:
        """All jobs that this thread starts meanwhile belong to the statement: cancelled with it, counted for its progress."""
        if self.is_connect:
            spark.addTag(statement_id)
        else:
            context = self._root.sparkContext
            context.setJobGroup(statement_id, "statement", True)
            context.setLocalProperty("spark.scheduler.pool", pool)
        running = _Running(statement_id, emit, spark)
        self._running[statement_id] = running
        try:
            yield
        finally:
            with running.lock:
                running.over = True
            self._running.pop(statement_id, None)
            if self.is_connect:
                spark.removeTag(statement_id)

    # ------------------------------------------------------------------------------------------------------ the watch

    def _watch(self) -> None:
        """Cancel what shall stop, tell progress, and notice a JVM that has ended."""
        while True:
            time.sleep(_WATCH_SECONDS if self._running else _IDLE_SECONDS)
            try:
                if not self.is_connect:
                    self._root._jvm.java.lang.System.nanoTime()  # noqa: SLF001 (a call that costs nothing)
                self._alive = time.monotonic()
                for running in list(self._running.values()):
                    self._look_at(running)
            except Exception as error:
                if not is_lost(error):
                    raise
                os._exit(JVM_ENDED)

    def _look_at(self, running: _Running) -> None:
        with running.lock:
            if running.over:
                return
            now = time.monotonic()
            if running.emit.cancelled:
                self._cancel(running)  # again and again: a statement may start another job after the first was stopped
            elif now - running.told >= _PROGRESS_SECONDS:
                running.told = now
                progress = None if self.is_connect else self._progress(running.statement_id)
                if progress is not None:
                    with contextlib.suppress(GatewayError):  # cancelled just now
                        running.emit(progress)

    def _cancel(self, running: _Running) -> None:
        if self.is_connect:
            running.spark.interruptTag(running.statement_id)
        else:
            self._root.sparkContext.cancelJobGroup(running.statement_id)

    def _progress(self, statement_id: str) -> Progress | None:
        tracker = self._root.sparkContext.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(statement_id):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                found = tracker.getStageInfo(stage)
                if found is not None:
                    done += found.numCompletedTasks
                    total += found.numTasks
        return Progress(done / total, f"{done} of {total} tasks") if total else None

    def _check_life(self) -> None:
        """Ends the process when the watch got no answer for too long; touches nothing that could hang."""
        while True:
            time.sleep(1.0)
            if time.monotonic() - self._alive > _SILENCE_SECONDS:
                os._exit(JVM_HUNG)


def cancelled(emit: Emit, error: BaseException) -> BaseException:
    """What a failure is: Spark's own text for a cancelled job has no condition."""
    if emit.cancelled:
        return CanceledError("OPERATION_CANCELED", "The statement was cancelled.")
    return error


_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex{0}
# Errors of statements are reported to their clients.
logger.executor.name = org.apache.spark.executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler
logger.tasks.level = off
logger.writes.name = org.apache.spark.sql.execution.datasources
logger.writes.level = off
logger.util.name = org.apache.spark.util
logger.util.level = off
"""
