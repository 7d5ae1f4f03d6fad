"""A picture of what is open and runs, for the statements that ask for it by name.

Nothing is locked for it: operations and sessions are read as they are at some moment of the taking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from gateway.history.redaction import redacted
from gateway.observability import mask
from gateway.service.operation import Operation
from gateway.service.session import Session
from gateway.worker_jobs import OpenSession, RunningOperation, Runtime

# A thousand statements may be queued, and a picture is not to take long: texts are cut, and redacted once.
_LONGEST_TEXT = 4_096
_shown = lru_cache(1_000)(redacted)


def picture(sessions: Iterable[Session], operations: Iterable[Operation], user: str | None, now: float) -> Runtime:
    """The sessions, and those of `operations` that have not ended; of one user, None for all."""
    return Runtime(
        tuple(_session(s, now) for s in sessions if user is None or s.owner.name == user),
        tuple(_operation(o, now) for o in operations if user is None or o.session.owner.name == user),
    )


def _session(session: Session, now: float) -> OpenSession:
    return OpenSession(
        session_id=session.id,
        user=session.owner.name,
        client_application=session.client,
        current_catalog=session.catalog,
        current_schema=session.schema,
        settings=sorted(_masked(session.settings()).items()),
        operations=session.active,
        idle_ms=_milliseconds(now - session.touched),
    )


def _masked(settings: Mapping[str, str]) -> dict[str, str]:
    shown = mask(dict(settings))
    return {str(key): str(value) for key, value in shown.items()} if isinstance(shown, dict) else {}


def _operation(operation: Operation, now: float) -> RunningOperation:
    times, planned, progress = operation.times, operation.planned, operation.progress
    ran = planned or operation.handover
    purpose = operation.purpose
    return RunningOperation(
        statement_id=operation.id,
        session_id=operation.session.id,
        user=operation.session.owner.name,
        client_application=operation.session.client,
        operation_type=purpose.operation_type,
        state=operation.state.value,
        statement_text=_shown(purpose.text[:_LONGEST_TEXT]),
        statement_type=planned.statement_type if planned is not None else None,
        engine=ran.engine if ran is not None else None,
        reason=ran.reason if ran is not None else None,
        start_time=times.started_ms * 1000,
        duration_ms=_milliseconds(now - times.accepted),
        waiting_at_capacity_duration_ms=_milliseconds((times.admitted or now) - times.accepted),
        progress=progress.fraction,
        progress_text=operation.stage,
        produced_rows=operation.rows,
        result_bytes=sum(operation.bytes),
    )


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))
