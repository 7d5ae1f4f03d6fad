"""What is kept of a statement beside the columns that are asked by: tables, the plan with its figures, parameters; as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.history.records import LONGEST_DETAILS
from gateway.observability import mask

MOST_OPERATORS = 300
_LONGEST_TEXT = 200  # of an operator
_LONGEST_VALUE = 1_000
_MOST_PARAMETERS = 100
_DEEPEST = 100  # levels that are read and can be written again
_WITH_VALUES = ('"operators":', '"parameters":')
# What of an operator's text is the engine's alone: everything else may hold a value of the statement.
_OWN_WORDS = re.compile(r"\b(?:mode|join_type|file_type)=\w+", re.ASCII)


def details_of(facts: Mapping[str, Any], parameters: Sequence[Any] = ()) -> str | None:
    """The JSON of what a statement's last event and its parameters tell; None for nothing."""
    found = {
        name: facts[name] for name in ("read", "written", "scans", "files_written", "bytes_written") if facts.get(name)
    }
    if facts.get("operators"):
        found["operators"] = [
            {**each, "text": each["text"][:_LONGEST_TEXT]} for each in facts["operators"][:MOST_OPERATORS]
        ]
    if parameters:
        found["parameters"] = [
            {"name": each.name, "type": each.type, "value": None if each.value is None else each.value[:_LONGEST_VALUE]}
            for each in parameters[:_MOST_PARAMETERS]
        ]
    return _text(found) if found else None


def kept(details: str | None, *, show_values: bool) -> str | None:
    """Details as the history keeps them: without `show_values` none of the statement's literals and parameters."""
    if details is None or (len(details) <= LONGEST_DETAILS and not any(part in details for part in _WITH_VALUES)):
        return details
    found: Any = mask(json.loads(details))
    if not show_values:
        for operator in found.get("operators", ()):
            name, _, rest = operator["text"].partition(":")
            operator["text"] = f"{name}: {', '.join(_OWN_WORDS.findall(rest))}".rstrip(": ")
        for parameter in found.get("parameters", ()):
            del parameter["value"]
    for name in ("operators", "scans", "parameters", "read", "written"):  # in this order, until it is short enough
        if len(_text(found)) > LONGEST_DETAILS:
            found.pop(name, None)
    return _text(found)


def known(details: str | None) -> dict[str, Any]:
    """What details tell, nothing if they are not ours."""
    try:
        found = _DECODER.decode(details) if details else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    may_be_deep = details is not None and details.count("{") + details.count("[") > _DEEPEST
    return {} if may_be_deep and not _is_flat(found, _DEEPEST) else found


def _finite(text: str) -> float:
    """A number that JSON has. Raises ValueError."""
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(text)
    return found


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _is_flat(value: Any, levels: int) -> bool:
    """Whether nothing lies deeper than so many levels, so that it can be written again."""
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_is_flat(each, levels - 1) for each in inner)
    return True


def _text(found: Mapping[str, Any]) -> str:
    return json.dumps(found, separators=(",", ":"))
