"""The verbs of the service (`api.Service`) over sessions, operations, admission and a pool of workers.

A statement passes through here as text: accepted, queued for a slot, handed to a worker with a snapshot of its session, its
rows kept until they are fetched. One housekeeping thread enforces statement timeouts and lets go of what nobody touches:

- an operation that has ended expires `operation_idle` seconds after the last status or fetch (its end counts as one);
- a session expires `session_idle` seconds after the last call for it or for one of its operations, but not while one of
  its operations runs: that one is bounded by the statement timeout.

Locks: the service's own one guards its tables and is never held while an operation, the admission or the pool is called.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from gateway import observability
from gateway.config import default_settings, normalise_setting
from gateway.config.session import STATEMENT_TIMEOUT, TIMEZONE
from gateway.engine.base import Failed, Job, Statement
from gateway.engine.fair import FEW
from gateway.engine.runs import Sink
from gateway.errors import DISK_FULL, CanceledError, GatewayError, ResourceError, ServerError, UserError
from gateway.history.recorder import Recorder
from gateway.history.records import Record
from gateway.service import accounting, purposes
from gateway.service.admission import Admission, Place
from gateway.service.api import (
    ExecuteRequest,
    Handle,
    MetadataRequest,
    OpenSessionRequest,
    OperationStatus,
    Orientation,
    Outcome,
    Page,
    Principal,
    ResultMetadata,
    SessionInfo,
    State,
)
from gateway.service.holdings import OPERATION, Holdings, free_in, weight
from gateway.service.housekeeping import Housekeeper
from gateway.service.operation import Operation, Run
from gateway.service.purposes import Purpose
from gateway.service.result_cache import Answer, ResultCache
from gateway.service.runtime import picture
from gateway.service.session import HandleTable, Normalise, Session, normalise_all
from gateway.service.settings import ServiceConfig
from gateway.worker_jobs import Runtime

_LONG_FETCH_MS = 10.0  # less is not worth to be written apart
_PATIENCE = 0.2  # seconds that statements have held all slots before others may begin beside them
_PLACES = 100  # one part in so many of all sessions is closed at once where there are too many
_LEFT_SECONDS = 30.0  # for which what a client has closed and reads on stays untouched
_READ_LATELY_SECONDS = 5.0  # a client that fetched within this time is still reading: a drain waits for it


class Pool(Protocol):
    """What the service needs of `engine.pool.WorkerPool`."""

    def submit(self, job: Job, sink: Sink) -> Run: ...

    def stop(self) -> None: ...


class GatewayService:
    """`api.Service`. Call `start` once, `stop` at the end; `drain` before it lets running statements end."""

    def __init__(
        self,
        pool: Pool,
        config: ServiceConfig,
        normalise: Normalise = normalise_setting,
        clock: Callable[[], float] = time.monotonic,
        recorder: Recorder[Record] | None = None,
        sees_all: Callable[[str], bool] = lambda user: False,
    ) -> None:
        self._pool = pool
        self._recorder = recorder
        self._sees_all = sees_all
        self._config = config
        self._normalise = normalise
        self._clock = clock
        self._time_zone = default_settings()[TIMEZONE]
        self._admission = Admission(
            config.slots, config.queue_limit, config.reserved_slots, config.lane, _PATIENCE, clock
        )
        self._lock = threading.Lock()
        self._sessions: HandleTable[Session] = HandleTable(
            "INVALID_SESSION_HANDLE", "Invalid SessionHandle: SessionHandle [{}]"
        )
        self._operations: HandleTable[Operation] = HandleTable(
            "INVALID_OPERATION_HANDLE", "Invalid OperationHandle: OperationHandle [{}]"
        )
        self._active: set[Operation] = set()
        self._results = ResultCache(config.results_limit)
        self._holdings = Holdings(config.kept_limit)
        self._disk = Holdings(config.spool_limit, partial(free_in, config.spool_directory))
        self._open: Counter[Principal] = Counter()  # sessions
        self._housekeeper = Housekeeper(self.sweep, lambda: accounting.measure(self._operations.values()), clock)
        self._draining = False
        self._stopping = False

    def start(self) -> None:
        """Start the housekeeping thread."""
        self._housekeeper.start()

    def drain(self, timeout: float) -> bool:
        """Accept nothing new and wait until running statements have ended and results in use are read; whether they are."""
        self._draining = True
        end = time.monotonic() + timeout
        while not self._stopping:
            if not self._busy():
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(0.05, left))
        return False

    def stop(self) -> None:
        """End everything: sessions, operations, the pool. Idempotent."""
        self._draining = self._stopping = True
        for session in self._sessions.values():
            self._close_session(session)
        self._pool.stop()
        self._housekeeper.stop()

    def _busy(self) -> bool:
        if self._active:
            return True
        lately = self._clock() - _READ_LATELY_SECONDS
        return any(o.unread_rows and o.touched > lately for o in self._operations.values())

    def open_session(self, request: OpenSessionRequest) -> SessionInfo:
        """See `api.Service`. Unknown settings are left out and logged; a schema need not exist."""
        self._check_accepting()
        settings, unknown = normalise_all(request.settings, self._normalise)
        session = Session(
            request.principal,
            request.protocol,
            self._catalog(request.catalog),
            request.schema or self._config.default_schema,
            settings,
            request.client,
            given=self._config.session_settings,
            for_one=request.for_one,
        )
        session.touched = self._clock()
        session.held = session.weight
        self._make_room(session.owner, session.held)
        if self._has_no_place(session.owner):
            self._make_places(session.owner)
        with self._lock:
            if self._has_no_place(session.owner):
                raise ResourceError(
                    "RESOURCE_EXHAUSTED",
                    f"{self._config.session_limit} sessions are open, no more can be.",
                    retryable=True,
                )
            self._sessions.put(session.handle, session.owner, session)
            self._holdings.add(session.owner.name, session.held)
            self._open[session.owner] += 1
        observability.counter("sessions_opened_total")
        observability.gauge("sessions_open", len(self._sessions))
        observability.log(
            "session opened",
            session_id=session.id,
            user=request.principal.name,
            client=request.client or None,
            left_out=sorted(unknown) or None,
        )
        return self._info(session)

    def close_session(self, principal: Principal, session: Handle) -> None:
        """See `api.Service`. While the service stops, a session that is gone is closed, which is what was asked for."""
        found = self._sessions.find(session, principal)
        if found is not None:
            self._close_session(found)
        elif not self._stopping:
            raise self._sessions.missing(session)

    def session_info(self, principal: Principal, session: Handle) -> SessionInfo:
        """See `api.Service`."""
        return self._info(self._session(principal, session))

    def _session(self, principal: Principal, handle: Handle) -> Session:
        session = self._sessions.get(handle, principal)
        session.touched = self._clock()
        return session

    def _info(self, session: Session) -> SessionInfo:
        return session.info(self._time_zone, TIMEZONE)

    def _catalog(self, asked: str | None) -> str:
        """The catalog in its own spelling. Raises UserError for one that does not exist."""
        if not asked:
            return self._config.default_catalog
        if not self._config.catalogs:
            return asked
        for name in self._config.catalogs:
            if name.lower() == asked.lower():
                return name
        raise UserError("NO_SUCH_CATALOG_EXCEPTION", f"Catalog '{asked}' was not found.")

    def _close_session(self, session: Session) -> None:
        with self._lock:
            if self._sessions.pop(session.handle) is None:
                return
            self._holdings.add(session.owner.name, -session.held)
            session.held = 0
            self._open[session.owner] -= 1
            if not self._open[session.owner]:
                del self._open[session.owner]
            handles = list(session.operations)
            session.operations.clear()
        for handle in handles:
            self._let_go(handle)
        observability.gauge("sessions_open", len(self._sessions))
        observability.log("session closed", session_id=session.id)

    def close_all_but(self, stays: Callable[[str], bool]) -> int:
        """Close the sessions of all whom `stays` is false of, with what they run and have not read; how many."""
        gone = [session for session in self._sessions.values() if not stays(session.owner.name)]
        for session in gone:
            self._close_session(session)
        return len(gone)

    def execute(self, principal: Principal, session: Handle, request: ExecuteRequest) -> OperationStatus:
        """See `api.Service`. Whether the call waits is `wait_seconds` alone."""
        home = self._session(principal, session)
        self._check_accepting()
        self._check_length(request.statement)
        overlay, unknown = normalise_all(request.conf_overlay, self._normalise)
        if unknown:
            observability.log("settings left out", "debug", session_id=home.id, left_out=sorted(unknown))
        size = weight((request.statement, request.parameters, overlay))
        timeout = self._timeout(home, overlay, request.timeout_seconds)
        purpose = purposes.statement(home, request, overlay, lambda: self.picture(principal.name), self._config.files)
        return self._accept(home, purpose, size, timeout, request.wait_seconds)

    def picture(self, user: str) -> Runtime:
        """What is open and runs, as far as a user may see it: `system.runtime`."""
        with self._lock:
            active = list(self._active)
        seen = None if self._sees_all(user) else user
        found = picture(self._sessions.values(), active, seen, self._clock())
        return found if seen is not None else replace(found, settings=self._config.told)

    def metadata(self, principal: Principal, session: Handle, request: MetadataRequest) -> OperationStatus:
        """See `api.Service`."""
        home = self._session(principal, session)
        self._check_accepting()
        purpose = purposes.metadata(home, request)
        return self._accept(home, purpose, weight(request), self._timeout(home, {}, 0), request.wait_seconds)

    def operation_status(self, principal: Principal, operation: Handle, wait_seconds: float) -> OperationStatus:
        """See `api.Service`."""
        found = self._operation(principal, operation)
        found.wait(wait_seconds)
        self._touch(found)
        return found.status()

    def result_metadata(self, principal: Principal, operation: Handle) -> ResultMetadata:
        """See `api.Service`."""
        found = self._operation(principal, operation)
        metadata = found.metadata()
        self._touch(found)
        return metadata

    def fetch(
        self,
        principal: Principal,
        operation: Handle,
        orientation: Orientation,
        max_rows: int,
        max_bytes: int | None,
        start_row_offset: int | None,
    ) -> Page:
        """See `api.Service` and `Operation.fetch`."""
        found = self._operation(principal, operation)
        start = time.perf_counter()
        page = found.fetch(orientation, max_rows, max_bytes, start_row_offset, self._config.pages)
        self._touch(found)
        found.times.fetch(found.touched)
        if found.left and not found.is_read_on:
            self._forget(found)
        observability.histogram("operation_seconds", time.perf_counter() - start, phase="fetch")
        return page

    def named_session(self, principal: Principal, identifier: str) -> Handle:
        """See `api.Service`."""
        return self._sessions.named(identifier, principal)

    def named_operation(self, principal: Principal, identifier: str) -> Handle:
        """See `api.Service`."""
        return self._operations.named(identifier, principal)

    def outcome(self, principal: Principal, operation: Handle) -> Outcome:
        """See `api.Service`."""
        return self._operation(principal, operation).outcome()

    def piece(self, operation: bytes, start_row: int, rows: int, size: int | None = None) -> Page:
        """See `api.Service`."""
        found = self._operations.of(operation)
        self._touch(found)
        page = found.piece(start_row, rows, sys.maxsize if size is None else size)
        self._touch(found)
        found.times.fetch(found.touched)
        return page

    def owner_of(self, operation: bytes) -> str:
        """See `api.Service`."""
        return self._operations.of(operation).session.owner.name

    def log_lines(self, principal: Principal, operation: Handle, most: int, first: bool) -> Sequence[str]:
        """See `api.Service`."""
        return self._operation(principal, operation).log.read(most, first=first)

    def cancel(self, principal: Principal, operation: Handle) -> None:
        """See `api.Service`. Without effect on an operation that has ended or is closed."""
        found = self._operations.find(operation, principal)
        if found is None:
            if self._operations.was_here(operation, principal):
                return  # closed with its direct results, of which the thread that cancels may not know yet
            raise self._operations.missing(operation)
        self._touch(found)
        found.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "The statement was cancelled."))

    def kill(self, principal: Principal, identifier: str) -> None:
        """See `api.WholeResults`."""
        found = self._operations.known(identifier)
        name = principal.name
        if found is None or not (found.session.owner.name == name or self._sees_all(name)):
            raise self._operations.unknown(identifier)
        killed = found.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", f"The statement was killed by {name}."))
        observability.log("statement killed", statement_id=found.id, by=name, ended_before=not killed)

    def close_operation(self, principal: Principal, operation: Handle) -> None:
        """See `api.Service`."""
        found = self._operations.find(operation, principal)
        if found is not None:
            self._touch(found)
            found.left = found.is_read_on
            if not found.left:
                self._forget(found)

    def _forget(self, operation: Operation) -> None:
        with self._lock:
            operation.session.operations.discard(operation.handle)
        self._let_go(operation.handle)

    def _operation(self, principal: Principal, handle: Handle) -> Operation:
        operation = self._operations.get(handle, principal)
        self._touch(operation)
        return operation

    def _touch(self, operation: Operation) -> None:
        operation.touched = operation.session.touched = self._clock()

    def _let_go(self, handle: Handle) -> None:
        operation = self._operations.pop(handle)
        if operation is not None:
            operation.close()
            fetched_ms = operation.times.fetching * 1000
            if self._recorder is not None and fetched_ms >= _LONG_FETCH_MS and not operation.purpose.is_metadata:
                self._recorder.add_later(operation.id, fetched_ms)
            with self._lock:
                self._holdings.add(operation.session.owner.name, -operation.held)
                self._disk.add(operation.session.owner.name, -operation.on_disk)
                operation.held = operation.on_disk = 0
            if operation.session.for_one:
                self._close_session(operation.session)

    def _make_room(self, owner: Principal, size: int) -> None:
        """Let go of a caller's oldest results until `size` bytes more can be kept. Raises ResourceError if they cannot."""
        if not self._fits(self._holdings, owner, size):
            raise ResourceError(
                "RESOURCE_EXHAUSTED",
                f"Sessions and statements of {owner.name} take {self._holdings.share >> 20} MiB of memory, or those of all "
                "twice as much: close some, or wait until statements have ended.",
                retryable=True,
            )

    def _fits(self, holdings: Holdings, owner: Principal, size: int) -> bool:
        """Whether `size` bytes more of a caller can be kept, without its oldest results if need be."""
        if holdings.fits(owner.name, size):
            return True
        large = [o for o in self._operations.values() if o.on_disk or holdings is not self._disk]
        ended = [o for o in large if o not in self._active and o.session.owner == owner]
        for operation in sorted(ended, key=lambda o: o.touched):
            self._expire(operation)
            if holdings.fits(owner.name, size + holdings.share // 4):
                break
        return holdings.fits(owner.name, size)

    def _has_no_place(self, owner: Principal) -> bool:
        """Whether a caller may have no more sessions."""
        limit = self._config.session_limit
        return len(self._sessions) >= limit and self._open[owner] >= limit // FEW

    def _make_places(self, owner: Principal) -> None:
        """Let go of a caller's oldest results that have sessions of their own: of each statement that was sent by itself."""
        own = [o for o in self._operations.values() if o.session.for_one and o.session.owner == owner]
        ended = sorted((o for o in own if o not in self._active), key=lambda o: o.touched)
        for operation in ended[: max(1, self._config.session_limit // _PLACES)]:
            self._expire(operation)

    def _accept(
        self, session: Session, purpose: Purpose, size: int, timeout: float | None, wait: float
    ) -> OperationStatus:
        self._make_room(session.owner, OPERATION + size)
        operation = Operation(session, purpose, self, self._clock, timeout, self._config.spool_directory)
        place = Place(session.id, lambda: self._run(operation), purpose.is_metadata, session.owner.name)
        operation.place = place
        with self._lock:
            # Checked again with the lock held: a session that is being closed must not get a new operation.
            self._sessions.get(session.handle, session.owner)
            session.operations.add(operation.handle)
            session.active += 1
            self._active.add(operation)
            self._operations.put(operation.handle, session.owner, operation)
            operation.held = OPERATION + size
            self._holdings.add(session.owner.name, operation.held)
        answer = self._answered(operation)
        if answer is not None:
            operation.replay(answer)
            return operation.status()
        try:
            self._admission.enter_place(place)
        except ResourceError as error:
            operation.stop(State.ERROR, error)
            self.close_operation(session.owner, operation.handle)
            raise
        operation.queue()
        if operation.deadline is not None:
            self._housekeeper.expect(operation.deadline)
        if place.waiting:
            self._housekeeper.expect(self._clock() + _PATIENCE)
        operation.wait(wait)
        return operation.status()

    def _answered(self, operation: Operation) -> Answer | None:
        """The answer that was given to the same statement before, if it holds."""
        purpose = operation.purpose
        if purpose.is_metadata or purpose.byte_limit is not None:
            return None
        job = purpose.make_job(operation.id)
        key = job.key if isinstance(job, Statement) else None
        return None if key is None else self._results.find(key)

    def _run(self, operation: Operation) -> None:
        """The operation has a slot."""
        try:
            job = operation.begin()
            if job is None:
                self.stopped(operation)
                return
            operation.attach(self._pool.submit(job, operation), job)
        except GatewayError as error:
            operation.event(Failed(error))
        except Exception as error:  # noqa: BLE001 - this may be the thread of another operation, which must not suffer
            observability.log("statement cannot start", "error", statement_id=operation.id, error=repr(error))
            operation.event(Failed(ServerError("INTERNAL_ERROR", "The statement could not be started.")))

    def ended(self, operation: Operation) -> None:
        """An operation has ended: see `operation.Listener`."""
        with self._lock:
            if operation not in self._active:
                return
            if self._recorder is not None and not operation.purpose.is_metadata:  # first: it always is one of both
                self._recorder.add(accounting.record_of(operation))
            self._active.discard(operation)
            operation.session.active -= 1
        operation.session.touched = self._clock()
        accounting.report(operation, self._config.slow_statement)
        answer = None if operation.key is None else operation.answer()
        if answer is not None and operation.key is not None:
            self._results.keep(operation.key, answer)
        changed = operation.finished is not None and bool(operation.finished.changes)
        operation.forget_request()
        self._weigh(operation, changed=changed)

    def _weigh(self, operation: Operation, *, changed: bool) -> None:
        """It has ended, and may have changed its session: both keep other things now."""
        kept = operation.weight + (self._holdings.file if operation.bytes[1] else 0)
        session = operation.session
        size = session.weight if changed else session.held
        with self._lock:
            if operation.held:  # else nobody has it any more
                self._holdings.add(session.owner.name, kept - operation.held)
                operation.held = kept
                self._weigh_disk(operation)
            if session.held and changed:
                self._holdings.add(session.owner.name, size - session.held)
                session.held = size

    def _weigh_disk(self, operation: Operation) -> None:
        """With the lock held: what it has on disk has changed."""
        more = operation.bytes[1] - operation.on_disk
        self._disk.add(operation.session.owner.name, more)
        operation.on_disk += more

    def grown(self, operation: Operation) -> None:
        """More of its rows are on disk: see `operation.Listener`."""
        owner = operation.session.owner
        with self._lock:
            if operation.held:  # else nobody has it any more
                self._weigh_disk(operation)
        if not self._fits(self._disk, owner, 0):
            taken = f"Results of {owner.name} take more than {self._disk.share >> 20} MiB of disk"
            text = (
                f"{taken}, or those of all more than twice as much (--spool-limit, or the space there is): close some, or ask "
                "for fewer rows."
            )
            operation.stop(State.ERROR, ResourceError("RESOURCE_EXHAUSTED", text, sqlstate=DISK_FULL, retryable=True))

    def stopped(self, operation: Operation) -> None:
        """No worker is busy with it any more: see `operation.Listener`."""
        if operation.place is not None:
            self._admission.release(operation.place)

    def kills(self, operation: Operation, identifier: str) -> None:
        """See `operation.Listener`."""
        self.kill(operation.session.owner, identifier)

    def yielded(self, operation: Operation) -> None:
        """See `operation.Listener`."""
        assert operation.place is not None
        self._admission.put_back(operation.place)

    def _timeout(self, session: Session, overlay: Mapping[str, str], asked: int) -> float | None:
        """Seconds: the request's, else the session's, else the server's; None for no limit."""
        own = overlay.get(STATEMENT_TIMEOUT) or session.settings().get(STATEMENT_TIMEOUT) or "0"
        seconds = max(0, asked) or int(own) or self._config.statement_timeout
        return seconds or None

    def _check_accepting(self) -> None:
        if self._draining:
            raise ServerError("SERVER_SHUTTING_DOWN", "The server is shutting down.", retryable=True)

    def _check_length(self, text: str) -> None:
        limit = self._config.max_statement
        if len(text) * 4 > limit and len(text.encode("utf-8", "surrogatepass")) > limit:
            raise ResourceError(
                "STATEMENT_TOO_LARGE", f"The statement is longer than the {limit} bytes that it may be."
            )

    def sweep(self) -> float:
        """End what is over its time, let go of what has expired; seconds until the next statement timeout (or inf)."""
        now = self._clock()
        nearest = self._admission.look()
        with self._lock:
            active = list(self._active)
        for operation in active:
            if operation.deadline is None:
                continue
            if operation.deadline <= now:
                operation.stop(State.TIMEDOUT, _timed_out(operation))
            else:
                nearest = min(nearest, operation.deadline - now)
        for operation in self._operations.values():
            untouched = now - operation.touched
            if operation.left and untouched > _LEFT_SECONDS:
                self._forget(operation)
            elif operation not in self._active and untouched > self._config.operation_idle:
                self._expire(operation)
        for session in self._sessions.values():
            if session.active == 0 and now - session.touched > self._config.session_idle:
                observability.log("session expired", session_id=session.id)
                self._close_session(session)
        return nearest

    def _expire(self, operation: Operation) -> None:
        observability.log("operation expired", statement_id=operation.id, session_id=operation.session.id)
        self._forget(operation)


def _timed_out(operation: Operation) -> ResourceError:
    return ResourceError(
        "QUERY_EXECUTION_TIMEOUT_EXCEEDED",
        f"The statement was stopped because it did not end within {operation.timeout or 0:g} seconds.",
    )
