"""What a statement sees, and what a command may ask of the runner that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.catalog.base import Catalog
from gateway.catalog.paths import AllowedRoots
from gateway.catalog.recorded import Seen
from gateway.config.session import default_settings
from gateway.engine.base import Engine, SessionState
from gateway.errors import Span
from gateway.history.search import History
from gateway.planner import Plan
from gateway.runner.context import context_of, meaning_of
from gateway.runner.tables import StatementTables
from gateway.sql.bind.resolve import Binder, BoundQuery
from gateway.sql.compile import Compiled
from gateway.sql.typed.catalogue import Context


@dataclass(slots=True)
class Environment:
    """One statement's view of everything: names, clock, parameters."""

    session: SessionState
    tables: StatementTables
    context: Context
    parameters: dict[int | str, Any]
    read_bytes: int = 0  # of the query that runs

    def setting(self, key: str) -> str:
        """The session's value of a setting, or its default."""
        return self.session.settings.get(key) or default_settings().get(key, "")


def environment_of(
    session: SessionState, catalogs: Mapping[str, Catalog], paths: AllowedRoots, history: History | None = None
) -> Environment:
    """What a statement of `session` sees that starts now."""
    context = context_of(session)
    seen = None if history is None else Seen(history, session.user)
    settings = meaning_of(context)
    names = (session.catalog, session.schema)
    tables = StatementTables(catalogs, paths, *names, settings=settings, seen=seen, runtime=session.runtime)
    return Environment(session, tables, context, {})


class Queries(Protocol):
    """What a command asks of its runner: queries bound, compiled and planned, and the engine that runs them."""

    @property
    def has_spark(self) -> bool:
        """Whether Spark takes what is handed over."""

    @property
    def engine(self) -> Engine: ...

    def environment(self, session: SessionState) -> Environment:
        """What a statement of `session` sees."""

    def bind(self, tree: Any, env: Environment) -> tuple[BoundQuery, Binder]:
        """Bind a parsed query in `env`."""

    def prepared(self, tree: Any, env: Environment) -> tuple[Compiled, Plan]:
        """Compile and plan a parsed query. Raises HandedOverError for one that is too large."""

    def check_size(self, decision: Plan, env: Environment, span: Span | None = None) -> None:
        """Raise HandedOverError for what would read more than the embedded engine shall."""
