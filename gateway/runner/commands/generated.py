"""Columns that a table computes itself: generated ones from others of their row, and those that have a default."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gateway.delta.expressions import DEFAULT, GENERATED
from gateway.delta.identity import is_identity
from gateway.delta.table import Snapshot
from gateway.errors import Span, unsupported
from gateway.sql.bind.defaults import Default
from gateway.sql.bind.logged import kept_expression
from gateway.sql.bind.resolve import Binder
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.typed import nodes as b
from gateway.sql.typed.coerce import coerced
from gateway.sqltypes import VOID, StructField


def default_of(column: StructField, snapshot: Snapshot, binder: Binder) -> b.Expr | None:
    """What a column's DEFAULT stands for; None for NULL."""
    text = snapshot.by_name[column.name].metadata.get(DEFAULT)
    return None if text is None else coerced(kept_expression(text, Scope(), binder.expressions), column.type)


def value_left_out(column: StructField, snapshot: Snapshot, binder: Binder) -> b.Expr:
    """What a new row has in a column of which a clause says nothing, or DEFAULT."""
    default = default_of(column, snapshot, binder)
    return b.null(column.type) if default is None else default


def stands_for(columns: Sequence[StructField], snapshot: Snapshot) -> list[Default | None]:
    """What DEFAULT stands for in the place of each column; None where that is not known."""
    found: list[Default | None] = []
    for column in columns:
        kept = snapshot.by_name[column.name]
        is_known = GENERATED not in kept.metadata and not is_identity(kept) and column.type != VOID
        found.append(Default(column.type, kept.metadata.get(DEFAULT)) if is_known else None)
    return found


def recomputed(
    rel: b.Rel, snapshot: Snapshot, given: Collection[str], binder: Binder, *, in_order: bool = False
) -> b.Rel:
    """Rows of a table whose generated columns are computed anew, but for those that are given.

    With `in_order`, columns that are not given are seen by those behind them alone, as Delta with Spark fills them in one after
    the other: raises UserError UNRESOLVED_COLUMN for a column that is computed of one that comes later.
    """
    texts = {c.name: c.metadata[GENERATED] for c in snapshot.columns if GENERATED in c.metadata and c.name not in given}
    if not texts:
        return rel
    exprs: list[b.Expr] = []
    for at, column in enumerate(rel.columns):
        text = texts.get(column.name)
        if text is None:
            exprs.append(column)
            continue
        seen = tuple(c for i, c in enumerate(rel.columns) if not in_order or i < at or c.name in given)
        exprs.append(coerced(kept_expression(text, Scope([Source((), seen)]), binder.expressions), column.type))
    columns = tuple(
        b.Col(x.type, e.nullable, binder.ids.take(), x.name) for x, e in zip(rel.columns, exprs, strict=True)
    )
    return b.Project(columns, rel, tuple(exprs))


def given_by_all(snapshot: Snapshot, clauses: Sequence[Collection[str]], span: Span) -> set[str]:
    """The columns that clauses give, which must agree on the generated ones. Raises UnsupportedError where they do not."""
    every = set[str]().union(*clauses)
    for column in snapshot.columns:
        if GENERATED in column.metadata and column.name in every and not all(column.name in x for x in clauses):
            raise unsupported(f"giving the generated column {column.name} in some clauses alone", span)
    return every
