"""Tables that get columns which rows bring along: their columns and the rows change in one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.delta.metadata import edited
from gateway.delta.properties import WIDENING
from gateway.delta.schema import holds_char, parse_schema
from gateway.errors import Span, UserError, unsupported
from gateway.runner.commands.columns import added
from gateway.sql.read import command_nodes as c
from gateway.sql.typed.coerce import nullable_inside
from gateway.sqltypes import VOID, DataType, StructField

EVOLVES = "WITH SCHEMA EVOLUTION"


def with_columns(
    table: DeltaBoundTable, more: Sequence[StructField], span: Span
) -> tuple[DeltaBoundTable, dict[str, Any] | None]:
    """The table with more columns, and its metadata then; None where it stays as it is. Raises as ADD COLUMNS does."""
    if not more:
        return table, None
    fields = (c.AddedColumn(c.Name((f.name,), span), StructField(f.name, f.type)) for f in more)
    alteration = added(c.AddColumns(tuple(fields)), table)
    metadata = edited(table.snapshot, alteration)
    columns = parse_schema(json.loads(metadata["schemaString"]), table.snapshot.mapping)
    return replace(table, snapshot=replace(table.snapshot, columns=columns, notes={})), metadata


def brought(table: DeltaBoundTable, given: Sequence[StructField], span: Span) -> list[StructField]:
    """Those of some columns that a table has not, as it would be given them.

    Raises UserError DELTA_MERGE_ADD_VOID_COLUMN; UnsupportedError where columns of its own would change.
    """
    own = {f.name.lower(): f.type for f in table.schema.fields}
    names = [f.name.lower() for f in given]
    twice = [f.name for at, f in enumerate(given) if f.name.lower() in names[:at]]
    if twice:
        raise unsupported(f"{EVOLVES} by rows that have the column {twice[0]} twice", span)
    widens = table.properties.get(WIDENING, "").lower() == "true"
    more: list[StructField] = []
    for f in given:
        known = own.get(f.name.lower())
        if known is None:
            more.append(_new(f, span))
        elif widens and not _alike(known, f.type):
            raise unsupported(f"{EVOLVES} of {f.name} {known.sql} by {f.type.sql}, where types give way,", span)
    return more


def _alike(own: DataType, given: DataType) -> bool:
    return own == given or given == VOID or (holds_char(own) and not own.children())


def _new(f: StructField, span: Span) -> StructField:
    if f.type == VOID:
        text = f"Cannot add column `{f.name}` with type VOID. Please explicitly specify a non-void type."
        raise UserError("DELTA_MERGE_ADD_VOID_COLUMN", text, span=span)
    if holds_char(f.type):
        raise unsupported(f"{EVOLVES} by the column {f.name} {f.type.sql}", span)
    return StructField(f.name, nullable_inside(f.type))
