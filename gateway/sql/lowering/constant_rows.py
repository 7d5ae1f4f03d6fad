"""Constant rows as Arrow: of VALUES scalars as they were folded, and arrays, maps and structs made of such; and what a query of
a few of them, or of none, answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gateway.sql.functions.fold import fold
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Call, Cast, Expr
from gateway.sql.typed.walk import substituted
from gateway.sqltypes import VOID, ArrayType, DataType, MapType, StructType

_NESTED = (ArrayType, MapType, StructType)
_MOST_CELLS = 256  # the engine takes less time for more


class _NoConstantError(Exception):
    """The cell is not known while compiling, or making it would fail."""


def batch_of(rel: b.Values, context: Context) -> pa.RecordBatch | None:
    """The rows with columns named by the ids of `rel`'s; None where a cell must be computed by the engine."""
    try:
        arrays = [
            pa.array([_value(row[i], c.type, context) for row in rel.rows], c.type.scanned())
            for i, c in enumerate(rel.columns)
        ]
    except _NoConstantError:
        return None
    return pa.RecordBatch.from_arrays(arrays, [f"v{c.id}" for c in rel.columns])


def known_rows(rel: b.Rel, context: Context) -> pa.RecordBatch | None:
    """A few rows of scalars that are all known, of a SELECT without FROM or of VALUES, with columns c0..cn; else None."""
    rows = _literals(rel, context) if rel.columns else None
    if rows is None:
        return None
    arrays = [pa.array([row[at].value for row in rows], c.type.arrow()) for at, c in enumerate(rel.columns)]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def _literals(rel: b.Rel, context: Context) -> list[list[b.Lit]] | None:
    """The cells of all rows, if each of them is known, those that nobody reads too: they may raise."""
    if isinstance(rel, b.OneRow):
        return [[]]
    if isinstance(rel, b.Values):
        rows: Sequence[Sequence[Expr]] = rel.rows
    elif isinstance(rel, b.Project) and (below := _literals(rel.input, context)) is not None:
        given = ({c.id: e for c, e in zip(rel.input.columns, row, strict=True)} for row in below)
        rows = [[substituted(e, cells) if cells else e for e in rel.exprs] for cells in given]
    else:
        return None
    if len(rows) * len(rel.columns) > _MOST_CELLS or any(isinstance(c.type, _NESTED) for c in rel.columns):
        return None
    found = []
    for row in rows:
        cells = [fold(e, context) for e in row]
        known = [e for e, c in zip(cells, rel.columns, strict=True) if e is not None and e.type == c.type]
        if len(known) < len(cells):
            return None
        found.append(known)
    return found


def _value(e: Expr, t: DataType, context: Context) -> Any:
    """The cell as a value of type `t`, to which a cast of the whole cell has been moved into its members."""
    if isinstance(e, Cast) and not e.is_try and e.type == t and isinstance(e.arg, Call) and isinstance(t, _NESTED):
        return _value(e.arg, t, context)
    if isinstance(e, Call) and isinstance(t, ArrayType) and e.fn == "array":
        return [_value(a, t.element, context) for a in e.args]
    if isinstance(e, Call) and isinstance(t, StructType) and e.fn == "named_struct":
        values = [_value(a, f.type, context) for a, f in zip(e.args[1::2], t.fields, strict=True)]
        names = [f.name for f in t.fields]
        if len(set(names)) != len(names) or "" in names:
            raise _NoConstantError
        return dict(zip(names, values, strict=True))
    if isinstance(e, Call) and isinstance(t, MapType) and e.fn == "map":
        return _entries(e.args, t, context)
    literal = fold(e if e.type == t else Cast(t, e.nullable, e), context)
    if literal is None or (isinstance(t, _NESTED) and literal.value is not None):
        raise _NoConstantError
    return literal.value


def _entries(args: Sequence[Expr], t: MapType, context: Context) -> list[tuple[Any, Any]]:
    keys = [_value(k, t.key, context) for k in args[::2]]
    if (
        t.key == VOID
        or any(k is None or isinstance(k, (float, list, dict)) for k in keys)
        or len(set(keys)) != len(keys)
    ):
        raise _NoConstantError
    return list(zip(keys, [_value(v, t.value, context) for v in args[1::2]], strict=True))
