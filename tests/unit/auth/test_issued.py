"""Tokens for an hour open what the token behind them opens, to its holder, until they end; nothing else passes for one."""

from __future__ import annotations

import base64

import pytest

from gateway.auth.authenticators import AllowAll, StaticTokens, token_line
from gateway.auth.base import AuthenticationError
from gateway.auth.issued import LIFETIME_SECONDS, IssuedTokens


class Clock:
    """A clock that is moved by hand."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(clock: Clock) -> IssuedTokens:
    lines = [token_line(name, f"dapi-{name}").split(":") for name in ("ann", "bob")]
    return IssuedTokens(StaticTokens((name, digest) for name, digest in lines), clock)


def test_a_token_belongs_to_its_holder_for_an_hour(tokens: IssuedTokens, clock: Clock) -> None:
    for headers in (basic("ann", "dapi-ann"), basic("token", "dapi-ann")):
        token = tokens.issue(headers, "https://x/oidc")
        assert tokens.authenticate(bearer(token)).name == "ann"
        assert tokens.authenticate(basic("token", token)).name == "ann"
        assert tokens.authenticate(basic("ann", token)).name == "ann"
        with pytest.raises(AuthenticationError):
            tokens.authenticate(basic("bob", token))
    clock.now += LIFETIME_SECONDS - 1
    assert tokens.authenticate(bearer(token)).name == "ann"
    clock.now += 2
    with pytest.raises(AuthenticationError, match="The token is not valid"):
        tokens.authenticate(bearer(token))
    with pytest.raises(AuthenticationError):
        tokens.issue(basic("token", token), "https://x/oidc")


def test_it_ends_with_the_token_behind_it(clock: Clock) -> None:
    def known(*tokens: str) -> StaticTokens:
        lines = [token_line("ann", token).split(":") for token in tokens]
        return StaticTokens((name, digest) for name, digest in lines)

    static = known("first", "second")
    tokens = IssuedTokens(static, clock)
    of_first, of_second = (tokens.issue(basic("ann", token), "https://x/oidc") for token in ("first", "second"))
    before = tokens.authenticate(bearer(of_first))
    assert before.proof in tokens.proofs("ann") and "proof" not in repr(before)
    static.replace(known("second"))
    assert tokens.authenticate(bearer(of_second)).name == "ann"
    for gone in (of_first, "first"):
        with pytest.raises(AuthenticationError, match="The token is not valid"):
            tokens.authenticate(bearer(gone))
    assert before.proof not in tokens.proofs("ann")
    assert not tokens.proofs("nobody")


@pytest.mark.parametrize("headers", [{}, basic("ann", "dapi-bob"), basic("ann", ""), bearer("dapi-ann")])
def test_who_is_unknown_gets_none(tokens: IssuedTokens, headers: dict[str, str]) -> None:
    with pytest.raises(AuthenticationError):
        tokens.issue(headers, "https://x/oidc")


def test_nothing_else_passes_for_one(tokens: IssuedTokens, clock: Clock) -> None:
    token = tokens.issue(basic("ann", "dapi-ann"), "https://x/oidc")
    other = IssuedTokens(AllowAll(), clock).issue(basic("ann", "x"), "https://x/oidc")
    flipped = [token[:i] + ("A" if token[i] != "A" else "B") + token[i + 1 :] for i in range(len(token))]
    header, payload, signature = token.split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    unsigned = (
        f"{header}.{payload}.",
        f"{header}.{payload}",
        f"{none}.{payload}.",
        f"{none}.{payload}.{signature}",
        "...",
    )
    for forged in (*flipped, other, token[:-1], token + "A", *unsigned, token + "é", ""):
        with pytest.raises(AuthenticationError):
            tokens.authenticate(bearer(forged))
    assert tokens.authenticate(bearer("dapi-ann")).name == "ann"
