"""The SQLite file of a history: opened for writing, and set aside under another name if it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.history.records import Table
from gateway.observability import log

VERSION = 1
_APPLICATION = 0x44534748  # tells our files from others'
_BUSY_SECONDS = 1.0
_WAL_BYTES = 4 << 20
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class UnusableError(Exception):
    """The file is not one that this version can go on with: `kind` says why in a word, as a part of a name."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def code_of(error: sqlite3.Error) -> int:
    """The primary result code of SQLite, 0 for an error of the Python module."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that the file is no database, or no longer."""
    return code_of(error) in _DAMAGED


def open_database(path: Path, table: Table[Any]) -> sqlite3.Connection:
    """A connection that writes; the file is made if there is none, for nobody else to read.

    Raises UnusableError for a file to be set aside, sqlite3.Error and OSError for what may pass.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        _prepare(connection, table)
    except sqlite3.Error as error:
        connection.close()
        if is_damage(error):
            raise UnusableError("corrupt") from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, table: Table[Any]) -> None:
    version = _number(connection, "user_version")
    if version == 0 and _number(connection, "schema_version") == 0:
        _make(connection, table)
    elif _number(connection, "application_id") != _APPLICATION:
        raise UnusableError("foreign")
    elif version > VERSION:
        raise UnusableError(f"version{version}")
    else:
        _complete(connection, table)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")


def _make(connection: sqlite3.Connection, table: Table[Any]) -> None:
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # works before there is a table
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    for definition in table.definitions():
        connection.execute(definition)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _complete(connection: sqlite3.Connection, table: Table[Any]) -> None:
    """Add the columns that a file of an older version does not have; older versions go on writing theirs."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
    for name, definition in table.spelled.items():
        if name not in there:
            connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {definition}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages = _number(connection, "page_count") - _number(connection, "freelist_count")
    return pages * _number(connection, "page_size")


def identity(path: Path) -> tuple[int, int] | None:
    """Which file is there; None if none is."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino)


def set_aside(path: Path, kind: str) -> Path:
    """Give a file that cannot be used, with what belongs to it, another name. Raises OSError."""
    stem = f"{path.name}.{kind}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    aside, count = path.with_name(stem), 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{stem}-{count}")
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    path.rename(aside)
    log("history set aside", "warning", reason=kind, file=str(aside))
    return aside
