"""Rows of a database over JDBC into a Delta table: all of them, or those that a growing column says are new.

A full load replaces the table's rows in one commit. An incremental load takes the rows whose cursor is above the last one and
not above the highest there is now; both bounds are planned in the ledger before the rows are written, and the rows are
committed with the batch's number, so that whatever is killed, every row is loaded once. It asks of the column that rows which
appear later have larger values. Bounds are compared by Spark, on the values as Spark reads them, because databases keep more
digits of a timestamp than Spark does; the database only gets a hint that cannot cut off too much.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError
from gateway.pipelines.jobs.columns import by_name, check_names, merged
from gateway.pipelines.jobs.ingest import (
    Counts,
    Wishes,
    check_history,
    check_quarantine,
    report,
    survey,
    write_plan,
)
from gateway.pipelines.jobs.ledger import Ledger, is_abandoned, ledger_folder, opened, read_plans
from gateway.pipelines.jobs.places import Place, literal, quoted
from gateway.pipelines.jobs.records import FILE, check_castable, sql_of, typed
from gateway.pipelines.jobs.report import Report, Say, rows_table
from gateway.pipelines.jobs.session import spark_errors

# Types whose order is the same in Spark and in databases, and whose text is exact. Not strings: collations differ.
_CURSORS = ("tinyint", "smallint", "int", "bigint", "decimal", "date", "timestamp", "timestamp_ntz")


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
        if not self.url.startswith("jdbc:"):
            raise ConfigError("jdbc", "the URL does not start with jdbc:")

    @property
    def name(self) -> str:
        """What it is called in reasons; nothing secret."""
        return self.table or "query"

    def key(self, cursor: str) -> str:
        """The same for the same rows; nothing secret."""
        address = self.url.split("?")[0].split(";")[0]
        text = "\0".join((address, self.query or "", self.table or "", cursor.lower()))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def read(self, spark: Any) -> Any:
        """All rows; TIMESTAMP columns without a zone as TIMESTAMP_NTZ."""
        reader = spark.read.format("jdbc").option("url", self.url).option("preferTimestampNTZ", "true")
        given = {"query": self.query, "dbtable": self.table, "user": self.user, "password": self.password}
        for key, value in {**given, "driver": self.driver, **self.options}.items():
            if value is not None:
                reader = reader.option(key, value)
        return reader.load()


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
        replace: a full load may replace a table that exists.

    Raises:
        ConfigError: the rows do not fit the table, or cannot be told new from old by `cursor`; nothing was written.
        ServerError: database, Spark or disk failed; running it again finishes the load.
    """
    place.check_free()
    if cursor is None and place.exists and not replace:
        raise ConfigError("table", f"{place.name} exists: --replace loads all rows anew, --cursor COLUMN only new ones")
    with spark_errors("ingest"):
        say("connecting to the database")
        frame = source.read(spark)
        check_names([f.name for f in frame.schema.fields], source.name)
        counts = Counts()
        if cursor is None:
            return _full(spark, frame, source, place, wishes, counts, say, dry_run)
        column = by_name(frame.schema).get(cursor.lower())
        if column is None:
            raise ConfigError("cursor", f"{source.name} has no column '{cursor}'")
        if column.dataType.simpleString().split("(")[0] not in _CURSORS:
            raise ConfigError("cursor", f"column {column.name} is {sql_of(column.dataType)}: not a type to go on from")
        key = source.key(column.name)
        folder = ledger_folder(warehouse, place)
        if dry_run:
            plans = [] if wishes.forget else read_plans(folder)
            schema = _schema(spark, frame, source, place, wishes, counts)
            above = _last(plans, key)
            return _preview(place, schema, f"would load the rows with {column.name} above {above}" if above else "")
        with opened(folder, forget=wishes.forget) as ledger:
            check_history(spark, place, ledger, ledger.plans(), wishes.forget)
            check_quarantine(spark, place)
            for plan in ledger.plans():
                if plan["done"] is None:
                    if plan.get("source") != key:
                        raise ConfigError("table", f"{place.name}: another load was interrupted; run that again first")
                    say(f"finishing batch {plan['batch']}, which was interrupted")
                    write_plan(spark, _checked(frame, plan), place, ledger, plan, counts, say, exact=False)
            fresh = _plan(spark, frame, column, source, key, place, wishes, ledger, counts, say)
            if fresh is not None:
                write_plan(spark, _checked(frame, fresh), place, ledger, fresh, counts, say, exact=False)
            notes = [f"{column.name} is loaded up to {_last(ledger.plans(), key)}"] if ledger.plans() else []
    return report(place, counts, notes)


def _last(plans: list[dict[str, Any]], key: str) -> str | None:
    """The text of the highest cursor that is loaded or planned."""
    found = [str(plan["high"]) for plan in plans if plan.get("source") == key and not is_abandoned(plan)]
    return found[-1] if found else None


def _schema(spark: Any, frame: Any, source: Database, place: Place, wishes: Wishes, counts: Counts) -> Any:
    """The columns that the table has after the load. Raises ConfigError."""
    if not place.exists:
        counts.new_columns += [f.name for f in frame.schema.fields]
        return frame.schema
    schema, news = merged(spark.read.format("delta").load(str(place.folder)).schema, frame.schema)
    if news and not wishes.evolve:
        columns = ", ".join(f"'{n}'" for n in news)
        raise ConfigError("columns", f"{place.name} has no column {columns}, {source.name} does: --evolve adds them")
    check_castable(frame.schema, schema, source.name)
    counts.new_columns += news
    return schema


def _preview(place: Place, schema: Any, note: str) -> Report:
    lines = [(f.name, f.dataType.simpleString()) for f in schema.fields]
    notes = [f"would {'load into' if place.exists else 'create'} {place.name}", *filter(None, [note])]
    return Report({"columns": rows_table(["column", "type"], lines)}, notes)


def _full(
    spark: Any, frame: Any, source: Database, place: Place, wishes: Wishes, counts: Counts, say: Say, dry_run: bool
) -> Report:
    if place.exists and not wishes.evolve:
        _schema(spark, frame, source, place, wishes, Counts())
    if dry_run:
        return _preview(place, frame.schema, "all rows, in one commit")
    say(f"writing {place.name}")
    place.folder.parent.mkdir(parents=True, exist_ok=True)
    writer = frame.write.format("delta").mode("overwrite")
    writer.option("overwriteSchema", str(wishes.evolve).lower()).save(str(place.folder))
    metrics = spark.sql(f"DESCRIBE HISTORY {place.sql} LIMIT 1").collect()[0]["operationMetrics"]
    counts.loaded = int(metrics["numOutputRows"])
    return report(place, counts, [])


# ---- incremental


def _plan(
    spark: Any,
    frame: Any,
    column: Any,
    source: Database,
    key: str,
    place: Place,
    wishes: Wishes,
    ledger: Ledger,
    counts: Counts,
    say: Say,
) -> dict[str, Any] | None:
    """The next batch, written to the ledger; None if there are no new rows."""
    from pyspark.sql import functions as f

    schema = _schema(spark, frame, source, place, wishes, counts)
    low = _last(ledger.plans(), key)
    kind = sql_of(column.dataType)
    what = {
        "source": key,
        "column": column.name,
        "type": kind,
        "low": low,
        "schema": schema.jsonValue(),
        "table": source.name,
    }
    say(f"looking for rows with {column.name} above {low}" if low else "looking at all rows")
    name = quoted(column.name)
    missing = frame.where(f.col(name).isNull()).limit(1).count()
    if missing:
        raise ConfigError(
            "cursor", f"column {column.name} is NULL in some rows, which could never be told new from old"
        )
    high = _above(frame, what).agg(f.max(name).cast("string").alias("high")).collect()[0]["high"]
    if high is None:
        return None
    what["high"] = high
    found = survey(_checked(frame, what), wishes.conflicts, place)
    return ledger.plan(len(ledger.plans()), {**what, **found})


def _above(frame: Any, what: Mapping[str, Any]) -> Any:
    """The rows whose cursor, as Spark reads it, is above `low`."""
    if what["low"] is None:
        return frame
    name, low = quoted(what["column"]), f"CAST({literal(what['low'])} AS {what['type']})"
    # The first condition goes to the database, where a value may have more digits; the second has no form that could.
    return frame.where(f"{name} >= {low}").where(f"least({name}, {low}) < {name}")


def _checked(frame: Any, what: Mapping[str, Any]) -> Any:
    """The rows of a batch with the table's types and, where a value does not fit, the reason."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    name, high = quoted(what["column"]), f"CAST({literal(what['high'])} AS {what['type']})"
    part = _above(frame, what).where(f"greatest({name}, {high}) <= {high}")
    return typed(part.withColumn(FILE, f.lit(what["table"])), StructType.fromJson(what["schema"]))
