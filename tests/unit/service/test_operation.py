"""States move as the table says, over the full product; fetches read a result as by a cursor."""

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest

from gateway.config.session import TIMEZONE
from gateway.engine.base import (
    Event,
    Failed,
    Finished,
    Job,
    Planned,
    Progress,
    Rows,
    SessionChange,
    Statement,
    Waiting,
    Yielded,
)
from gateway.errors import CanceledError, GatewayError, ServerError, UserError
from gateway.results.spool import Spool
from gateway.service.admission import Place
from gateway.service.api import ENDS, Orientation, Principal, State
from gateway.service.cursor import STREAMING_BYTES, PageLimits
from gateway.service.lifecycle import TRANSITIONS, Times
from gateway.service.operation import Operation
from gateway.service.purposes import Purpose
from gateway.service.session import Session
from gateway.sqltypes import BIGINT, StructField, struct
from tests.live.fakes import SCHEMA, batch

# One row per state, one letter per state to move to (in the order of State): x allowed, . not.
ORDER = tuple(State)
EXPECTED = """
INITIALIZED . x x . x x x x
PENDING     . . x . x x x x
RUNNING     . x . x x x x x
FINISHED    . . . . . x . .
CANCELED    . . . . . x . .
CLOSED      . . . . . . . .
ERROR       . . . . . x . .
TIMEDOUT    . . . . . x . .
"""
LIMITS = PageLimits()


class Listener:
    def __init__(self) -> None:
        self.ends: list[Operation] = []
        self.stops: list[Operation] = []
        self.yields: list[Operation] = []

    def ended(self, operation: Operation) -> None:
        self.ends.append(operation)

    def stopped(self, operation: Operation) -> None:
        self.stops.append(operation)

    def yielded(self, operation: Operation) -> None:
        self.yields.append(operation)

    def grown(self, operation: Operation) -> None:
        """Its disk is counted by the service."""

    def kills(self, operation: Operation, identifier: str) -> None:
        """Other statements are the service's."""


class Run:
    def __init__(self) -> None:
        self.cancelled: list[GatewayError | None] = []

    def cancel(self, error: GatewayError | None = None) -> None:
        self.cancelled.append(error)


def make(folder: Path, row_limit: int | None = None) -> tuple[Operation, Listener]:
    session = Session(Principal("me"), 1, "main", "default", {TIMEZONE: "Europe/Oslo"})

    def job(statement_id: str) -> Job:
        return Statement(statement_id, "text", session.state())

    listener = Listener()
    purpose = Purpose("EXECUTE_STATEMENT", job, row_limit=row_limit)
    return Operation(session, purpose, listener, lambda: 7.0, None, folder), listener


def running(folder: Path, row_limit: int | None = None) -> tuple[Operation, Listener, Run]:
    operation, listener = make(folder, row_limit)
    job = operation.begin()
    assert job is not None
    run = Run()
    operation.attach(run, job)
    operation.event(planned())
    return operation, listener, run


def planned(writes: bool = False) -> Planned:
    return Planned("SELECT", "fake", "", SCHEMA, writes=writes)


def rows(start: int, count: int) -> Rows:
    return Rows(count, batch(start, count).serialize().to_pybytes())


def page(
    operation: Operation,
    orientation: Orientation = Orientation.NEXT,
    max_rows: int = 10,
    offset: int | None = None,
    max_bytes: int | None = None,
) -> tuple[int, list[int], bool]:
    found = operation.fetch(orientation, max_rows, max_bytes, offset, LIMITS)
    return found.start_row_offset, [i for p in found.parts for i in p.batch["id"].to_pylist()], found.has_more_rows


def test_the_table_of_transitions_is_the_expected_one_over_the_full_product() -> None:
    lines = [line.split() for line in EXPECTED.strip().splitlines()]
    assert [line[0] for line in lines] == [s.value for s in ORDER]
    expected = {(State(line[0]), ORDER[i]): mark == "x" for line in lines for i, mark in enumerate(line[1:])}
    assert len(expected) == len(State) ** 2
    assert {(a, b): b in TRANSITIONS[a] for a, b in itertools.product(State, State)} == expected


def test_states_move_as_the_table_says_and_end_once(tmp_path: Path) -> None:
    for old, new in itertools.product(State, State):
        operation, _ = make(tmp_path)
        operation.state = old
        with operation._changed:
            assert operation._move(new, None) is (new in TRANSITIONS[old])
        assert operation.state is (new if new in TRANSITIONS[old] else old)
        assert (operation.times.completed_ms is not None) is (old not in ENDS and new in ENDS & TRANSITIONS[old])


def test_a_wall_clock_that_is_set_back_puts_no_end_before_the_start() -> None:
    times = Times(accepted=5.0)
    assert times.completed_ms is None
    times.ended = 5.25
    assert times.completed_ms == times.started_ms + 250


def test_what_cannot_be_left_is_an_end() -> None:
    assert {s for s in State if TRANSITIONS[s] <= {State.CLOSED}} == ENDS


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("target", [State.CANCELED, State.TIMEDOUT, State.ERROR])
def test_stop_ends_what_has_not_ended(tmp_path: Path, state: State, target: State) -> None:
    operation, listener = make(tmp_path)
    operation.state = state
    stopped = operation.stop(target, CanceledError("OPERATION_CANCELED", "x"))
    assert stopped is (state not in ENDS)
    assert operation.state is (target if stopped else state)
    assert len(listener.ends) == stopped


@pytest.mark.parametrize("state", list(State))
def test_close_always_ends_closed(tmp_path: Path, state: State) -> None:
    operation, _ = make(tmp_path)
    operation.state = state
    operation.close()
    operation.close()
    assert operation.state is State.CLOSED


@pytest.mark.parametrize(
    "event", [planned(), rows(0, 1), Progress(None, "x"), Finished(0), Failed(UserError("X", "x"))]
)
@pytest.mark.parametrize("state", sorted(ENDS))
def test_events_after_the_end_change_nothing(tmp_path: Path, state: State, event: Planned) -> None:
    operation, listener = make(tmp_path)
    operation.state = state
    operation.event(event)
    assert operation.state is state and operation.error is None and not listener.ends
    assert len(listener.stops) == isinstance(event, (Finished, Failed))


def test_a_result_is_read_as_by_a_cursor(tmp_path: Path) -> None:
    operation, listener, _ = running(tmp_path)
    for start in range(0, 30, 7):
        operation.event(rows(start, min(7, 30 - start)))
    operation.event(Finished(30))
    assert operation.state is State.FINISHED and listener.ends == listener.stops == [operation]
    assert page(operation) == (0, list(range(10)), True)
    assert page(operation) == (10, list(range(10, 20)), True)
    assert page(operation, Orientation.ABSOLUTE, offset=10) == (10, list(range(10, 20)), True)
    assert page(operation, offset=10) == (10, list(range(10, 20)), True)
    assert page(operation, Orientation.PRIOR, 6) == (4, list(range(4, 10)), True)
    assert page(operation, Orientation.PRIOR) == (0, [0, 1, 2, 3], True)
    assert page(operation, Orientation.PRIOR) == (0, [], True)
    assert page(operation, Orientation.FIRST, 3) == (0, [0, 1, 2], True)
    assert page(operation, Orientation.RELATIVE, 2, 5) == (8, [8, 9], True)
    assert page(operation, Orientation.RELATIVE, 2, -3) == (7, [7, 8], True)
    assert page(operation, Orientation.LAST, 4) == (26, [26, 27, 28, 29], False)
    assert page(operation) == (30, [], False)
    assert page(operation) == (30, [], False)
    assert page(operation, Orientation.ABSOLUTE, offset=1000) == (30, [], False)
    assert page(operation, offset=0) == (0, list(range(10)), True)  # a row for those who have named another
    assert page(operation, Orientation.FIRST, 0) == (0, list(range(30)), False)
    assert page(operation, Orientation.FIRST, -1) == (0, list(range(30)), False)
    assert page(operation, Orientation.FIRST, 1 << 40, max_bytes=-1) == (0, list(range(30)), False)
    assert page(operation, Orientation.FIRST, max_bytes=1) == (0, [0], True)


def test_metadata_tells_the_zone_of_the_start(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    metadata = operation.metadata()
    assert metadata.schema is SCHEMA and metadata.time_zone == "Europe/Oslo" and metadata.is_query


def test_a_repeated_page_is_the_same_although_rows_have_come(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    operation.event(rows(0, 3))
    assert page(operation) == (0, [0, 1, 2], True)
    operation.event(rows(3, 3))
    assert page(operation, Orientation.ABSOLUTE, offset=0) == (0, [0, 1, 2], True)
    assert page(operation) == (3, [3, 4, 5], True)
    operation.event(Finished(6))
    assert page(operation, offset=3) == (3, [3, 4, 5], False)


def test_next_with_row_0_goes_on(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    operation.event(rows(0, 25))
    operation.event(Finished(25))
    assert [page(operation, offset=0)[:2] for _ in range(3)] == [
        (0, list(range(10))),
        (10, list(range(10, 20))),
        (20, list(range(20, 25))),
    ]


def test_rows_that_come_while_a_page_is_made_are_told_of(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    operation.event(rows(0, 3))

    class Late(Spool):
        """The last rows come as soon as somebody has looked how far it is."""

        @property
        def rows(self) -> int:
            counted = super().rows
            arrive()
            return counted

        @property
        def ended(self) -> bool:
            ended = super().ended
            arrive()
            return ended

    def arrive() -> None:
        while late:
            operation.event(late.pop(0))

    late: list[Event] = [rows(3, 3), Finished(6)]
    assert operation._spool is not None
    operation._spool.__class__ = Late
    assert page(operation) == (0, [0, 1, 2], True)
    assert page(operation) == (3, [3, 4, 5], False)


@pytest.mark.parametrize("streams", [True, False])
def test_a_large_result_is_shown_early_only_if_no_row_can_fail(tmp_path: Path, streams: bool) -> None:
    operation, listener = make(tmp_path)
    operation.begin()
    operation.event(Planned("SELECT", "fake", "", SCHEMA, streams=streams))
    count = 0
    while operation.bytes[0] < 2 * STREAMING_BYTES:
        operation.event(rows(count, 8192))
        count += 8192
    assert operation.wait(0) is operation.status().state is (State.FINISHED if streams else State.RUNNING)
    operation.event(Failed(UserError("DIVIDE_BY_ZERO", "zero")))
    assert operation.wait(0) is State.ERROR and listener.ends == [operation]


def test_fetch_waits_for_a_row_or_the_end(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    pages: list[object] = []
    thread = threading.Thread(target=lambda: pages.extend([page(operation), page(operation)]))
    thread.start()
    operation.event(rows(0, 2))
    operation.event(Finished(2))
    thread.join(10)
    assert [i for p in pages for i in p[1]] == [0, 1]  # type: ignore[index]


@pytest.mark.parametrize("how", ["cancel", "close", "fail"])
def test_a_waiting_fetch_gets_the_reason(tmp_path: Path, how: str) -> None:
    operation, _, run = running(tmp_path)
    errors: list[GatewayError] = []
    waits = threading.Event()

    def fetch() -> None:
        waits.set()
        try:
            page(operation)
        except GatewayError as error:
            errors.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    assert waits.wait(10)
    if how == "cancel":
        operation.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "told"))
    elif how == "close":
        operation.close()
    else:
        operation.event(Failed(UserError("DIVIDE_BY_ZERO", "zero")))
    thread.join(10)
    assert [e.condition for e in errors] == ["DIVIDE_BY_ZERO" if how == "fail" else "OPERATION_CANCELED"]
    assert len(run.cancelled) == (how != "fail")


def test_after_a_failure_rows_are_not_given_and_the_spool_is_freed(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    operation.event(rows(0, 2))
    operation.event(Failed(UserError("DIVIDE_BY_ZERO", "zero")))
    assert operation.bytes == (0, 0)
    for _ in range(2):
        with pytest.raises(UserError, match="zero") as raised:
            page(operation)
        assert raised.value is not operation.error  # each caller has its own: a traceback must not grow
        with pytest.raises(UserError, match="zero"):
            operation.metadata()


def test_the_row_limit_holds_whatever_the_worker_sends(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path, row_limit=4)
    operation.event(rows(0, 3))
    operation.event(rows(3, 3))
    operation.event(Finished(6))
    assert page(operation) == (0, [0, 1, 2, 3], False)


def test_changes_reach_the_session_before_the_end_is_seen(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    operation.event(Finished(0, changes=(SessionChange("use", "c", "s"), SessionChange("set", "a", "b"))))
    state = operation.session.state()
    assert (state.catalog, state.schema, dict(state.settings)) == ("c", "s", {TIMEZONE: "Europe/Oslo", "a": "b"})
    cancelled, _, _ = running(tmp_path)
    cancelled.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "x"))
    cancelled.event(Finished(0, changes=(SessionChange("use", "c", "s"),)))
    assert cancelled.session.state().catalog == "main"


def test_a_change_of_unknown_kind_is_an_error(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    operation.event(Finished(0, changes=(SessionChange("dance"),)))
    assert operation.state is State.ERROR and "dance" in str(operation.error)


def test_a_second_run_on_another_process_is_unseen(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    operation.event(planned())
    operation.event(rows(0, 1))
    operation.event(Finished(1))
    assert page(operation) == (0, [0], False)


def test_a_second_run_with_another_shape_fails(tmp_path: Path) -> None:
    operation, _, run = running(tmp_path)
    operation.event(Planned("SELECT", "fake", "", struct(StructField("x", BIGINT))))
    assert operation.state is State.ERROR and operation.error is not None and operation.error.retryable
    assert len(run.cancelled) == 1


@pytest.mark.parametrize(
    ("told", "by_spark"),
    [
        ("(a <=> NULL)", "(a <=> CAST(NULL AS INTERVAL DAY TO SECOND))"),
        ("coalesce(a, -1.50)", "coalesce(a, CAST(-1.50 AS DECIMAL(10,2)))"),
        ("array(NaN, NULL)", "array(CAST(NaN AS DOUBLE), CAST(NULL AS TIMESTAMP_NTZ))"),
    ],
)
def test_another_engine_may_be_told_the_type_of_a_constant(tmp_path: Path, told: str, by_spark: str) -> None:
    operation, _ = make(tmp_path)
    job = operation.begin()
    assert job is not None
    operation.attach(Run(), job)
    for engine, name in (("datafusion", told), ("spark", by_spark)):
        operation.event(Planned("SELECT", engine, "", struct(StructField(name, BIGINT))))
    assert operation.state is State.RUNNING and operation.planned is not None
    assert [f.name for f in operation.planned.schema.fields] == [told]


def test_another_engine_may_know_better_what_is_null(tmp_path: Path) -> None:
    operation, _, _ = running(tmp_path)
    strict = struct(*(StructField(f.name, f.type, False) for f in SCHEMA.fields))
    operation.event(Planned("SELECT", "spark", "", strict))
    assert operation.state is State.RUNNING
    assert operation.planned is not None and operation.planned.engine == "spark" and operation.planned.schema == SCHEMA
    operation.event(rows(0, 3))
    operation.event(Finished(3))
    assert page(operation)[1] == [0, 1, 2]


@pytest.mark.parametrize("goes_on", [Progress(None, "Running on Spark"), planned(), Finished(0)])
def test_what_waits_for_another_engine_is_pending_and_gives_its_slot_back(tmp_path: Path, goes_on: Any) -> None:
    operation, listener, _ = running(tmp_path)
    operation.event(Waiting("Waiting for Spark to start"))
    status = operation.status()
    assert status.state is State.PENDING and status.progress_text == "Waiting for Spark to start"
    assert listener.stops == [operation] and not listener.ends
    operation.event(goes_on)
    assert operation.state is (State.FINISHED if isinstance(goes_on, Finished) else State.RUNNING)


def test_waiting_after_the_end_changes_nothing(tmp_path: Path) -> None:
    operation, _, run = running(tmp_path)
    operation.event(Waiting("Waiting for Spark to start"))
    assert operation.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "x")) and len(run.cancelled) == 1
    operation.event(Waiting("Waiting for Spark to start"))
    assert operation.state is State.CANCELED


def test_an_end_without_a_plan_is_our_fault(tmp_path: Path) -> None:
    operation, _ = make(tmp_path)
    operation.begin()
    operation.event(Finished(0))
    assert operation.state is State.ERROR and isinstance(operation.error, ServerError)


def test_a_stopped_write_says_that_it_may_have_been_committed(tmp_path: Path) -> None:
    operation, _ = make(tmp_path)
    operation.begin()
    operation.event(planned(writes=True))
    operation.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "The statement was cancelled."))
    assert "may or may not have been committed" in str(operation.error)


def test_a_run_that_is_attached_after_the_end_is_cancelled(tmp_path: Path) -> None:
    operation, listener = make(tmp_path)
    job = operation.begin()
    assert job is not None
    operation.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "x"))
    run = Run()
    operation.attach(run, job)
    assert len(run.cancelled) == 1 and not listener.stops
    assert operation.begin() is None


def test_the_session_state_is_that_of_the_start(tmp_path: Path) -> None:
    operation, _ = make(tmp_path)
    operation.session.apply([SessionChange("use", "later", "s")])
    job = operation.begin()
    assert job is not None and job.session == operation.session.state()
    assert (job.session.catalog, job.session.schema) == ("later", "s")
    assert job.statement_id == operation.id


def test_what_is_not_short_waits_again_and_is_no_longer_its_first_run(tmp_path: Path) -> None:
    operation, listener = make(tmp_path)
    operation.place = Place("s", lambda: None, False)
    operation.place.brief = True
    first = operation.begin()
    assert isinstance(first, Statement) and first.brief
    operation.event(Yielded())
    assert operation.state is State.PENDING and listener.yields == [operation] and not listener.stops
    operation.place.brief = False
    second = operation.begin()
    assert isinstance(second, Statement) and not second.brief
    late, run = Run(), Run()
    operation.attach(run, second)
    operation.attach(late, first)  # its thread was slow
    operation.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "x"))
    assert len(run.cancelled) == 1 and not late.cancelled


def test_what_was_stopped_before_it_yields_gives_its_slot_back(tmp_path: Path) -> None:
    operation, listener = make(tmp_path)
    operation.begin()
    operation.stop(State.CANCELED, CanceledError("OPERATION_CANCELED", "x"))
    operation.event(Yielded())
    assert operation.state is State.CANCELED and listener.stops == [operation] and not listener.yields
