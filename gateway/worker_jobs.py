"""Jobs: what is sent to a worker process, as plain picklable values; and the functions that a compiled query asks for.

A worker holds no session state: a job carries everything that it needs.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway.config import ServerSetting
from gateway.sqltypes import DataType, StructType


@dataclass(frozen=True, slots=True)
class TempView:
    """A session's temporary view: its query's text and the names that it was created under.

    `views` holds the lower-cased names of the temporary views that its query may mean (None: all): one that is made later
    does not take the place of a table in an older view. `time_zone` is the zone that its query was made under, "" if its
    meaning does not depend on it. `collation` is the default one of its text, "" for the usual one. `settings`
    are those that only the second engine honours, with its names, that it was made under. `made` is what its query
    answered then, which it is held to; None: it is not known.
    """

    name: str
    query: str
    columns: tuple[str, ...]
    catalog: str
    schema: str
    comment: str | None = None
    parameters: tuple[Parameter, ...] = ()
    views: frozenset[str] | None = None
    time_zone: str = ""
    collation: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    made: StructType | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A session's temporary variable or function, which only the second engine knows: texts that make it there.

    `key` is "variable x" or "function f", lower case; `text` the statement, under `catalog` and `schema`; `value` sets a
    variable's present value ("" for functions).
    """

    key: str
    text: str
    catalog: str
    schema: str
    value: str = ""

    @property
    def name(self) -> str:
        return self.key.partition(" ")[2]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A bound parameter: `name` None for positional ones (their order counts), `value` None for NULL.

    `type` is Spark's type text as sent (``INT``, ``DECIMAL(3,1)``, ``ARRAY``, ``VOID``); `arguments` holds the children
    of ARRAY and MAP (alternating key, value).
    """

    name: str | None
    type: str
    value: str | None
    arguments: tuple[Parameter, ...] | None = None

    @property
    def size(self) -> int:
        """Characters that it was sent with, and one for itself."""
        return 1 + len(self.type) + len(self.value or "") + sum(each.size for each in self.arguments or ())


@dataclass(frozen=True, slots=True)
class Witness:
    """A file that shows whether what was read still is what would be read: `marker` is its mark (`mark_of`).

    A Delta table's is its newest commit; `next` is the one that must not be there yet.
    """

    path: str
    marker: tuple[int, ...]
    next: str | None = None

    def holds(self) -> bool:
        """Whether it shows that nothing has changed."""
        return not (self.next is not None and os.path.exists(self.next)) and marker_of(self.path) == self.marker


def marker_of(path: str, folder: int | None = None) -> tuple[int, ...]:
    """The mark of a file (in an open folder, if one is given); empty without it."""
    try:
        return mark_of(os.stat(path, dir_fd=folder))
    except OSError:
        return ()


def mark_of(found: os.stat_result) -> tuple[int, ...]:
    """Inode, time of change and size of a file. Who copies a file over another may keep the time that it was written at."""
    return (found.st_ino, found.st_ctime_ns, found.st_size)


RUNTIME = "runtime"  # the schema of `system` that tells a `Runtime`


class OpenSession(NamedTuple):
    """A session of the service. The fields are the columns of `system.runtime.sessions`, in this order."""

    session_id: str
    user: str
    client_application: str
    current_catalog: str
    current_schema: str
    settings: list[tuple[str, str]]
    operations: int
    idle_ms: int


class RunningOperation(NamedTuple):
    """A statement or metadata call that has not ended. The fields are the columns of `system.runtime.operations`.

    `start_time` in microseconds since the epoch, `progress` from 0 to 1.
    """

    statement_id: str
    session_id: str
    user: str
    client_application: str
    operation_type: str
    state: str
    statement_text: str
    statement_type: str | None
    engine: str | None
    reason: str | None
    start_time: int
    duration_ms: int
    waiting_at_capacity_duration_ms: int
    progress: float | None
    progress_text: str
    produced_rows: int
    result_bytes: int


@dataclass(frozen=True, slots=True)
class Runtime:
    """What there is in the service at one moment, as far as one user may see it."""

    sessions: tuple[OpenSession, ...]
    operations: tuple[RunningOperation, ...]
    settings: tuple[ServerSetting, ...] = ()  # for administrators


@dataclass(frozen=True, slots=True)
class SessionState:
    """All that a statement can see of its session, and, if it asks for that, of the others (`runtime`)."""

    catalog: str
    schema: str
    user: str
    settings: Mapping[str, str]  # canonical keys -> text; only those set explicitly
    views: Mapping[str, TempView] = field(default_factory=dict)  # lower-cased name -> view
    session_id: str = ""
    definitions: Mapping[str, Definition] = field(default_factory=dict)  # key -> definition
    runtime: Runtime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FileKey:
    """What links to files of volumes are signed with, and how long they are good for."""

    key: bytes = field(repr=False)
    seconds: float


@dataclass(frozen=True, slots=True)
class FileDoor(FileKey):
    """The same with what the links of one client begin with (``scheme://name``)."""

    origin: str


@dataclass(frozen=True, slots=True)
class Statement:
    """Job: run one SQL statement. `route` is why it runs on the second engine, "" on the first.

    With `brief` it runs beside the slots, and only if it turns out to be short: else its last event is `Yielded`. With
    `read_only` it runs only if it does nothing but read (`sql.read.reading`), on either engine. `files`: how its client reaches
    files of volumes, None if it cannot. Of rows behind those that `byte_limit` bytes hold none are delivered (`results.spool`).
    """

    statement_id: str
    text: str
    session: SessionState
    parameters: tuple[Parameter, ...] = ()
    row_limit: int | None = None
    route: str = ""
    brief: bool = False
    read_only: bool = False
    files: FileDoor | None = None
    byte_limit: int | None = None

    @property
    def key(self) -> Hashable | None:
        """All that it depends on beside tables and views; None in a session with views or definitions of its own."""
        session = self.session
        if session.views or session.definitions:
            return None
        settings = frozenset(session.settings.items())
        return (session.user, session.catalog, session.schema, settings, self.text, self.parameters, self.row_limit)

    @property
    def size(self) -> int:
        """Characters of its text and parameters."""
        return len(self.text) + sum(parameter.size for parameter in self.parameters)


@dataclass(frozen=True, slots=True)
class MetadataCall:
    """Job: one catalog question of the Thrift metadata calls; `kind` is a row of `runner.metadata`'s table.

    Patterns are as sent (None: everything; `%`, `_`, `*`, `.*` and backslash escapes understood).
    """

    statement_id: str
    kind: str
    session: SessionState
    catalog: str | None = None
    schema: str | None = None
    table: str | None = None
    column: str | None = None
    function: str | None = None
    table_types: tuple[str, ...] = ()
    parent: tuple[str | None, str | None, str | None] = (None, None, None)  # of a cross reference


Job = Statement | MetadataCall


@dataclass(frozen=True, slots=True)
class UdfSpec:
    """A scalar function of ours made for concrete types: `impl` names it in `engine.functions.IMPLEMENTATIONS`.

    `params` are constants known when the statement is compiled (pattern, format, time zone).
    """

    impl: str
    args: tuple[DataType, ...]
    returns: DataType
    params: tuple[Any, ...] = ()
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class BodySpec:
    """The body of a lambda that a function of ours computes: the engine's text over columns ``"c0"``, ``"c1"`` … of `args`.

    `udfs` are the functions of ours that the text calls, by name. One is `chained` if the text may stand where its first
    column does, once, and another column in the place of the second one.
    """

    text: str
    args: tuple[DataType, ...]
    returns: DataType
    udfs: tuple[tuple[str, UdfSpec], ...] = ()
    chained: bool = False
