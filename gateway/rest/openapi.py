"""What the REST API is told of as: an OpenAPI document, made from its routes and the fields of their bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway import __version__
from gateway.rest.call import Route, part_pattern
from gateway.rest.fields import Fields, schema_of

_ERROR = {
    "type": "object",
    "properties": {"error_code": {"type": "string"}, "message": {"type": "string"}},
    "required": ["error_code", "message"],
}
_JSON = "application/json"


def document(routes: Sequence[Route], prefix: str) -> dict[str, Any]:
    """An OpenAPI 3.1 document of calls that are served below `prefix`."""
    paths: dict[str, dict[str, Any]] = {}
    names: set[str] = set()
    for route in routes:
        # Where the same is served under a second path, that is one of a warehouse.
        name = f"{route.name}_of_warehouse" if route.name in names else route.name
        names.add(name)
        paths.setdefault(f"/{route.path}", {})[route.method.lower()] = _operation(route, name)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Delta SQL Gateway",
            "summary": "The Statement Execution API and what its clients ask too.",
            "version": __version__,
        },
        "servers": [{"url": prefix.rstrip("/")}],
        "security": [{"token": []}, {"password": []}],
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "responses": {
                "Error": {
                    "description": "The call is refused, or has failed.",
                    "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The user token, the token as password.",
                },
            },
        },
    }


def _operation(route: Route, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": name,
        "summary": (route.verb.__doc__ or name).splitlines()[0],
        "responses": {
            "200": {"description": "The answer.", "content": {_JSON: {"schema": {"type": "object"}}}},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    parameters = [
        {
            "name": part,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": f"^{part_pattern(part)}$"},
        }
        for part in route.parts
    ]
    parameters += _of_query(route.query or {})
    if parameters:
        found["parameters"] = parameters
    # Bodies of GET have no meaning in OpenAPI; what these may hold their paths say, too.
    if route.fields and route.method != "GET":
        schema = _with_nulls(schema_of(route.fields, route.required))
        found["requestBody"] = {"required": bool(route.required), "content": {_JSON: {"schema": schema}}}
    return found


def _of_query(checks: Fields, within: str = "") -> list[dict[str, Any]]:
    """Fields of a query; those of an object by their names with dots."""
    found = []
    for name, check in checks.items():
        if check.fields:
            found += _of_query(check.fields, f"{within}{name}.")
        else:
            found.append({"name": f"{within}{name}", "in": "query", "required": False, "schema": dict(check.schema)})
    return found


def _with_nulls(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, in which a null stands for each absent field, too."""
    found = dict(schema)
    if "items" in found:
        found["items"] = _with_nulls(found["items"])
    if "properties" in found:
        required = found.get("required", ())
        found["properties"] = {
            name: _with_nulls(field) if name in required else _or_null(_with_nulls(field))
            for name, field in found["properties"].items()
        }
    return found


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    return schema
