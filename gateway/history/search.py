"""A history read: by column and condition, each caller what they may see, some rows at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from types import NoneType
from typing import Any

from gateway.history.places import Place, beside, store_of
from gateway.history.query import MOST_VALUES, ROWS, Condition, Query
from gateway.history.records import STATEMENTS, Table
from gateway.history.store import ODD, OTHER_VALUES, Row, unreadable

__all__ = ["MOST_VALUES", "Condition", "History", "unreadable", "values_checked"]

_PIECE_CHARACTERS = 4 << 20


@dataclass(frozen=True, slots=True)
class History:
    """A history, and who sees what of it; plain values that can be sent to a worker.

    With `open_to_all` everybody sees all, else `admins` do, and others what they did themselves.
    """

    place: Place
    open_to_all: bool = False
    admins: frozenset[str] = frozenset()
    table: Table[Any] = STATEMENTS

    def sees_all(self, user: str) -> bool:
        """Whether a user sees what others did."""
        return self.open_to_all or user in self.admins

    def of(self, table: Table[Any]) -> History:
        """What lies beside it: records of another kind."""
        return self if table is self.table else replace(self, place=beside(self.place, table), table=table)

    def rows(
        self,
        user: str,
        columns: Sequence[str],
        conditions: Sequence[Condition] = (),
        *,
        before: tuple[int, int] | None = None,
        limit: int | None = None,
        at_once: int = ROWS,
        seconds: float | None = None,
    ) -> Generator[list[Row]]:
        """Rows that `user` may see, in pieces of `at_once`.

        With a `limit` the newest first, those from `before` (`started_ms`, `id`) on.

        Without a store there are none. Raises ServerError HISTORY_UNREADABLE, also where it takes longer than `seconds`.
        """
        if not self.sees_all(user):
            conditions = (*conditions, Condition("user", "=", user))
        query = Query(self.table, columns, conditions, before, limit, at_once, seconds)
        yield from _gathered(_checked(store_of(self.place, self.table).read(query), query), query)


# What values of a column of each type may be, beside None: SQLite has no truth values.
_KINDS: Mapping[type, frozenset[type]] = {
    str: frozenset({str, NoneType}),
    int: frozenset({int, NoneType}),
    bool: frozenset({bool, int, NoneType}),
    float: frozenset({float, int, NoneType}),
}


def _checked(found: Generator[list[Row]], query: Query) -> Generator[list[Row]]:
    """Rows whose values are of a record's types: others may have put them there, or a database may give what it likes."""
    types = {**query.table.types, "id": int}
    kinds = [types[name] for name in query.columns]
    with closing(found):
        for rows in found:
            if set(map(len, rows)) != {len(kinds)} or not all(map(_fits, zip(*rows, strict=True), kinds)):
                raise unreadable(OTHER_VALUES)
            yield rows


def _fits(values: Sequence[Any], kind: type) -> bool:
    return _KINDS[kind].issuperset(map(type, values)) and (
        kind is not float or all(map(isfinite, filter(None, values)))
    )


def _gathered(found: Generator[list[Row]], query: Query) -> Generator[list[Row]]:
    """Pieces put together to those that were asked for, as far as they are not large."""
    texts = [at for at, name in enumerate(query.columns) if name in query.table.longest]
    gathered: list[Row] = []
    characters = 0
    with closing(found):
        for rows in found:
            characters += sum(len(row[at] or "") for at in texts for row in rows)
            gathered += rows
            if len(gathered) + query.piece > query.at_once or characters > _PIECE_CHARACTERS:
                yield gathered
                gathered, characters = [], 0
    if gathered:
        yield gathered


@contextmanager
def values_checked() -> Iterator[None]:
    """What values of other types than a record's raise in the block, as HISTORY_UNREADABLE: whoever has put them there."""
    try:
        yield
    except ODD as error:
        raise unreadable(OTHER_VALUES) from error
