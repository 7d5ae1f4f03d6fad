"""Where records of a kind lie, for the one thread that writes them and for all that read them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

from gateway.errors import ServerError
from gateway.history.query import Query

Row = tuple[Any, ...]
Later = tuple[float, str]  # what `LATER` is of a row, and the row's key
LATER = "fetch_ms"
# What values raise that are not such as a record's, or as those that were asked for: whoever has put them there.
ODD = (TypeError, ValueError, ArithmeticError, AttributeError, AssertionError, LookupError, RecursionError)
OTHER_VALUES = "it holds values of other types than a record has"


class PassingError(Exception):
    """Nothing was written, and the same may be tried again; `reason` is None for what was told already."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason)
        self.reason = reason


class LastingError(Exception):
    """What was to be written never can be."""


class Store(Protocol):
    """A table of records. Whoever writes raises PassingError and LastingError, and is one thread."""

    @property
    def name(self) -> str:
        """What it is called in the log."""

    def write(self, rows: Sequence[Row], later: Sequence[Later] = ()) -> None:
        """Add rows, and what became known of rows that are there, all or nothing."""

    def prune_by_size(self, size: int, going: Callable[[], bool]) -> None:
        """Remove the oldest of more than `size` bytes, and a tenth more, as long as `going` says so."""

    def prune_by_age(self, oldest_ms: int, going: Callable[[], bool]) -> None:
        """Remove what began before `oldest_ms`, as long as `going` says so."""

    def close(self) -> None:
        """Let go of what writing has opened. Never raises."""

    def read(self, query: Query) -> Generator[list[Row]]:
        """The rows of a query, none without a table. Of any thread. Raises ServerError HISTORY_UNREADABLE."""


def unreadable(error: Exception | str) -> ServerError:
    """HISTORY_UNREADABLE."""
    return ServerError("HISTORY_UNREADABLE", f"The history cannot be read: {error}.", retryable=True)


def too_slow(seconds: float) -> ServerError:
    """HISTORY_UNREADABLE of a query that takes too long."""
    return unreadable(f"it takes longer than {seconds:g} seconds; ask for less of it")
