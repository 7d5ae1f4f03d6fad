"""What can stand where one types: words of the grammar, functions, and the names of the catalog."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence

from gateway.cli.shell.shortcuts import SHORTCUTS
from gateway.observability import printable
from gateway.protocol.client import Client, RemoteError
from gateway.sqltypes import quote_if_needed, quoted_text

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
_FUNCTION = re.compile(r"[\w.]+")  # what is inserted as it is
Table = tuple[str, str, str]
_TABLES = "SELECT table_catalog, table_schema, table_name FROM system.information_schema.tables"
_COLUMNS = "SELECT column_name FROM system.information_schema.columns"
_PATIENCE = 0.5  # seconds that Tab waits for columns that were not asked for yet
_LONGEST = 1000  # characters of what is offered; what a terminal would obey is not offered at all
_MOST_ASKED = 8  # tables whose columns are asked for at once


class Names:
    """What the gateway knows, read in the background over sessions of its own; until then there are only words.

    Tables are known by catalog, schema and name; their columns are asked for once somebody is about to type one.

    Args:
        connected: opens a session.
    """

    def __init__(self, connected: Callable[[], Client]) -> None:
        self.tables: frozenset[Table] = frozenset()
        self.columns: dict[Table, tuple[str, ...]] = {}
        self.functions: tuple[str, ...] = ()
        self._connected = connected
        self._lock = threading.Condition()
        self._stale = self._ended = self._follows = False
        self._wanted: list[Table] = []

    def start(self) -> None:
        """Read now, and again after each `changed`."""
        self._stale = self._follows = True
        threading.Thread(target=self._follow, name="names", daemon=True).start()

    def changed(self) -> None:
        """What was read is out of date."""
        with self._lock:
            self._stale = True
            self._lock.notify_all()

    def close(self) -> None:
        """Read no more."""
        with self._lock:
            self._ended = True
            self._lock.notify_all()

    def _follow(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._stale or self._wanted or self._ended)
                if self._ended:
                    return
                stale, self._stale = self._stale, False
                wanted, self._wanted = self._wanted, []
            # What is not known is not offered; statements tell of a gateway that is gone.
            found: dict[Table, tuple[str, ...]] = dict.fromkeys(wanted, ())
            with contextlib.suppress(RemoteError, OSError), self._connected() as client:
                if stale:
                    tables = client.execute(_TABLES).rows_of_texts(3)
                    functions = client.execute("SHOW FUNCTIONS").rows_of_texts(1)
                    self.tables = frozenset((catalog, schema, name) for catalog, schema, name in tables)
                    self.functions = tuple(name for (name,) in functions if _FUNCTION.fullmatch(name))
                    self.columns = {}
                found |= {table: _columns(client, table) for table in wanted}
            with self._lock:
                self.columns.update(found)
                self._lock.notify_all()

    def _columns_of(self, tables: Sequence[Table]) -> Iterator[str]:
        """The columns of some tables, as far as they are known soon."""
        with self._lock:
            missing = [table for table in tables if table not in self.columns]
            if missing and self._follows:
                self._wanted = missing
                self._lock.notify_all()
                self._lock.wait_for(lambda: all(table in self.columns for table in missing), _PATIENCE)
            return iter([column for table in tables for column in self.columns.get(table, ())])

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
            if name not in seen and len(name) <= _LONGEST and printable(name) == name:
                seen.add(name)
                yield name, -len(word)

    def _fitting(self, word: str, text: str, place: str, tables: bool) -> Iterator[str]:
        start = word.lower()
        if tables or "." in word:
            yield from sorted(n for n in self._relations(place, start) if n.lower().startswith(start))
        if tables or not word:
            return
        words = {part.lower() for part in re.findall(r"\w+", text)}
        mentioned = sorted(table for table in self.tables if table[2].lower() in words)[:_MOST_ASKED]
        column = start.rpartition(".")[2]
        before = word[: len(word) - len(column)]
        yield from (before + quote_if_needed(c) for c in self._columns_of(mentioned) if c.lower().startswith(column))
        if not before:
            yield from (name for name in self.functions if name.lower().startswith(start))
            yield from (word for word in KEYWORDS if word.lower().startswith(start))

    def _relations(self, place: str, start: str) -> set[str]:
        """Names of tables as they may be written here, up to the next dot: catalogs, schemas, tables."""
        here = tuple(place.split("."))
        found = set()
        for table in self.tables:
            for left_out in range(3):
                if table[:left_out] == here[:left_out]:
                    parts = table[left_out:][: start.count(".") + 1]
                    found.add(".".join(map(quote_if_needed, parts)))
        return found


def _columns(client: Client, table: Table) -> tuple[str, ...]:
    catalog, schema, name = map(quoted_text, table)
    where = f"table_catalog = {catalog} AND table_schema = {schema} AND table_name = {name}"
    found = client.execute(f"{_COLUMNS} WHERE {where} ORDER BY ordinal_position").rows_of_texts(1)
    return tuple(name for (name,) in found)
