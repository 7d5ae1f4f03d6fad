"""The server of the protocol: which method answers which message, and how that becomes an answer of HTTP."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from gateway import __version__
from gateway.mcp import messages, versions
from gateway.mcp.messages import Json, Message, RpcError
from gateway.mcp.tools import WAIT_SECONDS, SqlTools
from gateway.observability import counter, histogram, log
from gateway.protocol.handler import Caller
from gateway.rest.fields import RestError, parsed
from gateway.service.api import Principal

_MOST_OF_A_BATCH = 20
_CACHED_MS = 300_000  # how long a client may take the list of tools for known
_SERVER = {"name": "delta-sql-gateway", "title": "Delta SQL Gateway", "version": __version__}
_CAPABILITIES: Json = {"tools": {}}
_INSTRUCTIONS = (
    "Databricks SQL over Delta tables. Find tables with SHOW SCHEMAS, SHOW TABLES IN and DESCRIBE TABLE, name them in full "
    "(catalog.schema.table), and prefer execute_sql_read_only. A statement that takes long answers with a statement_id: "
    "ask poll_sql_result for its result, do not send it again."
)
# From 2026-07-28 on each of these errors has a status of HTTP.
_STATUS = {messages.METHOD_NOT_FOUND: HTTPStatus.NOT_FOUND, messages.INVALID_PARAMS: HTTPStatus.BAD_REQUEST}


@dataclass(frozen=True, slots=True)
class Context:
    """Who sends a message, in which version of the protocol, and until when its answer may be waited for."""

    caller: Caller
    version: str
    until: float

    @property
    def is_stateless(self) -> bool:
        return self.version in versions.STATELESS


Method = Callable[[Context, Message], Json]


class McpServer:
    """The SQL server of the protocol over a service. Thread-safe; keeps nothing between requests."""

    def __init__(self, tools: SqlTools) -> None:
        self._tools = tools
        self._opened: dict[str, Method] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list,
            "tools/call": self._call,
        }
        self._stateless: dict[str, Method] = {
            "server/discover": self._discover,
            "tools/list": self._list,
            "tools/call": self._call,
        }

    def answer(self, raw_headers: Sequence[tuple[bytes, bytes]], body: bytes, identity: str) -> tuple[int, bytes]:
        """HTTP status and body for a POST; never raises."""
        found: Any = None
        try:
            headers = versions.headers_of(raw_headers)
            versions.check_media(headers)
            version = headers.get(versions.VERSION_HEADER, versions.UNNAMED)
            found = _json(body)
            caller = Caller(Principal(identity), headers.get("user-agent", ""))
            context = Context(caller, version, time.monotonic() + WAIT_SECONDS)
            if isinstance(found, list):
                return self._batch(context, found)
            message = messages.message_of(found)
            versions.check_version(version)
            if context.is_stateless and message.is_request:
                versions.check_envelope(message, headers)
            told = self._answered(context, message)
        except RpcError as error:
            counter("rpc_errors_total", rpc="mcp", error_class=str(error.code))
            return error.status, _text(messages.failure(messages.id_of(found), error))
        if told is None:
            return HTTPStatus.ACCEPTED, b""
        code = told.get("error", {}).get("code")
        status = _STATUS.get(code, HTTPStatus.OK) if context.is_stateless else HTTPStatus.OK
        return status, _text(told)

    def _batch(self, context: Context, found: list[Any]) -> tuple[int, bytes]:
        versions.check_version(context.version)
        if context.version not in versions.WITH_BATCHES:
            raise messages.invalid_request("This version of the protocol has no batches.")
        if not 0 < len(found) <= _MOST_OF_A_BATCH:
            raise messages.invalid_request(f"A batch has 1 to {_MOST_OF_A_BATCH} messages.")
        answers = []
        for each in found:
            try:
                message = messages.message_of(each)
                if message.method == "initialize":
                    raise messages.invalid_request("initialize is no part of a batch.")
                told = self._answered(context, message)
            except RpcError as error:
                told = messages.failure(messages.id_of(each), error)
            if told is not None:
                answers.append(told)
        return (HTTPStatus.OK, _text(answers)) if answers else (HTTPStatus.ACCEPTED, b"")

    def _answered(self, context: Context, message: Message) -> Json | None:
        """The answer to a message; None for a notification, of which none has an effect here."""
        if not message.is_request:
            return None
        methods = self._stateless if context.is_stateless else self._opened
        method = methods.get(message.method)
        name = f"mcp {message.method}" if method is not None else "mcp"
        start = time.perf_counter()
        try:
            if method is None:
                raise RpcError(messages.METHOD_NOT_FOUND, f"The method {message.method[:100]!r} is unknown.")
            value = method(context, message)
            histogram("rpc_seconds", time.perf_counter() - start, rpc=name)
        except RpcError as error:
            counter("rpc_errors_total", rpc=name, error_class=str(error.code))
            return messages.failure(message.id, error)
        except Exception as error:  # noqa: BLE001 - the last resort: the log gets everything, the client the class only
            log("unexpected error", "error", rpc=name, error=repr(error), trace=traceback.format_exc())
            counter("rpc_errors_total", rpc=name, error_class="INTERNAL_ERROR")
            text = f"The call failed unexpectedly ({type(error).__name__})."
            return messages.failure(message.id, RpcError(messages.INTERNAL_ERROR, text))
        if context.is_stateless:
            value = {"resultType": "complete", **value, "_meta": {versions.SERVER_INFO: _SERVER}}
        return messages.result(message.id, value)

    def _initialize(self, context: Context, message: Message) -> Json:
        asked = message.params.get("protocolVersion")
        if not isinstance(asked, str):
            raise messages.invalid_params("protocolVersion is not a string")
        return {
            "protocolVersion": asked if asked in versions.OPENED else versions.OPENED[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": _SERVER,
            "instructions": _INSTRUCTIONS,
        }

    def _discover(self, context: Context, message: Message) -> Json:
        return {
            "supportedVersions": [*versions.STATELESS[::-1], *versions.OPENED[::-1]],
            "capabilities": _CAPABILITIES,
            "instructions": _INSTRUCTIONS,
            "ttlMs": _CACHED_MS,
            "cacheScope": "private",
        }

    def _ping(self, context: Context, message: Message) -> Json:
        return {}

    def _list(self, context: Context, message: Message) -> Json:
        if message.params.get("cursor") is not None:
            raise messages.invalid_params("cursor is none that was given: there is one page")
        cached = {"ttlMs": _CACHED_MS, "cacheScope": "private"} if context.is_stateless else {}
        return {"tools": self._tools.described, **cached}

    def _call(self, context: Context, message: Message) -> Json:
        name, arguments = message.params.get("name"), message.params.get("arguments")
        if not isinstance(name, str):
            raise messages.invalid_params("name is not a string")
        if arguments is not None and not isinstance(arguments, dict):
            raise messages.invalid_params("arguments is not an object")
        tool = self._tools.named(name)
        if tool is None:
            raise messages.invalid_params(f"Unknown tool: {name[:100]}")
        try:
            asked = tool.asked(arguments or {})
            return tool.call(context.caller, asked, max(0.0, context.until - time.monotonic()))
        except RestError as error:
            if context.version not in versions.TELLING_MODELS:
                raise messages.invalid_params(error.message) from error
            return {"content": [{"type": "text", "text": error.message}], "isError": True}


def _json(body: bytes) -> Any:
    try:
        return parsed(body, strict=True)
    except RestError as error:
        raise RpcError(messages.PARSE_ERROR, error.message, status=HTTPStatus.BAD_REQUEST) from error


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
