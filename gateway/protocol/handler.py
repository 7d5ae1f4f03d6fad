"""Calls of TCLIService: each is decode, one verb of the service, encode, under one error wrapper (`ThriftHandler._answer`).

How a failed statement is reported. Real servers answer a syntax error with TStatus ERROR and no handle, yet the Python
client turns that into a plain DatabaseError, and its tests and ibis want the ServerOperationError that only an operation in
ERROR_STATE gives. Go, Node, C# and JDBC read either. So:

- direct results asked for: TStatus SUCCESS, a handle, and `directResults.operationStatus` in ERROR_STATE with sqlState,
  errorMessage and displayMessage; the operation is closed, which `closeOperation` tells;
- asynchronous without direct results: TStatus SUCCESS and a handle; the error comes with GetOperationStatus;
- synchronous without direct results (PyHive): such clients look at the status of the call and nowhere else, so TStatus ERROR.

Errors of every other kind (handles, refusals, a fetch from a failed operation) are a TStatus ERROR or INVALID_HANDLE. No
SQL error is ever an HTTP error.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import GatewayError, ProtocolError, ServerError, unsupported
from gateway.observability import counter, histogram, log
from gateway.protocol import codec, convert, information, orientation, pages, user_agents, versions
from gateway.protocol.reader import Budget
from gateway.protocol.turns import ShapeTurns
from gateway.protocol.writer import Buffer, Encoded
from gateway.results.links import LinkSigner
from gateway.service.api import (
    ENDS,
    ExecuteRequest,
    Handle,
    MetadataRequest,
    OpenSessionRequest,
    OperationStatus,
    Orientation,
    Page,
    Principal,
    ResultMetadata,
    Service,
    State,
)
from gateway.service.session import text_of
from gateway.thrift_gen.TCLIService import ttypes

LINK_PATH = "/sql/1.0/results/"
_LOG_ROWS = 1  # fetchType of FetchResults: the operation's log


@dataclass(frozen=True, slots=True)
class HandlerOptions:
    """Waiting times and limits.

    Attributes:
        direct_wait_seconds: how long a call with direct results waits for its statement. The Python client cannot cancel
            while a call is in flight, so it stays at a few seconds.
        poll_seconds: how long GetOperationStatus is held while nothing changes; at most 2. A client whose threads share one
            connection can cancel only between two of these calls.
        default_rows: rows of a page when the client gives no positive number.
    """

    direct_wait_seconds: float = 5.0
    poll_seconds: float = 0.5
    default_rows: int = 100_000
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, with which program, and the ``scheme://name`` under which it reaches this server; "" if links lead nowhere."""

    principal: Principal
    client: str
    origin: str = ""
    sessions: set[Handle] | None = None  # those that its connection has opened, where they end with it


class ThriftHandler:
    """The Thrift face of a service, for every transport. Thread-safe."""

    def __init__(
        self, service: Service, options: HandlerOptions | None = None, signer: LinkSigner | None = None
    ) -> None:
        """`signer`: of links to result rows; without it clients get none."""
        self._service = service
        self._options = options or HandlerOptions()
        self._signer = signer
        self._shapes = ShapeTurns()

    def handle(self, body: bytes, identity: str, user_agent: str, origin: str = "") -> bytes:
        """The bytes that answer `body`; never raises. `identity` is the authenticated name of the caller."""
        answer = self.answer(body, identity, user_agent, origin)
        return answer if isinstance(answer, bytes) else b"".join(answer)

    def answer(
        self, body: bytes, identity: str, user_agent: str, origin: str = "", sessions: set[Handle] | None = None
    ) -> bytes | list[Buffer]:
        """As `handle`, a large answer in parts that are to be sent one after the other; for `origin` see `Caller`.

        `sessions` is kept true for whoever calls `hang_up` at the end of a connection.
        """
        start = time.perf_counter()
        try:
            call = codec.decode_call(body, self._options.budget)
        except codec.BadCallError as error:
            counter("rpc_errors_total", rpc="unknown", error_class=error.fault.name)
            return error.answer()
        answer = self._answer(call.method, Caller(Principal(identity), user_agent, origin, sessions), call.value)
        try:
            return codec.encode_reply_parts(call.method, call.seqid, answer)
        except Exception as error:  # noqa: BLE001 - the last resort: an answer that cannot be written
            text = _unexpected(call.method, error).text()
            return codec.encode_exception(call.method, call.seqid, codec.Fault.INTERNAL_ERROR, text)
        finally:
            histogram("rpc_seconds", time.perf_counter() - start, rpc=call.method)

    def undelivered(self, answer: bytes | Sequence[Buffer], identity: str) -> None:
        """End what a call has started whose answer nobody reads: the client cannot know its handle, so none can cancel it."""
        body = answer if isinstance(answer, bytes) else b"".join(answer)
        with contextlib.suppress(codec.ApplicationError, GatewayError):
            started = getattr(codec.decode_reply(body).value, "operationHandle", None)
            if started is not None:
                self._service.close_operation(Principal(identity), convert.operation_from(started))

    def hang_up(self, identity: str, sessions: set[Handle]) -> None:
        """Close the sessions that a connection has left open; those that have expired meanwhile are closed."""
        while sessions:
            with contextlib.suppress(GatewayError, KeyError):
                self._service.close_session(Principal(identity), sessions.pop())

    def _answer(self, method: str, caller: Caller, request: Any) -> Any:
        """The answer of one verb; an error becomes the answer's TStatus."""
        try:
            verb = VERBS.get(method)
            if verb is None:
                raise unsupported(f"The call {method}")
            return verb(self, caller, request)
        except GatewayError as error:
            return _refusal(method, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the connection
            return _refusal(method, _unexpected(method, error))

    def open_session(self, caller: Caller, request: Any) -> Any:
        """OpenSession."""
        protocol = versions.negotiate(request.client_protocol, request.client_protocol_i64)
        settings, catalog, schema = convert.settings_from(request.configuration)
        namespace = request.initialNamespace
        if namespace is not None:
            catalog = convert.catalog_from(namespace.catalogName) or catalog
            schema = namespace.schemaName or schema
        infos = [information.answer(question) for question in request.getInfos or ()]
        session = self._service.open_session(
            OpenSessionRequest(caller.principal, protocol, settings, catalog, schema, caller.client)
        )
        if caller.sessions is not None:
            caller.sessions.add(session.handle)
        return ttypes.TOpenSessionResp(
            status=convert.success(),
            serverProtocolVersion=session.protocol,
            sessionHandle=convert.session_handle(session.handle, session.protocol),
            configuration=dict(session.settings),
            getInfos=infos or None,
            initialNamespace=ttypes.TNamespace(catalogName=session.catalog, schemaName=session.schema),
            canUseMultipleCatalogs=True,
        )

    def close_session(self, caller: Caller, request: Any) -> Any:
        """CloseSession."""
        session = convert.session_from(request.sessionHandle)
        self._service.close_session(caller.principal, session)
        if caller.sessions is not None:
            caller.sessions.discard(session)
        return ttypes.TCloseSessionResp(status=convert.success())

    def get_info(self, caller: Caller, request: Any) -> Any:
        """GetInfo."""
        self._service.session_info(caller.principal, convert.session_from(request.sessionHandle))
        return ttypes.TGetInfoResp(status=convert.success(), infoValue=information.answer(request.infoType))

    def execute_statement(self, caller: Caller, request: Any) -> Any:
        """ExecuteStatement."""
        if request.statementConf is not None and request.statementConf.sessionless:
            raise unsupported("ExecuteStatement without a session")
        session = convert.session_from(request.sessionHandle)
        if request.statement is None:
            raise ProtocolError("PARSE_EMPTY_STATEMENT", "The request has no statement.")
        info = self._service.session_info(caller.principal, session)
        limit = request.resultRowLimit
        status = self._service.execute(
            caller.principal,
            session,
            ExecuteRequest(
                statement=request.statement,
                conf_overlay=request.confOverlay or {},
                parameters=convert.parameters_from(request.parameters),
                timeout_seconds=max(0, request.queryTimeout or 0),
                row_limit=limit if limit is not None and limit > 0 else None,
                wait_seconds=self._wait(request),
                origin=caller.origin,
                options=convert.result_options(
                    request,
                    info.protocol,
                    info.settings,
                    links=self._may_link(caller),
                    near=convert.is_near(caller.origin),
                    reads_on=user_agents.reads_on(caller.client),
                ),
            ),
        )
        return self._operation(ttypes.TExecuteStatementResp, caller, request, status)

    def metadata(self, answer: type[Any], kind: str, caller: Caller, request: Any) -> Any:
        """GetCatalogs, GetSchemas, GetTables and their kin: one catalog question each, answered like a statement."""
        session = convert.session_from(request.sessionHandle)
        of = "foreign{}Name" if kind == "cross_reference" else None
        catalog, schema, table = self._names(caller, session, request, of)
        question = MetadataRequest(
            kind=kind,
            catalog=catalog,
            schema=schema,
            table=table,
            parent=self._names(caller, session, request, "parent{}Name"),
            column=getattr(request, "columnName", None),
            function=getattr(request, "functionName", None),
            table_types=tuple(getattr(request, "tableTypes", None) or ()),
            wait_seconds=self._wait(request),
        )
        status = self._service.metadata(caller.principal, session, question)
        return self._operation(answer, caller, request, status)

    def _names(
        self, caller: Caller, session: Handle, request: Any, fields: str | None
    ) -> tuple[str | None, str | None, str | None]:
        """Catalog, schema and table as a call's fields have them."""
        spelt = [fields.format(part) for part in ("Catalog", "Schema", "Table")] if fields is not None else _NAMES
        catalog, schema, table = (getattr(request, name, None) for name in spelt)
        if catalog is not None and convert.catalog_from(catalog) is None:
            catalog = self._service.session_info(caller.principal, session).catalog
        return catalog, schema, table

    def _wait(self, request: Any) -> float:
        """How long a call waits for the end of its operation."""
        if request.getDirectResults is None and request.runAsync:
            return 0.0
        return self._options.direct_wait_seconds

    def _operation(self, answer: type[Any], caller: Caller, request: Any, status: OperationStatus) -> Any:
        """The answer to a call that has started an operation (see the module's docstring)."""
        direct = None
        if request.getDirectResults is not None:
            direct = self._direct_results(caller, status, request.getDirectResults)
        elif not request.runAsync:
            while status.state not in ENDS:
                status = self._service.operation_status(caller.principal, status.handle, self._options.poll_seconds)
            if status.error is not None:
                self._service.close_operation(caller.principal, status.handle)
                if status.protocol != versions.HIVE_V6:
                    raise status.error
                refused = _refusal(answer.__name__.removeprefix("T").removesuffix("Resp"), status.error)
                refused.status = convert.hive_failure(status.error)
                return refused
        return answer(status=convert.success(), operationHandle=convert.operation_handle(status), directResults=direct)

    def _direct_results(self, caller: Caller, status: OperationStatus, limits: Any) -> Any:
        """TSparkDirectResults: all four members if the operation has ended in time and its rows fit."""
        direct = ttypes.TSparkDirectResults(operationStatus=convert.operation_status(status))
        if status.state is State.FINISHED:
            try:
                page = self._service.fetch(
                    caller.principal, status.handle, Orientation.NEXT, self._rows(limits.maxRows), limits.maxBytes, None
                )
                direct.resultSetMetadata = self._shape(caller, page.metadata)
                direct.resultSet = ttypes.TFetchResultsResp(
                    status=convert.success(), hasMoreRows=page.has_more_rows, results=self._row_set(caller, page)
                )
            except GatewayError as error:
                failed = _failed(status, error)
                direct = ttypes.TSparkDirectResults(operationStatus=convert.operation_status(failed))
            else:
                if page.has_more_rows or page.metadata.linked:
                    return direct  # links are good as long as the operation is open
        elif status.state is not State.ERROR:
            return direct  # still at work, or cancelled: the client asks again and is told
        self._service.close_operation(caller.principal, status.handle)
        direct.closeOperation = ttypes.TCloseOperationResp(status=convert.success())
        return direct

    def _may_link(self, caller: Caller) -> bool:
        return self._signer is not None and user_agents.follows(caller.client, caller.origin)

    def _row_set(self, caller: Caller, page: Page) -> Any:
        def link(operation: bytes, start_row: int, rows: int) -> tuple[str, int]:
            assert self._signer is not None
            text, expires_ms = self._signer.sign(operation, start_row, rows)
            return f"{caller.origin}{LINK_PATH}{text}", expires_ms

        with self._shapes.turn(caller.principal.name, len(page.metadata.schema.fields)):
            return pages.row_set(page, link)

    def _shape(self, caller: Caller, metadata: ResultMetadata) -> Encoded:
        with self._shapes.turn(caller.principal.name, len(metadata.schema.fields)):
            return pages.metadata(metadata)

    def _rows(self, asked: int | None) -> int:
        return asked if asked is not None and asked > 0 else self._options.default_rows

    def operation_status(self, caller: Caller, request: Any) -> Any:
        """GetOperationStatus: held for a while unless the operation has ended."""
        status = self._service.operation_status(
            caller.principal, convert.operation_from(request.operationHandle), self._options.poll_seconds
        )
        return convert.operation_status(status, with_progress=bool(request.getProgressUpdate))

    def result_metadata(self, caller: Caller, request: Any) -> Any:
        """GetResultSetMetadata."""
        operation = convert.operation_from(request.operationHandle)
        return self._shape(caller, self._service.result_metadata(caller.principal, operation))

    def fetch_results(self, caller: Caller, request: Any) -> Any:
        """FetchResults: a page of rows, or (fetchType 1) of lines of the operation's log."""
        operation = convert.operation_from(request.operationHandle)
        if request.fetchType == _LOG_ROWS:
            first = orientation.asked(request.orientation, request.startRowOffset) is Orientation.FIRST
            lines = self._service.log_lines(caller.principal, operation, self._rows(request.maxRows), first)
            return ttypes.TFetchResultsResp(status=convert.success(), hasMoreRows=False, results=pages.log_page(lines))
        page = self._service.fetch(
            caller.principal,
            operation,
            orientation.asked(request.orientation, request.startRowOffset),
            self._rows(request.maxRows),
            request.maxBytes,
            request.startRowOffset,
        )
        return ttypes.TFetchResultsResp(
            status=convert.success(),
            hasMoreRows=page.has_more_rows,
            results=self._row_set(caller, page),
            # Drivers that do not ask for it may still need it with a later page; Hive's know no such field.
            resultSetMetadata=self._shape(caller, page.metadata)
            if request.includeResultSetMetadata or versions.is_spark(page.metadata.protocol)
            else None,
        )

    def cancel_operation(self, caller: Caller, request: Any) -> Any:
        """CancelOperation."""
        self._service.cancel(caller.principal, convert.operation_from(request.operationHandle))
        return ttypes.TCancelOperationResp(status=convert.success())

    def query_id(self, caller: Caller, request: Any) -> Any:
        """GetQueryId: the statement's id, as the log has it. Its answer has no status: "" for a handle that is none."""
        handle = convert.operation_from(request.operationHandle)
        self._service.operation_status(caller.principal, handle, 0.0)
        return ttypes.TGetQueryIdResp(queryId=text_of(handle))

    def set_client_info(self, caller: Caller, request: Any) -> Any:
        """SetClientInfo: what JDBC programs tell of themselves, for the log."""
        session = convert.session_from(request.sessionHandle)
        self._service.session_info(caller.principal, session)
        told = {str(k)[:100]: str(v)[:200] for k, v in list((request.configuration or {}).items())[:20]}
        log("client info", session_id=text_of(session), user=caller.principal.name, info=told or None)
        return ttypes.TSetClientInfoResp(status=convert.success())

    def close_operation(self, caller: Caller, request: Any) -> Any:
        """CloseOperation; closing what is closed succeeds."""
        handle: Handle = convert.operation_from(request.operationHandle)
        self._service.close_operation(caller.principal, handle)
        return ttypes.TCloseOperationResp(status=convert.success())


Verb = Callable[[ThriftHandler, Caller, Any], Any]


_NAMES = ("catalogName", "schemaName", "tableName")


def _metadata(kind: str, answer: type[Any]) -> Verb:
    return lambda handler, caller, request: handler.metadata(answer, kind, caller, request)


# Calls that are not listed are refused by name.
VERBS: dict[str, Verb] = {
    "OpenSession": ThriftHandler.open_session,
    "CloseSession": ThriftHandler.close_session,
    "GetInfo": ThriftHandler.get_info,
    "ExecuteStatement": ThriftHandler.execute_statement,
    "GetCatalogs": _metadata("catalogs", ttypes.TGetCatalogsResp),
    "GetSchemas": _metadata("schemas", ttypes.TGetSchemasResp),
    "GetTables": _metadata("tables", ttypes.TGetTablesResp),
    "GetColumns": _metadata("columns", ttypes.TGetColumnsResp),
    "GetFunctions": _metadata("functions", ttypes.TGetFunctionsResp),
    "GetTableTypes": _metadata("table_types", ttypes.TGetTableTypesResp),
    "GetTypeInfo": _metadata("type_info", ttypes.TGetTypeInfoResp),
    "GetPrimaryKeys": _metadata("primary_keys", ttypes.TGetPrimaryKeysResp),
    "GetCrossReference": _metadata("cross_reference", ttypes.TGetCrossReferenceResp),
    "GetOperationStatus": ThriftHandler.operation_status,
    "GetResultSetMetadata": ThriftHandler.result_metadata,
    "FetchResults": ThriftHandler.fetch_results,
    "CancelOperation": ThriftHandler.cancel_operation,
    "CloseOperation": ThriftHandler.close_operation,
    "GetQueryId": ThriftHandler.query_id,
    "SetClientInfo": ThriftHandler.set_client_info,
}


# Calls that no statement holds up, but GetOperationStatus for `poll_seconds`.
_AT_ONCE = frozenset(
    {
        *("OpenSession", "CloseSession", "GetInfo", "GetOperationStatus"),
        *("CancelOperation", "CloseOperation", "GetQueryId", "SetClientInfo"),
    }
)


def may_wait(body: bytes) -> bool:
    """Whether the call in `body` may be held up by a statement."""
    method = codec.method_of(body)
    return method in VERBS and method not in _AT_ONCE


def _refusal(method: str, error: GatewayError) -> Any:
    """The answer of `method` that carries an error, with the fields that Java and Go require."""
    counter("rpc_errors_total", rpc=method, error_class=error.condition.partition(".")[0])
    if method == "GetQueryId":  # the one answer without a status
        return ttypes.TGetQueryIdResp(queryId="")
    answer = getattr(ttypes, f"T{method}Resp")(status=convert.failure(error))
    if method == "OpenSession":
        answer.serverProtocolVersion = versions.SPARK_V9
    elif method == "GetInfo":
        answer.infoValue = ttypes.TGetInfoValue(stringValue="")
    return answer


def _failed(status: OperationStatus, error: GatewayError) -> OperationStatus:
    """An operation whose rows could not be delivered."""
    return OperationStatus(
        handle=status.handle,
        operation_type=status.operation_type,
        state=State.ERROR,
        error=error,
        started_ms=status.started_ms,
        completed_ms=status.completed_ms,
    )


def _unexpected(method: str, error: Exception) -> GatewayError:
    """A fault of ours: the log gets everything, the client the class only."""
    log("unexpected error", "error", rpc=method, error=repr(error), trace=traceback.format_exc())
    return ServerError("INTERNAL_ERROR", f"The call {method} failed unexpectedly ({type(error).__name__}).")
