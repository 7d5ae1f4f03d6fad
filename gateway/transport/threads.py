"""Threads for blocking calls: as many as there are calls, up to a number, and gone again when nothing came for a while."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

IDLE_SECONDS = 15.0

R = TypeVar("R")


@dataclass(slots=True)
class _Task:
    """A call, and where its outcome goes."""

    future: Future[Any]
    call: Callable[[], Any]

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            outcome = self.call()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the call
            self.future.set_exception(error)
        else:
            self.future.set_result(outcome)


@dataclass(slots=True, eq=False)
class _Idle:
    """A thread that waits, its lock held until there is something to do."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    task: _Task | None = None


class Threads:
    """What `ThreadPoolExecutor` is, but that a thread ends which had nothing to do: those of a crowd would stay for good.

    The thread that has worked last is the first to work again, so that the others become idle for long enough. New ones are
    started by a thread of its own: `Thread.start` waits until the new one has run, which event loops have no time for.
    """

    def __init__(self, name: str, most: int, idle_seconds: float = IDLE_SECONDS) -> None:
        self._name = name
        self._most = most
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._waiting: deque[_Task] = deque()
        self._idle: list[_Idle] = []
        self._count = 0
        self._closed = False
        self._starting = 0  # threads that were ordered and have not taken a task yet
        self._orders: SimpleQueue[bool] = SimpleQueue()  # of threads, until the end
        self._starter: threading.Thread | None = None

    def submit(self, call: Callable[[], R]) -> Future[R]:
        """The outcome to come of a call. Raises RuntimeError once closed."""
        task = _Task(Future(), call)
        with self._lock:
            if self._closed:
                raise RuntimeError("no call is taken after the end")
            if self._idle:
                found = self._idle.pop()
                found.task = task
                found.lock.release()
            else:
                self._waiting.append(task)
                if self._count < self._most:
                    self._count += 1
                    self._starting += 1
                    self._orders.put(True)
                    if self._starter is None:
                        self._starter = threading.Thread(target=self._start, name=f"{self._name} start", daemon=True)
                        self._starter.start()
        return task.future

    def _start(self) -> None:
        """Start threads as they are wanted; where the system has none left, those that there are do what waits."""
        while self._orders.get():
            try:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            except RuntimeError as error:
                with self._lock:
                    self._count -= 1
                    self._starting -= 1
                    left, self._waiting = (deque[_Task](), self._waiting) if self._count else (self._waiting, deque())
                for task in left:
                    task.future.set_exception(error)

    def close(self) -> None:
        """Let calls in flight finish, start no more."""
        with self._lock:
            self._closed = True
            self._orders.put(False)
            while len(self._waiting) > self._starting:
                self._waiting.pop().future.cancel()
            for idle in self._idle:
                idle.lock.release()
            self._idle.clear()

    def _work(self) -> None:
        task = self._next(starts=True)
        while task is not None:
            task.run()
            task = None  # what it has made is let go of while this waits
            task = self._next()

    def _next(self, *, starts: bool = False) -> _Task | None:
        """What to do next; None for a thread that has waited in vain, which is counted no more."""
        idle = _Idle()
        with self._lock:
            self._starting -= starts
            if self._waiting:
                return self._waiting.popleft()
            if self._closed:
                return None
            idle.lock.acquire()
            self._idle.append(idle)
        idle.lock.acquire(timeout=self._idle_seconds)
        with self._lock:
            if idle.task is None:
                self._count -= 1
                if idle in self._idle:
                    self._idle.remove(idle)
            return idle.task
