"""What a table says that its rows must hold: CHECK constraints, invariants of columns, and what columns are generated from."""

from __future__ import annotations

import json
from dataclasses import dataclass

from gateway.delta.table import Snapshot
from gateway.errors import unsupported
from gateway.sqltypes import quote_if_needed

_PREFIX, _INVARIANTS = "delta.constraints.", "delta.invariants"
#: Metadata of columns that a table computes, from others of the row or where nothing is given.
GENERATED, DEFAULT = "delta.generationExpression", "CURRENT_DEFAULT"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that is true for every row: its name, and its text in Spark's SQL."""

    name: str
    text: str


def constraints_of(snapshot: Snapshot) -> list[Constraint]:
    """A table's constraints, by name. Raises UnsupportedError for an invariant that is not understood."""
    named = [Constraint(k.removeprefix(_PREFIX), v) for k, v in snapshot.properties.items() if k.startswith(_PREFIX)]
    for column in snapshot.columns:
        text = column.metadata.get(_INVARIANTS)
        if text is not None:
            named.append(_invariant(column.name, text))
        text = column.metadata.get(GENERATED)
        if text is not None:
            named.append(Constraint("Generated Column", f"{quote_if_needed(column.name)} <=> ({text})"))
    return sorted(named, key=lambda one: one.name)


def _invariant(column: str, text: str) -> Constraint:
    try:
        found = json.loads(text)["expression"]["expression"]
    except (ValueError, TypeError, KeyError) as error:
        raise unsupported(f"the invariant {text} of column {column}") from error
    if not isinstance(found, str):
        raise unsupported(f"the invariant {text} of column {column}")
    return Constraint(f"EXPRESSION({found})", found)
