"""Jobs that share one process: fairness, each its own errors and files, and the loss of the process."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pytest

from gateway.engine.base import (
    Event,
    Failed,
    Finished,
    Handover,
    Planned,
    Progress,
    Rows,
    SessionState,
    Statement,
    Waiting,
)
from gateway.engine.shared import SharedLimits, SharedPool, SharedRun
from gateway.errors import CanceledError, ResourceError, ServerError, UserError
from tests.live.alone import in_own_process
from tests.live.fakes import FakeHandler
from tests.live.listener import Listener

SESSION = SessionState("main", "default", "somebody", {})
SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})
WAIT = 30.0
HANDOVER = Handover("spark", "")


def statement(text: str) -> Statement:
    return Statement("id-" + text[:20], text, SESSION)


def submit(pool: SharedPool, text: str) -> tuple[SharedRun, Listener]:
    sink = Listener()
    return pool.submit(statement(text), sink), sink


def eventually(condition: Callable[[], object], seconds: float = WAIT) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def finishes(pool: SharedPool, text: str = "rows 1") -> Listener:
    sink = submit(pool, text)[1]
    assert isinstance(sink.last(), Finished), sink.events
    return sink


Make = Callable[..., SharedPool]


@pytest.fixture
def make() -> Iterator[Make]:
    pools: list[SharedPool] = []

    def one(handler: FakeHandler | None = None, **limits: object) -> SharedPool:
        pools.append(SharedPool(handler or FakeHandler(), SharedLimits(**limits)))  # type: ignore[arg-type]
        return pools[-1]

    yield one
    for pool in pools:
        pool.stop()
        assert pool.process_id() is None


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    pool = SharedPool(FakeHandler(), SharedLimits(threads=3))
    pool.start()
    eventually(lambda: pool.ready)
    yield pool
    pool.stop()


def pid(pool: SharedPool) -> int:
    found = pool.process_id()
    assert found is not None
    return found


def test_events_come_in_order_and_begin_with_waiting(pool: SharedPool) -> None:
    sink = finishes(pool, "rows 3; progress 0.5; rows 2")
    assert [type(e) for e in sink.events] == [Waiting, Progress, Planned, Rows, Progress, Rows, Finished]
    assert sink.events[1] == Progress(None, "Running on Spark")
    assert sink.events[-1] == Finished(5, changes=())


def test_jobs_run_side_by_side_and_no_more_than_the_threads(pool: SharedPool) -> None:
    runs = [submit(pool, "progress 0.1; sleep 60") for _ in range(3)]
    for _, sink in runs:
        eventually(lambda sink=sink: len(sink.of(Progress)) == 2)  # type: ignore[misc]
    run, waits = submit(pool, "rows 1")
    time.sleep(0.2)
    assert waits.events == [Waiting("Waiting for a free thread of Spark", HANDOVER)]
    runs[0][0].cancel()
    assert isinstance(waits.last(), Finished)
    for each, sink in runs:
        each.cancel()
        assert isinstance(sink.error(), CanceledError)
    run.cancel()  # over already
    assert len(waits.of(Failed)) == 0


def test_callers_take_turns_and_each_has_some_of_the_queue(make: Make) -> None:
    pool = make(threads=1, queue=20)
    finishes(pool)

    def send(user: str, session: str, text: str) -> tuple[SharedRun, Listener]:
        sink = Listener()
        job = Statement(f"id-{text}", text, replace(SESSION, user=user, session_id=session))
        return pool.submit(job, sink), sink

    first, _ = send("mallory", "m1", "progress 0.1; sleep 60")
    flood = [send("mallory", "m1", "sleep 60") for _ in range(20)]
    with pytest.raises(ResourceError, match="20 statements wait for Spark already"):
        send("mallory", "m2", "rows 1")
    others = [send("ann", session, "rows 1") for session in ("a1", "a2")]
    with pytest.raises(ResourceError):
        send("ann", "a3", "rows 1")
    first.cancel()
    for (run, sink), (_, other) in zip(flood, others, strict=False):
        eventually(partial(sink.of, Progress))
        run.cancel()
        assert isinstance(other.last(), Finished)
    for run, _ in flood:
        run.cancel()
    assert all(isinstance(sink.error(), CanceledError) for _, sink in flood)
    finishes(pool)


def test_errors_and_bugs_end_their_own_job(pool: SharedPool) -> None:
    before = pid(pool)
    other, sink = submit(pool, "sleep 60")
    assert isinstance(submit(pool, "fail DIVIDE_BY_ZERO")[1].error(), UserError)
    assert submit(pool, "bug")[1].error().condition == "INTERNAL_ERROR"
    travels_not = Listener()
    pool.submit(Statement("s", "rows 1", SessionState("main", "default", "x", MappingProxyType({}))), travels_not)
    assert travels_not.error().condition == "INTERNAL_ERROR"
    assert not sink.ended.is_set() and pid(pool) == before
    other.cancel()
    assert isinstance(sink.error(), CanceledError)


def test_a_sink_that_raises_ends_only_its_job(pool: SharedPool) -> None:
    class Raising(Listener):
        def event(self, event: Event) -> None:
            if isinstance(event, Rows):
                raise ValueError("a bug in the sink")
            super().event(event)

    before, sink = pid(pool), Raising()
    other, others = submit(pool, "sleep 60")
    pool.submit(statement("rows 1; sleep 60"), sink)
    assert sink.error().condition == "INTERNAL_ERROR"
    assert not others.ended.is_set() and pid(pool) == before
    other.cancel()
    others.last()


def test_large_results_go_through_the_spool_files_of_their_own_jobs(pool: SharedPool, tmp_path: Path) -> None:
    files = [open(tmp_path / f"spool{i}", "w+b") for i in range(3)]  # noqa: SIM115
    sinks = [Listener(file.fileno()) for file in files]
    for i, sink in enumerate(sinks):
        pool.submit(statement(f"rows {100_001 + i}"), sink)
    for i, (sink, file) in enumerate(zip(sinks, files, strict=True)):
        assert isinstance(sink.last(), Finished)
        parts = [e for e in sink.events if isinstance(e, Rows)]
        assert 0 < len([e for e in parts if e.data is not None]) < len(parts)
        ids: list[int] = []
        for e in parts:
            data = e.data if e.data is not None else os.pread(file.fileno(), e.length, e.offset)
            ids += pa.ipc.read_record_batch(pa.py_buffer(data), SCHEMA)["id"].to_pylist()
        assert ids == list(range(100_001 + i))
        file.close()


def test_without_a_spool_file_the_job_fails_with_the_reason(pool: SharedPool) -> None:
    assert submit(pool, "rows 100000")[1].error().message == "No spool here."
    finishes(pool)


def test_descriptors_are_closed_again(pool: SharedPool, tmp_path: Path) -> None:
    folder = f"/proc/{pid(pool)}/fd"
    before, ours = len(os.listdir(folder)), len(os.listdir("/proc/self/fd"))
    with open(tmp_path / "spool", "w+b") as file:
        for text in ("rows 100000", "rows 100000; fail", "rows 100000; sleep 60"):
            sink = Listener(file.fileno())
            run = pool.submit(statement(text), sink)
            if "sleep" in text:
                eventually(lambda sink=sink: any(isinstance(e, Rows) and e.length for e in sink.events))  # type: ignore[misc]
                run.cancel()
            sink.last()
    eventually(lambda: len(os.listdir(folder)) <= before)
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= ours)


def test_more_than_the_queue_holds_is_refused(make: Make) -> None:
    pool = make(FakeHandler(warm_seconds=60), queue=2)
    for _ in range(2):
        submit(pool, "rows 1")
    with pytest.raises(ResourceError, match="2 statements wait for Spark already") as raised:
        submit(pool, "rows 1")
    assert raised.value.condition == "RESOURCE_EXHAUSTED" and raised.value.retryable


def test_nothing_is_started_before_the_first_job(make: Make) -> None:
    pool = make()
    time.sleep(0.2)
    assert pool.process_id() is None and not pool.ready


def test_jobs_wait_in_order_for_the_start(make: Make) -> None:
    pool = make(FakeHandler(warm_seconds=1.0), threads=2)
    sinks = [submit(pool, "rows 1")[1] for _ in range(6)]
    assert all(s.events == [Waiting("Waiting for Spark to start", HANDOVER)] for s in sinks)
    for sink in sinks:
        assert isinstance(sink.last(), Finished)
    assert pool.ready


def test_a_failed_start_is_told_to_all_who_wait_and_tried_again_for_the_next(make: Make) -> None:
    pool = make(FakeHandler(broken=True))
    sinks = [submit(pool, "rows 1")[1] for _ in range(3)]
    for sink in sinks:
        error = sink.error()
        assert error.condition == "WORKER_LOST" and "Spark cannot be started: " in error.message
        assert "told to be broken" in error.message
    assert "told to be broken" in submit(pool, "rows 1")[1].error().message
    assert not pool.ready and pool.process_id() is None


def test_a_start_that_takes_too_long_is_given_up(make: Make) -> None:
    pool = make(FakeHandler(warm_seconds=60), start=0.5)
    started = time.monotonic()
    assert "not ready after 0.5 seconds" in submit(pool, "rows 1")[1].error().message
    assert time.monotonic() - started < 10
    assert "not ready after" in submit(pool, "rows 1")[1].error().message  # the watch sees the second start as well


def test_a_factory_that_cannot_travel_is_an_error() -> None:
    pool = SharedPool(lambda: FakeHandler())
    try:
        assert "cannot be started" in submit(pool, "rows 1")[1].error().message
    finally:
        pool.stop()


def test_a_loss_fails_what_runs_once_and_serves_what_waits(make: Make) -> None:
    pool = make(threads=2)
    finishes(pool)
    before = pid(pool)
    reads, writes = submit(pool, "rows 1; sleep 60")[1], submit(pool, "write; sleep 60")[1]
    waits = [submit(pool, "rows 4")[1] for _ in range(3)]
    eventually(lambda: reads.of(Rows) and writes.of(Planned))
    os.kill(before, signal.SIGKILL)
    for sink in (reads, writes):
        error = sink.error()
        assert isinstance(error, ServerError) and error.retryable and error.condition == "WORKER_LOST"
        assert "Spark was lost (SIGKILL)" in error.message
        assert ("committed" in error.message) == (sink is writes) == ("send it again" not in error.message)
    for sink in waits:
        assert isinstance(sink.last(), Finished)
        assert sum(e.count for e in sink.events if isinstance(e, Rows)) == 4
    assert pid(pool) != before


def test_exit_codes_are_told_in_words() -> None:
    pool = SharedPool(FakeHandler(), ends={71: "its JVM ended"})
    try:
        assert "Spark was lost (its JVM ended) while" in submit(pool, "exit 71")[1].error().message
        assert "Spark was lost (exit code 3) while" in submit(pool, "exit 3")[1].error().message
    finally:
        pool.stop()


def test_many_jobs_survive_random_kills(make: Make) -> None:
    pool = make(threads=3)
    runs = [submit(pool, "sleep 0.05; rows 3") for _ in range(60)]
    for _ in range(4):
        time.sleep(0.4)
        found = pool.process_id()
        if found is not None:
            os.kill(found, signal.SIGKILL)
        runs[-1][0].cancel()
    for _, sink in runs:
        last = sink.last()
        assert isinstance(last, Finished) or (
            isinstance(last, Failed) and last.error.condition in ("WORKER_LOST", "OPERATION_CANCELED")
        ), last
    finishes(pool)


def test_a_waiting_job_is_cancelled_at_once(make: Make) -> None:
    pool = make(FakeHandler(warm_seconds=60))
    run, sink = submit(pool, "rows 1")
    run.cancel(ResourceError("QUERY_EXECUTION_TIMEOUT_EXCEEDED", "Too long."))
    assert sink.error().condition == "QUERY_EXECUTION_TIMEOUT_EXCEEDED"
    run.cancel()
    assert len(sink.of(Failed)) == 1


def test_a_running_job_is_asked_and_the_others_go_on(pool: SharedPool) -> None:
    before = pid(pool)
    other, others = submit(pool, "sleep 60")
    run, sink = submit(pool, "sleep 60")
    eventually(lambda: sink.of(Planned) and others.of(Planned))
    run.cancel()
    assert isinstance(sink.error(), CanceledError)
    assert not others.ended.is_set() and pid(pool) == before
    other.cancel()
    others.last()


def test_a_job_that_does_not_stop_ends_the_process(make: Make) -> None:
    pool = make(grace=0.5)
    finishes(pool)
    other, stubborn = submit(pool, "sleep 60")[1], Listener()
    run = pool.submit(statement("busy 600"), stubborn)
    eventually(lambda: other.of(Planned) and stubborn.of(Planned))
    run.cancel()
    assert isinstance(stubborn.error(), CanceledError)
    assert "a cancelled statement did not stop" in other.error().message and other.error().retryable
    finishes(pool)


def test_cancel_right_after_submit_always_ends_the_job(pool: SharedPool) -> None:
    for _ in range(100):
        run, sink = submit(pool, "sleep 60")
        run.cancel()
        assert isinstance(sink.error(), CanceledError)


def test_cancel_while_a_spool_file_is_awaited(make: Make) -> None:
    release = threading.Event()

    class Slow(Listener):
        def spool_descriptor(self) -> int:
            release.wait(WAIT)
            return super().spool_descriptor()

    pool = make()
    sink = Slow()
    run = pool.submit(statement("rows 100000"), sink)
    eventually(lambda: sink.of(Rows))
    run.cancel()
    release.set()
    assert isinstance(sink.error(), CanceledError)
    finishes(pool)


def test_stop_ends_everything_and_leaks_nothing() -> None:
    in_own_process(stop_ends_everything)


def stop_ends_everything() -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    pool = SharedPool(FakeHandler(), SharedLimits(threads=2))
    sinks = [submit(pool, "sleep 60")[1] for _ in range(4)]
    eventually(lambda: pool.ready and sinks[1].of(Planned))
    process = pid(pool)
    pool.stop()
    for sink in sinks:
        assert "shutting down" in sink.error().message
    assert not os.path.exists(f"/proc/{process}")
    with pytest.raises(ServerError, match="shutting down"):
        submit(pool, "rows 1")
    pool.stop()
    eventually(lambda: threading.active_count() <= threads)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_stop_while_it_starts() -> None:
    pool = SharedPool(FakeHandler(warm_seconds=60))
    sink = submit(pool, "rows 1")[1]
    pool.stop()
    assert "shutting down" in sink.error().message
    assert pool.process_id() is None
