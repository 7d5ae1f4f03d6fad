"""DROP FUNCTION: of a lasting one; only Spark makes them."""

from __future__ import annotations

from gateway.catalog.objects import StoredFunction
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import UserError
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer, done
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c


def drop_function(command: c.DropFunction, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DROP FUNCTION: a lasting one."""
    name = command.name
    catalog_name, schema, function = env.tables.qualified(name.parts)
    catalog = env.tables.catalogs.get(catalog_name.lower())
    if catalog is None or catalog.identity(StoredFunction, schema, function) is None:
        if command.if_exists:
            return done("DROP_FUNCTION")
        raise UserError(
            "ROUTINE_NOT_FOUND",
            f"The routine `{catalog_name}`.`{schema}`.`{function}` cannot be found. Verify the spelling and correctness of "
            "the schema and catalog. To tolerate the error on drop use DROP ... IF EXISTS.",
            span=name.span,
        )
    objects.place_of(env.tables, name.parts, "no function can be dropped", name.span)
    emit(Planned("DROP_FUNCTION", "gateway", "removes the function's file", RESULT, writes=True, is_query=False))
    catalog.drop(StoredFunction, schema, function)
    return Answer("DROP_FUNCTION", is_query=False, announced=True)
