"""What a Spark session has to hold before a statement runs there: all that it names, and the session's views."""

from __future__ import annotations

import contextlib

from gateway.engine.base import Definition, Emit, Statement, TempView
from gateway.engine.spark.engine import SparkEngine, SparkSessionSlot
from gateway.engine.spark.errors import as_gateway_error
from gateway.errors import GatewayError
from gateway.runner.session_definitions import declared
from gateway.runner.spark import temporaries
from gateway.runner.spark.names import Names
from gateway.runner.spark.registered import Noted, Registered, Registrar, text_as_made
from gateway.runner.spark.results import readable_schema
from gateway.runner.spark.sent import sent
from gateway.runner.spark.settings import as_made
from gateway.sql.read.made_view import clauses
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.respell import SPARK_CATALOG, Respelt, database
from gateway.sqltypes import quote_part

_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_ROUTINE", "ROUTINE_NOT_FOUND", "UNRESOLVABLE_TABLE_VALUED")


class Preparation:
    """Brings sessions of `engine` to what statements name, spelt by `names`."""

    def __init__(self, engine: SparkEngine, names: Names) -> None:
        self.engine = engine
        self.names = names
        self._registrar = Registrar(names.catalogs, names.paths.roots, engine.mirror, names.kept, names.named)
        self._problems: dict[str, list[GatewayError]] = {}  # by statement: why what it may name is not there

    def prepare(
        self,
        job: Statement,
        slot: SparkSessionSlot,
        respelt: Respelt,
        emit: Emit,
        held: contextlib.ExitStack | None = None,
    ) -> None:
        """The slot sees what the statement names. Failures have no position: they are of other texts.

        `held` keeps the names of the tables that it writes to. Raises WRITE_CONFLICT where others take them away.
        """
        try:
            self._bring_up_to_date(job, slot, respelt, Registered(emit=emit, held=held))
        except GatewayError:
            raise
        except Exception as error:
            self.engine.end_if_lost(error)
            failure = as_gateway_error(error, "", lambda offset: 0, self.names.named)
            failure.span = None
            raise failure from error

    def renew(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt, emit: Emit) -> None:
        """The same in a session that has looked up nothing yet."""
        self.engine.renew(slot, job.statement_id)
        self.prepare(job, slot, respelt, emit)

    def cause(self, job: Statement, error: GatewayError) -> GatewayError:
        """For a name that Spark does not find: why it is not there, if that is known."""
        problems = self._problems.get(job.statement_id, [])
        unknown = error.condition.startswith(_UNKNOWN)
        return problems[0].at(error.span) if unknown and problems else error

    def forget(self, job: Statement) -> None:
        """The statement has ended."""
        self._problems.pop(job.statement_id, None)

    def views_read_paths(self, job: Statement, respelt: Respelt) -> bool:
        """Whether a view that the text may mean names files by path."""
        seen = set()
        todo = [v for m in respelt.mentions if (v := job.session.views.get(m.table.lower())) is not None]
        while todo:
            view = todo.pop()
            if view.name.lower() not in seen:
                seen.add(view.name.lower())
                inner = self._view_text(job, view)
                if inner.paths:
                    return True
                todo += _views_in(job, view, inner)
        return False

    def _bring_up_to_date(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt, done: Registered) -> None:
        """A session keeps functions as it has looked them up, whatever others make of them: then there is a new one."""
        failed, anew = Registered(), Registered(emit=done.emit, held=done.held)
        with Noted(failed, self.names.named):
            self._bring(job, slot, respelt, done)
        if slot.is_behind(done.functions):  # whatever failed may have failed for that
            self.engine.renew(slot, job.statement_id)
            done = anew
            self._bring(job, slot, respelt, done)
        elif failed.problems:
            raise failed.problems[0]
        slot.functions.update(done.functions)

    def _bring(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt, done: Registered) -> None:
        state, emit = job.session, done.emit
        assert emit is not None
        for name in [n for n in slot.views if n not in state.views]:
            _drop_view(slot, name)
        inside = Registered(emit=emit, functions=done.functions)
        for definition in slot.definitions.values():
            with Noted(Registered()):  # it is there, whatever has become of what it calls
                self._definition_text(definition, inside)
        temporaries.prepare(
            slot.spark,
            slot.definitions,
            state,
            lambda definition: self._definition_text(definition, inside),
            lambda: Noted(done, self.names.named),
        )
        _check_there(job, slot, respelt, done)
        targets = {m.table.lower() for m in respelt.mentions if m.is_target}
        for name in sorted(targets & slot.views.keys() & state.views.keys()):  # Delta changes tables through views
            self._check_changed(job, state.views[name], Registered(emit=emit, through=True, held=done.held))
        self._registrar.register(respelt, done)
        named = {m.table.lower() for m in respelt.mentions if not m.is_target}
        for _ in range(2):  # making one may drop another that it must not mean
            for name in sorted(named & state.views.keys()):
                self._view(job, slot, state.views[name], done)
        for name in done.files:  # another session may have written to them
            slot.spark.sql(f"REFRESH TABLE {name}")
        self._problems[job.statement_id] = done.problems
        self._use(slot, state.catalog, state.schema, emit)

    def _check_changed(self, job: Statement, view: TempView, done: Registered) -> None:
        """Raise what keeps the tables behind a view from being written to."""
        respelt = self._view_text(job, view)
        self._registrar.register(respelt, done)
        for inner in _views_in(job, view, respelt):
            self._check_changed(job, inner, done)

    def _definition_text(self, definition: Definition, done: Registered) -> str:
        """The text of a temporary variable or function for Spark, which sees what that names."""
        respelt = self.names.respelt(read_statement(definition.text), definition.catalog, definition.schema)
        self._registrar.register(respelt, done)
        return respelt.text

    def _view(self, job: Statement, slot: SparkSessionSlot, view: TempView, done: Registered) -> None:
        """Make a view, unless the slot has it, over tables and views as they are now."""
        assert done.emit is not None
        name = view.name.lower()
        respelt = self._view_text(job, view)
        self._registrar.register(respelt, done)
        _check_there(job, slot, respelt, done)
        for inner in _views_in(job, view, respelt):
            self._view(job, slot, inner, done)
        if slot.views.get(name) == (view, respelt.text):
            return
        meant = {inner.name.lower() for inner in _views_in(job, view, respelt)}
        for hidden in {m.table.lower() for m in respelt.mentions} & slot.views.keys() - meant:
            _drop_view(slot, hidden)  # made later than this one, which means a table by that name
        self._use(slot, view.catalog, view.schema, done.emit)
        columns = f"({', '.join(quote_part(c) for c in view.columns)}) " if view.columns else ""
        with as_made(slot, job, view):
            said = columns + clauses(view.collation, "")
            text = plain = sent(slot.spark, respelt)
            if view.made is not None:
                frame = slot.spark.sql(text)
                text = text_as_made(
                    view, view.made.fields, text, frame.columns, readable_schema(frame, self.names.column)
                )
            slot.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quote_part(view.name)} {said}AS {text}")
        # Casts hold for the columns of the moment: such a view is made anew for the next statement.
        slot.views[name] = view, respelt.text if text == plain else ""

    def _view_text(self, job: Statement, view: TempView) -> Respelt:
        views = frozenset(job.session.views)
        return self.names.respelt(read_statement(view.query), view.catalog, view.schema, views=views, pins=False)

    def _use(self, slot: SparkSessionSlot, catalog: str, schema: str, emit: Emit) -> None:
        name = database(catalog, schema)
        if slot.database != name:
            self.engine.mirror.database(name, emit)
            slot.spark.sql(f"USE {SPARK_CATALOG}.{quote_part(name)}")
            slot.database = name


def _views_in(job: Statement, view: TempView, respelt: Respelt) -> list[TempView]:
    """The session's views that the text of a view may mean."""
    names = {mention.table.lower() for mention in respelt.mentions} - {view.name.lower()}
    known = job.session.views
    return [known[n] for n in sorted(names) if n in known and (view.views is None or n in view.views)]


def _check_there(job: Statement, slot: SparkSessionSlot, respelt: Respelt, done: Registered) -> None:
    """Raise why a temporary function that a text calls is not there: Spark would take a lasting one of its name."""
    lost = job.session.definitions.keys() - slot.definitions.keys()
    called = lost & {f"function {call.function.lower()}" for call in respelt.calls}
    if called - {change.name for change in declared(read_statement(job.text), job.session)}:
        raise done.problems[0]


def _drop_view(slot: SparkSessionSlot, name: str) -> None:
    slot.spark.sql(f"DROP VIEW IF EXISTS {quote_part(name)}")
    del slot.views[name]
