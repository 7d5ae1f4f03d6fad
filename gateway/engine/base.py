"""What goes into an engine process and what comes out of it: plain picklable values, and the `Engine` protocol.

A worker holds no session state. A `Job` carries everything that it needs; a worker answers with a stream of `Event`s that
always ends in exactly one of `Finished`, `Failed` or `Yielded`. Row data travels as Arrow IPC record-batch messages (no
schema message, no compression), either inside `Rows` or as a byte range of the statement's spool file.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from gateway.engine.measures import Operator
from gateway.errors import GatewayError, ServerError
from gateway.sqltypes import StructType
from gateway.worker_jobs import (
    Definition,
    Job,
    MetadataCall,
    Parameter,
    SessionState,
    Statement,
    TempView,
    UdfSpec,
    Witness,
)

_STAGING = frozenset({"PUT", "GET", "REMOVE"})


@dataclass(frozen=True, slots=True)
class Planned:
    """The statement is bound: what it is, who runs it, and the shape of its result.

    `statement_type` is SELECT, INSERT, CREATE_TABLE, USE, SET, SHOW …; `writes` says that it must never be run twice.
    `is_query` False marks DDL/SET-like statements whose result is shown as one empty ``Result`` column. With `streams` clients
    may read rows while others are still made: only where none of these is known to be able to fail. As long as all `witnesses`
    hold, the same statement has the same answer; None: that is not known. With `soon` the rows and the end are not long in
    coming, so that all of it may travel together.
    """

    statement_type: str
    engine: str
    reason: str
    schema: StructType
    writes: bool = False
    is_query: bool = True
    streams: bool = False
    witnesses: tuple[Witness, ...] | None = None
    soon: bool = False

    @property
    def is_staging(self) -> bool:
        """Whether its row tells the client what to do with a file of a volume (`results.file_links`)."""
        return self.statement_type in _STAGING


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows as one Arrow IPC record-batch message: `data`, or `length` bytes at `offset` of the spool file.

    `weight`: about how many bytes they take once they are shown (`engine.weight`).
    """

    count: int
    data: bytes | None = None
    offset: int = 0
    length: int = 0
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the statement is: `fraction` 0..1 or None, and a short text."""

    fraction: float | None
    text: str


@dataclass(frozen=True, slots=True)
class SessionChange:
    """An effect on the session, applied by the service when the statement has finished.

    `kind`: "use" (name = catalog, value = schema), "set" (name, value), "reset" (name or "" for all),
    "put_view" (view), "drop_view" (name), "put_definition" (definition), "drop_definition" (name: its key), "kill" (name: a
    statement's identifier), which is no change of the session but another statement's end.
    """

    kind: str
    name: str = ""
    value: str = ""
    view: TempView | None = None
    definition: Definition | None = None


def changed(state: SessionState, changes: Iterable[SessionChange]) -> SessionState:
    """A session after a statement's effects on it, in order. Raises ServerError for an unknown kind."""
    catalog, schema = state.catalog, state.schema
    settings, views, definitions = dict(state.settings), dict(state.views), dict(state.definitions)
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
            case "put_view" if change.view is not None:
                views[change.view.name.lower()] = change.view
            case "drop_view":
                views.pop(change.name.lower(), None)
            case "put_definition" if change.definition is not None:
                definitions[change.definition.key] = change.definition
            case "drop_definition":
                definitions.pop(change.name, None)
            case "kill":
                continue
            case _:
                raise ServerError("INTERNAL_ERROR", f"Not a change of a session: {change.kind!r}.")
    return replace(state, catalog=catalog, schema=schema, settings=settings, views=views, definitions=definitions)


@dataclass(frozen=True, slots=True)
class Finished:
    """Last event of a success. `modified_rows` is None unless rows were written; `facts` are figures for the log."""

    rows: int
    modified_rows: int | None = None
    changes: tuple[SessionChange, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Handover:
    """The statement is one for another engine: which, and why.

    With `confirms` it has failed, and the other engine shall say whether rightly if it is there and free; else the error
    holds.
    """

    engine: str
    reason: str
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """No process works on the statement until another engine is ready; `text` says for what it waits."""

    text: str
    handover: Handover | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """From now on the statement may change a table: it must never be run twice. For what is planned only afterwards."""


@dataclass(frozen=True, slots=True)
class Planning:
    """What follows is planning (once more), or it is over: all of it counts towards one limit, whenever it is done.

    A statement begins with planning, and computes from `Planned` on. The pool alone is told.
    """

    begins: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """Last event of a failure; `statement` in the error text is already filled in by the worker.

    With `handover` another engine may run it instead; `error` is what to say if there is none.
    """

    error: GatewayError
    handover: Handover | None = None


@dataclass(frozen=True, slots=True)
class Yielded:
    """Last event of a `brief` statement that is not short: nothing was done, it is to run in a slot."""


Event = Planned | Rows | Progress | Waiting | Writing | Finished | Failed | Yielded


class NotBriefError(Exception):
    """Raised by a handler for a `brief` statement that is not short: see `Yielded`."""


class HandedOverError(Exception):
    """Raised by a handler instead of `error`: see `Failed`."""

    def __init__(self, error: GatewayError, handover: Handover) -> None:
        super().__init__(handover.reason)
        self.error = error
        self.handover = handover


class Handler(Protocol):
    """What a worker process does with a job. Made once per process from picklable arguments; runs one job at a time."""

    def warm_up(self) -> None:
        """Import and prepare what the first job would otherwise wait for."""

    def run(self, job: Job, emit: Emit) -> None:
        """Run `job`, calling `emit` for every event; raises GatewayError instead of emitting Failed."""


class Emit(Protocol):
    """Sends events; `rows` also writes the spool file. Raises CanceledError once the statement is cancelled."""

    def __call__(self, event: Event | Planning) -> None: ...

    def rows(self, batch: pa.RecordBatch) -> None:
        """Deliver a record batch whose schema is that of `Planned.schema`."""

    @property
    def cancelled(self) -> bool: ...

    @property
    def has_enough(self) -> bool:
        """Whether rows that follow would be dropped, so that none need be made."""


class Source(Protocol):
    """A table that an engine can read: registers itself in a DataFusion SessionContext under `name`."""

    def register(self, ctx: Any, name: str) -> None: ...

    def verify(self) -> bool:
        """Called once the physical plan is made: whether all that it reads was there all the while since it was registered.

        Raises GatewayError if it is not there now.
        """

    def one_by_one(self) -> Source:
        """The same, read so that what is not there is an error: for a plan that `verify` did not find proved."""

    @property
    def numbered(self) -> bool:
        """Whether rows are asked for by their numbers in a file, which the engine knows only where a scan itself gives them."""

    def plain(self) -> Source:
        """The same with texts as plain arrays, not as views, which keep more alive than they show."""

    def damaged(self) -> str | None:
        """The first of its files that cannot be read, with the reason; None if there is none. Reads them: for failures only."""


@dataclass(frozen=True, slots=True)
class Query:
    """Finished engine text with all that it refers to. Output columns are in the order of `schema`, named c0..cn."""

    text: str
    schema: StructType
    sources: Mapping[str, Source] = field(default_factory=dict)
    udfs: Mapping[str, UdfSpec] = field(default_factory=dict)
    reads_floats: bool = False  # float columns are scanned: file statistics must not be trusted
    views: bool = True  # texts are read as views
    small: bool = False  # too little to read for more than one core to be worth its while
    first: str = ""  # text that is run before, for its errors alone
    filters_ahead: bool = True  # joins tell the scans of one side what the other has
    in_order: bool = False  # what is computed above a sort or a window has its rows in that order
    lasting: bool = True  # what is kept of files by their names is that of those that are read
    rows: pa.RecordBatch | None = None  # the answer, where it was known before there was a text


class Execution(Protocol):
    """A running query: batches in the query's schema (checked before the first one)."""

    def start(self) -> None:
        """Plan it, which `batches` would do otherwise. Raises GatewayError."""

    def batches(self) -> Generator[pa.RecordBatch, None, None]: ...

    @property
    def spilled_bytes(self) -> int:
        """What it has written to disk for want of memory; known once all `batches` have been read."""

    def close(self) -> None:
        """Let go of everything; after `start` needed unless `batches` has been read or closed. Idempotent."""


class Engine(Protocol):
    """An engine that runs finished text."""

    name: str

    def run(self, query: Query) -> Execution: ...

    def planning(self) -> AbstractContextManager[None]:
        """What is done inside is planning of the statement that runs, also behind its `Planned`."""

    def explain(self, query: Query) -> str: ...

    def analyze(self, query: Query) -> tuple[int, list[Operator]]: ...

    def measured(self) -> list[Operator]:
        """The operators of the query that took longest since this was last asked, nothing if none took long."""


__all__ = [
    "Definition",
    "Emit",
    "Engine",
    "Event",
    "Execution",
    "Failed",
    "Finished",
    "HandedOverError",
    "Handler",
    "Handover",
    "Job",
    "MetadataCall",
    "NotBriefError",
    "Parameter",
    "Planned",
    "Planning",
    "Progress",
    "Query",
    "Rows",
    "SessionChange",
    "SessionState",
    "Source",
    "Statement",
    "TempView",
    "UdfSpec",
    "Waiting",
    "Witness",
    "Writing",
    "Yielded",
    "changed",
]
