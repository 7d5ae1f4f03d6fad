"""The cursor that FetchResults moves over a result: pages of rows, or of links to pieces of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.errors import ServerError
from gateway.results.spool import Spool
from gateway.service.api import Orientation, Page, ResultMetadata

STREAMING_BYTES = 4 << 20
# Results of this size and more are given as links, if their client takes them: less is sooner there in the answer itself.
LINKED_BYTES = STREAMING_BYTES
LINK_BYTES = 8 << 20
LINKS_OF_PAGE = 64
_PAGE_WAIT_SECONDS = 0.02
_LINK_WAIT_SECONDS = 0.5
_LINKS_AHEAD = 8  # clients download those of a page at the same time, and ask for the next page behind them


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Bounds of one page: what a client may ask for, and what it gets when it does not say (0, negative, absent)."""

    default_rows: int = 10_000
    max_rows: int = 2_000_000
    default_bytes: int = 8 << 20
    max_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A page as a client asks for it, within its limits."""

    orientation: Orientation
    rows: int
    size: int
    offset: int | None


class Cursor:
    """Where a client is in the rows of an operation; one call at a time.

    Args:
        operation: its identifier, for links.
        check: raises the operation's error, unless its rows can be read.
    """

    def __init__(self, operation: bytes, check: Callable[[], None]) -> None:
        self.next_row = 0
        self._operation = operation
        self._check = check
        self._page_start = 0
        self._names_rows = False  # its client says with which row a page is to begin
        self._page: tuple[int, int, int, int] | None = None  # start, asked rows, asked bytes, rows given

    def page(self, metadata: ResultMetadata, spool: Spool, asked: Asked) -> Page:
        """See `Operation.fetch`."""
        start, count = self._window(asked, spool)
        if metadata.linked:
            return self._links(
                metadata, spool, start, start + count if asked.orientation is Orientation.PRIOR else None
            )
        rows, size = asked.rows, asked.size
        if self._page is not None and self._page[:3] == (start, rows, size):
            count = min(count, self._page[3])  # asked again: no more rows than the first time
        else:
            spool.wait_for(start)
            # While rows come fast, fewer and larger pages.
            full = min(rows, spool.rows_of(min(size, STREAMING_BYTES)))
            spool.wait_for(start + full - 1, _PAGE_WAIT_SECONDS)
        try:
            parts = spool.read(start, count, size)
        except ServerError:
            self._check()  # the reason why the spool is gone
            raise
        self._check()
        given = sum(part.count for part in parts)
        start = min(start, spool.rows) if not given else start
        more = self._moved(spool, (start, rows, size, given))
        return Page(start_row_offset=start, parts=parts, has_more_rows=more, metadata=metadata)

    def _links(self, metadata: ResultMetadata, spool: Spool, start: int, end: int | None) -> Page:
        """A page of links from row `start` on; clients that take links take any number of rows with them."""
        spool.wait_for(start)
        spool.wait_for(start + spool.rows_of(_LINKS_AHEAD * LINK_BYTES) - 1, _LINK_WAIT_SECONDS)
        if self._page is not None and self._page[:3] == (start, 0, 0):
            end = start + self._page[3]  # asked again: the same rows
        most = 1 if metadata.options.reads_on and not start else LINKS_OF_PAGE
        pieces = spool.pieces(start, end, LINK_BYTES, most)
        self._check()
        given = sum(piece.count for piece in pieces)
        start = start if given else min(start, spool.rows)
        more = self._moved(spool, (start, 0, 0, given))
        return Page(start, (), more, metadata, self._operation, pieces=pieces)

    def _moved(self, spool: Spool, page: tuple[int, int, int, int]) -> bool:
        """The page has been given; whether rows follow it."""
        start, _, _, given = page
        self._page = page if given else None
        self._page_start, self.next_row = start, start + given
        ended = spool.ended  # before the rows are counted: they may come, and end, in between
        return not ended or start + given < spool.rows

    def _window(self, asked: Asked, spool: Spool) -> tuple[int, int]:
        """First row and number of rows that are asked for."""
        rows, offset = asked.rows, asked.offset
        match asked.orientation:
            case Orientation.FIRST:
                return 0, rows
            case Orientation.PRIOR:
                start = max(0, self._page_start - rows)
                return start, self._page_start - start
            case Orientation.RELATIVE:
                return max(0, self.next_row + (offset or 0)), rows
            case Orientation.LAST:
                while not spool.ended and not spool.closed:
                    spool.wait_for(spool.rows)
                return max(0, spool.rows - rows), rows
            case Orientation.ABSOLUTE:
                return max(0, offset or 0), rows
            case Orientation.NEXT:
                self._names_rows |= bool(offset)
                return (offset if self._names_rows and offset is not None else self.next_row), rows
