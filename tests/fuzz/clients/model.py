"""What the answers to a sequence of calls must be: a small model of a result and its cursor, and the run that compares.

The model knows a statement's rows and, page by page, where the server's cursor is. It leaves open what the server may choose:
how many rows a page has (at least one, if any is left, and no more than asked for), and how far a statement is. After a call
whose connection was cut nobody knows whether it was served: then only what an answer says of itself is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.protocol import versions
from gateway.thrift_gen.TCLIService import ttypes
from tests.fuzz.clients.steps import ABSOLUTE, FIRST, LAST, NEXT, PRIOR, RELATIVE, Ask, Drain, Execute, Fetch, Sequence
from tests.fuzz.clients.wire import COLUMNS, Wire, numbers, query

DEFAULT_ROWS = 100_000
LARGE_ROWS, LATE_ROW = 250_000, 249_001
STATUS, STATE, FORMAT = ttypes.TStatusCode, ttypes.TOperationState, ttypes.TSparkRowSetType
UNDER_WAY = (STATE.INITIALIZED_STATE, STATE.PENDING_STATE, STATE.RUNNING_STATE)


@dataclass(frozen=True)
class Statement:
    """A kind of statement: its text for a number of rows, the SQLSTATE that it ends with, and what its result is like."""

    text: Callable[[int], str]
    sqlstate: str | None = None
    is_query: bool = True
    rows: Callable[[int], int] = lambda rows: rows
    streams: bool = False  # rows can be fetched before it has ended
    ordered: bool = True
    seconds: int = 60  # after which it is stopped


STATEMENTS = {
    "rows": Statement(query),
    "refused": Statement(lambda rows: f"SELECT nothing FROM range({rows})", "42703"),
    "late": Statement(
        lambda rows: (
            f"SELECT {COLUMNS.replace('CAST(id', f'CAST(id + 0 * (1 div (id - {LATE_ROW}))')} FROM range({LARGE_ROWS})"
        ),
        "22012",
        rows=lambda rows: LARGE_ROWS - 1,
        streams=True,
        ordered=False,
    ),
    "none": Statement(lambda rows: "USE default", is_query=False, rows=lambda rows: 0),
    "large": Statement(lambda rows: query(LARGE_ROWS), rows=lambda rows: LARGE_ROWS, streams=True),
    "slow": Statement(
        lambda rows: (
            f"SELECT {COLUMNS} FROM (SELECT a.id * b.id AS id FROM range(3000000) a CROSS JOIN range(3000000) b) "
            "WHERE id % 1000003 = 1000005"
        ),
        "57KD0",
        rows=lambda rows: 0,
        seconds=2,
    ),
}


class WrongError(AssertionError):
    """An answer that the model does not allow."""


def must(condition: object, text: str, *values: object) -> None:
    """Raises WrongError unless the condition holds."""
    if not condition:
        raise WrongError(" ".join([text, *map(repr, values)]))


class Operation:
    """An operation as far as its client knows it."""

    def __init__(self, step: Execute, protocol: int) -> None:
        self.statement = STATEMENTS[step.kind]
        limit = step.row_limit if step.row_limit is not None and step.row_limit > 0 else None
        total = self.statement.rows(step.rows)
        self.total = total if limit is None else min(total, limit)
        # A limit may end it before it comes to the row that fails.
        self.may_succeed = self.statement.sqlstate is None or (self.statement.streams and limit is not None)
        self.arrow = step.arrow and versions.is_spark(protocol)
        self.lz4 = self.arrow and step.lz4
        self.is_spark = versions.is_spark(protocol)
        self.handle: Any = None
        self.closed = False
        self.cancelled = False
        self.failed = False
        self.complete = False  # all rows are known to be there
        self.state: int | None = None
        self.page_start = 0
        self.next_row = 0
        self.names_rows = self.may_name_rows = False
        self.unsure = False
        self.places: dict[int, int] = {}
        self.rows: dict[int, int] = {}
        self.last: tuple[tuple[int, int | None, int | None], int] | None = None

    def refusal(self, status: Any) -> None:
        """An error of a call about this operation."""
        if self.closed:
            must(status.statusCode == STATUS.INVALID_HANDLE_STATUS, "a closed operation answers", status)
            return
        must(status.statusCode == STATUS.ERROR_STATUS, "a refusal is no error:", status)
        must(status.errorMessage and status.displayMessage, "an error without a text:", status)
        must(status.sqlState != "XX000", "an internal error:", status)
        if status.sqlState == "HY008":
            must(self.cancelled, "a cancel that nobody asked for:", status)
        else:
            must(status.sqlState == self.statement.sqlstate, "an error of another kind:", status)
            self.failed = True

    def status(self, answer: Any) -> None:
        """TGetOperationStatusResp."""
        state = answer.operationState
        must(answer.status.statusCode == STATUS.SUCCESS_STATUS, "the status of an open operation:", answer.status)
        ended = self.state is not None and self.state not in UNDER_WAY
        if ended and state != self.state:
            must(
                self.statement.streams and self.state == STATE.FINISHED_STATE, "left the end", self.state, "for", state
            )
        must(state not in UNDER_WAY or not ended, "works again:", state)
        if state == STATE.FINISHED_STATE:
            must(self.may_succeed or self.statement.streams, "success of a statement that fails")
            must(not self.failed, "success after an error")
            self.complete |= not self.statement.streams
        elif state == STATE.CANCELED_STATE:
            must(self.cancelled, "cancelled by nobody")
        elif state in (STATE.ERROR_STATE, STATE.TIMEDOUT_STATE):
            must(answer.sqlState == self.statement.sqlstate, "fails with", answer.sqlState, answer.errorMessage)
            must(answer.displayMessage, "an error without a text")
            self.failed = True
        else:
            must(state in UNDER_WAY, "the state", state)
        must((answer.displayMessage is None) == (state in (*UNDER_WAY, STATE.FINISHED_STATE)), "a text with", state)
        self.state = state

    def metadata(self, answer: Any) -> None:
        """TGetResultSetMetadataResp."""
        names = [column.columnName for column in answer.schema.columns]
        must(names == (["id", "s"] if self.statement.is_query else ["Result"]), "columns", names)
        must(answer.resultFormat == (FORMAT.ARROW_BASED_SET if self.arrow else FORMAT.COLUMN_BASED_SET), "the format")
        must(answer.lz4Compressed is self.lz4, "lz4Compressed", answer.lz4Compressed)

    def page(self, answer: Any, start: int | None, asked: int | None, max_bytes: int | None, most: int | None) -> int:
        """TFetchResultsResp from row `start` (None: nobody knows), at most `most` rows if that bound is known; its rows."""
        rows = answer.results
        ids = numbers(rows, self.lz4) if self.statement.is_query else self._nothing(rows)
        first = rows.startRowOffset
        if start is not None:
            must(first == min(start, self.total), "begins at row", first, "instead of", min(start, self.total))
        if self.statement.ordered:
            must(ids == list(range(first, first + len(ids))), "rows", ids[:3], "...", ids[-3:], "begin at", first)
        else:
            self._any_order(first, ids)
        bound = asked if asked is not None and asked > 0 else DEFAULT_ROWS
        bound = bound if most is None else min(bound, most)
        must(len(ids) <= bound, "gives", len(ids), "rows for", bound)
        must(
            ids or first >= self.total or bound == 0 or start is None, "gives no row although there is one, from", first
        )
        must(first + len(ids) <= self.total, "gives more rows than there are:", first + len(ids))
        if max_bytes is not None and max_bytes > 0:
            must(len(ids) <= max(1, max_bytes // 8), "gives", len(ids), "rows for bytes", max_bytes)
        left = first + len(ids) < self.total or not self.may_succeed
        if left:
            must(answer.hasMoreRows is True, "keeps silent about rows after", first + len(ids))
        elif self.complete:
            must(answer.hasMoreRows is False, "speaks of rows after the last")
        if not self.unsure and most is None:
            key = (first, asked, max_bytes)
            must(
                self.last is None or self.last[0] != key or self.last[1] == len(ids) or not ids,
                "another page again",
                key,
            )
            self.last = (key, len(ids))
        self.page_start, self.next_row = first, first + len(ids)
        return len(ids)

    def _any_order(self, first: int, ids: list[int]) -> None:
        """Every row has one place, and every place one row."""
        for place, row in enumerate(ids, first):
            must(self.places.setdefault(place, row) == row, "another row in place", place)
            must(self.rows.setdefault(row, place) == place, "a second time row", row)

    def _nothing(self, rows: Any) -> list[int]:
        if self.arrow:
            must(rows.arrowBatches == [], "batches of a statement without a result")
        else:
            must([column.stringVal.values for column in rows.columns] == [[]], "rows of a statement without a result")
        return []

    def window(self, step: Fetch, offset: int | None) -> tuple[int | None, int | None] | None:
        """Start and bound of the page that a fetch asks for; None if it names no rows."""
        here = None if self.unsure else self.next_row
        none = offset is None or offset == 0
        asked = step.max_rows if step.max_rows is not None and step.max_rows > 0 else DEFAULT_ROWS
        match step.orientation:
            case None | 0 if offset is None or offset >= 0:
                if offset:
                    self.names_rows |= step.lost != "cut"
                    self.may_name_rows = True
                elif offset is None or not self.names_rows:
                    return (None if offset is not None and self.may_name_rows else here), None
                return offset, None
            case 1 if none:
                return (None, None) if self.unsure else (max(0, self.page_start - asked), min(asked, self.page_start))
            case 2 if offset is not None:
                return (None if here is None else max(0, here + offset)), None
            case 3 if offset is not None and offset >= 0:
                return offset, None
            case 4 if none:
                return 0, None
            case 5 if none:
                return max(0, self.total - asked), None
        return None


assert (NEXT, PRIOR, RELATIVE, ABSOLUTE, FIRST, LAST) == (0, 1, 2, 3, 4, 5)


class Run:
    """One sequence on one session."""

    def __init__(self, url: str, protocol: int | None) -> None:
        self.wire = Wire(url, protocol)
        self.operations: dict[int, Operation] = {}
        self.calls = 0

    def execute(self, step: Execute) -> None:
        """ExecuteStatement, and what its direct results hold."""
        operation = Operation(step, self.wire.protocol)
        self.operations.pop(step.slot, None)
        direct = step.direct
        answer = self.wire.execute(
            operation.statement.text(step.rows),
            runAsync=step.run_async,
            getDirectResults=None if direct is None else ttypes.TSparkGetDirectResults(*direct),
            canReadArrowResult=step.arrow,
            canDecompressLZ4Result=step.lz4,
            resultRowLimit=step.row_limit,
            queryTimeout=operation.statement.seconds,
        )
        waits = direct is None and not step.run_async
        if answer.status.statusCode != STATUS.SUCCESS_STATUS:
            must(waits and operation.statement.sqlstate is not None, "refuses the statement:", answer.status)
            must(answer.operationHandle is None, "a handle of what has failed")
            operation.refusal(answer.status)
            return
        operation.handle = answer.operationHandle
        self.operations[step.slot] = operation
        if waits:
            must(operation.may_succeed or operation.statement.streams, "success of a statement that fails")
            operation.complete = not operation.statement.streams
        if direct is None:
            must(answer.directResults is None, "direct results that nobody asked for")
            return
        self._direct(operation, answer.directResults, direct)

    def _direct(self, operation: Operation, found: Any, asked: tuple[int | None, int | None]) -> None:
        operation.status(found.operationStatus)
        if operation.state == STATE.FINISHED_STATE:
            must(found.resultSet is not None and found.resultSetMetadata is not None, "an end without a result")
            operation.metadata(found.resultSetMetadata)
            operation.page(found.resultSet, 0, *asked, None)
            closes = not found.resultSet.hasMoreRows
        else:
            must(found.resultSet is None and found.resultSetMetadata is None, "a result in state", operation.state)
            closes = operation.state == STATE.ERROR_STATE
        must((found.closeOperation is not None) == closes, "closeOperation", found.closeOperation)
        operation.closed = closes

    def fetch(self, step: Fetch) -> None:
        """FetchResults."""
        operation = self.operations.get(step.slot)
        if operation is None:
            return
        offset = step.offset
        if isinstance(offset, str):
            offset = operation.next_row if offset == "next" else operation.page_start
        fields = {
            "orientation": step.orientation,
            "maxRows": step.max_rows,
            "maxBytes": step.max_bytes,
            "startRowOffset": offset,
        }
        window = operation.window(step, offset)
        if step.lost == "cut":
            request = ttypes.TFetchResultsReq(operationHandle=operation.handle, **fields)
            self.wire.lose("FetchResults", request)
            operation.unsure |= window is not None and not operation.closed
            return
        answer = self.wire.fetch(operation.handle, **fields)
        self._page(operation, answer, step, window)

    def _page(self, operation: Operation, answer: Any, step: Fetch, window: Any) -> int:
        """How many rows it has."""
        if answer.status.statusCode != STATUS.SUCCESS_STATUS:
            if window is not None or answer.status.sqlState != "HY106":
                must(window is not None or operation.closed, "names no rows, but is told", answer.status)
                operation.refusal(answer.status)
            return 0
        must(window is not None, "answers a fetch that names no rows")
        must(not operation.closed, "rows of a closed operation")
        must(not operation.failed, "rows after an error")
        must(operation.may_succeed or operation.statement.streams, "rows of a statement that fails")
        must((answer.resultSetMetadata is not None) == operation.is_spark, "metadata with a page")
        if operation.is_spark:
            operation.metadata(answer.resultSetMetadata)
        start, most = window
        return operation.page(answer, start, step.max_rows, step.max_bytes, most)

    def drain(self, step: Drain) -> None:
        """Pages until nothing is left."""
        operation = self.operations.get(step.slot)
        if operation is None:
            return
        for _ in range(operation.total + 3):
            fetch = Fetch(step.slot, NEXT, None, max(step.max_rows, operation.total // 12))
            window = operation.window(fetch, None)
            answer = self.wire.fetch(operation.handle, orientation=NEXT, maxRows=fetch.max_rows)
            self.calls += 1
            self._page(operation, answer, fetch, window)
            if answer.status.statusCode != STATUS.SUCCESS_STATUS:
                return
            if not answer.hasMoreRows:
                must(operation.next_row == operation.total, "ends after", operation.next_row, "of", operation.total)
                return
        raise WrongError(f"does not end: row {operation.next_row} of {operation.total}")

    def ask(self, step: Ask) -> None:
        """A call about an operation."""
        operation = self.operations.get(step.slot)
        if operation is not None:
            getattr(self, f"_{step.what}")(operation)

    def _status(self, operation: Operation) -> None:
        answer = self.wire.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=operation.handle))
        if answer.status.statusCode != STATUS.SUCCESS_STATUS:
            must(operation.closed, "no status of an open operation:", answer.status)
            operation.refusal(answer.status)
        else:
            must(not operation.closed, "the status of a closed operation")
            operation.status(answer)

    def _metadata(self, operation: Operation) -> None:
        answer = self.wire.call(
            "GetResultSetMetadata", ttypes.TGetResultSetMetadataReq(operationHandle=operation.handle)
        )
        if answer.status.statusCode != STATUS.SUCCESS_STATUS:
            operation.refusal(answer.status)
        else:
            must(not operation.closed and not operation.failed, "metadata of what has ended badly")
            operation.metadata(answer)

    def _log(self, operation: Operation) -> None:
        answer = self.wire.fetch(operation.handle, orientation=NEXT, maxRows=100, fetchType=1)
        if answer.status.statusCode != STATUS.SUCCESS_STATUS:
            must(operation.closed, "no log of an open operation:", answer.status)
        else:
            (column,) = answer.results.columns
            must(all(line[5:8] == " : " for line in column.stringVal.values), "a log:", column.stringVal.values)
            must(answer.hasMoreRows is False, "more of a log")

    def _cancel(self, operation: Operation) -> None:
        answer = self.wire.call("CancelOperation", ttypes.TCancelOperationReq(operationHandle=operation.handle))
        must(answer.status.statusCode == STATUS.SUCCESS_STATUS, "a cancel is refused:", answer.status)
        operation.cancelled |= not operation.complete

    def _close(self, operation: Operation) -> None:
        answer = self.wire.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=operation.handle))
        must(answer.status.statusCode == STATUS.SUCCESS_STATUS, "a close is refused:", answer.status)
        operation.closed = True


_DO: dict[type[Any], Callable[[Run, Any], None]] = {
    Execute: Run.execute,
    Fetch: Run.fetch,
    Drain: Run.drain,
    Ask: Run.ask,
}


def run(url: str, sequence: Sequence) -> int:
    """Do what a sequence says; the number of steps. Raises AssertionError for an answer that must not be."""
    session = Run(url, sequence.protocol)
    with session.wire:
        for step in sequence.steps:
            session.calls += 1
            _DO[type(step)](session, step)
    return session.calls
