"""Rows of a database over JDBC into a Delta table: all of them, or those that a growing column says are new.

A full load replaces the table's rows in one commit, and the ledger keeps the highest values that it has written. An
incremental load takes the rows whose cursor is above the last one and not above the highest there is now; both bounds are
planned in the ledger before the rows are written, and the rows are committed with the batch's number, so that whatever is
killed, every row is loaded once. It asks of the column that rows which appear later have larger values. Bounds are compared by
Spark, on the values as Spark reads them, because databases keep more digits of a timestamp than Spark does; the database only
gets a hint that cannot cut off too much.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError, GatewayError
from gateway.pipelines.jobs.columns import by_name, check_names, merged
from gateway.pipelines.jobs.ingest import (
    QUARANTINE,
    Counts,
    Wishes,
    check_history,
    check_place,
    check_quarantine,
    mark_table,
    no_half_table,
    report,
    survey,
    write_plan,
)
from gateway.pipelines.jobs.ledger import Ledger, committed, ledger_folder, opened, read_plans
from gateway.pipelines.jobs.marks import Mark, marks, start
from gateway.pipelines.jobs.places import Place, kept
from gateway.pipelines.jobs.records import FILE, check_castable, sql_of, typed
from gateway.pipelines.jobs.report import Report, Say, rows_table
from gateway.pipelines.jobs.session import spark_errors
from gateway.sqltypes import quote_part, quoted_text

# Types whose order is the same in Spark and in databases, and whose text is exact. Not strings: collations differ.
_CURSORS = ("tinyint", "smallint", "int", "bigint", "decimal", "date", "timestamp", "timestamp_ntz")
# Parts of a URL's end that say where the rows are. Others may be secret, or change nothing about the rows.
_ADDRESS = ("database", "databasename", "currentschema", "schema")


@dataclass(frozen=True, slots=True)
class Database:
    """Where rows come from: exactly one of `query` and `table` is given. `options` are those of Spark's JDBC reader."""

    url: str
    query: str | None = None
    table: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    driver: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ConfigError for what cannot be a source."""
        if (self.query is None) == (self.table is None):
            raise ConfigError("jdbc", "one of --query and --table is needed")
        for name, given in (("query", self.query), ("table", self.table)):
            if given is not None and not given.strip():
                raise ConfigError(name, "is empty")
        if not self.url.startswith("jdbc:"):
            raise ConfigError("jdbc", "the URL does not start with jdbc:")

    @property
    def name(self) -> str:
        """What it is called in reasons; nothing secret."""
        return self.table or "query"

    def key(self, cursor: str = "") -> str:
        """The same for the same rows; nothing secret. Blanks in the query make no difference."""
        address, *rest = re.split("[?;&]", self.url)
        named = sorted(part.lower() for part in rest if part.partition("=")[0].strip().lower() in _ADDRESS)
        query = " ".join((self.query or "").split())
        text = "\0".join((address, *named, query, self.table or "", cursor.lower()))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def read(self, spark: Any) -> Any:
        """All rows; TIMESTAMP columns without a zone as TIMESTAMP_NTZ."""
        reader = spark.read.format("jdbc").option("url", self.url).option("preferTimestampNTZ", "true")
        given = {"query": self.query, "dbtable": self.table, "user": self.user, "password": self.password}
        for key, value in {**given, "driver": self.driver, **self.options}.items():
            if value is not None:
                reader = reader.option(key, value)
        return reader.load()


@dataclass(frozen=True, slots=True)
class _Load:
    """A load under way: the rows and where they are from, the table, what the user asked for, what was done so far."""

    spark: Any
    frame: Any
    source: Database
    place: Place
    warehouse: Path
    wishes: Wishes
    say: Say
    counts: Counts = field(default_factory=Counts)

    def schema(self) -> Any:
        """The columns that the table has after the load, counting new ones. Raises ConfigError."""
        place, source, found = self.place, self.source, self.frame.schema
        if not place.exists:
            self.counts.new_columns += [f.name for f in found.fields]
            return found
        known = self.spark.read.format("delta").load(str(place.folder)).schema
        schema, news = merged(known, found)
        if news and not self.wishes.evolve:
            columns = ", ".join(f"'{n}'" for n in news)
            raise ConfigError(
                "columns", f"{place.name} has no column {columns}, {source.name} does: --evolve adds them"
            )
        check_castable(found, schema, source.name)
        self.counts.new_columns += news
        return schema

    def start(self, plans: list[dict[str, Any]], cursor: str) -> Mark | None:
        """The mark above which the rows are new; None if all are. Raises ConfigError if it is not known."""
        source = self.source
        return start(marks(plans), source.key(cursor), source.key(), cursor, self.place.name, self.wishes.other_source)


def ingest_jdbc(
    spark: Any,
    source: Database,
    cursor: str | None,
    place: Place,
    warehouse: Path,
    wishes: Wishes,
    say: Say,
    *,
    replace: bool = False,
    dry_run: bool = False,
) -> Report:
    """Load the rows of `source`.

    Args:
        cursor: the growing column of an incremental load; None loads everything and replaces the table's rows.
        replace: a full load may replace a table that exists; not with `cursor`.

    Raises:
        ConfigError: the rows do not fit the table, or cannot be told new from old by `cursor`; nothing was written.
        ServerError: database, Spark or disk failed; running it again finishes the load.
    """
    check_place(place, warehouse)
    if cursor is None and place.exists and not replace:
        raise ConfigError("table", f"{place.name} exists: --replace loads all rows anew, --cursor COLUMN only new ones")
    with spark_errors("ingest"):
        say("connecting to the database")
        frame = _connected(spark, source)
        check_names([f.name for f in frame.schema.fields], source.name)
        load = _Load(spark, frame, source, place, warehouse, wishes, say)
        if cursor is None:
            return _full(load, dry_run)
        column = by_name(frame.schema).get(cursor.lower())
        if column is None:
            raise ConfigError("cursor", f"{source.name} has no column '{cursor}'")
        if not _is_cursor(column):
            raise ConfigError("cursor", f"column {column.name} is {sql_of(column.dataType)}: not a type to go on from")
        key = source.key(column.name)
        folder = ledger_folder(warehouse, place)
        if dry_run:
            plans = [] if wishes.forget else read_plans(folder)
            low = load.start(plans, column.name)
            return _preview(
                place, load.schema(), f"would load the rows with {column.name} above {low.high}" if low else ""
            )
        with opened(folder, forget=wishes.forget) as ledger, kept(warehouse, place, place.beside(QUARANTINE)):
            _finish_replacement(spark, place, ledger)
            check_history(spark, place, ledger, ledger.plans(), wishes.forget)
            check_quarantine(spark, place, ledger.plans())
            for plan in ledger.plans():
                if plan["done"] is None:
                    if plan.get("source") != key:
                        raise ConfigError("table", f"{place.name}: another load was interrupted; run that again first")
                    say(f"finishing batch {plan['batch']}, which was interrupted")
                    write_plan(spark, _checked(frame, plan), place, ledger, plan, load.counts, say, exact=False)
            fresh = _plan(load, column, ledger)
            if fresh is not None:
                write_plan(spark, _checked(frame, fresh), place, ledger, fresh, load.counts, say, exact=False)
            mark = marks(ledger.plans()).get(key)
            notes = [f"{column.name} is loaded up to {mark.high}"] if mark is not None else []
    return report(place, load.counts, notes)


def _connected(spark: Any, source: Database) -> Any:
    try:
        return source.read(spark)
    except Exception as error:
        if "No suitable driver" in str(error):
            raise ConfigError(
                "jdbc", "no driver takes this URL: give its file with --jar, or --driver CLASS"
            ) from error
        raise


def _is_cursor(column: Any) -> bool:
    """Whether values of a column can be gone on from."""
    return column.dataType.simpleString().split("(")[0] in _CURSORS


def _preview(place: Place, schema: Any, note: str) -> Report:
    lines = [(f.name, f.dataType.simpleString()) for f in schema.fields]
    notes = [f"would {'load into' if place.exists else 'create'} {place.name}", *filter(None, [note])]
    return Report({"columns": rows_table(["column", "type"], lines)}, notes)


# ---- all rows


def _full(load: _Load, dry_run: bool) -> Report:
    frame, source, place, wishes = load.frame, load.source, load.place, load.wishes
    if place.exists and not wishes.evolve:
        load.schema()  # no column is new
    if dry_run:
        return _preview(place, frame.schema, "all rows, in one commit")
    with (
        opened(ledger_folder(load.warehouse, place), forget=wishes.forget) as ledger,
        kept(load.warehouse, place, place.beside(QUARANTINE)),
    ):
        plans = ledger.plans()
        if any(plan["done"] is None and "files" in plan for plan in plans):
            raise ConfigError("table", f"{place.name}: a load of files was interrupted; run that again first")
        cursors = [(source.key(c.name), c.name, sql_of(c.dataType)) for c in frame.schema.fields if _is_cursor(c)]
        what = {"replaces": True, "source": source.key(), "table": source.name, "cursors": cursors}
        batch = ledger.plan(len(plans), what)["batch"]
        load.say(f"writing {place.name}")
        place.folder.parent.mkdir(parents=True, exist_ok=True)
        writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", str(wishes.evolve).lower())
        try:
            with spark_errors("ingest"), no_half_table(place):
                writer.option("txnAppId", ledger.application).option("txnVersion", batch).save(str(place.folder))
        except GatewayError as error:
            # A Spark of our own has ended by now what it was asked for, but a server may still be at it.
            if error.fault == "client" or (
                hasattr(load.spark, "_jvm") and not committed(place, ledger.application, batch)
            ):
                ledger.abandon(batch)
            raise
        load.counts.loaded = _finish_replacement(load.spark, place, ledger)
    return report(place, load.counts, [])


def _finish_replacement(spark: Any, place: Place, ledger: Ledger) -> int:
    """Note as done the full load that has no such note yet: its highest values, and that nothing before it counts.

    Returns how many rows it has written; 0 if there is none.

    Raises:
        ConfigError: it was interrupted before it was committed.
    """
    from pyspark.sql import functions as f

    pending = [plan for plan in ledger.plans() if plan["done"] is None]
    if not any(plan.get("replaces") for plan in pending):
        return 0
    *before, plan = pending
    commit = committed(place, ledger.application, plan["batch"])
    if not plan.get("replaces") or commit is None:
        text = f"{place.name}: a load of all rows was interrupted; run that again first, with --replace"
        raise ConfigError("table", text)
    table = spark.read.format("delta").option("versionAsOf", commit.version).load(str(place.folder))
    types = {name: sql_of(field.dataType) for name, field in by_name(table.schema).items()}
    same = [(key, name) for key, name, kind in plan["cursors"] if types.get(name.lower()) == kind]
    row = table.agg(f.count("*"), *(f.max(quote_part(name)).cast("string") for _, name in same)).collect()[0]
    found = [(key, name, high) for (key, name), high in zip(same, row[1:], strict=True) if high is not None]
    mark_table(spark, place, ledger)
    for other in before:
        ledger.abandon(other["batch"])
    ledger.finish(plan["batch"], {"loaded": commit.rows, "marks": found})
    return commit.rows


# ---- incremental


def _plan(load: _Load, column: Any, ledger: Ledger) -> dict[str, Any] | None:
    """The next batch, written to the ledger; None if there are no new rows."""
    from pyspark.sql import functions as f

    source, frame = load.source, load.frame
    plans, key = ledger.plans(), source.key(column.name)
    mark = load.start(plans, column.name)
    low = mark.high if mark is not None else None
    schema = load.schema()
    kind = sql_of(column.dataType)
    what = {
        "source": key,
        "whole": source.key(),
        "continues": mark is not None and mark.source != source.key(),
        "column": column.name,
        "type": kind,
        "low": low,
        "schema": schema.jsonValue(),
        "table": source.name,
    }
    load.say(f"looking for rows with {column.name} above {low}" if low else "looking at all rows")
    name = quote_part(column.name)
    missing = frame.where(f.col(name).isNull()).limit(1).count()
    if missing:
        raise ConfigError(
            "cursor", f"column {column.name} is NULL in some rows, which could never be told new from old"
        )
    high = _above(frame, what).agg(f.max(name).cast("string").alias("high")).collect()[0]["high"]
    if high is None and not what["continues"]:
        return None
    if high is None:  # no rows, but from here on it is this source that is gone on with
        return ledger.plan(len(plans), {**what, "high": low, "good": 0, "bad": 0})
    what["high"] = high
    return ledger.plan(len(plans), {**what, **survey(_checked(frame, what), load.wishes.conflicts, load.place)})


def _above(frame: Any, what: Mapping[str, Any]) -> Any:
    """The rows whose cursor, as Spark reads it, is above `low`."""
    if what["low"] is None:
        return frame
    name, low = quote_part(what["column"]), f"CAST({quoted_text(what['low'])} AS {what['type']})"
    # The first condition goes to the database, where a value may have more digits; the second has no form that could.
    return frame.where(f"{name} >= {low}").where(f"least({name}, {low}) < {name}")


def _checked(frame: Any, what: Mapping[str, Any]) -> Any:
    """The rows of a batch with the table's types and, where a value does not fit, the reason."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    name, high = quote_part(what["column"]), f"CAST({quoted_text(what['high'])} AS {what['type']})"
    part = _above(frame, what).where(f"greatest({name}, {high}) <= {high}")
    return typed(part.withColumn(FILE, f.lit(what["table"])), StructType.fromJson(what["schema"]))
