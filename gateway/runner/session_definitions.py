"""What a session keeps of variables, functions and views that only Spark knows: texts that make them there."""

from __future__ import annotations

from gateway.config.session import honoured_by_spark
from gateway.engine.base import Definition, SessionChange, SessionState, TempView
from gateway.runner.context import context_of
from gateway.sql.read.declarations import defined
from gateway.sql.read.made_view import MadeView
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement
from gateway.sqltypes import StructType


def needed(statement: Read, state: SessionState) -> list[Definition]:
    """The session's definitions that a statement may use: those whose name is a word of it, or of a view that is one."""
    if not state.definitions:
        return []
    words = _words(statement)
    views = dict(state.views)
    while found := [view for name in words & views.keys() if (view := views.pop(name)) is not None]:
        words = words.union(*(_words(read_statement(view.query)) for view in found))
    return [d for d in state.definitions.values() if d.name in words]


def _words(statement: Read) -> set[str]:
    return {token.text.lower() for token in statement.tokens}


def declared(statement: Read, state: SessionState) -> tuple[SessionChange, ...]:
    """What a statement's text says of the session's definitions: those that it drops and, without values, makes."""
    what = defined(statement)
    made = [Definition(d.key, d.text, state.catalog, state.schema) for d in what.made]
    return (
        *(SessionChange("drop_definition", key) for key in what.dropped),
        *(SessionChange("put_definition", d.key, definition=d) for d in made),
    )


def temporary_view(view: MadeView, state: SessionState, made: StructType | None = None) -> TempView:
    """What a session keeps of a temporary view over a query that only Spark knows, and that answers the columns `made`."""
    name = view.name[-1]
    return TempView(
        name,
        view.query,
        tuple(column for column, _ in view.columns),
        state.catalog,
        state.schema,
        view.comment,
        views=frozenset(v for v in state.views if v != name.lower()),
        time_zone=context_of(state).time_zone,
        collation=view.collation,
        settings=tuple(sorted(honoured_by_spark(state.settings).items())),
        made=made,
    )
