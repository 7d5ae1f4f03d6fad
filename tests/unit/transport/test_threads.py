"""Threads come with calls and go when there are none."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, wait

import pytest

from gateway.transport.threads import Threads


def alive(name: str) -> int:
    """How many threads have a name."""
    return sum(thread.name == name for thread in threading.enumerate())


def gone(name: str, seconds: float = 10.0) -> bool:
    """Whether all threads of a name end in time."""
    end = time.monotonic() + seconds
    while alive(name) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(name)


def test_a_crowd_is_served_at_once_and_its_threads_end() -> None:
    threads = Threads("crowd", 256, idle_seconds=0.2)
    together = threading.Barrier(256)
    calls = [threads.submit(lambda: together.wait(30)) for _ in range(256)]
    assert sorted(call.result(30) for call in calls) == list(range(256))
    assert gone("crowd")
    assert threads.submit(lambda: 7).result(10) == 7


def test_calls_beyond_the_threads_wait_for_their_turn() -> None:
    threads = Threads("few", 3, idle_seconds=0.2)
    most = 0

    def call(number: int) -> int:
        nonlocal most
        most = max(most, alive("few"))
        time.sleep(0.001)
        return number

    calls = [threads.submit(lambda number=number: call(number)) for number in range(200)]  # type: ignore[misc]
    assert [call.result(30) for call in calls] == list(range(200))
    assert most == 3


def test_one_call_after_the_other_needs_one_thread() -> None:
    threads = Threads("one", 8, idle_seconds=5)
    for _ in range(50):
        assert threads.submit(lambda: threading.current_thread().name).result(10) == "one"
        time.sleep(0.001)
    assert alive("one") <= 2  # the next call may come before the thread has noticed that it is idle
    threads.close()
    assert gone("one")


def test_what_a_call_raises_reaches_who_waits_for_it() -> None:
    threads = Threads("raising", 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(10)
    assert threads.submit(lambda: 1).result(10) == 1
    threads.close()


def test_the_end_lets_calls_in_flight_finish_and_starts_no_more() -> None:
    threads = Threads("ending", 1)
    goes_on = threading.Event()
    first, second = threads.submit(lambda: goes_on.wait(30)), threads.submit(lambda: True)
    threads.close()
    goes_on.set()
    assert first.result(10) is True
    with pytest.raises(CancelledError):
        second.result(10)
    with pytest.raises(RuntimeError):
        threads.submit(lambda: 1)
    wait([first])
    assert gone("ending")


def test_who_hands_over_calls_waits_for_no_thread_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an event loop, which would stand still while others compute."""
    handed_over, waited = threading.Event(), []
    start = threading.Thread.start

    def late(thread: threading.Thread) -> None:
        if thread.name == "many":
            waited.append(handed_over.wait(5))
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", late)
    threads = Threads("many", 256, idle_seconds=0.2)
    calls = [threads.submit(lambda: 7) for _ in range(100)]
    handed_over.set()
    assert [call.result(30) for call in calls] == [7] * 100
    assert waited and all(waited)
    assert gone("many")
