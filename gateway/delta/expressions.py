"""The texts in a table's metadata that its writers evaluate: constraints, and what columns are computed from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

#: What begins the properties that are constraints, in whatever case.
CONSTRAINT = "delta.constraints."
#: Metadata of columns: what must hold for them, and what they are computed from, out of the row or where nothing is given.
INVARIANTS, GENERATED, DEFAULT = "delta.invariants", "delta.generationExpression", "CURRENT_DEFAULT"
_TEXTS = (GENERATED, DEFAULT, "EXISTS_DEFAULT")


def is_constraint(key: str) -> bool:
    """Whether a property is a constraint."""
    return key.lower().startswith(CONSTRAINT)


def expressions_of(metadata: dict[str, Any]) -> Iterator[str]:
    """The expressions of a ``metaData`` action. Raises what damage makes it raise."""
    for key, value in dict(metadata.get("configuration") or {}).items():
        if is_constraint(key):
            yield str(value)
    schema = metadata.get("schemaString")
    if schema is not None:
        yield from _of_type(json.loads(schema))


def _of_type(spec: Any) -> Iterator[str]:
    """Those of the fields of a type, at any depth."""
    todo = [spec]
    while todo:
        one = todo.pop()
        if not isinstance(one, dict):
            continue
        yield from _of_field(one.get("metadata") or {})
        todo += [*(one.get("fields") or ()), *(one.get(k) for k in ("type", "elementType", "keyType", "valueType"))]


def _of_field(metadata: dict[str, Any]) -> Iterator[str]:
    yield from (str(metadata[key]) for key in _TEXTS if key in metadata)
    if INVARIANTS in metadata:
        yield invariant(metadata[INVARIANTS])


def invariant(text: str) -> str:
    """The expression of an invariant. Raises ValueError, TypeError or KeyError for one that is none."""
    found = json.loads(text)["expression"]["expression"]
    if not isinstance(found, str):
        raise TypeError(type(found).__name__)
    return found
