"""A history read: by column and condition, each caller what they may see, some rows at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gateway.history.places import Place, beside, store_of
from gateway.history.query import MOST_VALUES, ROWS, Condition, Query
from gateway.history.records import STATEMENTS, Table
from gateway.history.store import Row, unreadable

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
        yield from store_of(self.place, self.table).read(query)


@contextmanager
def values_checked() -> Iterator[None]:
    """What values of other types than a record's raise in the block, as HISTORY_UNREADABLE: whoever has put them there."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, AttributeError, AssertionError) as error:
        raise unreadable(error) from error
