"""DEFAULT as a value of INSERT: what the column that takes it has for such rows, in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlglot import exp

from gateway.sql.bind.logged import kept_tree
from gateway.sql.read.commands import parse_expression
from gateway.sql.typed.common_types import plain
from gateway.sqltypes import DataType

_WORD = "default"
Row = list[exp.Expr]


@dataclass(frozen=True, slots=True)
class Default:
    """What a column of a type has where nothing is said of it; None for NULL."""

    type: DataType
    text: str | None

    def tree(self) -> exp.Expr:
        """The expression, of the column's type. Raises as `logged.kept_tree` does."""
        cast = parse_expression(f"CAST(NULL AS {plain(self.type).sql})")
        if self.text is not None:
            cast.this.replace(kept_tree(self.text))
        return cast


def with_defaults(query: exp.Expr, columns: Sequence[Default | None]) -> exp.Expr:
    """A query whose rows are written out, each DEFAULT of theirs as the column in its place has it."""
    return _filled(query, columns, _rows)


def with_read_defaults(query: exp.Expr, columns: Sequence[Default | None]) -> exp.Expr:
    """The same of one that reads rows: for where no column of these is called so."""
    return _filled(query, columns, _items)


def _filled(query: exp.Expr, columns: Sequence[Default | None], rows: Callable[[exp.Expr], list[Row]]) -> exp.Expr:
    if not any(map(_is_default, chain.from_iterable(rows(query)))):
        return query
    made = query.copy()
    for row in rows(made):
        for value, column in zip(row, columns, strict=False):
            if column is not None and _is_default(value):
                value.replace(column.tree())
    return made


def _rows(query: exp.Expr) -> list[Row]:
    """The rows of VALUES, or that of a SELECT without FROM; none of other queries."""
    if isinstance(query, exp.Values):
        return [list(row.expressions) for row in query.expressions if isinstance(row, exp.Tuple)]
    is_row = isinstance(query, exp.Select) and query.find(exp.From) is None
    named = is_row and any(item.alias.lower() == _WORD for item in query.expressions)
    return [list(query.expressions)] if is_row and not named else []


def _items(query: exp.Expr) -> list[Row]:
    """What a SELECT gives for each row that it reads; nothing where rows are put together, or stand behind WITH."""
    if not isinstance(query, exp.Select) or any(
        query.args.get(word) for word in ("with_", "distinct", "group", "having")
    ):
        return []
    return [list(query.expressions)]


def _is_default(value: exp.Expr) -> bool:
    """Whether an expression is the word itself."""
    names = value.parts if isinstance(value, exp.Column) else []
    return len(names) == 1 and names[0].name.lower() == _WORD and not names[0].args.get("quoted")
