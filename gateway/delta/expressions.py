"""The texts in a table's metadata that its writers evaluate: constraints, and what columns are computed from.

Whoever evaluates the texts of a schema believes its types, too: one that names a class is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gateway.errors import UnsupportedError

#: What begins the properties that are constraints, in whatever case.
CONSTRAINT = "delta.constraints."
#: Metadata of columns: what must hold for them, and what they are computed from, out of the row or where nothing is given.
INVARIANTS, GENERATED, DEFAULT = "delta.invariants", "delta.generationExpression", "CURRENT_DEFAULT"
#: The value of a column in rows that are older than it, for Spark.
EXISTS = "EXISTS_DEFAULT"
_TEXTS = (GENERATED, DEFAULT, EXISTS)


def is_constraint(key: str) -> bool:
    """Whether a property is a constraint."""
    return key.lower().startswith(CONSTRAINT)


def expressions_of(metadata: dict[str, Any]) -> Iterator[str]:
    """The expressions of a ``metaData`` action. Raises what damage makes it raise."""
    for key, value in dict(metadata.get("configuration") or {}).items():
        if is_constraint(key):
            yield str(value)
    for field in _fields(metadata.get("schemaString")):
        yield from (str(field[key]) for key in _TEXTS if key in field)
        if INVARIANTS in field:
            yield invariant(field[INVARIANTS])


def existing_of(schema: str | None) -> Iterator[str]:
    """The expressions of a schema's text that readers evaluate, too: values of rows that are older than a column.

    Raises UNSUPPORTED_DATATYPE, and what damage makes it raise.
    """
    return (str(field[EXISTS]) for field in _fields(schema) if EXISTS in field)


def _fields(schema: str | None) -> Iterator[dict[str, Any]]:
    """The metadata of columns, and of the fields of their types, at any depth."""
    return (field.get("metadata") or {} for fields in structs_in(schema) for field in fields)


def structs_in(schema: str | None) -> Iterator[list[dict[str, Any]]]:
    """The columns of a schema's text, and the fields of each struct within, at any depth.

    Raises UNSUPPORTED_DATATYPE, and what damage makes it raise.
    """
    todo = [json.loads(schema)] if schema is not None else []
    while todo:
        one = todo.pop()
        if not isinstance(one, dict):
            continue
        if one.get("type") == "udt":  # Spark would load its class, and import the module that it names
            raise UnsupportedError("UNSUPPORTED_DATATYPE", "Data types that users have defined are not supported.")
        fields = [field for field in one.get("fields") or () if isinstance(field, dict)]
        yield fields
        todo += [*fields, *(one.get(k) for k in ("type", "elementType", "keyType", "valueType"))]


def invariant(text: str) -> str:
    """The expression of an invariant. Raises ValueError, TypeError or KeyError for one that is none."""
    found = json.loads(text)["expression"]["expression"]
    if not isinstance(found, str):
        raise TypeError(type(found).__name__)
    return found
