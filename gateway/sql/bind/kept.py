"""Expressions that a table keeps for its columns: DEFAULT and GENERATED ALWAYS AS, judged as Spark and Delta judge them."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.resolve import Binder
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.functions.casts import fold_cast
from gateway.sql.functions.context import SURROUNDINGS
from gateway.sql.functions.fold import fold
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context, is_generator
from gateway.sql.typed.coerce import can_upcast
from gateway.sql.typed.common_types import nullable_inside, plain
from gateway.sql.typed.walk import contains, nodes
from gateway.sqltypes import (
    BOOLEAN,
    VOID,
    CharType,
    DataType,
    StructField,
    StructType,
    has_variant,
    is_fractional,
    is_nested,
    is_numeric,
)


def check_default(
    tree: exp.Expr, text: str, column: StructField, command: str, binder: Binder, context: Context, span: Span | None
) -> None:
    """Raise UserError INVALID_DEFAULT_VALUE for what no column has as its DEFAULT, UnsupportedError where that is not known."""

    if has_variant(column.type):
        raise unsupported(f"a DEFAULT of the column {column.name} {column.type.sql}", span)

    def wrong(kind: str, why: str) -> UserError:
        told = f"Failed to execute {command} command because the destination column or variable `{column.name}` has a DEFAULT "
        return UserError(f"INVALID_DEFAULT_VALUE.{kind}", f"{told}value {text}, which {why}.", span=span)

    try:
        found, random, subquery = _bound(tree, Scope(), binder)
    except UserError as error:
        if not error.condition.startswith("UNRESOLVED_COLUMN"):
            raise
        raise wrong(
            "NOT_CONSTANT", "is not a constant expression whose equivalent value is known at planning"
        ) from None
    if subquery:
        raise wrong("SUBQUERY_EXPRESSION", "contains subquery expressions")
    if random:
        raise wrong("NON_DETERMINISTIC", "contains a non-deterministic expression")
    _check_scalar(found, binder, f"the DEFAULT {text}", span)
    target = plain(column.type)
    if found.type in (VOID, target) or can_upcast(found.type, nullable_inside(target)):
        _check_length(found, column.type, context, span)
        return
    constant = fold(found, context)
    judged = constant is not None and not {found.type, target} & {BOOLEAN}
    if constant is None or not judged or is_nested(found.type) or is_nested(target):
        raise wrong("DATA_TYPE", f'requires "{target.sql}" type, but its type is the incompatible "{found.type.sql}"')
    numbers = is_numeric(found.type) and is_fractional(target)  # which take every number
    if not numbers and fold_cast(constant, target, context) is None:
        raise unsupported(f"the DEFAULT {text} of type {found.type.sql} for {column.name}", span)


def _check_length(found: b.Expr, declared: DataType, context: Context, span: Span | None) -> None:
    constant = fold(found, context) if isinstance(declared, CharType) else None
    if constant is not None and isinstance(declared, CharType) and len(str(constant.value or "")) > declared.length:
        raise UserError(
            "EXCEED_LIMIT_LENGTH", f"Exceeds char/varchar type length limitation: {declared.length}.", span=span
        )


def check_generated(
    tree: exp.Expr,
    text: str,
    column: StructField,
    schema: StructType,
    generated: Collection[str],
    binder: Binder,
    span: Span | None,
) -> None:
    """Raise UserError for what no column of a table with `schema` is generated from; `generated` are the columns that are."""

    def wrong(why: str) -> UserError:
        told = f"Cannot create generated column {column.name} with generation expression {text} because {why}."
        return UserError("UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", told, span=span)

    named = {reference.parts[0].name.lower() for reference in tree.find_all(exp.Column)}
    if column.name.lower() in named:
        raise wrong("generation expression cannot reference itself")
    if named & {name.lower() for name in generated}:
        raise wrong("generation expression cannot reference another generated column")
    others = [f for f in schema.fields if f.name != column.name]
    columns = tuple(b.Col(f.type, f.nullable, binder.ids.take(), f.name) for f in others)
    found, random, subquery = _bound(tree, Scope([Source((), columns)]), binder)
    if subquery:
        raise wrong("subquery expressions are not allowed for generated columns")
    if random:
        raise wrong("generation expression is not deterministic")
    _check_scalar(found, binder, f"a column generated from {text}", span)
    target = column.type
    if found.type != target and (isinstance(target, CharType) or not can_upcast(found.type, nullable_inside(target))):
        shown = f"data type {found.type.simple} is incompatible with column data type {target.simple}"
        raise wrong(f"generation expression {shown}")
    for node in nodes(found):
        if isinstance(node, b.Call) and not node.args and node.fn in SURROUNDINGS:
            told = f"{node.fn}() cannot be used in a generated column."
            raise UserError("DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", told, span=span)
    if nullable_inside(found.type) != nullable_inside(target):
        told = (
            f"The expression of the generated column {column.name} is {found.type.sql}, but the column is {target.sql}."
        )
        raise UserError("DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", told, span=span)


def _bound(tree: exp.Expr, scope: Scope, binder: Binder) -> tuple[b.Expr, bool, bool]:
    """An expression, whether it is not deterministic, and whether there is a subquery in it."""
    binder.expressions.random = binder.ids.subqueries = False
    found = binder.expressions.bind(tree, scope)
    return found, binder.expressions.random, binder.ids.subqueries


def _check_scalar(found: b.Expr, binder: Binder, what: str, span: Span | None) -> None:
    if contains(found, b.Agg) or contains(found, b.Window) or is_generator(found, binder.catalogue):
        raise unsupported(what, span)
