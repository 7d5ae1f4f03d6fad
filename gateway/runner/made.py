"""Lasting views, SQL functions and tables of other formats, made on Spark: tried there, then kept by the catalog."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gateway.catalog.base import Catalog
from gateway.catalog.objects import StoredFunction, StoredTable, StoredView
from gateway.config.session import honoured_by_spark
from gateway.delta import log
from gateway.delta.containment import held_folder
from gateway.delta.schema import parse_schema, struct_of
from gateway.engine.base import Emit, Finished, Planned, Statement
from gateway.engine.spark.engine import SparkSessionSlot
from gateway.engine.spark.errors import is_lost
from gateway.engine.spark.mirror import UNNAMED_COLUMNS
from gateway.errors import ServerError, UserError, unsupported
from gateway.runner import objects
from gateway.runner.answer import RESULT
from gateway.runner.context import context_of, meaning_of
from gateway.runner.registered import spark_name
from gateway.runner.sent import sent
from gateway.runner.tables import StatementTables
from gateway.sql.read.identifiers import quote_part
from gateway.sql.read.made_view import MadeFunction, MadeView, clauses
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement
from gateway.sql.read.tokens import END, STRING
from gateway.sql.spark.made_table import table_format
from gateway.sql.spark.respell import Head, Mention, Respelt, database
from gateway.sqltypes import StructType

if TYPE_CHECKING:
    from gateway.runner.spark import SparkRunner

# Folders of tables of other formats that are being made.
_MAKING: set[str] = set()
# Folders of new Delta tables, and how many statements are making one there.
_MAKERS: Counter[str] = Counter()
_LOCK = threading.Lock()


def tables_of(runner: SparkRunner, job: Statement) -> StatementTables:
    """Names as the job's session sees them."""
    return StatementTables(runner.catalogs, runner.paths, job.session.catalog, job.session.schema)


def finish(job: Statement, word: str, emit: Emit, writes: bool = True) -> None:
    """Tell the end of a statement without rows."""
    emit(Planned(word, "spark", job.route, RESULT, writes=writes, is_query=False))
    emit(Finished(0))


# ----------------------------------------------------------------------------------------------------------------- views


def view_head(runner: SparkRunner, job: Statement, view: MadeView) -> tuple[objects.Place, Head]:
    """Where a lasting view goes, and how Spark's statement for it begins. Raises UserError as CREATE and ALTER VIEW do."""
    place = objects.place_of(tables_of(runner, job), view.name, "no view can be created", view.span)
    if view.alters:
        kind = place.kind
        if not kind:
            raise tables_of(runner, job).missing(view.name, view.span)
        if kind == "table":
            text = f"The table {place.quoted} does not support ALTER VIEW ... AS."
            raise UserError("EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE", text, span=view.span)
    names = ", ".join(quote_part(name) for name, _ in view.columns)
    columns = f"({names}) " if names else ""
    collation, mode = _clauses(place, view)
    said = clauses(collation, mode)
    return place, Head(view.start, f"CREATE OR REPLACE VIEW {spark_name(place.full)} {columns}{said}AS ")


def _clauses(place: objects.Place, view: MadeView) -> tuple[str, str]:
    """Collation and mode of a view: those that it had if it is altered."""
    old: StoredView | None = place.catalog.view(place.schema, place.name) if view.alters else None
    return (view.collation, view.mode) if old is None else (old.collation, old.mode)


def make_view(
    runner: SparkRunner,
    job: Statement,
    view: MadeView,
    place: objects.Place,
    head: Head,
    respelt: Respelt,
    slot: SparkSessionSlot,
    emit: Emit,
) -> None:
    """CREATE VIEW, ALTER VIEW … AS."""
    if read_statement(job.text).markers:
        raise unsupported("parameter markers in a view", view.span)
    runner.prepare(job, slot, respelt, emit)
    # Behind as many spaces as the head is long, for the places in errors.
    query = sent(slot.spark, respelt)[len(head.text) :]
    frame = slot.spark.sql(query.rjust(len(respelt.text)))
    plain = own = _schema(frame)
    schema = objects.view_columns(place.quoted, _named(runner, view, own), own, view.span)
    collation, mode = _clauses(place, view)
    if not objects.may_make_view(place, view.replaces, view.if_not_exists, view.span):
        return finish(job, "CREATE_VIEW", emit, writes=False)
    try:
        slot.spark.conf.set(*UNNAMED_COLUMNS)
        slot.spark.sql(respelt.text)  # which finds temporary objects and cycles
        if collation:  # a name that nobody gave may tell it
            own = _schema(slot.spark.table(spark_name(place.full)))
            schema = objects.view_columns(place.quoted, _named(runner, view, own), own, view.span)
    finally:
        runner.engine.mirror.forget("VIEW", *spark_parts(place))
    old: StoredView | None = place.catalog.view(place.schema, place.name) if view.alters else None
    made = StoredView(
        place.full,
        view.query,
        schema,
        tuple(f.name for f in plain.fields),
        job.session.catalog,
        job.session.schema,
        old.comment if old is not None else view.comment,
        old.properties if old is not None else dict(view.properties),
        _settings(job),
        needs_spark=True,
        named=bool(view.columns),
        collation=collation,
        mode=mode,
        collated=bool(collation) or is_collated(frame),
    )
    emit(
        Planned("ALTER_VIEW" if view.alters else "CREATE_VIEW", "spark", job.route, RESULT, writes=True, is_query=False)
    )
    objects.put_view(place, made, view.replaces, view.if_not_exists, view.span)
    emit(Finished(0))


def _named(runner: SparkRunner, view: MadeView, own: StructType) -> tuple[tuple[str, str | None], ...]:
    return view.columns or tuple((runner.column(f.name), f.comment) for f in own.fields)


def spark_parts(place: objects.Place) -> tuple[str, str]:
    """Database and name in Spark."""
    return database(place.catalog.name, place.schema), place.name


def _settings(job: Statement) -> dict[str, str]:
    """What a text's meaning depends on, those that only Spark honours under its names."""
    return {**meaning_of(context_of(job.session)), **honoured_by_spark(job.session.settings)}


# ------------------------------------------------------------------------------------------------------------- functions


def function_head(runner: SparkRunner, job: Statement, function: MadeFunction) -> tuple[objects.Place, Head]:
    """Where a function goes, and how Spark's statement for it begins."""
    place = objects.place_of(tables_of(runner, job), function.name, "no function can be created", function.span)
    return place, Head(function.start, f"CREATE OR REPLACE FUNCTION {spark_name(place.full)} ")


def make_function(
    runner: SparkRunner,
    job: Statement,
    function: MadeFunction,
    place: objects.Place,
    respelt: Respelt,
    slot: SparkSessionSlot,
    emit: Emit,
) -> None:
    """CREATE FUNCTION."""
    if read_statement(job.text).markers:
        raise unsupported("parameter markers in a function", function.span)
    if not objects.may_make_function(place, function.replaces, function.if_not_exists, function.span):
        return finish(job, "CREATE_FUNCTION", emit, writes=False)
    runner.prepare(job, slot, respelt, emit)
    try:
        slot.spark.sql(sent(slot.spark, respelt))
    finally:
        runner.engine.mirror.forget("FUNCTION", *spark_parts(place))
    made = StoredFunction(place.full, function.text, job.session.catalog, job.session.schema, _settings(job))
    emit(Planned("CREATE_FUNCTION", "spark", job.route, RESULT, writes=True, is_query=False))
    if not place.catalog.put(made, function.replaces) and not function.if_not_exists:
        raise objects.function_exists(place, function.span)
    emit(Finished(0))


# ------------------------------------------------------------------------------------------------ tables of other formats


def stored_table(catalogs: dict[str, Catalog], mention: Mention) -> StoredTable | None:
    """The table of another format that a name means."""
    catalog = catalogs.get(mention.catalog.lower())
    if catalog is None or catalog.table_folder(mention.schema, mention.table) is not None:
        return None
    found = catalog.table(mention.schema, mention.table)
    return found if isinstance(found, StoredTable) else None


def may_run(statement: Read, respelt: Respelt, catalogs: dict[str, Catalog]) -> bool:
    """Whether a statement that writes is to run; False if CREATE TABLE IF NOT EXISTS has nothing to do.

    Raises UserError for a view that is written to or in the place of a new table; UnsupportedError for what Spark would do
    to a name behind the catalog's back.
    """
    target = next((m for m in respelt.mentions if m.is_target), None)
    catalog = catalogs.get(target.catalog.lower()) if target is not None else None
    if target is None or catalog is None or not catalog.has_schema(target.schema):
        return True
    place = objects.Place(catalog, target.schema, target.table)
    words = statement.words
    makes = words[0] in ("CREATE", "REPLACE") and "TABLE" in words[:4]
    if not makes:
        if catalog.table_folder(target.schema, target.table) is None and place.kind == "view":
            raise objects.expects_table(" ".join(statement.keywords[:1]), place.quoted, target.span)
        return True
    replaces = words[0] == "REPLACE" or words[1] == "OR"
    other = table_format(statement)
    if "LIKE" in words[: target.last + 2] and any(stored_table(catalogs, m) for m in respelt.mentions):
        raise unsupported("CREATE TABLE … LIKE a table of another format than Delta", target.span)
    if other is not None and replaces:
        raise unsupported("CREATE OR REPLACE TABLE of another format than Delta", target.span)
    if other is None and (not place.kind or catalog.table_folder(target.schema, target.table) is not None):
        return True
    return objects.may_make_table(place, replaces, words[words.index("TABLE") + 1] == "IF", target.span)


@contextmanager
def making(statement: Read, respelt: Respelt, runner: SparkRunner, emit: Emit) -> Iterator[None]:
    """Around CREATE TABLE: a new table's folder is gone again if it fails; of another format than Delta it has to be new."""
    if table_format(statement) is None:
        made = next((m for m in respelt.mentions if m.is_target), None)
        if made is None or statement.words[0] not in ("CREATE", "REPLACE") or "TABLE" not in statement.words[:4]:
            yield
            return
        with _making_delta(runner.catalogs[made.catalog.lower()].table_location(made.schema, made.table), emit):
            yield
        return
    target = next(m for m in respelt.mentions if m.is_target)
    catalog = runner.catalogs[target.catalog.lower()]
    place = objects.Place(catalog, target.schema, target.table)
    folder = catalog.table_location(target.schema, target.table)
    with _LOCK:
        if folder in _MAKING:
            raise objects.already_exists(place, target.span)
        _MAKING.add(folder)
    try:
        if os.path.isdir(folder) and os.listdir(folder):
            text = (
                f"Cannot name the managed table as {place.quoted}, as its associated location already exists. Please pick a "
                "different table name, or remove the existing location first."
            )
            raise UserError("LOCATION_ALREADY_EXISTS", text, sqlstate="42710", span=target.span)
        try:
            yield
        except BaseException:
            if not place.kind:  # else somebody else has made a table there meanwhile
                remove_made(folder)
            runner.engine.mirror.forget("TABLE", *spark_parts(place))
            raise
    finally:
        with _LOCK:
            _MAKING.discard(folder)


@contextmanager
def _making_delta(folder: str, emit: Emit) -> Iterator[None]:
    """Around CREATE TABLE of Delta's: the files that Spark leaves of one that fails are in the way of the next one."""
    with _LOCK:
        is_new = folder in _MAKERS or not os.path.isdir(folder) or not os.listdir(folder)
        _MAKERS[folder] += is_new
    failed = False
    try:
        yield
    except Exception as error:
        # A Spark that was cancelled or lost may yet commit.
        failed = is_new and not emit.cancelled and not is_lost(error)
        raise
    finally:
        with _LOCK:
            _MAKERS[folder] -= is_new
            if not _MAKERS[folder]:
                del _MAKERS[folder]
                if failed and not log.has_log(folder):
                    remove_made(folder)


def remove_made(folder: str) -> None:
    """Remove what a failed statement left in a table's place, unless the place leads elsewhere by now."""
    parent, name = os.path.split(folder)
    with contextlib.suppress(OSError, UserError), held_folder(parent, parent) as held:
        shutil.rmtree(name, ignore_errors=True, dir_fd=held)


def keep_table(spark: Any, catalog: Catalog, mention: Mention, format_: str, replaces: bool) -> None:
    """Keep what Spark knows of a table of another format, which has just been made or altered there."""
    place = objects.Place(catalog, catalog_spelling(catalog, mention.schema), mention.table)
    name = spark_name(place.full)
    location = catalog.table_location(place.schema, place.name)
    os.makedirs(location, exist_ok=True)
    frame = spark.table(name)
    columns = spark.catalog.listColumns(name)
    rows = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    table = spark.catalog.getTable(name)
    stored = StoredTable(
        place.full,
        location,
        format_.lower(),
        _schema(frame),
        tuple(c.name for c in columns if c.isPartition),
        definition_of(spark.sql(f"SHOW CREATE TABLE {name}").collect()[0][0]),
        table.description,
        {row[0]: row[1] for row in rows},
        collated=is_collated(frame),
    )
    taken = catalog.table_folder(place.schema, place.name) is not None
    if taken or not catalog.put(stored, replaces):
        raise objects.already_exists(place, mention.span)


def catalog_spelling(catalog: Catalog, schema: str) -> str:
    """A schema's name as its catalog spells it."""
    return next((s for s in catalog.schemas() if s.lower() == schema.lower()), schema)


def is_collated(frame: Any) -> bool:
    """Whether a string in a column has a collation, which Spark's JSON tells beside the type."""
    return "__COLLATIONS" in frame.schema.json()


def _schema(frame: Any) -> StructType:
    return struct_of(parse_schema(frame.schema.jsonValue()))


def definition_of(text: str) -> str:
    """What stands behind the name in the answer of SHOW CREATE TABLE, without LOCATION, and without the usual collation.

    Spark names the collation UTF8_BINARY there, but does not know CHAR and VARCHAR with it again.
    """
    statement = read_statement(text)
    words, tokens = statement.words, statement.tokens
    at = 2
    while words[at + 1] == ".":
        at += 2
    if END in (words[0], words[at]):
        raise ServerError("INTERNAL_ERROR", f"Spark describes a table by {text[:200]!r}.")
    start = tokens[at].end + 1
    pieces = []
    depth = 0
    for i, word in enumerate(words[:-1]):
        depth += (word == "(") - (word == ")")
        located = not depth and word == "LOCATION" and words[i + 1] == STRING
        if i > at and (located or (word == "COLLATE" and words[i + 1] == "UTF8_BINARY")):
            pieces.append(text[start : tokens[i].start].rstrip())
            start = tokens[i + 1].end + 1
    return "".join([*pieces, text[start : statement.span.stop]]).strip()


def truncate(table: StoredTable, spark: Any) -> None:
    """Remove a table's files: Spark refuses TRUNCATE of tables whose place is given."""
    with held_folder(table.location, table.location) as folder, os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.name, dir_fd=folder)
            else:
                os.unlink(entry.name, dir_fd=folder)
    spark.sql(f"REFRESH TABLE {spark_name(table.name)}")
