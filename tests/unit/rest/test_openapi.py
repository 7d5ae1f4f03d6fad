"""The document of the REST API tells of each route and each field that is served, as it is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from gateway.history.search import History
from gateway.rest import fields
from gateway.rest.call import Route
from gateway.rest.history import HistoryApi
from gateway.rest.routes import PREFIX, RestApi
from gateway.rest.statements import StatementApi
from gateway.results.links import LinkSigner
from gateway.service.service import GatewayService
from tests.live.fakes import FakePool
from tests.unit.service.settings import service_config


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> RestApi:
    service = GatewayService(FakePool(), service_config(tmp_path_factory.mktemp("spool")))
    history = HistoryApi(History(str(tmp_path_factory.mktemp("history") / "history.db"), open_to_all=True))
    return RestApi(StatementApi(service, LinkSigner(60)), history)


@pytest.fixture(scope="module")
def document(api: RestApi) -> Any:
    status, body = api.answer("GET", f"{PREFIX}openapi.json", b"", "me", "curl", "http://x")
    assert status == 200
    return json.loads(body)


def _told(document: Any, route: Route) -> Any:
    return document["paths"][f"/{route.path}"][route.method.lower()]


def test_each_route_is_told_with_its_parts_and_fields(api: RestApi, document: Any) -> None:
    assert document["openapi"].startswith("3.1.")
    assert document["servers"] == [{"url": "/api/2.0"}]
    routes = [route for route, _ in api.routes]
    assert len(routes) == sum(len(calls) for calls in document["paths"].values()) > 15
    for route in routes:
        told = _told(document, route)
        assert told["summary"].endswith("."), route
        parts = [part["name"] for part in told.get("parameters", []) if part["in"] == "path"]
        assert parts == re.findall(r"{(\w+)}", route.path)
        queried = {part["name"].partition(".")[0] for part in told.get("parameters", []) if part["in"] == "query"}
        assert queried == set(route.query or ())
        content = told.get("requestBody", {}).get("content", {})
        shape = content["application/json"]["schema"] if content else {"properties": {}}
        assert set(route.fields or ()) <= {*shape["properties"], *parts}, route
        assert shape.get("required", []) == list(route.required)


def test_names_of_operations_are_their_own(document: Any) -> None:
    names = [call["operationId"] for calls in document["paths"].values() for call in calls.values()]
    assert len(names) == len(set(names))


# What each kind of field takes and refuses, by its schema and by its check.
VALUES: list[Any] = ["", "x", "INLINE", "NONE", "0s", "5s", "05s", "50s", "51s", "4s", 0, 1, -1, True, 1.5, 1 << 63]
VALUES += [[], {}, ["x"], [{}], [{"name": "x"}], [{"value": None}], [{"nam": 1}], {"a": "b"}, {"a": 1}, {"a": []}, None]


def test_schemas_take_what_is_taken(api: RestApi, document: Any) -> None:
    """What a check of a field refuses its schema refuses, and the other way round."""
    seen = 0
    for route, _ in api.routes:
        content = _told(document, route).get("requestBody", {}).get("content", {})
        queried = {p["name"]: p["schema"] for p in _told(document, route).get("parameters", []) if p["in"] == "query"}
        for name, check in (route.fields or {} if content else route.query or {}).items():
            if route.query is not None and check.fields:
                continue
            schema = queried[name] if queried else content["application/json"]["schema"]["properties"][name]
            required = name in route.required
            for value in VALUES:
                try:
                    fields.read_object("the body", {name: value}, {name: check})
                    taken = value is not None or not (required or queried)  # a query has no null
                except fields.RestError:
                    taken = False
                assert _fits(schema, value) is taken, (route.name, name, value)
                seen += 1
    assert seen > 500


_TYPES = {"string": str, "integer": int, "number": (int, float), "object": dict, "array": list, "boolean": bool}


def _is(kind: str, value: Any) -> bool:
    if kind == "null" or value is None:
        return kind == "null" and value is None
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])  # type: ignore[arg-type]


def _fits(schema: Any, value: Any) -> bool:
    """Whether a value fits a schema, of which every keyword is known here."""
    kinds = schema.get("type", [])
    if kinds and not any(_is(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    rules: dict[str, Callable[[Any], Any]] = {
        "enum": lambda allowed: value in allowed,
        "pattern": lambda pattern: not isinstance(value, str) or re.search(pattern, value) is not None,
        "minimum": lambda least: value is None or value >= least,
        "maximum": lambda most: value is None or value <= most,
        "exclusiveMaximum": lambda most: value is None or value < most,
        "items": lambda item: value is None or all(_fits(item, element) for element in value),
        "additionalProperties": lambda rest: (
            not isinstance(value, dict)
            or all(key in schema.get("properties", {}) or (rest and _fits(rest, v)) for key, v in value.items())
        ),
        "properties": lambda known: (
            not isinstance(value, dict) or all(_fits(known[key], v) for key, v in value.items() if key in known)
        ),
        "required": lambda names: not isinstance(value, dict) or all(name in value for name in names),
        "type": lambda kinds: True,
        "description": lambda words: True,
    }
    return all(bool(rules[keyword](rule)) for keyword, rule in schema.items())
