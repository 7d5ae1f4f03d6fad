"""How a record is told to clients: Databricks' words for its state, its kind and its error."""

from __future__ import annotations

from collections.abc import Mapping

STATUSES: Mapping[str, tuple[str, ...]] = {
    "FINISHED": ("FINISHED",),
    "CANCELED": ("CANCELED", "CLOSED"),
    "FAILED": ("ERROR", "TIMEDOUT"),
}
_STATUS = {state: status for status, states in STATUSES.items() for state in states}


def status_of(state: str) -> str:
    """How a statement has ended."""
    return _STATUS.get(state, "FAILED")


def kind_of(statement_type: str | None) -> str | None:
    """A type of statements in one word: CREATE, not CREATE_TABLE."""
    return None if statement_type is None else statement_type.partition("_")[0]


def error_of(condition: str | None, sqlstate: str | None, message: str | None) -> str | None:
    """What is told of a failure."""
    if condition is None:
        return None
    return f"[{condition}]{'' if message is None else ' ' + message} SQLSTATE: {sqlstate}"
