"""Temporary views of a session: made, described and dropped; their text is bound anew in every statement that uses them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.engine.base import Emit, SessionChange, Statement, TempView
from gateway.errors import GatewayError, UserError, unsupported
from gateway.runner.answer import Answer, done
from gateway.sql import command_nodes as c
from gateway.sql.commands import parse_statement
from gateway.sql.compile import compile_query
from gateway.sqltypes import StructField

if TYPE_CHECKING:
    from gateway.runner.handler import Environment, Runner

# Two zones that differ in offset at every instant since local times began.
_PROBES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")


def is_view(name: c.Name, env: Environment) -> bool:
    """Whether a name means a temporary view."""
    return len(name.parts) == 1 and name.parts[0].lower() in env.session.views


def columns(view: TempView, env: Environment, runner: Runner) -> tuple[StructField, ...]:
    """Names and types of a view's columns."""
    name = view.name.replace("`", "``")
    command = parse_statement(f"SELECT * FROM `{name}`")
    assert isinstance(command, c.Query)
    query, _ = runner.bind(command.tree, env)
    return query.schema.fields


def create_view(command: c.CreateView, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """CREATE [OR REPLACE] TEMPORARY VIEW."""
    if not command.temporary:
        raise unsupported("CREATE VIEW (only TEMPORARY views)", command.name.span)
    name = command.name.parts[0]
    replaced = name.lower() in env.session.views
    if replaced and not command.replace:
        raise UserError(
            "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
            f"Cannot create the temporary view `{name}` because it already exists. Choose a different name, drop or "
            "replace the existing view.",
            span=command.name.span,
        )
    if env.parameters:
        raise unsupported("parameter markers in a view", command.query.span)
    query, _ = runner.bind(command.query.tree, env)
    given = tuple(v.name for v in command.columns)
    own = tuple(f.name for f in query.schema.fields)
    if given and len(given) != len(own):
        many = len(given) < len(own)
        raise UserError(
            f"CREATE_VIEW_COLUMN_ARITY_MISMATCH.{'TOO_MANY' if many else 'NOT_ENOUGH'}_DATA_COLUMNS",
            f"Cannot create view `{name}`, the reason is {'too many' if many else 'not enough'} data columns: view "
            f"columns: {_listed(given)}; data columns: {_listed(own)}.",
            sqlstate="21S01",
            span=command.name.span,
        )
    _check_unique(given or own, command.name)
    text = command.query.text
    view = TempView(
        name,
        text,
        given,
        env.session.catalog,
        env.session.schema,
        command.comment,
        views=frozenset(v for v in env.session.views if v.replace("`", "``") in text.lower()),
        time_zone=env.context.time_zone if _depends_on_zone(command.query.tree, env, runner) else "",
    )
    if replaced:
        # Found by using the view as it would be: its query may read the old one through other views.
        session = replace(env.session, views={**env.session.views, name.lower(): view})
        try:
            columns(view, replace(env, session=session), runner)
        except UserError as error:
            if error.condition == "RECURSIVE_VIEW":
                error.span = command.name.span
            raise
    return done("CREATE_VIEW", SessionChange("put_view", name.lower(), view=view))


def _check_unique(names: tuple[str, ...], view: c.Name) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise UserError(
                "COLUMN_ALREADY_EXISTS",
                f"The column `{name.lower()}` already exists. Choose another name or rename the existing column.",
                span=view.span,
            )
        seen.add(name.lower())


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _depends_on_zone(tree: Any, env: Environment, runner: Runner) -> bool:
    """Whether the query becomes another one in another time zone (TIMESTAMP literals, casts, calendar functions)."""
    try:
        first, second = (_compiled(tree, env, runner, zone) for zone in _PROBES)
    except GatewayError:
        return True
    return bool(first != second)


def _compiled(tree: Any, env: Environment, runner: Runner, zone: str) -> tuple[Any, ...]:
    context = replace(env.context, clock=replace(env.context.clock, time_zone=zone))
    query, _ = runner.bind(tree, replace(env, context=context))
    generated = compile_query(query, context).generated
    return query.schema, generated.text, generated.udfs, generated.arrays


def drop_view(command: c.DropView, job: Statement, env: Environment, runner: Runner, emit: Emit) -> Answer:
    """DROP VIEW."""
    if is_view(command.name, env):
        return done("DROP_VIEW", SessionChange("drop_view", command.name.parts[0].lower()))
    catalog, schema, table = env.tables.qualified(command.name.parts)
    known = env.tables.catalogs.get(catalog.lower())
    if known is not None and table.lower() in {t.lower() for t in known.tables(schema)}:
        raise UserError(
            "WRONG_COMMAND_FOR_OBJECT_TYPE",
            f"The operation DROP VIEW requires a VIEW. But {known.name}.{schema}.{table} is a table. Use DROP TABLE "
            "instead.",
            sqlstate="42809",
            span=command.name.span,
        )
    if command.if_exists:
        return done("DROP_VIEW")
    raise env.tables.missing(command.name.parts, command.name.span)
