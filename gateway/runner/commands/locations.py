"""CREATE TABLE … LOCATION: tables in folders of their own, which DROP TABLE leaves where they are."""

from __future__ import annotations

import os

from gateway.catalog.objects import StoredLocation, StoredView
from gateway.delta.creation import told_properties
from gateway.delta.log import has_log
from gateway.delta.properties import spelt
from gateway.delta.table import Snapshot, open_snapshot
from gateway.engine.base import Emit, Planned
from gateway.errors import Span, UserError, unsupported
from gateway.runner.answer import RESULT, Answer
from gateway.runner.commands.definitions import definition_of, unreserved
from gateway.runner.environment import Environment
from gateway.runner.objects import Place, already_exists
from gateway.sql.read import command_nodes as c

_LONGEST_NAME = 255  # bytes


def checked_folder(command: c.CreateTable, place: Place, env: Environment) -> str:
    """The real folder that a statement names. Raises what keeps a table from lying there."""
    span = command.name.span
    assert command.location is not None
    place.catalog.check_name("table", place.name)
    try:
        folder = env.tables.paths.resolve(command.location, must_exist=False)
        place.catalog.check_location(folder)
    except UserError as error:
        raise error.at(span) from None
    if not os.path.isdir(os.path.dirname(folder)):
        raise UserError("PATH_NOT_FOUND", f"Path does not exist: {os.path.dirname(folder)}.", span=span)
    if "%" in folder:
        text = f"A Delta table in a folder with % in its name ({folder}) is not supported."
        raise UserError("UNSUPPORTED_FEATURE", text, span=span)
    if max(len(name.encode(errors="surrogatepass")) for name in folder.split("/")) > _LONGEST_NAME:
        raise UserError("PATH_NOT_ALLOWED", "A folder's name is longer than 255 bytes.", span=span)
    _check_same(place, folder, span)
    return folder


def _check_same(place: Place, folder: str, span: Span | None) -> None:
    """Raise unless a table that is to be replaced lies where the statement says."""
    if not place.kind:
        return
    there = place.catalog.table_location(place.schema, place.name)
    if os.path.realpath(there) != folder:
        text = (
            f"The location of the existing table {place.quoted} is `file:{there}`. It doesn't match the specified location "
            f"`file:{folder}`."
        )
        raise UserError("DELTA_TABLE_LOCATION_MISMATCH", text, span=span)


def is_table(command: c.CreateTable, folder: str, place: Place) -> bool:
    """Whether there is a Delta table in the folder that only needs a name, which is not to be replaced.

    Raises DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION for anything else there; UnsupportedError where Spark writes beside it.
    """
    there = has_log(folder)
    if there and command.replace and (place.kind or command.query is not None):
        return False
    full = not there and os.path.lexists(folder) and not _is_empty(folder)
    if full and command.replace and command.query is not None:
        raise unsupported("CREATE OR REPLACE TABLE … LOCATION in a folder that holds no Delta table", command.name.span)
    if full or (there and command.query is not None):
        text = (
            f"Cannot create table ('{place.quoted}'). The associated location ('file:{folder}') is not empty and also not a "
            "Delta table."
        )
        raise UserError("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", text, span=command.name.span)
    return there


def _is_empty(folder: str) -> bool:
    return os.path.isdir(folder) and not os.listdir(folder)


def adopted(command: c.CreateTable, folder: str, place: Place, env: Environment, emit: Emit) -> Answer:
    """A name for a table that is there.

    Raises DELTA_CREATE_TABLE_SCHEME_MISMATCH and …_WITH_DIFFERENT_PROPERTY for one that is another than is said.
    """
    span = command.name.span
    snapshot = open_snapshot(folder, within=env.tables.paths.roots)
    _check_properties(unreserved(command.properties, command.name), snapshot, span)
    if command.comment is not None or command.checks or command.keys or command.clustered_by:
        raise unsupported("CREATE TABLE … LOCATION of a table that is there, with more than its columns,", span)
    if command.columns:
        given = definition_of(command, env)
        if given.metadata or given.schema != snapshot.schema or given.partition_by != snapshot.partition_columns:
            text = f"The specified schema does not match the existing schema at file:{folder}."
            raise UserError("DELTA_CREATE_TABLE_SCHEME_MISMATCH", text, span=span)
    elif command.partitioned_by:
        raise unsupported("CREATE TABLE … PARTITIONED BY … LOCATION of a table that is there", span)
    emit(Planned("CREATE_TABLE", "gateway", "a file of the catalog", RESULT, writes=True, is_query=False))
    keep(place, folder, span)
    return Answer("CREATE_TABLE", is_query=False, announced=True)


def _check_properties(given: dict[str, str], snapshot: Snapshot, span: Span | None) -> None:
    """Properties are those that the table has, with or without what tells of its protocol (Delta's `verifyTableMetadata`)."""
    said, own = ({spelt(key): value for key, value in of.items()} for of in (given, snapshot.properties))
    told = told_properties(snapshot)
    if not said or {key: value for key, value in said.items() if key in own or told.get(key) != value} == own:
        return
    sides = ("\n".join(f"{key}={value}" for key, value in sorted(of.items())) for of in (said, own))
    text = (
        f"The specified properties do not match the existing properties at file:{snapshot.root}.\n\n"
        "== Specified ==\n{}\n\n== Existing ==\n{}\n"
    )
    raise UserError("DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY", text.format(*sides), span=span)


def keep(place: Place, folder: str, span: Span | None) -> None:
    """Keep where a table lies; raises TABLE_OR_VIEW_ALREADY_EXISTS if somebody else was faster."""
    with place.catalog.alone():
        was = place.catalog.located(place.schema, place.name)
        managed = was is None and place.catalog.table_folder(place.schema, place.name) is not None
        stale = was is not None and not has_log(was)
        taken = managed or place.catalog.identity(StoredView, place.schema, place.name) is not None
        if taken or not place.catalog.put(StoredLocation(place.full, folder), stale):
            raise already_exists(place, span)
