"""Tables made on Spark: those of other formats, kept by the catalog, and what a failed statement leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gateway.catalog import drafts
from gateway.catalog.base import Catalog, Draft
from gateway.catalog.objects import StoredTable
from gateway.delta.containment import held_folder
from gateway.engine.spark.mirror import Mirror, is_plain
from gateway.errors import ServerError, Span, UnsupportedError, UserError, unsupported
from gateway.runner import objects
from gateway.runner.spark.names import spark_name
from gateway.runner.spark.results import is_collated, schema_of
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement
from gateway.sql.read.tokens import END, STRING
from gateway.sql.spark.made_table import check_definition, table_format
from gateway.sql.spark.respell import SPARK_CATALOG, Mention, Respelt
from gateway.sqltypes import quote_part


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
    if not _makes_table(statement):
        if catalog.table_folder(target.schema, target.table) is None and place.kind == "view":
            raise objects.expects_table(" ".join(statement.keywords[:1]), place.quoted, target.span)
        return True
    replaces = words[0] == "REPLACE" or words[1] == "OR"
    other = table_format(statement)
    if "LIKE" in words[: target.last + 2] and any(stored_table(catalogs, m) for m in respelt.mentions):
        raise unsupported("CREATE TABLE … LIKE a table of another format than Delta", target.span)
    if other is not None and words[target.last + 1] == "LIKE":
        raise unsupported(f"CREATE TABLE … LIKE … USING {other}", target.span)
    if other is not None and not is_plain(target.table):  # which Spark asks of the draft's name alone
        rule = "Valid names only contain alphabet characters, numbers and _."
        text = f"`{target.table}` is not a valid name for tables/schemas. {rule}"
        raise UserError("INVALID_SCHEMA_OR_RELATION_NAME", text, span=target.span)
    if other is not None and replaces:
        raise unsupported("CREATE OR REPLACE TABLE of another format than Delta", target.span)
    if other is None and (not place.kind or catalog.table_folder(target.schema, target.table) is not None):
        return True
    return objects.may_make_table(place, replaces, _is_content(statement), target.span)


def _makes_table(statement: Read) -> bool:
    return statement.words[0] in ("CREATE", "REPLACE") and "TABLE" in statement.words[:4]


def _is_content(statement: Read) -> bool:
    """Whether CREATE TABLE says IF NOT EXISTS."""
    return statement.words[statement.words.index("TABLE") + 1] == "IF"


@contextmanager
def making(target: Mention, mirror: Mirror) -> Iterator[Draft | None]:
    """Around a statement, with the draft of a table that it makes, None where it makes none.

    What Spark knows of it is gone at the end, and so is what has not come to its own name by then.
    """
    try:
        yield target.draft
    finally:
        if target.draft is not None:
            with contextlib.suppress(UserError, OSError):  # it is swept later, and what has failed is told
                drafts.discard(target.draft)
            mirror.forget("TABLE", *target.in_spark, target.draft.folder)


def settle(
    catalogs: Mapping[str, Catalog], target: Mention, draft: Draft, stored: StoredTable | None, statement: Read
) -> None:
    """Give a new table its name, and keep what is `stored` of one of another format.

    Raises what `Catalog.claimed` and `drafts.settle` do; not where IF NOT EXISTS is content with another one.
    """
    catalog = catalogs[target.catalog.lower()]
    if stored is not None:  # of which Spark makes the folder with the first file
        os.makedirs(draft.folder, exist_ok=True)
    try:
        with objects.Tolerated(objects.MADE, _is_content(statement)), catalog.claimed(target.schema, target.table):
            folder = catalog.table_location(target.schema, target.table)
            if stored is None:
                drafts.settle(draft, folder, "REPLACE" in statement.words[:3])
                return
            if catalog.table_folder(target.schema, target.table) is not None or not catalog.put(stored, False):
                raise objects.already_exists(objects.Place(catalog, target.schema, target.table), target.span)
            try:
                drafts.settle(draft, folder)
            except BaseException:  # a killed process leaves a name that can be dropped
                catalog.drop(StoredTable, target.schema, target.table)
                raise
    except UserError as error:
        raise error.at(target.span) from None


def check_as_it_was(catalogs: Mapping[str, Catalog], target: Mention, statement: Read) -> None:
    """Raise WRITE_CONFLICT where a table is gone in whose place one is to be made: Spark would go on there."""
    catalog = catalogs[target.catalog.lower()]
    there = catalog.located(target.schema, target.table) or catalog.table_folder(target.schema, target.table)
    if _makes_table(statement) and target.draft is None and there is None:
        text = f"The table `{target.schema}`.`{target.table}` was dropped meanwhile. Send the statement again."
        raise UserError("WRITE_CONFLICT", text, span=target.span, retryable=True)


def check_free(catalogs: Mapping[str, Catalog], target: Mention) -> None:
    """Raise LOCATION_ALREADY_EXISTS where files are in the way of a new table."""
    catalog = catalogs[target.catalog.lower()]
    folder = catalog.table_location(target.schema, target.table)
    if os.path.isdir(folder) and os.listdir(folder):
        place = objects.Place(catalog, target.schema, target.table)
        text = (
            f"Cannot name the managed table as {place.quoted}, as its associated location already exists. Please pick a "
            "different table name, or remove the existing location first."
        )
        raise UserError("LOCATION_ALREADY_EXISTS", text, span=target.span)


def described(spark: Any, mirror: Mirror, catalog: Catalog, mention: Mention, format_: str) -> StoredTable:
    """What Spark knows of a table of another format, which has just been made or altered there, to be kept.

    Raises UnsupportedError for one that it could not be given again: properties like ``option.path`` are options to Spark.
    """
    place = objects.Place(catalog, catalog_spelling(catalog, mention.schema), mention.table)
    where, called = mention.in_spark
    name = f"{SPARK_CATALOG}.{quote_part(where)}.{quote_part(called.lower())}"
    definition = definition_of(spark.sql(f"SHOW CREATE TABLE {name}").collect()[0][0])
    try:
        check_definition(definition, format_)
    except UnsupportedError as error:
        mirror.forget("TABLE", where, called)  # or an altered one would stay
        raise UnsupportedError(error.condition, error.message, span=mention.span) from None
    frame = spark.table(name)
    columns = spark.catalog.listColumns(name)
    rows = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    table = spark.catalog.getTable(name)
    return StoredTable(
        place.full,
        catalog.table_location(place.schema, place.name),
        format_.lower(),
        schema_of(frame),
        tuple(c.name for c in columns if c.isPartition),
        definition,
        table.description,
        {row[0]: row[1] for row in rows},
        collated=is_collated(frame),
    )


def keep_altered(catalog: Catalog, stored: StoredTable, span: Span) -> None:
    """Keep what was altered of a table of another format. Raises TABLE_OR_VIEW_ALREADY_EXISTS for one of Delta by now."""
    name = stored.name
    if catalog.table_folder(name.schema, name.table) is not None or not catalog.put(stored, True):
        raise objects.already_exists(objects.Place(catalog, name.schema, name.table), span)


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
