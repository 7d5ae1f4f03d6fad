"""What is kept of statements and of sign-ins. The fields of a record are the columns of its table, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Generic, NamedTuple, TypeVar, get_args, get_type_hints

# What is longer is cut: a history is for finding statements, not for keeping them.
LONGEST_TEXT = 65_536
LONGEST_MESSAGE = 4_096
LONGEST_NAME = 512
LONGEST_DETAILS = 65_536
# Characters of each text as it is kept; of those that are not named here `LONGEST_NAME`.
_LONGEST = {
    "text": LONGEST_TEXT + 2,  # it tells that it is cut
    "message": LONGEST_MESSAGE,
    "reason": LONGEST_MESSAGE,
    "details": LONGEST_DETAILS,
}


class Record(NamedTuple):
    """A statement that has ended. Times in milliseconds, `started_ms` and `ended_ms` since the epoch."""

    statement_id: str
    session_id: str
    user: str
    client: str
    statement_type: str | None
    engine: str | None
    reason: str | None
    state: str
    condition: str | None
    sqlstate: str | None
    message: str | None
    text: str
    started_ms: int
    ended_ms: int
    total_ms: float
    queue_ms: float
    parse_ms: float | None
    compile_ms: float | None
    execute_ms: float | None
    rows: int
    written_rows: int | None
    read_bytes: int | None
    files_kept: int | None
    files_total: int | None
    spilled_bytes: int | None
    result_bytes: int
    cached: bool
    fetch_ms: float | None = None  # from the end to the last fetch, where that was long; known when the client lets go
    details: str | None = None  # see `details`
    origin_id: str | None = None  # of an answer that had been kept: the statement that it was of
    error_at: int | None = None  # the piece of `text` that is at fault: characters before it, and up to its end
    error_to: int | None = None


class SignIn(NamedTuple):
    """Somebody who was let in, or was not. `status` is HTTP's; of many failures in a row some are kept, the others counted."""

    event_id: str
    started_ms: int
    user: str | None
    address: str
    client: str
    action: str
    mechanism: str
    status: int
    message: str | None
    unlogged: int


R = TypeVar("R", Record, SignIn)
_TYPES: Mapping[type, str] = {str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL"}


@dataclass(frozen=True)
class Table(Generic[R]):
    """Where records of a kind are kept: each has `started_ms`, by which they are found and grow old."""

    file: str
    name: str
    record: type[R]
    key: str  # by which single ones are found

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, without that of the number of a row (`id`)."""
        return self.record._fields

    @property
    def types(self) -> Mapping[str, type]:
        """What the values of each column are, beside None."""
        hints = get_type_hints(self.record).items()
        return {name: next((k for k in get_args(kind) if k is not NoneType), kind) for name, kind in hints}

    @property
    def longest(self) -> Mapping[str, int]:
        """Characters that the columns which are texts have at most."""
        return {name: _LONGEST.get(name, LONGEST_NAME) for name, kind in self.types.items() if kind is str}

    @property
    def spelled(self) -> Mapping[str, str]:
        """The columns as SQLite defines them."""
        return {name: f'"{name}" {_TYPES[kind]}' for name, kind in self.types.items()}

    def definitions(self) -> tuple[str, ...]:
        """The statements that make it."""
        columns = self.spelled.values()
        return (
            f"CREATE TABLE IF NOT EXISTS {self.name} (id INTEGER PRIMARY KEY AUTOINCREMENT, {', '.join(columns)})",
            f"CREATE INDEX IF NOT EXISTS by_start ON {self.name} (started_ms)",
            f"CREATE INDEX IF NOT EXISTS by_statement ON {self.name} ({self.key})",
        )

    def insertion(self) -> str:
        """The statement that adds a row."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        return f"INSERT INTO {self.name} ({names}) VALUES ({', '.join('?' * len(self.columns))})"


STATEMENTS = Table("history.db", "statements", Record, "statement_id")
SIGN_INS = Table("sign-ins.db", "sign_ins", SignIn, "event_id")
