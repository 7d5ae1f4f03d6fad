"""Which call answers which method and path, and how its outcome becomes an HTTP answer."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from gateway.errors import GatewayError
from gateway.observability import counter, histogram, log
from gateway.protocol.handler import Caller
from gateway.rest import openapi
from gateway.rest.call import Asked, Path, Route
from gateway.rest.fields import RestError
from gateway.rest.history import QUERIES, HistoryApi
from gateway.rest.manifest import as_json, code_of
from gateway.rest.statements import OF_CANCEL, OF_SESSION, OF_STATEMENT, SESSION, STATEMENT, StatementApi
from gateway.service.api import Principal

PREFIX = "/api/2.0/"
_WAREHOUSE = "gateway"
_STATUS = {
    "INTERNAL_ERROR": 500,
    "TEMPORARILY_UNAVAILABLE": 503,
    "RESOURCE_DOES_NOT_EXIST": 404,
    "RESOURCE_EXHAUSTED": 429,
}


def routes_of(statements: StatementApi, history: HistoryApi) -> tuple[Route, ...]:
    """All calls but the one that tells of them."""
    within = "sql/warehouses/{warehouse_id}/sessions/{session_id}/statements"
    one = "sql/statements/{statement_id}"
    execute = (statements.execute, STATEMENT, ("statement",))
    return (
        Route("POST", "sql/sessions", "create_session", statements.create_session, SESSION),
        Route("DELETE", "sql/sessions/{session_id}", "delete_session", statements.delete_session, OF_SESSION),
        Route("POST", "sql/statements", "execute_statement", *execute),
        Route("GET", one, "get_statement", statements.get, OF_STATEMENT),
        Route("DELETE", one, "close_statement", statements.close, OF_STATEMENT),
        Route("POST", f"{one}/cancel", "cancel_statement", statements.cancel, OF_CANCEL),
        Route("GET", f"{one}/status", "get_statement_status", statements.status, OF_STATEMENT),
        Route("POST", "sql/warehouses/{warehouse_id}/sessions", "create_session", statements.create_session, SESSION),
        Route(
            "DELETE",
            "sql/warehouses/{warehouse_id}/sessions/{session_id}",
            "delete_session",
            statements.delete_session,
            OF_SESSION,
        ),
        Route("POST", within, "execute_statement", *execute),
        Route("GET", f"{within}/{{statement_id}}", "get_statement", statements.get, OF_STATEMENT),
        Route("DELETE", f"{within}/{{statement_id}}", "close_statement", statements.close, OF_STATEMENT),
        Route("GET", f"{one}/result/chunks/{{chunk_index}}", "get_chunk", statements.chunk, {}),
        Route("GET", "sql/history/queries", "list_queries", history.list_queries, query=QUERIES),
        Route("GET", "sql/warehouses", "list_warehouses", list_warehouses),
        Route("GET", "sql/warehouses/{warehouse_id}", "get_warehouse", get_warehouse),
        Route("POST", "sql/warehouses/{warehouse_id}/start", "start_warehouse", start_warehouse),
        Route("GET", "preview/scim/v2/Me", "me", me),
        Route("GET", "connector-service/feature-flags/{client}/{version}", "feature_flags", feature_flags),
    )


class JsonCalls:
    """Calls below a path: JSON in, JSON out. Thread-safe."""

    def __init__(self, prefix: str, routes: Sequence[Route]) -> None:
        self._prefix = prefix
        self.routes = tuple((route, route.pattern) for route in routes)

    def answer(
        self, method: str, path: str, body: bytes, identity: str, user_agent: str, origin: str, query: str = ""
    ) -> tuple[int, bytes]:
        """HTTP status and JSON for a request below the path; never raises. `origin` as in `Caller`, `query` that of the URL."""
        name = "unknown"
        start = time.perf_counter()
        try:
            route, parts = self._route(method, path)
            name = route.name
            caller = Caller(Principal(identity), user_agent, origin)
            answer = as_json(route.verb(caller, parts, route.asked(body, query)))
            histogram("rpc_seconds", time.perf_counter() - start, rpc=name)
            return 200, answer
        except RestError as error:
            status, code, text = error.status, error.code, error.message
        except GatewayError as error:
            code, text = _told(error), error.text()
            status = _STATUS.get(code, 400)
        except Exception as error:  # noqa: BLE001 - the last resort: the log gets everything, the client the class only
            log("unexpected error", "error", rpc=name, error=repr(error), trace=traceback.format_exc())
            status, code = 500, "INTERNAL_ERROR"
            text = f"The call {name} failed unexpectedly ({type(error).__name__})."
        counter("rpc_errors_total", rpc=name, error_class=code)
        return status, json.dumps({"error_code": code, "message": text}).encode()

    def _route(self, method: str, path: str) -> tuple[Route, Path]:
        rest = path.removeprefix(self._prefix).strip("/")
        allowed = []
        for route, pattern in self.routes:
            found = pattern.fullmatch(rest)
            if found is not None:
                if route.method == method:
                    return route, found.groupdict()
                allowed.append(route.method)
        if allowed:
            raise RestError(405, "METHOD_NOT_ALLOWED", f"Only {' and '.join(allowed)} is served here.")
        raise RestError(404, "ENDPOINT_NOT_FOUND", f"No API found for '{method} {path[:200]}'")


class RestApi(JsonCalls):
    """The JSON face of a service. Thread-safe."""

    def __init__(self, statements: StatementApi, history: HistoryApi) -> None:
        described = Route("GET", "openapi.json", "openapi", self._described)
        super().__init__(PREFIX, (*routes_of(statements, history), described))

    def _described(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Describe these calls as OpenAPI does."""
        return openapi.document([route for route, _ in self.routes], PREFIX)


def _told(error: GatewayError) -> str:
    """The code of a refused call: not 429, at which clients wait and send again, for a limit that stays in the way."""
    code = code_of(error)
    return "BAD_REQUEST" if code == "RESOURCE_EXHAUSTED" and not error.retryable else code


def _warehouse(caller: Caller, identifier: str) -> dict[str, Any]:
    where = urlsplit(caller.origin)
    host, secure = where.hostname or "localhost", where.scheme == "https"
    port = where.port or (443 if secure else 80)
    path = f"/sql/1.0/warehouses/{identifier}"
    written = f"[{host}]" if ":" in host else host
    return {
        "id": identifier,
        "name": identifier,
        "state": "RUNNING",
        "num_clusters": 1,
        "health": {"status": "HEALTHY"},
        "odbc_params": {"hostname": host, "path": path, "protocol": "https" if secure else "http", "port": port},
        "jdbc_url": f"jdbc:databricks://{written}:{port}/default;transportMode=http;ssl={int(secure)};AuthMech=3;"
        f"httpPath={path};",
    }


def list_warehouses(caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
    """List the warehouses: the one that there is."""
    return {"warehouses": [_warehouse(caller, _WAREHOUSE)]}


def get_warehouse(caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
    """Tell of a warehouse: any name is this gateway, as in the paths of Thrift."""
    return _warehouse(caller, path["warehouse_id"][:64])


def start_warehouse(caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
    """Start a warehouse: it runs already."""
    return {}


def me(caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
    """Tell who calls."""
    name = caller.principal.name
    return {"id": name, "userName": name, "displayName": name, "active": True}


def feature_flags(caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
    """Tell a driver's feature flags: none is set, ask again in a quarter of an hour."""
    return {"flags": [], "ttl_seconds": 900}
