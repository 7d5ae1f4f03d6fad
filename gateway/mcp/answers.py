"""What a tool answers: the state of a statement, the shape of its result and its rows, as values and as text.

Rows are objects as Databricks' server gives them (``{"values": [{"string_value": "1"}, {}]}``, where ``{}`` is NULL).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gateway.errors import GatewayError, ResourceError
from gateway.mcp.messages import Json
from gateway.protocol import pages
from gateway.rest import manifest
from gateway.service.api import Form, OperationStatus, Outcome, Principal, State, WholeResults
from gateway.service.session import text_of

MOST_ROWS = 10_000
MOST_BYTES = 1 << 20
_MOST_CELLS = 200_000
_MOST_READ = 16 * MOST_BYTES  # bytes of a result of which some rows are given

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "statement_id": {"type": "string"},
        "status": {
            "type": "object",
            "properties": {"state": {"type": "string", "enum": list(dict.fromkeys(manifest.STATES.values()))}},
            "required": ["state"],
        },
        "manifest": {"type": "object", "description": "Names and types of the columns; whether rows are left out."},
        "result": {"type": "object", "description": "The rows: values in the order of the columns, NULL without one."},
        "note": {"type": "string", "description": "What else there is to know."},
    },
    "required": ["status"],
}
_STILL = "The statement has not ended yet. Call poll_sql_result with its statement_id; do not send the statement again."


def refused(error: GatewayError, status: Json | None = None, statement_id: str | None = None) -> Json:
    """The answer to a call that failed: an error of the tool, which a model reads, none of the protocol."""
    shown: Json = {} if statement_id is None else {"statement_id": statement_id}
    state = status or {"state": "FAILED"}
    failed = {"error_code": manifest.code_of(error), "condition": error.condition, "message": error.message}
    shown["status"] = state | {"error": failed, "sql_state": error.sqlstate}
    return {"content": [_text(error.text())], "structuredContent": shown, "isError": True}


def told(service: WholeResults, principal: Principal, status: OperationStatus) -> Json:
    """The answer to a call about a statement."""
    identifier = text_of(status.handle)
    state: Json = {"state": manifest.STATES[status.state]}
    if status.error is not None:
        return refused(status.error, state, identifier)
    shown: Json = {"statement_id": identifier, "status": state}
    if status.state in (State.INITIALIZED, State.PENDING, State.RUNNING):
        return _given(shown | {"note": _STILL})
    try:
        outcome = service.outcome(principal, status.handle)
        return _given(shown | _result(service, status.handle.guid, outcome))
    except GatewayError as error:
        return refused(error, {"state": "FAILED"}, identifier)


def _given(shown: Json) -> Json:
    return {"content": [_text(json.dumps(shown, ensure_ascii=False))], "structuredContent": shown, "isError": False}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _result(service: WholeResults, operation: bytes, outcome: Outcome) -> Json:
    """``manifest``, ``result``, and what there is to say of rows that are left out."""
    files = outcome.metadata.options.files
    if files is None or files.form is not Form.JSON:
        raise ResourceError(
            "RESULT_TOO_LARGE", "The statement was not executed for tools: its result has another form."
        )
    if sum(piece.size for piece in outcome.pieces) > _MOST_READ:
        raise ResourceError("RESULT_TOO_LARGE", "The result is too large for a tool: ask for fewer rows.")
    shape = manifest.manifest(outcome)
    shape.pop("chunks", None)
    rows, there = [], outcome.rows if outcome.metadata.is_query else 0
    if there:
        columns = len(outcome.metadata.schema.fields)
        asked = min(there, MOST_ROWS, max(1, _MOST_CELLS // columns))
        data = b"".join(pages.file(service.piece(operation, 0, asked, 2 * MOST_BYTES)).parts)
        rows = _fitting(json.loads(data))
    truncated = outcome.truncated or len(rows) < there
    shape |= {"total_row_count": len(rows), "total_chunk_count": int(bool(rows)), "truncated": truncated}
    found: Json = {
        "manifest": shape,
        "result": {"row_count": len(rows), "data_array": rows} if shape["schema"].get("columns") else {},
    }
    if truncated:
        found["note"] = (
            f"Only the first {len(rows)} rows are given; there are more. Aggregate, filter, or select fewer columns."
        )
    return found


def _fitting(rows: Sequence[Sequence[str | None]]) -> list[Any]:
    """As many of the first rows, in the form of answers, as take `MOST_BYTES`."""
    found: list[Any] = []
    left = MOST_BYTES
    for row in rows:
        values = [{} if value is None else {"string_value": value} for value in row]
        left -= len(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
        if left < 0:
            break
        found.append({"values": values})
    return found
