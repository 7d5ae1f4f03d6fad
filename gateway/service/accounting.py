"""Figures and the log line of operations."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gateway import observability
from gateway.errors import ServerError
from gateway.history.details import details_of
from gateway.history.records import LONGEST_MESSAGE, Record
from gateway.service.api import State
from gateway.service.operation import Operation

# Facts of finished statements that are metrics too: times in milliseconds, and numbers.
_Fact = tuple[str, str, Mapping[str, str]]
_TIMES: tuple[_Fact, ...] = (
    ("parse_ms", "operation_seconds", {"phase": "parse"}),
    ("catalog_ms", "catalog_seconds", {"call": "tables"}),
)
_COUNTS: tuple[_Fact, ...] = (
    ("snapshot_hits", "cache_hits_total", {"cache": "snapshot"}),
    ("spilled_bytes", "spill_bytes_total", {}),
)


def report(operation: Operation, slow_seconds: float) -> None:
    """One log line and the metrics of an operation that has just ended."""
    times, planned, finished = operation.times, operation.planned, operation.finished
    ended = times.ended if times.ended is not None else times.accepted
    admitted = times.admitted if times.admitted is not None else ended
    bound = times.planned if times.planned is not None else ended
    observability.histogram("operation_seconds", admitted - times.accepted, phase="queue")
    if times.admitted is not None:
        observability.histogram("queue_wait_seconds", admitted - times.accepted)
    observability.histogram("operation_seconds", bound - admitted, phase="plan")
    observability.histogram("operation_seconds", ended - bound, phase="execute")
    facts = finished.facts if finished is not None else {}
    for fact, metric, labels in _TIMES:
        if fact in facts:
            observability.histogram(metric, facts[fact] / 1000, **labels)
    for fact, metric, labels in _COUNTS:
        if facts.get(fact):
            observability.counter(metric, facts[fact], **labels)
    if operation.purpose.is_metadata:
        observability.histogram("catalog_seconds", ended - admitted, call=operation.purpose.operation_type.lower())
    if times.first_row is not None:
        observability.histogram("first_row_seconds", times.first_row - times.accepted)
    kind = planned.statement_type if planned is not None else operation.purpose.operation_type
    ran = planned or operation.handover  # an error may come before it is planned
    engine = ran.engine if ran is not None else "none"
    observability.counter("statements_total", statement_type=kind, engine=engine, state=operation.ended_as.value)
    slow = ended - times.accepted >= slow_seconds
    level = "warning" if slow or isinstance(operation.error, ServerError) else "info"
    if not observability.is_logged(level):
        return
    observability.log(
        "slow statement" if slow else "statement",
        level,
        statement_id=operation.id,
        session_id=operation.session.id,
        user=operation.session.owner.name,
        state=operation.ended_as.value,
        statement_type=kind,
        engine=engine,
        reason=ran.reason if ran is not None else None,
        rows=operation.rows,
        queue_ms=round((admitted - times.accepted) * 1000, 3),
        total_ms=round((ended - times.accepted) * 1000, 3),
        condition=operation.error.condition if operation.error is not None else None,
        sql=operation.purpose.text or None,
        facts={name: value for name, value in facts.items() if not isinstance(value, list)} or None,
    )


def record_of(operation: Operation) -> Record:
    """What the history keeps of a statement that has just ended."""
    times, planned, finished, error = operation.times, operation.planned, operation.finished, operation.error
    ended = times.ended if times.ended is not None else times.accepted
    admitted = times.admitted if times.admitted is not None else ended
    total_ms = (ended - times.accepted) * 1000
    facts = finished.facts if finished is not None else {}
    ran = planned or operation.handover
    at, to = error.span if error is not None and error.span is not None else (None, None)
    return Record(
        statement_id=operation.id,
        session_id=operation.session.id,
        user=operation.session.owner.name,
        client=operation.session.client,
        statement_type=planned.statement_type if planned is not None else None,
        engine=ran.engine if ran is not None else None,
        reason=ran.reason if ran is not None else None,
        state=operation.ended_as.value,
        condition=error.condition if error is not None else None,
        sqlstate=error.sqlstate if error is not None else None,
        message=error.message[:LONGEST_MESSAGE] if error is not None else None,
        text=operation.purpose.text,
        started_ms=times.started_ms,
        ended_ms=times.started_ms + round(total_ms),  # by the clock that does not jump
        total_ms=total_ms,
        queue_ms=(admitted - times.accepted) * 1000,
        parse_ms=facts.get("parse_ms"),
        compile_ms=(times.planned - admitted) * 1000 if times.planned is not None else None,
        execute_ms=(ended - times.planned) * 1000 if times.planned is not None else None,
        rows=operation.rows,
        written_rows=finished.modified_rows if finished is not None else None,
        read_bytes=facts.get("bytes_planned"),
        files_kept=facts.get("files_kept"),
        files_total=facts.get("files_total"),
        spilled_bytes=facts.get("spilled_bytes"),
        result_bytes=sum(operation.bytes),
        cached=planned is not None and planned.engine == "cache",
        details=details_of(facts, operation.purpose.parameters),
        origin_id=facts.get("origin_id"),
        error_at=at,
        error_to=to,
    )


def measure(operations: Collection[Operation]) -> None:
    """Gauges over all operations that are kept."""
    counts = dict.fromkeys(State, 0)
    for operation in operations:
        counts[operation.state] += 1
    for state, count in counts.items():
        observability.gauge("operations", count, state=state.value)
    observability.gauge("spool_bytes", sum(sum(o.bytes) for o in operations))
