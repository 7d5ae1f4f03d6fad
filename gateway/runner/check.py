"""What of a text would run here, what not, why and where; nothing is read from tables, nothing is written.

Statements are bound and planned one after the other as in one session: USE, SET and temporary views take effect for those
that follow, tables are not made. A statement that reads a table which an earlier one of the same text would make can only be
checked once that table exists, and is reported as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from gateway.config.session import ENGINE, honoured_by_spark
from gateway.engine.base import Event, Planned, SessionChange, SessionState, Statement, TempView
from gateway.errors import GatewayError, Span, UnsupportedError, line_and_column
from gateway.planner import Plan, asked_for, handed_over, honoured_there
from gateway.runner import commands
from gateway.runner.handler import Environment, Runner
from gateway.sql import command_nodes as c
from gateway.sql.commands import explained, parse_command
from gateway.sql.cursor import DEFAULT_LIMITS
from gateway.sql.parameters import bound_parameters
from gateway.sql.statement import read_statement, statement_end
from gateway.sql.tokens import END, scan

_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
_READ_ONLY = (
    c.ShowCatalogs,
    c.ShowSchemas,
    c.ShowTables,
    c.ShowViews,
    c.ShowColumns,
    c.ShowFunctions,
    c.ShowTblProperties,
    c.ShowCreateTable,
    c.DescribeTable,
    c.DescribeQuery,
    c.DescribeSchema,
    c.DescribeCatalog,
)
_WITHOUT_TRACE = (
    *(*_READ_ONLY, c.UseCatalog, c.UseSchema, c.SetConf, c.SetTimeZone, c.Reset),
    *(c.CreateView, c.AlterView, c.DropView, c.DropFunction),  # what they would write they announce before
)


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
    for span in _split(text):
        source = text[span.start : span.stop]
        env = runner.environment(session)
        statement = None
        try:
            statement = read_statement(_blank(text, span.start) + source, limits)
            command = parse_command(statement)
            env.parameters = bound_parameters(statement.markers, (), env.context)
            meant = explained(statement) or statement
            engine = env.setting(ENGINE)
            wanted = honoured_there(meant, honoured_by_spark(session.settings), engine) or asked_for(meant, engine)
            engine, reason, changes = _check_one(command, Statement("check", text, session), env, runner)
            if runner.has_spark and wanted is not None:
                engine, reason = wanted.engine, wanted.reason
        except UnsupportedError as error:
            handover = None
            if runner.has_spark and statement is not None:
                handover = handed_over(explained(statement) or statement, error, env.setting(ENGINE))
            if handover is None:
                reports.append(_failure(error, text, span, source, made))
                continue
            line, column = line_and_column(text, span.start)
            reports.append(Checked(Verdict.RUNS, line, column + 1, source, handover.engine, handover.reason))
            continue
        except GatewayError as error:
            reports.append(_failure(error, text, span, source, made))
            continue
        session = _applied(session, changes)
        if isinstance(command, (c.CreateTable, c.CreateSchema, c.CreateView)):
            made.add(command.name.parts[-1].lower())
        line, column = line_and_column(text, span.start)
        reports.append(Checked(Verdict.RUNS, line, column + 1, source, engine, reason))
    return reports


def _split(text: str) -> Iterator[Span]:
    """Where the statements are; a script (``BEGIN … END``) keeps its own semicolons."""
    tokens, words, error = scan(text)
    if error is not None and words[0] == END:
        raise error
    start = 0
    while start < len(words) - 1:
        if words[start] == ";":
            start += 1
            continue
        stop = statement_end(words, start)
        yield Span(tokens[start].start, tokens[stop - 1].end + 1)
        start = stop
    if error is not None:
        raise error


def _blank(text: str, stop: int) -> str:
    """As many characters as before `stop`, lines kept, so that positions in a statement are positions in the text."""
    return "".join("\n" if character == "\n" else " " for character in text[:stop])


def _check_one(
    command: Any, job: Statement, env: Environment, runner: Runner
) -> tuple[str, str, tuple[SessionChange, ...]]:
    """Engine, reason and effects on the session."""
    if isinstance(command, c.Explain):
        return _check_one(command.statement, job, env, runner)
    if isinstance(command, c.Query):
        decision = _planned(command, env, runner)
        return decision.engine, decision.reason, ()
    if isinstance(command, (*_WITHOUT_TRACE, c.Insert)):
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


def _applied(session: SessionState, changes: tuple[SessionChange, ...]) -> SessionState:
    catalog, schema = session.catalog, session.schema
    settings, views = dict(session.settings), dict(session.views)
    for change in changes:
        match change.kind:
            case "use":
                catalog, schema = change.name, change.value
            case "set":
                settings[change.name] = change.value
            case "reset" if change.name:
                settings.pop(change.name, None)
            case "reset":
                settings.clear()
            case "put_view":
                view: TempView | None = change.view
                assert view is not None
                views[view.name.lower()] = view
            case "drop_view":
                views.pop(change.name.lower(), None)
    return replace(session, catalog=catalog, schema=schema, settings=settings, views=views)


class _AboutToWriteError(Exception):
    """Ends the check of a statement that would now write."""

    def __init__(self, planned: Planned) -> None:
        super().__init__()
        self.planned = planned


class _Nowhere:
    """An `Emit` that keeps nothing."""

    cancelled = False

    def __init__(self, stop_at_write: bool = False) -> None:
        self._stop_at_write = stop_at_write

    def __call__(self, event: Event) -> None:
        if self._stop_at_write and isinstance(event, Planned):
            raise _AboutToWriteError(event)

    def rows(self, batch: Any) -> None:
        raise AssertionError("a check reads no rows")
