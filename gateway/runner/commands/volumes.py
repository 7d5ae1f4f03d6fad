"""CREATE, DROP and SHOW VOLUMES. What is done with the files of volumes is in `staging`."""

from __future__ import annotations

from gateway.catalog.objects import StoredVolume, new_volume
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import UserError
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer, done, rows_of, strings
from gateway.runner.commands.schemas import schema_in
from gateway.runner.environment import Environment, Queries
from gateway.runner.patterns import hive
from gateway.sql.read import command_nodes as c


def create_volume(command: c.CreateVolume, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """CREATE VOLUME."""
    span = command.name.span
    place = objects.place_of(env.tables, command.name.parts, "no volume can be created", span)
    place.catalog.check_name("volume", place.name)
    there = place.catalog.identity(StoredVolume, place.schema, place.name) is not None
    if not there:
        emit(Planned("CREATE_VOLUME", "gateway", "a file in the schema's folder", RESULT, writes=True, is_query=False))
        if place.catalog.put(new_volume(place.full, command.comment), False):
            return Answer("CREATE_VOLUME", is_query=False, announced=True)
    if not command.if_not_exists:
        text = f"Cannot create volume {place.quoted} because it already exists."
        raise UserError("VOLUME_ALREADY_EXISTS", text, span=span)
    return Answer("CREATE_VOLUME", is_query=False, announced=not there)


def drop_volume(command: c.DropVolume, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DROP VOLUME."""
    span = command.name.span
    catalog_name, schema, volume = env.tables.qualified(command.name.parts)
    catalog = env.tables.catalogs.get(catalog_name.lower())
    if catalog is None or catalog.identity(StoredVolume, schema, volume) is None:
        if command.if_exists:
            return done("DROP_VOLUME")
        text = f"Volume `{catalog_name}`.`{schema}`.`{volume}` does not exist."
        raise UserError("VOLUME_DOES_NOT_EXIST", text, span=span)
    objects.check_writable(catalog, "no volume can be dropped", span)
    emit(Planned("DROP_VOLUME", "gateway", "removes the volume with its files", RESULT, writes=True, is_query=False))
    catalog.drop(StoredVolume, schema, volume)
    return Answer("DROP_VOLUME", is_query=False, announced=True)


def show_volumes(command: c.ShowVolumes, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SHOW VOLUMES."""
    catalog, schema = schema_in(command.schema, env)
    match = hive(command.pattern)
    names = [v for v in catalog.volumes(schema) if match(v)]
    return rows_of("SHOW", strings("database", "volume_name"), [[schema] * len(names), names])
