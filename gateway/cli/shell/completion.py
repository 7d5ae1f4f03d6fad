"""What can stand where one types: words of the grammar, functions, and the names of the catalog."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator

from gateway.cli.shell.shortcuts import SHORTCUTS
from gateway.protocol.client import Client, RemoteError

_WORDS = (
    "ALL ALTER ANALYZE AND ANTI AS ASC BETWEEN BY CASE CAST CATALOGS COLUMNS COMMENT CREATE CROSS CUBE DELETE DESC DESCRIBE "
    "DETAIL DISTINCT DROP ELSE END ESCAPE EXCEPT EXISTS EXPLAIN EXTENDED FALSE FILTER FIRST FROM FULL FUNCTIONS GROUP GROUPING "
    "HAVING HISTORY IF ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAST LATERAL LEFT LIKE LIMIT MERGE NATURAL NOT "
    "NULL NULLS OFFSET ON OPTIMIZE OR ORDER OUTER OVER OVERWRITE PARTITION PARTITIONED QUALIFY RANGE REPLACE RESTORE RIGHT "
    "RLIKE ROLLUP ROWS SCHEMA SCHEMAS SELECT SEMI SET SETS SHOW TABLE TABLES TBLPROPERTIES TEMPORARY THEN TO TRUE TRUNCATE "
    "UNION UPDATE USE USING VACUUM VALUES VERSION VIEW VIEWS WHEN WHERE WINDOW WITH WITHIN"
)
KEYWORDS = tuple(_WORDS.split())
_BEFORE_TABLES = frozenset(
    "FROM JOIN INTO TABLE UPDATE DESCRIBE OPTIMIZE VACUUM HISTORY VIEW IN USE DETAIL EXTENDED".split(" ")  # noqa: SIM905
)
_WORD = re.compile(r"[\w.`\\?]+$")
_TABLES = "SELECT table_catalog, table_schema, table_name FROM system.information_schema.tables"
_COLUMNS = "SELECT table_name, column_name FROM system.information_schema.columns"
_PLAIN = re.compile(r"[A-Za-z_]\w*")


def quoted(name: str) -> str:
    """A name as it may stand in SQL."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class Names:
    """What the gateway knows, read in the background over a session of its own; until then there are only words.

    Args:
        connected: opens a session.
    """

    def __init__(self, connected: Callable[[], Client]) -> None:
        self.tables: frozenset[str] = frozenset()
        self.columns: dict[str, tuple[str, ...]] = {}
        self.functions: tuple[str, ...] = ()
        self._connected = connected
        self._stale = threading.Event()
        self._ended = False

    def start(self) -> None:
        """Read now, and again after each `changed`."""
        self._stale.set()
        threading.Thread(target=self._follow, name="names", daemon=True).start()

    def changed(self) -> None:
        """What was read is out of date."""
        self._stale.set()

    def close(self) -> None:
        """Read no more."""
        self._ended = True
        self._stale.set()

    def read(self) -> None:
        """Ask the gateway. Raises RemoteError, OSError."""
        with self._connected() as client:
            rows = [tuple(row.values()) for row in client.execute(_TABLES).table().to_pylist()]
            self.tables = frozenset(".".join(map(quoted, row)) for row in rows)
            self.functions = tuple(
                next(iter(row.values())) for row in client.execute("SHOW FUNCTIONS").table().to_pylist()
            )
            columns: dict[str, list[str]] = {}
            for row in client.execute(_COLUMNS).table().to_pylist():
                table, column = row.values()
                columns.setdefault(table.lower(), []).append(column)
            self.columns = {table: tuple(names) for table, names in columns.items()}

    def _follow(self) -> None:
        while True:
            self._stale.wait()
            self._stale.clear()
            if self._ended:
                return
            try:
                self.read()
            except (RemoteError, OSError):
                continue  # what is not known is not offered; statements tell of a gateway that is gone

    def offered(self, before: str, place: str) -> Iterator[tuple[str, int]]:
        """What may stand at the end of `before`, and how many characters of it that replaces (none: less than nothing)."""
        found = _WORD.search(before)
        word = found.group() if found else ""
        head = before[: len(before) - len(word)]
        if word.startswith("\\") and not head.strip():
            yield from ((name, -len(word)) for name in SHORTCUTS if name.startswith(word))
            return
        last = head.upper().split()[-1:] or [""]
        tables = last[0] in _BEFORE_TABLES or (head.lstrip().startswith("\\") and bool(head.strip()))
        seen: set[str] = set()
        for name in self._fitting(word, before, place, tables):
            if name not in seen:
                seen.add(name)
                yield name, -len(word)

    def _fitting(self, word: str, text: str, place: str, tables: bool) -> Iterator[str]:
        start = word.lower()
        if tables or "." in word:
            yield from sorted(n for n in self._relations(place, start) if n.lower().startswith(start))
        if tables or not word:
            return
        mentioned = {part.lower() for part in re.findall(r"\w+", text)}
        column = start.rpartition(".")[2]
        before = word[: len(word) - len(column)]
        for table in sorted(mentioned & self.columns.keys()):
            yield from (before + quoted(c) for c in self.columns[table] if c.lower().startswith(column))
        if not before:
            yield from (name for name in self.functions if name.lower().startswith(start))
            yield from (word for word in KEYWORDS if word.lower().startswith(start))

    def _relations(self, place: str, start: str) -> set[str]:
        """Names of tables as they may be written here, up to the next dot: catalogs, schemas, tables."""
        dots = start.count(".")
        catalog = place.partition(".")[0] + "."
        short = {name.removeprefix(place + ".") for name in self.tables if name.startswith(place + ".")}
        ways = self.tables | short | {name.removeprefix(catalog) for name in self.tables if name.startswith(catalog)}
        return {".".join(name.split(".")[: dots + 1]) for name in ways}
