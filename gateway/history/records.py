"""What the history keeps of a statement. The fields of `Record` are the columns of its table, in this order."""

from __future__ import annotations

from typing import NamedTuple, get_type_hints

# What is longer is cut: a history is for finding statements, not for keeping them.
LONGEST_TEXT = 65_536
LONGEST_MESSAGE = 4_096
LONGEST_NAME = 512


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


_TYPES = {
    str: "TEXT",
    int: "INTEGER",
    bool: "INTEGER",
    float: "REAL",
    str | None: "TEXT",
    int | None: "INTEGER",
    float | None: "REAL",
}
TABLE = "statements"
COLUMNS = Record._fields


def definition() -> str:
    """The statement that makes the table."""
    columns = (f'"{name}" {_TYPES[kind]}' for name, kind in get_type_hints(Record).items())
    return f"CREATE TABLE IF NOT EXISTS {TABLE} (id INTEGER PRIMARY KEY AUTOINCREMENT, {', '.join(columns)})"
