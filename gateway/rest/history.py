"""The history of statements as the Query History API 2.0 lists it, the newest first."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from gateway.history.recorder import Recorder
from gateway.history.records import STATEMENTS, Record
from gateway.history.search import MOST_VALUES, Condition, History, values_checked
from gateway.history.told import STATUSES, error_of, kind_of, status_of
from gateway.protocol.handler import Caller
from gateway.protocol.turns import Turns
from gateway.rest import fields
from gateway.rest.call import Asked, Path
from gateway.worker_jobs import Runtime

_PAGE, _LARGEST_PAGE = 100, 1000
_PAGE_CHARACTERS = 4 << 20  # of texts, after which a page ends early
SEARCH_SECONDS = 10.0  # many may search, and the front process has other things to do
_READ_AT_ONCE = 32  # rows, each with a text of up to 64 Ki characters
_TEXTS = ("text", "message", "client", "reason")
Row = tuple[Any, ...]
_FLUSH_SECONDS = 0.5  # what has just ended is told, where the file keeps up
_WAREHOUSE = "gateway"
_TOKEN = re.compile(r"(-?\d{1,18})\.(\d{1,18})", re.ASCII)
_LONGEST_TOKEN = 64
_RUNNING = {"RUNNING": "RUNNING"}  # other states before the end are those of a queue
_STATES = (*STATUSES, "QUEUED", "RUNNING", "STARTED", "COMPILING", "COMPILED")
_ASKED = tuple(c for c in STATEMENTS.columns if c != "details")  # which is the last, and long
_START = (10**17, 0)  # a place before all that has ended
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
    recorder: Recorder[Record] | None = None
    picture: Callable[[str], Runtime] = lambda user: Runtime((), ())
    turns: Turns = field(default_factory=Turns)

    def list_queries(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """List statements, what runs first: the caller's own, or all for who may see them."""
        user, wanted = caller.principal.name, asked["filter_by"] or {}
        conditions = _conditions(wanted)
        before = None if not asked["page_token"] else _place(asked["page_token"])
        size = asked["max_results"] or _PAGE
        columns = (*_ASKED, "id")
        with self.turns.turn(user):
            running = [] if before is not None else _running(self.picture(user), wanted)[:size]
        if self.recorder is not None:
            self.recorder.flush(_FLUSH_SECONDS)
        left = size - len(running)
        with self.turns.turn(user), values_checked():
            rows, has_more = page(self.history, user, columns, conditions, before, left)
        with values_checked():
            ended = [_told(Record(*row[:-1]), metrics=bool(asked["include_metrics"])) for row in rows]
        meanwhile = {query["query_id"] for query in ended}
        told = [query for query in running if query["query_id"] not in meanwhile] + ended
        found: dict[str, Any] = {"res": told, "has_next_page": has_more}
        if has_more:
            place = (rows[-1][columns.index("started_ms")], rows[-1][-1]) if rows else _START
            found["next_page_token"] = _token(*place)
        return found


def page(
    history: History,
    user: str,
    columns: Sequence[str],
    conditions: Sequence[Condition],
    before: tuple[int, int] | None,
    most: int,
) -> tuple[list[Row], bool]:
    """As many rows as a page holds, by their number and their texts, at least one; whether there are more.

    Raises ServerError HISTORY_UNREADABLE.
    """
    texts = [columns.index(name) for name in _TEXTS if name in columns]
    rows: list[Row] = []
    weight = 0
    found = history.rows(
        user, columns, conditions, before=before, limit=most + 1, at_once=_READ_AT_ONCE, seconds=SEARCH_SECONDS
    )
    with closing(found):
        for row in chain.from_iterable(found):
            if len(rows) == most or weight > _PAGE_CHARACTERS:
                return rows, True
            rows.append(row)
            weight += sum(len(row[at] or "") for at in texts)
    return rows, False


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


def _running(runtime: Runtime, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Statements that have not ended, the newest first, as far as a filter leaves them."""
    times = asked.get("query_start_time_range") or {}
    first, last = times.get("start_time_ms") or 0, times.get("end_time_ms")
    found = []
    for one in sorted(runtime.operations, key=lambda o: o.start_time, reverse=True):
        status, started_ms = _RUNNING.get(one.state, "QUEUED"), one.start_time // 1000
        values = {"statuses": status, "statement_ids": one.statement_id, "user_ids": one.user}
        if (
            not one.statement_text
            or started_ms < first
            or (last is not None and started_ms > last)
            or any(asked.get(name) and value not in asked[name] for name, value in values.items())
        ):
            continue
        kind = kind_of(one.statement_type)
        found.append(
            _known(
                {
                    **_common(one.statement_id, one.session_id, one.user, one.statement_text, kind),
                    "status": status,
                    "query_start_time_ms": started_ms,
                    "rows_produced": one.produced_rows,
                    "duration": one.duration_ms,
                    "is_final": False,
                }
            )
        )
    return found


def _common(statement_id: str, session_id: str, user: str, text: str, kind: str | None) -> dict[str, Any]:
    return {
        "query_id": statement_id,
        "session_id": session_id,
        "query_text": text,
        "user_name": user,
        "executed_as_user_name": user,
        "endpoint_id": _WAREHOUSE,
        "warehouse_id": _WAREHOUSE,
        "statement_type": kind if kind in _KINDS.split() else "OTHER",
    }


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
        **_common(record.statement_id, record.session_id, record.user, record.text, kind),
        "status": status_of(record.state),
        "query_start_time_ms": record.started_ms,
        "execution_end_time_ms": record.ended_ms,
        "query_end_time_ms": record.ended_ms,
        "client_application": record.client or None,
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
        "result_fetch_time_ms": _whole(record.fetch_ms),
        "spill_to_disk_bytes": record.spilled_bytes,
        "result_from_cache": bool(record.cached),
    }


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


def _known(fields_: Mapping[str, Any]) -> dict[str, Any]:
    """What is not known is left out."""
    return {name: value for name, value in fields_.items() if value is not None}
