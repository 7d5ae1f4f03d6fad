"""CREATE TABLE … SHALLOW | DEEP CLONE."""

from __future__ import annotations

from functools import partial

from gateway.catalog.bound import DeltaBoundTable
from gateway.delta.cloning import check_cloneable, clone
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import UserError, unsupported
from gateway.runner import objects
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands.definitions import unreserved
from gateway.runner.commands.targets import new_table, stop_if_cancelled, wanted_moment
from gateway.runner.commands.views import is_view
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import BIGINT, StructField, struct

_DONE = struct(
    *(
        StructField(name, BIGINT)
        for name in (
            *("source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files"),
            *("removed_files_size", "copied_files_size"),
        )
    )
)


def create_clone(command: c.CreateClone, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """CREATE [OR REPLACE] TABLE … CLONE."""
    span = command.name.span
    catalog, schema, table = new_table(command.name, env)
    objects.check_writable(catalog, "no table can be created", span)
    source = _source(command, env)
    place = objects.Place(catalog, schema, table)
    if place.kind and command.if_not_exists:
        return rows_of("CLONE", _DONE, [[] for _ in _DONE.fields])
    if place.kind == "view":
        raise objects.expects_table("CREATE TABLE CLONE", place.quoted, span)
    if place.kind and command.replace and _has_rows(place):
        text = (
            "The clone destination table is non-empty. Please TRUNCATE or DELETE FROM the table before running CLONE."
        )
        raise UserError("DELTA_UNSUPPORTED_NON_EMPTY_CLONE", text, span=span)
    if place.kind and command.replace:
        raise unsupported("CREATE OR REPLACE TABLE … CLONE in the place of a table", span)
    if place.kind:
        raise UserError("DELTA_TABLE_ALREADY_EXISTS", f"Table {place.quoted} already exists.", span=span)
    properties = unreserved(command.properties, command.name)
    path = catalog.table_location(schema, table)
    check_cloneable(path, source.snapshot, properties)
    emit(Planned("CLONE", "gateway", "a commit to the Delta log", _DONE, writes=True))
    alive, claim = partial(stop_if_cancelled, emit), partial(catalog.claimed, schema, table)
    with objects.Tolerated(objects.MADE, command.if_not_exists):
        done = clone(path, source.snapshot, str(source.name), command.deep, properties, alive, claim)
        counts = (done.size, done.files, done.removed, done.copied, done.removed_bytes, done.copied_bytes)
        return rows_of("CLONE", _DONE, [[count] for count in counts], announced=True, facts={"version": 0})
    return rows_of("CLONE", _DONE, [[] for _ in _DONE.fields], announced=True)


def _has_rows(place: objects.Place) -> bool:
    found = place.catalog.table(place.schema, place.name)
    return isinstance(found, DeltaBoundTable) and len(found.snapshot.files) > 0


def _source(command: c.CreateClone, env: Environment) -> DeltaBoundTable:
    """The table that is cloned, at the version or time that is asked for."""
    name, as_of = command.source, None
    if command.version is not None:
        as_of = ("version", command.version)
    elif command.timestamp is not None or command.moment is not None:
        as_of = ("timestamp", wanted_moment(command, env, name.span))
    found: object
    if len(name.parts) == 2 and name.parts[0].lower() == "delta" and "/" in name.parts[1]:
        found = env.tables.path("delta", name.parts[1], as_of, name.span)
    else:
        found = None if is_view(name, env) else env.tables.find(name.parts, as_of, name.span)
    if not isinstance(found, DeltaBoundTable):
        raise unsupported("CLONE of anything but a Delta table", name.span)
    return found
