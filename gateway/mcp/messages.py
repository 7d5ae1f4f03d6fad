"""Messages of JSON-RPC 2.0 as the Model Context Protocol sends them over HTTP: requests, notifications, errors, batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from gateway.rest.fields import is_text

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

_LONGEST_ID = 256
_LARGEST_ID = 1 << 63

Json = dict[str, Any]


class RpcError(Exception):
    """A request that is answered by an error of the protocol; `status` where HTTP has to say it, too."""

    def __init__(self, code: int, message: str, data: Any = None, status: int = HTTPStatus.OK) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status


def invalid_request(message: str) -> RpcError:
    """What is no message at all."""
    return RpcError(INVALID_REQUEST, message, status=HTTPStatus.BAD_REQUEST)


def invalid_params(message: str) -> RpcError:
    """A known method with wrong parameters."""
    return RpcError(INVALID_PARAMS, message)


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or, without `id`, a notification (or the answer to a question that was never asked)."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    id: str | int | None = None

    @property
    def is_request(self) -> bool:
        return self.id is not None


def message_of(found: Any) -> Message:
    """One message from its JSON. Raises RpcError."""
    if not isinstance(found, dict):
        raise invalid_request("A message is an object.")
    if found.get("jsonrpc") != "2.0":
        raise invalid_request('A message has "jsonrpc": "2.0".')
    if "id" in found and not _is_id(found["id"]):
        raise invalid_request(f"An id is a text of at most {_LONGEST_ID} characters or an integer of 64 bits.")
    if "method" not in found and ("result" in found or "error" in found):
        return Message("")  # nobody asks clients anything
    method, params = found.get("method"), found.get("params", {})
    if not isinstance(method, str):
        raise invalid_request("A method is a string.")
    if not isinstance(params, dict):
        raise invalid_request("Parameters are an object.")
    return Message(method, params, found.get("id"))


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_ID and is_text(value)
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST_ID <= value < _LARGEST_ID


def id_of(found: Any) -> str | int | None:
    """The id that an answer to a broken message names; None where it has none that could be named."""
    value = found.get("id") if isinstance(found, dict) else None
    return value if _is_id(value) else None


def result(identifier: str | int | None, value: Json) -> Json:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": identifier, "result": value}


def failure(identifier: str | int | None, error: RpcError) -> Json:
    """The answer to a request that failed."""
    told: Json = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": identifier, "error": told}
