"""Identity columns in statements: which of them a table numbers itself, and which nobody may give or change."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from gateway.delta.constraints import constraints_of
from gateway.delta.expressions import GENERATED
from gateway.delta.identity import MARK, Numbering, is_identity, last_number, takes_values
from gateway.delta.metadata import Alteration, logged_metadata
from gateway.delta.table import Snapshot
from gateway.errors import Span, UserError, unsupported
from gateway.sql.read.commands import parse_expression, references


def check_given(snapshot: Snapshot, names: Collection[str], span: Span | None) -> None:
    """Raise for a statement that gives new rows values in a column that only the table numbers."""
    for column in snapshot.columns:
        if column.name in names and is_identity(column) and not takes_values(column):
            text = f"Providing values for GENERATED ALWAYS AS IDENTITY column {column.name} is not supported."
            raise UserError("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", text, span=span)


def check_updated(snapshot: Snapshot, names: Collection[str], span: Span | None) -> None:
    """Raise for a statement that changes numbers."""
    for column in snapshot.columns:
        if column.name in names and is_identity(column):
            text = f"UPDATE on IDENTITY column {column.name} is not supported."
            raise UserError("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", text, span=span)


def synced(column: str, table: Snapshot, found: int | None) -> Alteration:
    """SYNC IDENTITY: no number is given again up to `found`, the last one of the rows in the direction of the steps."""
    kept = table.by_name[column]
    last = last_number(kept, found)
    parameters: dict[str, Any] = {}

    def edit(action: dict[str, Any]) -> None:
        one = next(f for f in action["schema"]["fields"] if f["name"] == column)
        parameters["column"] = json.dumps(one, separators=(",", ":"), ensure_ascii=False)
        if last is not None:
            one["metadata"] = {**one["metadata"], MARK: last}

    return Alteration("CHANGE COLUMN", parameters, edit, reads=True)


def numbering(snapshot: Snapshot, clauses: Sequence[Collection[str]], span: Span | None) -> Numbering | None:
    """The numbers that new rows get of which each clause gives these columns; None for a table without such columns.

    Raises UnsupportedError where clauses differ, and where something is computed of a number before there is one.
    """
    columns = [column.name for column in snapshot.columns if is_identity(column)]
    if not columns:
        return None
    for names in clauses:
        check_given(snapshot, names, span)
    left = [{name for name in columns if name not in names} for names in clauses]
    if any(one != left[0] for one in left):
        raise unsupported("giving an identity column in some clauses alone", span)
    names = sorted(left[0]) if left else []
    texts = [one.text for one in constraints_of(snapshot)]
    texts += [column.metadata[GENERATED] for column in snapshot.columns if GENERATED in column.metadata]
    used = {path[0].lower() for text in texts for path in references(parse_expression(text))}
    for name in names:
        if name.lower() in used:
            raise unsupported(f"a condition or column that is computed of the identity column {name}", span)
    return Numbering(snapshot.columns, names, logged_metadata(snapshot)) if names else None
