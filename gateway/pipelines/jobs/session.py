"""The Spark session of a job, and Spark's errors as ours."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.config import Config
from gateway.engine.spark import session, setup
from gateway.errors import ConfigError, GatewayError, ServerError, UserError
from gateway.observability import mask
from gateway.pipelines.jobs.report import Say

LOCAL = "local[*]"
# Conditions of Spark whose SQLSTATE class says that the statement or its data are at fault.
_USER_CLASSES = ("22", "23", "42", "0A", "P0")


@contextmanager
def spark_session(
    config: Config, say: Say, *, jars: Sequence[Path] = (), extra: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """A session for the length of a job: in a JVM of its own, or of a Connect server if the setting `spark` names one.

    Args:
        config: the settings `spark`, `spark_jars`, `spark_memory` and `state` are used.
        say: told that Spark starts.
        jars: more jars, drivers of databases for instance.
        extra: more settings of Spark.

    Raises:
        ConfigError: what Spark needs is missing, or it does not start.
    """
    master = config.spark or LOCAL
    if session.is_connect(master):
        if jars:
            raise ConfigError("jar", f"a server at {master} brings its own jars")
        problem = setup.pyspark_problem()
        if problem is not None:
            raise ConfigError("spark", problem.detail)
        say(f"connecting to Spark at {master}")
        spark = session.connect(master)
        try:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
            yield spark
        finally:
            spark.stop()
        return
    for jar in jars:
        if not jar.is_file():
            raise ConfigError("jar", f"{jar} is not a file")
    found = [*setup.check(config.spark_jars or setup.default_folder()), *jars]
    config.state.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=config.state, prefix="spark-", ignore_cleanup_errors=True) as scratch:
        say(f"starting Spark on {master}")
        settings = session.settings(found, Path(scratch), memory=config.spark_memory, extra=extra)
        spark = session.start(master, settings)
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def spark_errors(doing: str) -> Iterator[None]:
    """Spark's exceptions as GatewayError with Spark's condition and SQLSTATE; `doing` says what failed."""
    from pyspark.errors import PySparkException

    try:
        yield
    except GatewayError:
        raise
    except PySparkException as error:
        raise _translated(error, doing) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("py4j", "grpc"):  # the JVM's own exceptions, or a lost server
            raise ServerError("INTERNAL_ERROR", f"{doing}: {mask(session.first_line(error))}") from error
        raise


def _translated(error: Any, doing: str) -> GatewayError:
    condition = error.getCondition() or "INTERNAL_ERROR"
    state = error.getSqlState()
    kind = UserError if state and state.startswith(_USER_CLASSES) else ServerError
    text = _message(error, condition, state)
    return kind(condition, f"{doing}: {text}", sqlstate=state)


def _message(error: Any, condition: str, state: str | None) -> str:
    """Spark's sentence without condition, SQLSTATE, position and the picture of the statement."""
    # Not getMessage(): the JVM cannot tell the texts of Delta's own conditions.
    text = str(error).split("\n\n== SQL")[0].split("\n== SQL")[0].split("\nJVM stacktrace")[0].strip()
    text = text.removeprefix(f"[{condition}]").strip()
    if state:
        text = text.split(f" SQLSTATE: {state}")[0]
    return " ".join(text.split())[:2000] or session.first_line(error)
