"""Columns of views: found again by name in what the view's query answers by now, as the types that it was made with.

A lasting view casts what CAST takes; a temporary one takes only what loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.catalog.objects import StoredView
from gateway.errors import Span, UserError
from gateway.sql.typed.coerce import can_cast, can_upcast, cast_refusal, coerced
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Col, Expr
from gateway.sqltypes import DataType
from gateway.worker_jobs import TempView


def columns_of(view: StoredView, names: Sequence[str], span: Span | None = None) -> list[int]:
    """Which columns of a query that answers `names` now are those of the view, which was made of `query_columns`.

    Raises UserError INCOMPATIBLE_VIEW_SCHEMA_CHANGE if one is not there any more, or not alone.
    """
    shown = f"`{view.name.catalog}`.`{view.name.schema}`.`{view.name.table}`"
    return _found(view.query_columns, names, shown, f"CREATE OR REPLACE VIEW {view.name} AS {view.query}", span)


def columns_of_temporary(view: TempView, names: Sequence[str], span: Span | None = None) -> list[int]:
    """`columns_of` for a temporary view whose `made` is known."""
    assert view.made is not None
    remade = f"CREATE OR REPLACE TEMPORARY VIEW {view.name} AS {view.query}"
    return _found([f.name for f in view.made.fields], names, f"`{view.name}`", remade, span)


def _found(made: Sequence[str], names: Sequence[str], view: str, remade: str, span: Span | None) -> list[int]:
    lower = [n.lower() for n in made]
    now = [n.lower() for n in names]
    found = []
    for at, name in enumerate(lower):
        same = [i for i, n in enumerate(now) if n == name]
        if len(same) != lower.count(name):
            raise UserError(
                "INCOMPATIBLE_VIEW_SCHEMA_CHANGE",
                f"The SQL query of view {view} has an incompatible schema change and column {made[at]} cannot be resolved. "
                f"Expected {lower.count(name)} columns named {made[at]} but got [{', '.join(names[i] for i in same)}]. "
                f"Please try to re-create the view by running: {remade}.",
                span=span,
            )
        found.append(same[lower[:at].count(name)])
    return found


def cast_columns(view: StoredView, columns: Sequence[Col], span: Span | None) -> tuple[Expr, ...]:
    """The columns of a lasting view over those of its query. Raises UserError also for what no cast takes."""
    found = columns_of(view, [c.name for c in columns], span)
    exprs = []
    for at, f in zip(found, view.schema.fields, strict=True):
        if not can_cast(columns[at].type, f.type):
            raise UserError(
                cast_refusal(columns[at].type, f.type, False),
                f'Cannot resolve "{columns[at].name}" due to data type mismatch: cannot cast "{columns[at].type.sql}" to '
                f'"{f.type.sql}".',
                span=span,
            )
        exprs.append(coerced(columns[at], f.type))
    return tuple(exprs)


def kept_columns(view: TempView, columns: Sequence[Col], span: Span | None) -> Sequence[Expr]:
    """The columns of a temporary view over those of its query: these themselves if nothing has changed."""
    if view.made is None:
        return columns
    made = view.made.fields
    if [(c.name, plain(c.type)) for c in columns] == [(f.name, plain(f.type)) for f in made]:
        return columns
    found = columns_of_temporary(view, [c.name for c in columns], span)
    for at, f in zip(found, made, strict=True):
        if not can_upcast(columns[at].type, f.type):
            raise no_upcast(columns[at].name, columns[at].type, f.type, span)
    return [coerced(columns[at], plain(f.type)) for at, f in zip(found, made, strict=True)]


def no_upcast(name: str, source: DataType, target: DataType, span: Span | None = None) -> UserError:
    """The error of a temporary view's column that has another type by now, of which values may be lost."""
    return UserError(
        "CANNOT_UP_CAST_DATATYPE",
        f'Cannot up cast {name} from "{source.sql}" to "{target.sql}". The type path of the target object is: you can '
        "either add an explicit cast to the input data or choose a higher precision type of the field in the target object.",
        span=span,
    )
