"""The answer to a statement: its status, the shape of its result, and the rows or links to them.

Field by field as Databricks answers (recorded exchanges of databricks-jdbc, src/test/resources/sqlexecapi).
"""

from __future__ import annotations

import base64
import datetime
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from gateway.errors import GatewayError, ProtocolError, ResourceError, ServerError
from gateway.protocol import pages
from gateway.results import arrow_ipc
from gateway.results.spool import Piece
from gateway.service.api import Disposition, Form, OperationStatus, Outcome, Page, ResultMetadata, State
from gateway.service.cursor import LINKED_BYTES, LINKS_OF_PAGE
from gateway.sqltypes import CharType, DataType, DecimalType, IntervalType

PATH = "/api/2.0/sql/statements"
INLINE_BYTES = 25 << 20

STATES: Mapping[State, str] = {
    State.INITIALIZED: "PENDING",
    State.PENDING: "PENDING",
    State.RUNNING: "RUNNING",
    State.FINISHED: "SUCCEEDED",
    State.CANCELED: "CANCELED",
    State.CLOSED: "CLOSED",
    State.ERROR: "FAILED",
    State.TIMEDOUT: "FAILED",
}
# Types that the API calls otherwise than SQL does (executestatement, ColumnInfoTypeName).
_TYPE_NAMES = {
    "TINYINT": "BYTE",
    "SMALLINT": "SHORT",
    "BIGINT": "LONG",
    "VOID": "NULL",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
}


@dataclass(frozen=True, slots=True)
class Verbatim:
    """JSON that goes into an answer as it is."""

    data: bytes


def as_json(answer: Mapping[str, Any]) -> bytes:
    """The text of an answer, in which values may be `Verbatim`."""
    found: list[bytes] = []
    mark = secrets.token_hex(16)  # what no value can hold

    def put(value: Any) -> str:
        assert isinstance(value, Verbatim)
        found.append(value.data)
        return mark

    text = json.dumps(answer, separators=(",", ":"), ensure_ascii=False, default=put).encode("utf-8", "replace")
    pieces = text.split(f'"{mark}"'.encode()) if found else [text]
    return b"".join(part for pair in zip_longest(pieces, found, fillvalue=b"") for part in pair)


# First row, number of rows -> URL and expiry in epoch milliseconds.
LinkTo = Callable[[int, int], tuple[str, int]]
# First row, number of rows -> a page that holds them.
Rows = Callable[[int, int], Page]


def status_of(status: OperationStatus) -> dict[str, Any]:
    """``status`` of a statement; of one that was cancelled the error says more only where it may have written."""
    shown: dict[str, Any] = {"state": STATES[status.state]}
    if status.error is not None and (shown["state"] == "FAILED" or (shown["state"] == "CANCELED" and status.writes)):
        shown["error"] = {"error_code": code_of(status.error), "message": status.error.text()}
        shown["sql_state"] = status.error.sqlstate
    return shown


def code_of(error: GatewayError) -> str:
    """Databricks' error code of an error: whose fault it is."""
    if isinstance(error, ServerError):
        return "TEMPORARILY_UNAVAILABLE" if error.retryable else "INTERNAL_ERROR"
    if isinstance(error, ResourceError):
        timed_out = error.condition == "QUERY_EXECUTION_TIMEOUT_EXCEEDED"
        return "DEADLINE_EXCEEDED" if timed_out else "RESOURCE_EXHAUSTED"
    if isinstance(error, ProtocolError) and error.condition in ("INVALID_SESSION_HANDLE", "INVALID_OPERATION_HANDLE"):
        return "RESOURCE_DOES_NOT_EXIST"
    return "BAD_REQUEST"


def column(position: int, name: str, data_type: DataType) -> dict[str, Any]:
    """A column of ``manifest.schema``."""
    shown = arrow_ipc.without_lengths(data_type)
    kind = "INTERVAL" if isinstance(shown, IntervalType) else _TYPE_NAMES.get(shown.name, shown.name)
    found: dict[str, Any] = {"name": name, "type_text": shown.sql, "type_name": kind, "position": position}
    if isinstance(shown, DecimalType):
        found |= {"type_precision": shown.precision, "type_scale": shown.scale}
    if isinstance(shown, IntervalType):
        found["type_interval_type"] = shown.sql.removeprefix("INTERVAL ")
    assert not isinstance(shown, CharType)
    return found


def manifest(outcome: Outcome) -> dict[str, Any]:
    """``manifest`` of a result."""
    metadata = outcome.metadata
    files = metadata.options.files
    assert files is not None
    fields = metadata.schema.fields if metadata.is_query else ()
    schema: dict[str, Any] = {"column_count": len(fields)}
    if fields:
        schema["columns"] = [column(i, f.name, f.type) for i, f in enumerate(fields)]
    pieces = _pieces(outcome)
    found: dict[str, Any] = {
        "format": files.form.value,
        "schema": schema,
        "total_chunk_count": len(pieces),
        "total_row_count": outcome.rows,
        "total_byte_count": sum(piece.size for piece in pieces),
        "truncated": outcome.truncated,
    }
    if metadata.is_staging:
        found["is_volume_operation"] = True
    if pieces:
        found["chunks"] = [
            {"chunk_index": i, "row_offset": p.start_row, "row_count": p.count, "byte_count": p.size}
            for i, p in enumerate(pieces)
        ]
    if files.form is Form.ARROW and metadata.options.lz4:
        found["result_compression"] = "LZ4_FRAME"
    return found


def is_inline(outcome: Outcome) -> bool:
    """Whether the rows are in the answer itself."""
    files = outcome.metadata.options.files
    assert files is not None
    if files.disposition is Disposition.EITHER:
        return sum(piece.size for piece in outcome.pieces) < LINKED_BYTES
    return files.disposition is Disposition.INLINE


def _pieces(outcome: Outcome) -> Sequence[Piece]:
    """The chunks that clients are told of: one, if the rows are in the answer."""
    if not outcome.pieces or not outcome.metadata.is_query:
        return ()
    if is_inline(outcome):
        return (Piece(0, outcome.rows, sum(piece.size for piece in outcome.pieces)),)
    return outcome.pieces


def chunk(identifier: str, outcome: Outcome, index: int, rows: Rows, link: LinkTo) -> dict[str, Any] | None:
    """``result`` from chunk `index` on; None if there is no such chunk. Raises ResourceError for too much to be inline."""
    pieces = _pieces(outcome)
    if not pieces and index == 0:
        return _no_rows(outcome.metadata)
    if index >= len(pieces):
        return None
    if not is_inline(outcome):
        some = range(index, min(len(pieces), index + LINKS_OF_PAGE))
        return {"external_links": [_external(identifier, pieces, i, link) for i in some]}
    limit = ResourceError(
        "RESULT_TOO_LARGE",
        "Inline byte limit exceeded. Statements executed with disposition=INLINE can have a result size of at most "
        f"{INLINE_BYTES} bytes. Please execute the statement with disposition=EXTERNAL_LINKS if you want to download "
        "the full result.",
    )
    if pieces[0].size > 4 * INLINE_BYTES:
        raise limit
    found: dict[str, Any] = {"chunk_index": 0, "row_offset": 0, "row_count": outcome.rows}
    files = outcome.metadata.options.files
    if files is None or files.form is not Form.JSON:
        data = b"".join(pages.file(rows(0, outcome.rows)).parts)
        if len(data) > INLINE_BYTES:
            raise limit
        return found | {"attachment": base64.b64encode(data).decode()}
    # Piece by piece: as text rows may be many times as large.
    arrays: list[bytes] = []
    left = INLINE_BYTES
    for piece in outcome.pieces:
        array = b"".join(pages.file(rows(piece.start_row, piece.count)).parts)[1:-1]
        left -= len(array) + 1
        if left < 0:
            raise limit
        arrays.append(array)
    return found | {"data_array": Verbatim(b"[" + b",".join(arrays) + b"]")}


def _no_rows(metadata: ResultMetadata) -> dict[str, Any]:
    files = metadata.options.files
    inline = files is not None and files.form is Form.JSON and files.disposition is Disposition.INLINE
    return {"data_array": []} if metadata.is_query and inline else {}


def _external(identifier: str, pieces: Sequence[Piece], index: int, link: LinkTo) -> dict[str, Any]:
    piece = pieces[index]
    url, expires_ms = link(piece.start_row, piece.count)
    until = datetime.datetime.fromtimestamp(expires_ms / 1000, datetime.UTC)
    found: dict[str, Any] = {
        "chunk_index": index,
        "row_offset": piece.start_row,
        "row_count": piece.count,
        "byte_count": piece.size,
        "external_link": url,
        "expiration": until.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if index + 1 < len(pieces):
        found["next_chunk_index"] = index + 1
        found["next_chunk_internal_link"] = f"{PATH}/{identifier}/result/chunks/{index + 1}"
    return found
