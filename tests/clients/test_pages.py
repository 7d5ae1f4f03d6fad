"""Every driver's way of asking for pages gives it each row once, in order: as requests over a socket, whatever is installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from gateway.thrift_gen.TCLIService import ttypes
from tests.fuzz.clients.wire import Wire, numbers, query
from tests.live.gateway import Server

NEXT, PRIOR, RELATIVE, ABSOLUTE, FIRST, LAST = range(6)
ROWS = 10_001
PAGE = 1_000
HIVE_V6, HIVE_V10 = 5, 9
SUCCESS = ttypes.TStatusCode.SUCCESS_STATUS


@dataclass(frozen=True)
class Driver:
    """What a driver sends; `offset` is its startRowOffset: none, a number, or "counted" for the row that it wants."""

    name: str
    source: str
    protocol: int | None
    direct: bool
    arrow: bool
    first: int = NEXT
    offset: int | str | None = None
    max_bytes: int | None = None
    metadata: bool | None = None
    until_empty: bool = False  # it goes on until a page holds no row, whatever `hasMoreRows` says


DRIVERS = [
    Driver("databricks-jdbc 2.6.40", "seen on the wire", 0xA508, True, True, offset=0, max_bytes=300_000_000),
    Driver("databricks-jdbc 2.7.3", "seen on the wire", 0xA508, True, True, offset=0, max_bytes=300_000_000),
    Driver(
        "databricks-jdbc 2.8.7",
        "HS2Client.fetchFromServer: m_driverSideStartRowOffset, which only ResultFileDownloadManager moves",
        0xA508,
        True,
        True,
        offset=0,
        max_bytes=300_000_000,
    ),
    Driver(
        "databricks-jdbc 2.8.7, no direct results", "as above", 0xA508, False, True, offset=0, max_bytes=300_000_000
    ),
    Driver(
        "databricks-jdbc 3.4.5",
        "DatabricksThriftAccessor.createFetchResultsReqWithDefaults",
        0xA50A,
        True,
        True,
        max_bytes=404_857_600,
        metadata=True,
    ),
    Driver(
        "databricks-sql-connector 4.9.0",
        "thrift_backend.py, fetch_results",
        0xA507,
        True,
        True,
        max_bytes=104_857_600,
        metadata=True,
    ),
    Driver(
        "databricks-sql-connector, execute_async",
        "as above",
        0xA507,
        False,
        False,
        max_bytes=104_857_600,
        metadata=True,
    ),
    Driver("databricks-sql-go 1.14", "resultPageIterator.go, getNextPage", 0xA508, True, True, metadata=True),
    Driver("@databricks/sql 2.1", "RowSetProvider.ts, fetchNext", 0xA508, False, False, first=FIRST, until_empty=True),
    Driver("ADBC C#, Databricks", "DatabricksReader.cs:115", 0xA507, True, True, max_bytes=400_000_000),
    Driver("ADBC C#, HiveServer2", "HiveServer2Reader.cs:175", HIVE_V10, False, False, until_empty=True),
    Driver("counts rows", "ThriftResultFetcher.cs:134 of ADBC C#, for links", 0xA507, True, True, offset="counted"),
    Driver("hive-jdbc 4.0.1", "HiveQueryResultSet.java, next", HIVE_V10, False, False, until_empty=True),
    Driver("PyHive 0.7", "hive.py:497", HIVE_V6, False, False, until_empty=True),
    Driver("impyla 0.24", "hiveserver2.py:1510", HIVE_V6, False, False),
    Driver("gohive", "hive.go:1131", HIVE_V6, False, False),
    Driver("names no version", "legal: both fields are optional", None, False, True),
]
JDBC_2 = DRIVERS[2]
COUNTING = next(d for d in DRIVERS if d.offset == "counted")


class Result:
    """A result that is read as a driver does; `rows` are the numbers of those that it has."""

    def __init__(self, wire: Wire, driver: Driver, rows: int = ROWS, page: int = PAGE) -> None:
        self._wire = wire
        self._driver = driver
        self._page = page
        self.rows: list[int] = []
        self.more = True
        limits = ttypes.TSparkGetDirectResults(maxRows=page, maxBytes=driver.max_bytes) if driver.direct else None
        answer = wire.execute(
            query(rows), runAsync=driver.direct, getDirectResults=limits, canReadArrowResult=driver.arrow
        )
        self.handle = answer.operationHandle
        if limits is not None:
            self._take(answer.directResults.resultSet)

    def _take(self, answer: Any) -> list[int]:
        found = numbers(answer.results, False)
        assert answer.results.startRowOffset == (found[0] if found else len(self.rows))
        self.rows += found
        self.more = answer.hasMoreRows
        return found

    def ask(self, orientation: int, offset: int | None, rows: int | None = None) -> Any:
        """The answer to one FetchResults."""
        return self._wire.fetch(
            self.handle,
            orientation=orientation,
            startRowOffset=offset,
            maxRows=rows or self._page,
            maxBytes=self._driver.max_bytes,
            includeResultSetMetadata=self._driver.metadata,
        )

    def next(self) -> list[int]:
        """The page that the driver asks for, now part of `rows`."""
        offset = len(self.rows) if self._driver.offset == "counted" else self._driver.offset
        assert not isinstance(offset, str)
        return self._take(self.ask(NEXT if self.rows else self._driver.first, offset))

    def read(self) -> list[int]:
        """All rows."""
        while (self.more or self._driver.until_empty) and self.next():
            pass
        return self.rows


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda d: d.name)
@pytest.mark.parametrize("rows", [0, PAGE, ROWS])
def test_every_driver_gets_each_row_once(server: Server, driver: Driver, rows: int) -> None:
    with Wire(server.thrift_url, driver.protocol) as wire:
        assert Result(wire, driver, rows).read() == list(range(rows))


@pytest.mark.parametrize("driver", [d for d in DRIVERS if d.direct], ids=lambda d: d.name)
def test_a_page_whose_answer_was_lost_can_be_asked_for_by_its_row(server: Server, driver: Driver) -> None:
    with Wire(server.thrift_url, driver.protocol) as wire:
        result = Result(wire, driver)
        result.next()
        lost = numbers(result.ask(NEXT, len(result.rows)).results, False)
        again = result.ask(NEXT, len(result.rows))
        assert numbers(again.results, False) == lost == list(range(2 * PAGE, 3 * PAGE))
        assert again.results.startRowOffset == 2 * PAGE


def test_zero_is_a_row_for_those_who_count(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        result = Result(wire, COUNTING)
        result.next()
        assert numbers(result.ask(NEXT, 0).results, False) == list(range(PAGE))
        other = Result(wire, JDBC_2)
        assert numbers(other.ask(NEXT, 0).results, False) == list(range(PAGE, 2 * PAGE))


def test_go_goes_back_for_what_it_has_missed(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        result = Result(wire, JDBC_2)
        result.ask(NEXT, None)  # lost
        ahead = result.ask(NEXT, None)
        assert ahead.results.startRowOffset == 2 * PAGE
        back = result.ask(PRIOR, None)
        assert numbers(back.results, False) == list(range(PAGE, 2 * PAGE))
        assert numbers(result.ask(NEXT, None).results, False) == list(range(2 * PAGE, 3 * PAGE))


@pytest.mark.parametrize(
    ("orientation", "offset"),
    [
        (NEXT, -1),
        (PRIOR, 5),
        (PRIOR, -5),
        (FIRST, 5),
        (FIRST, -1),
        (LAST, 5),
        (LAST, -1),
        (ABSOLUTE, None),
        (ABSOLUTE, -1),
        (RELATIVE, None),
    ],
)
def test_what_names_no_rows_is_refused_and_moves_nothing(server: Server, orientation: int, offset: int | None) -> None:
    with Wire(server.thrift_url) as wire:
        result = Result(wire, JDBC_2)
        refused = result.ask(orientation, offset)
        assert (refused.status.statusCode, refused.status.sqlState) == (ttypes.TStatusCode.ERROR_STATUS, "HY106")
        assert refused.results is None
        assert result.read() == list(range(ROWS))
