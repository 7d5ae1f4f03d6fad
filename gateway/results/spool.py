"""A statement's rows between the worker that makes them and the client that fetches them, readable at any row offset.

The first rows stay in memory; what follows lies in a file without a name (so that nothing is left behind, whatever dies),
written by the worker through its own descriptor. The spool keeps one index entry per record-batch message and reads only
the messages that a page needs, with pread into memory of their size.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from gateway.errors import ResourceError, ServerError


class Part(Protocol):
    """`count` rows as an Arrow IPC record-batch message: `data`, or `length` bytes of the file at `offset`.

    They take about `weight` bytes once they are shown, which may be far more.
    """

    @property
    def count(self) -> int: ...

    @property
    def data(self) -> bytes | None: ...

    @property
    def offset(self) -> int: ...

    @property
    def length(self) -> int: ...

    @property
    def weight(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a page. `message`: the record-batch message of exactly these rows, None if they are a part of one."""

    batch: pa.RecordBatch
    message: bytes | None = None

    @property
    def count(self) -> int:
        return int(self.batch.num_rows)


@dataclass(frozen=True, slots=True)
class Piece:
    """`count` rows from `start_row` on, about `size` bytes: what one link leads to."""

    start_row: int
    count: int
    size: int


class Spool:
    """The rows of one statement. One thread appends, any number read and wait; `close` frees everything at once.

    Args:
        schema: Arrow schema of every message.
        directory: where the file is made, when one is needed.
        row_limit: rows after this many are dropped.
        byte_limit: rows that do not fit into as many bytes are dropped, judged by the average row of each message.
    """

    def __init__(
        self, schema: pa.Schema, directory: Path | str, row_limit: int | None = None, byte_limit: int | None = None
    ) -> None:
        self.schema = schema
        self._directory = directory
        self._row_limit = row_limit
        self._bytes_left = byte_limit
        self._truncated = False
        self._changed = threading.Condition()
        self._file_lock = threading.Lock()  # held while the descriptor is used, so that close never pulls it away
        self._file: int | None = None
        self._parts: list[Part] = []
        self._starts: list[int] = []  # first row of each part
        self._rows = 0
        self._ended = False
        self._closed = False
        self._memory_bytes = 0
        self._file_bytes = 0
        self._last: tuple[int, Rows] | None = None  # the part that the last page ended inside of

    @property
    def rows(self) -> int:
        """Rows so far; the total once `ended`."""
        return self._rows

    @property
    def ended(self) -> bool:
        """Whether all rows are there."""
        return self._ended

    @property
    def truncated(self) -> bool:
        """Whether rows were dropped for a limit."""
        return self._truncated

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def bytes(self) -> tuple[int, int]:
        """Bytes held in memory and in the file."""
        return self._memory_bytes, self._file_bytes

    def whole(self) -> tuple[Part, ...] | None:
        """All rows, if they are in memory, complete and none was dropped."""
        with self._changed:
            complete = self._ended and not self._closed and not self._truncated and not self._file_bytes
            return tuple(self._parts) if complete else None

    def rows_of(self, size: int) -> int:
        """About how many rows make `size` bytes, judged by those that are there; at least 1."""
        held = self._memory_bytes + self._file_bytes
        return max(1, size * self._rows // held) if held else 1

    def append(self, part: Part) -> int:
        """Add rows; returns the index of the first one. Does nothing once closed."""
        with self._changed:
            first = self._rows
            if self._closed:
                return first
            if self._ended:
                raise ServerError("INTERNAL_ERROR", "Rows came after the end of the result.")
            count = part.count if self._row_limit is None else min(part.count, self._row_limit - first)
            if self._bytes_left is not None:
                size = part.length if part.data is None else len(part.data)
                count = min(count, self._bytes_left * part.count // size) if size else count
                self._bytes_left = self._bytes_left - size if count == part.count else 0
            self._truncated |= count < part.count
            if count > 0:
                self._starts.append(first)
                self._parts.append(part)
                self._rows = first + count
                if part.data is not None:
                    self._memory_bytes += len(part.data)
                else:
                    self._file_bytes = max(self._file_bytes, part.offset + part.length)
                self._changed.notify_all()
            return first

    def end(self) -> None:
        """Mark that no row will follow."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Free memory and file; waiting threads wake up. Idempotent."""
        with self._changed:
            self._closed = True
            self._parts = []
            self._last = None
            self._memory_bytes = self._file_bytes = 0
            self._changed.notify_all()
        with self._file_lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def wait_for(self, row: int, timeout: float | None = None) -> bool:
        """Wait until row number `row` (from 0) is there, or none will be; False after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self._rows <= row and not self._ended and not self._closed:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def descriptor(self) -> int:
        """A new descriptor of the file (made when first asked for); the caller closes it."""
        with self._file_lock:
            if self._closed:
                raise ServerError("INTERNAL_ERROR", "The spool is closed.")
            if self._file is None:
                self._file = _unnamed_file(self._directory)
            return os.dup(self._file)

    def read(self, start_row: int, max_rows: int, max_bytes: int) -> list[Rows]:
        """Rows from `start_row` on: at most `max_rows`, and at most `max_bytes` by the average row of each message.

        At least one row is given if there is one; nothing past the end. Raises ServerError once closed.
        """
        with self._changed:
            if self._closed:
                raise ServerError("INTERNAL_ERROR", "The spool is closed.")
            index = bisect_right(self._starts, start_row) - 1
            parts, starts, total = self._parts, self._starts, self._rows
            last, self._last = self._last, None
        found: list[Rows] = []
        row, stop = start_row, min(total, start_row + max_rows)
        while row < stop:
            part = last[1] if last is not None and last[0] == index else self._load(parts[index])
            batch, first = part.batch, starts[index]
            end = min(stop, first + part.count)
            per_row = max(batch.nbytes / part.count, parts[index].weight / parts[index].count)
            fitting = int(max_bytes / per_row) if per_row else end - row
            if row + fitting < end:
                if found:  # the next page begins with it, and can hand its message on
                    self._keep(index, part)
                    break
                end = row + max(1, fitting)
            whole = row == first and end == first + part.count
            found.append(part if whole else Rows(batch.slice(row - first, end - row)))
            max_bytes -= int((end - row) * per_row)
            row = end
            if end < min(total, first + part.count):
                self._keep(index, part)
                break
            index += 1
            if max_bytes <= 0:
                break
        return found

    def pieces(self, start_row: int, end_row: int | None, size: int, most: int) -> list[Piece]:
        """The rows from `start_row` on, cut between messages into at most `most` pieces of about `size` bytes.

        They end before `end_row`; without one, with the rows that are there: while more come, a last piece that is not full is
        left out, unless it is the only one.
        """
        with self._changed:
            parts, starts, total, ended = list(self._parts), list(self._starts), self._rows, self._ended
        stop = total if end_row is None else min(end_row, total)
        found: list[Piece] = []
        row, held = start_row, 0
        for index in range(max(0, bisect_right(starts, start_row) - 1), len(parts)):
            part = parts[index]
            end = min(stop, starts[index + 1] if index + 1 < len(starts) else total)
            held += max(part.weight, part.length if part.data is None else len(part.data))
            last = end == stop
            if row >= stop or (last and found and held < size and not ended and end_row is None):
                break
            if last or held >= size:
                found.append(Piece(row, end - row, held))
                row, held = end, 0
            if len(found) == most:
                break
        return found

    def _keep(self, index: int, part: Rows) -> None:
        with self._changed:
            if not self._closed:
                self._last = index, part

    def _load(self, part: Part) -> Rows:
        data = part.data
        if data is None:
            with self._file_lock:
                if self._file is None:
                    raise ServerError("INTERNAL_ERROR", "The spool is closed.")
                try:
                    data = os.pread(self._file, part.length, part.offset)
                except OSError as error:
                    text = f"The file of the result cannot be read: {error.strerror}."
                    raise ServerError("FAILED_READ_FILE", text) from error
            if len(data) != part.length:
                raise ServerError("INTERNAL_ERROR", "The spool file is shorter than what was written to it.")
        return Rows(pa.ipc.read_record_batch(pa.py_buffer(data), self.schema), data)


# The file system or kernel knows no unnamed files (open(2), O_TMPFILE).
_NO_TMPFILE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT})


def _unnamed_file(directory: Path | str) -> int:
    """A new file that has no name, open for reading and writing; its folder is made again if somebody has removed it."""
    try:
        os.makedirs(directory, exist_ok=True)
        try:
            return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
        descriptor, path = tempfile.mkstemp(prefix="spool-", dir=directory)
        os.unlink(path)
        return descriptor
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError("RESULT_TOO_LARGE", "There is no space on the disk for spooled results.") from error
        text = f"The file for the result cannot be made in the spool folder: {error.strerror}."
        raise ServerError("WRITE_FAILED", text, retryable=True) from error
