"""Spark's in-memory catalog as a mirror of folders of Delta tables: registered when a statement names them."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

from gateway.errors import unsupported


@dataclass(frozen=True, slots=True)
class MirroredTable:
    """A table for Spark: `database` and `name` as it will see them, `folder` on disk (None: it does not exist)."""

    database: str
    name: str
    folder: str | None


class Mirror:
    """Databases and tables that Spark knows; all of them external, so that Spark never removes files with a name."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._databases: set[str] = {"default"}
        self._tables: dict[tuple[str, str], tuple[str, object]] = {}

    def database(self, name: str) -> None:
        """Make sure that Spark has the database. Raises UnsupportedError for a name that Spark cannot take."""
        with self._lock:
            self._database(name)

    def tables(self, tables: list[MirroredTable]) -> None:
        """Make sure that Spark sees these tables as they are on disk now."""
        with self._lock:
            for table in tables:
                self._table(table)

    def _database(self, name: str) -> None:
        if name in self._databases:
            return
        if not name.isascii() or not all(c.isalnum() or c == "_" for c in name):
            raise unsupported(f"Spark on the schema `{name}` (letters, digits and _ are fine)")
        self._session.sql(f"CREATE DATABASE IF NOT EXISTS spark_catalog.`{name}`")
        self._databases.add(name)

    def _table(self, table: MirroredTable) -> None:
        key = (table.database, table.name.lower())
        known = self._tables.get(key)
        state = (table.folder, _identity(table.folder)) if table.folder is not None else None
        if known == state:
            return
        name = f"spark_catalog.`{key[0]}`.`{key[1].replace('`', '``')}`"
        if known is not None:
            self._session.sql(f"DROP TABLE IF EXISTS {name}")
            self._forget_log(known[0])
            del self._tables[key]
        if state is not None and table.folder is not None:
            self._database(table.database)
            location = f"file:{table.folder}".replace("\\", "\\\\").replace("'", "\\'")
            self._session.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{location}'")
            self._tables[key] = (table.folder, state[1])

    def _forget_log(self, folder: str) -> None:
        """Drop what Delta has cached of a log that was removed, or made anew."""
        jvm = getattr(self._session, "_jvm", None)
        if jvm is not None:  # a Connect server's cache expires by itself
            path = jvm.org.apache.hadoop.fs.Path(f"file:{folder}")
            jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(self._session._jsparkSession, path)  # noqa: SLF001


def _identity(folder: str) -> object:
    """Changes when the table of a folder is another one."""
    try:
        log = os.stat(os.path.join(folder, "_delta_log"))
    except OSError:
        return None
    return log.st_dev, log.st_ino
