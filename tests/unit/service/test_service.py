"""Sessions and statements through the verbs: handles, limits, cancels and expiry, with no engine behind."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.base import MetadataCall, SessionChange, Statement
from gateway.engine.pool import WorkerPool
from gateway.errors import (
    CanceledError,
    GatewayError,
    ProtocolError,
    ResourceError,
    ServerError,
    UnsupportedError,
    UserError,
)
from gateway.service.api import (
    ExecuteRequest,
    Handle,
    MetadataRequest,
    OpenSessionRequest,
    OperationStatus,
    Orientation,
    Principal,
    ResultOptions,
    SessionInfo,
    State,
)
from gateway.service.service import GatewayService
from gateway.service.session import text_of
from tests.live.fakes import FakeHandler, FakePool, FakeRun
from tests.unit.service.settings import service_config

ME, OTHER = Principal("me"), Principal("other")
WAIT = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class House:
    """A service over a pool that is moved by hand, with a clock that is too."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock = Clock()
        self.pool = FakePool()
        self.config = service_config(folder, **settings)
        self.service = GatewayService(self.pool, self.config, clock=self.clock)

    def open(self, principal: Principal = ME, **request: Any) -> SessionInfo:
        return self.service.open_session(OpenSessionRequest(principal, 0xA507, **request))

    def execute(self, session: SessionInfo, text: str = "select 1", **request: Any) -> Handle:
        return self.service.execute(ME, session.handle, ExecuteRequest(text, **request)).handle

    def status(self, operation: Handle) -> OperationStatus:
        return self.service.operation_status(ME, operation, 0)

    def run(self, operation: Handle) -> FakeRun:
        return next(r for r in self.pool.runs if r.job.statement_id == text_of(operation))

    def after(self, seconds: float) -> None:
        self.clock.now += seconds
        self.service.sweep()

    def fetch(self, operation: Handle) -> list[int]:
        page = self.service.fetch(ME, operation, Orientation.NEXT, 100, None, None)
        return [i for p in page.parts for i in p.batch["id"].to_pylist()]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def refused(call: Callable[[], object], kind: type[GatewayError] = GatewayError) -> GatewayError:
    with pytest.raises(kind) as raised:
        call()
    return raised.value


def test_a_session_starts_where_it_was_asked_to(house: House) -> None:
    info = house.open()
    assert (info.catalog, info.schema, info.time_zone, info.protocol) == ("main", "default", "Etc/UTC", 0xA507)
    info = house.open(schema="no_such_schema")
    assert (info.catalog, info.schema) == ("main", "no_such_schema")
    info = house.open(catalog="samples", schema="sales")
    assert (info.catalog, info.schema) == ("samples", "sales")


def test_catalogs_that_are_known_are_checked(tmp_path: Path) -> None:
    house = House(tmp_path, catalogs=("main", "samples"))
    assert house.open(catalog="Samples").catalog == "samples"
    error = refused(lambda: house.open(catalog="nope"), UserError)
    assert error.condition == "NO_SUCH_CATALOG_EXCEPTION" and "nope" in error.message


def test_settings_are_canonical_and_unknown_ones_left_out(house: House) -> None:
    info = house.open(
        settings={
            "spark.sql.session.timeZone": "Europe/Oslo",
            "QUERY_TAGS": "team:a",
            "unknown.key": "1",
        }
    )
    assert info.settings == {"timezone": "Europe/Oslo", "query_tags": "team:a"}
    assert info.time_zone == "Europe/Oslo"
    assert house.service.session_info(ME, info.handle) == info
    assert refused(lambda: house.open(settings={"timezone": "Mars/Base"}), UserError).condition.startswith(
        "INVALID_CONF_VALUE"
    )
    refused(lambda: house.open(settings={"ansi_mode": "false"}), UnsupportedError)


def test_sessions_are_bounded(tmp_path: Path) -> None:
    house = House(tmp_path, session_limit=2)
    first = house.open()
    house.open()
    assert refused(house.open, ResourceError).retryable
    house.service.close_session(ME, first.handle)
    house.open()


def test_every_verb_gives_one_error_for_wrong_foreign_and_closed_handles(house: House) -> None:
    session = house.open()
    operation = house.execute(session)
    closed_session, closed_operation = house.open(), house.execute(session)
    house.service.close_operation(ME, closed_operation)
    house.service.close_session(ME, closed_session.handle)
    service = house.service
    session_verbs: list[Callable[[Principal, Handle], object]] = [
        service.close_session,
        service.session_info,
        lambda p, h: service.execute(p, h, ExecuteRequest("x")),
        lambda p, h: service.metadata(p, h, MetadataRequest("tables")),
    ]
    operation_verbs: list[Callable[[Principal, Handle], object]] = [
        lambda p, h: service.operation_status(p, h, 0),
        service.result_metadata,
        lambda p, h: service.fetch(p, h, Orientation.NEXT, 1, None, None),
        service.cancel,
    ]
    for verbs, good, gone, condition in (
        (session_verbs, session.handle, closed_session.handle, "INVALID_SESSION_HANDLE"),
        (operation_verbs, operation, closed_operation, "INVALID_OPERATION_HANDLE"),
    ):
        wrongs = [
            (ME, Handle(os.urandom(16), os.urandom(16))),
            (ME, Handle(good.guid, os.urandom(16))),
            (OTHER, good),
            (ME, gone),
        ]
        for verb in verbs:
            for principal, handle in wrongs[:3] if verb == service.cancel else wrongs:
                error = refused(lambda v=verb, p=principal, h=handle: v(p, h), ProtocolError)  # type: ignore[misc]
                assert error.condition == condition
    for principal, handle in [(ME, closed_operation), (OTHER, operation), (ME, Handle(bytes(16), bytes(16)))]:
        service.close_operation(principal, handle)
    service.cancel(ME, closed_operation)
    for principal, handle in [(OTHER, closed_operation), (ME, Handle(closed_operation.guid, os.urandom(16)))]:
        refused(lambda p=principal, h=handle: service.cancel(p, h), ProtocolError)  # type: ignore[misc]
    assert house.status(operation).state is State.RUNNING


def test_a_statement_from_acceptance_to_rows(house: House) -> None:
    session = house.open(settings={"timezone": "Asia/Tokyo"})
    operation = house.execute(
        session, "select 1", conf_overlay={"use_cached_result": "false", "nonsense": "1"}, row_limit=5
    )
    run = house.run(operation)
    assert isinstance(run.job, Statement) and run.job.text == "select 1" and run.job.row_limit == 5
    assert run.job.session.settings == {"timezone": "Asia/Tokyo", "use_cached_result": "false"}
    assert house.status(operation).state is State.RUNNING
    run.plan()
    assert house.service.result_metadata(ME, operation).time_zone == "Asia/Tokyo"
    run.deliver(3)
    assert house.fetch(operation) == [0, 1, 2]
    run.finish()
    status = house.status(operation)
    assert status.state is State.FINISHED and status.error is None
    assert status.started_ms is not None and status.completed_ms is not None
    assert house.fetch(operation) == [] and house.fetch(operation) == []


def test_a_metadata_call_uses_the_reserved_slot(house: House) -> None:
    session = house.open()
    statements = [house.execute(session) for _ in range(3)]
    assert [house.status(s).state for s in statements] == [State.RUNNING, State.RUNNING, State.PENDING]
    assert house.status(statements[2]).progress_text == "Waiting for a slot: 1 of 1 in the queue"
    request = MetadataRequest("columns", table="t%", table_types=("VIEW",))
    operation = house.service.metadata(ME, session.handle, request)
    assert (operation.operation_type, operation.state) == ("GET_COLUMNS", State.RUNNING)
    job = house.run(operation.handle).job
    assert isinstance(job, MetadataCall) and (job.kind, job.table, job.table_types) == ("columns", "t%", ("VIEW",))
    house.run(operation.handle).plan()
    assert house.service.result_metadata(ME, operation.handle).is_metadata


def test_later_statements_see_what_earlier_ones_did_when_they_start(tmp_path: Path) -> None:
    house = House(tmp_path, slots=1)
    session = house.open()
    first, second = house.execute(session, "use"), house.execute(session, "later")
    house.run(first).plan()
    house.run(first).finish(SessionChange("use", "samples", "tpch"))
    assert house.run(second).job.session.catalog == "samples"
    assert house.service.session_info(ME, session.handle).schema == "tpch"


def test_a_long_statement_is_refused(tmp_path: Path) -> None:
    house = House(tmp_path, max_statement=100)
    session = house.open()
    house.execute(session, "x" * 100)
    assert refused(lambda: house.execute(session, "é" * 51), ResourceError).condition == "STATEMENT_TOO_LARGE"


def test_a_full_queue_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    house = House(tmp_path, slots=1, queue_limit=1)
    session = house.open()
    running, waiting = house.execute(session), house.execute(session)
    error = refused(lambda: house.execute(session), ResourceError)
    assert error.condition == "RESOURCE_EXHAUSTED" and error.retryable
    assert len(house.service._operations) == 2
    house.service.close_operation(ME, waiting)
    house.execute(session)
    house.service.close_operation(ME, running)


def test_a_pool_that_refuses_makes_the_statement_fail(house: House) -> None:
    house.pool.refusal = ServerError("WORKER_LOST", "no process")
    session = house.open()
    for _ in range(5):
        status = house.status(house.execute(session))
        assert status.state is State.ERROR and status.error is not None and status.error.message == "no process"
    assert house.service._admission.running == 0


def test_waiting_for_the_end_is_bounded_and_ends_with_it(house: House) -> None:
    session = house.open()
    operation = house.execute(session)
    run = house.run(operation)
    run.plan()
    assert house.service.operation_status(ME, operation, 0.01).state is State.RUNNING
    threading.Timer(0.05, run.finish).start()
    assert house.service.operation_status(ME, operation, WAIT).state is State.FINISHED


def test_cancel_is_seen_at_once_and_frees_the_slot_when_the_work_stops(tmp_path: Path) -> None:
    house = House(tmp_path, slots=1)
    session = house.open()
    first, second = house.execute(session), house.execute(session)
    house.run(first).plan()
    house.service.cancel(ME, first)
    status = house.status(first)
    assert status.state is State.CANCELED and status.error is not None
    assert status.error.condition == "OPERATION_CANCELED"
    assert house.status(second).state is State.PENDING
    assert isinstance(house.run(first).cancelled, CanceledError)
    house.run(first).finish()
    assert house.status(second).state is State.RUNNING
    for call in (lambda: house.service.result_metadata(ME, first), lambda: house.fetch(first)):
        assert refused(call).condition == "OPERATION_CANCELED"
    house.service.cancel(ME, first)


def test_cancel_of_what_waits_takes_it_out_of_the_queue(tmp_path: Path) -> None:
    house = House(tmp_path, slots=1)
    session = house.open()
    first, second, third = (house.execute(session) for _ in range(3))
    house.service.cancel(ME, second)
    house.run(first).plan()
    house.run(first).finish()
    assert house.status(third).state is State.RUNNING
    assert [s.value for s in (house.status(o).state for o in (first, second))] == ["FINISHED", "CANCELED"]
    assert len(house.pool.runs) == 2


def test_cancel_after_the_end_has_no_effect(house: House) -> None:
    operation = house.execute(house.open())
    house.run(operation).plan()
    house.run(operation).deliver(1)
    house.run(operation).finish()
    house.service.cancel(ME, operation)
    assert house.status(operation).state is State.FINISHED and house.fetch(operation) == [0]


@pytest.mark.parametrize(
    ("session_settings", "request_settings", "seconds"),
    [
        ({}, {}, 3600),
        ({"STATEMENT_TIMEOUT": "30"}, {}, 30),
        ({"STATEMENT_TIMEOUT": "0"}, {}, 3600),
        ({"statement_timeout": "30"}, {"timeout_seconds": 5}, 5),
        ({"statement_timeout": "30"}, {"conf_overlay": {"statement_timeout": "7"}}, 7),
    ],
)
def test_a_statement_ends_at_its_timeout(
    house: House, session_settings: dict[str, str], request_settings: dict[str, Any], seconds: float
) -> None:
    session = house.open(settings=session_settings)
    operation = house.execute(session, **request_settings)
    house.after(seconds - 1)
    assert house.status(operation).state is State.RUNNING
    house.after(1)
    status = house.status(operation)
    assert status.state is State.TIMEDOUT and isinstance(status.error, ResourceError)
    assert status.error.condition == "QUERY_EXECUTION_TIMEOUT_EXCEEDED" and status.error.sqlstate == "57KD0"
    assert house.run(operation).cancelled is not None
    refused(lambda: house.fetch(operation), ResourceError)


def test_time_in_the_queue_counts(tmp_path: Path) -> None:
    house = House(tmp_path, slots=1)
    session = house.open()
    house.execute(session, timeout_seconds=1000)
    waiting = house.execute(session, timeout_seconds=10)
    house.after(10)
    assert house.status(waiting).state is State.TIMEDOUT and len(house.pool.runs) == 1


def test_results_expire_when_nobody_touches_them(house: House) -> None:
    session = house.open()
    kept, dropped = house.execute(session, timeout_seconds=100_000), house.execute(session, timeout_seconds=100_000)
    house.after(3000)  # a running one does not expire
    for operation in (kept, dropped):
        house.run(operation).plan()
        house.run(operation).deliver(1)
        house.run(operation).finish()
    house.after(1000)
    assert house.fetch(kept) == [0]
    house.after(1000)
    assert house.status(kept).state is State.FINISHED
    assert refused(lambda: house.status(dropped)).condition == "INVALID_OPERATION_HANDLE"


def test_asking_for_its_status_keeps_an_operation(house: House) -> None:
    session = house.open()
    asked, silent = house.execute(session), house.execute(session)
    for operation in (asked, silent):
        house.run(operation).plan()
        house.run(operation).deliver(2)
        house.run(operation).finish()
    idle = house.config.operation_idle
    for _ in range(3):
        house.after(idle * 0.75)
        assert house.status(asked).state is State.FINISHED
    assert refused(lambda: house.status(silent)).condition == "INVALID_OPERATION_HANDLE"
    assert house.fetch(asked) == [0, 1]
    house.after(idle + 1)
    assert refused(lambda: house.status(asked)).condition == "INVALID_OPERATION_HANDLE"


def read_on(house: House, rows: int, ended: bool = True) -> Handle:
    """A result whose client closes it before it reads."""
    operation = house.execute(house.open(), options=ResultOptions(arrow=True, reads_on=True))
    house.run(operation).plan()
    house.run(operation).deliver(rows)
    if ended:
        house.run(operation).finish()
    return operation


def test_what_a_client_reads_on_stays_until_it_is_read(house: House) -> None:
    operation = read_on(house, 150)
    assert len(house.fetch(operation)) == 100
    house.service.close_operation(ME, operation)
    house.after(20)
    assert len(house.fetch(operation)) == 50
    assert refused(lambda: house.fetch(operation)).condition == "INVALID_OPERATION_HANDLE"


def test_what_a_client_reads_on_no_more_is_let_go(house: House) -> None:
    operation = read_on(house, 150)
    house.service.close_operation(ME, operation)
    house.after(31)
    assert refused(lambda: house.status(operation)).condition == "INVALID_OPERATION_HANDLE"


def test_what_is_closed_before_its_rows_can_be_read_is_closed(house: House) -> None:
    whole, running = read_on(house, 100), read_on(house, 100, ended=False)
    assert len(house.fetch(whole)) == 100
    for operation in (whole, running):
        house.service.close_operation(ME, operation)
        assert refused(partial(house.status, operation)).condition == "INVALID_OPERATION_HANDLE"
    assert house.run(running).cancelled is not None


def test_idle_sessions_expire_with_all_that_they_hold(house: House) -> None:
    idle, used, busy = house.open(), house.open(), house.open()
    operation = house.execute(busy, timeout_seconds=170_000)
    for _ in range(9):
        house.after(3600)
        house.service.session_info(ME, used.handle)
    assert refused(lambda: house.execute(idle)).condition == "INVALID_SESSION_HANDLE"
    assert house.service.session_info(ME, busy.handle).handle == busy.handle
    house.run(operation).plan()
    house.run(operation).finish()
    house.after(8 * 3600 + 1)
    for session in (used, busy):
        refused(lambda s=session: house.service.session_info(ME, s.handle), ProtocolError)  # type: ignore[misc]
    assert len(house.service._operations) == len(house.service._sessions) == 0


def test_closing_a_session_ends_its_operations(house: House) -> None:
    session = house.open()
    operations = [house.execute(session) for _ in range(4)]
    house.service.close_session(ME, session.handle)
    assert all(run.cancelled is not None for run in house.pool.runs)
    for operation in operations:
        refused(lambda o=operation: house.status(o), ProtocolError)  # type: ignore[misc]
    for run in list(house.pool.runs):
        run.finish()
    assert house.service._admission.running == house.service._admission.waiting == 0
    assert len(house.pool.runs) == 2  # those that waited never ran


def test_a_drain_waits_for_running_statements_and_refuses_new_ones(house: House) -> None:
    session = house.open()
    operation = house.execute(session)
    house.run(operation).plan()
    house.run(operation).deliver(1)
    assert not house.service.drain(0.01)
    assert refused(lambda: house.execute(session), ServerError).retryable
    refused(house.open, ServerError)
    house.run(operation).finish()
    assert not house.service.drain(0.01)  # its client may still come for the row
    assert house.fetch(operation) == [0]
    assert house.service.drain(0.01)


def test_a_drain_does_not_wait_for_rows_that_nobody_reads(house: House) -> None:
    operation = house.execute(house.open())
    house.run(operation).plan()
    house.run(operation).deliver(1)
    house.run(operation).finish()
    house.after(10)
    assert house.service.drain(0)


def test_stop_ends_all_and_a_drain_too(house: House) -> None:
    house.execute(house.open())
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(house.service.drain(WAIT)))
    thread.start()
    house.service.stop()
    house.service.stop()
    thread.join(WAIT)
    assert results in ([False], [True]) and house.pool.stopped and not house.service._active


def test_what_a_stop_has_closed_may_still_be_closed(house: House) -> None:
    session = house.open()
    operation = house.execute(session)
    absent = replace(session.handle, guid=bytes(16))
    refused(lambda: house.service.close_session(ME, absent), ProtocolError)
    house.service.stop()
    house.service.close_operation(ME, operation)
    house.service.close_session(ME, session.handle)
    refused(lambda: house.service.session_info(ME, session.handle), ProtocolError)


def test_the_front_imports_no_engine_and_no_parser() -> None:
    code = (
        "import sys, gateway.service.service, gateway.engine.pool\n"
        "print([m for m in ('datafusion', 'deltalake', 'sqlglot', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def real(tmp_path: Path) -> Iterator[GatewayService]:
    pool = WorkerPool(FakeHandler(), 2)
    pool.start()
    service = GatewayService(pool, service_config(tmp_path))
    service.start()
    pool.wait_ready(WAIT)
    yield service
    service.stop()
    assert pool.process_ids() == []


def open_spools(folder: Path) -> int:
    """Files of the folder that this process holds open, with or without a name."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith(str(folder))
        except FileNotFoundError:
            continue
    return found


def test_rows_in_order_through_everything(real: GatewayService, tmp_path: Path) -> None:
    session = real.open_session(OpenSessionRequest(ME, 1)).handle
    status = real.execute(ME, session, ExecuteRequest("rows 100001", wait_seconds=WAIT))
    assert status.state is State.FINISHED
    seen: list[int] = []
    while True:
        page = real.fetch(ME, status.handle, Orientation.NEXT, 30_000, 1 << 20, None)
        assert page.start_row_offset == len(seen)
        seen += [i for p in page.parts for i in p.batch["id"].to_pylist()]
        if not page.has_more_rows:
            break
    assert seen == list(range(100_001))
    assert open_spools(tmp_path) == 1 and os.listdir(tmp_path) == []
    real.close_operation(ME, status.handle)
    assert open_spools(tmp_path) == 0


def test_rows_are_fetched_while_the_statement_runs(real: GatewayService) -> None:
    session = real.open_session(OpenSessionRequest(ME, 1)).handle
    operation = real.execute(ME, session, ExecuteRequest("rows 5; sleep 60")).handle
    page = real.fetch(ME, operation, Orientation.NEXT, 10, None, None)
    assert page.rows == 5 and page.has_more_rows
    real.cancel(ME, operation)
    assert (
        refused(lambda: real.fetch(ME, operation, Orientation.NEXT, 10, None, None)).condition == "OPERATION_CANCELED"
    )


def test_the_housekeeper_ends_a_statement_that_never_listens(real: GatewayService) -> None:
    session = real.open_session(OpenSessionRequest(ME, 1)).handle
    status = real.execute(ME, session, ExecuteRequest("busy 600", timeout_seconds=1, wait_seconds=WAIT))
    assert status.state is State.TIMEDOUT
    status = real.execute(ME, session, ExecuteRequest("fail", wait_seconds=WAIT))
    assert status.state is State.ERROR and isinstance(status.error, UserError)


def test_everything_is_freed_on_every_path(real: GatewayService, tmp_path: Path) -> None:
    def leave(how: str, text: str) -> None:
        session = real.open_session(OpenSessionRequest(ME, 1)).handle
        operation = real.execute(ME, session, ExecuteRequest(text, wait_seconds=0.3)).handle
        if how == "cancel":
            real.cancel(ME, operation)
        elif how == "close":
            real.close_operation(ME, operation)
        real.close_session(ME, session)

    for how in ("cancel", "close", "session"):
        for text in ("rows 50000", "rows 50000; sleep 60", "rows 50000; fail", "rows 50000; die", "sleep 60"):
            leave(how, text)
    end = time.monotonic() + WAIT
    while real._admission.running or real._active:
        assert time.monotonic() < end
        time.sleep(0.01)
    gc.collect()
    assert open_spools(tmp_path) == 0 and os.listdir(tmp_path) == []
    assert len(real._operations) == len(real._sessions) == real._admission.waiting == 0
    status = real.execute(
        ME, real.open_session(OpenSessionRequest(ME, 1)).handle, ExecuteRequest("show", wait_seconds=WAIT)
    )
    assert status.state is State.FINISHED
