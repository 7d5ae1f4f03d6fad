"""Jobs in processes: order of events, spooling, cancels that always end, and limits that kill."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pytest

from gateway.engine.base import Event, Failed, Finished, MetadataCall, Planned, Progress, Rows, SessionState, Statement
from gateway.engine.pool import WorkerPool
from gateway.engine.pool_watch import PoolLimits
from gateway.errors import CanceledError, ResourceError, ServerError, UserError
from tests.live.alone import in_own_process
from tests.live.fakes import FakeHandler, batch
from tests.live.listener import Listener

SESSION = SessionState("main", "default", "somebody", {})
SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})
WAIT = 30.0


def statement(text: str) -> Statement:
    return Statement("id-" + text[:20], text, SESSION)


def make(size: int = 2, handler: FakeHandler | None = None, limits: PoolLimits | None = None) -> WorkerPool:
    pool = WorkerPool(handler or FakeHandler(), size, limits)
    pool.start()
    return pool


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = make()
    pool.wait_ready(WAIT)
    yield pool
    pool.stop()
    assert pool.process_ids() == []


def run(pool: WorkerPool, text: str) -> Listener:
    sink = Listener()
    pool.submit(statement(text), sink)
    sink.last()
    return sink


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or before it was read
        return False


def test_events_come_in_order_and_small_rows_inside_them(pool: WorkerPool) -> None:
    sink = run(pool, "rows 3; progress 0.5; rows 2")
    assert [type(e) for e in sink.events] == [Planned, Rows, Progress, Rows, Finished]
    found = [
        pa.ipc.read_record_batch(pa.py_buffer(e.data), SCHEMA) for e in sink.events if isinstance(e, Rows) and e.data
    ]
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([batch(0, 5)]).cast(SCHEMA))
    assert sink.events[-1] == Finished(5, changes=())


def test_a_metadata_call_is_a_job_too(pool: WorkerPool) -> None:
    sink = Listener()
    pool.submit(MetadataCall("m", "tables", SESSION), sink)
    assert isinstance(sink.last(), Finished)


def test_errors_keep_class_condition_and_statement(pool: WorkerPool) -> None:
    error = run(pool, "rows 1; fail DIVIDE_BY_ZERO").error()
    assert isinstance(error, UserError) and error.condition == "DIVIDE_BY_ZERO" and error.sqlstate == "22012"


def test_an_unexpected_exception_is_an_internal_error_without_its_text(pool: WorkerPool) -> None:
    error = run(pool, "bug").error()
    assert isinstance(error, ServerError) and error.condition == "INTERNAL_ERROR"
    assert "a bug in the handler" not in error.text()
    assert isinstance(run(pool, "rows 1").last(), Finished)


def test_large_results_go_through_the_spool_file(pool: WorkerPool, tmp_path: Path) -> None:
    with open(tmp_path / "spool", "w+b") as file:
        sink = Listener(file.fileno())
        pool.submit(statement("rows 100001"), sink)
        assert isinstance(sink.last(), Finished)
        parts = [e for e in sink.events if isinstance(e, Rows)]
        inline = [e for e in parts if e.data is not None]
        assert sum(len(e.data or b"") for e in inline) <= 256 * 1024
        assert 0 < len(inline) < len(parts)
        found = [
            pa.ipc.read_record_batch(
                pa.py_buffer(e.data if e.data is not None else os.pread(file.fileno(), e.length, e.offset)), SCHEMA
            )
            for e in parts
        ]
    assert pa.Table.from_batches(found)["id"].to_pylist() == list(range(100_001))


def test_huge_batches_are_split_by_rows(pool: WorkerPool, tmp_path: Path) -> None:
    with open(tmp_path / "spool", "w+b") as file:
        sink = Listener(file.fileno())
        pool.submit(statement("rows 40 40 1000000"), sink)
        sink.last()
    sizes = [e.length for e in sink.events if isinstance(e, Rows)]
    assert len(sizes) >= 5 and max(sizes) <= 9 << 20


def test_without_a_spool_file_the_job_fails_with_the_reason(pool: WorkerPool) -> None:
    assert run(pool, "rows 100000").error().message == "No spool here."


def test_the_spool_limit_and_a_full_disk_are_resource_errors(tmp_path: Path) -> None:
    limited = make(1, limits=PoolLimits(spool_limit=1 << 20))
    try:
        with open(tmp_path / "spool", "w+b") as file:
            sink = Listener(file.fileno())
            limited.submit(statement("rows 100000"), sink)
            error = sink.error()
            assert isinstance(error, ResourceError) and error.condition == "RESULT_TOO_LARGE"
        with open("/dev/full", "wb") as file:
            sink = Listener(file.fileno())
            limited.submit(statement("rows 30000 8192"), sink)
            error = sink.error()
            assert isinstance(error, ResourceError) and "No space left" in error.message
    finally:
        limited.stop()


def test_cancel_asks_first(pool: WorkerPool) -> None:
    sink = Listener()
    job = pool.submit(statement("sleep 60"), sink)
    assert sink.running.wait(WAIT)
    job.cancel()
    assert isinstance(sink.error(), CanceledError)
    job.cancel()
    assert len(sink.of(Failed)) == 1


def test_what_a_cancelled_job_goes_on_with_holds_up_no_other() -> None:
    """It may stop when asked, and leave the engine's threads in a loop that nothing ends: its process gets no other job."""
    small = make(1)
    try:
        sink = Listener()
        job = small.submit(statement("show; haunt 60; sleep 60"), sink)
        eventually(lambda: bool(sink.of(Rows)))
        job.cancel()
        assert isinstance(sink.error(), CanceledError)
        assert process_of(run(small, "show")) != process_of(sink)
    finally:
        small.stop()


def process_of(sink: Listener) -> int:
    """The process that a job has told of."""
    rows = sink.of(Rows)[0]
    assert isinstance(rows, Rows) and rows.data is not None
    return int(pa.ipc.read_record_batch(pa.py_buffer(rows.data), SCHEMA)["id"][0].as_py())


def test_cancel_kills_what_does_not_listen(pool: WorkerPool) -> None:
    sink = Listener()
    job = pool.submit(statement("show; busy 600"), sink)
    eventually(lambda: bool(sink.of(Rows)))
    rows = sink.events[1]
    assert isinstance(rows, Rows) and rows.data is not None
    busy = pa.ipc.read_record_batch(pa.py_buffer(rows.data), SCHEMA)["id"][0].as_py()
    assert alive(busy)
    job.cancel(ResourceError("QUERY_EXECUTION_TIMEOUT_EXCEEDED", "Too long."))
    assert sink.error().condition == "QUERY_EXECUTION_TIMEOUT_EXCEEDED"
    assert not alive(busy)  # so its CPU has stopped as well
    assert isinstance(run(pool, "rows 1").last(), Finished)


def test_cancel_right_after_submit_always_ends_the_job(pool: WorkerPool) -> None:
    for _ in range(50):
        sink = Listener()
        pool.submit(statement("sleep 60"), sink).cancel()
        assert isinstance(sink.error(), CanceledError)


def test_a_waiting_job_is_cancelled_at_once() -> None:
    cold = make(1, FakeHandler(warm_seconds=60))
    try:
        sink = Listener()
        job = cold.submit(statement("rows 1"), sink)
        job.cancel()
        assert isinstance(sink.error(), CanceledError)
        assert cold.stats().waiting == 0
    finally:
        cold.stop()


def test_a_job_that_is_never_planned_is_killed_as_too_complex() -> None:
    hasty = make(1, limits=PoolLimits(plan=0.5))
    try:
        sink, running = Listener(), Listener()
        hasty.submit(statement("unplanned; busy 60"), sink)
        failure = sink.last()
        assert isinstance(failure, Failed)
        assert failure.error.condition == "STATEMENT_TOO_COMPLEX"
        hasty.submit(statement("plan; sleep 1.5"), running)  # once planned it may take its time
        assert isinstance(running.last(), Finished)
    finally:
        hasty.stop()


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("write; planning; busy 60", False),
        ("write; " + "planning; sleep 0.9; computing; sleep 0.05; " * 4 + "sleep 0", False),  # all of it counts
        ("unplanned; computing; sleep 2; planning; write; sleep 0.1", True),  # rows that are read before
        ("write; planning; sleep 0.2; computing; sleep 2", True),
    ],
)
def test_what_is_planned_behind_the_plan_counts_too(text: str, ends: bool) -> None:
    hasty = make(1, limits=PoolLimits(plan=1.2))
    try:
        sink = Listener()
        hasty.submit(statement(text), sink)
        last = sink.last()
        assert isinstance(last, Finished if ends else Failed)
        assert ends or sink.error().condition == "STATEMENT_TOO_COMPLEX"
    finally:
        hasty.stop()


def test_a_job_that_ends_later_than_it_thought_has_told_its_plan_all_the_same() -> None:
    hasty = make(1, limits=PoolLimits(plan=3.0))
    try:
        sink = Listener()
        hasty.submit(statement("soon; rows 3; busy 6"), sink)
        assert sink.running.wait(WAIT) and not sink.ended.is_set()
        assert isinstance(sink.last(), Finished)
        assert [type(event) for event in sink.events] == [Planned, Rows, Finished]
    finally:
        hasty.stop()


def test_a_process_over_its_memory_is_killed_with_a_resource_error() -> None:
    small = make(1, limits=PoolLimits(memory_limit=400 << 20, watch=0.02))
    try:
        error = run(small, "allocate 600").error()
        assert isinstance(error, ResourceError) and error.condition == "RESOURCE_EXHAUSTED"
        assert error.sqlstate == "53200" and "400 MiB" in error.message
        assert isinstance(run(small, "rows 1").last(), Finished)
    finally:
        small.stop()


def test_a_process_that_computes_without_a_job_is_ended() -> None:
    small = make(1, limits=PoolLimits(memory_limit=4 << 30, watch=0.02, settle=0.3))
    try:
        assert isinstance(run(small, "haunt 60; rows 1").last(), Finished)
        here = small.process_ids()
        eventually(lambda: not all(map(alive, here)))
        assert isinstance(run(small, "rows 1").last(), Finished)
    finally:
        small.stop()


def test_a_process_that_idles_stays() -> None:
    small = make(1, limits=PoolLimits(memory_limit=4 << 30, watch=0.02, settle=0.3))
    try:
        run(small, "rows 1")
        small.wait_ready(WAIT)
        eventually(lambda: small.stats().starting == 0)
        here = small.process_ids()
        time.sleep(1.5)
        assert small.process_ids() == here
    finally:
        small.stop()


def test_a_read_without_rows_is_run_again_unseen(pool: WorkerPool, tmp_path: Path) -> None:
    sink = run(pool, f"die_once {tmp_path / 'mark'}; rows 4")
    assert sink.events[-1] == Finished(4, changes=())
    assert sum(e.count for e in sink.events if isinstance(e, Rows)) == 4


def test_death_before_planning_is_run_again_too(pool: WorkerPool, tmp_path: Path) -> None:
    sink = run(pool, f"unplanned; die_once {tmp_path / 'mark'}; plan; rows 1")
    assert isinstance(sink.last(), Finished)


def test_death_after_rows_is_one_clear_retryable_error(pool: WorkerPool) -> None:
    sink = run(pool, "rows 5; die")
    error = sink.error()
    assert isinstance(error, ServerError) and error.condition == "WORKER_LOST" and error.sqlstate == "08006"
    assert error.retryable and "SIGKILL" in error.message
    assert isinstance(run(pool, "rows 1").last(), Finished)


def test_a_write_is_never_run_twice(pool: WorkerPool, tmp_path: Path) -> None:
    error = run(pool, f"write; die_once {tmp_path / 'mark'}; rows 1").error()
    assert error.condition == "WORKER_LOST" and error.retryable and "committed" in error.message


def test_a_write_that_is_lost_the_second_time_may_have_been_committed(pool: WorkerPool, tmp_path: Path) -> None:
    error = run(pool, f"unplanned; die_once {tmp_path / 'mark'}; write; die").error()
    assert error.condition == "WORKER_LOST" and "twice" in error.message
    assert "may or may not have been committed" in error.message


def test_a_statement_that_always_kills_is_told_so(pool: WorkerPool) -> None:
    error = run(pool, "die").error()
    assert error.condition == "WORKER_LOST" and not error.retryable and "itself" in error.message


@pytest.mark.parametrize("phase", ["idle", "starting", "queued"])
def test_kill_from_outside_is_survived(phase: str) -> None:
    pool = make(1, FakeHandler(warm_seconds=0.3 if phase == "starting" else 0.0))
    try:
        if phase != "starting":
            pool.wait_ready(WAIT)
        eventually(lambda: bool(pool.process_ids()))
        sink = Listener()
        if phase == "queued":
            pool.submit(statement("sleep 1"), sink)
            second, third = Listener(), Listener()
            eventually(lambda: pool.stats().idle == 1)
            pool.submit(statement("sleep 0.5"), second)
            pool.submit(statement("rows 1"), third)
        for pid in pool.process_ids():
            os.kill(pid, signal.SIGKILL)
        assert isinstance(run(pool, "rows 1").last(), Finished)
        if phase == "queued":
            assert isinstance(sink.last(), Finished)
            assert isinstance(second.last(), Finished)
            assert isinstance(third.last(), Finished)
    finally:
        pool.stop()


def test_many_jobs_survive_random_kills() -> None:
    pool = make(2)
    try:
        pool.wait_ready(WAIT)
        sinks = [Listener() for _ in range(60)]
        for sink in sinks:
            pool.submit(statement("sleep 0.02; rows 3"), sink)
        for _ in range(4):
            time.sleep(0.15)
            for pid in pool.process_ids()[:1]:
                os.kill(pid, signal.SIGKILL)
        for sink in sinks:
            last = sink.last()
            assert isinstance(last, Finished) or (isinstance(last, Failed) and last.error.condition == "WORKER_LOST"), (
                last
            )
        eventually(lambda: pool.stats().idle >= 1 and pool.stats().busy == 0)
    finally:
        pool.stop()


def test_there_are_always_warm_spares_within_the_bound(tmp_path: Path) -> None:
    last = statement(f"until {tmp_path / 'over'}")
    pool = make(4, limits=PoolLimits(idle=0.3))
    try:
        pool.wait_ready(WAIT)
        eventually(lambda: pool.stats().idle == 3)
        assert len(pool.process_ids()) == 3
        sinks = [Listener() for _ in range(2)]
        for sink in sinks:
            pool.submit(last, sink)
        eventually(lambda: pool.stats().idle == 3 and pool.stats().busy == 2)
        assert len(pool.process_ids()) == 5
        more = [Listener() for _ in range(2)]
        for sink in more:
            pool.submit(last, sink)
        eventually(lambda: pool.stats().idle == 1 and pool.stats().busy == 4)
        assert len(pool.process_ids()) == 5
        (tmp_path / "over").touch()
        for sink in sinks + more:
            sink.last()
        # The watch looks again within seconds: surplus processes end, the spares stay.
        eventually(lambda: len(pool.process_ids()) == 3)
        assert pool.stats().idle == 3
    finally:
        pool.stop()


def test_a_handler_that_cannot_start_is_an_error_with_the_reason() -> None:
    pool = make(1, FakeHandler(broken=True))
    try:
        with pytest.raises(ServerError, match="told to be broken"):
            pool.wait_ready(WAIT)
        sink = Listener()
        pool.submit(statement("rows 1"), sink)
        assert "told to be broken" in sink.error().message
    finally:
        pool.stop()


class _Unwritable(FakeHandler):
    """One whose folder is on a disk that takes nothing."""

    def warm_up(self) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "/state/spill/1-abc")


def test_clients_are_told_no_folder_of_the_server_that_a_process_lacks(capfd: pytest.CaptureFixture[str]) -> None:
    pool = make(1, _Unwritable())
    try:
        with pytest.raises(ServerError, match="cannot be started"):
            pool.wait_ready(WAIT)
        sink = Listener()
        pool.submit(statement("rows 1"), sink)
        told = sink.error().message
        assert "Read-only file system" in told
        assert "/state" not in told and "Errno" not in told and "OSError" not in told
    finally:
        pool.stop()
    assert "/state/spill/1-abc: Read-only file system" in capfd.readouterr().err


def test_a_factory_that_cannot_travel_is_an_error() -> None:
    pool = WorkerPool(lambda: FakeHandler(), 1)
    pool.start()
    try:
        with pytest.raises(ServerError, match="cannot be started"):
            pool.wait_ready(WAIT)
    finally:
        pool.stop()


def test_a_job_that_cannot_travel_fails_alone(pool: WorkerPool) -> None:
    sink = Listener()
    session = SessionState("main", "default", "x", MappingProxyType({}))
    pool.submit(Statement("s", "rows 1", session), sink)
    assert sink.error().condition == "INTERNAL_ERROR"
    assert isinstance(run(pool, "rows 1").last(), Finished)


def test_stop_ends_processes_and_jobs_and_leaks_nothing() -> None:
    in_own_process(stop_ends_everything)


def stop_ends_everything() -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    pool = make(1)
    pool.wait_ready(WAIT)
    running, queued = Listener(), [Listener(), Listener()]
    pool.submit(statement("sleep 60"), running)
    for sink in queued:
        pool.submit(statement("sleep 60"), sink)
    pids = pool.process_ids()
    pool.stop()
    for sink in [running, *queued]:
        assert "shutting down" in sink.error().message
    assert not any(alive(pid) for pid in pids)
    with pytest.raises(ServerError, match="shutting down"):
        pool.submit(statement("rows 1"), Listener())
    eventually(lambda: threading.active_count() <= threads)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    pool.stop()


def test_a_sink_that_raises_ends_only_its_job(pool: WorkerPool) -> None:
    class Raising(Listener):
        def event(self, event: Event) -> None:
            if isinstance(event, Rows):
                raise ValueError("a bug in the sink")
            super().event(event)

    sink = Raising()
    pool.submit(statement("rows 1; sleep 60"), sink)
    assert sink.error().condition == "INTERNAL_ERROR"
    assert isinstance(run(pool, "rows 1").last(), Finished)


PARENT = """
import sys, time, threading
from gateway.engine.base import SessionState, Statement
from tests.live.fakes import FakeHandler
from gateway.engine.pool import WorkerPool

class Sink:
    def event(self, event): pass
    def spool_descriptor(self): raise NotImplementedError

pool = WorkerPool(FakeHandler(), 3)
pool.start()
pool.wait_ready()
session = SessionState("main", "default", "x", {})
for text in ("busy 600", "sleep 600"):
    pool.submit(Statement("s", text, session), Sink())
while pool.stats().busy < 2 or pool.stats().starting:
    time.sleep(0.01)
print(*pool.process_ids(), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_the_front(how: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    assert parent.stdout is not None
    try:
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 4 and all(alive(pid) for pid in pids)
        parent.send_signal(how)
        parent.wait(WAIT)
        eventually(lambda: not any(alive(pid) for pid in pids))
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
