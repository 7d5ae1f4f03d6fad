"""Which call answers which method and path, and how its outcome becomes an HTTP answer."""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from gateway.errors import GatewayError
from gateway.observability import counter, histogram, log
from gateway.protocol.handler import Caller
from gateway.rest.fields import RestError
from gateway.rest.manifest import code_of
from gateway.rest.statements import StatementApi
from gateway.service.api import Principal

PREFIX = "/api/2.0/"
_WAREHOUSE = "gateway"
_STATUS = {
    "INTERNAL_ERROR": 500,
    "TEMPORARILY_UNAVAILABLE": 503,
    "RESOURCE_DOES_NOT_EXIST": 404,
    "RESOURCE_EXHAUSTED": 429,
}

Verb = Callable[..., dict[str, Any]]


class RestApi:
    """The JSON face of a service. Thread-safe."""

    def __init__(self, statements: StatementApi) -> None:
        routes: tuple[tuple[str, str, str, Verb], ...] = (
            ("POST", r"sql/sessions", "create_session", statements.create_session),
            ("DELETE", r"sql/sessions/([^/]+)", "delete_session", statements.delete_session),
            ("POST", r"sql/statements", "execute_statement", statements.execute),
            ("GET", r"sql/statements/([^/]+)", "get_statement", statements.get),
            ("DELETE", r"sql/statements/([^/]+)", "close_statement", statements.close),
            ("POST", r"sql/statements/([^/]+)/cancel", "cancel_statement", statements.cancel),
            ("GET", r"sql/statements/([^/]+)/status", "get_statement_status", statements.status),
            ("POST", r"sql/warehouses/[^/]+/sessions", "create_session", statements.create_session),
            ("DELETE", r"sql/warehouses/[^/]+/sessions/([^/]+)", "delete_session", statements.delete_session),
            ("POST", r"sql/warehouses/[^/]+/sessions/([^/]+)/statements", "execute_statement", statements.execute),
            ("GET", r"sql/warehouses/[^/]+/sessions/[^/]+/statements/([^/]+)", "get_statement", statements.get),
            ("DELETE", r"sql/warehouses/[^/]+/sessions/[^/]+/statements/([^/]+)", "close_statement", statements.close),
            ("GET", r"sql/statements/([^/]+)/result/chunks/(\d{1,9})", "get_chunk", statements.chunk),
            ("GET", r"sql/warehouses", "list_warehouses", list_warehouses),
            ("GET", r"sql/warehouses/([^/]+)", "get_warehouse", get_warehouse),
            ("GET", r"preview/scim/v2/Me", "me", me),
            ("GET", r"connector-service/feature-flags/[^/]+/[^/]+", "feature_flags", feature_flags),
        )
        self._routes = [(method, re.compile(path), name, verb) for method, path, name, verb in routes]

    def answer(
        self, method: str, path: str, body: bytes, identity: str, user_agent: str, origin: str
    ) -> tuple[int, bytes]:
        """HTTP status and JSON for a request below `PREFIX`; never raises. `origin` as in `Caller`."""
        name = "unknown"
        start = time.perf_counter()
        try:
            name, verb, parts = self._route(method, path)
            found = verb(Caller(Principal(identity), user_agent, origin), body, *parts)
            text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
            histogram("rpc_seconds", time.perf_counter() - start, rpc=name)
            return 200, text.encode("utf-8", "replace")
        except RestError as error:
            status, code, text = error.status, error.code, error.message
        except GatewayError as error:
            code, text = code_of(error), error.text()
            status = _STATUS.get(code, 400)
        except Exception as error:  # noqa: BLE001 - the last resort: the log gets everything, the client the class only
            log("unexpected error", "error", rpc=name, error=repr(error), trace=traceback.format_exc())
            status, code = 500, "INTERNAL_ERROR"
            text = f"The call {name} failed unexpectedly ({type(error).__name__})."
        counter("rpc_errors_total", rpc=name, error_class=code)
        return status, json.dumps({"error_code": code, "message": text}).encode()

    def _route(self, method: str, path: str) -> tuple[str, Verb, tuple[str, ...]]:
        rest = path.removeprefix(PREFIX).strip("/")
        allowed = []
        for known, pattern, name, verb in self._routes:
            found = pattern.fullmatch(rest)
            if found is not None:
                if known == method:
                    return name, verb, found.groups()
                allowed.append(known)
        if allowed:
            raise RestError(405, "METHOD_NOT_ALLOWED", f"Only {' and '.join(allowed)} is served here.")
        raise RestError(404, "ENDPOINT_NOT_FOUND", f"No API found for '{method} {path[:200]}'")


def _warehouse(caller: Caller, identifier: str) -> dict[str, Any]:
    where = urlsplit(caller.origin)
    host, secure = where.hostname or "localhost", where.scheme == "https"
    port = where.port or (443 if secure else 80)
    path = f"/sql/1.0/warehouses/{identifier}"
    return {
        "id": identifier,
        "name": identifier,
        "state": "RUNNING",
        "num_clusters": 1,
        "health": {"status": "HEALTHY"},
        "odbc_params": {"hostname": host, "path": path, "protocol": "https" if secure else "http", "port": port},
        "jdbc_url": f"jdbc:databricks://{host}:{port}/default;transportMode=http;ssl={int(secure)};AuthMech=3;httpPath={path};",
    }


def list_warehouses(caller: Caller, body: bytes) -> dict[str, Any]:
    """GET warehouses: the one that there is."""
    return {"warehouses": [_warehouse(caller, _WAREHOUSE)]}


def get_warehouse(caller: Caller, body: bytes, identifier: str) -> dict[str, Any]:
    """GET warehouses/{id}: any name is this gateway, as in the paths of Thrift."""
    return _warehouse(caller, identifier[:64])


def me(caller: Caller, body: bytes) -> dict[str, Any]:
    """GET scim/v2/Me: who calls."""
    name = caller.principal.name
    return {"id": name, "userName": name, "displayName": name, "active": True}


def feature_flags(caller: Caller, body: bytes) -> dict[str, Any]:
    """GET feature-flags: none is set, ask again in a quarter of an hour."""
    return {"flags": [], "ttl_seconds": 900}
