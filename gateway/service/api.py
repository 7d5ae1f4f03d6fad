"""The verbs of the service in plain values: what `protocol` calls and what every transport shares.

All calls block and are safe from many threads. Handles are opaque to clients: 16 bytes of identifier, 16 bytes of secret,
and an owner that is checked; a wrong one of either kind raises the same ProtocolError (INVALID_SESSION_HANDLE /
INVALID_OPERATION_HANDLE), whether it never existed, has expired, or belongs to somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gateway.engine.base import Parameter
from gateway.errors import GatewayError
from gateway.results.spool import Piece, Rows
from gateway.sqltypes import StructType


class State(StrEnum):
    """States of an operation; names as in TOperationState without ``_STATE``."""

    INITIALIZED = "INITIALIZED"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    CLOSED = "CLOSED"
    ERROR = "ERROR"
    TIMEDOUT = "TIMEDOUT"


# Nothing happens any more in these, but that what has finished may be closed.
ENDS = frozenset({State.FINISHED, State.CANCELED, State.CLOSED, State.ERROR, State.TIMEDOUT})


class Orientation(StrEnum):
    """Directions of FetchResults; `Operation.fetch` says what each does with a `start_row_offset`."""

    NEXT = "NEXT"
    PRIOR = "PRIOR"
    FIRST = "FIRST"
    LAST = "LAST"
    RELATIVE = "RELATIVE"
    ABSOLUTE = "ABSOLUTE"


@dataclass(frozen=True, slots=True)
class Handle:
    """Identifier and secret of a session or operation, 16 bytes each."""

    guid: bytes
    secret: bytes


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: set by authentication, compared with the owner of each handle."""

    name: str


@dataclass(frozen=True, slots=True)
class OpenSessionRequest:
    """What a client opens a session with."""

    principal: Principal
    protocol: int  # negotiated version, a TProtocolVersion number
    settings: Mapping[str, str] = field(default_factory=dict)  # as sent by the client
    catalog: str | None = None
    schema: str | None = None
    client: str = ""  # User-Agent or "thrift"
    for_one: bool = False  # it ends with its only statement


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session that was opened, as its client is told of it."""

    handle: Handle
    protocol: int
    catalog: str
    schema: str
    settings: Mapping[str, str]  # effective settings that the client asked for
    time_zone: str


class Form(StrEnum):
    """What is in a file of rows; values as in the Statement Execution API."""

    ARROW = "ARROW_STREAM"
    JSON = "JSON_ARRAY"
    CSV = "CSV"


class Disposition(StrEnum):
    """Where the rows of a whole result are put: into the answer, behind links, or either by their size."""

    INLINE = "INLINE"
    LINKS = "EXTERNAL_LINKS"
    EITHER = "INLINE_OR_EXTERNAL_LINKS"


@dataclass(frozen=True, slots=True)
class Files:
    """A result that is given as files, once it is complete, not page by page."""

    form: Form
    disposition: Disposition


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What a client can read, as sent with ExecuteStatement; kept with the operation for every later fetch."""

    arrow: bool = False
    lz4: bool = False
    near: bool = False  # on this machine, where packing takes longer than what it saves
    links: bool = False
    # It goes on to read an operation that it has closed, and to fetch, but loses of the first page all but a batch or a link.
    reads_on: bool = False
    timestamp_as_arrow: bool = True
    decimal_as_arrow: bool = True
    complex_as_arrow: bool = True
    interval_as_arrow: bool = False
    null_as_arrow: bool = False
    files: Files | None = None


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """A statement to run in a session."""

    statement: str
    conf_overlay: Mapping[str, str] = field(default_factory=dict)
    parameters: Sequence[Parameter] = ()
    timeout_seconds: int = 0  # 0: the session's or server's
    row_limit: int | None = None
    byte_limit: int | None = None
    wait_seconds: float = 0.0  # how long to wait for a terminal state before answering (direct results)
    options: ResultOptions = ResultOptions()
    read_only: bool = False  # a statement that does more than to read is refused before anything is done
    origin: str = ""  # ``scheme://name`` that links to files of volumes begin with; "" for a client that follows none


# What an operation of each kind is called.
METADATA_TYPES = {
    "catalogs": "GET_CATALOGS",
    "schemas": "GET_SCHEMAS",
    "tables": "GET_TABLES",
    "columns": "GET_COLUMNS",
    "functions": "GET_FUNCTIONS",
    "table_types": "GET_TABLE_TYPES",
    "type_info": "GET_TYPE_INFO",
    # TOperationType has none for keys; Hive's and Spark's servers call them this.
    "primary_keys": "GET_FUNCTIONS",
    "cross_reference": "GET_FUNCTIONS",
    "files": "GET_TABLES",  # of ours
}


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """GetCatalogs, GetSchemas, GetTables and their kin; `kind` as in `worker_jobs.MetadataCall`."""

    kind: str
    catalog: str | None = None
    schema: str | None = None
    table: str | None = None
    column: str | None = None
    function: str | None = None
    table_types: tuple[str, ...] = ()
    parent: tuple[str | None, str | None, str | None] = (None, None, None)
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """A snapshot of an operation. `error` is set in ERROR, CANCELED and TIMEDOUT. Times are epoch milliseconds.

    `writes`: it is one that writes, so that it may have done so however it has ended.
    """

    handle: Handle
    operation_type: str  # TOperationType name
    state: State
    error: GatewayError | None = None
    modified_rows: int | None = None
    started_ms: int | None = None
    completed_ms: int | None = None
    progress_text: str = ""
    progress_fraction: float | None = None
    protocol: int = 0  # of its session
    writes: bool = False


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """Shape of a result. `time_zone` is the session's when the statement ran; `is_query` False for DDL, SET, USE."""

    schema: StructType
    options: ResultOptions
    protocol: int
    time_zone: str
    is_query: bool = True
    is_metadata: bool = False  # metadata calls are always columnar
    linked: bool = False  # its pages hold links to their rows: a large result of a client that takes them
    is_staging: bool = False  # its row tells the client what to do with a file of a volume


@dataclass(frozen=True, slots=True)
class Page:
    """Rows `start_row_offset` .. + rows of a result, their batches in the result's internal Arrow schema.

    Of a result whose rows are `linked`, `pieces` say where they are and `parts` is empty.
    """

    start_row_offset: int
    parts: Sequence[Rows]
    has_more_rows: bool
    metadata: ResultMetadata
    operation: bytes = b""  # the identifier that links name
    pieces: Sequence[Piece] = ()

    @property
    def rows(self) -> int:
        return sum(part.count for part in self.parts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A complete result: its shape, its rows in pieces, and whether a limit has cut it off."""

    metadata: ResultMetadata
    pieces: Sequence[Piece]
    truncated: bool

    @property
    def rows(self) -> int:
        return sum(piece.count for piece in self.pieces)


class Service(Protocol):
    """The verbs. Every one raises GatewayError; none returns half an answer."""

    def open_session(self, request: OpenSessionRequest) -> SessionInfo: ...

    def close_session(self, principal: Principal, session: Handle) -> None: ...

    def execute(self, principal: Principal, session: Handle, request: ExecuteRequest) -> OperationStatus: ...

    def metadata(self, principal: Principal, session: Handle, request: MetadataRequest) -> OperationStatus: ...

    def session_info(self, principal: Principal, session: Handle) -> SessionInfo: ...

    def operation_status(self, principal: Principal, operation: Handle, wait_seconds: float) -> OperationStatus:
        """The state; while not terminal, waits up to `wait_seconds` for a change to a terminal state."""

    def result_metadata(self, principal: Principal, operation: Handle) -> ResultMetadata:
        """Shape of the result; waits until it is known. Raises the operation's error if it failed or was cancelled."""

    def fetch(
        self,
        principal: Principal,
        operation: Handle,
        orientation: Orientation,
        max_rows: int,
        max_bytes: int | None,
        start_row_offset: int | None,
    ) -> Page:
        """A page; waits until at least one row is there or the result has ended. A repeated fetch of the same
        rows gives the same."""

    def log_lines(self, principal: Principal, operation: Handle, most: int, first: bool) -> Sequence[str]:
        """What was told of the operation since the last call, or from the `first` line on; at most so many lines."""

    def cancel(self, principal: Principal, operation: Handle) -> None: ...

    def close_operation(self, principal: Principal, operation: Handle) -> None:
        """Frees everything; closing an unknown or closed handle succeeds.

        What a client that `reads_on` has not read stays until it has, or has not touched it for half a minute.
        """


class WholeResults(Service, Protocol):
    """What the service offers beside the pages of a result: operations by their public names, results in pieces."""

    def named_session(self, principal: Principal, identifier: str) -> Handle:
        """The handle of one's own session by its public identifier. Raises ProtocolError."""

    def named_operation(self, principal: Principal, identifier: str) -> Handle:
        """The handle of one's own operation by its public identifier. Raises ProtocolError."""

    def kill(self, principal: Principal, identifier: str) -> None:
        """End a statement by its public identifier: one's own, or anybody's for administrators. Raises ProtocolError."""

    def outcome(self, principal: Principal, operation: Handle) -> Outcome:
        """The result of an operation that is FINISHED. Raises the operation's error."""

    def owner_of(self, operation: bytes) -> str:
        """The name of whom the operation of a link belongs to; never waits. Raises ProtocolError."""

    def piece(self, operation: bytes, start_row: int, rows: int, size: int | None = None) -> Page:
        """The rows of a link: whoever has one was told it by the operation's owner. Raises ProtocolError once they are gone.

        With `size` they end early where they are larger as text, after one row at least.
        """
