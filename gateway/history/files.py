"""A history's table in an SQLite file of its own, which every gateway on the machine may share."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from gateway.history import database
from gateway.history.query import Dialect, Query
from gateway.history.records import Table
from gateway.history.store import LATER, LastingError, Later, PassingError, Row, too_slow, unreadable
from gateway.observability import log

_DIALECT = Dialect("?", "instr(lower({column}), lower({mark})) > 0")
_BUSY_SECONDS = 2.0
_LOOKED_AFTER = 10_000  # steps of SQLite, about a millisecond
_ROW_BYTES = 4 << 20  # none of ours is as large
_CHUNK = 2000  # rows that are removed at once: others write in between
_MOST_ASIDE = 3  # files; who has set aside so many stops writing
_VACUUM = "PRAGMA incremental_vacuum"  # page by page, so by a script: `execute` takes one step


class FileStore:
    """A table in a file; see `store.Store`. What cannot be used is set aside, and a new file begun."""

    def __init__(self, path: Path, table: Table[Any]) -> None:
        self._path = path
        self._table = table
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._aside = 0

    @property
    def name(self) -> str:
        """The file."""
        return str(self._path)

    def write(self, rows: Sequence[Row], later: Sequence[Later] = ()) -> None:
        """Add rows, and what became known of rows that are there, all or nothing."""
        with self._opened() as connection:
            if not (rows or later):
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(self._table.insertion(), rows)
                if later:
                    change = f"UPDATE {self._table.name} SET {LATER} = ? WHERE {self._table.key} = ?"
                    connection.executemany(change, later)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def prune_by_size(self, size: int, going: Callable[[], bool]) -> None:
        """Remove the oldest; a tenth more than needed, so that it is not done for each record."""
        with self._opened() as connection:
            if database.used_bytes(connection) <= size:
                return
            goal = size - size // 10
            while going() and (used := database.used_bytes(connection)) > goal:
                first, last = connection.execute(f"SELECT min(id), max(id) FROM {self._table.name}").fetchone()
                if first is None:
                    break
                share = max(1, min(_CHUNK, (last - first + 1) * (used - goal) // used))
                connection.execute(f"DELETE FROM {self._table.name} WHERE id < ?", (first + share,))
            connection.executescript(_VACUUM)

    def prune_by_age(self, oldest_ms: int, going: Callable[[], bool]) -> None:
        """Remove what began before `oldest_ms`."""
        chosen = f"SELECT id FROM {self._table.name} WHERE started_ms < ? LIMIT {_CHUNK}"
        removal = f"DELETE FROM {self._table.name} WHERE id IN ({chosen})"
        with self._opened() as connection:
            while going() and connection.execute(removal, (oldest_ms,)).rowcount == _CHUNK:
                continue
            connection.executescript(_VACUUM)

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error as error:
                log("history cannot be closed", "warning", reason=str(error))

    def read(self, query: Query) -> Generator[list[Row]]:
        """The rows of a query, none without a file. Raises ServerError HISTORY_UNREADABLE."""
        if not self._path.exists():
            return
        try:
            where = f"{self._path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(where, uri=True, timeout=_BUSY_SECONDS)) as connection:
                if connection.execute("PRAGMA schema_version").fetchone() == (0,):
                    return  # it is being made
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _ROW_BYTES)
                if query.seconds is not None:
                    end = time.monotonic() + query.seconds
                    connection.set_progress_handler(lambda: time.monotonic() > end, _LOOKED_AFTER)
                found = connection.execute(query.text(_DIALECT, query.table.name), query.values())
                while rows := found.fetchmany(query.piece):
                    yield rows
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT and query.seconds is not None:
                raise too_slow(query.seconds) from error
            raise unreadable(error) from error

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection to the file that is there now; what fails in the block is told as passing or lasting."""
        try:
            yield self._open()
        except database.UnusableError as error:
            raise self._set_aside(error.kind) from error
        except sqlite3.OperationalError as error:
            raise PassingError(str(error)) from error
        except sqlite3.DatabaseError as error:
            if database.is_damage(error):
                raise self._set_aside("corrupt") from error
            raise LastingError(f"{type(error).__name__}: {error}") from error
        except OSError as error:
            raise PassingError(error.strerror or type(error).__name__) from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and database.identity(self._path) != self._identity:
            self.close()  # somebody has removed it or put another one there
        if self._connection is None:
            if self._aside >= _MOST_ASIDE:
                raise PassingError(f"{self._aside} files were set aside already")
            self._identity = database.identity(self._path)
            self._connection = database.open_database(self._path, self._table)
            self._identity = database.identity(self._path)
        return self._connection

    def _set_aside(self, kind: str) -> PassingError:
        """Give the file another name; what is to be raised: it is tried again, with a new file."""
        opened = self._identity
        self.close()
        try:
            if database.identity(self._path) == opened:  # else somebody else has done it already
                database.set_aside(self._path, kind)
                self._aside += 1
        except OSError as error:
            return PassingError(error.strerror or type(error).__name__)
        return PassingError(None)
