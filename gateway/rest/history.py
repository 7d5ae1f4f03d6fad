"""The history of statements as the Query History API 2.0 lists it, the newest first."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.history.recorder import Recorder
from gateway.history.records import COLUMNS, Record
from gateway.history.search import MOST_VALUES, Condition, History
from gateway.history.told import STATUSES, error_of, kind_of, status_of
from gateway.protocol.handler import Caller
from gateway.rest import fields
from gateway.rest.call import Asked, Path

_PAGE, _LARGEST_PAGE = 100, 1000
_FLUSH_SECONDS = 0.5  # what has just ended is told, where the file keeps up
_WAREHOUSE = "gateway"
_TOKEN = re.compile(r"(-?\d{1,18})\.(\d{1,18})", re.ASCII)
_LONGEST_TOKEN = 64
_STATES = (*STATUSES, "QUEUED", "RUNNING", "STARTED", "COMPILING", "COMPILED")  # only what has ended is in the history
_KINDS = (
    "ALTER ANALYZE COPY CREATE DELETE DESCRIBE DROP EXPLAIN GRANT INSERT MERGE OPTIMIZE REFRESH REPLACE REVOKE SELECT SET "
    "SHOW TRUNCATE UPDATE USE"
)
_RANGE: fields.Fields = {"start_time_ms": fields.moment, "end_time_ms": fields.moment}
_FILTER: fields.Fields = {
    "query_start_time_range": fields.record(_RANGE),
    "statement_ids": fields.each(fields.text),
    "statuses": fields.each(fields.one_of(*_STATES)),
    "user_ids": fields.each(fields.name_or_number),
    "warehouse_ids": fields.each(fields.text),  # any is this gateway
}
QUERIES: fields.Fields = {
    "filter_by": fields.record(_FILTER),
    "include_metrics": fields.flag,
    "max_results": fields.at_most(_LARGEST_PAGE),
    "page_token": fields.text,
}


@dataclass(frozen=True, slots=True)
class HistoryApi:
    """The calls; see `statements.StatementApi`."""

    history: History
    recorder: Recorder | None = None

    def list_queries(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """List statements that have ended: the caller's own, or all for who may see them."""
        conditions = _conditions(asked["filter_by"] or {})
        before = None if not asked["page_token"] else _place(asked["page_token"])
        if self.recorder is not None:
            self.recorder.flush(_FLUSH_SECONDS)
        size = asked["max_results"] or _PAGE
        columns = (*COLUMNS, "id")
        pieces = self.history.rows(caller.principal.name, columns, conditions, before=before, limit=size + 1)
        rows = [row for piece in pieces for row in piece]
        told = [_told(Record(*row[:-1]), metrics=bool(asked["include_metrics"])) for row in rows[:size]]
        found: dict[str, Any] = {"res": told, "has_next_page": len(rows) > size}
        if len(rows) > size:
            last = rows[size - 1]
            found["next_page_token"] = _token(last[columns.index("started_ms")], last[-1])
        return found


def _conditions(asked: Mapping[str, Any]) -> list[Condition]:
    found = []
    times = asked.get("query_start_time_range") or {}
    for name, operator in (("start_time_ms", ">="), ("end_time_ms", "<=")):
        if times.get(name) is not None:
            found.append(Condition("started_ms", operator, times[name]))
    states = asked.get("statuses")
    if states:
        found.append(Condition("state", "IN", [state for status in states for state in STATUSES.get(status, ())]))
    for name, column in (("statement_ids", "statement_id"), ("user_ids", "user")):
        values = asked.get(name)
        if values:
            if len(values) > MOST_VALUES:
                raise fields.invalid(f"{name} has more than {MOST_VALUES} elements")
            found.append(Condition(column, "IN", values))
    return found


def _token(started_ms: int, identifier: int) -> str:
    return base64.urlsafe_b64encode(f"{started_ms}.{identifier}".encode()).decode().rstrip("=")


def _place(token: str) -> tuple[int, int]:
    """The place that a page token names. Raises RestError."""
    try:
        text = (
            base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
            if len(token) <= _LONGEST_TOKEN
            else b""
        )
        found = _TOKEN.fullmatch(text.decode("ascii"))
    except (binascii.Error, ValueError):
        found = None
    if found is None:
        raise fields.invalid("page_token is none that was given here")
    return int(found[1]), int(found[2])


def _told(record: Record, *, metrics: bool) -> dict[str, Any]:
    kind = kind_of(record.statement_type)
    failed = status_of(record.state) == "FAILED"
    told = {
        "query_id": record.statement_id,
        "status": status_of(record.state),
        "query_text": record.text,
        "query_start_time_ms": record.started_ms,
        "execution_end_time_ms": record.ended_ms,
        "query_end_time_ms": record.ended_ms,
        "user_name": record.user,
        "executed_as_user_name": record.user,
        "endpoint_id": _WAREHOUSE,
        "warehouse_id": _WAREHOUSE,
        "session_id": record.session_id,
        "client_application": record.client or None,
        "statement_type": kind if kind in _KINDS.split() else "OTHER",
        "rows_produced": record.rows,
        "duration": round(record.total_ms),
        "error_message": error_of(record.condition, record.sqlstate, record.message) if failed else None,
        "is_final": True,
    }
    if metrics:
        told["metrics"] = _known(_metrics(record))
    return _known(told)


def _metrics(record: Record) -> dict[str, Any]:
    pruned = None
    if record.files_kept is not None and record.files_total is not None:
        pruned = record.files_total - record.files_kept
    return {
        "total_time_ms": round(record.total_ms),
        "compilation_time_ms": _whole(record.compile_ms),
        "execution_time_ms": _whole(record.execute_ms),
        "read_bytes": record.read_bytes,
        "read_files_count": record.files_kept,
        "pruned_files_count": pruned,
        "rows_produced_count": record.rows,
        "spill_to_disk_bytes": record.spilled_bytes,
        "result_from_cache": bool(record.cached),
    }


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


def _known(fields_: Mapping[str, Any]) -> dict[str, Any]:
    """What is not known is left out."""
    return {name: value for name, value in fields_.items() if value is not None}
