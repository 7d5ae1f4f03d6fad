"""Random schedules of many operations over a pool moved by hand: whatever happens, each ends once and gives back its slot."""

import random
from pathlib import Path

import pytest

from gateway.engine.base import Statement
from gateway.errors import GatewayError, ServerError, UserError
from gateway.service.api import (
    ENDS,
    ExecuteRequest,
    Handle,
    MetadataRequest,
    OpenSessionRequest,
    Orientation,
    Principal,
    State,
)
from gateway.service.operation import Operation
from gateway.service.service import GatewayService
from tests.live.fakes import FakePool
from tests.unit.service.settings import service_config

PRINCIPALS = [Principal("a"), Principal("b")]


class Schedule:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.pool = FakePool()
        config = service_config(
            folder,
            slots=3,
            lane=1,
            queue_limit=20,
            session_idle=500,
            operation_idle=100,
            statement_timeout=200,
        )
        self.service = GatewayService(self.pool, config, clock=lambda: self.now)
        self.ends: dict[str, list[State]] = {}
        ended = self.service.ended

        def note(operation: Operation) -> None:
            self.ends.setdefault(operation.id, []).append(operation.state)
            ended(operation)

        self.service.ended = note  # type: ignore[method-assign]
        self.sessions: list[tuple[Principal, Handle]] = []
        self.operations: list[tuple[Principal, Handle]] = []
        self.accepted = 0
        self.steps = [
            (self.open, 3),
            (self.execute, 10),
            (self.metadata, 2),
            (self.advance_run, 30),
            (self.end_run, 10),
            (self.cancel, 3),
            (self.close, 3),
            (self.fetch, 6),
            (self.close_session, 1),
            (self.pass_time, 3),
        ]

    def step(self) -> None:
        action = self.random.choices([s for s, _ in self.steps], [w for _, w in self.steps])[0]
        try:
            action()
        except GatewayError as error:
            assert error.condition in (
                "INVALID_SESSION_HANDLE",
                "INVALID_OPERATION_HANDLE",
                "RESOURCE_EXHAUSTED",
                "OPERATION_CANCELED",
                "QUERY_EXECUTION_TIMEOUT_EXCEEDED",
                "DIVIDE_BY_ZERO",
                "WORKER_LOST",
            ), error

    def open(self) -> None:
        principal = self.random.choice(PRINCIPALS)
        info = self.service.open_session(OpenSessionRequest(principal, 1))
        self.sessions.append((principal, info.handle))

    def execute(self) -> None:
        principal, session = self.random.choice(self.sessions[-6:])
        timeout = self.random.choice([0, 0, 30])
        status = self.service.execute(principal, session, ExecuteRequest("x", timeout_seconds=timeout))
        self.accepted += 1
        self.operations.append((principal, status.handle))

    def metadata(self) -> None:
        principal, session = self.random.choice(self.sessions[-6:])
        status = self.service.metadata(principal, session, MetadataRequest("tables"))
        self.accepted += 1
        self.operations.append((principal, status.handle))

    def advance_run(self) -> None:
        runs = [r for r in self.pool.runs if not r.over]
        if runs:
            run = self.random.choice(runs)
            run.plan()
            run.deliver(self.random.randint(1, 50))

    def end_run(self) -> None:
        runs = [r for r in self.pool.runs if not r.over]
        if runs:
            run = self.random.choice(runs)
            how = self.random.random()
            if not run.rows and isinstance(run.job, Statement) and run.job.brief and how < 0.5:
                run.give_back()
            elif how < 0.7:
                if run.rows:
                    run.finish()
            elif how < 0.9:
                run.fail(UserError("DIVIDE_BY_ZERO", "x"))
            else:
                run.fail(ServerError("WORKER_LOST", "x"))

    def cancel(self) -> None:
        if self.operations:
            self.service.cancel(*self.random.choice(self.operations))

    def close(self) -> None:
        if self.operations:
            self.service.close_operation(*self.random.choice(self.operations))

    def fetch(self) -> None:
        ready = []
        for principal, handle in self.operations:
            found = self.service._operations.find(handle, principal)
            if found is not None and (found.rows or found.state in ENDS):
                ready.append((principal, handle))
        if ready:
            principal, handle = self.random.choice(ready)
            page = self.service.fetch(principal, handle, Orientation.FIRST, 20, None, None)
            assert [i for p in page.parts for i in p.batch["id"].to_pylist()] == list(range(page.rows))

    def close_session(self) -> None:
        if len(self.sessions) > 2:
            self.service.close_session(*self.random.choice(self.sessions))

    def pass_time(self) -> None:
        self.now += self.random.choice([1, 10, 60])
        self.service.sweep()

    def check(self) -> None:
        live = [r for r in self.pool.runs if not r.over]
        admission = self.service._admission
        assert admission.running == len(live) <= 5
        assert [isinstance(r.job, Statement) and r.job.brief for r in live].count(True) == admission._running_brief <= 1
        if admission.waiting:
            assert admission.running >= 3
        assert {o.state for o in self.service._active}.isdisjoint(ENDS)


@pytest.mark.parametrize("seed", range(25))
def test_every_operation_ends_once_and_gives_back_its_slot(seed: int, tmp_path: Path) -> None:
    schedule = Schedule(seed, tmp_path)
    for _ in range(3):
        schedule.open()
    for _ in range(600):
        schedule.step()
        schedule.check()
    while runs := [r for r in schedule.pool.runs if not r.over]:
        for run in runs:
            run.plan()
            run.finish()
    schedule.check()
    service = schedule.service
    assert service._admission.running == service._admission.waiting == 0 and not service._active
    assert len(schedule.ends) >= schedule.accepted > 50  # those that a full queue refused have ended as well
    assert all(len(states) == 1 and states[0] in ENDS for states in schedule.ends.values())
    schedule.now += 10_000
    service.sweep()
    assert len(service._operations) == len(service._sessions) == 0
