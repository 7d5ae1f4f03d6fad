"""Messages of the Model Context Protocol by plain HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tests.live.gateway import Server

PATH = "/api/2.0/mcp/sql"


def post(server: Server, message: Any, token: str | None = "none-needed", **headers: str) -> tuple[int, Any]:
    """Status and JSON of a message."""
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): v for name, v in headers.items()}}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    request = urllib.request.Request(server.url + PATH, body, given)
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def called(name: str, **arguments: Any) -> Any:
    """A call of a tool."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def cancel(server: Server, statement: str) -> None:
    """Cancel a statement of those who need no token, by the REST API."""
    url = f"{server.url}/api/2.0/sql/statements/{statement}/cancel"
    request = urllib.request.Request(url, b"", {"Authorization": "Bearer none-needed"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer) == {}
