"""A file of the history read: by column and condition, each caller what they may see, some rows at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.errors import ServerError
from gateway.history.records import STATEMENTS, Table

_OPERATORS = frozenset({"=", "<", "<=", ">", ">=", "IN", "CONTAINS"})
_BUSY_SECONDS = 2.0
_LOOKED_AFTER = 10_000  # steps of SQLite, about a millisecond
_ROWS = 1000
MOST_VALUES = 1000  # of an IN


@dataclass(frozen=True, slots=True)
class Condition:
    """``column operator value``; for IN the value is a sequence of at most `MOST_VALUES`; CONTAINS minds no case."""

    column: str
    operator: str
    value: Any

    def text(self) -> str:
        """It, with a question mark for each value."""
        if self.operator not in _OPERATORS or not self.column.isidentifier():
            raise ValueError(f"{self.column} {self.operator}")
        if self.operator == "CONTAINS":
            return f'instr(lower("{self.column}"), lower(?)) > 0'
        marks = f"({', '.join('?' * len(self.value))})" if self.operator == "IN" else "?"
        return f'"{self.column}" {self.operator} {marks}'

    def values(self) -> tuple[Any, ...]:
        """What stands for its question marks."""
        return tuple(self.value) if self.operator == "IN" else (self.value,)


@dataclass(frozen=True, slots=True)
class History:
    """A history's file, and who sees what of it; plain values that can be sent to a worker.

    With `open_to_all` everybody sees all, else `admins` do, and others what they did themselves.
    """

    path: str
    open_to_all: bool = False
    admins: frozenset[str] = frozenset()
    table: Table[Any] = STATEMENTS

    def sees_all(self, user: str) -> bool:
        """Whether a user sees what others did."""
        return self.open_to_all or user in self.admins

    def of(self, table: Table[Any]) -> History:
        """What lies beside it: records of another kind."""
        return (
            self if table is self.table else replace(self, path=str(Path(self.path).with_name(table.file)), table=table)
        )

    def rows(
        self,
        user: str,
        columns: Sequence[str],
        conditions: Sequence[Condition] = (),
        *,
        before: tuple[int, int] | None = None,
        limit: int | None = None,
        at_once: int = _ROWS,
        seconds: float | None = None,
    ) -> Generator[list[tuple[Any, ...]]]:
        """Rows that `user` may see, in pieces of `at_once`.

        With a `limit` the newest first, those from `before` (`started_ms`, `id`) on.

        Without a file there are none. Raises ServerError HISTORY_UNREADABLE, also where it takes longer than `seconds`.
        """
        if not self.sees_all(user):
            conditions = (*conditions, Condition("user", "=", user))
        texts = [condition.text() for condition in conditions]
        values = [value for condition in conditions for value in condition.values()]
        if before is not None:
            texts.append("(started_ms, id) < (?, ?)")
            values += before
        if not {*columns, *(condition.column for condition in conditions)} <= {*self.table.columns, "id"}:
            raise ValueError(f"columns {columns}")
        names = ", ".join(f'"{name}"' for name in columns)
        where = f" WHERE {' AND '.join(texts)}" if texts else ""
        order = f" ORDER BY started_ms DESC, id DESC LIMIT {limit:d}" if limit is not None else ""
        yield from self._read(f"SELECT {names} FROM {self.table.name}{where}{order}", values, at_once, seconds)

    def _read(
        self, text: str, values: Sequence[Any], at_once: int, seconds: float | None
    ) -> Generator[list[tuple[Any, ...]]]:
        path = Path(self.path)
        if not path.exists():
            return
        try:
            where = f"{path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(where, uri=True, timeout=_BUSY_SECONDS)) as connection:
                if connection.execute("PRAGMA schema_version").fetchone() == (0,):
                    return  # it is being made
                if seconds is not None:
                    end = time.monotonic() + seconds
                    connection.set_progress_handler(lambda: time.monotonic() > end, _LOOKED_AFTER)
                found = connection.execute(text, values)
                while rows := found.fetchmany(at_once):
                    yield rows
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                late = TimeoutError(f"it takes longer than {seconds:g} seconds; ask for less of it")
                raise unreadable(late) from error
            raise unreadable(error) from error


def unreadable(error: Exception) -> ServerError:
    """HISTORY_UNREADABLE."""
    return ServerError("HISTORY_UNREADABLE", f"The history cannot be read: {error}.", retryable=True)


@contextmanager
def values_checked() -> Iterator[None]:
    """What values of other types than a record's raise in the block, as HISTORY_UNREADABLE: whoever has put them there."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, AttributeError, AssertionError) as error:
        raise unreadable(error) from error
