"""A history's table in a PostgreSQL database, which several gateways may share.

Nobody waits for a database for ever: what it does not answer in time is broken off, here as the server cannot be trusted to.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gateway.config.values import DatabaseUrl
from gateway.history.line import ANSWER_BYTES, Watch, close, connected, watched, within
from gateway.history.passwords import masked
from gateway.history.query import Condition, Dialect, Query
from gateway.history.records import Table
from gateway.history.silence import Silence
from gateway.history.store import LATER, ODD, OTHER_VALUES, LastingError, Later, PassingError, Row, too_slow, unreadable

if TYPE_CHECKING:
    from psycopg import Connection

EXTRA = "postgresql"  # what is installed with the gateway for it
VERSION = 1
_COMMENT = "Delta SQL Gateway, history, version "
_COMMENTS = re.compile(re.escape(_COMMENT) + r"(\d{1,6})", re.ASCII)
_CODE = re.compile(r"[0-9A-Z]{5}", re.ASCII)  # an SQLSTATE
_DIALECT = Dialect("%s", "position(lower({mark}) IN lower({column})) > 0", "left({column}, {most})")
_TYPES = {str: "TEXT", int: "BIGINT", bool: "BOOLEAN", float: "DOUBLE PRECISION"}
_CONNECT_SECONDS, _READ_CONNECT_SECONDS = 4, 2  # at each address that its name has
_WRITE_SECONDS, _READ_SECONDS = 20.0, 15.0
_LOCK_SECONDS = 2.0
_CHUNK = 2000  # rows that are removed at once: others write in between
_MOST_CHUNKS = 100  # in a row: what else waits to be written has its turn then
_LOOKS = 20  # the size is looked at whenever such a part of it was written
_ROW_BYTES = 300  # about, beside its texts
_MAKING = 0x44534748  # the lock of whoever makes a table
# Codes of what may pass beside those of connections, resources and operators: rights, what is missing, a standby.
_PASSING = ("08", "53", "55", "57", "58", "XX", "40", "42", "3D", "3F", "28", "25", "0A")
_NUL = "\u2400"
_NONSENSE = "its database answers what PostgreSQL would not"
SILENCE = Silence()  # of all databases


def problem_of(url: DatabaseUrl) -> str | None:
    """Why a database can never be used as it is named on this machine; whether it answers is another matter."""
    if importlib.util.find_spec("psycopg") is None:
        return f"PostgreSQL needs the package psycopg: pip install '.[{EXTRA}]'"
    import psycopg

    try:
        psycopg.conninfo.conninfo_to_dict(url.text)
    except psycopg.Error:  # its message would repeat the address
        return f"{url} has a parameter that the driver does not know, or is not as one is written"
    return None


class PostgresStore:
    """A table in a database; see `store.Store`. One that is of a newer version or not ours is left alone."""

    def __init__(self, url: DatabaseUrl, table: Table[Any]) -> None:
        self._url = url
        self._table = table
        self._name = f"gateway_{table.name}"
        self._connection: Connection[Row] | None = None
        self._unseen: int | None = None  # bytes that were written since the size was looked at; None: never

    @property
    def name(self) -> str:
        """The database, without secrets."""
        return str(self._url)

    def write(self, rows: Sequence[Row], later: Sequence[Later] = ()) -> None:
        """Add rows, those that are there already, after an answer that was lost, once; and what became known of others."""
        columns = (*self._table.columns, "weight")
        given = [tuple(map(_kept, row)) for row in rows]
        weights = [_ROW_BYTES + sum(len(v.encode()) for v in row if isinstance(v, str)) for row in given]
        names = ", ".join(f'"{name}"' for name in columns)
        text = (
            f"INSERT INTO {self._name} ({names}) VALUES ({', '.join(['%s'] * len(columns))}) "
            f'ON CONFLICT ("{self._table.key}") DO NOTHING'
        )
        with self._opened() as connection:
            if not (given or later):
                return
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(text, [(*row, weight) for row, weight in zip(given, weights, strict=True)])
                if later:
                    change = f'UPDATE {self._name} SET {LATER} = %s WHERE "{self._table.key}" = %s'
                    cursor.executemany(change, later)
        if self._unseen is not None:
            self._unseen += sum(weights)

    def prune_by_size(self, size: int, going: Callable[[], bool]) -> None:
        """Remove the oldest; what rows weigh is counted now and then only, as it takes a while."""
        if self._unseen is not None and self._unseen < size // _LOOKS:
            return
        goal = size - size // 10
        summed = f"SELECT coalesce(sum(weight), 0) FROM {self._name}"
        above = f"SELECT id, sum(weight) OVER (ORDER BY id DESC) AS above FROM {self._name}"
        with self._opened() as connection:
            with _sensible():
                (used,) = connection.execute(summed).fetchone() or (0,)
                is_over = used > size
            if is_over:
                last = connection.execute(f"SELECT max(id) FROM ({above}) AS each WHERE above > %s", (goal,)).fetchone()
                chosen = f"SELECT id FROM {self._name} WHERE id <= %s ORDER BY id LIMIT {_CHUNK}"
                self._remove(connection, chosen, last[0] if last is not None else None, going)
        self._unseen = 0

    def prune_by_age(self, oldest_ms: int, going: Callable[[], bool]) -> None:
        """Remove what began before `oldest_ms`."""
        with self._opened() as connection:
            chosen = f"SELECT id FROM {self._name} WHERE started_ms < %s LIMIT {_CHUNK}"
            self._remove(connection, chosen, oldest_ms, going)

    def _remove(self, connection: Connection[Row], chosen: str, value: int | None, going: Callable[[], bool]) -> None:
        removal = f"DELETE FROM {self._name} WHERE id IN ({chosen})"
        for _ in range(_MOST_CHUNKS):
            if value is None or not going():
                break
            with within(connection, _WRITE_SECONDS):
                if connection.execute(removal, (value,)).rowcount < _CHUNK:
                    break

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            close(connection)

    def read(self, query: Query) -> Generator[list[Row]]:
        """The rows of a query, none without a table. Raises ServerError HISTORY_UNREADABLE.

        Who has waited for nothing spares others of this process that for a while.
        """
        import psycopg

        query = replace(query, conditions=tuple(map(_asked, query.conditions)))
        text, values = query.text(_DIALECT, self._name), query.values()
        SILENCE.check(self._url.text)
        now = time.monotonic()
        step = _Step(now, now + (query.seconds or float("inf")))
        try:
            yield from self._read(text, values, query, step)
        except psycopg.Error as error:
            if query.seconds is not None and time.monotonic() >= step.end:
                raise too_slow(query.seconds) from None
            SILENCE.note(self._url.text, step.waited(), _public(error))
            raise unreadable(_public(error)) from None
        except (PassingError, OverflowError, UnicodeError) as error:
            raise unreadable(error) from None
        except ODD as error:
            raise unreadable(_NONSENSE) from error

    def _read(self, text: str, values: list[Any], query: Query, step: _Step) -> Generator[list[Row]]:
        connection = connected(self._url, step.seconds(), connect=_READ_CONNECT_SECONDS, lock=_LOCK_SECONDS)
        try:
            with watched(connection) as watch:
                with watch.within(step.seconds()):
                    if self._version(connection) is None:
                        return
                connection.read_only, connection.autocommit = True, False
                with watch.within(step.seconds()):
                    connection.execute(f"DECLARE history NO SCROLL CURSOR FOR {text}", values)
                yield from self._fetched(connection, query, step, watch)
        finally:
            close(connection)

    def _fetched(self, connection: Connection[Row], query: Query, step: _Step, watch: Watch) -> Iterator[list[Row]]:
        left = query.limit
        while left is None or left > 0:
            count = query.piece if left is None else min(query.piece, left)
            with watch.within(step.seconds(), ANSWER_BYTES + 2 * count * query.row_bytes):
                rows = connection.execute(f"FETCH {count} FROM history", prepare=False).fetchall()
            if len(rows) > count:
                raise PassingError(_NONSENSE)
            if rows:
                yield rows
            if len(rows) < count:
                return
            left = None if left is None else left - count

    @contextmanager
    def _opened(self) -> Iterator[Connection[Row]]:
        """A connection with the table in place; what fails in the block is told as passing or lasting."""
        import psycopg

        try:
            connection = self._connection
            if connection is None or connection.closed:
                connection = connected(self._url, _WRITE_SECONDS, connect=_CONNECT_SECONDS, lock=_LOCK_SECONDS)
                self._connection = connection
                with _sensible(), within(connection, _WRITE_SECONDS):
                    self._prepare(connection)
            with within(connection, _WRITE_SECONDS):
                yield connection
        except psycopg.Error as error:
            told = masked(str(error).strip().partition("\n")[0] or type(error).__name__, self._url)
            if error.sqlstate is None or error.sqlstate.startswith(_PASSING):
                raise PassingError(told) from None
            raise LastingError(told) from None

    def _prepare(self, connection: Connection[Row]) -> None:
        """The table made, if there is none, or its newer columns. Raises PassingError for one to be left alone."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise PassingError(f"the database is of the encoding {encoding}, not UTF8")
        if self._is_complete(connection):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            if not self._is_complete(connection):
                for definition in self._definitions():
                    connection.execute(definition)

    def _is_complete(self, connection: Connection[Row]) -> bool:
        """Whether the table is there with all columns, or more: older versions go on writing theirs."""
        if self._version(connection) is None:
            return False
        columns = (
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        )
        there = {name for (name,) in connection.execute(columns, (self._name,))}
        return there >= {"id", "weight", *self._table.columns}

    def _version(self, connection: Connection[Row]) -> int | None:
        """Of the table; None if there is none. Raises PassingError for one that cannot be gone on with."""
        found = connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL, obj_description(to_regclass(%s), 'pg_class')", (self._name, self._name)
        ).fetchone()
        if found is None or len(found) != 2 or not isinstance(found[1], str | None):
            raise PassingError(_NONSENSE)
        if not found[0]:
            return None
        match = _COMMENTS.fullmatch(found[1] or "")
        if match is None:
            raise PassingError(f"the table {self._name} is not one of ours")
        version = int(match[1])
        if version > VERSION:
            raise PassingError(f"the table {self._name} is of version {version}, and {VERSION} is what is known here")
        return version

    def _definitions(self) -> Iterator[str]:
        identity = "id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, weight INTEGER NOT NULL"
        yield f"CREATE TABLE IF NOT EXISTS {self._name} ({identity})"
        added = (f'ADD COLUMN IF NOT EXISTS "{name}" {_TYPES[kind]}' for name, kind in self._table.types.items())
        yield f"ALTER TABLE {self._name} {', '.join(added)}"
        yield f"CREATE INDEX IF NOT EXISTS {self._name}_by_start ON {self._name} (started_ms, id)"
        yield f'CREATE UNIQUE INDEX IF NOT EXISTS {self._name}_by_key ON {self._name} ("{self._table.key}")'
        yield f"COMMENT ON TABLE {self._name} IS '{_COMMENT}{VERSION}'"


@dataclass(slots=True)
class _Step:
    """What a read waits for now: since when, and when all of it has to be done (`time.monotonic`)."""

    since: float
    end: float

    def seconds(self) -> float:
        """For how long the step that begins now may take."""
        self.since = time.monotonic()
        return max(0.001, min(_READ_SECONDS, self.end - self.since))

    def waited(self) -> float:
        """How long the step has taken."""
        return time.monotonic() - self.since


@contextmanager
def _sensible() -> Iterator[None]:
    """Answers in the block that no PostgreSQL gives are told as PassingError."""
    try:
        yield
    except ODD as error:
        raise PassingError(_NONSENSE) from error


def _kept(value: Any) -> Any:
    """A value as the database takes it: it has no NUL in texts."""
    return value.replace("\0", _NUL) if isinstance(value, str) else value


def _asked(condition: Condition) -> Condition:
    """A condition on values as they are kept."""
    values = condition.value
    kept = tuple(map(_kept, values)) if condition.operator == "IN" else _kept(values)
    return replace(condition, value=kept)


def _public(error: Exception) -> str:
    """What whoever asks is told of a failure: neither names nor addresses, and nothing that the server has made up."""
    import psycopg

    code = getattr(error, "sqlstate", None)
    if code is None:
        return OTHER_VALUES if isinstance(error, psycopg.DataError) else "its database does not answer"
    return f"its database answers with SQLSTATE {code}" if _CODE.fullmatch(code) else _NONSENSE
