"""CREATE SCHEMA and DROP SCHEMA; the schema that a command names."""

from __future__ import annotations

from typing import Any

from gateway.catalog.information import SCHEMA
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import UserError
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer, done
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c


def schema_in(name: c.Name | None, env: Environment) -> tuple[Any, str]:
    """Catalog and schema that a command names, or the session's."""
    if name is None:
        return env.tables.readable_schema_of((env.session.catalog, env.session.schema))
    if len(name.parts) > 2:
        raise UserError("SCHEMA_NOT_FOUND", f"The schema `{name}` cannot be found.", span=name.span)
    return env.tables.readable_schema_of(name.parts, name.span)


def create_schema(command: c.CreateSchema, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """CREATE SCHEMA."""
    parts = command.name.parts
    catalog = env.tables.catalog_of(parts[0] if len(parts) > 1 else env.session.catalog, command.name.span)
    objects.check_writable(catalog, "no schema can be created", command.name.span)
    if catalog.has_schema(parts[-1]) or parts[-1].lower() == SCHEMA:
        if command.if_not_exists:
            return done("CREATE_SCHEMA")
        raise UserError(
            "SCHEMA_ALREADY_EXISTS",
            f"Cannot create schema `{catalog.name}`.`{parts[-1]}` because it already exists.",
            span=command.name.span,
        )
    emit(Planned("CREATE_SCHEMA", "gateway", "makes the schema's folder", RESULT, writes=True, is_query=False))
    catalog.create_schema(parts[-1], command.comment)
    return Answer("CREATE_SCHEMA", is_query=False, announced=True)


def drop_schema(command: c.DropSchema, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DROP SCHEMA."""
    parts = command.name.parts
    catalog = env.tables.catalog_of(parts[0] if len(parts) > 1 else env.session.catalog, command.name.span)
    objects.check_writable(catalog, "no schema can be dropped", command.name.span)
    if not catalog.has_schema(parts[-1]):
        if command.if_exists:
            return done("DROP_SCHEMA")
        raise UserError(
            "SCHEMA_NOT_FOUND",
            f"The schema `{catalog.name}`.`{parts[-1]}` cannot be found.",
            span=command.name.span,
        )
    emit(Planned("DROP_SCHEMA", "gateway", "removes the schema's folder", RESULT, writes=True, is_query=False))
    with objects.Tolerated("SCHEMA_NOT_FOUND", command.if_exists):
        catalog.drop_schema(parts[-1], command.cascade)
    return Answer("DROP_SCHEMA", is_query=False, announced=True)
