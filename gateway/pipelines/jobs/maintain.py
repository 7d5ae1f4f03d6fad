"""Care of Delta tables by Spark: compaction, clustering, vacuum, checkpoints, wider types, column mapping.

Every action tells figures before and after. What could lose data or lock readers out is looked at first: vacuum lists its files
before it removes any and refuses what is not safe, and a change of the protocol is held against what the gateway itself reads
and writes (`delta.features`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.delta import log
from gateway.delta.features import Protocol, check_readable, check_writable
from gateway.engine.spark.java import java_class
from gateway.engine.spark.masters import is_connect
from gateway.errors import ConfigError, GatewayError, ServerError, unsupported
from gateway.pipelines.jobs.columns import can_widen, parse_schema, type_at
from gateway.pipelines.jobs.ledger import ledger_folder, opened, read_plans
from gateway.pipelines.jobs.places import Place, kept, split_name
from gateway.pipelines.jobs.records import sql_of
from gateway.pipelines.jobs.report import Report, Say, rows_table
from gateway.pipelines.jobs.session import spark_errors
from gateway.sqltypes import quote_part, quoted_text

COMPACT, CLUSTER, VACUUM, CHECKPOINT = "compact", "cluster", "vacuum", "checkpoint"
WIDEN, MAP = "widen-types", "map-columns"
SAFE_HOURS = 7 * 24.0
_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
# What an action adds to the protocol, for the forecast.
_ADDS = {WIDEN: ("typeWidening",), MAP: ("columnMapping",)}
_LIQUID = ("clustering", "domainMetadata")
_READER_FEATURES = ("typeWidening", "columnMapping")


@dataclass(frozen=True, slots=True)
class Task:
    """What to do; which fields count depends on `action`.

    Attributes:
        where: compact: predicate on partition columns.
        by: cluster: columns.
        liquid: cluster: make it the table's own clustering (CLUSTER BY) instead of ordering once (ZORDER BY).
        hours: vacuum: how long removed files are kept.
        force: vacuum: also below the safe retention.
        column, type: widen-types.
    """

    action: str
    where: str | None = None
    by: tuple[str, ...] = ()
    liquid: bool = False
    hours: float = SAFE_HOURS
    force: bool = False
    column: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """A table at a moment; `disk` counts the bytes of all data files in the folder, removed ones too."""

    version: int
    files: int
    bytes: int
    disk: int


def check(task: Task, places: Sequence[Place], master: str | None) -> None:
    """Raise ConfigError for what cannot be done, before Spark is started."""
    for place in places:
        place.check_table()
        place.check_followed()
    if task.action == CLUSTER and not task.by:
        raise ConfigError("by", "cluster needs columns: --by a,b")
    if task.action == CHECKPOINT and master is not None and is_connect(master):
        raise ConfigError("spark", "checkpoints cannot be asked of a Spark Connect server; use a local Spark")
    if task.action == VACUUM:
        if not 0 <= task.hours <= 24 * 36_500:
            raise ConfigError("retain", f"{task.hours:g} hours are not between 0 and 100 years")
        if task.hours < SAFE_HOURS and not task.force:
            raise ConfigError(
                "retain",
                f"{task.hours:g} hours are fewer than {SAFE_HOURS:g} (7 days): running readers and writers could lose files; "
                "--force does it all the same",
            )
        for place in places:
            nested = _nested_table(place.folder)
            if nested is not None:
                raise ConfigError(
                    "table", f"{place.name} holds another Delta table, whose files vacuum would remove: {nested}"
                )


def maintain(
    spark: Any, task: Task, places: Sequence[Place], warehouse: Path, say: Say, *, dry_run: bool = False
) -> Report:
    """Do `task` for each table, in order; see `check`.

    Raises:
        ConfigError, UserError: a predicate, column or type is wrong, or vacuum is not safe; earlier tables are done.
        ServerError: Spark failed.
    """
    lines, notes = [], []
    for place in places:
        with kept(warehouse, place), spark_errors(f"{task.action} {place.name}"):
            if task.action == WIDEN:
                _check_wider(spark, task, place)
            before = _figures(spark, place)
            notes += forecast(task, place)
            if task.action == VACUUM:
                notes.append(_vacuum(spark, task, place, warehouse, say, dry_run))
            elif dry_run:
                notes += [f"would run: {text}" for text in _statements(task, place)] or [
                    f"would checkpoint {place.name}"
                ]
            else:
                say(f"{task.action} {place.name}")
                if task.action == CHECKPOINT:
                    _checkpoint(spark, place)
                for text in _statements(task, place):
                    spark.sql(text).collect()
            after = before if dry_run else _figures(spark, place)
        lines.append(
            (
                place.name,
                *(before.version, after.version),
                *(before.files, after.files),
                *(before.bytes, after.bytes),
                *(before.disk, after.disk),
            )
        )
    names = [
        "table",
        "version",
        "version after",
        "files",
        "files after",
        "bytes",
        "bytes after",
        "on disk",
        "on disk after",
    ]
    return Report({"summary": rows_table(names, lines)}, notes)


def _statements(task: Task, place: Place) -> list[str]:
    columns = ", ".join(_column(name) for name in task.by)
    match task.action:
        case "compact":
            return [f"OPTIMIZE {place.sql}" + (f" WHERE {task.where}" if task.where else "")]
        case "cluster" if task.liquid:
            return [f"ALTER TABLE {place.sql} CLUSTER BY ({columns})", f"OPTIMIZE {place.sql} FULL"]
        case "cluster":
            return [f"OPTIMIZE {place.sql} ZORDER BY ({columns})"]
        case "widen-types":
            return [
                f"ALTER TABLE {place.sql} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
                f"ALTER TABLE {place.sql} ALTER COLUMN {_column(task.column)} TYPE {task.type}",
            ]
        case "map-columns":
            return [f"ALTER TABLE {place.sql} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"]
    return []


def _column(name: str) -> str:
    return ".".join(quote_part(part) for part in split_name(name))


def _figures(spark: Any, place: Place) -> Figures:
    detail = spark.sql(f"DESCRIBE DETAIL {place.sql}").collect()[0]
    versions = log.commit_versions(str(place.folder))
    disk = sum(size for path, size in _data_files(place.folder))
    return Figures(versions[-1] if versions else -1, int(detail["numFiles"]), int(detail["sizeInBytes"]), disk)


def _data_files(folder: Path) -> Iterator[tuple[str, int]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [n for n in folders if n != log.LOG]
        for name in names:
            path = os.path.join(parent, name)
            if not name.startswith("."):
                yield path, os.path.getsize(path)


def _check_wider(spark: Any, task: Task, place: Place) -> None:
    """Raise ConfigError unless the column can be changed; asked first, as the table's protocol cannot be changed back."""
    found = type_at(spark.read.format("delta").load(str(place.folder)).schema, split_name(task.column))
    if found is None:
        raise ConfigError("column", f"{place.name} has no column '{task.column}'")
    target = parse_schema(f"c {task.type}").fields[0].dataType
    if not can_widen(found, target):
        kinds = f"{sql_of(found)}, which cannot become {sql_of(target)} without a rewrite"
        raise ConfigError("type", f"column {task.column} of {place.name} is {kinds}")


# ---- protocol


def forecast(task: Task, place: Place) -> list[str]:
    """What the change of the protocol means for the gateway without Spark."""
    adds = _ADDS.get(task.action, _LIQUID if task.liquid else ())
    before = log.protocol_in_commits(str(place.folder))
    if before is None or all(before.has(name) for name in adds):
        return []
    readers = frozenset(name for name in adds if name in _READER_FEATURES)
    after = Protocol(
        3 if readers else before.reader, 7, before.reader_features | readers, before.writer_features | set(adds)
    )
    names = ", ".join(adds)
    notes = []
    for can, what in ((check_readable, "reads"), (check_writable, "writes")):
        if not _refuses(can, before) and _refuses(can, after):
            notes.append(
                f"warning: with {names} the gateway no longer {what} {place.name} without Spark; there is no way back"
            )
    return notes


def _refuses(can: Callable[[Protocol, str], None], protocol: Protocol) -> bool:
    try:
        can(protocol, "")
    except GatewayError:
        return True
    return False


# ---- vacuum


def _nested_table(folder: Path) -> str | None:
    """Another table's folder below this one, whose files this table's log does not know."""
    for parent, folders, _ in os.walk(folder):
        if parent != str(folder) and log.LOG in folders:
            return parent
        folders[:] = [n for n in folders if n != log.LOG]
    return None


def _vacuum(spark: Any, task: Task, place: Place, warehouse: Path, say: Say, dry_run: bool) -> str:
    detail = spark.sql(f"DESCRIBE DETAIL {place.sql}").collect()[0]
    own = dict(detail["properties"]).get("delta.deletedFileRetentionDuration")
    if own is not None and not task.force and _longer(spark, own, task.hours):
        raise ConfigError("retain", f"{place.name} keeps removed files for '{own}'; --force removes them earlier")
    statement = f"VACUUM {place.sql} RETAIN {task.hours:g} HOURS"
    with _no_load(place, warehouse), _unchecked(spark, task.hours < SAFE_HOURS):
        say(f"vacuum {place.name}: looking")
        found = spark.sql(f"{statement} DRY RUN").count()
        more = "at least " if found >= 1000 else ""  # as many as are listed
        if dry_run:
            return f"would remove {more}{found} files and folders of {place.name}"
        if found:
            say(f"vacuum {place.name}: removing {more}{found} files and folders")
            spark.sql(statement).collect()
    return f"removed {more}{found} files and folders of {place.name}"


def _longer(spark: Any, duration: str, hours: float) -> bool:
    """Whether a table property like ``interval 30 days`` is longer than `hours`."""
    text = duration.lower().removeprefix("interval ").strip()
    start = "TIMESTAMP'2001-01-01'"
    ends = (f"{start} + INTERVAL {quoted_text(span)}" for span in (text, f"{hours * 3600:.0f} seconds"))
    return bool(spark.sql(f"SELECT {' > '.join(ends)}").collect()[0][0])


@contextmanager
def _no_load(place: Place, warehouse: Path) -> Iterator[None]:
    """Nothing is loaded into the table meanwhile. Raises ConfigError for a load that was interrupted, ServerError for one
    under way.
    """
    folder = ledger_folder(warehouse, place)
    if not folder.exists():
        yield
        return
    if any(plan["done"] is None for plan in read_plans(folder)):
        raise ConfigError("table", f"a load into {place.name} was interrupted: run `gateway job ingest` again first")
    with opened(folder):
        yield


@contextmanager
def _unchecked(spark: Any, off: bool) -> Iterator[None]:
    """Delta's own check of the retention switched off."""
    if off:
        spark.conf.set(_RETENTION_CHECK, "false")
    try:
        yield
    finally:
        if off:
            spark.conf.unset(_RETENTION_CHECK)


# ---- checkpoint


def _checkpoint(spark: Any, place: Place) -> None:
    """Write a checkpoint of the newest version. There is no SQL for it."""
    if not hasattr(spark, "_jvm"):
        raise unsupported("A checkpoint through Spark Connect")
    delta = java_class(spark, "org.apache.spark.sql.delta.DeltaLog").forTable(spark._jsparkSession, str(place.folder))  # noqa: SLF001
    delta.checkpoint()
    version = log.commit_versions(str(place.folder))[-1]
    names = os.listdir(place.folder / log.LOG)
    if not any(n.startswith(f"{version:020}.checkpoint") for n in names):
        raise ServerError("INTERNAL_ERROR", f"Spark wrote no checkpoint of version {version}.")
