"""Bodies of requests: JSON objects whose fields are all known, each of its type and within its bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_DEEPEST = 64


class RestError(Exception):
    """A request that is refused: HTTP status, Databricks' error code, and a text."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


Check = Callable[[str, Any], Any]


def invalid(message: str) -> RestError:
    """A request that can never be right."""
    return RestError(400, "INVALID_PARAMETER_VALUE", message)


def read(body: bytes, checks: Mapping[str, Check]) -> dict[str, Any]:
    """The fields of a JSON object, each checked; an absent one, or null, is None. Raises RestError."""
    if not body.strip():
        return dict.fromkeys(checks)
    if body.count(b"[") + body.count(b"{") > 100_000 or _depth(body) > _DEEPEST:
        raise RestError(400, "MALFORMED_REQUEST", "The body is nested too deeply.")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RestError(400, "MALFORMED_REQUEST", "The body is not JSON.") from error
    return read_object("the body", found, checks)


def read_object(name: str, found: Any, checks: Mapping[str, Check]) -> dict[str, Any]:
    """As `read`, of a value."""
    if not isinstance(found, dict):
        raise invalid(f"{name} is not an object")
    unknown = sorted(str(key)[:100] for key in found if key not in checks)
    if unknown:
        raise invalid(f"{name} has unknown fields: {', '.join(unknown[:5])}")
    return {key: None if found.get(key) is None else check(key, found[key]) for key, check in checks.items()}


def _depth(body: bytes) -> int:
    """How deep brackets are nested, at most; those in texts count too."""
    depth = deepest = 0
    for match in re.finditer(rb"[\[\]{}]", body):
        depth += 1 if match[0] in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def text(name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise invalid(f"{name} is not a string")
    return value


def texts(name: str, value: Any) -> dict[str, str]:
    """An object of strings; numbers and booleans count as their text."""
    if not isinstance(value, dict) or not all(isinstance(v, (str, int, float)) for v in value.values()):
        raise invalid(f"{name} is not an object of strings")
    return {key: str(v).lower() if isinstance(v, bool) else str(v) for key, v in value.items()}


def count(name: str, value: Any) -> int:
    """A positive number."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        raise invalid(f"{name} is not a positive number")
    return value


def one_of(*words: str) -> Check:
    """One of some words."""

    def check(name: str, value: Any) -> str:
        if value not in words:
            raise invalid(f"{name} is not one of {', '.join(words)}")
        return str(value)

    return check


def wait(name: str, value: Any) -> float:
    """A time to wait in seconds: ``0s``, or ``5s`` to ``50s``."""
    found = re.fullmatch(r"([0-9]{1,2})s", value) if isinstance(value, str) else None
    seconds = int(found[1]) if found else -1
    if seconds != 0 and not 5 <= seconds <= 50:
        raise invalid(f"{name} must be 0s or between 5s and 50s")
    return float(seconds)


def each(check: Check) -> Check:
    """A list, each element of which is checked."""

    def of_all(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise invalid(f"{name} is not a list")
        return [check(name, element) for element in value]

    return of_all


def anything(name: str, value: Any) -> Any:
    """What is known and has no effect here."""
    return value
