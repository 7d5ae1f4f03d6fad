"""What the first engine hands over runs once on the second one; nothing that has delivered or written is handed over."""

import threading
from collections.abc import Callable

import pytest

from gateway.engine.base import Event, Failed, Finished, Handover, MetadataCall, Planned, Rows, SessionState, Statement
from gateway.engine.router import RoutedPool, RoutedRun
from gateway.engine.runs import Sink as SinkProtocol
from gateway.errors import (
    CanceledError,
    GatewayError,
    ResourceError,
    ServerError,
    UnsupportedError,
    UserError,
    disk_full,
)
from tests.live.fakes import FakePool, FakeRun

REFUSED = UnsupportedError("UNSUPPORTED_FEATURE", "A construct.")
SHORT = ResourceError("RESOURCE_EXHAUSTED", "No memory.")
TO_SPARK = Handover("spark", "a construct")


class Sink:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, event: Event) -> None:
        assert not self.events or not isinstance(self.events[-1], (Failed, Finished)), "an event after the last one"
        self.events.append(event)

    def spool_descriptor(self) -> int:
        return 42

    def error(self) -> GatewayError:
        assert isinstance(self.events[-1], Failed)
        assert self.events[-1].handover is None  # a matter between engines
        return self.events[-1].error


class Both:
    """A router over two pools that a test moves by hand, and one job in it."""

    def __init__(self, job: Statement | MetadataCall | None = None, engine: str = "auto") -> None:
        self.first, self.second, self.sink = FakePool(), FakePool(), Sink()
        self.pool = RoutedPool(self.first, self.second)  # type: ignore[arg-type]
        session = SessionState("main", "default", "u", {} if engine == "auto" else {"gateway.engine": engine})
        self.job = job or Statement("s", "SELECT 1", session)
        self.run: RoutedRun = self.pool.submit(self.job, self.sink)

    @property
    def embedded(self) -> FakeRun:
        assert len(self.first.runs) == 1
        return self.first.runs[0]

    @property
    def spark(self) -> FakeRun:
        assert len(self.second.runs) == 1
        return self.second.runs[0]

    def hand_over(self) -> None:
        self.embedded.over = True
        self.embedded.sink.event(Failed(REFUSED, TO_SPARK))


def test_what_the_first_engine_can_run_never_reaches_the_second() -> None:
    both = Both()
    both.embedded.plan()
    both.embedded.deliver(2)
    both.embedded.finish()
    assert [type(e) for e in both.sink.events] == [Planned, Rows, Finished] and not both.second.runs


def test_a_handover_is_unseen_and_tells_the_reason_to_the_second_engine() -> None:
    both = Both()
    both.hand_over()
    assert both.sink.events == []
    job = both.spark.job
    assert isinstance(job, Statement) and job.route == "a construct" and job.text == "SELECT 1"
    assert both.spark.sink.spool_descriptor() == 42
    both.spark.plan()
    both.spark.deliver(1)
    both.spark.finish()
    assert [type(e) for e in both.sink.events] == [Planned, Rows, Finished]


def test_there_is_no_second_handover() -> None:
    both = Both()
    both.hand_over()
    both.spark.sink.event(Failed(REFUSED, TO_SPARK))
    assert both.sink.error() is REFUSED and len(both.second.runs) == 1


def test_other_errors_stay() -> None:
    error = UserError("DIVIDE_BY_ZERO", "Division by zero.")
    both = Both()
    both.embedded.fail(error)
    assert both.sink.error() is error and not both.second.runs


def test_a_second_engine_that_takes_no_more_is_the_answer() -> None:
    both = Both()
    both.second.refusal = ServerError("WORKER_LOST", "The server is shutting down.", retryable=True)
    both.hand_over()
    assert both.sink.error() is both.second.refusal


DOUBTED = UserError("UNRESOLVED_COLUMN", "No such column.")
TO_CONFIRM = Handover("spark", "to be confirmed", confirms=True)


def doubted(free: bool = True) -> Both:
    """A job that has failed in the first engine, with an error that the second shall confirm."""
    both = Both()
    both.second.free = free
    both.embedded.over = True
    both.embedded.sink.event(Failed(DOUBTED, TO_CONFIRM))
    return both


def test_the_second_engines_answer_counts() -> None:
    both = doubted()
    both.spark.plan()
    both.spark.deliver(1)
    both.spark.finish()
    assert [type(e) for e in both.sink.events] == [Planned, Rows, Finished]


@pytest.mark.parametrize(
    ("theirs", "stays"),
    [
        (UserError("UNRESOLVED_COLUMN", "In other words."), True),
        (UserError("DIVIDE_BY_ZERO", "Division by zero."), False),
        (REFUSED, True),
        (SHORT, True),
        (ServerError("WORKER_LOST", "Gone."), True),
    ],
)
def test_what_of_the_second_engines_errors_counts(theirs: GatewayError, stays: bool) -> None:
    both = doubted()
    both.spark.fail(theirs)
    assert both.sink.error() is (DOUBTED if stays else theirs)


def test_an_error_after_rows_is_the_second_engines() -> None:
    both = doubted()
    both.spark.plan()
    both.spark.deliver(1)
    lost = ServerError("WORKER_LOST", "Gone.")
    both.spark.fail(lost)
    assert both.sink.error() is lost


@pytest.mark.parametrize("why", ["not free", "takes no more", "has written", "has delivered"])
def test_an_error_that_cannot_be_confirmed_stays(why: str) -> None:
    both = Both()
    both.second.free = why != "not free"
    if why == "takes no more":
        both.second.refusal = ServerError("WORKER_LOST", "The server is shutting down.", retryable=True)
    if why.startswith("has"):
        both.embedded.plan(writes=why == "has written")
    if why == "has delivered":
        both.embedded.deliver(1)
    both.embedded.over = True
    both.embedded.sink.event(Failed(DOUBTED, TO_CONFIRM))
    assert both.sink.error() is DOUBTED and not both.second.runs


def test_a_cancel_ends_the_confirmation() -> None:
    both = doubted()
    both.run.cancel()
    assert both.spark.cancelled is not None
    both.spark.fail(both.spark.cancelled)
    assert isinstance(both.sink.error(), CanceledError)


def test_a_shortage_of_memory_goes_to_the_second_engine_before_any_row() -> None:
    both = Both()
    both.embedded.plan()
    both.embedded.fail(SHORT)
    assert both.spark.job.route == "the embedded engine has not enough memory for it"  # type: ignore[union-attr]
    both.spark.fail(SHORT)  # once
    assert both.sink.error() is SHORT


NO_ROWS = UnsupportedError(
    "DELTA_UNSUPPORTED_SUBQUERY", "Subqueries are not supported in the DELETE.", sqlstate="0AKDC"
)
UNREAD = UserError("PARSE_SYNTAX_ERROR", "Syntax error.")


@pytest.mark.parametrize(
    ("theirs", "planned", "stays"),
    [
        (NO_ROWS, False, True),
        (NO_ROWS, True, True),
        (UNREAD, True, True),
        (UNREAD, False, False),  # perhaps no engine can read it
        (UserError("DIVIDE_BY_ZERO", "Division by zero."), True, False),
        (ResourceError("QUERY_EXECUTION_TIMEOUT_EXCEEDED", "Too long."), True, False),
        (ServerError("WORKER_LOST", "Gone."), True, False),
    ],
)
@pytest.mark.parametrize("writes", [True, False])
def test_a_shortage_of_memory_is_told_where_the_second_engine_cannot_run_it(
    theirs: GatewayError, planned: bool, stays: bool, writes: bool
) -> None:
    both = Both()
    if planned:
        both.embedded.plan()
    both.embedded.fail(SHORT)
    if writes:  # Spark says so before it looks at the statement
        both.spark.plan(writes=True)
    both.spark.fail(theirs)
    assert both.sink.error() is (SHORT if stays else theirs)


def test_a_shortage_of_memory_is_not_told_once_the_second_engine_has_given_rows() -> None:
    both = Both()
    both.embedded.fail(SHORT)
    both.spark.plan()
    both.spark.deliver(1)
    both.spark.fail(REFUSED)
    assert both.sink.error() is REFUSED


@pytest.mark.parametrize("act", ["rows", "write", "datafusion", "spark", "another condition", "disk"])
def test_a_shortage_of_memory_stays(act: str) -> None:
    both = Both(engine=act if act in ("datafusion", "spark") else "auto")
    if act in ("rows", "write"):
        both.embedded.plan(writes=act == "write")
    if act == "rows":
        both.embedded.deliver(1)
    others = {"another condition": ResourceError("RESULT_TOO_LARGE", "Too large."), "disk": disk_full("No room.")}
    error = others.get(act, SHORT)
    both.embedded.fail(error)
    assert both.sink.error() is error and not both.second.runs


def test_nothing_that_has_delivered_or_writes_is_handed_over() -> None:
    for writes in (False, True):
        both = Both()
        both.embedded.plan(writes)
        if not writes:
            both.embedded.deliver(1)
        both.hand_over()
        assert both.sink.error() is REFUSED and not both.second.runs


def test_metadata_calls_are_never_handed_over() -> None:
    for failure in (Failed(SHORT), Failed(REFUSED, TO_SPARK)):
        both = Both(MetadataCall("m", "tables", SessionState("main", "default", "u", {})))
        both.embedded.sink.event(failure)
        assert both.sink.error() is failure.error and not both.second.runs


@pytest.mark.parametrize("error", [None, ResourceError("QUERY_EXECUTION_TIMEOUT_EXCEEDED", "Too long.")])
def test_cancel_before_the_handover_prevents_it(error: GatewayError | None) -> None:
    both = Both()
    both.run.cancel(error)
    assert both.embedded.cancelled is not None
    both.hand_over()  # it was on its way
    assert not both.second.runs
    found = both.sink.error()
    assert found is error or (error is None and isinstance(found, CanceledError))


def test_cancel_after_the_handover_reaches_the_second_engine() -> None:
    both = Both()
    both.hand_over()
    both.run.cancel()
    assert isinstance(both.spark.cancelled, CanceledError) and both.embedded.cancelled is None
    both.spark.fail(both.spark.cancelled)
    assert isinstance(both.sink.error(), CanceledError)


@pytest.mark.parametrize("error", [None, ResourceError("QUERY_EXECUTION_TIMEOUT_EXCEEDED", "Too long.")])
def test_cancel_while_the_second_engine_takes_it_is_not_lost(error: GatewayError | None) -> None:
    both = Both()
    submit = both.second.submit

    def cancelled_meanwhile(job: Statement, sink: SinkProtocol) -> FakeRun:
        both.run.cancel(error)
        return submit(job, sink)

    both.second.submit = cancelled_meanwhile  # type: ignore[assignment,method-assign]
    both.hand_over()
    assert both.spark.cancelled is not None and (error is None or both.spark.cancelled is error)


def test_a_handover_before_submit_returns_is_not_forgotten() -> None:
    """The first pool's thread may be faster than the caller: the run that counts is the second engine's."""
    first, second, sink = FakePool(), FakePool(), Sink()
    submit = first.submit

    def at_once(job: Statement, to: SinkProtocol) -> FakeRun:
        run = submit(job, to)
        to.event(Failed(REFUSED, TO_SPARK))
        run.over = True
        return run

    first.submit = at_once  # type: ignore[assignment,method-assign]
    run = RoutedPool(first, second).submit(Statement("s", "x", SessionState("main", "d", "u", {})), sink)  # type: ignore[arg-type]
    run.cancel()
    assert second.runs[0].cancelled is not None


def test_cancel_and_handover_at_the_same_time_always_end_the_job() -> None:
    def both_at_once(*acts: Callable[[], None]) -> None:
        barrier = threading.Barrier(len(acts))
        threads = [threading.Thread(target=lambda act=act: (barrier.wait(), act())) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for _ in range(300):
        both = Both()
        both_at_once(both.run.cancel, both.hand_over)
        if both.second.runs:
            assert both.spark.cancelled is not None  # handed over, but told to stop
            both.spark.fail(both.spark.cancelled)
        assert isinstance(both.sink.error(), CanceledError)


def test_stop_stops_both() -> None:
    both = Both()
    both.hand_over()
    both.pool.stop()
    assert both.first.stopped and both.second.stopped
    assert "shutting down" in both.sink.error().message
