"""Files into a Delta table, each once, whatever is killed when; bad records into a quarantine table beside it.

A run finishes the batch that an earlier one left planned, then plans and writes the files that no batch has (see `ledger`).
The schema is the table's; new columns are added on request. What does not fit is written to ``<table>_quarantine``, with its
text, file and reason, in a commit of the same number. A batch whose rows a constraint of the table refuses is abandoned: no row
of it is anywhere, and its files count as new.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.engine.spark.errors import is_lost
from gateway.errors import ConfigError, GatewayError, ServerError
from gateway.pipelines.jobs.columns import check_given, merged, parse_schema
from gateway.pipelines.jobs.ledger import Ledger, committed, is_abandoned, ledger_folder, opened, read_plans
from gateway.pipelines.jobs.places import Place, kept
from gateway.pipelines.jobs.records import COLUMN, FILE, RAW, REASON, Files, check_castable
from gateway.pipelines.jobs.report import Report, Say, rows_table
from gateway.pipelines.jobs.session import spark_errors
from gateway.pipelines.jobs.sources import CSV, JSON, Found, SourceFile, file_of
from gateway.sqltypes import quoted_text

QUARANTINE = "_quarantine"
PROPERTY = "gateway.ingest"  # of a table that is loaded: the id of its ledger
REFUSE, TO_QUARANTINE = "refuse", "quarantine"
_FILES_PER_BATCH = 10_000
# SQLSTATE classes of rows that a constraint of the table refuses, whenever they are written.
_REFUSED_ROWS = ("22", "23")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asked for.

    Attributes:
        schema: DDL of the columns, instead of inference.
        evolve: add new columns to the table.
        conflicts: what becomes of files in which most values of a column do not fit its type: REFUSE the load, or quarantine
            their records as well.
        options: of Spark's reader.
        forget: start a new ledger; all files count as new.
        other_source: what rows of another database or query are to those that are there, see `marks.start`.
    """

    schema: str | None = None
    evolve: bool = False
    conflicts: str = REFUSE
    options: Mapping[str, str] = field(default_factory=dict)
    forget: bool = False
    other_source: str | None = None


@dataclass(slots=True)
class Counts:
    """What a run did."""

    files: int = 0
    loaded: int = 0
    quarantined: int = 0
    new_columns: list[str] = field(default_factory=list)


def ingest_files(spark: Any, found: Found, place: Place, warehouse: Path, wishes: Wishes, say: Say) -> Report:
    """Load the files that are new. See `Wishes`.

    Raises:
        ConfigError: the files do not fit the table, or the table or its ledger are not what they were; nothing was written.
        ServerError: Spark or the disk failed; running it again finishes the load.
    """
    check_place(place, warehouse)
    notes = list(found.notes)
    with (
        opened(ledger_folder(warehouse, place), forget=wishes.forget) as ledger,
        kept(warehouse, place, place.beside(QUARANTINE)),
        spark_errors("ingest"),
    ):
        plans = ledger.plans()
        check_history(spark, place, ledger, plans, wishes.forget)
        check_quarantine(spark, place, plans)
        _check_given(spark, place, wishes)
        counts = Counts()
        for plan in plans:
            if plan["done"] is None:
                if "files" not in plan:
                    raise ConfigError(
                        "table", f"{place.name}: a load from a database was interrupted; run that again first"
                    )
                _check_asked(plan, found, ledger)
                say(f"finishing batch {plan['batch']}, which was interrupted")
                _load(spark, place, ledger, plan, counts, say)
        fresh = _new_files(found, ledger.plans(), notes)
        if fresh:
            say(f"{len(fresh)} new files, {sum(f.size for f in fresh)} bytes")
            schema = _target_schema(spark, found.format, fresh, place, wishes, counts)
            for start in range(0, len(fresh), _FILES_PER_BATCH):
                part = fresh[start : start + _FILES_PER_BATCH]
                what = {
                    "files": [[f.path, f.size, f.changed] for f in part],
                    "format": found.format,
                    "options": dict(wishes.options),
                    "schema": schema.jsonValue(),
                    "conflicts": wishes.conflicts,
                }
                plan = ledger.plan(len(ledger.plans()), {**what, **_survey(spark, what, place, say)})
                _load(spark, place, ledger, plan, counts, say)
        elif not counts.files:
            notes.append("no new files, 0 rows loaded")
    return report(place, counts, notes)


def preview(spark: Any, found: Found, place: Place, warehouse: Path, wishes: Wishes) -> Report:
    """What `ingest_files` would do; nothing is written."""
    check_place(place, warehouse)
    notes = list(found.notes)
    plans = [] if wishes.forget else read_plans(ledger_folder(warehouse, place))
    with spark_errors("ingest"):
        _check_given(spark, place, wishes)
        fresh = _new_files(found, plans, notes)
        counts = Counts()
        notes += [f"would finish batch {p['batch']}, which was interrupted" for p in plans if p["done"] is None]
        lines: list[tuple[str, str]] = []
        if fresh:
            schema = _target_schema(spark, found.format, fresh, place, wishes, counts)
            lines = [(f.name, f.dataType.simpleString()) for f in schema.fields]
        does = "load into" if place.exists else "create"
        notes.append(f"would {does} {place.name}: {len(fresh)} new files, {sum(f.size for f in fresh)} bytes")
        if counts.new_columns and place.exists:
            notes.append(f"would add columns {', '.join(counts.new_columns)}")
    return Report({"columns": rows_table(["column", "type"], lines)} if lines else {}, notes)


def report(place: Place, counts: Counts, notes: list[str]) -> Report:
    """The summary of a load."""
    if counts.new_columns:
        notes.append(f"new columns: {', '.join(counts.new_columns)}")
    if counts.quarantined:
        notes.append(f"see {place.beside(QUARANTINE).name} for the records that were not loaded")
    names = ["table", "files", "loaded", "quarantined"]
    line = (place.name, counts.files, counts.loaded, counts.quarantined)
    return Report({"summary": rows_table(names, [line])}, notes)


# ---- what is new


def _check_given(spark: Any, place: Place, wishes: Wishes) -> None:
    """Raise ConfigError if the schema that is wished for does not fit the table, whether or not there is anything to load."""
    if wishes.schema is not None and place.exists:
        table = spark.read.format("delta").load(str(place.folder)).schema
        check_given(parse_schema(wishes.schema), table, place.name, evolve=wishes.evolve)


def check_place(place: Place, warehouse: Path) -> None:
    """Raise ConfigError if the table's folder is something else's, and not what an interrupted batch has left; GatewayError if
    Spark is not to follow what the table, or that of bad records, names."""
    for one in (place, place.beside(QUARANTINE)):
        one.check_followed()
    _check_free(place, read_plans(ledger_folder(warehouse, place)))


def _check_free(place: Place, plans: Sequence[dict[str, Any]]) -> None:
    if all(plan["done"] is not None for plan in plans):
        place.check_free()


def check_quarantine(spark: Any, place: Place, plans: Sequence[dict[str, Any]]) -> None:
    """Raise ConfigError if the quarantine's name is that of another table."""
    beside = place.beside(QUARANTINE)
    _check_free(beside, plans)
    if beside.exists:
        names = set(spark.read.format("delta").load(str(beside.folder)).columns)
        if names != {"raw", "file", "reason", "loaded_at"}:
            raise ConfigError("table", f"{beside.name} is needed for bad records, but is a table of another kind")


def check_history(spark: Any, place: Place, ledger: Ledger, plans: Sequence[dict[str, Any]], forget: bool) -> None:
    """Raise ConfigError if ledger and table do not belong together: one of them was removed."""
    advice = "--forget starts anew and loads everything again"
    loaded = any((plan["done"] or {}).get("loaded") for plan in plans)
    if not place.exists:
        if loaded:
            raise ConfigError(
                "table", f"{place.name} is gone, but the ledger {ledger.folder} says that it was loaded: {advice}"
            )
        return
    found = table_properties(spark, place).get(PROPERTY)
    if found is not None and found != ledger.id and not forget:
        raise ConfigError("table", f"{place.name} was loaded with another ledger than {ledger.folder}: {advice}")


def table_properties(spark: Any, place: Place) -> dict[str, str]:
    """The properties of a Delta table."""
    return dict(spark.sql(f"DESCRIBE DETAIL {place.sql}").collect()[0]["properties"])


def _check_asked(plan: Mapping[str, Any], found: Found, ledger: Ledger) -> None:
    """Raise ConfigError if a batch that was interrupted has files of other sources: others may have written its plan."""
    other = next((path for path, *_ in plan["files"] if not found.covers(path)), None)
    if other is not None:
        text = f"batch {plan['batch']} of {ledger.folder}, which was interrupted, has files of another source: {other}"
        raise ConfigError("source", f"{text}. Load that again first, or start anew with --forget")


def _new_files(found: Found, plans: Sequence[dict[str, Any]], notes: list[str]) -> list[SourceFile]:
    kept = [plan for plan in plans if not is_abandoned(plan)]
    known = {path: SourceFile(path, size, changed) for plan in kept for path, size, changed in plan.get("files", ())}
    other = [f.path for f in found.files if f.path in known and known[f.path] != f]
    if other:
        notes.append(
            f"{len(other)} files were loaded before and have changed since; they are not loaded again: {other[0]}, …"
        )
    return [f for f in found.files if f.path not in known]


def _target_schema(
    spark: Any, format: str, files: Sequence[SourceFile], place: Place, wishes: Wishes, counts: Counts
) -> Any:
    """The columns to load: those of the files, with the table's types. Raises ConfigError.

    Columns that no file has are left out, so that Delta fills them: generated ones, and those with a default.
    """
    from pyspark.sql.types import StructType

    reading = Files(spark, format, files, wishes.options)
    given = parse_schema(wishes.schema) if wishes.schema is not None else None
    if given is not None:
        for name, path in reading.new_columns(given).items():
            raise ConfigError("schema", f"{path} has a column '{name}', which the schema lacks")
    table = spark.read.format("delta").load(str(place.folder)).schema if place.exists else None
    if table is None:
        found = given if given is not None else reading.schema()
        counts.new_columns += [f.name for f in found.fields]
        return found
    names = reading.header_names()
    if given is not None:
        found = given
    elif names is not None and not reading.new_columns(table):
        return StructType([f for f in table.fields if f.name.lower() in names])  # read with the table's types
    else:
        found = reading.schema()
    both, news = merged(table, found)
    if news and not wishes.evolve:
        columns = ", ".join(f"'{n}'" for n in news)
        raise ConfigError("columns", f"{place.name} has no column {columns}, the files do: --evolve adds them")
    if format not in (CSV, JSON):
        check_castable(found, both, f"{files[0].path}, …")
    counts.new_columns += news
    here = {f.name.lower() for f in found.fields}
    return StructType([f for f in both.fields if f.name.lower() in here])


# ---- one batch


def _frame(spark: Any, what: Mapping[str, Any]) -> Any:
    from pyspark.sql.types import StructType

    files = [SourceFile(*f) for f in what["files"]]
    return Files(spark, what["format"], files, what["options"]).read(StructType.fromJson(what["schema"]))


def _survey(spark: Any, what: Mapping[str, Any], place: Place, say: Say) -> dict[str, int]:
    say("checking the values")
    files = [SourceFile(*f) for f in what["files"]]
    Files(spark, what["format"], files, what["options"]).check_lines()
    return survey(_frame(spark, what), what["conflicts"], place)


def survey(frame: Any, conflicts: str, place: Place) -> dict[str, int]:
    """How many good and bad records `frame` has, which is as `Files.read` makes it.

    Raises ConfigError for a file in which most records have a value that does not fit one column's type, unless `conflicts`
    says that such records go to quarantine.
    """
    from pyspark.sql import functions as f

    found = frame.groupBy(FILE, COLUMN, f.col(REASON).isNull().alias("good"))
    rows = found.agg(f.count("*").alias("n"), f.min(REASON).alias("reason")).collect()
    totals: dict[str, int] = {}
    for row in rows:
        totals[row[FILE]] = totals.get(row[FILE], 0) + row["n"]
    for row in sorted(rows, key=lambda r: (r[FILE], r[COLUMN] or "")):
        total = totals[row[FILE]]
        if conflicts == REFUSE and row[COLUMN] is not None and 2 * row["n"] > total:
            raise ConfigError(
                "columns",
                f"in {row['n']} of {total} records of {file_of(row[FILE])} a value does not fit {place.name}: "
                f"{row['reason']}; --type-conflicts quarantine loads the other records",
            )
    good = sum(row["n"] for row in rows if row["good"])
    return {"good": good, "bad": sum(totals.values()) - good}


def _load(spark: Any, place: Place, ledger: Ledger, plan: dict[str, Any], counts: Counts, say: Say) -> None:
    files = [SourceFile(*spec) for spec in plan["files"]]
    with _unchanged(files, plan["batch"], ledger):
        write_plan(spark, _frame(spark, plan), place, ledger, plan, counts, say)
    counts.files += len(files)


def write_plan(
    spark: Any,
    frame: Any,
    place: Place,
    ledger: Ledger,
    plan: dict[str, Any],
    counts: Counts,
    say: Say,
    *,
    exact: bool = True,
) -> None:
    """Write a planned batch, as far as it is not in the tables yet; `frame` is as `Files.read` makes it.

    Args:
        exact: its rows are those that were counted, or Spark has lost some. Else they may have changed since, and what is
            committed counts.
    """
    from pyspark.sql import functions as f

    batch, beside = plan["batch"], place.beside(QUARANTINE)
    good = frame.where(f.col(REASON).isNull()).drop(RAW, REASON, COLUMN, FILE)
    bad = frame.where(f.col(REASON).isNotNull()).select(
        f.col(RAW).alias("raw"),
        f.col(FILE).alias("file"),
        f.col(REASON).alias("reason"),
        f.current_timestamp().alias("loaded_at"),
    )
    mark_table(spark, place, ledger)  # first: of what is committed then, the next run knows which ledger tells
    if plan["good"]:
        say(f"batch {batch}: writing {place.name}")
        try:
            with spark_errors("ingest"):
                _write(good, place, ledger, batch)
        except GatewayError as error:
            if error.sqlstate.startswith(_REFUSED_ROWS):
                ledger.abandon(batch)
            raise
    if plan["bad"]:
        say(f"batch {batch}: writing {beside.name}")
        _write(bad, beside, ledger, batch)
    tables, planned = (place, beside), (plan["good"], plan["bad"])
    written = tuple(_written(t, ledger, batch, n) if n else 0 for t, n in zip(tables, planned, strict=True))
    if not exact and written != planned:
        # A row that was good when it was counted may be bad now, and the other way round.
        for table, rows, n in zip(tables, (good, bad), planned, strict=True):
            if not n and rows.limit(1).count():
                _write(rows, table, ledger, batch)
        written = tuple(_written(t, ledger, batch, n) for t, n in zip(tables, planned, strict=True))
        say(f"batch {batch}: rows have changed since they were counted: {planned[0]} then, {written[0]} loaded")
    mark_table(spark, place, ledger)
    if exact:
        _check_written(ledger, batch, tables, planned, written)
    ledger.finish(batch, {"loaded": written[0], "quarantined": written[1]})
    counts.loaded += written[0]
    counts.quarantined += written[1]


def _check_written(
    ledger: Ledger, batch: int, tables: Sequence[Place], planned: Sequence[int], written: Sequence[int]
) -> None:
    """Raise ServerError if the commits of a batch tell of other numbers of rows than were planned."""
    for table, expected, found in zip(tables, planned, written, strict=True):
        if found != expected:
            text = f"Batch {batch} of {ledger.folder} has {found} rows in {table.name}, {expected} were expected."
            raise ServerError("INTERNAL_ERROR", text)


def mark_table(spark: Any, place: Place, ledger: Ledger) -> None:
    """Note in the table which ledger tells of its rows."""
    if place.exists and table_properties(spark, place).get(PROPERTY) != ledger.id:
        spark.sql(f"ALTER TABLE {place.sql} SET TBLPROPERTIES ({quoted_text(PROPERTY)} = {quoted_text(ledger.id)})")


def _written(place: Place, ledger: Ledger, batch: int, planned: int) -> int:
    """How many rows of a batch are in a table; those `planned` if the log's old commits are cleaned up."""
    commit = committed(place, ledger.application, batch)
    return planned if commit is None else commit.rows


def _write(frame: Any, place: Place, ledger: Ledger, batch: int) -> None:
    """Append the rows unless a commit with the batch's number is there."""
    place.folder.parent.mkdir(parents=True, exist_ok=True)
    writer = frame.write.format("delta").mode("append").option("mergeSchema", "true")
    with no_half_table(place):
        writer.option("txnAppId", ledger.application).option("txnVersion", batch).save(str(place.folder))


@contextlib.contextmanager
def no_half_table(place: Place) -> Iterator[None]:
    """Around a write: if it fails, a table that it would have made leaves no files behind."""
    is_new = not place.folder.exists() or not any(place.folder.iterdir())
    try:
        yield
    except Exception as error:
        if is_new and not is_lost(error) and not place.exists:  # a Spark that was lost may yet commit
            shutil.rmtree(place.folder, ignore_errors=True)
        raise


@contextlib.contextmanager
def _unchanged(files: Sequence[SourceFile], batch: int, ledger: Ledger) -> Iterator[None]:
    """Raise ServerError if a file is not what was planned, before or after it is read."""

    def check(what: str) -> None:
        for file in files:
            try:
                file.check_unchanged()
            except OSError as error:
                text = f"Batch {batch} of {ledger.folder}: {error.strerror or error} {what}"
                raise ServerError("INTERNAL_ERROR", text) from error

    check("since the batch was planned; put back the file that was there, or start anew with --forget.")
    yield
    check("while it was read: compare the table with it.")
