"""Bodies of requests: JSON objects whose fields are all known, each of its type and within its bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

_DEEPEST, _MOST_VALUES = 64, 250_000
_MOST_ESCAPES = 2 << 20  # in all texts: each takes as long as many characters without
_MOST_PAIRS = 5000  # of a query
# Strings, also without an end, as their text is no structure; and what is outside of them.
_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_DEPTHS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


class RestError(Exception):
    """A request that is refused: HTTP status, Databricks' error code, and a text."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Check:
    """What a field may hold: `schema` says it (JSON Schema), `take` gives the value as it is used, or raises RestError."""

    schema: Mapping[str, Any]
    take: Callable[[str, Any], Any]
    fields: Mapping[str, Check] = field(default_factory=dict)  # of an object whose fields are checked

    def __call__(self, name: str, value: Any) -> Any:
        return self.take(name, value)

    def told(self, description: str) -> Check:
        """The same, and what it is for."""
        return Check({**self.schema, "description": description}, self.take)


Fields = Mapping[str, Check]


def invalid(message: str) -> RestError:
    """A request that can never be right."""
    return RestError(400, "INVALID_PARAMETER_VALUE", message)


def read(body: bytes, checks: Fields) -> dict[str, Any]:
    """The fields of a JSON object, each checked; an absent one, or null, is None. Raises RestError."""
    if not body.strip():
        return dict.fromkeys(checks)
    return read_object("the body", parsed(body), checks)


def from_query(query: str, checks: Fields) -> dict[str, Any]:
    """The JSON object that the query of a URL stands for: `a.b=1` is b in a. Raises RestError."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PAIRS)
    except ValueError as error:
        raise RestError(400, "MALFORMED_REQUEST", "The query has too many fields.") from error
    found: dict[str, Any] = {}
    for path, value in pairs:
        *outer, last = path.split(".")
        at, known = found, checks
        for part in outer:
            at, known = at.setdefault(part, {}), _inside(known, part)
            if not isinstance(at, dict):
                raise invalid(f"{part} is not an object")
        schema = known[last].schema if last in known else {}
        if schema.get("type") == "array":
            at.setdefault(last, []).append(_value(value, schema["items"]))
        else:
            at[last] = _value(value, schema)
    return found


def _inside(checks: Fields, name: str) -> Fields:
    """The fields of a field. Raises RestError for one that has none."""
    check = checks.get(name)
    if check is None or not check.fields:
        raise invalid(f"the query has unknown fields: {name[:100]}")
    return check.fields


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    """A text of a query as the JSON value that its field takes; as it is where it is none."""
    if schema.get("type") == "integer" and re.fullmatch(r"-?[0-9]{1,19}", text):
        return int(text)
    return {"true": True, "false": False}.get(text, text) if schema.get("type") == "boolean" else text


def parsed(body: bytes, *, strict: bool = False) -> Any:
    """A JSON value in which no key comes twice. Raises RestError; if `strict`, also for a mark before it and for NaN."""
    _check_size(body)
    try:
        return _STRICT.decode(body.decode()) if strict else _USUAL.decode(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _malformed("The body is not JSON.") from error


def _malformed(text: str) -> RestError:
    return RestError(400, "MALFORMED_REQUEST", text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # which one counts differs from reader to reader
        raise _malformed("The body names a field twice.")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(text)


_USUAL = json.JSONDecoder(object_pairs_hook=_object)
_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)


def read_object(name: str, found: Any, checks: Fields) -> dict[str, Any]:
    """As `read`, of a value."""
    if not isinstance(found, dict):
        raise invalid(f"{name} is not an object")
    unknown = sorted(str(key)[:100] for key in found if key not in checks)
    if unknown:
        raise invalid(f"{name} has unknown fields: {', '.join(unknown[:5])}")
    return {key: None if found.get(key) is None else check(key, found[key]) for key, check in checks.items()}


def schema_of(checks: Fields, required: Sequence[str] = ()) -> dict[str, Any]:
    """JSON Schema of an object with such fields."""
    shape: dict[str, Any] = {
        "type": "object",
        "properties": {name: dict(check.schema) for name, check in checks.items()},
    }
    if required:
        shape["required"] = list(required)
    return shape | {"additionalProperties": False}


def _check_size(body: bytes) -> None:
    """Raise RestError for more values or depth than a request can need: the parser of JSON holds up all other threads."""
    if body.count(b"\\") > _MOST_ESCAPES:
        raise _malformed("The body has too many escaped characters: send texts as UTF-8.")
    depth = 0
    for values, match in enumerate(_STRUCTURE.finditer(body)):
        depth += _DEPTHS.get(match[0], 0)
        if depth > _DEEPEST or values > _MOST_VALUES:
            raise _malformed("The body is nested too deeply, or has too many values.")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(f"{name} is not a string")
    if not is_text(value):
        raise invalid(f"{name} holds half a character (a lone surrogate)")
    return value


def is_text(value: str) -> bool:
    """Whether a text holds no half of a character."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, (str, int, float)) for v in value.values()):
        raise invalid(f"{name} is not an object of strings")
    return {
        _text(name, key): str(v).lower() if isinstance(v, bool) else _text(name, str(v)) for key, v in value.items()
    }


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _COUNTS:
        raise invalid(f"{name} is not a positive number")
    return value


def _wait(name: str, value: Any) -> float:
    found = re.fullmatch(_WAITS, value) if isinstance(value, str) else None
    if found is None:
        raise invalid(f"{name} must be 0s or between 5s and 50s")
    return float(value[:-1])


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise invalid(f"{name} is neither true nor false")
    return value


def _moment(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _COUNTS:
        raise invalid(f"{name} is not a time in milliseconds")
    return value


def _name(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise invalid(f"{name} is neither a string nor a number")
    return str(value)


_COUNTS = 1 << 63
_WAITS = "0{1,2}s|(0?[5-9]|[1-4][0-9]|50)s"

text = Check({"type": "string"}, _text)
# Numbers and booleans count as their text.
texts = Check({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}, _texts)
# A positive number.
count = Check({"type": "integer", "minimum": 1, "exclusiveMaximum": _COUNTS}, _count)
# True or false.
flag = Check({"type": "boolean"}, _flag)
# Milliseconds since the epoch.
moment = Check({"type": "integer", "minimum": 0, "exclusiveMaximum": _COUNTS}, _moment)
# A name, which may be a number.
name_or_number = Check({"type": ["string", "integer"]}, _name)
# A time in seconds: `0s`, or `5s` to `50s`.
wait = Check({"type": "string", "pattern": f"^({_WAITS})$"}, _wait)
# What is known and has no effect here.
anything = Check({"description": "Known, without effect."}, lambda name, value: value)


def at_most(limit: int) -> Check:
    """A positive number up to a limit."""

    def take(name: str, value: Any) -> int:
        found = _count(name, value)
        if found > limit:
            raise invalid(f"{name} is more than {limit}")
        return found

    return Check({"type": "integer", "minimum": 1, "maximum": limit}, take)


def one_of(*words: str) -> Check:
    """One of some words."""

    def take(name: str, value: Any) -> str:
        if value not in words:
            raise invalid(f"{name} is not one of {', '.join(words)}")
        return str(value)

    return Check({"type": "string", "enum": [str(word) for word in words]}, take)


def each(check: Check) -> Check:
    """A list, each element of which is checked."""

    def take(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise invalid(f"{name} is not a list")
        return [check(name, element) for element in value]

    return Check({"type": "array", "items": dict(check.schema)}, take)


def record(checks: Fields) -> Check:
    """An object whose fields are checked."""
    return Check(schema_of(checks), lambda name, value: read_object(name, value, checks), checks)
