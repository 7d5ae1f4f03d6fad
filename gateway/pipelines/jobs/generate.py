"""Test data as Delta tables, the same for the same seed: TPC-H, a table with every type, skewed events.

A table appears whole or not at all: it is written into a hidden folder and then given its name. With `replace` the rows become
the next version of a table that exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gateway.catalog import drafts
from gateway.catalog.local import LocalCatalog
from gateway.delta.log import counted
from gateway.errors import ConfigError
from gateway.pipelines.jobs.all_types import all_types_frame
from gateway.pipelines.jobs.events import events_frame
from gateway.pipelines.jobs.places import CATALOG, Place, kept, locate
from gateway.pipelines.jobs.report import Report, Say, rows_table
from gateway.pipelines.jobs.session import spark_errors
from gateway.pipelines.jobs.tpch import TABLES as TPCH_TABLES
from gateway.pipelines.jobs.tpch import check_scale, tpch_frames

TPCH, ALL_TYPES, EVENTS = "tpch", "all-types", "events"
_FRAMES: Mapping[str, Callable[[Any, float, int], Any]] = {ALL_TYPES: all_types_frame, EVENTS: events_frame}
DEFAULT_SEED = 20240229


def places(kind: str, warehouse: Path, into: str | None) -> list[Place]:
    """The tables that `kind` makes: in the schema `into` (tpch), or the table `into`. Raises ConfigError."""
    if kind == TPCH:
        schema = into or "tpch"
        return [locate(warehouse, f"{schema}.{name}") for name in TPCH_TABLES]
    return [locate(warehouse, into or f"generated.{kind.replace('-', '_')}")]


def check(kind: str, tables: list[Place], scale: float, seed: int | None, replace: bool) -> None:
    """Raise ConfigError for what cannot be made."""
    if not scale > 0 or scale > 100_000:
        raise ConfigError("scale", f"{scale:g} is not between 0 and 100000")
    if kind == TPCH and seed is not None:
        raise ConfigError("seed", "has no effect on tpch, whose data are fixed")
    if kind == TPCH:
        check_scale(scale)
    for place in tables:
        place.check_free()
        place.check_followed()
        if place.exists and not replace:
            raise ConfigError("table", f"{place.name} exists already; --replace writes its next version")


def generate(
    spark: Any, kind: str, tables: list[Place], scale: float, seed: int | None, scratch: Path, say: Say
) -> Report:
    """Make the tables at `scale`; `scratch` is a folder for files on the way. See `check`."""
    lines = []
    notes: list[str] = []
    with spark_errors(f"generate {kind}"):
        if kind == TPCH:
            with tpch_frames(spark, scale, scratch, say, notes) as frames:
                for place in tables:
                    say(f"writing {place.name}")
                    lines.append(_save(spark, frames(place.table.lower()), place))
        else:
            (place,) = tables
            say(f"writing {place.name}")
            frame = _FRAMES[kind](spark, scale, DEFAULT_SEED if seed is None else seed)
            lines.append(_save(spark, frame, place))
    return Report({"summary": rows_table(["table", "version", "rows", "files", "bytes"], lines)}, notes)


def _save(spark: Any, frame: Any, place: Place) -> tuple[str, int, int, int, int]:
    warehouse = place.folder.parents[1]
    if place.exists:
        with kept(warehouse, place):
            frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(place.folder))
    else:
        place.folder.parent.mkdir(parents=True, exist_ok=True)
        catalog = LocalCatalog(CATALOG, str(warehouse))
        draft = catalog.draft()
        try:
            frame.write.format("delta").mode("errorifexists").save(draft.folder)
            with catalog.claimed(place.schema, place.table):
                drafts.settle(draft, str(place.folder))
        finally:
            drafts.discard(draft)
    last = spark.sql(f"DESCRIBE HISTORY {place.sql} LIMIT 1").collect()[0]
    detail = spark.sql(f"DESCRIBE DETAIL {place.sql}").collect()[0]
    rows = counted({"operationMetrics": last["operationMetrics"]}, "numOutputRows")
    return place.name, int(last["version"]), rows, int(detail["numFiles"]), int(detail["sizeInBytes"])
