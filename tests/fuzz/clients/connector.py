"""Random use of the databricks-sql-connector: page sizes, ways of fetching, several cursors; every row is compared."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from tests.fuzz.clients.model import LARGE_ROWS, STATEMENTS
from tests.fuzz.clients.wire import query, text_of
from tests.live.gateway import Server, connect_to

WAYS = ("one", "many", "many_arrow", "iterate", "all", "all_arrow")
WEIGHTS = (30, 30, 30, 5, 4, 4)


class Reader:
    """A cursor with a result of numbered rows, and how far it has been read."""

    def __init__(self, source: Random, connection: Any) -> None:
        self._source = source
        size = source.choice((1, 7, 100, 1000, 100_000))
        self.total = source.choice((0, 1, 10, source.randint(1, 200), source.randint(200, 9000), 20_000))
        limit = source.choice((None, None, None, 1, self.total + 1, self.total // 2 + 1))
        if self.total > 200 * size:
            size = self.total // 20
        memory = source.choice((1000, 100_000, 100 << 20))
        self.cursor = connection.cursor(arraysize=size, buffer_size_bytes=memory, row_limit=limit)
        if source.random() < 0.02:
            self.total, text = LARGE_ROWS, STATEMENTS["large"].text(0)
            self.cursor.arraysize = 100_000
        else:
            text = query(self.total)
        self.total = self.total if limit is None else min(limit, self.total)
        if source.random() < 0.2:
            self.cursor.execute_async(text)
            self.cursor.get_async_execution_result()
        else:
            self.cursor.execute(text)
        self.row = 0

    def step(self, way: str) -> None:
        """Fetch in one way. Raises AssertionError for a row that is not the next."""
        left = self.total - self.row
        wanted = self._source.choice((1, 2, 10, 999, max(1, left // 2), max(1, left), left + 1))
        if way == "one":
            found = self.cursor.fetchone()
            self._take([] if found is None else [tuple(found)], 1)
        elif way == "many":
            self._take([tuple(r) for r in self.cursor.fetchmany(wanted)], wanted)
        elif way == "many_arrow":
            self._take(_rows(self.cursor.fetchmany_arrow(wanted)), wanted)
        elif way == "iterate":
            taken = []
            for row in self.cursor:
                taken.append(tuple(row))
                if len(taken) == wanted:
                    break
            self._take(taken, wanted)
        elif way == "all":
            self._take([tuple(r) for r in self.cursor.fetchall()], left)
        else:
            self._take(_rows(self.cursor.fetchall_arrow()), left)

    def _take(self, rows: list[tuple[Any, ...]], wanted: int) -> None:
        count = min(wanted, self.total - self.row)
        assert len(rows) == count, f"{len(rows)} rows instead of {count} from row {self.row} of {self.total} on"
        assert rows == [(i, text_of(i)) for i in range(self.row, self.row + count)], f"rows from {self.row} on"
        self.row += count


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def run(server: Server, source: Random) -> Counter[str]:
    """One sequence; how often each way of fetching was used."""
    done: Counter[str] = Counter()
    connection = connect_to(server, enable_query_result_lz4_compression=source.random() < 0.5)
    try:
        readers = [Reader(source, connection) for _ in range(source.choice((1, 1, 2)))]
        for _ in range(source.randint(1, 12)):
            way = source.choices(WAYS, WEIGHTS)[0]
            source.choice(readers).step(way)
            done[way] += 1
        for reader in readers:
            if source.random() < 0.7:
                reader.step(source.choice(("all", "all_arrow")))
            reader.cursor.close()
    finally:
        connection.close()
    return done
