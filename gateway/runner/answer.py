"""What a command or a metadata call answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gateway.engine.base import SessionChange
from gateway.sqltypes import STRING, StructField, StructType, struct

RESULT = struct(StructField("Result", STRING))


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of `schema` (None: no rows), effects on the session, and whether Planned was sent already."""

    statement_type: str
    schema: StructType = RESULT
    table: pa.Table | None = None
    changes: tuple[SessionChange, ...] = ()
    modified_rows: int | None = None
    is_query: bool = True
    announced: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


def done(statement_type: str, *changes: SessionChange) -> Answer:
    """DDL, USE, SET: no rows."""
    return Answer(statement_type, changes=tuple(changes), is_query=False)


def rows_of(statement_type: str, schema: StructType, columns: Sequence[Sequence[Any]], **more: Any) -> Answer:
    """An answer from column values."""
    arrays = [pa.array(values, f.type.arrow()) for values, f in zip(columns, schema.fields, strict=True)]
    names = [f"c{i}" for i in range(len(arrays))]
    return Answer(statement_type, schema, pa.table(arrays, names=names), **more)


def strings(*names: str) -> StructType:
    """A schema of STRING columns that are not null."""
    return struct(*(StructField(n, STRING, False) for n in names))
