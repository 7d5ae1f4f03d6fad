"""Tables that get columns which rows bring along: their columns and the rows change in one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.delta.commit import Action
from gateway.delta.identity import Numbering
from gateway.delta.metadata import edited
from gateway.delta.properties import WIDENING
from gateway.delta.schema import holds_char, parse_schema
from gateway.errors import Span, UnsupportedError, UserError, unsupported
from gateway.runner.commands.columns import added
from gateway.sql.read import command_nodes as c
from gateway.sql.typed.common_types import nullable_inside
from gateway.sqltypes import VOID, DataType, StructField, StructType

EVOLVES = "WITH SCHEMA EVOLUTION"


def with_columns(
    table: DeltaBoundTable, more: Sequence[StructField], span: Span
) -> tuple[DeltaBoundTable, dict[str, Any] | None]:
    """The table with more columns, and its metadata then; None where it stays as it is. Raises as ADD COLUMNS does."""
    if not more:
        return table, None
    fields = (c.AddedColumn(c.Name((f.name,), span), StructField(f.name, f.type)) for f in more)
    alteration = added(c.AddColumns(tuple(fields)), table)
    if alteration.features:
        raise unsupported(f"{EVOLVES} by a column that the table needs {', '.join(alteration.features)} for", span)
    metadata = edited(table.snapshot, alteration)
    columns = parse_schema(json.loads(metadata["schemaString"]), table.snapshot.mapping)
    return replace(table, snapshot=replace(table.snapshot, columns=columns, notes={})), metadata


def told(metadata: dict[str, Any] | None, numbers: Numbering | None) -> list[Action]:
    """What the commit says beside files: the columns that the table gets, the last numbers of those that it numbers."""
    if numbers is not None and metadata is not None:
        numbers.metadata = metadata
    found = [] if numbers is None else list(numbers.told())
    return found or ([] if metadata is None else [{"metaData": metadata}])


def inserted(
    table: DeltaBoundTable, pairs: Sequence[tuple[StructField, StructField]], more: Sequence[StructField], span: Span
) -> tuple[DeltaBoundTable, dict[str, Any] | None]:
    """The table with the columns that an INSERT brings along, and its metadata then; None where it stays as it is.

    `pairs` are its own columns and those that fill them. Raises UserError DELTA_DUPLICATE_COLUMNS_FOUND.DATA;
    UnsupportedError where columns of its own would change.
    """
    names = [f.name.lower() for f in (*table.schema.fields, *more)]
    twice = next((f.name for f in more if names.count(f.name.lower()) > 1), None)
    if twice is not None:
        text = f"Found duplicate column(s): {twice}. The duplicate was found in the data being saved."
        raise UserError("DELTA_DUPLICATE_COLUMNS_FOUND.DATA", text, span=span)
    widens = table.properties.get(WIDENING, "").lower() == "true"
    for own, given in pairs:
        if _more_fields(own.type, given.type):
            raise unsupported(f"{EVOLVES} by fields within the column {own.name}", span)
        if widens and not _alike(own.type, given.type):
            raise _gives_way(own, given.type, span)
    void = next((f.name for f in more if f.type == VOID), None)
    if void is not None:
        raise unsupported(f"{EVOLVES} by the column {void} VOID", span)
    return with_columns(table, [_new(f, span) for f in more], span)


def _more_fields(own: DataType, given: DataType) -> bool:
    """Whether a struct somewhere in a type has fields that the column's own has not, by their places or names."""
    if isinstance(own, StructType) and isinstance(given, StructType):
        names = {f.name.lower() for f in own.fields}
        if len(given.fields) > len(own.fields) or any(f.name.lower() not in names for f in given.fields):
            return True
    return any(_more_fields(a, b) for a, b in zip(own.children(), given.children(), strict=False))


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
            raise _gives_way(StructField(f.name, known), f.type, span)
    return more


def _gives_way(own: StructField, given: DataType, span: Span) -> UnsupportedError:
    return unsupported(f"{EVOLVES} of {own.name} {own.type.sql} by {given.sql}, where types give way,", span)


def _alike(own: DataType, given: DataType) -> bool:
    same = nullable_inside(own) == nullable_inside(given)
    return same or given == VOID or (holds_char(own) and not own.children())


def _new(f: StructField, span: Span) -> StructField:
    if f.type == VOID:
        text = f"Cannot add column `{f.name}` with type VOID. Please explicitly specify a non-void type."
        raise UserError("DELTA_MERGE_ADD_VOID_COLUMN", text, span=span)
    if holds_char(f.type):
        raise unsupported(f"{EVOLVES} by the column {f.name} {f.type.sql}", span)
    return StructField(f.name, nullable_inside(f.type))
