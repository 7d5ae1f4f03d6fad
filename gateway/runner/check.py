"""What of a text would run here, what not, why and where; nothing is read from tables, nothing is written.

Statements are bound and planned one after the other as in one session: USE, SET and temporary views take effect for those
that follow, tables are not made. A statement that reads a table which an earlier one of the same text would make can only be
checked once that table exists, and is reported as such.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from gateway.config.session import ENGINE, honoured_by_spark, keeps_nanoseconds
from gateway.engine.base import (
    Event,
    HandedOverError,
    Planned,
    Planning,
    SessionChange,
    SessionState,
    Statement,
    changed,
)
from gateway.errors import GatewayError, Span, UnsupportedError, line_and_column, unsupported
from gateway.planner import Plan, asked_for, handed_over, honoured_there, uses_definitions
from gateway.runner import commands
from gateway.runner.commands.explain import change_planned
from gateway.runner.environment import Environment
from gateway.runner.handler import Runner
from gateway.runner.session_definitions import declared, needed, temporary_view
from gateway.sql.bind.parameters import bound_parameters
from gateway.sql.read import command_nodes as c
from gateway.sql.read.commands import explained, parse_command
from gateway.sql.read.cursor import DEFAULT_LIMITS
from gateway.sql.read.identifiers import identified
from gateway.sql.read.made_view import function_of, view_of
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement, statement_spans
from gateway.sql.spark.allowed import check_allowed

Routed = tuple[str, str, tuple[SessionChange, ...]]
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "UNRESOLVED_ROUTINE", "UNRESOLVED_TABLE_VALUED_FUNCTION")


class Verdict(StrEnum):
    """What would become of a statement."""

    RUNS = "runs"
    REFUSED = "refused"  # right for Databricks, not available here
    ERROR = "error"  # wrong, there as here
    LATER = "later"  # known once a table of an earlier statement exists


@dataclass(frozen=True, slots=True)
class Checked:
    """One statement's report; `line` and `column` (both from 1) are of the fault, or of its start."""

    verdict: Verdict
    line: int
    column: int
    text: str
    engine: str = ""
    reason: str = ""
    condition: str = ""
    sqlstate: str = ""


def check(text: str, runner: Runner) -> list[Checked]:
    """A report per statement of `text`. `runner` is warm. Raises GatewayError if the text cannot be split."""
    session = SessionState("main", "default", "check", {})
    limits = replace(DEFAULT_LIMITS, text=max(DEFAULT_LIMITS.text, len(text)))
    made: set[str] = set()
    reports = []
    for span in statement_spans(text):
        source = text[span.start : span.stop]
        try:
            with identified(Statement("check", _blank(text, span.start) + source, session)) as named:
                statement = read_statement(named.text, limits)
                engine, reason, changes = _routed(statement, session, runner)
        except GatewayError as error:
            reports.append(_failure(error, text, span, source, made))
            continue
        session = changed(session, changes)
        made |= _made(statement)
        line, column = line_and_column(text, span.start)
        reports.append(Checked(Verdict.RUNS, line, column + 1, source, engine, reason))
    return reports


def _made(statement: Read) -> set[str]:
    """The names of tables, schemas, views and functions that the statement makes."""
    function = function_of(statement)
    if function is not None:
        return {function.name[-1].lower()}
    try:
        command = parse_command(statement)
    except UnsupportedError:  # what only Spark knows
        return set()
    if isinstance(command, (c.CreateTable, c.CreateTableLike, c.CreateSchema, c.CreateView)):
        return {command.name.parts[-1].lower()}
    return set()


def _routed(statement: Read, session: SessionState, runner: Runner) -> Routed:
    """Engine, reason and effects on the session. Raises GatewayError as running the statement would."""
    env = runner.environment(session)
    env.parameters = bound_parameters(statement.markers, (), env.context)
    meant = explained(statement) or statement
    asked = env.setting(ENGINE)
    place = (session.catalog, session.schema)
    honoured = honoured_by_spark(session.settings)
    wanted = honoured_there(meant, honoured, asked, place) or asked_for(meant, asked, place)
    uses = uses_definitions(meant, [d.key for d in needed(statement, session)])
    try:
        if uses is not None:  # only Spark knows of what type they are
            raise unsupported(f"Running this statement on Spark ({uses.reason})", statement.span)
        with runner.functions_told(statement, env):
            command = parse_command(statement)
            engine, reason, changes = _check_one(command, Statement("check", statement.text, session), env, runner)
        if runner.has_spark and wanted is not None:
            engine, reason = wanted.engine, wanted.reason
        return engine, reason, changes
    except HandedOverError as handed:
        handover = handed.handover
    except UnsupportedError as error:
        found = wanted or uses or handed_over(meant, error, asked)
        if found is None or not runner.has_spark:
            raise
        check_allowed(meant, keeps_nanoseconds(session.settings))
        handover = found
    return handover.engine, handover.reason, _effects(statement, session) if meant is statement else ()


def _effects(statement: Read, session: SessionState) -> tuple[SessionChange, ...]:
    """What a statement that only Spark runs would do to the session."""
    view = view_of(statement)
    if view is not None and view.temporary:
        kept = temporary_view(view, session)
        return (SessionChange("put_view", kept.name.lower(), view=kept),)
    return declared(statement, session)


def _blank(text: str, stop: int) -> str:
    """As many characters as before `stop`, lines kept, so that positions in a statement are positions in the text."""
    return "".join("\n" if character == "\n" else " " for character in text[:stop])


def _check_one(command: Any, job: Statement, env: Environment, runner: Runner) -> Routed:
    """Engine, reason and effects on the session."""
    if isinstance(command, c.Explain):
        return _check_one(command.statement, job, env, runner)
    if isinstance(command, c.Query):
        decision = _planned(command, env, runner)
        return decision.engine, decision.reason, ()
    if isinstance(command, (c.Delete, c.Update, c.Merge, c.ReplaceOn)):
        decision = change_planned(command, env, runner)
        return decision.engine, decision.reason, ()
    if commands.leaves_no_trace(command) or isinstance(command, c.Insert):
        try:
            answer = commands.run(command, job, env, runner, _Nowhere(stop_at_write=True))
        except _AboutToWriteError as stopped:
            return stopped.planned.engine, stopped.planned.reason, ()
        return "gateway", "answered without an engine", answer.changes
    query = getattr(command, "query", None)
    if query is not None:
        decision = _planned(query, env, runner)
        return decision.engine, f"its query: {decision.reason}", ()
    return "gateway", "understood; what it does to tables was not tried", ()


def _planned(query: c.Query, env: Environment, runner: Runner) -> Plan:
    """The decision for `query`; the engine has a plan for it too."""
    _, decision = runner.prepared(query.tree, env)
    runner.engine.explain(decision.query)
    return decision


def _failure(error: GatewayError, text: str, span: Span, source: str, made: set[str]) -> Checked:
    verdict = Verdict.REFUSED if isinstance(error, UnsupportedError) else Verdict.ERROR
    if error.condition.partition(".")[0] in _MISSING and any(f"`{name}`" in error.message.lower() for name in made):
        verdict = Verdict.LATER
    line, column = line_and_column(text, error.span.start if error.span else span.start)
    return Checked(verdict, line, column + 1, source, "", error.message, error.condition, error.sqlstate)


class _AboutToWriteError(Exception):
    """Ends the check of a statement that would now write."""

    def __init__(self, planned: Planned) -> None:
        super().__init__()
        self.planned = planned


class _Nowhere:
    """An `Emit` that keeps nothing."""

    cancelled = has_enough = False

    def __init__(self, stop_at_write: bool = False) -> None:
        self._stop_at_write = stop_at_write

    def __call__(self, event: Event | Planning) -> None:
        if self._stop_at_write and isinstance(event, Planned):
            raise _AboutToWriteError(event)

    def rows(self, batch: Any) -> None:
        raise AssertionError("a check reads no rows")
