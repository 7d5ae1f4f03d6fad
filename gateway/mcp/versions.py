"""Versions of the protocol: which there are, and what a request has to say of its own.

Up to 2025-11-25 a client begins with `initialize` and names the version in a header of what follows; from 2026-07-28 on
each request stands for itself and says in `_meta` and in headers what it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from gateway.mcp.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Message,
    RpcError,
    invalid_request,
)

WITH_BATCHES = frozenset({"2024-11-05", "2025-03-26"})
OPENED = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)
UNNAMED = "2025-03-26"  # what is meant by a request without the header
# Where wrong arguments of a tool are an answer that a model reads, no error of the protocol.
TELLING_MODELS = frozenset({"2025-11-25", *STATELESS})

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
_META = "io.modelcontextprotocol/"
SERVER_INFO = f"{_META}serverInfo"
_VERSION, _CAPABILITIES = f"{_META}protocolVersion", f"{_META}clientCapabilities"
_NAMED = {"tools/call": "name"}  # the parameter that a header repeats
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


def headers_of(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names. Raises RpcError for one that tells what a request is, and comes twice."""
    found: dict[str, str] = {}
    for name_bytes, value in raw:
        name = name_bytes.decode("latin-1").lower()
        if name in found and name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
            raise _mismatch(f"The header {name} comes twice.")
        found[name] = value.decode("latin-1")
    return found


def check_version(version: str) -> None:
    """Raise RpcError for a version that is none of ours."""
    if version not in OPENED + STATELESS:
        supported = [*STATELESS[::-1], *OPENED[::-1]]
        raise RpcError(
            UNSUPPORTED_VERSION,
            "This version of the protocol is not supported.",
            {"supported": supported, "requested": version[:100]},
            HTTPStatus.BAD_REQUEST,
        )


def check_envelope(message: Message, headers: Mapping[str, str]) -> None:
    """Raise RpcError for a request from 2026-07-28 on whose parts are missing or say different things."""
    meta = message.params.get("_meta")
    if not isinstance(meta, dict):
        raise _missing("params._meta is missing")
    for key in (_VERSION, _CAPABILITIES):
        if key not in meta:
            raise _missing(f"params._meta has no {key}")
    if headers.get(VERSION_HEADER) != meta[_VERSION]:
        raise _mismatch(f"The header {VERSION_HEADER} and params._meta name different versions.")
    if headers.get(METHOD_HEADER) != message.method:
        raise _mismatch(f"The header {METHOD_HEADER} does not name the method of the request.")
    name: Any = message.params.get(_NAMED.get(message.method, ""))
    if name is not None and _decoded(headers.get(NAME_HEADER)) != name:
        raise _mismatch(f"The header {NAME_HEADER} does not name what the request names.")


def _decoded(value: str | None) -> str | None:
    """The text of a header's value, which may be wrapped in base64; None for one that is broken."""
    found = _ENCODED.fullmatch(value or "")
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def check_media(headers: Mapping[str, str]) -> None:
    """Raise RpcError for a request that is not JSON, or that takes no JSON for an answer."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        error = invalid_request("Content-Type must be application/json.")
        error.status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        raise error
    taken = {part.partition(";")[0].strip().lower() for part in headers.get("accept", "*/*").split(",")}
    if taken.isdisjoint(("application/json", "application/*", "*/*")):
        error = invalid_request("Answers are application/json, which the header Accept does not take.")
        error.status = HTTPStatus.NOT_ACCEPTABLE
        raise error


def _mismatch(message: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, message, status=HTTPStatus.BAD_REQUEST)


def _missing(message: str) -> RpcError:
    return RpcError(INVALID_PARAMS, message, status=HTTPStatus.BAD_REQUEST)
