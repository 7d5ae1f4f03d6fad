"""What the page asks: what runs and what ran, one statement, its end, settings, health."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from gateway.config import ServerSetting
from gateway.console.results import MOST_ROWS, Results
from gateway.console.tree import PLACE, Tree
from gateway.errors import GatewayError
from gateway.history.details import known
from gateway.history.recorder import Recorder
from gateway.history.records import STATEMENTS, Record
from gateway.history.search import Condition, History, values_checked
from gateway.history.told import STATUSES
from gateway.protocol.handler import Caller
from gateway.protocol.turns import Turns
from gateway.rest import fields
from gateway.rest.call import Asked, Path, Route
from gateway.rest.fields import RestError
from gateway.rest.history import SEARCH_SECONDS, page
from gateway.rest.statements import SESSION, STATEMENT, StatementApi
from gateway.service.api import Disposition, Form, WholeResults
from gateway.worker_jobs import Runtime

_PAGE, _LARGEST_PAGE = 200, 1000
_OTHERS_SECONDS, _MANY = 10.0, 1 << 30
_FLUSH_SECONDS = 0.5
_RUN_SECONDS = 2.0  # most statements have ended then
_SHOWN = 400  # characters of a text in a list
_LONGEST_SOUGHT = 1000  # for each of its characters the texts are gone through once
_LISTED = tuple(
    c for c in STATEMENTS.columns if c not in ("message", "parse_ms", "details", "origin_id", "error_at", "error_to")
)

LIST: fields.Fields = {
    "max_results": fields.at_most(_LARGEST_PAGE),
    "before_ms": fields.moment,
    "before_id": fields.moment,
    "status": fields.one_of(*STATUSES),
    "user": fields.text,
    "text": fields.text,
    "since_ms": fields.moment,
    "least_ms": fields.moment,
}
RUN: fields.Fields = {"statement": fields.text, "session_id": fields.text, "row_limit": fields.count}
WAIT: fields.Fields = {"wait_timeout": fields.wait}
ROWS: fields.Fields = {"start": fields.moment, "count": fields.at_most(MOST_ROWS)}


class Statements(WholeResults, Protocol):
    """What the service offers to whoever looks after statements, their own or all."""

    def picture(self, user: str) -> Runtime:
        """What is open and runs, as far as a user may see it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the page is told of its server: the version, whether one signs in, figures of its health, and its settings."""

    version: str
    signs_in: bool
    health: Callable[[], Mapping[str, Any]]
    settings: Sequence[ServerSetting]


@dataclass(frozen=True, slots=True)
class ConsoleCalls:
    """The calls; each takes who calls, the parts of its path and the fields of its body, and gives what is answered as JSON."""

    service: Statements
    statements_api: StatementApi
    history: History
    recorder: Recorder[Record] | None
    facts: Facts
    searches: Turns = field(default_factory=Turns)  # they take longer than rows, which do not wait for them
    results: Results = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", Results(self.service, self.statements_api.turns))

    @property
    def tree(self) -> Tree:
        """What there is in the catalogs."""
        return Tree(self.service)

    def routes(self) -> tuple[Route, ...]:
        """All of them."""
        one, result = "statements/{statement_id}", "results/{statement_id}"
        return (
            Route("GET", "me", "console_me", self.me),
            Route("GET", "now", "console_now", self.now),
            Route("GET", "statements", "console_statements", self.statements, query=LIST),
            Route("GET", one, "console_statement", self.statement),
            Route("POST", f"{one}/kill", "console_kill", self.kill, {}),
            Route("POST", "sessions", "console_open", self.statements_api.create_session, SESSION),
            Route("DELETE", "sessions/{session_id}", "console_close", self.statements_api.delete_session),
            Route("POST", "run", "console_run", self.run, RUN, ("statement", "session_id")),
            Route("GET", result, "console_result", self.result, query=WAIT),
            Route("GET", f"{result}/rows", "console_rows", self.rows, query=ROWS),
            Route("DELETE", result, "console_done", self.statements_api.close),
            Route("GET", "catalog", "console_catalog", self.tree.below, query=PLACE),
            Route("GET", "files", "console_files", self.tree.files, query=PLACE),
            Route("GET", "settings", "console_settings", self.settings),
            Route("GET", "health", "console_health", self.health),
        )

    def me(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell who has signed in, and where."""
        name = caller.principal.name
        return {
            "user": name,
            "administrator": self.history.sees_all(name),
            "signs_in": self.facts.signs_in,
            "version": self.facts.version,
            "history": self.recorder is not None,
        }

    def now(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell who asks, what is open and runs, and how many statements have been recorded since the start."""
        with self.searches.turn(caller.principal.name):
            found = self.service.picture(caller.principal.name)
            return {
                "user": caller.principal.name,
                "operations": [{**o._asdict(), "start_time": o.start_time // 1000} for o in found.operations],
                "sessions": [{**s._asdict(), "settings": dict(s.settings)} for s in found.sessions],
                "recorded": self._recorded(),
            }

    def _recorded(self) -> int:
        """A number that changes with what has been recorded: here, and, every few seconds, by others on the same database."""
        here = 0 if self.recorder is None else self.recorder.added
        others = 0 if isinstance(self.history.place, str) else int(time.monotonic() / _OTHERS_SECONDS)
        return here + others * _MANY

    def statements(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """List statements that have ended, the newest first: the caller's own, or all for administrators."""
        before = None
        if asked["before_ms"] is not None and asked["before_id"] is not None:
            before = asked["before_ms"], asked["before_id"]
        elif self.recorder is not None:
            self.recorder.flush(_FLUSH_SECONDS)
        size, name = asked["max_results"] or _PAGE, caller.principal.name
        conditions, columns = _conditions(asked), (*_LISTED, "id")
        with self.searches.turn(name), values_checked():
            found, more = page(self.history, name, columns, conditions, before, size)
            rows = [dict(zip(columns, row, strict=True)) for row in found]
            return {"statements": [row | {"text": row["text"][:_SHOWN]} for row in rows], "more": more}

    def statement(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell all that is known of a statement. Raises RestError 404 for one of others, or of nobody."""
        user, identifier = caller.principal.name, path["statement_id"]
        for one in self.service.picture(user).operations:
            if one.statement_id == identifier:
                return {"running": {**one._asdict(), "start_time": one.start_time // 1000}}
        if self.recorder is not None:
            self.recorder.flush(_FLUSH_SECONDS)
        wanted = [Condition("statement_id", "=", identifier)]
        row = self._recorded_row(user, wanted)
        if row is None:
            raise RestError(404, "RESOURCE_DOES_NOT_EXIST", f"Statement {identifier[:64]} is not known.")
        told = dict(zip(STATEMENTS.columns, row, strict=True))
        if told["message"] is None:
            told["message"] = self._message(caller, identifier)
        told["details"] = known(told["details"])
        return {"ended": told}

    def _recorded_row(self, user: str, wanted: Sequence[Condition]) -> tuple[Any, ...] | None:
        """The row of a statement that has ended. Raises ServerError HISTORY_UNREADABLE."""
        columns = STATEMENTS.columns
        with self.searches.turn(user), values_checked():
            found = self.history.rows(user, columns, wanted, limit=1, at_once=1, seconds=SEARCH_SECONDS)
            with closing(found):
                return next(chain.from_iterable(found), None)

    def _message(self, caller: Caller, identifier: str) -> str | None:
        """The error of one's own statement, as long as its client has not closed it; the history may keep none."""
        try:
            handle = self.service.named_operation(caller.principal, identifier)
            error = self.service.operation_status(caller.principal, handle, 0).error
        except GatewayError:
            return None
        return None if error is None else error.text()

    def kill(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """End a statement: one's own, or anybody's for administrators."""
        self.service.kill(caller.principal, path["statement_id"])
        return {}

    def run(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Execute a statement in a session; its rows are asked for apart."""
        wanted = {"disposition": Disposition.LINKS, "format": Form.JSON, "wait_timeout": _RUN_SECONDS}
        return _without_links(self.statements_api.execute(caller, {}, {**dict.fromkeys(STATEMENT), **asked, **wanted}))

    def result(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell the state of a statement, and the shape of its result once it is there."""
        handle = self.service.named_operation(caller.principal, path["statement_id"])
        self.service.operation_status(caller.principal, handle, asked["wait_timeout"] or 0)
        return _without_links(self.statements_api.get(caller, path, {}))

    def rows(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Give some rows of a result."""
        return self.results.some(caller, path["statement_id"], asked["start"] or 0, asked["count"] or 1)

    def settings(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell administrators the server's settings, and where each comes from."""
        if not self.history.sees_all(caller.principal.name):
            raise RestError(403, "PERMISSION_DENIED", "Settings are shown to administrators (--admins) only.")
        return {"settings": [setting._asdict() for setting in self.facts.settings]}

    def health(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell how the server is."""
        return dict(self.facts.health())


def _without_links(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "result"}


def _conditions(asked: Asked) -> list[Condition]:
    found = []
    if asked["status"]:
        found.append(Condition("state", "IN", STATUSES[asked["status"]]))
    if asked["user"]:
        found.append(Condition("user", "=", asked["user"]))
    if asked["text"]:
        if len(asked["text"]) > _LONGEST_SOUGHT:
            raise fields.invalid(f"text is longer than {_LONGEST_SOUGHT} characters")
        found.append(Condition("text", "CONTAINS", asked["text"]))
    if asked["least_ms"] is not None:
        found.append(Condition("total_ms", ">=", asked["least_ms"]))
    if asked["since_ms"] is not None:
        found.append(Condition("started_ms", ">=", asked["since_ms"]))
    return found
