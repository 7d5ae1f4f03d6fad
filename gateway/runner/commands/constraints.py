"""The constraints of a table on the way into it: each row has one more column per constraint, which must be true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gateway.delta.constraints import Constraint, constraints_of
from gateway.delta.table import Snapshot
from gateway.errors import Span, UserError, unsupported
from gateway.runner.environment import Environment
from gateway.sql.bind.changes import ChangeBinder, chosen
from gateway.sql.bind.logged import NOT_ALLOWED, kept_expression
from gateway.sql.bind.resolve import Binder, BoundQuery
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.compile import binder_of
from gateway.sql.read.commands import parse_expression, references
from gateway.sql.typed import nodes as b
from gateway.sqltypes import BOOLEAN, StructField, StructType, struct


def guarded(rel: b.Rel, snapshot: Snapshot, binder: Binder) -> b.Rel:
    """Rows of a table, and behind its columns whether each of its constraints holds."""
    constraints = constraints_of(snapshot)
    if not constraints:
        return rel
    judged = [_judgement(one, rel.columns, binder) for one in constraints]
    exprs = (*rel.columns, *judged)
    names = [*(x.name for x in rel.columns), *(f"constraint {i}" for i in range(len(judged)))]
    columns = tuple(b.Col(x.type, x.nullable, binder.ids.take(), n) for x, n in zip(exprs, names, strict=True))
    return b.Project(columns, rel, exprs)


def guarded_query(query: BoundQuery, snapshot: Snapshot, binder: Binder) -> BoundQuery:
    """`guarded` of a query whose columns are the table's."""
    rel = guarded(query.rel, snapshot, binder)
    fields = [StructField(x.name, x.type, x.nullable) for x in rel.columns[len(query.schema.fields) :]]
    return BoundQuery(rel, struct(*query.schema.fields, *fields), query.ids)


def checked(
    batches: Iterator[pa.RecordBatch], snapshot: Snapshot, span: Span | None, more: int = 0
) -> Iterator[pa.RecordBatch]:
    """The table's columns, and `more` behind them, of rows that `guarded` gave.

    Raises DELTA_VIOLATE_CONSTRAINT_WITH_VALUES for one that is wrong.
    """
    constraints = constraints_of(snapshot)
    width = len(snapshot.columns) + more
    for batch in batches:
        for at, one in enumerate(constraints):
            holds = batch.column(width + at)
            if not pc.all(holds).as_py():
                row = pc.index(holds, False).as_py()
                raise _violated(one, batch.slice(row, 1), snapshot, span)
        yield batch.select(range(width)) if constraints else batch


def _judgement(one: Constraint, columns: Sequence[b.Col], binder: Binder) -> b.Expr:
    found = _bound(one, columns, binder)
    return chosen(b.lit(False, BOOLEAN), (found, b.lit(True, BOOLEAN)))


def _bound(one: Constraint, columns: Sequence[b.Col], binder: Binder) -> b.Expr:
    """A constraint over rows; what is odd in it is the table's, not the statement's."""
    try:
        found = kept_expression(one.text, Scope([Source((), tuple(columns))]), binder.expressions)
        if found.type != BOOLEAN:
            raise unsupported(f"the constraint {one.name} ({one.text}), which is no condition,")
        return found
    except UserError as error:
        if error.condition == NOT_ALLOWED:
            raise
        raise unsupported(f"the constraint {one.name} ({one.text}: {error.message})") from error


def _violated(one: Constraint, row: pa.RecordBatch, snapshot: Snapshot, span: Span | None) -> UserError:
    values = {column.name.lower(): row.column(i)[0].as_py() for i, column in enumerate(snapshot.columns)}
    read = references(parse_expression(one.text))  # names of lambdas, too
    named = {".".join(path): _value(values, path) for path in read if path[0].lower() in values}
    shown = "".join(f"\n - {name} : {value}" for name, value in sorted(named.items()))
    text = f"CHECK constraint {one.name} ({one.text}) violated by row with values:{shown}"
    return UserError("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", text, span=span)


def _value(values: Any, path: Sequence[str]) -> str:
    """A column's value, or that of a field within it, as text."""
    for name in path:
        by_name = {key.lower(): value for key, value in values.items()} if isinstance(values, dict) else {}
        values = by_name.get(name.lower())
    if values is None or isinstance(values, bool):
        return {None: "null", True: "true", False: "false"}[values]
    return str(values)


def check_condition(name: str, text: str, schema: StructType, shown: str, env: Environment, span: Span) -> None:
    """Raise what is wrong with a new constraint, or UnsupportedError for what could not be held at every write."""
    columns = [b.Col(f.type, f.nullable, i, f.name) for i, f in enumerate(schema.fields, 1)]
    scope = Scope([Source((), tuple(columns))])
    binder = binder_of(env.context, env.tables, {}, {})
    found = binder.expressions.bind(parse_expression(text), scope)
    if found.type != BOOLEAN:
        told = f"CHECK constraint '{name}' ({text}) should be a boolean expression."
        raise UserError("DELTA_NON_BOOLEAN_CHECK_CONSTRAINT", told, span=span)
    changes = ChangeBinder(binder_of(env.context, env.tables, {}, {}), shown, "CHECK")
    try:
        changes.condition(parse_expression(text), scope)
    except UserError as error:
        raise unsupported(f"the constraint {name} ({text}: {error.message})", span) from None
