"""Sign-ins end: after a while, when nobody uses them, by their holder, and with the token that they were given for."""

from __future__ import annotations

import pytest

from gateway.auth.authenticators import StaticTokens, token_line
from gateway.auth.base import Identity
from gateway.console.signed_in import LIFETIME_SECONDS, SignedIn


def tokens(*held: tuple[str, str]) -> StaticTokens:
    lines = (token_line(name, token).rpartition(":") for name, token in held)
    return StaticTokens((name, digest) for name, _, digest in lines)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def known() -> StaticTokens:
    return tokens(("ann", "a-token"), ("bob", "b-token"))


def who(known: StaticTokens, token: str) -> Identity:
    return known.authenticate({"authorization": f"Bearer {token}"})


def test_an_id_stands_for_its_holder_until_it_is_closed(known: StaticTokens) -> None:
    signed_in = SignedIn(known)
    ann, bob = signed_in.open(who(known, "a-token")), signed_in.open(who(known, "b-token"))
    assert ann != bob and len(ann) >= 40
    assert [found.name for one in (ann, bob) if (found := signed_in.find(one))] == ["ann", "bob"]
    signed_in.close(ann)
    assert signed_in.find(ann) is None
    assert signed_in.find(bob) is not None
    for guess in ("", "x", bob[:-1], bob.swapcase(), "\udc80", "x" * 1_000_000):
        assert signed_in.find(guess) is None


def test_it_ends_in_time(known: StaticTokens) -> None:
    clock = Clock()
    signed_in = SignedIn(known, clock)
    idle, used = signed_in.open(who(known, "a-token")), signed_in.open(who(known, "a-token"))
    while clock.now + 3600 < 100 + LIFETIME_SECONDS:
        clock.now += 3600
        assert signed_in.find(used) is not None
    assert signed_in.find(idle) is None
    clock.now = 100 + LIFETIME_SECONDS
    assert signed_in.find(used) is None


def test_it_ends_with_its_token(known: StaticTokens) -> None:
    signed_in = SignedIn(known)
    ann, bob = signed_in.open(who(known, "a-token")), signed_in.open(who(known, "b-token"))
    known.replace(tokens(("ann", "another"), ("bob", "b-token")))
    assert signed_in.find(ann) is None
    assert signed_in.find(bob) is not None


def test_one_holder_has_so_many_and_takes_none_of_others(known: StaticTokens) -> None:
    signed_in = SignedIn(known)
    bob = signed_in.open(who(known, "b-token"))
    all_of_ann = [signed_in.open(who(known, "a-token")) for _ in range(150)]
    assert [signed_in.find(one) is not None for one in all_of_ann] == [False] * 50 + [True] * 100
    assert signed_in.find(bob) is not None
