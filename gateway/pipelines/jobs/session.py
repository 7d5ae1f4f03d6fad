"""The Spark session of a job, and Spark's errors as ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.config import Config
from gateway.engine import spill
from gateway.engine.spark import masters, session, setup
from gateway.engine.spark.errors import as_gateway_error, is_lost, tells_full_disk
from gateway.engine.spark.properties import read_properties
from gateway.errors import ConfigError, GatewayError, ServerError, disk_full
from gateway.observability import mask
from gateway.pipelines.jobs.report import Say

LOCAL = "local[*]"
# Of a JVM of our own. Spark's own lines on standard error are not wanted: what fails is reported by the job.
_LOCAL = {"spark.log.level": "FATAL", **session.LOCAL}
_TOLD_LINES = 10
# SQLSTATE class of commits that another writer was faster than.
_CONFLICTS = "2D"


@contextmanager
def spark_session(config: Config, say: Say, *, jars: Sequence[Path] = ()) -> Iterator[Any]:
    """A session for the length of a job: in a JVM of its own, or of a Connect server if the setting `spark` names one.

    Args:
        config: the settings `spark`, `spark_…` and `state` are used.
        say: told that Spark starts.
        jars: more jars, drivers of databases for instance.

    Raises:
        ConfigError: what Spark needs is missing, or it does not start.
    """
    master = config.spark or LOCAL
    if masters.is_connect(master):
        if jars:
            raise ConfigError("jar", f"a server at {master} brings its own jars")
        problem = setup.connect_problem()
        if problem is not None:
            raise ConfigError("spark", problem.detail)
        say(f"connecting to Spark at {master}")
        spark = session.connect(master)
        try:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
            yield spark
        finally:
            _stop(spark)
        return
    for jar in jars:
        if not jar.is_file():
            raise ConfigError("jar", f"{jar} is not a file")
    found = [*setup.check(config.spark_jars or setup.default_folder()), *jars]
    with spill.claimed(config.state / "jobs") as scratch:
        say(f"starting Spark on {master}")
        given = read_properties(config.spark_properties) if config.spark_properties is not None else {}
        extra = {**_LOCAL, **given}
        log = scratch / "spark.log"
        try:
            with session.output_to(log):
                spark = session.start(master, session.settings(found, scratch, memory=config.spark_memory, extra=extra))
        except ConfigError as error:
            if tells_full_disk(error.message):
                raise disk_full(f"Spark does not start: no space left on the disk of {config.state}.") from error
            raise ConfigError("spark", f"{error.message.removeprefix('spark: ')}{_said(log)}") from error
        process = spark.sparkContext._gateway.proc  # noqa: SLF001 (pyspark has no public name)
        try:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
            yield spark
        finally:
            if process.poll() is not None:
                say(f"Spark has ended with exit code {process.returncode}{_said(log)}")
            _stop(spark)


def _stop(spark: Any) -> None:
    """End a session; of a Spark that is gone nothing is said, which would stand in the place of what was said of that."""
    try:
        spark.stop()
    except Exception as error:
        if not is_lost(error):
            raise


def _said(log: Path) -> str:
    """What Spark has told last on its standard error, which nobody sees otherwise."""
    lines = log.read_text(errors="replace").strip().splitlines()[-_TOLD_LINES:]
    return "".join(f"\n  {line}" for line in lines)


@contextmanager
def spark_errors(doing: str) -> Iterator[None]:
    """Spark's exceptions as GatewayError with Spark's condition and SQLSTATE; `doing` says what failed."""
    try:
        yield
    except GatewayError:
        raise
    except Exception as error:
        from pyspark.errors import PySparkException

        # The JVM's own exceptions, or a server that was lost.
        of_spark = isinstance(error, PySparkException) or type(error).__module__.partition(".")[0] in ("py4j", "grpc")
        if of_spark or isinstance(error, ConnectionError):
            found = _as_ours(error)
            if isinstance(found, ServerError):
                found = _as_ours(_cause(error))
            if found.sqlstate.startswith(_CONFLICTS):
                found = ServerError(found.condition, found.message, sqlstate=found.sqlstate, retryable=True)
            found.message = f"{doing}: {mask(' '.join(found.message.split()))}"
            raise found from error
        raise


def _as_ours(error: Exception) -> GatewayError:
    return as_gateway_error(error, "", lambda offset: offset, lambda text: text)


def _cause(error: Exception) -> Exception:
    """The innermost exception of the JVM that names a condition: those around it say that a task or a job failed."""
    from pyspark.errors.exceptions.captured import UnknownException

    java, found = getattr(error, "java_exception", None) or getattr(error, "_origin", None), error
    while java is not None:
        here = UnknownException(origin=java)  # of any class, Delta's too
        if here.getCondition():
            found = here
        java = java.getCause()
    return found
