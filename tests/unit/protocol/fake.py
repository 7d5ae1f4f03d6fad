"""A scripted service: what each statement does is written down beforehand."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from gateway.errors import CanceledError, GatewayError, ProtocolError
from gateway.results.spool import Rows
from gateway.service.api import (
    ExecuteRequest,
    Handle,
    MetadataRequest,
    OpenSessionRequest,
    OperationStatus,
    Orientation,
    Page,
    Principal,
    ResultMetadata,
    ResultOptions,
    SessionInfo,
    State,
)
from gateway.sqltypes import StructType, struct


@dataclass(frozen=True)
class Script:
    """What a statement does: its rows, or its error; `polls` states are shown before it ends."""

    schema: StructType = field(default_factory=struct)
    rows: Sequence[Sequence[object]] = ()
    error: GatewayError | None = None
    is_query: bool = True
    modified_rows: int | None = None
    polls: int = 0
    state: State = State.FINISHED


@dataclass
class Operation:
    """An operation of the fake."""

    status: OperationStatus
    script: Script
    metadata: ResultMetadata
    batch: pa.RecordBatch
    left: int
    position: int = 0


def batch_of(script: Script) -> pa.RecordBatch:
    """The rows of a script in the internal Arrow types."""
    columns: list[Any] = list(zip(*script.rows, strict=True)) or [[] for _ in script.schema.fields]
    arrays = [pa.array(c, f.type.arrow()) for c, f in zip(columns, script.schema.fields, strict=True)]
    names = [f"c{i}" for i in range(len(arrays))]
    return pa.RecordBatch.from_arrays(arrays, names) if arrays else pa.RecordBatch.from_pylist([], pa.schema([]))


class FakeService:
    """Implements `gateway.service.api.Service` over scripts; remembers what it was asked."""

    def __init__(self, scripts: dict[str, Script] | None = None) -> None:
        self.scripts = scripts or {}
        self.sessions: dict[Handle, tuple[Principal, SessionInfo]] = {}
        self.operations: dict[Handle, tuple[Principal, Operation]] = {}
        self.opened: list[OpenSessionRequest] = []
        self.executed: list[ExecuteRequest] = []
        self.asked: list[MetadataRequest] = []
        self.fetched: list[tuple[Orientation, int, int | None, int | None]] = []
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def open_session(self, request: OpenSessionRequest) -> SessionInfo:
        handle = Handle(secrets.token_bytes(16), secrets.token_bytes(16))
        info = SessionInfo(
            handle,
            request.protocol,
            request.catalog or "main",
            request.schema or "default",
            request.settings,
            "Etc/UTC",
        )
        self.opened.append(request)
        self.sessions[handle] = (request.principal, info)
        return info

    def session_info(self, principal: Principal, session: Handle) -> SessionInfo:
        owner, info = self.sessions.get(session, (None, None))
        if info is None or owner != principal:
            raise ProtocolError("INVALID_SESSION_HANDLE", "Invalid SessionHandle: it is not known.")
        return info

    def close_session(self, principal: Principal, session: Handle) -> None:
        self.session_info(principal, session)
        del self.sessions[session]

    def _start(
        self, principal: Principal, kind: str, script: Script, metadata: ResultMetadata, wait: float
    ) -> OperationStatus:
        self.waits.append(wait)
        handle = Handle(secrets.token_bytes(16), secrets.token_bytes(16))
        status = OperationStatus(handle, kind, State.RUNNING, started_ms=1_700_000_000_000)
        operation = Operation(status, script, metadata, batch_of(script), script.polls)
        self.operations[handle] = (principal, operation)
        return self._advance(operation)

    def _advance(self, operation: Operation) -> OperationStatus:
        with self._lock:
            if operation.status.state is State.RUNNING:
                if operation.left:
                    operation.left -= 1
                else:
                    script = operation.script
                    state = State.ERROR if script.error is not None else script.state
                    operation.status = replace(
                        operation.status, state=state, error=script.error, modified_rows=script.modified_rows
                    )
            return operation.status

    def execute(self, principal: Principal, session: Handle, request: ExecuteRequest) -> OperationStatus:
        info = self.session_info(principal, session)
        self.executed.append(request)
        script = self.scripts[request.statement]
        metadata = ResultMetadata(script.schema, request.options, info.protocol, info.time_zone, script.is_query)
        return self._start(principal, "EXECUTE_STATEMENT", script, metadata, request.wait_seconds)

    def metadata(self, principal: Principal, session: Handle, request: MetadataRequest) -> OperationStatus:
        info = self.session_info(principal, session)
        self.asked.append(request)
        script = self.scripts[request.kind]
        metadata = ResultMetadata(script.schema, ResultOptions(), info.protocol, info.time_zone, is_metadata=True)
        return self._start(principal, f"GET_{request.kind.upper()}", script, metadata, request.wait_seconds)

    def _operation(self, principal: Principal, operation: Handle) -> Operation:
        owner, found = self.operations.get(operation, (None, None))
        if found is None or owner != principal:
            raise ProtocolError("INVALID_OPERATION_HANDLE", "Invalid OperationHandle: it is not known.")
        return found

    def operation_status(self, principal: Principal, operation: Handle, wait_seconds: float) -> OperationStatus:
        found = self._operation(principal, operation)
        self.waits.append(wait_seconds)
        return self._advance(found)

    def result_metadata(self, principal: Principal, operation: Handle) -> ResultMetadata:
        found = self._operation(principal, operation)
        if found.status.error is not None:
            raise found.status.error
        return found.metadata

    def fetch(
        self,
        principal: Principal,
        operation: Handle,
        orientation: Orientation,
        max_rows: int,
        max_bytes: int | None,
        start_row_offset: int | None,
    ) -> Page:
        found = self._operation(principal, operation)
        self.fetched.append((orientation, max_rows, max_bytes, start_row_offset))
        if found.status.error is not None:
            raise found.status.error
        if orientation is Orientation.FIRST:
            found.position = 0
        elif start_row_offset:
            found.position = start_row_offset
        start = found.position
        batch = found.batch.slice(start, max_rows)
        found.position = start + batch.num_rows
        more = found.position < found.batch.num_rows
        return Page(start, [Rows(batch)] if batch.num_rows else [], more, found.metadata)

    def log_lines(self, principal: Principal, operation: Handle, most: int, first: bool) -> Sequence[str]:
        found = self._operation(principal, operation)
        return ["INFO  : first", "INFO  : second"][:most] if first or not found.position else []

    def cancel(self, principal: Principal, operation: Handle) -> None:
        found = self._operation(principal, operation)
        found.status = replace(
            found.status, state=State.CANCELED, error=CanceledError("OPERATION_CANCELED", "Cancelled.")
        )

    def close_operation(self, principal: Principal, operation: Handle) -> None:
        owner, _ = self.operations.get(operation, (None, None))
        if owner == principal:
            del self.operations[operation]
