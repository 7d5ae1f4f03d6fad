"""One Spark for all statements of a process: sessions, statements side by side, cancel, progress, signs of life."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway import observability
from gateway.engine.base import Definition, Emit, Progress
from gateway.engine.spark import masters, measures, pods, setup
from gateway.engine.spark import session as sessions
from gateway.engine.spark.errors import is_forgotten, is_lost
from gateway.engine.spark.java import java_class
from gateway.engine.spark.mirror import Mirror
from gateway.errors import CanceledError, ConfigError, GatewayError

_SILENCE_SECONDS = 12.0  # a JVM or a Connect server that says nothing for this long is given up
_EXECUTORS_SECONDS = 120.0  # for the first one, beside spark.scheduler.maxRegisteredResourcesWaitingTime
_ALONE_SECONDS = 2.0  # without executors until that is told
_WATCH_SECONDS = 0.2
_ASK_SECONDS = 1.0  # how often a Connect server is asked for a sign of life
_IDLE_SECONDS = 1.0
_PROGRESS_SECONDS = 1.0
_LEFT_SECONDS = 10.0  # for tasks of a statement that has failed, or was cancelled
_SETTLED_SECONDS = 2.0  # until Spark's figures tell of all tasks that were begun
_LONG_SECONDS = 0.2  # as on the embedded engine
_KEPT_SESSIONS = 64
_POOLS = 64  # sessions beyond share some
_EXIT_SECONDS = 3.0  # between the end of a JVM's sockets and its own
_OUT_OF_MEMORY = 52  # Spark's exit code for it


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How Spark is started. `memory` is the driver's heap in bytes, `extra` the user's own settings."""

    master: str
    jars: Path
    scratch: Path
    memory: int = 2 << 30
    extra: Mapping[str, str] = field(default_factory=dict)


class SparkSessionSlot:
    """A Spark session of one statement after the other: `spark`, and what it was brought to: views, current database …

    `functions` are the lasting ones that it may have looked up, by database and name: as which, it keeps for ever.
    """

    def __init__(self, spark: Any, settings: Mapping[str, str]) -> None:
        self.settings = settings
        self.fill(spark)

    def fill(self, spark: Any) -> None:
        """Have another session, which holds nothing."""
        self.spark = spark
        self.views: dict[str, object] = {}
        self.definitions: dict[str, Definition] = {}
        self.functions: dict[tuple[str, str], object] = {}
        self.database = ""

    def is_behind(self, functions: Mapping[tuple[str, str], object]) -> bool:
        """Whether it may know one of these as what it was before."""
        return any(self.functions.get(key, state) != state for key, state in functions.items())


class _Running:
    """A statement on Spark, as the watch sees it."""

    def __init__(self, statement_id: str, emit: Emit, spark: Any) -> None:
        self.statement_id = statement_id
        self.emit = emit
        self.spark = spark
        self.lock = threading.Lock()
        self.began = time.time()
        self.over = False
        self.told = 0.0
        self.fraction = 0.0  # never goes back, though later stages add tasks


class SparkEngine:
    """Spark behind `options.master`; `start` before anything else. Everything else is safe from many threads."""

    name = "spark"

    def __init__(self, options: SparkOptions) -> None:
        self.options = options
        self.is_connect = masters.is_connect(options.master)
        self._root: Any = None
        self._mirror: Mirror | None = None
        self._free: list[tuple[object, SparkSessionSlot]] = []  # the most recently used last
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._left: dict[str, float] = {}  # statements that did not end well, whose tasks may go on, and since when
        self._alive = time.monotonic()
        self._manned = time.monotonic()  # when a statement last had executors, or needed none
        self._reached = 0.0  # when a master was last asked for want of executors

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
            extra = {**(sessions.LOCAL if masters.is_local(options.master) else {}), **options.extra}
            java = _java_options(logging, options.scratch / "tmp", extra.pop("spark.driver.extraJavaOptions", ""))
            configuration = sessions.settings(jars, options.scratch, memory=options.memory, extra=extra)
            configuration["spark.driver.extraJavaOptions"] = java
            pools = options.scratch / "pools.xml"
            pools.write_text(_pools())
            configuration.setdefault("spark.scheduler.allocation.file", f"file:{pools}")  # nothing of it is decoded
            self._root = sessions.start(options.master, configuration)
        sessions.refuse_classes()
        self._mirror = Mirror(self._root)
        self._prove()
        self._alive = time.monotonic()
        for target in (self._watch, self._check_life):
            threading.Thread(target=target, name=f"spark-{target.__name__.strip('_')}", daemon=True).start()

    def _prove(self) -> None:
        """Run a first job. For executors that do not come Spark itself would wait for ever, and tell nobody why."""
        given_up = threading.Event()

        def give_up() -> None:
            given_up.set()
            self._root.sparkContext.cancelAllJobs()

        alone = threading.Timer(_EXECUTORS_SECONDS, give_up)
        if masters.has_executors(self.options.master):
            alone.start()
        try:
            self._root.sql("SELECT 1").collect()
        except Exception as error:
            if not given_up.is_set():
                raise
            reason = ""
            with contextlib.suppress(Exception):  # a cluster that does not tell
                reason = pods.why_none_runs(self._root.sparkContext)
            told = f"no executor of {self.options.master} came within {_EXECUTORS_SECONDS:g} seconds"
            raise ConfigError("spark", f"{told}: {reason}" if reason else told) from error
        finally:
            alone.cancel()

    @property
    def mirror(self) -> Mirror:
        """What Spark knows of databases and tables."""
        assert self._mirror is not None
        return self._mirror

    @contextlib.contextmanager
    def slot(self, key: object, settings: Mapping[str, str]) -> Iterator[SparkSessionSlot]:
        """A Spark session that nobody else uses meanwhile: one that served `key` before, else a new one with `settings`."""
        slot = self._kept(key) or SparkSessionSlot(self._new_session(settings), settings)
        try:
            yield slot
        finally:
            with self._lock:
                self._free.append((key, slot))
                surplus = self._free.pop(0)[1] if len(self._free) > _KEPT_SESSIONS else None
            if surplus is not None and self.is_connect:
                surplus.spark.stop()

    def _kept(self, key: object) -> SparkSessionSlot | None:
        """A slot that served `key`. A Connect server drops sessions that nobody used for long; new slots are filled again."""
        while (slot := self._take(key)) is not None:
            failure = _failure(slot.spark) if self.is_connect else None
            if failure is None:
                return slot
            self.end_if_lost(failure)
            slot.spark.client.close()
        return None

    def _take(self, key: object) -> SparkSessionSlot | None:
        with self._lock:
            for i in range(len(self._free) - 1, -1, -1):
                if self._free[i][0] == key:
                    return self._free.pop(i)[1]
        return None

    def renew(self, slot: SparkSessionSlot, statement_id: str) -> None:
        """Give the slot of a statement that runs another session."""
        old = slot.spark
        slot.fill(self._new_session(slot.settings))
        running = self._running[statement_id]
        with running.lock:
            running.spark = slot.spark
        if self.is_connect:
            slot.spark.addTag(statement_id)
            old.stop()

    def _new_session(self, settings: Mapping[str, str]) -> Any:
        spark = sessions.connect(self.options.master) if self.is_connect else self._root.newSession()
        for name, value in settings.items():
            spark.conf.set(name, value)
        return spark

    @contextlib.contextmanager
    def job(self, statement_id: str, session_id: str, user: str, emit: Emit, spark: Any) -> Iterator[None]:
        """All jobs that this thread starts meanwhile belong to the statement: cancelled with it, counted for its progress.

        Sessions share the cores fairly, and so do the statements of one. `user` is whom functions tell.
        """
        if self.is_connect:
            spark.addTag(statement_id)
        else:
            context = self._root.sparkContext
            context.setJobGroup(statement_id, statement_id, True)
            context.setLocalProperty("spark.scheduler.pool", _pool_of(session_id))
            # A column may be called user, so that the name alone can't be refused where it means the function.
            java_class(self._root, "org.apache.spark.sql.catalyst.CurrentUserContext").CURRENT_USER().set(user)
        running = _Running(statement_id, emit, spark)
        self._running[statement_id] = running
        try:
            yield
        except BaseException:
            if not self.is_connect:
                self._left[statement_id] = time.monotonic()
                with contextlib.suppress(Exception):  # a JVM that is gone has no tasks left
                    self._root.sparkContext.cancelJobGroup(statement_id)
            raise
        finally:
            with running.lock:
                running.over = True
            self._running.pop(statement_id, None)
            if self.is_connect:
                running.spark.removeTag(statement_id)

    def begin(self, statement_id: str) -> None:
        """All is there that a statement needs: what runs from now on is its own work."""
        if (running := self._running.get(statement_id)) is not None:
            running.began = time.time()

    def measured(self, statement_id: str) -> list[dict[str, Any]]:
        """What the operators of a statement's plan did, if it ran for long and Spark tells: behind Connect it does not."""
        running = self._running.get(statement_id)
        if self.is_connect or running is None or time.time() - running.began < _LONG_SECONDS:
            return []
        try:
            return [each.told() for each in measures.plan_of(running.spark, statement_id, int(running.began * 1000))]
        except Exception as error:  # noqa: BLE001 - the statement has done its work, whatever is told of it
            self.end_if_lost(error)
            observability.log("Spark's plan is not known", "warning", error=repr(error)[:500])
            return []

    def _watch(self) -> None:
        """Cancel what shall stop, tell progress, and notice a JVM or a server that has ended."""
        while True:
            time.sleep(_WATCH_SECONDS if self._running or self._left else _IDLE_SECONDS)
            try:
                self._listen()
                for running in list(self._running.values()):
                    self._look_at(running)
                self._end_if_alone()
                self._end_if_stuck()
            except Exception as error:  # noqa: BLE001 - one look that fails must not be the last
                self.end_if_lost(error)
                observability.log("Spark's progress is not known", "warning", error=repr(error)[:500])

    def _listen(self) -> None:
        """Wait for a sign of life. Being asked also keeps a Connect server from dropping the first session."""
        if not self.is_connect:
            java_class(self._root, "java.lang.System").nanoTime()  # a call that costs nothing
        elif time.monotonic() - self._alive < _ASK_SECONDS:
            return
        elif (failure := _failure(self._root)) is not None:
            raise failure
        self._alive = time.monotonic()

    def end_if_lost(self, error: BaseException) -> None:
        """End the process if Spark is gone: its jobs are lost, and the next process starts or connects anew.

        A Connect server that has forgotten one session is there as long as it knows the first one.
        """
        if is_forgotten(error) and _failure(self._root) is None:
            return
        if is_lost(error) or self._is_stopped():
            os._exit(sessions.SERVER_GONE if self.is_connect else self._jvm_end())

    def _end_if_alone(self) -> None:
        """End the process if statements wait for executors that no master will bring: Spark itself would wait for ever."""
        now = time.monotonic()
        if not masters.has_executors(self.options.master) or not self._running:
            self._manned = now
            return
        if self._root.sparkContext._jsc.sc().getExecutorMemoryStatus().size() > 1:  # noqa: SLF001 (the driver is one)
            self._manned = now
        elif now - max(self._manned, self._reached) > _SILENCE_SECONDS:
            self._reached = now
            try:
                masters.reach(self.options.master)
            except ConfigError:
                self._end(sessions.CLUSTER_GONE)

    def _end_if_stuck(self) -> None:
        """End the process if tasks of a statement that is over go on: nothing stops a loop of Java's, and cores are for all."""
        now = time.monotonic()
        for statement_id, since in list(self._left.items()):
            if now - since > _SETTLED_SECONDS and not any(s.numActiveTasks for s in self._stages(statement_id)):
                self._left.pop(statement_id)
            elif now - since > _LEFT_SECONDS:
                self._end(sessions.TASKS_STUCK)

    def _end(self, code: int) -> None:
        """End the process together with a JVM that would not, or not soon, end by itself."""
        if not self.is_connect:
            self._root.sparkContext._gateway.proc.kill()  # noqa: SLF001 (pyspark has no public name)
        os._exit(code)

    def close_leaked_files(self) -> None:
        """Writers that failed leave their files open, which hold the space of a full disk until they are garbage."""
        if not self.is_connect:
            java_class(self._root, "java.lang.System").gc()

    def _is_stopped(self) -> bool:
        """Whether the JVM is on its way out, as it is once its memory is used up: what fails meanwhile fails in any way."""
        try:
            return not self.is_connect and bool(self._root.sparkContext._jsc.sc().isStopped())  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - a JVM that does not answer is one more way
            return is_lost(error)

    def _jvm_end(self) -> int:
        process = self._root.sparkContext._gateway.proc  # noqa: SLF001 (pyspark has no public name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process.wait(_EXIT_SECONDS) == _OUT_OF_MEMORY:
                return sessions.JVM_MEMORY
        return sessions.JVM_ENDED

    def _look_at(self, running: _Running) -> None:
        with running.lock:
            if running.over:
                return
            now = time.monotonic()
            if running.emit.cancelled:
                self._cancel(running)  # again and again: a statement may start another job after the first was stopped
            elif now - running.told >= _PROGRESS_SECONDS:
                running.told = now
                progress = None if self.is_connect else self._progress(running)
                if progress is not None:
                    with contextlib.suppress(GatewayError):  # cancelled just now
                        running.emit(progress)

    def _cancel(self, running: _Running) -> None:
        if self.is_connect:
            running.spark.interruptTag(running.statement_id)
        else:
            self._root.sparkContext.cancelJobGroup(running.statement_id)

    def _progress(self, running: _Running) -> Progress | None:
        done = total = 0
        for stage in self._stages(running.statement_id):
            done += stage.numCompletedTasks
            total += stage.numTasks
        if not total:
            return None
        running.fraction = max(running.fraction, done / total)
        alone = time.monotonic() - self._manned > _ALONE_SECONDS
        return Progress(running.fraction, "Waiting for executors" if alone else f"{done} of {total} tasks")

    def _stages(self, statement_id: str) -> Iterator[Any]:
        """What Spark tells of the stages of a statement."""
        tracker = self._root.sparkContext.statusTracker()
        for job in tracker.getJobIdsForGroup(statement_id):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                found = tracker.getStageInfo(stage)
                if found is not None:
                    yield found

    def _check_life(self) -> None:
        """Ends the process when the watch got no answer for too long; touches nothing that could hang."""
        while True:
            time.sleep(1.0)
            if time.monotonic() - self._alive > _SILENCE_SECONDS:
                self._end(sessions.SERVER_GONE if self.is_connect else sessions.JVM_HUNG)


def _failure(spark: Any) -> Exception | None:
    """Why a Connect server does not answer in a session; None if it does."""
    try:
        spark.conf.get("spark.sql.ansi.enabled")  # its version a server tells without looking for the session
    except Exception as error:  # noqa: BLE001 - for the caller to judge
        return error
    return None


def cancelled(emit: Emit, error: BaseException) -> BaseException:
    """What a failure is: Spark's own text for a cancelled job has no condition."""
    if emit.cancelled:
        return CanceledError("OPERATION_CANCELED", "The statement was cancelled.")
    return error


def _pool_of(session_id: str) -> str:
    return f"sessions-{zlib.crc32(session_id.encode()) % _POOLS}"


def _java_options(logging: Path, temporary: Path, extra: str) -> str:
    """What the JVM is started with, as Spark splits it. Its temporary files lie in `temporary`, which is made.

    A JVM that is killed removes none of them: of each one there would be libraries and folders left in those of the machine.
    """
    temporary.mkdir(exist_ok=True)
    quoted = str(temporary).replace("\\", "\\\\").replace('"', '\\"')
    return f'-Dlog4j2.configurationFile={logging.as_uri()} "-Djava.io.tmpdir={quoted}" {extra}'.strip()


def _pools() -> str:
    """Spark's allocation file. Pools that it does not name are FIFO inside: their first jobs take every free core."""
    fair = "<schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare>"
    pools = "".join(f'<pool name="sessions-{number}">{fair}</pool>' for number in range(_POOLS))
    return f'<?xml version="1.0"?><allocations>{pools}</allocations>'


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
# Why Kubernetes refuses executors is told nowhere else.
appender.cause.type = Console
appender.cause.name = cause
appender.cause.target = SYSTEM_ERR
appender.cause.layout.type = PatternLayout
appender.cause.layout.pattern = spark: %p %c{1}: %m %ex{short.message}%n
logger.kubernetes.name = org.apache.spark.scheduler.cluster.k8s
logger.kubernetes.level = error
logger.kubernetes.additivity = false
logger.kubernetes.appenderRef.cause.ref = cause
logger.writes.name = org.apache.spark.sql.execution.datasources
logger.writes.level = off
logger.delta.name = org.apache.spark.sql.delta.files
logger.delta.level = off
logger.hadoop.name = org.apache.spark.internal.io
logger.hadoop.level = off
logger.util.name = org.apache.spark.util
logger.util.level = off
"""
