"""What Spark is told of a session's settings, and under which of them a text is read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gateway.config.session import (
    DEFAULT_ZONE,
    DELETION_VECTORS,
    GROUP_BY_ALIASES,
    GROUP_BY_ORDINAL,
    ORDER_BY_ORDINAL,
    OVERWRITE_MODE,
    PRECISION_LOSS,
    TIMEZONE,
    default_settings,
    honoured_by_spark,
    is_tuning,
)
from gateway.engine.base import Statement, TempView
from gateway.engine.spark.engine import SparkSessionSlot
from gateway.engine.spark.session import configure
from gateway.runner.context import context_of, meaning_of

#: Settings of a session under which a text may mean something else, with Spark's names.
SPARK_SETTINGS = {
    TIMEZONE: "spark.sql.session.timeZone",
    GROUP_BY_ALIASES: GROUP_BY_ALIASES,
    GROUP_BY_ORDINAL: GROUP_BY_ORDINAL,
    ORDER_BY_ORDINAL: ORDER_BY_ORDINAL,
    PRECISION_LOSS: PRECISION_LOSS,
}


def settings_of(job: Statement) -> dict[str, str]:
    """Spark's settings for those of the gateway's session that it knows."""
    found = honoured_by_spark(job.session.settings)
    for key, value in job.session.settings.items():
        if key in SPARK_SETTINGS:
            found[SPARK_SETTINGS[key]] = value
        elif key in (OVERWRITE_MODE, DELETION_VECTORS) or (
            is_tuning(key) and key.startswith("spark.sql.") and not key.startswith("spark.sql.codegen.")
        ):
            found[key] = value
    found.setdefault(DELETION_VECTORS, default_settings()[DELETION_VECTORS])
    return found


def session_key(job: Statement, settings: dict[str, str]) -> tuple[object, ...]:
    """Statements with equal keys may share a Spark session: what it holds then means the same to both."""
    state = job.session
    return (state.session_id, state.catalog, state.schema, tuple(sorted(settings.items())))


def kept_settings(job: Statement) -> dict[str, str]:
    """What a text's meaning depends on, those that only Spark honours under its names."""
    return {**meaning_of(context_of(job.session)), **honoured_by_spark(job.session.settings)}


@contextlib.contextmanager
def as_made(slot: SparkSessionSlot, job: Statement, view: TempView) -> Iterator[None]:
    """The settings that a view was made under, which Spark's views keep."""
    zone = settings_of(job).get(SPARK_SETTINGS[TIMEZONE], DEFAULT_ZONE)
    current, made = honoured_by_spark(job.session.settings), dict(view.settings)
    changed = [key for key in sorted(current.keys() | made.keys()) if current.get(key) != made.get(key)]
    for key in changed:
        configure(slot.spark, key, made.get(key))
    if view.time_zone:
        slot.spark.conf.set(SPARK_SETTINGS[TIMEZONE], view.time_zone)
    try:
        yield
    finally:
        if view.time_zone:
            slot.spark.conf.set(SPARK_SETTINGS[TIMEZONE], zone)
        for key in changed:
            configure(slot.spark, key, current.get(key))
