"""Sign-ins are kept once for many connections, and a flood of failures is counted instead of kept."""

from __future__ import annotations

from gateway.auth.base import AuthenticationError
from gateway.history.records import SignIn
from gateway.transport.sign_ins import TOKEN_GRANTED, SignIns


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_client_that_opens_many_connections_signs_in_once_a_minute() -> None:
    kept: list[SignIn] = []
    clock = Clock()
    sign_ins = SignIns(kept.append, clock=clock)
    for _ in range(100):
        sign_ins.let_in("ann", "10.0.0.1", "dbt", "bearer")
    assert [(s.user, s.address, s.client, s.mechanism, s.status) for s in kept] == [
        ("ann", "10.0.0.1", "dbt", "bearer", 200)
    ]
    sign_ins.let_in("ann", "10.0.0.2", "dbt", "bearer")
    sign_ins.let_in("bob", "10.0.0.1", "dbt", "bearer")
    sign_ins.let_in("ann", "10.0.0.1", "dbt", "oauth", TOKEN_GRANTED)
    assert len(kept) == 4
    clock.now = 61.0
    sign_ins.let_in("ann", "10.0.0.1", "dbt", "bearer")
    assert len(kept) == 5


def test_of_a_flood_of_failures_some_are_kept() -> None:
    kept: list[SignIn] = []
    sign_ins = SignIns(kept.append)
    for _ in range(1000):
        sign_ins.refused(AuthenticationError("bearer", "The token is not valid."), "10.0.0.9", "curl", "bearer")
    assert 1 <= len(kept) <= 40
    assert {(s.user, s.status, s.message) for s in kept} == {(None, 401, "The token is not valid.")}


def test_what_is_remembered_of_clients_is_bounded() -> None:
    sign_ins = SignIns(lambda record: None)
    for number in range(10_000):
        sign_ins.let_in("ann", "10.0.0.1", f"client {number}", "bearer")
    assert len(sign_ins._recent) <= 4096
    sign_ins = SignIns(lambda record: None)
    for number in range(10):
        sign_ins.let_in("ann" * 1000, "10.0.0.1", f"{number}{'x' * 100_000}", "bearer")
    assert sum(len(part) for key in sign_ins._recent for part in key) < 12_000


def test_without_a_history_nothing_is_remembered() -> None:
    sign_ins = SignIns()
    sign_ins.let_in("ann", "10.0.0.1", "dbt", "bearer")
    sign_ins.refused(AuthenticationError("basic", "no"), "10.0.0.1", "dbt", "basic")
    assert not sign_ins._recent
