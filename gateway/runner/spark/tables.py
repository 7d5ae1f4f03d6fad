"""Tables made on Spark: those of other formats, kept by the catalog, and what a failed statement leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gateway.catalog.base import Catalog
from gateway.catalog.objects import StoredTable
from gateway.delta import log
from gateway.delta.containment import held_folder, remove_tree
from gateway.engine.base import Emit
from gateway.engine.spark.errors import is_lost
from gateway.engine.spark.mirror import Mirror
from gateway.errors import ServerError, UnsupportedError, UserError, unsupported
from gateway.runner import objects
from gateway.runner.spark.names import spark_name, spark_parts
from gateway.runner.spark.results import is_collated, schema_of
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement
from gateway.sql.read.tokens import END, STRING
from gateway.sql.spark.made_table import check_definition, table_format
from gateway.sql.spark.respell import Mention, Respelt

# Folders of tables of other formats that are being made.
_MAKING: set[str] = set()
# Folders of new Delta tables, and how many statements are making one there.
_MAKERS: Counter[str] = Counter()
_LOCK = threading.Lock()


def stored_table(catalogs: Mapping[str, Catalog], mention: Mention) -> StoredTable | None:
    """The table of another format that a name means."""
    catalog = catalogs.get(mention.catalog.lower())
    if catalog is None or catalog.table_folder(mention.schema, mention.table) is not None:
        return None
    found = catalog.table(mention.schema, mention.table)
    return found if isinstance(found, StoredTable) else None


def may_run(statement: Read, respelt: Respelt, catalogs: Mapping[str, Catalog]) -> bool:
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
def making(
    statement: Read, respelt: Respelt, catalogs: Mapping[str, Catalog], mirror: Mirror, emit: Emit
) -> Iterator[None]:
    """Around CREATE TABLE: a new table's folder is gone again if it fails; of another format than Delta it has to be new."""
    if table_format(statement) is None:
        made = next((m for m in respelt.mentions if m.is_target), None)
        if made is None or statement.words[0] not in ("CREATE", "REPLACE") or "TABLE" not in statement.words[:4]:
            yield
            return
        with _making_delta(catalogs[made.catalog.lower()].table_location(made.schema, made.table), emit):
            yield
        return
    target = next(m for m in respelt.mentions if m.is_target)
    catalog = catalogs[target.catalog.lower()]
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
            raise UserError("LOCATION_ALREADY_EXISTS", text, span=target.span)
        try:
            yield
        except BaseException:
            if not place.kind:  # else somebody else has made a table there meanwhile
                remove_made(folder)
            mirror.forget("TABLE", *spark_parts(place))
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
        remove_tree(name, held)


def keep_table(spark: Any, mirror: Mirror, catalog: Catalog, mention: Mention, format_: str, replaces: bool) -> None:
    """Keep what Spark knows of a table of another format, which has just been made or altered there.

    Raises UnsupportedError for one that it could not be given again: properties like ``option.path`` are options to Spark.
    """
    place = objects.Place(catalog, catalog_spelling(catalog, mention.schema), mention.table)
    name = spark_name(place.full)
    definition = definition_of(spark.sql(f"SHOW CREATE TABLE {name}").collect()[0][0])
    try:
        check_definition(definition, format_)
    except UnsupportedError as error:
        mirror.forget("TABLE", *spark_parts(place))  # or an altered one would stay
        raise UnsupportedError(error.condition, error.message, span=mention.span) from None
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
        schema_of(frame),
        tuple(c.name for c in columns if c.isPartition),
        definition,
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
