"""The error tree: a condition, its SQLSTATE, whose fault it is; imports nothing of ours but the SQLSTATEs.

Every failure that a client may see is a `GatewayError`. Its text is made in one place (`GatewayError.text`) in the shape of
Spark's messages: ``[CONDITION] message SQLSTATE: xxxxx`` and, where known, the position and the line of the statement.
Errors are values: they cross process borders through `to_wire` / `from_wire` and have no side effects.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from gateway.sqlstates import SQLSTATES

DISK_FULL = "53100"  # the SQLSTATE
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def sqlstate_of(condition: str) -> str:
    """SQLSTATE of a condition (`CLASS` or `CLASS.SUB`); XX000 for one that the table does not know."""
    return SQLSTATES.get(condition) or SQLSTATES.get(condition.partition(".")[0], "XX000")


class Span(NamedTuple):
    """A piece of the user's text: code point offsets `start` (inclusive) and `stop` (exclusive)."""

    start: int
    stop: int


_LONGEST = 4000  # characters of a message that are shown: some quote the value at fault
_MARK = 40  # and of what is said where one was cut


def _cut(message: str) -> str:
    """A message that is not too long; one that was cut already stays as it is."""
    if len(message) <= _LONGEST + _MARK:
        return message
    return f"{message[:_LONGEST]}… ({len(message)} characters)"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line (from 1) and column (from 0) of a code point offset in `text`."""
    offset = max(0, min(offset, len(text)))
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1)


class GatewayError(Exception):
    """Root of all errors shown to a client.

    Attributes:
        condition: Spark-style error condition, ``CLASS`` or ``CLASS.SUB``.
        sqlstate: five characters; given only where an error came with its own, otherwise that of the condition.
        message: one sentence or two, without condition, SQLSTATE and position.
        span: the piece of the statement that is at fault, if known.
        retryable: the same statement may succeed when sent again.
        statement: the text that `span` points into, filled in where the statement ran.
    """

    fault: ClassVar[str] = "server"

    def __init__(
        self,
        condition: str,
        message: str,
        *,
        sqlstate: str | None = None,
        span: Span | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.condition = condition
        self.message = message
        self.sqlstate = sqlstate or sqlstate_of(condition)
        self.span = span
        self.retryable = retryable
        self.statement: str | None = None

    def text(self, statement: str | None = None) -> str:
        """The message as shown to users; where the statement is known, position and the source line are added."""
        statement = self.statement if statement is None else statement
        head = f"[{self.condition}] {_cut(self.message.rstrip())} SQLSTATE: {self.sqlstate}"
        if statement is None or self.span is None:
            return head
        line, col = line_and_column(statement, self.span.start)
        source = statement.split("\n")[line - 1]
        width = max(1, min(self.span.stop - self.span.start, len(source) - col))
        indent = col
        if len(source) > 200:
            left = max(0, col - 80)
            source, indent = source[left : left + 200], col - left
            width = min(width, 120)
        caret = " " * indent + "^" * width
        return f"{head} (line {line}, pos {col})\n\n== SQL (line {line}, position {col + 1}) ==\n{source}\n{caret}"

    def __str__(self) -> str:
        return self.text()

    def at(self, span: Span | None) -> GatewayError:
        """The same error with a position, unless it has one already."""
        if self.span is None:
            self.span = span
        return self

    def to_wire(self) -> dict[str, Any]:
        """Plain values from which `from_wire` makes an equal error in another process."""
        return {
            "kind": type(self).__name__,
            "condition": self.condition,
            "message": _cut(self.message),
            "sqlstate": self.sqlstate,
            "span": (self.span.start, self.span.stop) if self.span else None,
            "retryable": self.retryable,
            "statement": self.statement if self.span else None,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return (from_wire, (self.to_wire(),))


class UserError(GatewayError):
    """The statement, its data or its parameters are wrong; Spark raises here too."""

    fault = "client"


class UnsupportedError(GatewayError):
    """Right for Databricks, not (yet) answered here; always names the construct. SQLSTATE 0A000."""

    fault = "client"


class ProtocolError(GatewayError):
    """The client's bytes, handle or request are wrong."""

    fault = "client"


class ResourceError(GatewayError):
    """A limit (memory, time, size, depth, disk) was reached."""

    fault = "client"


class CanceledError(GatewayError):
    """The statement was cancelled by its owner."""

    fault = "client"


class ServerError(GatewayError):
    """Our fault, or that of a file or process that we depend on."""


class ConfigError(GatewayError):
    """A setting is unknown or has a bad value; the process exits with 2 and names it."""

    fault = "client"

    def __init__(self, setting: str, message: str) -> None:
        super().__init__("INVALID_CONF_VALUE", f"{setting}: {message}")
        self.setting = setting


def disk_full(text: str) -> ResourceError:
    """No space is left on a disk, or of a quota on it."""
    return ResourceError("RESOURCE_EXHAUSTED", text, sqlstate=DISK_FULL)


def is_disk_full(error: BaseException) -> bool:
    """Whether `error` is what the system, or one of our own errors, says of a full disk or a used up quota."""
    if isinstance(error, GatewayError):
        return error.sqlstate == DISK_FULL
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def full_disk_told(doing: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """A full disk as an error that says what failed, and a `path` on the disk; writing names none by itself."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise disk_full(f"{doing}: no space left on the disk of {os.fspath(path)}.") from error


@contextmanager
def storage_told(doing: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """The same for whatever a file system refuses: it is read-only or broken, or there is no permission."""
    try:
        with full_disk_told(doing, path):
            yield
    except OSError as error:
        raise ServerError("WRITE_FAILED", f"{doing}: {error.strerror or error} ({os.fspath(path)}).") from error


def free_space(*folders: str | os.PathLike[str]) -> str:
    """How much room there is on the disks of `folders`, in words, the fullest first; "" if none of them is there."""
    found = []
    for folder in dict.fromkeys(os.fspath(f) for f in folders):
        try:
            disk = os.statvfs(folder)
        except OSError:
            continue
        found.append((disk.f_bavail * disk.f_frsize, folder))
    return ", ".join(f"{free >> 20} MiB free in {folder}" for free, folder in sorted(found))


_KINDS: dict[str, type[GatewayError]] = {
    c.__name__: c
    for c in (GatewayError, UserError, UnsupportedError, ProtocolError, ResourceError, CanceledError, ServerError)
}


def from_wire(wire: dict[str, Any]) -> GatewayError:
    """The error that `GatewayError.to_wire` described."""
    span = wire["span"]
    error = _KINDS.get(wire["kind"], GatewayError)(
        wire["condition"],
        wire["message"],
        sqlstate=wire["sqlstate"],
        span=Span(*span) if span else None,
        retryable=wire["retryable"],
    )
    error.statement = wire.get("statement")
    return error


def unsupported(construct: str, span: Span | None = None) -> UnsupportedError:
    """Refusal by name: `construct` is what the user wrote ("TABLESAMPLE", "function foo")."""
    return UnsupportedError("UNSUPPORTED_FEATURE", f"{construct} is not supported.", span=span)
