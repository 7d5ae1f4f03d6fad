"""What is kept in memory for one caller is bounded, and nobody else pays for it."""

from pathlib import Path

import pytest

from gateway.engine.base import Parameter, Rows
from gateway.errors import ProtocolError, ResourceError
from gateway.service.api import ExecuteRequest, Handle, State
from gateway.service.holdings import Holdings
from tests.live.fakes import FakeRun
from tests.unit.service.test_service import ME, OTHER, House, refused

KEPT = 8 << 20  # of which a caller has half


@pytest.fixture
def small(tmp_path: Path) -> House:
    return House(tmp_path, kept_limit=KEPT)


def ended(run: FakeRun) -> None:
    run.plan()
    run.finish()


def parameter(size: int) -> Parameter:
    return Parameter("p", "STRING", "x" * size)


def test_statements_that_wait_hold_no_more_than_a_callers_share(small: House) -> None:
    session, other = small.open(), small.open(OTHER)
    held = [small.execute(session, parameters=[parameter(1 << 20)]) for _ in range(3)]
    error = refused(lambda: small.execute(session, parameters=[parameter(1 << 20)]), ResourceError)
    assert error.retryable and "4 MiB" in error.message
    request = ExecuteRequest("select 1", parameters=[parameter(1 << 20)])
    assert small.service.execute(OTHER, other.handle, request).state in (State.PENDING, State.RUNNING)
    small.service.close_operation(ME, held[0])
    small.execute(session, parameters=[parameter(1 << 20)])


def test_what_was_asked_is_let_go_of_when_a_statement_has_ended(small: House) -> None:
    session = small.open()
    held = []
    for _ in range(50):
        held.append(small.execute(session, text="x" * 500_000, parameters=[parameter(500_000)]))
        ended(small.run(held[-1]))
    assert all(small.status(o).state is State.FINISHED for o in held)


def test_the_oldest_results_of_a_caller_make_room_for_new_ones(small: House) -> None:
    session = small.open()
    other = small.open(OTHER)
    theirs = small.service.execute(OTHER, other.handle, ExecuteRequest("select 1")).handle
    ended(small.run(theirs))
    held = []
    for _ in range(400):
        held.append(small.execute(session))
        ended(small.run(held[-1]))
        small.clock.now += 1
    assert "INVALID_OPERATION_HANDLE" in str(refused(lambda: small.status(held[0]), ProtocolError))
    assert small.status(held[-1]).state is State.FINISHED
    assert small.service.operation_status(OTHER, theirs, 0).state is State.FINISHED
    small.service.close_session(ME, session.handle)
    assert small.service._holdings._held[ME.name] == 0  # nothing is counted that is gone


def test_large_sessions_and_many_of_one_caller(tmp_path: Path) -> None:
    house = House(tmp_path, kept_limit=KEPT, session_limit=100)
    large = {"query_tags": "x" * (1 << 20)}
    for _ in range(3):
        house.open(settings=large)
    refused(lambda: house.open(settings=large), ResourceError)
    house.open(OTHER, settings=large)
    for _ in range(96):
        house.open()
    refused(house.open, ResourceError)
    for _ in range(9):  # with the one that is open a tenth of all
        house.open(OTHER)
    refused(lambda: house.open(OTHER), ResourceError)


def test_statements_sent_by_themselves_make_room_for_further_ones(tmp_path: Path) -> None:
    house = House(tmp_path, session_limit=20, slots=2)
    kept = house.execute(house.open())
    ended(house.run(kept))
    runs = house.execute(house.open(for_one=True))
    held = []
    for _ in range(40):
        held.append(house.execute(house.open(for_one=True)))
        ended(house.run(held[-1]))
        house.clock.now += 1
    assert "INVALID_OPERATION_HANDLE" in str(refused(lambda: house.status(held[0]), ProtocolError))
    for handle in (kept, *held[-17:]):
        assert house.status(handle).state is State.FINISHED
    assert house.status(runs).state is State.RUNNING
    for _ in range(2):
        house.open(OTHER)
    refused(lambda: house.open(OTHER), ResourceError)  # what its caller has to close is not closed


def on_disk(house: House, operation: Handle, end: int) -> None:
    """Rows of which the last one ends at a byte of the statement's file."""
    house.run(operation).sink.event(Rows(1, offset=end - (1 << 20), length=1 << 20))


def test_the_disk_for_results_has_an_end_for_one_caller_and_for_all(tmp_path: Path) -> None:
    house = House(tmp_path, spool_limit=8 << 20, slots=4)
    session, other = house.open(), house.open(OTHER)
    held = []
    for _ in range(5):  # of which four fill a caller's half
        held.append(house.execute(session))
        house.run(held[-1]).plan()
        on_disk(house, held[-1], 1 << 20)
        house.run(held[-1]).finish()
        house.clock.now += 1
    assert "INVALID_OPERATION_HANDLE" in str(refused(lambda: house.status(held[0]), ProtocolError))
    assert house.status(held[-1]).state is State.FINISHED
    endless = house.execute(session)
    house.run(endless).plan()
    for megabytes in range(1, 5):
        on_disk(house, endless, megabytes << 20)
    assert house.status(endless).error is None
    theirs = house.service.execute(OTHER, other.handle, ExecuteRequest("select 1")).handle
    house.run(theirs).plan()
    on_disk(house, theirs, 1 << 20)
    on_disk(house, endless, 5 << 20)
    error = house.status(endless).error
    assert house.status(endless).state is State.ERROR and isinstance(error, ResourceError)
    assert error.sqlstate == "53100" and "4 MiB of disk" in error.message
    assert house.run(endless).cancelled is error
    assert house.service.operation_status(OTHER, theirs, 0).state is State.RUNNING
    house.service.close_session(ME, session.handle)
    house.service.close_session(OTHER, other.handle)
    assert not house.service._disk._held  # nothing is counted that is gone


def test_where_there_is_less_room_than_the_limit_shares_are_of_what_there_is() -> None:
    free = [1000]
    holdings = Holdings(10_000, lambda: free[0])
    assert holdings.room == 900 and holdings.fits("a", 450) and not holdings.fits("a", 460)
    holdings.add("a", 400)
    free[0] = 600
    assert holdings.fits("a", 50) and not holdings.fits("a", 60) and holdings.fits("b", 450)
    free[0] = 1_000_000
    assert holdings.room == 10_000
