"""What is asked of a history's store: columns, conditions and an order, as text with a mark for each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gateway.history.records import Table

_OPERATORS = frozenset({"=", "<", "<=", ">", ">=", "IN", "CONTAINS"})
ROWS = 1000
MOST_VALUES = 1000  # of an IN
_PIECE_BYTES = 64 << 20  # of rows that are taken at once
_CHARACTER_BYTES = 4  # at most, in UTF-8 and in memory
_VALUE_BYTES = 40  # of a value beside its characters


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a store spells what the stores spell differently.

    The mark of a value, that a text holds another in any case, and the first `most` characters of a text.
    """

    mark: str
    contains: str
    first: str = "{column}"


@dataclass(frozen=True, slots=True)
class Condition:
    """``column operator value``; for IN the value is a sequence of at most `MOST_VALUES`; CONTAINS minds no case."""

    column: str
    operator: str
    value: Any

    def text(self, dialect: Dialect) -> str:
        """It, with a mark for each value."""
        if self.operator not in _OPERATORS or not self.column.isidentifier():
            raise ValueError(f"{self.column} {self.operator}")
        if self.operator == "CONTAINS":
            return dialect.contains.format(column=f'"{self.column}"', mark=dialect.mark)
        marks = f"({', '.join([dialect.mark] * len(self.value))})" if self.operator == "IN" else dialect.mark
        return f'"{self.column}" {self.operator} {marks}'

    def values(self) -> tuple[Any, ...]:
        """What stands for its marks."""
        return tuple(self.value) if self.operator == "IN" else (self.value,)


@dataclass(frozen=True)
class Query:
    """Rows that are asked for, in pieces of `at_once`, or of fewer where they may be large.

    With a `limit` the newest first, those from `before` (`started_ms`, `id`) on.
    """

    table: Table[Any]
    columns: Sequence[str]
    conditions: Sequence[Condition] = field(default=())
    before: tuple[int, int] | None = None
    limit: int | None = None
    at_once: int = ROWS
    seconds: float | None = None  # the longest that it may take

    def __post_init__(self) -> None:
        if not {*self.columns, *(c.column for c in self.conditions)} <= {*self.table.columns, "id"}:
            raise ValueError(f"columns {self.columns}")

    @cached_property
    def row_bytes(self) -> int:
        """What a row of it has at most."""
        longest = self.table.longest
        return sum(_VALUE_BYTES + _CHARACTER_BYTES * longest.get(name, 0) for name in self.columns)

    @cached_property
    def piece(self) -> int:
        """How many rows are taken at once."""
        return max(1, min(self.at_once, _PIECE_BYTES // max(1, self.row_bytes)))

    def text(self, dialect: Dialect, table: str) -> str:
        """It as SQL, with a mark for each of `values`."""
        texts = [condition.text(dialect) for condition in self.conditions]
        if self.before is not None:
            texts.append(f"(started_ms, id) < ({dialect.mark}, {dialect.mark})")
        longest = self.table.longest
        names = ", ".join(
            dialect.first.format(column=f'"{name}"', most=longest[name]) if name in longest else f'"{name}"'
            for name in self.columns
        )
        where = f" WHERE {' AND '.join(texts)}" if texts else ""
        order = f" ORDER BY started_ms DESC, id DESC LIMIT {self.limit:d}" if self.limit is not None else ""
        return f"SELECT {names} FROM {table}{where}{order}"

    def values(self) -> list[Any]:
        """What stands for its marks."""
        return [value for condition in self.conditions for value in condition.values()] + list(self.before or ())
