"""Plain values <-> Thrift structs: schemas, states, statuses, handles, parameters, options.

No decision is taken here that a table does not show. Every struct is written with all its required fields, because Java
and Go clients validate them on read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from gateway.config.server import is_loopback
from gateway.config.session import TIMESTAMP_AS_STRING
from gateway.engine.base import Parameter
from gateway.errors import GatewayError, ProtocolError
from gateway.protocol import versions
from gateway.service.api import ENDS, Handle, OperationStatus, ResultOptions, State
from gateway.sqltypes import STRING, DataType, DecimalType, IntervalType, StructField, StructType, struct
from gateway.thrift_gen.TCLIService import ttypes

STATES: dict[State, int] = {
    State.INITIALIZED: ttypes.TOperationState.INITIALIZED_STATE,
    State.PENDING: ttypes.TOperationState.PENDING_STATE,
    State.RUNNING: ttypes.TOperationState.RUNNING_STATE,
    State.FINISHED: ttypes.TOperationState.FINISHED_STATE,
    State.CANCELED: ttypes.TOperationState.CANCELED_STATE,
    State.CLOSED: ttypes.TOperationState.CLOSED_STATE,
    State.ERROR: ttypes.TOperationState.ERROR_STATE,
    State.TIMEDOUT: ttypes.TOperationState.TIMEDOUT_STATE,
}

# Errors that mean "this handle is none of yours": clients reopen on INVALID_HANDLE_STATUS.
HANDLE_CONDITIONS = frozenset({"INVALID_SESSION_HANDLE", "INVALID_OPERATION_HANDLE"})

# DDL, SET, USE: what clients see of a statement without result (databricks-jdbc recordings).
NO_RESULT: StructType = struct(StructField("Result", STRING))

# Names that hive-jdbc puts before what it means by a configuration entry.
_SETTING_PREFIXES = ("set:hiveconf:", "set:hivevar:", "set:")
_DEFAULT_CATALOG_ALIAS = "spark"
_HANDLE_BYTES = 16
_PROGRESS_HEADERS = ["VERTICES", "MODE", "STATUS", "TOTAL", "COMPLETED", "RUNNING", "PENDING", "FAILED", "KILLED"]
_MISSING_TABLE = re.compile(r"The table or view ((?:`(?:[^`]|``)+`\.?)+)")
_NAME_PART = re.compile(r"`((?:[^`]|``)+)`")
_MAX_ARGUMENT_DEPTH = 32


def success() -> Any:
    """TStatus SUCCESS."""
    return ttypes.TStatus(statusCode=ttypes.TStatusCode.SUCCESS_STATUS)


def failure(error: GatewayError) -> Any:
    """TStatus of an error: text in both fields, since Go shows displayMessage only and Python errorMessage only.

    `infoMessages` stay unset: Hive's JDBC driver parses them as a Java stack trace.
    """
    invalid = error.condition in HANDLE_CONDITIONS
    text = error.text()
    return ttypes.TStatus(
        statusCode=ttypes.TStatusCode.INVALID_HANDLE_STATUS if invalid else ttypes.TStatusCode.ERROR_STATUS,
        sqlState=error.sqlstate,
        errorCode=0,
        errorMessage=text,
        displayMessage=text,
    )


def hive_failure(error: GatewayError) -> Any:
    """TStatus of an error for Hive's V6, so PyHive: its dialect of SQLAlchemy knows a missing table by Hive's own words."""
    status = failure(error)
    missing = _MISSING_TABLE.match(error.message) if error.condition == "TABLE_OR_VIEW_NOT_FOUND" else None
    if missing is not None:
        name = ".".join(part.replace("``", "`") for part in _NAME_PART.findall(missing[1]))
        status.infoMessages = [f"SemanticException Table not found {name}"]
    return status


def operation_status(status: OperationStatus, *, with_progress: bool = False) -> Any:
    """TGetOperationStatusResp; its texts are set only for an error (C# takes any displayMessage for one)."""
    text = status.error.text() if status.error is not None else None
    answered = success()
    if versions.is_spark(status.protocol):
        answered.errorMessage = text  # databricks-jdbc 3 looks for it here, although the call has succeeded
    return ttypes.TGetOperationStatusResp(
        status=answered,
        operationState=STATES[status.state],
        sqlState=status.error.sqlstate if status.error is not None else None,
        errorCode=0 if status.error is not None else None,
        errorMessage=text,
        displayMessage=text,
        operationStarted=status.started_ms,
        operationCompleted=status.completed_ms,
        # impyla's executemany takes no statement with a result; it looks here, other clients at the handle.
        hasResultSet=status.modified_rows is None or status.protocol != versions.HIVE_V6,
        numModifiedRows=status.modified_rows,
        progressUpdateResponse=_progress(status) if with_progress else None,
    )


def _progress(status: OperationStatus) -> Any:
    """What beeline draws its bar and a table from, which it takes to have Hive's columns: it fails on any other number."""
    job = ttypes.TJobExecutionStatus
    under_way = job.NOT_AVAILABLE if status.progress_fraction is None else job.IN_PROGRESS
    code = job.COMPLETE if status.state in ENDS else under_way
    done = 1.0 if code == job.COMPLETE else status.progress_fraction or 0.0
    percent = int(100 * done)
    counts = (100, percent, 100 - percent, 0, 0, 0)
    return ttypes.TProgressUpdateResp(
        headerNames=list(_PROGRESS_HEADERS),
        rows=[["statement", "percent", status.state.name, *map(str, counts)]],
        progressedPercentage=done,
        status=code,
        footerSummary=status.progress_text,
        startTime=status.started_ms or 0,
    )


def _identifier(identifier: Any, condition: str, name: str) -> Handle:
    guid = identifier.guid if identifier is not None else None
    secret = identifier.secret if identifier is not None else None
    if guid is None or secret is None or len(guid) != _HANDLE_BYTES or len(secret) != _HANDLE_BYTES:
        raise ProtocolError(condition, f"Invalid {name}: it takes two identifiers of {_HANDLE_BYTES} bytes.")
    return Handle(guid, secret)


def session_from(handle: Any) -> Handle:
    """The session of a request; raises ProtocolError INVALID_SESSION_HANDLE."""
    return _identifier(handle and handle.sessionId, "INVALID_SESSION_HANDLE", "SessionHandle")


def operation_from(handle: Any) -> Handle:
    """The operation of a request; type and hasResultSet in it are not to be relied on (Python sends false)."""
    return _identifier(handle and handle.operationId, "INVALID_OPERATION_HANDLE", "OperationHandle")


def session_handle(handle: Handle, protocol: int) -> Any:
    """TSessionHandle."""
    return ttypes.TSessionHandle(
        sessionId=ttypes.THandleIdentifier(guid=handle.guid, secret=handle.secret),
        serverProtocolVersion=protocol if versions.is_spark(protocol) else None,
    )


def operation_handle(status: OperationStatus) -> Any:
    """TOperationHandle; every operation has a result set, DDL an empty one (see `NO_RESULT`)."""
    return ttypes.TOperationHandle(
        operationId=ttypes.THandleIdentifier(guid=status.handle.guid, secret=status.handle.secret),
        operationType=getattr(ttypes.TOperationType, status.operation_type),
        hasResultSet=True,
    )


def type_id(type_: DataType, options: ResultOptions) -> int:
    """TTypeId; VOID and intervals get their own id only for clients that asked for their Arrow types as well."""
    if type_.name == "VOID" and options.null_as_arrow:
        return int(ttypes.TTypeId.NULL_TYPE)
    if isinstance(type_, IntervalType) and options.interval_as_arrow:
        ids = ttypes.TTypeId
        return int(ids.INTERVAL_YEAR_MONTH_TYPE if type_.is_year_month else ids.INTERVAL_DAY_TIME_TYPE)
    return int(getattr(ttypes.TTypeId, type_.row.thrift))


def table_schema(schema: StructType, options: ResultOptions) -> Any:
    """TTableSchema: one primitive entry per column, also for nested types (the Python client accepts no other)."""
    columns = []
    for position, field in enumerate(schema.fields, start=1):
        qualifiers = None
        if isinstance(field.type, DecimalType):
            value = ttypes.TTypeQualifierValue
            qualifiers = ttypes.TTypeQualifiers(
                {"precision": value(i32Value=field.type.precision), "scale": value(i32Value=field.type.scale)}
            )
        entry = ttypes.TPrimitiveTypeEntry(type=type_id(field.type, options), typeQualifiers=qualifiers)
        columns.append(
            ttypes.TColumnDesc(
                columnName=field.name,
                typeDesc=ttypes.TTypeDesc(types=[ttypes.TTypeEntry(primitiveEntry=entry)]),
                position=position,
                comment=field.comment or "",
            )
        )
    return ttypes.TTableSchema(columns=columns)


def settings_from(configuration: Mapping[str, str] | None) -> tuple[dict[str, str], str | None, str | None]:
    """Settings, catalog and schema from an OpenSession configuration: Hive's JDBC driver marks them with prefixes."""
    settings: dict[str, str] = {}
    catalog = schema = None
    for key, value in (configuration or {}).items():
        if key == "use:database":
            schema = value
        elif key == "use:catalog":
            catalog = catalog_from(value)
        else:
            for prefix in _SETTING_PREFIXES:
                if key.startswith(prefix):
                    key = key[len(prefix) :]
                    break
            settings[key] = value
    return settings, catalog, schema


def catalog_from(name: str | None) -> str | None:
    """A catalog name as sent: JDBC and C# say `SPARK` when they mean the default one."""
    return None if name is None or name.casefold() == _DEFAULT_CATALOG_ALIAS else name


def is_near(origin: str) -> bool:
    """Whether a client that calls the server `origin` (``scheme://name``) is on its machine; behind a proxy it says another."""
    return is_loopback(urlsplit(origin).hostname or "")


def result_options(
    request: Any,
    protocol: int,
    settings: Mapping[str, str],
    *,
    links: bool = True,
    near: bool = False,
    reads_on: bool = False,
) -> ResultOptions:
    """What a client can read, from ExecuteStatement and the session; `links`: whether it can be given any; `near`: whether it
    is on this machine; for `reads_on` see `ResultOptions`.

    An Arrow type counts as asked for only if its flag is true: Spark's own server reads an absent flag as false. Before
    Spark V5 there are no native types (and no arrowSchema to tell of them), and on Hive's scale no Arrow at all.
    """
    if not versions.is_spark(protocol):
        return _options(arrow=False, lz4=False, near=near, links=False, types=None, as_string=False)
    merged = {key.lower(): value for key, value in settings.items()}
    merged.update({key.lower(): value for key, value in (request.confOverlay or {}).items()})
    options = _options(
        arrow=bool(request.canReadArrowResult),
        lz4=bool(request.canDecompressLZ4Result),
        near=near,
        links=links and versions.has_links(protocol) and bool(request.canDownloadResult),
        types=request.useArrowNativeTypes if versions.has_arrow_schema(protocol) else None,
        as_string=merged.get(TIMESTAMP_AS_STRING.lower(), "false").strip().lower() == "true",
    )
    return replace(options, reads_on=reads_on)


def _options(*, arrow: bool, lz4: bool, near: bool, links: bool, types: Any, as_string: bool) -> ResultOptions:
    return ResultOptions(
        arrow=arrow,
        lz4=lz4,
        near=near,
        links=links,
        timestamp_as_arrow=bool(types and types.timestampAsArrow) and not as_string,
        decimal_as_arrow=bool(types and types.decimalAsArrow),
        complex_as_arrow=bool(types and types.complexTypesAsArrow),
        interval_as_arrow=bool(types and types.intervalTypesAsArrow),
        null_as_arrow=bool(types and types.nullTypeAsArrow),
    )


def parameters_from(parameters: Any) -> tuple[Parameter, ...]:
    """Bound parameters. Positional ones are taken in order of their ordinals, then of the list: Python sends 1 for all."""
    sent = parameters or []
    named = [p for p in sent if p.name]
    if named and len(named) != len(sent):
        raise ProtocolError("INVALID_PARAMETER_MARKER_VALUE", "Named and positional parameters cannot be mixed.")
    ordered = sent if named else sorted(sent, key=lambda p: p.ordinal or 0)
    return tuple(_parameter(p.name or None, p.type, _text(p.value), p.arguments, 0) for p in ordered)


def _parameter(name: str | None, type_: str | None, value: str | None, arguments: Any, depth: int) -> Parameter:
    if depth > _MAX_ARGUMENT_DEPTH:
        raise ProtocolError("INVALID_PARAMETER_MARKER_VALUE", "A parameter is nested too deeply.")
    type_ = type_ or "STRING"
    if type_.upper() == "VOID":
        value = None  # Python sends the text None for a NULL inside an array
    children = None
    if arguments is not None:
        children = tuple(_parameter(None, a.type, a.value, a.arguments, depth + 1) for a in arguments)
    return Parameter(name, type_, value, children)


def _text(value: Any) -> str | None:
    """A TSparkParameterValue as text."""
    if value is None:
        return None
    if value.stringValue is not None:
        return str(value.stringValue)
    if value.doubleValue is not None:
        return repr(value.doubleValue)
    if value.booleanValue is not None:
        return "true" if value.booleanValue else "false"
    return None
