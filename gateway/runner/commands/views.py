"""Views: made, described and dropped; their text is bound anew in every statement that uses them.

Temporary ones live in the session, lasting ones in the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.catalog.objects import StoredView
from gateway.config.session import TIMEZONE
from gateway.engine.base import Emit, Planned, SessionChange, Statement, TempView
from gateway.errors import GatewayError, UserError, unsupported
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer, done
from gateway.runner.context import meaning_of
from gateway.runner.environment import Environment, Queries
from gateway.sql.compile import compile_query
from gateway.sql.read import command_nodes as c
from gateway.sql.read.commands import parse_statement
from gateway.sql.read.made_view import clauses
from gateway.sqltypes import StructField

# Two zones that differ in offset at every instant since local times began.
_PROBES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")


def is_view(name: c.Name, env: Environment) -> bool:
    """Whether a name means a temporary view."""
    return len(name.parts) == 1 and name.parts[0].lower() in env.session.views


def columns(view: TempView, env: Environment, runner: Queries) -> tuple[StructField, ...]:
    """Names and types of a view's columns: those that it was made with, as far as that is known."""
    if view.made is None:
        return _columns_now(view, env, runner)
    names = view.columns or tuple(f.name for f in view.made.fields)
    return tuple(replace(f, name=name) for f, name in zip(view.made.fields, names, strict=True))


def _columns_now(view: TempView, env: Environment, runner: Queries) -> tuple[StructField, ...]:
    name = view.name.replace("`", "``")
    command = parse_statement(f"SELECT * FROM `{name}`")
    assert isinstance(command, c.Query)
    query, _ = runner.bind(command.tree, env)
    return query.schema.fields


def create_view(command: c.CreateView, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW."""
    if env.parameters:
        raise unsupported("parameter markers in a view", command.query.span)
    if not command.temporary:
        return _create_lasting(command, env, runner, emit)
    name = command.name.parts[0]
    replaced = name.lower() in env.session.views
    if replaced and not command.replace:
        raise UserError(
            "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
            f"Cannot create the temporary view `{name}` because it already exists. Choose a different name, drop or "
            "replace the existing view.",
            span=command.name.span,
        )
    query, _ = runner.bind(command.query.tree, env)
    given = tuple(v.name for v in command.columns)
    objects.view_columns(f"`{name}`", [(v.name, v.comment) for v in command.columns], query.schema, command.name.span)
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
        made=query.schema,
    )
    if replaced:
        # Found by using the view as it would be: its query may read the old one through other views.
        session = replace(env.session, views={**env.session.views, name.lower(): view})
        try:
            _columns_now(view, replace(env, session=session), runner)
        except UserError as error:
            if error.condition == "RECURSIVE_VIEW":
                error.span = command.name.span
            raise
    return done("CREATE_VIEW", SessionChange("put_view", name.lower(), view=view))


def _create_lasting(command: c.CreateView, env: Environment, runner: Queries, emit: Emit) -> Answer:
    span = command.name.span
    place = objects.place_of(env.tables, command.name.parts, "no view can be created", span)
    view = _bound(place, command, env, runner)  # what is wrong with the query comes first, as in Spark
    if not objects.may_make_view(place, command.replace, command.if_not_exists, span):
        return done("CREATE_VIEW")
    emit(Planned("CREATE_VIEW", "gateway", "a file in the schema's folder", RESULT, writes=True, is_query=False))
    objects.put_view(place, view, command.replace, command.if_not_exists, span)
    return Answer("CREATE_VIEW", is_query=False, announced=True)


def _bound(place: objects.Place, command: c.CreateView, env: Environment, runner: Queries) -> StoredView:
    """The view that a statement makes. Raises GatewayError for a query that is wrong, or cannot be one of a view."""
    hidden = _Temporary(place.quoted, env.session.views)
    settings = meaning_of(env.context)
    if not _depends_on_zone(command.query.tree, env, runner):
        del settings[TIMEZONE]
    env = replace(env, session=replace(env.session, views=hidden))
    query, _ = runner.bind(command.query.tree, env)
    given = [(v.name, v.comment) for v in command.columns]
    schema = objects.view_columns(place.quoted, given, query.schema, command.name.span)
    view = StoredView(
        place.full,
        command.query.text,
        schema,
        tuple(f.name for f in query.schema.fields),
        env.session.catalog,
        env.session.schema,
        command.comment,
        dict(command.properties),
        settings,
        named=bool(given),
    )
    if command.replace:  # a view that reads itself is found by reading it under its name, as if it were stored
        again = runner.environment(env.session)
        again.tables.pin(view)
        try:
            runner.bind(command.query.tree, again)
        except UserError as error:
            if error.condition == "RECURSIVE_VIEW":
                error.span = command.name.span
            raise
    return view


class _Temporary(dict[str, TempView]):
    """A session's temporary views, none of which a lasting view may read."""

    def __init__(self, view: str, views: Mapping[str, TempView]) -> None:
        super().__init__(views)
        self._view = view

    def get(self, key: str, default: Any = None) -> Any:
        found = super().get(key)
        if found is not None:
            raise objects.temporary_object(self._view, "VIEW", found.name, "VIEW")
        return default


def _depends_on_zone(tree: Any, env: Environment, runner: Queries) -> bool:
    """Whether the query becomes another one in another time zone (TIMESTAMP literals, casts, calendar functions)."""
    try:
        first, second = (_compiled(tree, env, runner, zone) for zone in _PROBES)
    except GatewayError:
        return True
    return bool(first != second)


def _compiled(tree: Any, env: Environment, runner: Queries, zone: str) -> tuple[Any, ...]:
    context = replace(env.context, clock=replace(env.context.clock, time_zone=zone))
    query, _ = runner.bind(tree, replace(env, context=context))
    generated = compile_query(query, context).generated
    return query.schema, generated.text, generated.udfs, generated.arrays


def drop_view(command: c.DropView, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DROP VIEW."""
    if is_view(command.name, env):
        return done("DROP_VIEW", SessionChange("drop_view", command.name.parts[0].lower()))
    name = command.name
    catalog, schema, view = env.tables.qualified(name.parts)
    known = env.tables.catalogs.get(catalog.lower())
    if known is not None and objects.has_view(known, schema, view):
        objects.place_of(env.tables, name.parts, "no view can be dropped", name.span)
        emit(Planned("DROP_VIEW", "gateway", "removes the view's file", RESULT, writes=True, is_query=False))
        with known.alone():
            known.drop(StoredView, schema, view)
        return Answer("DROP_VIEW", is_query=False, announced=True)
    if known is not None and known.table(schema, view) is not None:
        shown = f"{known.name}.{schema}.{view}"
        raise objects.wrong_kind("DROP VIEW", "VIEW", shown, "TABLE", "DROP TABLE", name.span)
    if command.if_exists:
        return done("DROP_VIEW")
    raise env.tables.missing(name.parts, name.span)


def alter_view(command: c.AlterView, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """ALTER VIEW … AS query: the view's name, comment and properties stay, its columns are those of the query.

    ALTER VIEW … WITH SCHEMA: nothing but the mode changes, of which the embedded engine knows one.
    """
    name = command.name
    if env.parameters:
        raise unsupported("parameter markers in a view", name.span)
    if is_view(name, env):
        raise unsupported("ALTER VIEW of a temporary view", name.span)
    found = env.tables.find(name.parts, None, name.span)
    place = objects.place_of(env.tables, name.parts, "no view can be altered", name.span)
    if not isinstance(found, StoredView):
        raise UserError(
            "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
            f"The table {place.quoted} does not support ALTER VIEW ... {'AS' if command.query else 'WITH SCHEMA BINDING'}.",
            span=name.span,
        )
    if command.query is None:
        if command.mode and not runner.has_spark:
            raise unsupported(f"WITH SCHEMA {command.mode}", name.span)
        view = replace(found, mode=command.mode, needs_spark=found.needs_spark or bool(command.mode))
        return _altered(place, found, view, emit)
    if found.collation or found.mode:
        raise unsupported(f"ALTER VIEW … AS of a view with {clauses(found.collation, found.mode).strip()}", name.span)
    made = c.CreateView(name, command.query, replace=True, comment=found.comment)
    view = replace(_bound(place, made, env, runner), properties=found.properties)
    return _altered(place, found, view, emit)


def _altered(place: objects.Place, old: StoredView, view: StoredView, emit: Emit) -> Answer:
    emit(Planned("ALTER_VIEW", "gateway", "a file in the schema's folder", RESULT, writes=True, is_query=False))
    objects.change_view(place.catalog, old, view)
    return Answer("ALTER_VIEW", is_query=False, announced=True)
