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
        yield from _checked(store_of(self.place, self.table).read(query), query)


# What values of a column of each type may be, beside None: SQLite has no truth values.
_KINDS: Mapping[type, tuple[type, ...]] = {
    str: (str, NoneType),
    int: (int, NoneType),
    bool: (bool, int, NoneType),
    float: (float, int, NoneType),
}


def _checked(found: Generator[list[Row]], query: Query) -> Generator[list[Row]]:
    """Rows whose values are of a record's types: others may have put them there, or a database may give what it likes."""
    types = {**query.table.types, "id": int}
    kinds = [_KINDS[types[name]] for name in query.columns]
    floats = [at for at, name in enumerate(query.columns) if types[name] is float]

    def fits(row: Row) -> bool:
        return (
            len(row) == len(kinds)
            and all(map(isinstance, row, kinds))
            and all(row[at] is None or isfinite(row[at]) for at in floats)
        )

    with closing(found):
        for rows in found:
            if not all(map(fits, rows)):
                raise unreadable(OTHER_VALUES)
            yield rows


@contextmanager
def values_checked() -> Iterator[None]:
    """What values of other types than a record's raise in the block, as HISTORY_UNREADABLE: whoever has put them there."""
    try:
        yield
    except ODD as error:
        raise unreadable(OTHER_VALUES) from error
