"""What a table says that its rows must hold: CHECK constraints, invariants of columns, and what columns are generated from."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.delta.expressions import CONSTRAINT, GENERATED, INVARIANTS, invariant, is_constraint
from gateway.delta.table import Snapshot
from gateway.errors import unsupported
from gateway.sqltypes import quote_if_needed


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that is true for every row: its name, and its text in Spark's SQL."""

    name: str
    text: str


def constraints_of(snapshot: Snapshot) -> list[Constraint]:
    """A table's constraints, by name. Raises UnsupportedError for an invariant that is not understood."""
    named = [Constraint(k[len(CONSTRAINT) :], v) for k, v in snapshot.properties.items() if is_constraint(k)]
    for column in snapshot.columns:
        text = column.metadata.get(INVARIANTS)
        if text is not None:
            named.append(_invariant(column.name, text))
        text = column.metadata.get(GENERATED)
        if text is not None:
            named.append(Constraint("Generated Column", f"{quote_if_needed(column.name)} <=> ({text})"))
    return sorted(named, key=lambda one: one.name)


def _invariant(column: str, text: str) -> Constraint:
    try:
        found = invariant(text)
    except (ValueError, TypeError, KeyError) as error:
        raise unsupported(f"the invariant {text} of column {column}") from error
    return Constraint(f"EXPRESSION({found})", found)
